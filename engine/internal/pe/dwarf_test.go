// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/oracle"
)

const (
	mingwC       = "x86_64-w64-mingw32-gcc"
	mingwCXX     = "x86_64-w64-mingw32-g++"
	mingwObjdump = "x86_64-w64-mingw32-objdump"
)

// programs are the programs of testdata as MinGW makes them with several options. With
// debug information they have unwind codes and DWARF for the same code.
func programs(t testing.TB) []string {
	t.Helper()
	var sources []string
	for _, name := range []string{"frames.c", "throws.cpp"} {
		path, err := filepath.Abs(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, path)
	}
	b := oracle.Build{Sources: sources}
	var names []string
	for i, options := range [][]string{
		{"-O0"}, {"-Og"}, {"-O1"}, {"-O2"}, {"-O3", "-mavx2"}, {"-Os"},
		{"-O2", "-fno-omit-frame-pointer"}, {"-O2", "-fstack-protector-all", "-fno-inline"},
	} {
		c, cxx := fmt.Sprintf("c%d.exe", i), fmt.Sprintf("cxx%d.exe", i)
		b.Commands = append(b.Commands,
			append([]string{mingwC, "-g", "-w", "-Wl,--build-id", "-o", c, sources[0]}, options...),
			append([]string{mingwCXX, "-g", "-static", "-o", cxx, sources[1]}, options...))
		names = append(names, c, cxx)
	}
	dir := b.Make(t)
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names
}

// A listed instruction is one of objdump's disassembly.
type listed struct {
	address uint64
	text    string
}

// instructions are all instructions of a file's code, by objdump.
func instructions(t testing.TB, path string) []listed {
	t.Helper()
	var list []listed
	for s := bufio.NewScanner(strings.NewReader(oracle.Run(t, mingwObjdump, "-d", "--no-show-raw-insn", "-j", ".text", path))); s.Scan(); {
		if digits, text, ok := strings.Cut(strings.TrimSpace(s.Text()), ":\t"); ok {
			if address, err := strconv.ParseUint(digits, 16, 64); err == nil {
				list = append(list, listed{address, text})
			}
		}
	}
	return list
}

func (i listed) is(operations ...string) bool {
	return slices.ContainsFunc(operations, func(o string) bool { return strings.HasPrefix(i.text, o) })
}

// isPadding reports whether nothing executes an instruction: it does nothing, and what comes
// before it does not go on.
func isPadding(list []listed, i int) bool {
	for ; i > 0 && list[i].is("nop", "xchg   %ax,%ax", "cs nopw", "data16"); i-- {
		if list[i-1].is("ret", "jmp", "rex.W jmp") {
			return true
		}
	}
	return false
}

// untilReturn is how many pops there are from an instruction to the return, or the jump to
// another function, that follows them; false where something else follows.
func untilReturn(list []listed) (pops int, ok bool) {
	for _, i := range list {
		switch {
		case i.is("ret"), i.is("jmp", "rex.W jmp") && !strings.Contains(i.text, "+"):
			return pops, true
		case !i.is("pop "):
			return 0, false
		}
		pops++
	}
	return 0, false
}

// frameTables are the tables of call frame information that the file has.
func frameTables(t testing.TB, f *File) (list []*cfi.Table) {
	t.Helper()
	for _, name := range []string{".debug_frame", ".eh_frame"} {
		s := f.Section(name)
		if s == nil {
			continue
		}
		data, err := s.Data()
		if err != nil {
			t.Fatal(err)
		}
		table, err := cfi.NewTable(cfi.Section{
			Name: name, Data: data, Address: s.Address(), EH: name == ".eh_frame", Order: binary.LittleEndian, AddressSize: 8,
		})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, table)
	}
	return list
}

