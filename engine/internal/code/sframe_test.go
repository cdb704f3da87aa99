// SPDX-License-Identifier: Apache-2.0

package code

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// withSFrame compiles a program with an .sframe.
func withSFrame(t *testing.T, flags ...string) string {
	t.Helper()
	oracle.Tools(t, "gcc")
	dir := t.TempDir()
	source := filepath.Join(dir, "a.c")
	if err := os.WriteFile(source, []byte("#include <stdio.h>\nint main(int n, char **v) { puts(v[0]); printf(\"%d\\n\", n); return 0; }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "a.out")
	oracle.Run(t, "gcc", append([]string{"-O1", "-Wa,--gsframe", source, "-o", out}, flags...)...)
	return out
}

// openObject opens a file for the time of a test.
func openObject(t *testing.T, path string) *object.Object {
	t.Helper()
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func TestSFrameOfObjects(t *testing.T) {
	program := withSFrame(t)
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func(data []byte, s *object.Section)) string {
		s := openObject(t, program).Section(".sframe")
		if s == nil {
			t.Fatalf("%s has no .sframe", program)
		}
		data := append([]byte(nil), data...)
		change(data, s)
		path := filepath.Join(t.TempDir(), "changed")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		name, path string
		found      bool
		problem    string
	}{
		{"a program", program, true, ""},
		{"a relocatable file, whose start addresses are not the format's", withSFrame(t, "-c"), false, ""},
		{"a program of another machine", changed(func(data []byte, _ *object.Section) { data[18] = 183 }), false,
			".sframe is for ELF machine 62 (x86_64), the object is of ELF machine 183 (aarch64)"},
		{"a version that is not read", changed(func(data []byte, s *object.Section) { data[s.Offset+2] = 4 }), false,
			".sframe+0x2: SFrame version is not supported: 4, expected 1 to 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			table, err := SFrameTable(openObject(t, c.path))
			if found := table != nil; found != c.found || (err == nil) != (c.problem == "") {
				t.Errorf("found %v, %v; want %v, %q", found, err, c.found, c.problem)
			}
			if err != nil && !strings.HasSuffix(err.Error(), c.problem) {
				t.Errorf("%v, want %s", err, c.problem)
			}
		})
	}
}

// sframeFDE is an FDE of 16 bytes of code.
type sframeFDE struct {
	info, block byte
	fre         []byte
}

// sframesOf is the source of a program with an .sframe of its own: version 2,
// AMD64, FDEs of code from 0x10000 on.
func sframesOf(t *testing.T, program string, fdes ...sframeFDE) sframes {
	t.Helper()
	o := binary.LittleEndian
	var fres, entries []byte
	for i, f := range fdes {
		for _, v := range []int{0x10000 + 16*i, 16, len(fres), 1} {
			entries = o.AppendUint32(entries, uint32(v))
		}
		entries = append(entries, f.info, f.block, 0, 0)
		fres = append(fres, f.fre...)
	}
	data := []byte{0xe2, 0xde, 2, 1, 3, 0, 0xf8, 0}
	for _, v := range []int{len(fdes), len(fdes), len(fres), 0, len(entries)} {
		data = o.AppendUint32(data, uint32(v))
	}
	table, err := cfi.NewSFrame(cfi.Section{Name: ".sframe", Data: append(append(data, entries...), fres...), Order: o, AddressSize: 8})
	if err != nil {
		t.Fatal(err)
	}
	return sframes{&Object{File: openObject(t, program)}, table}
}

func TestRowsOfSFrame(t *testing.T) {
	s := sframesOf(t, withSFrame(t),
		sframeFDE{fre: []byte{0, 3, 8}}, sframeFDE{fre: []byte{0, 0}}, sframeFDE{fre: []byte{4, 3, 8}},
		sframeFDE{fre: []byte{0, 0x83, 8}}, sframeFDE{0x10, 8, []byte{4, 3, 8}})
	var problems []string
	for _, c := range []struct {
		name      string
		pc        uint64
		outermost string // before
		row       bool
		after     string // outermost
		bounded   bool
		reasons   int
	}{
		{"a row", 0x10008, "", true, "", true, 0},
		{"a row of a function that nothing calls", 0x10008, "it has no caller", true, "it has no caller", true, 0},
		{"no offsets: nothing called it", 0x10018, "", false, "the return address is undefined", true, 0},
		{"no offsets, of a function that nothing calls", 0x10018, "it has no caller", false, "it has no caller", true, 0},
		{"no row at the address", 0x10020, "", false, "", true, 0},
		{"a row that cannot be read", 0x10030, "", false, "", true, 1},
		{"no row in blocks that repeat, which are no function", 0x10040, "", false, "", false, 0},
		{"no FDE", 0x10050, "", false, "", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			at := &Lookup{PC: c.pc, Address: c.pc, outermost: c.outermost}
			row, err := s.Row(t.Context(), at)
			problems = append(problems, at.problems...)
			if row != nil {
				row = at.complete(row)
			} else {
				row = &Row{}
			}
			if (row.Rules != nil) != c.row || row.Outermost != c.after {
				t.Errorf("row %+v, outermost %q; want %v, %q", row.Rules, row.Outermost, c.row, c.after)
			}
			if c.row && row.By != trace.ByCFI {
				t.Errorf("found by %s", row.By)
			}
			var none NoRow
			if said := (*NoRow)(nil); errors.As(err, &said) {
				none = *said
			}
			if at.Bounds.IsKnown != c.bounded || len(none.Reasons) != c.reasons {
				t.Errorf("bounds %+v, reasons %q", at.Bounds, none.Reasons)
			}
		})
	}
	if len(problems) != 1 {
		t.Errorf("problems %q, want one", problems)
	}
}

