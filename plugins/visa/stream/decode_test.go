// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unwindd/unwindd/internal/proof"
)

// compiled reads the streams of testdata, by name.
func compiled(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("testdata/*.dbg")
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams in testdata: %v", err)
	}
	streams := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		streams[strings.TrimSuffix(filepath.Base(f), ".dbg")] = b
	}
	return streams
}

func decode(t testing.TB, b []byte) *Stream {
	t.Helper()
	s, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCompiledStreamsAreOfLayoutA(t *testing.T) {
	for name, b := range compiled(t) {
		s := decode(t, b)
		if s.Layout != LayoutA {
			t.Errorf("%s: layout %s", name, s.Layout)
		}
		// The only strange thing is a variable of reordered code.
		var want []string
		if name == "tgllp-rec-O2-1" {
			want = []string{`object 1 ("fact"): variables[2].intervals[0].end: 16 before the start, 19`}
		}
		if diff := cmp.Diff(want, s.Problems); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(b, encode(s).b); diff != "" {
			t.Errorf("%s: not all is read: %s", name, diff)
		}
	}
}

func TestStreamsOfEveryLayoutAreReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawStream(t, rapid.SampledFrom(Layouts).Draw(t, "layout"))
		if len(want.Objects) == 0 {
			want.Layout = LayoutA // all are alike
		}
		got, err := Decode(encode(want).b)
		if err != nil {
			t.Fatal(err)
		}
		// Some bytes do fit two layouts; the right one is found.
		if len(got.Problems) == 1 && strings.HasPrefix(got.Problems[0], "the stream can be read as layouts ") {
			got.Problems = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestEveryPrefixIsAnError(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, b []byte) {
		for n := range b {
			if s, err := Decode(b[:n:n]); err == nil {
				t.Fatalf("%d of %d bytes are read as layout %s: %q", n, len(b), s.Layout, s.Problems)
			}
		}
	}
	for name, b := range compiled(t) {
		if len(b) > 5000 && !proof.IsRequested() || len(b) > 1000 && testing.Short() {
			continue // takes seconds
		}
		t.Run(name, func(t *testing.T) { check(t, b) })
	}
	rapid.Check(t, func(t *rapid.T) { check(t, encode(drawStream(t, LayoutA)).b) })
}

// small is a stream that has everything, of two objects.
func small(layout Layout) *Stream {
	everywhere := func(from, to int) []Interval {
		return []Interval{
			{8, 16, Address, Location{Storage: Address, Subregister: 2}},
			{16, 24, Flag, Location{Storage: Flag, Register: 1, Subregister: 1}},
			{24, 32, General, Location{Storage: General, Register: 125, Subregister: 12}},
			{32, 40, General, Location{Storage: Memory, Offset: -64}},
			{40, 48, General, Location{Storage: Memory, IsAbsolute: true, Offset: 1024}},
		}[from:to]
	}
	saves := func() []Save {
		return []Save{
			{64, []SavedRegister{
				{1920, 32, Location{Storage: Memory, Offset: 64}},
				{1952, 32, Location{Storage: General, Register: 7, Subregister: 4}},
			}},
			{128, []SavedRegister{}},
		}
	}
	s := &Stream{Layout: layout}
	for i, name := range []string{"kern", "func"} {
		o := Object{
			Name: name, RelocOffset: uint32(4096 * i), OffsetMap: []Mapping{{3, 8}, {5, 16}}, IndexMap: []Mapping{{0, 0}, {1, 16}},
			Variables:   []Variable{{"V32", everywhere(0, 5)}, {"V33", []Interval{}}},
			Subroutines: []Subroutine{{"sub", 3, 9, everywhere(2, 3)}},
			Frame:       Frame{192, everywhere(0, 3), everywhere(3, 4), everywhere(4, 5), nil, saves(), saves()},
		}
		if layout == LayoutC {
			o.Frame.CE = &CE{16, 80}
		}
		s.Objects = append(s.Objects, o)
	}
	return s
}

// patched is a copy of bytes with others at an offset.
func patched(b []byte, at int, with ...byte) []byte {
	b = append([]byte(nil), b...)
	copy(b[at:], with)
	return b
}

// failure decodes what cannot be decoded as a layout; with layout 0, as any.
func failure(t *testing.T, b []byte, layout Layout) *Error {
	t.Helper()
	s, err := Decode(b)
	var e *Error
	var list LayoutErrors
	if errors.As(err, &list) {
		for _, e := range list {
			if e.Layout == layout {
				return e
			}
		}
	}
	if !errors.As(err, &e) {
		t.Fatalf("%v %v, want an Error", s, err)
	}
	return e
}

// TestErrorsNameTheField puts into every field what it cannot hold.
func TestErrorsNameTheField(t *testing.T) {
	for _, layout := range Layouts {
		e := encode(small(layout))
		decode(t, e.b)
		kinds := map[string]int{}
		common := true // to all layouts, up to the first field in which they differ
		for _, f := range e.fields {
			var bad [][]byte
			at, want := f.offset, ""
			switch f.kind {
			case "count":
				at += f.size
				bad = [][]byte{[]byte{0xff, 0xff, 0xff, 0xff}[:f.size]}
				want = fmt.Sprintf("of at least %d bytes each, expected no more than the %d bytes that are left", f.largest, len(e.b)-at)
			case "enum":
				bad = [][]byte{{uint8(f.largest) + 1}, {0xff}}
				want = "expected 0 to " + string(rune('0'+f.largest))
			case "name":
				bad = [][]byte{patched(e.b[f.offset:f.offset+f.size], 2, 0x1b), patched(e.b[f.offset:f.offset+f.size], 3, 0xff)}
				want = "expected UTF-8 without control characters"
			case "register":
				if strings.HasSuffix(f.name, ".subregister") {
					at -= 2 // the two are one location
					bad, want = [][]byte{{64, 0}, {0xff, 0xff}}, "expected less than 64"
				} else {
					bad, want = [][]byte{{0, 2}, {0xfe, 0xff}}, "expected 0 to "
					if Storage(e.b[f.offset-1]) < General && !strings.Contains(f.name, "entries") {
						bad = append(bad, []byte{16, 0})
					}
				}
			}
			if f.name == "frame.ce_offset" || f.name == "frame.callee_saves" {
				common = false
			}
			for _, b := range bad {
				got := failure(t, patched(e.b, f.offset, b...), layout)
				of := layout
				if common && (f.kind == "count" || f.kind == "enum") {
					of = 0
				}
				if got.Object != f.object || got.Field != f.name || got.Offset != uint64(at) || got.Layout != of || !strings.Contains(got.Detail, want) {
					t.Errorf("%s at %#x with % x: %v, want %q at %#x, layout %s", f.name, f.offset, b, got, want, at, of)
				}
				kinds[f.kind]++
			}
		}
		if len(kinds) != 4 {
			t.Errorf("%v", kinds)
		}
	}
}

func TestErrors(t *testing.T) {
	b := encode(small(LayoutA)).b
	named := func(name string) []byte {
		s := small(LayoutB)
		s.Objects[1].Name = name
		return encode(s).b
	}
	saved := func(offset, bytes uint16) []byte {
		s := small(LayoutC)
		s.Objects[1].Frame.CallerSaves[0].Registers[0].Offset = offset
		s.Objects[1].Frame.CallerSaves[0].Registers[0].Bytes = bytes
		return encode(s).b
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		want  string
	}{
		{"empty", nil, "vISA stream+0x0: magic_number: , expected 0xdeadd010"},
		{"short", b[:3], "vISA stream+0x0: magic_number: 10 d0 ad, expected 0xdeadd010"},
		{"other magic", patched(b, 3, 0xdf), "vISA stream+0x0: magic_number: 10 d0 ad df, expected 0xdeadd010"},
		{"magic alone", b[:4], "vISA stream+0x4: objects: 0 bytes are left in the stream, expected 2"},
		{"two names", bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("kern"), []byte("k\x01rn")), []byte("func"), []byte("f\x01nc")), `(layout A): object 0: name: "k\x01rn"`},
		{"more behind", append(append([]byte(nil), b...), 1), "(layout A): end: 1 bytes follow the last object, expected none"},
		{"no name", named(""), `(layout B): object 1: name: no name, expected one`},
		{"a name for a terminal", named("a\x7fb"), `(layout B): object 1: name: "a\x7fb", expected UTF-8 without control characters`},
		{"no bytes are saved", saved(32, 0), `(layout C): object 1 ("func"): frame.caller_saves[0].entries[0].bytes: 0 from 32 on, expected some, and within 512 registers`},
		{"bytes beyond the registers", saved(32768-32, 33), `entries[0].bytes: 33 from 32736 on`},
		{"bytes that overflow", saved(65535, 65535), `entries[0].bytes: 65535 from 65535 on`},
		{"a count", patched(b, 12, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0x7f), `vISA stream+0x14: object 0 ("kern"): offset_map: 2147483647 of at least 8 bytes each, expected no more than the`},
	} {
		if got := failure(t, c.bytes, LayoutA).Error(); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if Is(b[:3]) || !Is(b[:4]) || Is(patched(b, 0, 0)) {
		t.Error("a stream is told by its first four bytes")
	}
	decode(t, saved(32768-32, 32)) // the last
}

