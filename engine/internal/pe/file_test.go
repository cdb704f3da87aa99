// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// withExports is a file that exports one name, one number and one forwarder.
func withExports() *maker {
	m := &maker{code: []byte("\xc3\xc3\xc3\xc3")}
	const directory = madeData
	rest := directory + uint32(exportSize)
	addresses, pointers, numbers, text := rest, rest+16, rest+24, rest+28
	m.put(words(0, 0, 0, text, 5, 4, 2, addresses, pointers, numbers)...)
	m.put(words(madeCode+1, 0, madeCode+2, text+8)...)
	m.put(words(text, text+4)...)
	m.put(3, 0, 0, 0) // the indexes of the names: 3, 0
	m.put([]byte("abc\x00def\x00LIB.other\x00")...)
	m.directories[directoryExport] = [2]uint32{directory, uint32(len(m.data))}
	return m
}

// withDebug is a file with a debug directory of two entries.
func withDebug(signature string) *maker {
	m := &maker{code: []byte{0xc3}}
	record := m.put(append([]byte(signature), []byte("\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x2a\x00\x00\x00C:\\a.pdb\x00")...)...)
	directory := m.put(words(0, 0, 0, 13, 8, record, 0, 0, 0, 0, debugIsCodeView, 33, record, 0)...)
	m.directories[directoryDebug] = [2]uint32{directory, 2 * debugEntrySize}
	return m
}

func TestExports(t *testing.T) {
	m := withExports()
	got, err := m.open(t).Exports()
	want := []Export{{"abc", 8, 0, "LIB.other"}, {"def", 5, madeBase + madeCode + 1, ""}, {"", 7, madeBase + madeCode + 2, ""}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v, expected %v", got, err, want)
	}
}

func TestIdentity(t *testing.T) {
	m := withDebug("RSDS")
	id, err := m.open(t).Identity()
	if err != nil || id.DebugID() != "0403020106050807090A0B0C0D0E0F102a" || id.CodeID() != "5F3A1B2C4000" || id.PDB != `C:\a.pdb` {
		t.Errorf("%+v, %q, %q, %v", id, id.DebugID(), id.CodeID(), err)
	}
	id, err = withDebug("NB10").open(t).Identity()
	if err == nil || !strings.Contains(err.Error(), `begins with "NB10"`) || id.DebugID() != "" || id.CodeID() == "" {
		t.Errorf("another record: %+v, %v", id, err)
	}
}

func TestLongNamesOfSections(t *testing.T) {
	for name, want := range map[string]string{"/4": ".debug_frame", "//AAAAAE": ".debug_frame", "/99": "/99", "/x": "/x", ".data": ".data"} {
		m := &maker{code: []byte{0xc3}, data: []byte{1}, name: name, strings: []byte(".debug_frame\x00")}
		f := m.open(t)
		if got := f.Sections()[1].Name; got != want || f.Section(want) == nil {
			t.Errorf("%q is %q, expected %q", name, got, want)
		}
		if isBad := name == "/99" || name == "/x"; isBad != (len(f.Problems()) == 1) {
			t.Errorf("%q: problems %q", name, f.Problems())
		}
	}
}

