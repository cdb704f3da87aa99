// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// This file compares call frame information with the code. LLVM 23 takes the stack pointer
// of processors with architected flat scratch, which counts the bytes of a lane, for an
// address of the wave, and has scalar registers in lanes of a vector register that the
// epilogue has restored already. A register without a rule is no contradiction: the engine
// takes its rule from the code.

// The contradictions between call frame information and the code.
const (
	wrongUnit   = "its CFA takes the bytes of a lane that the stack pointer counts for bytes of the wave, or the other way round"
	wrongCFA    = "its CFA is another address than the stack pointer on entry"
	wrongReturn = "it has the return address where the code has something else"
	wrongExec   = "it has EXEC of the caller where the code has something else"
	wrongScalar = "it has a scalar register of the caller where the code has something else"
	wrongVector = "it has a vector register of the caller where the code has something else"
	wrongLanes  = "it has all lanes of a vector register in memory where the code saves those alone that were not active"
)

// maxCheckedRules bounds the rules of an FDE that is compared with the code, maxPieces the
// bytes of an expression of pieces.
const (
	maxCheckedRules = 1 << 18
	maxPieces       = 64
)

// frameTable is a section of call frame information.
type frameTable struct {
	*cfi.Table
	isEH bool // .eh_frame
}

// frameCheck is the call frame information of an object.
type frameCheck struct {
	tables  []frameTable
	dialect *locexpr.Dialect
	// The FDE that was loaded last, and its rows.
	start, end uint64
	rows       []cfi.Row
	isEH       bool // it is in .eh_frame, which LLVM writes from version 23 on
}

// row returns the row at an address; nil where there is none with a CFA.
func (c *frameCheck) row(pc uint64) *cfi.Row {
	if pc < c.start || pc >= c.end {
		c.load(pc)
	}
	i, found := slices.BinarySearchFunc(c.rows, pc, func(r cfi.Row, pc uint64) int { return cmp.Compare(r.Start, pc) })
	if !found {
		i--
	}
	if i < 0 || pc >= c.rows[i].End || c.rows[i].CFA.Kind == cfi.NoCFA {
		return nil
	}
	return &c.rows[i]
}

// load takes the rows of the first FDE at an address that has any.
func (c *frameCheck) load(pc uint64) {
	c.start, c.end, c.rows, c.isEH = pc, pc+1, nil, false
	for _, t := range c.tables {
		fde, err := t.FDE(pc)
		if err != nil {
			continue
		}
		rules, isWhole := 0, true
		var rows []cfi.Row
		err = fde.Rows(func(r *cfi.Row) bool {
			rules += 1 + len(r.Rules)
			isWhole = rules <= maxCheckedRules
			rows = append(rows, *r.Clone())
			return isWhole
		})
		if err == nil && len(rows) > 0 && rows[0].CFA.Kind != cfi.NoCFA {
			c.start, c.end, c.isEH = fde.Start, fde.End, t.isEH
			if isWhole {
				c.rows = rows
			}
			return
		}
	}
}

// contradiction describes how call frame information contradicts the code before an
// instruction, or during it where it is a call; "" where the code shows no contradiction.
// v is the view of the state.
func (x *viewer) contradiction(c *frameCheck, pc uint64, s *codeState, v *view) string {
	row := c.row(pc)
	if row == nil {
		return ""
	}
	if back, isSaid := row.Rule(uint64(pc64)); !isSaid || back.Kind == cfi.Undefined {
		return "" // a kernel
	}
	k := comparison{viewer: x, check: c, row: row, state: s, view: v}
	if reason := k.cfa(); reason == wrongUnit || reason != "" && c.isEH {
		return reason
	}
	exec := exec32
	if x.lanes == wave64 {
		exec = exec64
	}
	low, high := entryMask, entryMask
	high.isHigh = true
	switch {
	case k.differs(pc64, entryOf(returnLow), entryOf(returnHigh)):
		return wrongReturn
	case k.isMoved(exec) && k.canTellExec(exec) && k.differs(exec, []scalar{low, high}[:x.lanes/32]...):
		return wrongExec
	}
	if !c.isEH {
		return "" // other registers are left behind in epilogues as well
	}
	return k.registers()
}

