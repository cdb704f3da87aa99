// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/unwindd/unwindd/internal/ehpe"
	"github.com/unwindd/unwindd/internal/oracle"
)

func TestPointerEncodings(t *testing.T) {
	formats := []struct {
		format byte
		max    uint64 // the largest address that the format can hold here
	}{
		{ehpe.AbsPtr, 0}, {ehpe.ULEB128, 0}, {ehpe.UData2, 0xffff}, {ehpe.UData4, 0xffffffff}, {ehpe.UData8, 0},
		{ehpe.Signed, 0}, {ehpe.SLEB128, 0}, {ehpe.SData2, 0x7fff}, {ehpe.SData4, 0x7fffffff}, {ehpe.SData8, 0},
	}
	bases := []struct {
		application byte
		function    uint64
	}{
		{0, 0x5000}, {ehpe.PCRel, 0x2400}, {ehpe.PCRel, 0x1f00}, {ehpe.TextRel, 0x501234}, {ehpe.DataRel, 0x601234}, {ehpe.DataRel, 0x5ff000}, {ehpe.Aligned, 0x123456789a},
	}
	for _, size := range []int{4, 8} {
		for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
			for _, f := range formats {
				for _, base := range bases {
					encoding := f.format | base.application
					start := base.function & addressMask(size)
					if base.application == ehpe.Aligned && f.format != ehpe.AbsPtr {
						continue // refused, see TestPointersThatCannotBeRead
					}
					unsigned := f.max != 0 && f.max&(f.max+1) == 0 && (f.format == ehpe.UData2 || f.format == ehpe.UData4)
					if unsigned && (base.function == 0x1f00 || base.function == 0x5ff000) && (size != 4 || f.format != ehpe.UData4) {
						continue // before the base: a format without sign cannot say that
					}
					if f.format == ehpe.ULEB128 && (base.function == 0x1f00 || base.function == 0x5ff000) {
						continue
					}
					t.Run(fmt.Sprintf("%#02x, size %d, %v, %#x", encoding, size, order, start), func(t *testing.T) {
						b := ehFrame()
						b.AddressSize, b.Order = size, order
						c := cieSpec{augmentation: "zR", data: []byte{encoding}, encoding: encoding, instructions: x86Initial}
						offset := b.fde(b.cie(c), c, fdeSpec{start: start, size: 0x80, instructions: []byte{0x41, 0x0e, 16}})
						f, err := b.table(t).FDE(start + 0x7f)
						if err != nil {
							t.Fatal(err)
						}
						got, err := rows(f)
						if err != nil {
							t.Fatal(err)
						}
						want := []string{fmt.Sprintf("%x-%x 7+8 16:c-8", start, start+1), fmt.Sprintf("%x-%x 7+16 16:c-8", start+1, start+0x80)}
						if diff := cmp.Diff(want, got); diff != "" || f.Offset != offset {
							t.Errorf("FDE at %#x, want %#x, rows (-want +got):\n%s", f.Offset, offset, diff)
						}
					})
				}
			}
		}
	}
}

func TestIndirectInitialLocation(t *testing.T) {
	c := cieSpec{augmentation: "zR", data: []byte{ehpe.Indirect | ehpe.UData4}, encoding: ehpe.Indirect | ehpe.UData4}
	b := ehFrame()
	b.fde(b.cie(c), c, fdeSpec{start: 0x7000, size: 0x10})
	var err error
	for _, err = range b.table(t).FDEs() {
		break
	}
	if !errors.Is(err, ErrIndirect) {
		t.Errorf("without memory: %v, want %v", err, ErrIndirect)
	}
	b.Memory = func(dst []byte, address uint64) (int, error) {
		if address != 0x7000 {
			return 0, fmt.Errorf("asked for %#x", address)
		}
		return copy(dst, "\x00\x10\x40\x00\x00\x00\x00\x00"), nil
	}
	f, err := b.table(t).FDE(0x401005)
	if err != nil || f.Start != 0x401000 {
		t.Errorf("with memory: %+v, %v", f, err)
	}
	b.Memory = func(dst []byte, address uint64) (int, error) { return len(dst), nil }
	if _, err := b.table(t).FDE(5); !errors.Is(err, ErrNoFDE) {
		t.Errorf("with a pointer that nobody has written yet: %v, want %v", err, ErrNoFDE)
	}
	b.Memory = func(dst []byte, address uint64) (int, error) { return 3, nil }
	if _, err := b.table(t).FDE(0x401005); !errors.Is(err, ErrNoFDE) || !strings.Contains(err.Error(), ErrIndirect.Error()) {
		t.Errorf("with too little memory: %v", err)
	}
}