// TestLocationsWithoutARegister: a variable that has no register is no error.
func TestLocationsWithoutARegister(t *testing.T) {
	s := small(LayoutA)
	s.Objects[0].Variables[0].Intervals[2].Location = Location{Storage: General, Register: NotAllocated, Subregister: NotAllocated}
	if diff := cmp.Diff(s, decode(t, encode(s).b)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsStrangeIsAProblem(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Object)
		want   []string
	}{
		{"nothing", func(*Object) {}, nil},
		{"a Gen offset between instructions", func(o *Object) { o.IndexMap[1].Gen = 17 },
			[]string{`object 1 ("func"): index_map[1].gen: 17, expected a multiple of 8`}},
		{"a map out of order", func(o *Object) { o.OffsetMap[0].Gen = 24 },
			[]string{`object 1 ("func"): offset_map[1].gen: 16 after 24, expected an ascending order`}},
		{"an interval in indexes that ends early", func(o *Object) { o.Variables[0].Intervals[0].End = 7 },
			[]string{`object 1 ("func"): variables[0].intervals[0].end: 7 before the start, 8`}},
		{"an interval in offsets that ends early", func(o *Object) { o.Frame.CallerBEFP[0].End = 24 },
			[]string{`object 1 ("func"): frame.caller_be_fp[0].end: 24 before the start, 32`}},
		{"an interval that starts between instructions", func(o *Object) { o.Frame.BEFP[0].Start = 9 },
			[]string{`object 1 ("func"): frame.be_fp[0].start: 9, expected a multiple of 8`}},
		{"an interval that ends between instructions", func(o *Object) { o.Frame.ReturnAddress[0].End = 49 },
			[]string{`object 1 ("func"): frame.return_address[0].end: 49, expected a multiple of 8`}},
		{"saves out of order", func(o *Object) { o.Frame.CalleeSaves[1].GenOffset = 56 },
			[]string{`object 1 ("func"): frame.callee_saves[1].gen_offset: 56 after 64, expected an ascending order`}},
		{"a save between instructions", func(o *Object) { o.Frame.CallerSaves[1].GenOffset = 129 },
			[]string{`object 1 ("func"): frame.caller_saves[1].gen_offset: 129, expected a multiple of 8`}},
		{"a restore of nothing", func(o *Object) { o.Frame.CallerSaves = o.Frame.CallerSaves[1:] },
			[]string{`object 1 ("func"): frame.caller_saves[0].entries: the first restores, expected that it saves`}},
		{"a mask that is stored nowhere", func(o *Object) { o.Frame.CE.Offset = 0 },
			[]string{`object 1 ("func"): frame.ce_store_ip: 80 though nothing is stored, expected 0`}},
		{"an object where another begins", func(o *Object) { o.RelocOffset = 0 },
			[]string{`object 1 ("func"): reloc_offset: 0x0, where object 0 begins too`}},
		{"a subroutine that ends early", func(o *Object) {
			o.Subroutines = []Subroutine{{Name: "s", Start: 9, End: 8, ReturnValue: []Interval{}}}
		},
			[]string{`object 1 ("func"): subroutines[0].end: 8 before the start, 9`}},
		{"no mask", func(o *Object) { *o.Frame.CE = CE{} }, nil},
	} {
		s := small(LayoutC)
		c.change(&s.Objects[1])
		got := decode(t, encode(s).b)
		if diff := cmp.Diff(c.want, got.Problems); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if got.Problems = nil; !cmp.Equal(s, got) {
			t.Errorf("%s: %s", c.name, cmp.Diff(s, got))
		}
	}
}

