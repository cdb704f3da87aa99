// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOffsetsOfCompiledSavesAreCorrected: where registers are saved is what the
// assembly says, `spill to FP[2*32]` and so on.
func TestOffsetsOfCompiledSavesAreCorrected(t *testing.T) {
	for name, want := range map[string]map[uint16]int32{
		"dg2-g10-rec-O2-1": {1920: 64, 1952: 96, 1984: 128, 2016: 160, 2048: 192, 2080: 224},
		"pvc-rec-O0-1":     {3840: 64, 3904: 128, 3968: 192, 4032: 256, 4096: 320, 4160: 384, 4224: 448, 4288: 512, 4352: 576},
		"tgllp-rec-O2-1":   {1920: 64, 1952: 96, 1984: 128, 2016: 160, 2048: 192, 2080: 224}, // as written
	} {
		s := decode(t, compiled(t)[name])
		frames, corrections := s.Corrected()
		if len(frames) != len(s.Objects) || (len(corrections) == 0) != strings.HasPrefix(name, "tgllp") {
			t.Errorf("%s: %d frames, %q", name, len(frames), corrections)
		}
		if diff := cmp.Diff(decode(t, compiled(t)[name]), s); diff != "" {
			t.Errorf("%s: the stream itself was changed: %s", name, diff)
		}
		for i, f := range frames {
			for _, save := range f.CalleeSaves {
				for _, g := range save.Registers {
					if offset, ok := want[g.Offset]; !ok || offset != g.Location.Offset {
						t.Errorf("%s: object %d: %+v, want offset %d", name, i, g, offset)
					}
				}
			}
			if f.savesOutside() {
				t.Errorf("%s: object %d: saves beyond the frame", name, i)
			}
		}
	}
}

// framed is a frame that saves registers of so many bytes at offsets.
func framed(size, bytes uint16, offsets ...int32) Frame {
	f := Frame{Size: size, CalleeSaves: []Save{{GenOffset: 8}}}
	for i, offset := range offsets {
		f.CalleeSaves[0].Registers = append(f.CalleeSaves[0].Registers,
			SavedRegister{1920 + uint16(i)*bytes, bytes, Location{Storage: Memory, Offset: offset}})
	}
	return f
}