func TestPersonalityAndLSDA(t *testing.T) {
	tests := []struct {
		name              string
		personality, lsda byte
		wantPersonality   Pointer
		wantLSDA          Pointer
	}{
		{"as gcc -fPIC writes them", 0x9b, 0x1b, Pointer{0x3000, true, true}, Pointer{0x4000, false, true}},
		{"as gcc -fno-pic writes them", 0x03, 0x03, Pointer{0x3000, false, true}, Pointer{0x4000, false, true}},
		{"relative to the function", 0x04, 0x40 | ehpe.SData4, Pointer{0x3000, false, true}, Pointer{0x4000, false, true}},
		{"aligned", 0x50, 0x50, Pointer{0x3000, false, true}, Pointer{0x4000, false, true}},
		{"LSDA omitted", 0x00, 0xff, Pointer{0x3000, false, true}, Pointer{}},
		{"both omitted", 0xff, 0xff, Pointer{}, Pointer{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := ehFrame()
			// The data is behind 8 bytes of head, version, "zPLR", factors, RA, length.
			personality := []byte{tt.personality}
			if tt.personality != ehpe.Omit {
				personality = append(personality, b.pointer(tt.personality, 0x3000, 8+1+5+3+1+1, 8, 0)...)
			}
			c := cieSpec{augmentation: "zPLR", data: cat(personality, int(tt.lsda), 0x1b), encoding: 0x1b, instructions: x86Initial}
			cie := b.cie(c)
			var lsda, null []byte
			if tt.lsda != ehpe.Omit {
				lsda = b.pointer(tt.lsda, 0x4000, len(b.Data)+8+8+1, 8, 0x1000)
				null = b.number(tt.lsda&ehpe.FormatMask, 0, 8)
				if tt.lsda == ehpe.Aligned {
					null = make([]byte, 16)
				}
			}
			b.fde(cie, c, fdeSpec{start: 0x1000, size: 16, data: lsda})
			b.fde(cie, c, fdeSpec{start: 0x1010, size: 16, data: null})
			b.fde(cie, c, fdeSpec{start: 0x1020, size: 16})
			table := b.table(t)
			for i, want := range []Pointer{tt.wantLSDA, {}, {}} {
				f, err := table.FDE(0x1000 + uint64(i)*16)
				if err != nil {
					t.Fatal(err)
				}
				if f.CIE.Personality != tt.wantPersonality {
					t.Errorf("personality %+v, want %+v", f.CIE.Personality, tt.wantPersonality)
				}
				if f.LSDA != want {
					t.Errorf("FDE %d: LSDA %+v, want %+v", i, f.LSDA, want)
				}
				if got, err := rows(f); err != nil || len(got) != 1 {
					t.Errorf("FDE %d: rows %q, %v", i, got, err)
				}
			}
		})
	}
}

// Every version, format, byte order and address size gives the same rows.
func TestFormats(t *testing.T) {
	for _, eh := range []bool{true, false} {
		for _, version := range []int{1, 3, 4} {
			for _, dwarf64 := range []bool{false, true} {
				for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
					for _, size := range []int{4, 8} {
						for _, segment := range []int{0, 1, 2, 4, 8} {
							if segment != 0 && version < 4 {
								continue
							}
							name := fmt.Sprintf("eh=%t version=%d 64=%t %v size=%d segment=%d", eh, version, dwarf64, order, size, segment)
							t.Run(name, func(t *testing.T) {
								b := debugFrame()
								if eh {
									b = ehFrame()
								}
								b.dwarf64, b.Order, b.AddressSize = dwarf64, order, size
								c := cieSpec{version: version, segmentSize: segment, ra: 200, code: 2, factor: -4,
									instructions: []byte{0x0c, 4, 4, 0x88, 1}}
								cie := b.cie(c)
								first := b.fde(cie, c, fdeSpec{start: 0x8000, size: 0x100, instructions: []byte{0x41, 0x0e, 8}})
								second := b.fde(cie, c, fdeSpec{start: 0x8100, size: 0x100})
								if segment != 0 {
									b.fde(cie, c, fdeSpec{start: 0x8000, size: 0x1000, segment: 7})
								}
								if version == 4 { // the CIE says the size, not the section
									b.AddressSize = 12 - size
								}
								table := b.table(t)
								f, err := table.FDE(0x80ff)
								if err != nil {
									t.Fatal(err)
								}
								got, err := rows(f)
								if err != nil {
									t.Fatal(err)
								}
								want := []string{"8000-8002 4+4 8:c-4", "8002-8100 4+8 8:c-4"}
								if diff := cmp.Diff(want, got); diff != "" || f.Offset != first {
									t.Errorf("FDE at %#x, want %#x, rows (-want +got):\n%s", f.Offset, first, diff)
								}
								if f.CIE.ReturnAddress != 200 || f.CIE.Version != uint8(version) || f.CIE.AddressSize != size || f.CIE.SegmentSize != segment {
									t.Errorf("CIE %+v", f.CIE)
								}
								if f, err = table.FDE(0x8100); err != nil || f.Offset != second {
									t.Errorf("FDE %+v, %v, want that at %#x", f, err, second)
								}
								if _, err = table.FDE(0x8300); !errors.Is(err, ErrNoFDE) {
									t.Errorf("in another segment: %v, want %v", err, ErrNoFDE)
								}
							})
						}
					}
				}
			}
		}
	}
}

