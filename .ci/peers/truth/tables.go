// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/report"
)

// This file holds the call frame information of libraries against an emulation of their code.

// tables counts the instructions of libraries by their result.
type tables struct {
	libraries, functions int
	agreed, saved        int            // instructions whose CFA agrees, and saved registers that are where the table says
	undecided            map[string]int // instructions, by reason
	faults               map[fault]*places
}

// places is the number of instructions of a fault, and the address of the first.
type places struct {
	count           int
	function, first uint64
	register        uint64 // that a rule is missing of, by its DWARF number; 0: none
	isExcused       bool   // the callers have saved it
}

// fault is where a table and the code of a function disagree.
type fault struct{ library, function, kind string }

// mostNeeded are the shared libraries here that most files need, of those that are not so large
// that they would take all the time.
func mostNeeded(count int) []string {
	const largest = 8 << 20
	needed := map[string]int{}
	const libraries = "/usr/lib/x86_64-linux-gnu"
	for _, pattern := range []string{"/usr/bin/*", "/usr/sbin/*", libraries + "/*.so*"} {
		paths, _ := filepath.Glob(pattern)
		for _, path := range paths {
			if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
				continue
			}
			f, err := elf.Open(path)
			if err != nil {
				continue
			}
			names, _ := f.ImportedLibraries()
			for _, name := range names {
				needed[name]++
			}
			_ = f.Close()
		}
	}
	names := slices.SortedFunc(maps.Keys(needed), func(a, b string) int { return cmp.Or(needed[b]-needed[a], strings.Compare(a, b)) })
	var list []string
	for _, name := range names {
		path := filepath.Join(libraries, name)
		if info, err := os.Stat(path); err == nil && info.Size() <= largest && len(list) < count {
			list = append(list, path)
		}
	}
	return list
}

// validate compares the tables of libraries.
func validate(count int) (*tables, error) {
	t := &tables{undecided: map[string]int{}, faults: map[fault]*places{}}
	for _, path := range mostNeeded(count) {
		if err := t.compareLibrary(path); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		t.libraries++
	}
	return t, nil
}

