// SPDX-License-Identifier: Apache-2.0

package code

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/macho/machotest"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

const machoDump = "llvm-objdump-22"

// listedInstruction is an instruction of a disassembly.
type listedInstruction struct {
	address        uint64
	name, operands string
}

// machoInstructions are the instructions of a Mach-O file.
func machoInstructions(t *testing.T, path string) (list []listedInstruction) {
	t.Helper()
	for line := range strings.Lines(oracle.Run(t, machoDump, "-d", "--no-show-raw-insn", path)) {
		digits, text, ok := strings.Cut(strings.TrimSpace(line), ":")
		address, err := strconv.ParseUint(digits, 16, 64)
		if !ok || err != nil || text == "" {
			continue
		}
		text, _, _ = strings.Cut(text, "##")
		text, _, _ = strings.Cut(text, ";")
		name, operands, _ := strings.Cut(strings.TrimSpace(text), "\t")
		list = append(list, listedInstruction{address, strings.TrimSpace(name), strings.TrimSpace(operands)})
	}
	return list
}

// machoRowText is a row's CFA and the registers that are saved.
func machoRowText(r *cfi.Row) string {
	s := fmt.Sprintf("CFA=%d%+d", r.CFA.Register, r.CFA.Offset)
	for i := range r.Rules {
		if rule := r.Rules[i].Rule; rule.Kind == cfi.Offset {
			s += fmt.Sprintf(" %d=cfa%+d", r.Rules[i].Column, rule.Offset)
		} else if rule.Kind != cfi.SameValue && rule.Kind != cfi.Unspecified {
			s += fmt.Sprintf(" %d:%v", r.Rules[i].Column, rule.Kind)
		}
	}
	return s
}