func TestCorrections(t *testing.T) {
	const unknown = -1 << 31
	callers := framed(256, 32)
	callers.CallerSaves = framed(0, 32, 1024, 1056).CalleeSaves
	elsewhere := framed(256, 32, 1024, 99999, 3)
	elsewhere.CalleeSaves[0].Registers[1].Location.IsAbsolute = true
	elsewhere.CalleeSaves[0].Registers[2].Location = Location{Storage: General, Register: 7, Subregister: 3}
	behind := framed(256, 32, 3, 1025)
	behind.CalleeSaves[0].Registers[0].Location = Location{Storage: General, Register: 7, Subregister: 3}
	for _, c := range []struct {
		name    string
		frames  []Frame
		want    [][]int32 // offsets of each frame's saves
		message []string
	}{
		{"all in the frame", []Frame{framed(256, 32, 64, 224), framed(1056, 32, 1024)}, [][]int32{{64, 224}, {1024}}, nil},
		{"beyond by one", []Frame{framed(1055, 32, 1024)}, [][]int32{{64}}, []string{"multiplied offsets at which registers are saved: 1024 is 64"}},
		{"64 bytes", []Frame{framed(448, 64, 2048, 2112, 10240)}, [][]int32{{64, 128, 320}}, []string{"2048 is 64, 2112 is 128, 10240 is 320"}},
		{"at the end of the frame", []Frame{framed(96, 32, 1024)}, [][]int32{{64}}, []string{"1024 is 64"}},
		{"a frame that does not show it", []Frame{framed(4096, 32, 0, 1024), framed(256, 32, 3072), framed(64, 32, 0)},
			[][]int32{{0, 64}, {192}, {0}}, []string{`object 0 ("f0"): frame: the compiler multiplied`, `object 1 ("f1")`}},
		{"the last of eight registers", []Frame{framed(512, 32, 1024, 1056, 1088, 1120, 1152, 1184, 1216, 1248)},
			[][]int32{{64, 96, 128, 160, 192, 224, 256, 288}}, []string{"1216 is 256, 1248 is 288"}},
		{"the second without the first", []Frame{framed(512, 32, 1024+32)}, [][]int32{{unknown}}, []string{"beyond its 512 bytes"}},
		{"the second before the first", []Frame{framed(512, 32, 1056, 1024)}, [][]int32{{unknown, unknown}}, []string{"beyond its 512 bytes"}},
		{"as if a ninth", []Frame{framed(512, 32, 1024, 1056, 1088, 1120, 1152, 1184, 1216, 1248, 1280)},
			[][]int32{{unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown, unknown}}, []string{"beyond its 512 bytes"}},
		{"no distance of registers", []Frame{framed(512, 32, 1024, 1024+16)}, [][]int32{{unknown, unknown}}, []string{"beyond its 512 bytes"}},
		{"also then not in the frame", []Frame{framed(95, 32, 1024)}, [][]int32{{unknown}}, []string{"beyond its 95 bytes"}},
		{"two at one place", []Frame{framed(256, 32, 1024, 3072, 1024)}, [][]int32{{unknown, unknown, unknown}}, []string{"beyond its 256 bytes"}},
		{"two at the last place", []Frame{framed(256, 32, 3072, 1024, 3072)}, [][]int32{{unknown, unknown, unknown}}, []string{"beyond its 256 bytes"}},
		{"negative", []Frame{framed(256, 32, -64)}, [][]int32{{unknown}}, []string{"beyond its 256 bytes"}},
		{"other sizes", []Frame{framed(256, 16, 1024)}, [][]int32{{unknown}}, []string{"beyond its 256 bytes"}},
		{"one that cannot be concerns all", []Frame{framed(2048, 32, 64), framed(256, 32, 3072), framed(256, 32, 1025)},
			[][]int32{{unknown}, {unknown}, {unknown}}, []string{`object 1 ("f1"): frame: registers are saved beyond its 256 bytes: where the stream's frames save registers is unknown`}},
		{"caller saves", []Frame{callers}, [][]int32{{64, 96}}, []string{"1024 is 64, 1056 is 96"}},
		{"saves that are not in the frame", []Frame{elsewhere}, [][]int32{{64, 99999, 0}}, []string{"1024 is 64"}},
		{"one that cannot be, behind one in a register", []Frame{behind}, [][]int32{{0, unknown}}, []string{"beyond its 256 bytes"}},
		{"where they are is known all the same", []Frame{elsewhere, framed(64, 32, 3072)}, [][]int32{{unknown, 99999, 0}, {unknown}}, []string{"beyond its 256 bytes"}},
	} {
		s := &Stream{Layout: LayoutA}
		for i, f := range c.frames {
			s.Objects = append(s.Objects, Object{Name: "f" + string(rune('0'+i)), Frame: f})
		}
		frames, corrections := s.Corrected()
		var got [][]int32
		for _, f := range frames {
			var offsets []int32
			for _, list := range [][]Save{f.CalleeSaves, f.CallerSaves} {
				for _, x := range list {
					for _, g := range x.Registers {
						if g.Location == (Location{Storage: Unknown}) {
							g.Location.Offset = unknown
						}
						offsets = append(offsets, g.Location.Offset)
					}
				}
			}
			got = append(got, offsets)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if len(corrections) != len(c.message) {
			t.Errorf("%s: %q, want %q", c.name, corrections, c.message)
			continue
		}
		for i, m := range c.message {
			if !strings.Contains(corrections[i], m) {
				t.Errorf("%s: %q, want %q", c.name, corrections, c.message)
			}
		}
	}
}

// TestFramesLargerThanTheySay: a stream has 16 bits of a frame's size. Where a
// variable lies beyond it, saves beyond it do not say that offsets are wrong.
func TestFramesLargerThanTheySay(t *testing.T) {
	for offset, unknown := range map[int32]bool{255: false, 256: true, 70000: true} {
		s := &Stream{Objects: []Object{{Frame: framed(256, 32, 1024), Variables: []Variable{
			{"V1", []Interval{
				{0, 1, General, Location{Storage: Memory, IsAbsolute: true, Offset: 99999}},
				{0, 1, General, Location{Storage: Memory, Offset: offset}},
			}},
		}}}}
		frames, _ := s.Corrected()
		if got := frames[0].CalleeSaves[0].Registers[0].Location.Storage == Unknown; got != unknown {
			t.Errorf("a variable at %d: %+v", offset, frames[0])
		}
	}
}