// differences sorts how the row of unwind codes differs from that of DWARF; none where they
// say the same of the CFA, the return address and all registers that functions keep.
func differences(row *Row, dwarf *cfi.Row) (list []string) {
	switch {
	case dwarf.CFA.Kind != cfi.CFARegister:
		return []string{fmt.Sprintf("%v: CFA by an expression", row.Part)}
	case dwarf.CFA.Register != row.CFA.Register:
		return []string{fmt.Sprintf("%v: CFA by register %d, DWARF by %d", row.Part, row.CFA.Register, dwarf.CFA.Register)}
	case dwarf.CFA.Offset != row.CFA.Offset:
		return []string{fmt.Sprintf("%v: CFA", row.Part)}
	}
	columns := make(map[uint64]bool)
	for _, r := range append(slices.Clone(row.Rules), dwarf.Rules...) {
		columns[r.Column] = true
	}
	for column := range columns {
		ours, isOurs := row.Rule(column)
		theirs, isTheirs := dwarf.Rule(column)
		if isTheirs && theirs.Kind == cfi.SameValue {
			isTheirs = false
		}
		switch {
		case isOurs != isTheirs && isOurs:
			list = append(list, fmt.Sprintf("%v: saved by unwind codes only", row.Part))
		case isOurs != isTheirs:
			list = append(list, fmt.Sprintf("%v: saved by DWARF only", row.Part))
		case isOurs && (ours.Kind != theirs.Kind || ours.Offset != theirs.Offset):
			list = append(list, fmt.Sprintf("%v: saved elsewhere", row.Part))
		}
	}
	return list
}

// explained says why DWARF differs although the row is right; "" where nothing says so.
func explained(list []listed, i int, row *Row, difference string) string {
	pops, returns := untilReturn(list[i:])
	switch {
	case isPadding(list, i):
		return "padding behind a return: DWARF goes on with the row of the return"
	case row.Part == Epilogue && returns && row.CFA.Register == dwarfRSP && row.CFA.Offset == int64(8*pops+8):
		return "DWARF does not follow rsp in the epilogue of a frame with a frame register: objdump shows the pops and what leaves"
	case difference == "prologue: saved by unwind codes only":
		return "DWARF tells of several registers that are saved when the last is"
	}
	return ""
}

// TestRowsAreThoseOfDWARF holds the rows of unwind codes against the call frame information
// of the same programs, at every instruction.
func TestRowsAreThoseOfDWARF(t *testing.T) {
	oracle.Tools(t, mingwC, mingwCXX, mingwObjdump)
	classes, total := make(map[string]int), 0
	var parts [4]int
	for _, path := range programs(t) {
		f := open(t, path)
		list := instructions(t, path)
		tables := frameTables(t, f)
		var row Row
		var dwarf cfi.Row
		for i, at := range list {
			for _, table := range tables {
				fde, err := table.FDE(at.address)
				if errors.Is(err, cfi.ErrNoFDE) {
					continue
				}
				if err == nil {
					err = fde.RowAt(at.address, &dwarf)
				}
				if err == nil {
					err = f.RowAt(at.address, &row)
				}
				if err != nil {
					t.Errorf("%s: %#x: %v", path, at.address, err)
					continue
				}
				total++
				parts[row.Part]++
				for _, d := range differences(&row, &dwarf) {
					why := explained(list, i, &row, d)
					if classes[why]++; why == "" && classes[why] < 10 {
						t.Errorf("%s: %#x: %s: %s\nunwind codes: %+v\nDWARF: %+v", path, at.address, at.text, d, row, dwarf)
					}
				}
			}
		}
	}
	if total < 10000 || parts[Epilogue] == 0 || parts[Prologue] == 0 || parts[Body] == 0 {
		t.Errorf("%d instructions compared, by part %v: expected many of each", total, parts)
	}
	t.Logf("%d instructions: %d of bodies, %d of prologues, %d of epilogues, %d of leaves", total, parts[Body], parts[Prologue], parts[Epilogue], parts[Leaf])
	for _, why := range slices.Sorted(maps.Keys(classes)) {
		t.Logf("%8d %s", classes[why], why)
	}
}