// TestHostileFiles has files each of which is wrong in one number: an error or a problem
// must say which.
func TestHostileFiles(t *testing.T) {
	all := func(f *File) (text string) {
		for _, ask := range []func() error{
			func() error { _, err := f.Exports(); return err },
			func() error { _, err := f.Identity(); return err },
			func() error { return f.RowAt(madeBase+madeCode, new(Row)) },
			func() error { return f.Functions(func(Function) bool { return true }) },
		} {
			if err := ask(); err != nil {
				text += err.Error() + "\n"
			}
		}
		return text + strings.Join(f.Problems(), "\n")
	}
	function := func(u []byte) *maker {
		m := &maker{code: []byte("\x90\x90\x90\xc3")}
		m.functions(madeCode, madeCode+4, m.put(u...))
		return m
	}
	table := func(list ...uint32) *maker {
		m := &maker{code: bytes.Repeat([]byte{0x90}, 64)}
		m.put(info(1, 0, 0)...)
		m.functions(list...)
		return m
	}
	for want, m := range map[string]*maker{
		"UNWIND_INFO of version 3, expected 1 or 2":              function(info(3, 0, 0)),
		"unwind code 7 with 0 is unknown in version 1":           function(info(1, 0, 0, code(0, 7, 0))),
		"unwind code 6 with 1 is unknown in version 1":           function(info(1, 0, 0, code(0, 6, 1))),
		"unwind code 1 with 2 is unknown in version 1":           function(info(1, 0, 0, code(0, AllocLarge, 2))),
		"ALLOC_LARGE has 3 slots, 1 are left":                    function(info(1, 0, 0, code(0, AllocLarge, 1))),
		"PUSH_NONVOL: register rsp":                              function(info(1, 0, 0, code(0, PushNonvol, rsp))),
		"SET_FPREG: frame register is 0":                         function(info(1, 0, 0, code(0, SetFPReg, 0))),
		"unwind codes of 200 bytes, expected no more than":       function([]byte{1, 0, 100, 0}),
		"epilogue of 3 bytes at 9 before the end of a function":  function(info(2, 0, 0, code(3, 6, 0), code(9, 6, 0))),
		"function 0 begins at RVA 0x1008 and ends at 0x1004":     table(madeCode+8, madeCode+4, madeData),
		"function ends at RVA 0x1010, the next begins at 0x1008": table(madeCode, madeCode+16, madeData, madeCode+8, madeCode+32, madeData),
		"UNWIND_INFO of 4 bytes, expected no more than 0":        table(madeCode, madeCode+16, 0x9000),
		"chained RUNTIME_FUNCTION of 12 bytes":                   table(madeCode, madeCode+16, 0xfffffff1),
		"table of functions of 0xff000 bytes, 0x4 are there":     {code: []byte{0xc3}, data: []byte{1, 2, 3, 4}, directories: [16][2]uint32{directoryExcept: {madeData, 0xff000}}},
		"expected at most 0xc000000":                             {code: []byte{0xc3}, data: []byte{1, 2, 3, 4}, directories: [16][2]uint32{directoryExcept: {madeData, 0xfffffff0}}},
		"export directory of 40 bytes, expected no more than 4":  {code: []byte{0xc3}, data: []byte{1, 2, 3, 4}, directories: [16][2]uint32{directoryExport: {madeData, 40}}},
		"4294967295 functions and 0 names":                       {code: []byte{0xc3}, data: words(0, 0, 0, 0, 0, 1<<32-1, 0, 0, 0, 0), directories: [16][2]uint32{directoryExport: {madeData, 40}}},
		"debug directory of 7168 bytes":                          {code: []byte{0xc3}, data: []byte{1, 2, 3, 4}, directories: [16][2]uint32{directoryDebug: {madeData, 1<<32 - 1}}},
		"machine 0x1c4: unwind information of this machine":      {code: []byte{0xc3}, machine: MachineARM},
	} {
		text := all(m.open(t))
		if !strings.Contains(text, want) || !strings.Contains(text, "made.dll: ") {
			t.Errorf("%q, expected %q", text, want)
		}
	}
}