// TestRowsOfBodiesAreGuesses: of a program whose code is encrypted the rows of compact unwind encodings are guesses where
// an instruction is about to execute, unless the function has no frame; behind calls they are none.
func TestRowsOfBodiesAreGuesses(t *testing.T) {
	plain, err := os.ReadFile("../macho/testdata/unwind-arm64")
	if err != nil {
		t.Fatal(err)
	}
	const text, size, base = 0x4b0, 0x2cc, 0x100000000
	path := filepath.Join(t.TempDir(), "app")
	if err := os.WriteFile(path, machotest.Encrypted(t, plain, text, size, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	loaded := moduleOf(t, object.NewStore(), path)
	loaded.Arch = "aarch64"
	m := newLibrary(t, 0, aarch64.New()).Load(loaded, Loading{})
	t.Cleanup(m.Close)
	found := map[trace.FoundBy]int{}
	for pc := uint64(base + text); pc < base+text+size; pc += 4 {
		row, err := m.Row(t.Context(), pc, true)
		if err != nil {
			continue // described by an FDE, or by none
		}
		found[row.By]++
		isEntry := isFrameOf(m.Code.machine.Description.Entry, row.Rules)
		if row.By == trace.ByFunctionBody && isEntry || row.By == trace.ByCompactUnwind && !isEntry {
			t.Errorf("%#x: %s, found by %s", pc, machoRowText(row.Rules), row.By)
		}
		if behind, err := m.Row(t.Context(), pc+4, false); err == nil && behind.By == trace.ByFunctionBody {
			t.Errorf("%#x: the row behind a call is found by %s", pc, behind.By)
		}
	}
	if found[trace.ByFunctionBody] < 30 || found[trace.ByCompactUnwind] < 4 {
		t.Errorf("rows found by %v, expected more", found)
	}
}

// TestExactRowsOfMachO compares the row of every instruction of all functions with DWARF, and with the code
// where it has no rows: in epilogues of x86-64.
func TestExactRowsOfMachO(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, machoDump)
	list := machotest.Programs(t, "../macho/testdata")
	total := map[string]int{}
	for i := range list {
		newExactRows(t, &list[i], total).check()
	}
	t.Log(total)
	for kind, n := range total {
		if strings.Contains(kind, "other CFA") || strings.Contains(kind, "other register") || strings.Contains(kind, "unknown") {
			t.Errorf("%s: %d", kind, n)
		}
	}
}

// exactRows compares the rows of a program.
type exactRows struct {
	t       *testing.T
	program *machotest.Program
	module  *Module
	truth   FrameTable
	code    []listedInstruction
	same    map[uint64]int64 // distance of a function's truth; none: its code differs there
	total   map[string]int
	sp      uint64
}

func newExactRows(t *testing.T, p *machotest.Program, total map[string]int) *exactRows {
	t.Helper()
	x := &exactRows{t: t, program: p, total: total, sp: 7, same: map[uint64]int64{}}
	store := object.NewStore()
	loaded := moduleOf(t, store, p.Path)
	arch := x86_64.New()
	if p.Arch == "arm64" {
		arch, loaded.Arch, x.sp = aarch64.New(), "aarch64", 31
	}
	x.module = newLibrary(t, 0, arch).Load(loaded, Loading{})
	t.Cleanup(x.module.Close)
	truth := p.DSYM
	if p.Async != "" {
		truth = p.Async
	}
	o, err := object.Open(truth)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	tables := FrameTables(o)
	x.truth = tables[slices.IndexFunc(tables, func(t FrameTable) bool { return t.Section == ".debug_frame" })]
	x.code = machoInstructions(t, p.Path)
	x.match()
	return x
}

// match finds the functions whose code is the same in the program that the truth is of.
func (x *exactRows) match() {
	other := x.module.Code.File
	if x.program.AsyncPath != "" {
		o, err := object.Open(x.program.AsyncPath)
		if err != nil {
			x.t.Fatal(err)
		}
		defer o.Close()
		other = o
	}
	byName := map[string]*object.Symbol{}
	_ = other.EachSymbol(func(s *object.Symbol) { c := *s; byName[s.Name] = &c })
	_ = x.module.Code.File.EachSymbol(func(s *object.Symbol) {
		there := byName[s.Name]
		if there == nil || s.Size == 0 || there.Size != s.Size {
			return
		}
		x.same[s.Address] = int64(there.Address - s.Address) //nolint:gosec // a distance
		x.checkCode(other, s, there)
	})
}

// checkCode forgets a function whose instructions differ in more than the addresses that they name.
func (x *exactRows) checkCode(other *object.Object, s, there *object.Symbol) {
	a, b := make([]byte, s.Size), make([]byte, s.Size)
	_, _ = x.module.Code.File.ReadAddress(a, s.Address)
	_, _ = other.ReadAddress(b, there.Address)
	for i := 0; i+4 <= len(a) && x.program.AsyncPath != ""; i += 4 {
		isBranch := a[i+3]&0x7c == 0x14 && b[i+3]&0x7c == 0x14                                                                                      // b, bl
		isPage := a[i+3]&0x1f == 0x10 && b[i+3]&0x1f == 0x10                                                                                        // adr, adrp
		isNear := a[i+3]&0x3b == 0x18 && b[i+3]&0x3b == 0x18                                                                                        // ldr of an address
		isLow := a[i+3] == b[i+3] && (a[i+3] == 0x91 || a[i+3] == 0xf9 || a[i+3] == 0xb9 || a[i+3] == 0x3d || a[i+3] == 0xfd) && a[i]&31 == b[i]&31 // of an address
		if !isBranch && !isPage && !isNear && !isLow && string(a[i:i+4]) != string(b[i:i+4]) {
			delete(x.same, s.Address)
			return
		}
	}
}

func (x *exactRows) check() {
	function, depth := uint64(0), &depthModel{}
	for i := range x.code {
		pc := x.code[i].address
		if _, isStart := x.same[pc]; isStart || x.isSymbol(pc) {
			function, depth = pc, &depthModel{arch: x.program.Arch}
		}
		delta, ok := x.same[function]
		if !ok {
			x.total[x.program.Arch+" not compared: the truth is of other code"]++
			continue
		}
		fde, err := x.truth.FDE(pc + uint64(delta)) //nolint:gosec // a distance
		if err != nil {
			continue
		}
		var want cfi.Row
		if err := fde.RowAt(pc+uint64(delta), &want); err != nil { //nolint:gosec // a distance
			x.t.Fatal(err)
		}
		x.one(i, &want, depth, fde.End-uint64(delta)) //nolint:gosec // a distance
		depth.step(&x.code[i])
	}
}

func (x *exactRows) isSymbol(pc uint64) bool {
	s, ok := x.module.Code.symbolAt(pc)
	return ok && s.Start == pc
}

// one compares the row of an instruction.
func (x *exactRows) one(i int, want *cfi.Row, depth *depthModel, end uint64) {
	instruction := &x.code[i]
	row, err := x.module.Row(x.t.Context(), instruction.address, true)
	if err != nil {
		x.count(instruction, "no row: unknown", err.Error(), machoRowText(want))
		return
	}
	got, cfa := row.Rules, want.CFA
	if left, restoresFP, ok := x.untilReturn(i, end); ok && (!restoresFP || got.CFA.Register == x.sp) {
		cfa = cfi.CFARule{Kind: cfi.CFARegister, Register: x.sp, Offset: left}
	}
	kind := string(row.By) + " "
	switch {
	case got.CFA.Register == cfa.Register && got.CFA.Offset == cfa.Offset:
		kind += "equal"
	case got.CFA.Register == x.sp && depth.isKnown() && got.CFA.Offset == depth.now && x.isMinimal():
		kind += "equal by the depth of the stack"
	case got.CFA.Register == cfa.Register:
		kind += "other CFA"
	case got.CFA.Register == x.sp && depth.isKnown() && got.CFA.Offset == depth.now:
		kind += "equal by the depth of the stack"
	default:
		kind += "unknown"
	}
	for _, r := range got.Rules {
		if x.isMinimal() {
			break
		}
		if rule, _ := want.Rule(r.Column); r.Rule.Kind == cfi.Offset && (rule.Kind != cfi.Offset || rule.Offset != r.Rule.Offset) {
			kind = string(row.By) + " other register"
		}
	}
	x.count(instruction, kind, machoRowText(got), machoRowText(want))
}

func (x *exactRows) count(i *listedInstruction, kind, got, want string) {
	s, _ := x.module.Code.symbolAt(i.address)
	switch {
	case x.isMinimal() && strings.HasPrefix(s.Name, "OUTLINED_FUNCTION"):
		kind = "not compared: an epilogue that functions share, of which DWARF says nothing"
	case x.isMinimal() && strings.Contains(kind, "unknown"):
		kind = "not compared: an epilogue without DWARF, where the depth of the stack was in a variable"
	case s.Name == "array" && strings.Contains(kind, "unknown"):
		kind = "not compared: the depth of the stack is in a variable"
	}
	x.total[x.program.Arch+" "+kind]++
	if strings.Contains(kind, "other CFA") || strings.Contains(kind, "other register") || strings.Contains(kind, "unknown") {
		x.t.Logf("%s %s-%s %#x %s %s: %s, want %s", kind, x.program.Name, x.program.Arch, i.address, i.name, i.operands, got, want)
	}
}

// isMinimal reports whether the DWARF of a program for arm64 has no rows of epilogues nevertheless: Clang writes
// none where it makes programs small.
func (x *exactRows) isMinimal() bool {
	return x.program.Arch == "arm64" && slices.Contains(x.program.Options, "-Oz")
}

// untilReturn is how far above the stack pointer the CFA is where only pops and a return, or a jump to another
// function, follow.
func (x *exactRows) untilReturn(i int, end uint64) (above int64, restoresFP, ok bool) {
	if x.program.Arch == "arm64" {
		return 0, false, false
	}
	for above = 8; i < len(x.code); i++ {
		c := &x.code[i]
		number, _ := strconv.ParseInt(strings.TrimPrefix(strings.TrimSuffix(c.operands, ", %rsp"), "$"), 0, 64)
		switch {
		case strings.HasPrefix(c.name, "ret"):
			return above, restoresFP, true
		case c.name == "jmp":
			target, err := strconv.ParseUint(strings.TrimPrefix(strings.Fields(c.operands + " -")[0], "0x"), 16, 64)
			_, isFunction := x.same[target]
			return above, restoresFP, err == nil && (target >= end || isFunction)
		case strings.HasPrefix(c.name, "pop"):
			above += 8
			restoresFP = restoresFP || c.operands == "%rbp"
		case c.name == "addq" && strings.HasSuffix(c.operands, ", %rsp") && strings.HasPrefix(c.operands, "$"):
			above += number
		default:
			return 0, false, false
		}
	}
	return 0, false, false
}

// depthModel is the depth of the stack by the instructions from a function's start on, in their order.
type depthModel struct {
	arch    string
	now     int64
	body    int64
	unknown bool
}

func (d *depthModel) isKnown() bool { return !d.unknown }

// step goes on behind an instruction.
func (d *depthModel) step(i *listedInstruction) {
	if d.arch == "x86_64" {
		d.stepX64(i)
		return
	}
	writesSP := strings.HasPrefix(i.operands, "sp,") || strings.Contains(i.operands, "]!") || strings.Contains(i.operands, "], #")
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(strings.Trim(s, "#]!, "), 0, 64)
		return n
	}
	fields := strings.Split(i.operands, ", ")
	last := fields[len(fields)-1]
	switch {
	case i.name == "ret" || i.name == "b" || i.name == "br" || i.name == "brk":
		d.now = d.body
		return
	case !writesSP || !strings.Contains(i.operands, "sp"):
		return
	case i.name == "sub" && strings.HasPrefix(i.operands, "sp, sp, #"):
		n := number(fields[2])
		if last == "lsl #12" {
			n <<= 12
		}
		d.now += n
	case i.name == "add" && strings.HasPrefix(i.operands, "sp, sp, #"):
		n := number(fields[2])
		if last == "lsl #12" {
			n <<= 12
		}
		d.now -= n
	case strings.HasSuffix(last, "]!") && strings.Contains(i.operands, "[sp"):
		d.now -= number(last)
	case strings.Contains(i.operands, "[sp], #"):
		d.now -= number(last)
	default:
		d.unknown = true
	}
	d.body = max(d.body, d.now)
}

func (d *depthModel) stepX64(i *listedInstruction) {
	if d.now == 0 {
		d.now, d.body = 8, 8
	}
	number, _ := strconv.ParseInt(strings.TrimPrefix(strings.TrimSuffix(i.operands, ", %rsp"), "$"), 0, 64)
	switch {
	case strings.HasPrefix(i.name, "ret"), i.name == "jmp", i.name == "ud2":
		d.now = d.body
		return
	case strings.HasPrefix(i.name, "push"):
		d.now += 8
	case strings.HasPrefix(i.name, "pop"):
		d.now -= 8
	case strings.HasPrefix(i.name, "cmp") || strings.HasPrefix(i.name, "test"):
	case i.name == "subq" && strings.HasPrefix(i.operands, "$") && strings.HasSuffix(i.operands, ", %rsp"):
		d.now += number
	case i.name == "addq" && strings.HasPrefix(i.operands, "$") && strings.HasSuffix(i.operands, ", %rsp"):
		d.now -= number
	case strings.HasSuffix(i.operands, ", %rsp"):
		d.unknown = true
	}
	d.body = max(d.body, d.now)
}