// registers describes a contradiction in the rules of registers that may have any
// value.
func (k *comparison) registers() string {
	for r := range isa.Reg(namedScalars) {
		if k.differs(dwarfScalar(r), entryOf(r)) {
			return wrongScalar
		}
	}
	for i := range k.vectors {
		switch t := &k.vectors[i]; {
		case t.isLost && k.hasTooManyLanes(t):
			return wrongLanes
		case k.hasOtherLanes(t):
			return wrongVector
		}
	}
	return ""
}

// comparison compares one row with the state at one instruction.
type comparison struct {
	*viewer
	check *frameCheck
	row   *cfi.Row
	state *codeState
	view  *view
}

// hasOther reports whether the code shows that something else than a value is at a site, in
// waves of some masks at least. Where the code does not tell, the row may be right: for
// registers that a call loses, too.
func (k *comparison) hasOther(s site, want scalar) bool {
	switch {
	case s.kind == inScalar && k.isKept(s.reg):
		v := k.state.scalars[s.reg]
		return v.kind != unknownScalar && v != want
	case s.kind == inLane && k.isKeptPlace(s.place):
		v := k.state.at(s.place)
		l := laneValue{active: v.active, inactive: v.inactive}
		for i := range v.lanes {
			if v.lanes[i].lane == s.lane {
				l = v.lanes[i]
			}
		}
		own := scalarPart(want)
		return l.active.isOther(own) || l.inactive.isOther(own)
	}
	return false
}

// cfa describes a contradiction in the rule of the CFA.
func (k *comparison) cfa() string {
	a, ok := k.cfaAddress()
	if !ok {
		return ""
	}
	v := scalar{}
	if k.isKept(a.reg) {
		v = k.state.scalars[a.reg]
	}
	if v.kind == unknownScalar {
		return ""
	}
	if v.kind != entryScalar || isa.Reg(v.id) != stackPointer || int64(int32(v.add))+a.add+a.offset>>a.shift != 0 { //nolint:gosec // signed
		return wrongCFA
	}
	unit := uint64(0)
	if k.isPerLane {
		unit = uint64(bits.TrailingZeros32(k.lanes)) //nolint:gosec // 5 or 6
	}
	isSeen := k.processor.scratch == architectedScratch || k.step.isByLane != k.step.isByWave
	if a.shift != unit && isSeen {
		return wrongUnit
	}
	return ""
}

// pointerSum is an address in private_wave: a register's value, plus add, shifted,
// plus offset.
type pointerSum struct {
	reg    isa.Reg
	add    int64
	shift  uint64
	offset int64
}

// cfaAddress returns the rule of the CFA as such a sum; ok is false where it is something
// else.
func (k *comparison) cfaAddress() (a pointerSum, ok bool) {
	rule := &k.row.CFA
	if rule.Kind == cfi.CFARegister {
		a.reg, ok = scalarOf(rule.Register)
		a.offset = rule.Offset
		return a, ok && rule.Space == privateWave
	}
	var numbers []int64
	isAddress := false
	pop := func() (n int64) {
		if len(numbers) > 0 {
			n, numbers = numbers[len(numbers)-1], numbers[:len(numbers)-1]
		}
		return n
	}
	sum := &a.add
	for instruction, err := range locexpr.Decode(rule.Expr, k.check.dialect, 8, locexpr.LittleEndian) {
		if err != nil {
			return a, false
		}
		name := strings.TrimPrefix(strings.TrimPrefix(instruction.Op.Name, "DW_OP_"), "LLVM_")
		switch n, isNumber := numberOf(name, &instruction); {
		case isNumber:
			numbers = append(numbers, n)
		case name == "regx":
			if a.reg, ok = scalarOf(instruction.Operands[0]); !ok {
				return a, false
			}
		case name == "deref_size" && ok:
		case name == "plus":
			*sum += pop()
		case name == "minus":
			*sum -= pop()
		case name == "plus_uconst", name == "offset_uconst" && isAddress:
			*sum += int64(instruction.Operands[0]) //nolint:gosec // of any size
		case name == "shl":
			a.shift, sum = uint64(pop())&63, &a.offset //nolint:gosec // six bits
		case name == "form_aspace_address" && pop() == int64(privateWave):
			isAddress, sum = true, &a.offset
		default:
			return a, false
		}
	}
	return a, ok && isAddress
}