// disassemble is the text of all code of a file.
func disassemble(path string) (list []line, err error) {
	cmd := exec.Command("objdump", "-d", "-w", "-M", "intel", "--no-show-raw-insn", path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := bufio.NewScanner(out)
	for s.Scan() {
		if l, ok := parseLine(s.Text()); ok {
			list = append(list, l)
		}
	}
	return list, cmd.Wait()
}

func (t *tables) compareLibrary(path string) error {
	code, err := disassemble(path)
	if err != nil {
		return err
	}
	plugins, err := plugin.NewManager(plugin.Options{})
	if err != nil {
		return err
	}
	defer plugins.Close()
	o, _, err := report.OpenObject(path, plugins, nil)
	if err != nil {
		return err
	}
	defer o.Close()
	frames, err := report.NewCallFrames(path, o, nil, nil)
	if err != nil {
		return err
	}
	var functions []function
	for e, err := range frames.Entries {
		if err != nil || e.FDE == nil || e.Section != ".eh_frame" {
			continue
		}
		from := sort.Search(len(code), func(i int) bool { return code[i].address >= e.FDE.Start })
		to := sort.Search(len(code), func(i int) bool { return code[i].address >= e.FDE.End })
		if from < to && code[from].address == e.FDE.Start {
			functions = append(functions, function{e.FDE, code[from:to]})
		}
	}
	names, isEndless := functionNames(path), endlessCalls(functions)
	for _, f := range functions {
		name := names[f.fde.Start]
		if name == "" {
			name = fmt.Sprintf("%#x", f.fde.Start)
		}
		t.compareFunction(f, isEndless, filepath.Base(path), name)
	}
	t.excuse(filepath.Base(path), functions)
	return nil
}

// functionNames are the names of functions that symbols have, by address.
func functionNames(path string) map[uint64]string {
	names := map[uint64]string{}
	f, err := elf.Open(path)
	if err != nil {
		return names
	}
	defer f.Close()
	list, _ := f.DynamicSymbols()
	for _, s := range list {
		names[s.Value] = s.Name
	}
	return names
}

// compareFunction compares the rows of a function with what its code does.
func (t *tables) compareFunction(fn function, isEndless func(l *line) bool, library, name string) {
	f, code := fn.fde, fn.code
	var rows []*cfi.Row
	_ = f.Rows(func(r *cfi.Row) bool { rows = append(rows, r.Clone()); return true })
	switch {
	case len(rows) == 0 || rows[0].CFA.Kind != cfi.CFARegister || rows[0].CFA.Register != 7 || rows[0].CFA.Offset != 8:
		t.undecided["a part of a function that is jumped into, or a linkage table"] += len(code)
		return
	case len(rows) > 1 && rows[1].Start == rows[0].Start+1 && rows[1].CFA.Offset > 16:
		// GCC puts a byte that nothing executes before a part that begins with a landing pad.
		t.undecided["a part of a function that is jumped into, or a linkage table"] += len(code)
		return
	case f.CIE.SignalFrame:
		t.undecided["a signal's trampoline"] += len(code)
		return
	}
	t.functions++
	states := emulate(code, isEndless)
	for i := range code {
		at := code[i].address
		s := states[at]
		n := sort.Search(len(rows), func(i int) bool { return rows[i].End > at })
		if s == nil || n == len(rows) || rows[n].Start > at {
			t.undecided["not reached: behind a jump through a table, or nothing but padding"]++
			continue
		}
		if kind, register := t.compareRow(rows[n], s); kind != "" {
			key := fault{library, name, kind}
			if t.faults[key] == nil {
				t.faults[key] = &places{function: f.Start, first: at, register: register}
			}
			t.faults[key].count++
		}
	}
}

// compareRow compares a row with a state; the kind of fault is "" where there is none. missing is
// the register that a rule is missing of, if that is the fault.
func (t *tables) compareRow(row *cfi.Row, s *frameState) (kind string, missing uint64) {
	if back, _ := row.Rule(row.ReturnAddress); back.Kind != cfi.Offset || back.Offset != -8 {
		t.undecided["the return address is not where a call pushes it, as the table says"]++
		return "", 0
	}
	if row.CFA.Kind != cfi.CFARegister {
		t.undecided["the CFA is an expression"]++
		return "", 0
	}
	v := s.regs[encodings[row.CFA.Register&15]]
	switch {
	case v.register != rsp+1:
		t.undecided["what the CFA's register holds is not known"]++
		return "", 0
	case v.off+row.CFA.Offset != 8:
		return "wrong CFA offset", 0
	}
	t.agreed++
	for _, number := range preserved {
		r := encodings[number]
		rule, _ := row.Rule(number)
		want := value{register: uint8(r + 1)} //nolint:gosec // below 16
		switch {
		case rule.Kind == cfi.Offset && s.words[rule.Offset+8] == want:
			t.saved++
		case rule.Kind == cfi.Offset && s.regs[r] != want:
			return "wrong place of " + registerNames[r][0], 0
		case (rule.Kind == cfi.Unspecified || rule.Kind == cfi.SameValue) && s.regs[r] != want:
			return "missing rule of " + registerNames[r][0], number
		}
	}
	return "", 0
}

// encodings are the indexes of registers in their encoding, by DWARF number.
var encodings = [16]int{rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, 8, 9, 10, 11, 12, 13, 14, 15}

// report prints the counts and the faults.
func (t *tables) report() {
	faults, excused := 0, 0
	functions, subroutines := map[string]bool{}, map[string]bool{}
	for f, p := range t.faults {
		faults += p.count
		functions[f.library+f.function] = true
		if p.isExcused {
			excused += p.count
			subroutines[f.library+f.function] = true
		}
	}
	fmt.Printf("\ntables of %d libraries, %d functions: at %d instructions the CFA agrees, and %d saved registers are where it says; at %d, of %d functions, they disagree\n",
		t.libraries, t.functions, t.agreed, t.saved, faults, len(functions))
	fmt.Printf("%9d of these are in %d subroutines that change registers which all their callers have saved\n", excused, len(subroutines))
	for _, reason := range slices.SortedFunc(maps.Keys(t.undecided), func(a, b string) int { return t.undecided[b] - t.undecided[a] }) {
		fmt.Printf("%9d undecided: %s\n", t.undecided[reason], reason)
	}
	kinds := map[string]int{}
	list := slices.SortedFunc(maps.Keys(t.faults), func(a, b fault) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.library, b.library), strings.Compare(a.function, b.function))
	})
	for _, f := range list {
		kinds[f.kind]++
		p := t.faults[f]
		if *verbose || kinds[f.kind] <= 20 {
			fmt.Printf("%9d %s: %s!%s, first at %#x%s\n", p.count, f.kind, f.library, f.function, p.first, map[bool]string{true: "; its callers have saved it"}[p.isExcused])
		}
	}
}