func TestProblemsAreBounded(t *testing.T) {
	s := small(LayoutB)
	for range 18 {
		s.Objects[0].IndexMap = append(s.Objects[0].IndexMap, Mapping{1, 17})
	}
	got := decode(t, encode(s).b)
	if n := len(got.Problems); n != 17 || got.Problems[16] != "and 2 more problems" {
		t.Errorf("%d problems: %q", n, got.Problems)
	}
}

// tail is a stream of one object that has nothing, but for what follows the
// validity of the return address.
func tail(name string, numbers ...uint16) []byte {
	e := &encoder{}
	e.u32(Magic)
	e.u16(1)
	e.name("", name)
	e.b = append(e.b, make([]byte, 4+4+4+4+2+2+3)...)
	for _, n := range numbers {
		e.b = binary.LittleEndian.AppendUint16(e.b, n)
	}
	return e.b
}

// TestStreamsThatFitSeveralLayouts: bytes that can be read in several ways are
// read in the most sensible one, and that is told.
func TestStreamsThatFitSeveralLayouts(t *testing.T) {
	sensibleC := []uint16{1, 8, 0, 1, 0, 0, 0, 1, 0x0120, 0x0100, 0xc000, 0, 0}
	for _, c := range []struct {
		name    string
		bytes   []byte
		layout  Layout
		problem string
	}{
		// A: a restore at 0. C: a mask that is stored nowhere.
		{"both are strange", tail("k", 0, 1, 0, 0, 0), LayoutA,
			"the stream can be read as layouts A and C: read as A, not C (it is the later one)"},
		// A: a callee save of nothing. C: a mask.
		{"one is strange", tail("k", 1, 8, 0, 0, 0), LayoutC,
			`the stream can be read as layouts A and C: read as C, not A (object 0 ("k"): frame.callee_saves[0].entries: the first restores, expected that it saves)`},
		// A: a save of 0 bytes. C: a mask, and a register that is saved.
		{"one has no sense", append(tail("k", sensibleC[:12]...), 0), LayoutC,
			`the stream can be read as layouts A and C: read as C, not A (object 0 ("k"): frame.callee_saves[0].entries[0].bytes: 0 from 0 on, expected some, and within 512 registers)`},
		{"there are no objects", []byte{0x10, 0xd0, 0xad, 0xde, 0, 0}, LayoutA,
			"the stream can be read as layouts A and B and C: read as A, not B (it is the later one), not C (it is the later one)"},
	} {
		s, err := Decode(c.bytes)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if s.Layout != c.layout || len(s.Problems) == 0 || s.Problems[0] != c.problem {
			t.Errorf("%s: layout %s, %q, want layout %s, %q", c.name, s.Layout, s.Problems, c.layout, c.problem)
		}
		if b := encode(s).b; !cmp.Equal(b, c.bytes) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	if e := failure(t, tail("", 0, 1, 0, 0, 0), LayoutA); e.Field != "name" {
		t.Errorf("%v, want that no layout makes sense", e)
	}
}

func FuzzStream(f *testing.F) {
	for _, b := range compiled(f) {
		if len(b) < 4000 {
			f.Add(b)
		}
	}
	for _, layout := range Layouts {
		f.Add(encode(small(layout)).b)
	}
	f.Add(tail("k", 0, 1, 0, 0, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Decode(b)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Offset > uint64(len(b)) || e.Field == "" || e.Detail == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if got := encode(s).b; !cmp.Equal(got, b) {
			t.Fatalf("% x\nis read as %+v", b, s)
		}
		before := encode(s).b
		frames, corrections := s.Corrected()
		if len(frames) != len(s.Objects) || !cmp.Equal(before, encode(s).b) {
			t.Fatalf("%d frames of %d, or the stream changed", len(frames), len(s.Objects))
		}
		for i := range frames {
			if frames[i].savesOutside() {
				t.Fatalf("%q: saves outside of the frame: %+v", corrections, frames[i])
			}
		}
	})
}