// numberOf returns the number that an operation pushes.
func numberOf(name string, instruction *locexpr.Instruction) (n int64, ok bool) {
	if digits, isLiteral := strings.CutPrefix(name, "lit"); isLiteral {
		n, err := strconv.ParseInt(digits, 10, 8)
		return n, err == nil
	}
	return int64(instruction.Operands[0]), strings.HasPrefix(name, "const") //nolint:gosec // of any size
}

// scalarOf returns the scalar register of a DWARF number; the low half of VCC and
// EXEC.
func scalarOf(column uint64) (r isa.Reg, ok bool) {
	switch {
	case column-uint64(sgpr0) < 64:
		return isa.Reg(column - uint64(sgpr0)), true
	case column-uint64(sgpr64) < namedScalars-64:
		return isa.Reg(column-uint64(sgpr64)) + 64, true
	case column == uint64(vcc32), column == uint64(vcc64):
		return isa.VCCLo, true
	case column == uint64(exec32), column == uint64(exec64):
		return isa.ExecLo, true
	}
	return 0, false
}

// vectorOf returns the place of a vector register's DWARF number.
func vectorOf(column uint64, lanes uint32) (p place, ok bool) {
	for i := range vectors {
		if n := dwarfVector(place(i), lanes); n != noColumn && uint64(n) == column {
			return place(i), true
		}
	}
	return 0, false
}

// codeRule returns the rule of a column that the code shows; nil where the register is
// unchanged since entry.
func (v *view) codeRule(column uint32) *rule {
	i, found := slices.BinarySearchFunc(v.rules, column, func(r rule, column uint32) int { return cmp.Compare(r.column, column) })
	if !found {
		return nil
	}
	return &v.rules[i]
}

// isMoved reports whether the row has a register elsewhere than in itself.
func (k *comparison) isMoved(column uint32) bool {
	said, _ := k.row.Rule(uint64(column))
	return said.Kind != cfi.SameValue
}

// canTellExec reports whether the code shows where EXEC of the caller is.
func (k *comparison) canTellExec(column uint32) bool {
	code := k.view.codeRule(column)
	return code == nil || code.kind != undefinedRule
}

// differs reports whether the row has a register of the caller's where the code shows that
// something else is. want has its values, by 32 bits.
func (k *comparison) differs(column uint32, want ...scalar) bool {
	said, _ := k.row.Rule(uint64(column))
	sites, ok := k.sites(column, said, len(want))
	if !ok || !k.check.isEH && k.isInPlace(want) {
		return false
	}
	for i := range want {
		if k.hasOther(sites[i], want[i]) {
			return true
		}
	}
	return false
}

// isInPlace reports whether registers have their values on entry. Rules of .debug_frame are
// believed there: ROCm's compilers keep their rules for saved registers in epilogues.
func (k *comparison) isInPlace(want []scalar) bool {
	for _, v := range want {
		r := isa.Reg(v.id)
		switch {
		case v == entryMask:
			r = isa.ExecLo
		case v.kind == maskScalar:
			r = isa.ExecHi
		}
		if !k.isKept(r) || k.state.scalars[r] != v {
			return false
		}
	}
	return true
}

// sites returns where a rule has the words of a register; ok is false where the rule
// does not tell, or is an expression without pieces.
func (k *comparison) sites(column uint32, said cfi.Rule, words int) (sites []site, ok bool) {
	switch said.Kind {
	case cfi.SameValue:
		return k.registerSites(uint64(column), 0, words)
	case cfi.Register:
		return k.registerSites(said.Register, 0, words)
	case cfi.Offset:
		return k.memorySites(said.Offset, words), !k.now.hasBases
	case cfi.Expression:
		return k.pieces(said.Expr, words)
	}
	return nil, false
}

// registerSites returns the sites of words of a register, from an offset in
// bytes on.
func (k *comparison) registerSites(column uint64, offset int64, words int) (sites []site, ok bool) {
	if r, isScalar := scalarOf(column); isScalar {
		r += isa.Reg(offset / 4)
		if int(r)+words > scalars || r < namedScalars && (offset != 0 || words != 1) {
			return nil, false
		}
		for i := range words {
			sites = append(sites, site{kind: inScalar, reg: r + isa.Reg(i)})
		}
		return sites, true
	}
	p, ok := vectorOf(column, k.lanes)
	lane := offset / 4
	if !ok || offset < 0 || lane+int64(words) > int64(k.lanes) {
		return nil, false
	}
	for i := range words {
		sites = append(sites, site{kind: inLane, place: p, lane: uint8(lane) + uint8(i)}) //nolint:gosec // below 64
	}
	return sites, true
}

