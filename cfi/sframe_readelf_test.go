// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
)

// sframePrograms are programs that the assembler and the linker gave an .sframe.
var sframePrograms = []struct {
	name, source string
	flags        []string
	atLeast      int // PCs with rows
	// wrongPLT says that the linker's rows of .plt and .plt.sec are wrong:
	// until binutils 2.45 it took the entries of a PLT for IBT for those of
	// another one (PR 32296).
	wrongPLT bool
}{
	{"C, -O0", "frames.c", []string{"-O0"}, 500, false},
	{"C, -O2", "frames.c", []string{"-O2"}, 300, false},
	{"C, -O2 with frame pointers", "frames.c", []string{"-O2", "-fno-omit-frame-pointer"}, 300, false},
	{"C, -O2 with a PLT for IBT", "frames.c", []string{"-O2", "-fcf-protection", "-Wl,-z,ibtplt"}, 300, true},
	{"C++, -O0", "classes.cpp", []string{"-O0", "-lstdc++"}, 5000, false},
	{"C++, -O2", "classes.cpp", []string{"-O2", "-lstdc++"}, 1500, false},
	{"C++, -O2 with frame pointers", "classes.cpp", []string{"-O2", "-fno-omit-frame-pointer", "-lstdc++"}, 1500, false},
}

// sframeSection reads the .sframe of an x86-64 file.
func sframeSection(t *testing.T, path string) Section {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := f.Section(".sframe")
	if s == nil {
		t.Fatalf("%s has no .sframe", path)
	}
	data, err := s.Data()
	if err != nil {
		t.Fatal(err)
	}
	return Section{Name: ".sframe", Data: data, Address: s.Addr, Order: f.ByteOrder, AddressSize: 8}
}

// readelfSFrame lists an .sframe of version 1 as sframeList does. The start
// addresses of repeated blocks' rows are offsets.
func readelfSFrame(t *testing.T, path string) []string {
	t.Helper()
	cmd := exec.Command(oracle.Tool(t, "readelf"), "--sframe=.sframe", "--wide", path)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("readelf: %v", err)
	}
	var out []string
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		var index, size int
		var pc uint64
		if _, err := fmt.Sscanf(strings.TrimSpace(lines.Text()), "func idx [%d]: pc = %v, size = %d bytes", &index, &pc, &size); err == nil {
			out = append(out, fmt.Sprintf("%#x %d", pc, size))
			continue
		}
		fields := strings.Fields(lines.Text())
		if len(fields) != 4 || len(fields[0]) != 16 {
			continue
		}
		start, err := strconv.ParseUint(fields[0], 16, 64)
		if err != nil {
			continue
		}
		out = append(out, fmt.Sprintf("%#x %s %s %s", start, fields[1], fields[2], fields[3]))
	}
	return out
}