func TestAugmentations(t *testing.T) {
	tests := []struct {
		augmentation string
		known        bool
	}{
		{"", true}, {"eh", true}, {"z", true}, {"zR", true}, {"zPLR", true}, {"zRS", true}, {"zRB", true}, {"zRG", true}, {"S", true},
		{"[llvm:v0.0]", true}, {"[amd:v0.0]", true}, {"[abc:v0.0][def:v1.2:feature-a=on,feature-b=3]", true},
		{"[abc:v10.20.30-rc.1]", true}, {"[a:v0.0:]", true}, {"zR[llvm:v0.0]", true},
		{"R", false}, {"zQ", false}, {"armcc+", false}, {"ehz", false}, {"[llvm]", false}, {"[llvm:0.0]", false}, {"[llvm:v0]", false},
		{"[llvm:v.0]", false}, {"[llvm:v0.]", false}, {"[llvm:vx.0]", false}, {"[llvm:v0.0x]", false}, {"[llvm:v0.0", false},
		{"[:v0.0]", false}, {"[llvm:v0.0]x", false}, {"[[llvm:v0.0]", false},
	}
	for _, tt := range tests {
		t.Run(tt.augmentation, func(t *testing.T) {
			for _, b := range []*builder{ehFrame(), debugFrame()} {
				c := cieSpec{augmentation: tt.augmentation, instructions: x86Initial}
				for _, letter := range tt.augmentation {
					switch letter {
					case '[', 'Q':
					case 'L':
						c.data = append(c.data, 0xff)
					case 'P':
						c.data = append(c.data, 0x00, 1, 2, 3, 4, 5, 6, 7, 8)
					case 'R':
						c.data = append(c.data, 0x00)
					default:
						continue
					}
					if letter == '[' {
						break
					}
				}
				b.fde(b.cie(c), c, fdeSpec{start: 0x1000, size: 16})
				f, err := b.table(t).FDE(0x1000)
				if b.EH && !tt.known {
					// Not even the bounds can be read.
					if !errors.Is(err, ErrNoFDE) || !strings.Contains(err.Error(), ErrAugmentation.Error()) {
						t.Fatalf("%s: %v", b.Name, err)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", b.Name, err)
				}
				if f.CIE.Augmentation != tt.augmentation {
					t.Errorf("%s: augmentation %q", b.Name, f.CIE.Augmentation)
				}
				if _, err := rows(f); tt.known && err != nil || !tt.known && !errors.Is(err, ErrAugmentation) {
					t.Errorf("%s: rows: %v, want known %t", b.Name, err, tt.known)
				}
				if f.CIE.SignalFrame != strings.Contains(strings.Split(tt.augmentation, "[")[0], "S") && tt.known {
					t.Errorf("%s: signal frame %t", b.Name, f.CIE.SignalFrame)
				}
			}
		})
	}
}

func TestLookup(t *testing.T) {
	type fde struct {
		start, size uint64
	}
	tests := []struct {
		name  string
		debug bool
		fdes  []fde
		want  map[uint64]int // PC to FDE; -1: none
	}{
		{"none", false, nil, map[uint64]int{0: -1, 0x1000: -1}},
		{"in any order", false, []fde{{0x3000, 16}, {0x1000, 16}, {0x2000, 16}},
			map[uint64]int{0xfff: -1, 0x1000: 1, 0x100f: 1, 0x1010: -1, 0x2000: 2, 0x3000: 0, 0x3010: -1, 1 << 63: -1}},
		{"one inside another", false, []fde{{0x1000, 0x100}, {0x1010, 0x10}},
			map[uint64]int{0x1000: 0, 0x100f: 0, 0x1010: 1, 0x101f: 1, 0x1020: 0, 0x10ff: 0, 0x1100: -1}},
		{"three deep", false, []fde{{0x1010, 0x40}, {0x1000, 0x100}, {0x1020, 0x10}},
			map[uint64]int{0x100f: 1, 0x1010: 0, 0x1020: 2, 0x1030: 0, 0x1050: 1, 0x1100: -1}},
		{"one over the end of another", false, []fde{{0x1000, 0x20}, {0x1010, 0x20}},
			map[uint64]int{0x100f: 0, 0x1010: 1, 0x101f: 1, 0x102f: 1, 0x1030: -1}},
		{"of the same start the shortest", false, []fde{{0x1000, 0x20}, {0x1000, 0x10}, {0x1000, 0x30}},
			map[uint64]int{0x1000: 1, 0x100f: 1, 0x1010: 0, 0x1020: 2, 0x1030: -1}},
		{"of equal ones the first", false, []fde{{0x1000, 0x20}, {0x1000, 0x20}}, map[uint64]int{0x1000: 0, 0x101f: 0}},
		{"inner ones that end together", false, []fde{{0x1000, 0x100}, {0x1010, 0x30}, {0x1020, 0x20}},
			map[uint64]int{0x103f: 2, 0x1040: 0}},
		{"size zero is nothing", false, []fde{{0x1000, 0}, {0x0ff0, 0x20}}, map[uint64]int{0x1000: 1}},
		{"dropped code in .debug_frame", true, []fde{{0, 0x5000}, {0x1000, 0x10}, {^uint64(0), 0x10}, {^uint64(1), 0x10}, {^uint64(1), 1}},
			map[uint64]int{0: -1, 5: -1, 0x1000: 1, 0x1010: -1, ^uint64(0): -1, ^uint64(1): -1}},
		{"null pointer in .eh_frame", false, []fde{{0, 0x5000}, {0x1000, 0x10}}, map[uint64]int{0: -1, 0x1000: 1, 0x1010: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := ehFrame()
			if tt.debug {
				b = debugFrame()
			}
			cie := b.cie(cieSpec{instructions: x86Initial})
			var offsets []uint64
			for _, f := range tt.fdes {
				offsets = append(offsets, b.fde(cie, cieSpec{}, fdeSpec{start: f.start, size: f.size}))
			}
			table := b.table(t)
			got := map[uint64]int{}
			for pc := range tt.want {
				f, err := table.FDE(pc)
				switch {
				case errors.Is(err, ErrNoFDE):
					got[pc] = -1
				case err != nil:
					t.Fatal(err)
				default:
					got[pc] = slices.Index(offsets, f.Offset)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("PC to FDE (-want +got):\n%s", diff)
			}
			n := 0
			for f, err := range table.FDEs() {
				if err != nil || f.Offset != offsets[n] || f.Start != tt.fdes[n].start {
					t.Fatalf("FDE %d: %+v, %v", n, f, err)
				}
				n++
			}
			if n != len(offsets) {
				t.Errorf("%d FDEs listed, want %d", n, len(offsets))
			}
		})
	}
}

func TestSectionsThatLinkersMake(t *testing.T) {
	b := ehFrame()
	c := cieSpec{instructions: x86Initial}
	cie := b.cie(c)
	b.fde(cie, c, fdeSpec{start: 0x1000, size: 16})
	b.Data = append(b.Data, 0, 0, 0, 0) // crtend.o in the middle
	second := b.cie(cieSpec{instructions: []byte{0x0c, 7, 16}})
	b.fde(cie, c, fdeSpec{start: 0x1010, size: 16})
	b.fde(second, c, fdeSpec{start: 0x1020, size: 16})
	// A CIE that comes behind its FDE.
	pos := uint64(len(b.Data))
	size := func() uint64 {
		probe := *b
		probe.Data = nil
		probe.fde(1000, c, fdeSpec{start: 0x1030, size: 16})
		return uint64(len(probe.Data))
	}()
	b.fde(pos+size, c, fdeSpec{start: 0x1030, size: 16})
	if last := b.cie(cieSpec{instructions: []byte{0x0c, 7, 32}}); last != pos+size {
		t.Fatalf("CIE at %#x, want %#x", last, pos+size)
	}
	b.Data = append(b.Data, 0, 0, 0, 0, 0, 0) // the end mark and alignment
	table := b.table(t)
	for pc, want := range map[uint64]string{0x1000: "7+8 16:c-8", 0x1010: "7+8 16:c-8", 0x1020: "7+16", 0x1030: "7+32"} {
		f, err := table.FDE(pc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := rows(f)
		if want := fmt.Sprintf("%x-%x %s", pc, pc+16, want); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("%#x: %q, %v, want %q", pc, got, err, want)
		}
	}
	if p := table.Problems(); len(p) != 0 {
		t.Errorf("problems %v", p)
	}
	// In an object file, whose sections have no address, a function may stand
	// where the distance to it is 0.
	b = ehFrame()
	b.Address = 0
	c = cieSpec{augmentation: "zR", data: []byte{0x1b}, encoding: 0x1b}
	cie = b.cie(c)
	pc := uint64(len(b.Data) + 8)
	b.fde(cie, c, fdeSpec{start: pc, size: 16})
	if f, err := b.table(t).FDE(pc); err != nil || f.Start != pc {
		t.Errorf("%+v, %v", f, err)
	}
	b.Address = 0x2000
	if _, err := b.table(t).FDE(0x2000 + pc); !errors.Is(err, ErrNoFDE) {
		t.Errorf("null pointer relative to itself: %v, want %v", err, ErrNoFDE)
	}
}

// A bad entry costs itself, not its neighbours, and is named.
func TestBadEntries(t *testing.T) {
	good := cieSpec{instructions: x86Initial}
	tests := []struct {
		name  string
		debug bool
		write func(b *builder)
		err   error
		stop  bool // what follows cannot be found
	}{
		{name: "reserved length", write: func(b *builder) { b.Data = append(b.Data, 0xf0, 0xff, 0xff, 0xff) }, err: ErrLength, stop: true},
		{name: "length past the end", write: func(b *builder) { b.Data = append(b.Data, 0, 0, 0, 1) }, err: ErrLength, stop: true},
		{name: "64-bit length past the end", write: func(b *builder) {
			b.Data = append(b.Data, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
		}, err: ErrLength, stop: true},
		{name: "no room for the id", write: func(b *builder) { b.Data = append(b.Data, 3, 0, 0, 0, 1, 2, 3) }, err: ErrTruncated},
		{name: "CIE pointer before the section", write: func(b *builder) { b.Data = append(b.Data, 4, 0, 0, 0, 0, 0, 0, 1) }, err: ErrCIEPointer},
		{name: "CIE pointer behind the section", debug: true, write: func(b *builder) { b.Data = append(b.Data, 4, 0, 0, 0, 0, 0, 0, 1) }, err: ErrCIEPointer},
		{name: "CIE pointer to an FDE", debug: true, write: func(b *builder) {
			pos := b.fde(b.cie(good), good, fdeSpec{start: 0x7000, size: 1})
			b.fde(pos, good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrCIEPointer},
		{name: "CIE version 2", write: func(b *builder) { b.fde(b.cie(cieSpec{version: 2}), good, fdeSpec{start: 0x8000, size: 1}) }, err: ErrVersion},
		{name: "CIE version 5", debug: true, write: func(b *builder) { b.fde(b.cie(cieSpec{version: 5}), good, fdeSpec{start: 0x8000, size: 1}) }, err: ErrVersion},
		{name: "address size 2", debug: true, write: func(b *builder) {
			b.fde(b.cie(cieSpec{version: 4, addressSize: 2}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrAddressSize},
		{name: "segment size 3", debug: true, write: func(b *builder) {
			b.fde(b.cie(cieSpec{version: 4, segmentSize: 3}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrSegmentSize},
		{name: "augmentation without end", write: func(b *builder) {
			pos := b.entry(0, func(int) []byte { return cat(1, strings.Repeat("z", 31)) })
			b.fde(pos, good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrTruncated},
		{name: "augmentation too long", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: strings.Repeat("S", maxAugmentation+1)}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrLimit},
		{name: "alignment factor past 64 bits", write: func(b *builder) {
			b.fde(b.cie(cieSpec{raw: cat("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 0x78, 16)}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrLEB128},
		{name: "augmentation data past the CIE", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zR", raw: cat(1, 0x78, 16, 0x7f)}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrTruncated},
		{name: "augmentation data too short for its letters", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zRL", data: []byte{0}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrTruncated},
		{name: "personality too short", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zP", data: []byte{0, 1, 2}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrTruncated},
		{name: "FDE encoding omitted", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zR", data: []byte{ehpe.Omit}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrPointerEncoding},
		{name: "FDE encoding of no format", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zR", data: []byte{0x05}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrPointerEncoding},
		{name: "FDE encoding relative to nothing known", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zR", data: []byte{0x63}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrPointerEncoding},
		{name: "FDE encoding relative to the function", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zR", data: []byte{ehpe.FuncRel}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrPointerEncoding},
		{name: "FDE encoding aligned, but not an address", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zR", data: []byte{ehpe.Aligned | ehpe.UData4}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrPointerEncoding},
		{name: "LSDA encoding of no format", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zL", data: []byte{0x07}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrPointerEncoding},
		{name: "personality encoding of no format", write: func(b *builder) {
			b.fde(b.cie(cieSpec{augmentation: "zP", data: []byte{0x0d}}), good, fdeSpec{start: 0x8000, size: 1})
		}, err: ErrPointerEncoding},
		{name: "FDE without a location", write: func(b *builder) {
			pos := b.cie(good)
			b.unpadded = true
			b.fde(pos, good, fdeSpec{raw: []byte{1, 2, 3}})
			b.unpadded = false
		}, err: ErrTruncated},
		{name: "FDE without a range", write: func(b *builder) {
			pos := b.cie(good)
			b.unpadded = true
			b.fde(pos, good, fdeSpec{raw: make([]byte, 12)})
			b.unpadded = false
		}, err: ErrTruncated},
		{name: "FDE past the last address", write: func(b *builder) { b.fde(b.cie(good), good, fdeSpec{start: 1 << 63, size: 1 << 63}) }, err: ErrOverflow},
		{name: "FDE augmentation data past its end", write: func(b *builder) {
			c := cieSpec{augmentation: "z", instructions: x86Initial}
			b.fde(b.cie(c), cieSpec{}, fdeSpec{start: 0x8000, size: 1, instructions: []byte{0x7f}})
		}, err: ErrTruncated},
		{name: "augmentation data past the end of an FDE that has good ones before it", write: func(b *builder) {
			c := cieSpec{augmentation: "z", instructions: x86Initial}
			pos := b.cie(c)
			b.fde(pos, c, fdeSpec{start: 0x8000, size: 1})
			b.fde(pos, cieSpec{}, fdeSpec{start: 0x8010, size: 1, instructions: []byte{0x7f}})
		}, err: ErrTruncated},
		{name: "LSDA longer than its data, in an FDE that has good ones before it", write: func(b *builder) {
			c := cieSpec{augmentation: "zL", data: []byte{0}, instructions: x86Initial}
			pos := b.cie(c)
			b.fde(pos, c, fdeSpec{start: 0x8000, size: 1, data: make([]byte, 8)})
			b.fde(pos, c, fdeSpec{start: 0x8010, size: 1, data: []byte{1, 2}})
		}, err: ErrTruncated},
		{name: "LSDA longer than its data", write: func(b *builder) {
			c := cieSpec{augmentation: "zL", data: []byte{0}, instructions: x86Initial}
			b.fde(b.cie(c), c, fdeSpec{start: 0x8000, size: 1, data: []byte{1, 2}})
		}, err: ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := ehFrame()
			if tt.debug {
				b = debugFrame()
			}
			b.fde(b.cie(good), good, fdeSpec{start: 0x1000, size: 16})
			tt.write(b)
			if !tt.stop {
				b.fde(b.cie(good), good, fdeSpec{start: 0x2000, size: 16})
			}
			table := b.table(t)
			if _, err := table.FDE(0x1000); err != nil {
				t.Errorf("the FDE before: %v", err)
			}
			if !tt.stop {
				if _, err := table.FDE(0x2000); err != nil {
					t.Errorf("the FDE behind: %v", err)
				}
			}
			problems := table.Problems()
			if len(problems) != 1 || !errors.Is(problems[0], tt.err) {
				t.Fatalf("problems %v, want one: %v", problems, tt.err)
			}
			var e *Error
			if !errors.As(problems[0], &e) || e.Section != b.Name || e.Offset == 0 {
				t.Errorf("%v does not say where", problems[0])
			}
			if _, err := table.FDE(0x9000); !errors.Is(err, ErrNoFDE) || !strings.Contains(err.Error(), e.Error()) {
				t.Errorf("a PC without FDE: %v, want what was left out", err)
			}
			listed := 0
			for f, err := range table.FDEs() {
				if err != nil {
					listed++
					if f != nil || !errors.Is(err, tt.err) {
						t.Errorf("listed %+v, %v", f, err)
					}
				}
			}
			if listed != 1 {
				t.Errorf("%d errors listed, want 1", listed)
			}
		})
	}
}

func TestSectionDescriptionIsChecked(t *testing.T) {
	for _, tt := range []struct {
		section Section
		err     error
	}{
		{Section{AddressSize: 8}, ErrSection},
		{Section{AddressSize: 2, Order: binary.LittleEndian}, ErrAddressSize},
		{Section{Order: binary.BigEndian}, ErrAddressSize},
		{Section{AddressSize: 4, Order: binary.BigEndian}, nil},
	} {
		if _, err := NewTable(tt.section); !errors.Is(err, tt.err) {
			t.Errorf("%+v: %v, want %v", tt.section, err, tt.err)
		}
	}
}

func TestLEB128(t *testing.T) {
	unsigned := []struct {
		section string
		want    uint64
		err     error
	}{
		{"\x00", 0, nil}, {"\x7f", 127, nil}, {"\x80\x01", 128, nil}, {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 0, nil},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 1<<64 - 1, nil}, {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x81\x00", 1<<64 - 1, nil},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 0, ErrLEB128}, {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 0, ErrLEB128},
		{"", 0, ErrTruncated}, {"\x80", 0, ErrTruncated},
	}
	for _, tt := range unsigned {
		r := reader{data: []byte(tt.section)}
		if got := r.uleb(); got != tt.want || !errors.Is(r.err, tt.err) {
			t.Errorf("unsigned %x: %d, %v, want %d, %v", tt.section, got, r.err, tt.want, tt.err)
		}
	}
	signed := []struct {
		section string
		want    int64
		err     error
	}{
		{"\x00", 0, nil}, {"\x7f", -1, nil}, {"\x3f", 63, nil}, {"\x40", -64, nil}, {"\x80\x01", 128, nil}, {"\x80\x7f", -128, nil},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", 1<<63 - 1, nil}, {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", -1 << 63, nil},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", -1, nil}, {"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 0, nil},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 0, ErrLEB128}, {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", 0, ErrLEB128},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x40", -1 << 62, nil},
		{"", 0, ErrTruncated}, {"\xff", 0, ErrTruncated},
	}
	for _, tt := range signed {
		r := reader{data: []byte(tt.section)}
		if got := r.sleb(); got != tt.want || !errors.Is(r.err, tt.err) {
			t.Errorf("signed %x: %d, %v, want %d, %v", tt.section, got, r.err, tt.want, tt.err)
		}
	}
}

func TestRangeHasNoSign(t *testing.T) {
	for encoding, size := range map[byte]uint64{ehpe.SData2: 0x9000, ehpe.SData4: 0x90000000, ehpe.PCRel | ehpe.SData2: 0xffff} {
		b := ehFrame()
		c := cieSpec{augmentation: "zR", data: []byte{encoding}, encoding: encoding}
		b.fde(b.cie(c), c, fdeSpec{start: 0x1000, size: size})
		if f, err := b.table(t).FDE(0x1000); err != nil || f.End != 0x1000+size {
			t.Errorf("%#02x: %+v, %v, want %#x bytes", encoding, f, err, size)
		}
	}
}

// The id of a CIE and the pointer to it have 4 bytes in .eh_frame also behind a
// length of 64 bits (LSB 5.0, 10.6.1.1). llvm-dwarfdump reads them so; GNU
// readelf takes 8 bytes.
func TestExtendedLengthIsReadAsLLVMReadsIt(t *testing.T) {
	dir := t.TempDir()
	section, out := filepath.Join(dir, "in.s"), filepath.Join(dir, "out.o")
	text := `
	.section .eh_frame,"a",@progbits
cie:	.long 0xffffffff
	.quad cie_end - cie_id
cie_id:	.long 0
	.byte 1
	.string "zR"
	.uleb128 1
	.sleb128 -8
	.byte 16
	.uleb128 1
	.byte 0x1b
	.byte 0x0c, 7, 8, 0x90, 1
	.balign 8
cie_end:
	.long 0xffffffff
	.quad fde_end - fde_id
fde_id:	.long fde_id - cie
at:	.long 0x1000 - (at - cie)
	.long 2
	.uleb128 0
	.byte 0x41, 0x0e, 16
	.balign 8
fde_end:
`
	if err := os.WriteFile(section, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command(oracle.Tool(t, "as"), "--64", "-o", out, section).CombinedOutput(); err != nil {
		t.Fatalf("as: %v\n%s", err, msg)
	}
	dumped, err := exec.Command(oracle.Tool(t, "llvm-dwarfdump"), "--eh-frame", out).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"FDE cie=00000000 pc=00001000...00001002", "0x1000: CFA=RSP+8: RIP=[CFA-8]", "0x1001: CFA=RSP+16: RIP=[CFA-8]"} {
		if !strings.Contains(string(dumped), line) {
			t.Errorf("llvm-dwarfdump does not say %q:\n%s", line, dumped)
		}
	}
	table, _ := elfTable(t, out, ".eh_frame")
	f, err := table.FDE(0x1000)
	if err != nil {
		t.Fatal(err)
	}
	got, err := rows(f)
	if diff := cmp.Diff([]string{"1000-1001 7+8 16:c-8", "1001-1002 7+16 16:c-8"}, got); diff != "" || err != nil {
		t.Errorf("%v, rows (-want +got):\n%s", err, diff)
	}
}

// Where nothing says how large .eh_frame is, what stands behind its end mark is
// no call frame information, whatever it looks like.
func TestOpenSectionEndsAtItsTerminatorOrAtNoEntry(t *testing.T) {
	c := cieSpec{instructions: x86Initial}
	for _, tt := range []struct {
		name string
		rest []byte
		pc   uint64 // has no FDE
	}{
		{"terminator", []byte{0, 0, 0, 0, 0, 0, 0, 0}, 0x3000},
		{"length past the end", []byte{0xff, 0, 0, 0x10}, 0},
		{"reserved length", []byte{0xf1, 0xff, 0xff, 0xff}, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := ehFrame()
			cie := b.cie(c)
			b.fde(cie, c, fdeSpec{start: 0x1000, size: 16})
			b.Data = append(b.Data, tt.rest...)
			if tt.pc != 0 {
				b.fde(cie, c, fdeSpec{start: tt.pc, size: 16})
				b.Data = append(b.Data, 1, 2, 3)
			}
			for _, open := range []bool{true, false} {
				b.Open = open
				table := b.table(t)
				if _, err := table.FDE(0x1000); err != nil {
					t.Errorf("open %t: %v", open, err)
				}
				if _, err := table.FDE(tt.pc); tt.pc != 0 && (err == nil) != !open {
					t.Errorf("open %t: FDE behind the end mark: %v", open, err)
				}
				if p := table.Problems(); (len(p) != 0) != !open {
					t.Errorf("open %t: problems %v", open, p)
				}
			}
		})
	}
}

// A pointer that is relative to an unknown address costs what it
// points to, and nothing else.
func TestPointersRelativeToAnUnknownAddress(t *testing.T) {
	for _, application := range []byte{ehpe.TextRel, ehpe.DataRel} {
		b := ehFrame()
		data, text := application|ehpe.UData4, application|ehpe.SData4
		personality := cat(int(data), b.pointer(data, 0x700000, 0, 8, 0))
		c := cieSpec{augmentation: "zPLR", data: cat(personality, int(data), int(ehpe.UData4)), encoding: ehpe.UData4, instructions: x86Initial}
		b.fde(b.cie(c), c, fdeSpec{start: 0x1000, size: 16, data: []byte{1, 2, 3, 4}})
		c = cieSpec{augmentation: "zR", data: []byte{text}, encoding: text, instructions: x86Initial}
		b.fde(b.cie(c), c, fdeSpec{start: 0x2000, size: 16})
		b.Text, b.DataBase = 0, 0
		table := b.table(t)
		f, err := table.FDE(0x1000)
		if err != nil || f.CIE.Personality.Present || f.LSDA.Present {
			t.Errorf("%#x: %+v, %v, want an FDE without personality and LSDA", application, f, err)
		}
		if _, err := table.FDE(0x2000); !errors.Is(err, ErrNoFDE) {
			t.Errorf("%#x: FDE at an unknown address: %v", application, err)
		}
		if p := table.Problems(); len(p) != 1 || !errors.Is(p[0], ErrPointerBase) {
			t.Errorf("%#x: problems %v, want one: %v", application, p, ErrPointerBase)
		}
	}
}

// The FDEs of a relocatable object are found in the code section that Code
// says, also at address 0.
func TestFDEsOfSeveralCodeSections(t *testing.T) {
	for _, b := range []*builder{ehFrame(), debugFrame()} {
		c := cieSpec{instructions: x86Initial}
		cie := b.cie(c)
		codes := map[uint64]uint32{}
		for i, f := range []fdeSpec{{start: 0, size: 16}, {start: 16, size: 16}, {start: 0, size: 8}, {start: 64, size: 8}, {start: 0, size: 99}} {
			offset := b.fde(cie, c, f)
			if code := []uint32{7, 7, 9, 9, 0}[i]; code != 0 { // the last one has no relocation
				codes[offset+8] = code
			}
		}
		b.Code = func(offset uint64) (uint32, bool) { return codes[offset], codes[offset] != 0 }
		table := b.table(t)
		for _, tt := range []struct {
			code uint32
			pc   uint64
			err  error
			end  uint64
		}{
			{7, 0, nil, 16}, {7, 15, nil, 16}, {7, 16, nil, 32}, {7, 32, ErrNoFDE, 0}, {7, 64, ErrNoFDE, 0},
			{9, 0, nil, 8}, {9, 8, ErrNoFDE, 0}, {9, 64, nil, 72}, {8, 0, ErrNoFDE, 0},
			{0, 0, ErrAmbiguous, 0}, {0, 8, nil, 16}, {0, 64, nil, 72}, {0, 98, ErrNoFDE, 0}, // 0: any
		} {
			f, err := table.FDE(tt.pc)
			if tt.code != 0 {
				f, err = table.FDEIn(tt.code, tt.pc)
			}
			if !errors.Is(err, tt.err) || err == nil && (f.End != tt.end || tt.code != 0 && f.Code != tt.code) {
				t.Errorf("%s, section %d, %#x: %+v, %v, want one to %#x, %v", b.Name, tt.code, tt.pc, f, err, tt.end, tt.err)
			}
		}
		if p := table.Problems(); len(p) != 0 {
			t.Errorf("%s: problems %v", b.Name, p)
		}
	}
}

// What the index finds is what a search of the list finds.
func TestIndexFindsWhatTheListHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 3, 10, 100, 600, 900}).Draw(t, "FDEs")
		spread := rapid.SampledFrom([]uint64{0x100, 0x10000, 1 << 40}).Draw(t, "spread")
		sizes := rapid.SampledFrom([]uint64{1, 0x40, 0x10000, 1 << 33}).Draw(t, "size")
		ordered := rapid.Bool().Draw(t, "ordered")
		seed := rapid.Uint64().Draw(t, "seed")
		random := rand.New(rand.NewPCG(seed, 1))
		b := ehFrame()
		c := cieSpec{instructions: x86Initial}
		cie := b.cie(c)
		var list []span
		var starts []uint64
		for range n {
			starts = append(starts, 0x1000+random.Uint64N(spread))
		}
		if ordered {
			slices.Sort(starts)
		}
		for _, start := range starts {
			size := random.Uint64N(sizes + 1)
			offset := b.fde(cie, c, fdeSpec{start: start, size: size})
			list = append(list, span{start, start + size, uint32(offset)})
		}
		table, err := NewTable(b.Section)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			s := list[random.IntN(n)]
			pc := s.start + random.Uint64N(sizes+2) - 1
			want := span{}
			for _, s := range list {
				inside := s.start <= pc && pc < s.end
				if inside && (want.end == 0 || s.start > want.start || s.start == want.start && s.end < want.end) {
					want = s
				}
			}
			f, err := table.FDE(pc)
			switch {
			case want.end == 0 && !errors.Is(err, ErrNoFDE), want.end != 0 && (err != nil || f.Offset != uint64(want.offset)):
				t.Fatalf("%#x: %+v, %v, want %+v", pc, f, err, want)
			}
		}
	})
}

// A listing of rows takes time in proportion to the section.
func TestListingIsBoundedByTheSection(t *testing.T) {
	var many []byte
	for i := range uint64(maxColumns) {
		many = cat(many, 7, uleb(i))
	}
	const fdes = 40000
	b := debugFrame()
	c := cieSpec{instructions: many}
	cie := b.cie(c)
	for i := range uint64(fdes) {
		b.fde(cie, c, fdeSpec{start: 0x1000 + i*16, size: 16, instructions: []byte{7, 1, 0x41}})
	}
	table := b.table(t)
	limited, rules, rowsGiven := 0, 0, 0
	table.Rows(func(f *FDE, r *Row, err error) bool {
		switch {
		case err == nil:
			rowsGiven++
			rules += len(r.Rules)
		case errors.Is(err, ErrLimit):
			limited++
		default:
			t.Fatal(err)
		}
		return true
	})
	if limit := listBase + listPerByte*len(b.Data); rules > limit || rules < limit/8 || limited == 0 {
		t.Errorf("%d rules in %d rows, %d FDEs over the limit of %d", rules, rowsGiven, limited, limit)
	}
	byFDE := 0
	for f, err := range b.table(t).FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Rows(func(*Row) bool { return true }); errors.Is(err, ErrLimit) {
			byFDE++
		}
	}
	if byFDE != limited {
		t.Errorf("%d FDEs over the limit by Rows of the table, %d by FDE", limited, byFDE)
	}
	// By address, each is read as if it were alone.
	f, err := table.FDE(0x1000 + (fdes-1)*16)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := rows(f); err != nil || len(got) != 2 {
		t.Errorf("the last FDE alone: %d rows, %v", len(got), err)
	}
}

// What stands in a file that is cut while it is read faults; who reads it makes
// an error of that. Afterwards nothing is taken for read that was not.
func TestAFaultWhileReadingIsRemembered(t *testing.T) {
	b := ehFrame()
	b.Data = make([]byte, 0, 256)
	c := cieSpec{augmentation: "zR", data: []byte{ehpe.Indirect | ehpe.UData4}, encoding: ehpe.Indirect | ehpe.UData4, instructions: x86Initial}
	b.fde(b.cie(c), c, fdeSpec{start: 0x1000, size: 16})
	b.Memory = func([]byte, uint64) (int, error) { panic("fault") }
	table := b.table(t)
	for i := range 2 {
		err := func() (err error) {
			defer func() {
				if recover() != nil && i > 0 {
					t.Error("it faults again")
				}
			}()
			_, err = table.FDE(0x1000)
			return err
		}()
		if i > 0 && (!errors.Is(err, ErrNoFDE) || !strings.Contains(err.Error(), "could not be read")) {
			t.Errorf("the second time: %v, want what could not be read", err)
		}
	}
}