// Version 3 marks signal trampolines, which are returned to at their start.
func TestSignalFramesOfSFrame(t *testing.T) {
	table, err := SFrameTable(openObject(t, filepath.Join("..", "..", "..", "cfi", "testdata", "sframe3", "x86_64.elf")))
	if err != nil {
		t.Fatal(err)
	}
	s := sframes{nil, table}
	s.object = &Object{File: openObject(t, os.Args[0])}
	const restore = 0x40105c
	for _, at := range []*Lookup{{PC: restore, Address: restore - 1}, {PC: restore + 3, Address: restore + 3, IsExact: true}, {PC: restore + 3, Address: restore + 2}} {
		row, err := s.Row(t.Context(), at)
		if err != nil || row == nil || !row.IsSignalFrame() || at.Bounds.Start != restore {
			t.Errorf("%#x: row %+v, bounds %+v, %v; expected that of a signal frame", at.PC, row, at.Bounds, err)
		}
	}
	if row, err := s.Row(t.Context(), &Lookup{PC: restore, Address: restore, IsExact: true}); err != nil || row == nil || !row.IsSignalFrame() {
		t.Errorf("%+v, %v", row, err)
	}
	const behindCall = 0x401025 // in a function, behind another address
	if row, err := s.Row(t.Context(), &Lookup{PC: behindCall, Address: behindCall - 1}); err != nil || row == nil || row.IsSignalFrame() {
		t.Errorf("%+v, %v", row, err)
	}
}

func TestPLTWhoseSFrameRowsMayBeWrongIsLeftOut(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		wrong []string
		right []string
	}{
		{"lazy PLT", []string{"-Wl,-z,lazy", "-fcf-protection=none"}, nil, []string{".plt", ".text"}},
		{"PLT for IBT", []string{"-Wl,-z,lazy,-z,ibtplt", "-fcf-protection"}, []string{".plt", ".plt.sec"}, []string{".text"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := withSFrame(t, c.flags...)
			o := openObject(t, path)
			table, err := SFrameTable(o)
			if err != nil || table == nil {
				t.Fatalf("%s: %v, %v", path, table, err)
			}
			source := sframes{&Object{File: o}, table}
			check := func(names []string, want bool) {
				for _, name := range names {
					s := o.Section(name)
					if s == nil {
						t.Fatalf("%s has no %s", path, name)
					}
					for _, at := range []uint64{s.Address, s.Address + s.Size - 1} {
						if got := isWrongPLT(o, at); got != want {
							t.Errorf("%s at %#x: wrong %v, want %v", name, at, got, want)
						}
					}
					if row, _ := source.Row(t.Context(), &Lookup{PC: s.Address, Address: s.Address}); want && row != nil {
						t.Errorf("a row at the start of %s", name)
					}
				}
			}
			check(c.wrong, true)
			check(c.right, false)
		})
	}
}