// sframeList lists a section as readelf of binutils 2.40 does: u stands for a
// register that rows do not track, the return address of AMD64 included.
func sframeList(t *testing.T, table *SFrame) []string {
	t.Helper()
	var out []string
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%#x %d", f.Start, f.End-f.Start))
		err := f.Rows(func(r *Row) bool {
			start := r.Start
			if f.Repeats {
				if start >= f.Start+f.Block {
					return false
				}
				start -= f.Start
			}
			base := map[uint64]string{6: "fp", 7: "sp"}[r.CFA.Register]
			fp, _ := r.Rule(6)
			saved := "u"
			if fp.Kind == Offset {
				saved = fmt.Sprintf("c%+d", fp.Offset)
			}
			out = append(out, fmt.Sprintf("%#x %s%+d %s u", start, base, r.CFA.Offset, saved))
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// pltBlock is how long an entry of a PLT of x86-64 is.
const pltBlock = 16

// sframeVersion2 makes a section of version 2 of one of version 1: FDEs get the
// size of repeated blocks, which here are entries of a PLT, and padding. With
// relative their start addresses are relative to themselves.
func sframeVersion2(s Section, relative bool) Section {
	o := binary.LittleEndian
	count := int(o.Uint32(s.Data[8:]))
	fdes := sframeHeader + int(s.Data[7]) + int(o.Uint32(s.Data[20:]))
	data := append([]byte(nil), s.Data[:fdes]...)
	data[2] = 2
	if relative {
		data[3] |= sframePCRel
	}
	o.PutUint32(data[24:], o.Uint32(data[24:])+uint32(3*count))
	for i := range count {
		fde := append([]byte(nil), s.Data[fdes+17*i:fdes+17*(i+1)]...)
		if relative {
			o.PutUint32(fde, o.Uint32(fde)-uint32(len(data)))
		}
		block := byte(0)
		if fde[16]&0x10 != 0 {
			block = pltBlock
		}
		data = append(append(data, fde...), block, 0, 0)
	}
	s.Data = append(data, s.Data[fdes+17*count:]...)
	return s
}

// agreement is how rows of .sframe compare with those of .eh_frame, by PC.
type agreement struct {
	agreed  int
	without int // PCs that only .eh_frame has a row for
}

func compareWithEHFrame(t *testing.T, table *SFrame, eh *Table, except []*elf.Section) (a agreement) {
	t.Helper()
	var got, want Row
	failures := 0
	fail := func(pc uint64, format string, args ...any) {
		t.Helper()
		if failures++; failures <= 5 {
			t.Errorf("%#x: "+format, append([]any{pc}, args...)...)
		}
	}
	for f, err := range eh.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(except, func(s *elf.Section) bool { return f.Start-s.Addr < s.Size }) {
			continue
		}
		for pc := f.Start; pc < f.End; pc++ {
			s, err := table.FDE(pc)
			if err == nil {
				err = s.RowAt(pc, &got)
			}
			if err != nil {
				a.without++
				continue
			}
			if err := f.RowAt(pc, &want); err != nil {
				t.Fatal(err)
			}
			if diff := compareRows(pc, &want, &got); diff != "" {
				fail(pc, "%s\n.eh_frame %s\n.sframe   %s", diff, text(&want), text(&got))
				continue
			}
			a.agreed++
		}
	}
	// Nothing has a row that is outside all of .eh_frame.
	for f, err := range table.FDEs() {
		if err != nil {
			t.Fatal(err)
		}
		for _, pc := range []uint64{f.Start, f.End - 1} {
			if _, err := eh.FDE(pc); err != nil {
				fail(pc, "%v", err)
			}
		}
	}
	return a
}

// compareRows says how the CFA, the frame pointer and the return address of two
// rows differ; "" where they do not.
func compareRows(pc uint64, want, got *Row) string {
	if want.CFA.Kind == CFARegister {
		// cmp.Diff would take most of the test's time.
		if w, g := want.CFA, got.CFA; g.Kind != w.Kind || g.Register != w.Register || g.Offset != w.Offset || g.Space != w.Space {
			return "CFA"
		}
	} else {
		// The entries of a PLT share one expression, of rip and rsp.
		offsetOf := func(c CFARule) uint64 {
			ctx := &frame{registers: map[uint64]uint64{6: 0x7ffe0000, 7: 0x7fff0000, 16: pc}}
			l, err := c.Location(context.Background(), &locexpr.Evaluator{AddressBits: 64, CFI: true}, ctx)
			if err != nil {
				return 0
			}
			_, address, _ := l.MemoryAddress()
			return address
		}
		if a, b := offsetOf(want.CFA), offsetOf(got.CFA); a != b || a == 0 {
			return fmt.Sprintf("CFA at %#x and %#x", a, b)
		}
	}
	for _, column := range []uint64{6, 16} {
		w, ok := want.Rule(column)
		if !ok {
			w = Rule{Kind: SameValue} // the psABI's default for rbp
		}
		if g, _ := got.Rule(column); g.Kind != w.Kind || g.Register != w.Register || g.Offset != w.Offset || len(w.Expr)+len(g.Expr) > 0 {
			return fmt.Sprintf("column %d", column)
		}
	}
	if want.ReturnAddress != got.ReturnAddress {
		return "column of the return address"
	}
	return ""
}

func TestSFrameEqualsReadelfAndEHFrame(t *testing.T) {
	total := 0
	for _, p := range sframePrograms {
		t.Run(p.name, func(t *testing.T) {
			path := compile(t, p.source, append(p.flags, "-Wa,--gsframe")...)
			listed := readelfSFrame(t, path)
			if len(listed) == 0 {
				t.Fatal("readelf printed no rows")
			}
			eh, file := elfTable(t, path, ".eh_frame")
			var except []*elf.Section
			if p.wrongPLT {
				for _, name := range []string{".plt", ".plt.sec"} {
					s := file.Section(name)
					if s == nil {
						t.Fatalf("%s has no %s", path, name)
					}
					except = append(except, s)
				}
			}
			one := sframeSection(t, path)
			for _, version := range []struct {
				name    string
				section Section
			}{
				{"version 1", one},
				{"version 2", sframeVersion2(one, false)},
				{"version 2, relative", sframeVersion2(one, true)},
			} {
				table := newSFrame(t, version.section)
				// Version 1 has no rows for repeated blocks, so readelf's are
				// compared with those of version 2 only.
				if table.version.block {
					if diff := cmp.Diff(listed, sframeList(t, table)); diff != "" {
						t.Errorf("%s (-readelf +got):\n%.4000s", version.name, diff)
					}
				}
				a := compareWithEHFrame(t, table, eh, except)
				if a.agreed < p.atLeast {
					t.Errorf("%s: %d PCs with rows, want at least %d", version.name, a.agreed, p.atLeast)
				}
				total += a.agreed
				t.Logf("%s: %d PCs agree, %d have no row", version.name, a.agreed, a.without)
			}
			t.Logf("readelf: %d FDEs and rows", len(listed))
		})
	}
	t.Logf("%d PCs agree", total)
}