// memorySites returns the sites of words in memory, from an offset to the CFA on. Where
// places are relative to a stack pointer that the function aligned, their contents are not
// known.
func (k *comparison) memorySites(offset int64, words int) (sites []site) {
	for range words {
		word := offset >> 2
		p := private(0, int32(word/int64(k.lanes)*4))                                                    //nolint:gosec // a distant place is none of the function's
		sites = append(sites, site{kind: inLane, place: p, lane: uint8(uint64(word) % uint64(k.lanes))}) //nolint:gosec // below 64
		offset += 4
	}
	return sites
}

// pieces returns the sites of the words of an expression that consists of pieces of
// registers and memory.
func (k *comparison) pieces(expr []byte, words int) (sites []site, ok bool) {
	if len(expr) > maxPieces {
		return nil, false
	}
	column, offset, isMemory := uint64(0), int64(0), true // the CFA is the initial location
	add := func(start int64, n int) bool {
		if isMemory {
			sites = append(sites, k.memorySites(start, n)...)
			return !k.now.hasBases
		}
		list, ok := k.registerSites(column, start, n)
		sites = append(sites, list...)
		return ok
	}
	for instruction, err := range locexpr.Decode(expr, k.check.dialect, 8, locexpr.LittleEndian) {
		if err != nil {
			return nil, false
		}
		name, n := strings.TrimPrefix(instruction.Op.Name, "DW_OP_"), int64(instruction.Operands[0]) //nolint:gosec // compared below
		ok := len(sites) < words
		switch {
		case name == "regx":
			column, offset, isMemory = instruction.Operands[0], 0, false
		case name == "LLVM_offset_uconst" && n >= 0 && n < 1<<30:
			offset += n
		case name == "piece" && n == 4:
			ok = ok && add(offset, 1)
		case name == "bit_piece" && n == 32 && instruction.Operands[1]%32 == 0 && instruction.Operands[1] < 1<<30:
			ok = ok && add(offset+int64(instruction.Operands[1]/8), 1) //nolint:gosec // small
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	if len(sites) == 0 && !add(offset, words) {
		return nil, false
	}
	return sites, len(sites) == words
}

// hasTooManyLanes reports whether the row has a vector register that calls may change in memory,
// and the code saves there the lanes alone that were not active on entry.
func (k *comparison) hasTooManyLanes(t *touchedVector) bool {
	said, _ := k.row.Rule(uint64(t.column))
	code := k.view.codeRule(t.column)
	return said.Kind == cfi.Offset && code != nil && code.kind == vectorRule && code.sites[0].kind == nowhere && code.sites[1].kind != nowhere
}

// hasOtherLanes reports whether the row has a vector register where the code shows that a lane
// has another value.
func (k *comparison) hasOtherLanes(t *touchedVector) bool {
	said, _ := k.row.Rule(uint64(t.column))
	p, ok := t.place, said.Kind == cfi.SameValue
	switch said.Kind {
	case cfi.Offset:
		slot := int64(4 * k.lanes)
		p, ok = private(0, int32(said.Offset/slot*4)), said.Offset%slot == 0 && !k.now.hasBases //nolint:gosec // a distant place is none of the function's
	case cfi.Register:
		p, ok = vectorOf(said.Register, k.lanes)
	}
	if !ok || !k.isKeptPlace(p) {
		return false
	}
	v, own := k.state.at(p), part{kind: entryPart, id: uint16(t.place)} //nolint:gosec // the number of a vector register
	return v.active.isOther(own) || v.inactive.isOther(own) ||
		slices.ContainsFunc(v.lanes, func(l laneValue) bool { return l.active.isOther(own) || l.inactive.isOther(own) })
}

// isOther reports whether the value of lanes is known, and another one than they should
// have.
func (p part) isOther(want part) bool { return p.kind != unknownPart && p != want }