// TestCutFiles cuts a file at each byte: nothing panics, and what is refused says why.
func TestCutFiles(t *testing.T) {
	whole := withExports().file()
	for n := range whole {
		f, err := New("cut.dll", whole[:n])
		if err == nil {
			useAll(f)
		} else if !errors.Is(err, ErrNotPE) && !errors.Is(err, errHeaderEnds) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}

// TestPE32 reads the headers of a 32-bit file, which has no unwind codes.
func TestPE32(t *testing.T) {
	b := withExports().file()
	le := binary.LittleEndian
	le.PutUint16(b[0x84:], MachineX86)
	o := b[0x84+20:]
	le.PutUint16(o, magicPE32)
	copy(o[fixedPE32-4:], append(words(16), o[fixedPE32Plus:fixedPE32Plus+128]...))
	le.PutUint32(o[28:], 0x10000000)
	f, err := New("made32.dll", b)
	if err != nil {
		t.Fatal(err)
	}
	exports, err := f.Exports()
	if err != nil || f.IsPlus() || f.ImageBase() != 0x10000000 || len(exports) != 3 || exports[1].Address != 0x10001001 {
		t.Errorf("%v, %v, base %#x", exports, err, f.ImageBase())
	}
	if err := f.RowAt(0x10001000, new(Row)); !errors.Is(err, ErrUnwindMachine) {
		t.Errorf("%v, expected %v", err, ErrUnwindMachine)
	}
}

// TestHeadersAreThoseOfReadobj compares sections, exports and identity of libraries and of
// MinGW's programs with what llvm-readobj says.
func TestHeadersAreThoseOfReadobj(t *testing.T) {
	oracle.Tools(t, "llvm-readobj-22", mingwC, mingwCXX)
	exports, codeViews := 0, 0
	for _, path := range append(libraries(t), programs(t)...) {
		f := open(t, path)
		out, err := exec.Command("llvm-readobj-22", "--sections", "--coff-exports", "--coff-debug-directory", path).Output()
		var failed *exec.ExitError
		if errors.As(err, &failed) && strings.Contains(string(failed.Stderr), "RVA 0x0 for export ordinal table not found") {
			t.Logf("%s exports no names, which llvm-readobj takes for an error", path)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		inDirectory := false // its entries have keys that sections have too
		for line := range strings.Lines(string(out)) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			inDirectory = inDirectory || key == "AddressOfRawData"
			switch key {
			case "PointerToRawData":
				if !inDirectory {
					want = append(want, key+":"+value)
				}
			case "Name", "VirtualSize", "RawDataSize", "VirtualAddress", "Ordinal", "RVA", "ForwardedTo", "PDBGUID", "PDBAge", "PDBFileName":
				value, _, _ = strings.Cut(value, " (")
				want = append(want, key+": "+strings.TrimSpace(value))
				if n := len(want); key == "RVA" && strings.TrimSpace(value) == "0x0" {
					want = want[:n-3] // a gap between ordinals, which exports nothing
				}
			}
		}
		got := asReadobj(t, f, &exports, &codeViews)
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			i := 0
			for i < min(len(got), len(want)) && got[i] == want[i] {
				i++
			}
			t.Errorf("%s: line %d: %q, llvm-readobj has %q", path, i, got[i:min(len(got), i+4)], want[i:min(len(want), i+4)])
		}
	}
	t.Logf("%d exports, %d CodeView records", exports, codeViews)
}

// asReadobj is what a file says in the lines of llvm-readobj.
func asReadobj(t *testing.T, f *File, exports, codeViews *int) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, s := range f.Sections() {
		add("Name: %s", s.Name)
		add("VirtualSize: 0x%X", s.VirtualSize)
		add("VirtualAddress: 0x%X", s.RVA)
		add("RawDataSize: %d", s.RawSize)
		add("PointerToRawData: 0x%X", s.Offset)
	}
	id, err := f.Identity()
	if err != nil {
		t.Error(err)
	}
	if id.HasCodeView {
		*codeViews++
		g := id.GUID[:]
		add("PDBGUID: {%08X-%04X-%04X-%X-%X}", u32(g, 0), u16(g, 4), u16(g, 6), g[8:10], g[10:])
		add("PDBAge: %d", id.Age)
		add("PDBFileName: %s", id.PDB)
	}
	list, err := f.Exports()
	if err != nil {
		t.Error(err)
	}
	slices.SortStableFunc(list, func(a, b Export) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	for _, e := range list {
		*exports++
		add("Ordinal: %d", e.Ordinal)
		add("Name: %s", e.Name)
		if e.Forwarder != "" {
			add("ForwardedTo: %s", e.Forwarder)
		} else {
			add("RVA: 0x%X", e.Address-f.ImageBase())
		}
	}
	return lines
}
