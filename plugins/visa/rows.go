// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"cmp"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// rows returns the rows of a function: in order, not overlapping, with gaps
// where nothing is known. There is a row wherever one of these is known:
//
//   - Before its frame is set up, and after it is taken down, the descriptor is the
//     caller's, with the return address in it. The frame will be, or was, where the
//     caller's stack pointer points to.
//   - In between, the descriptor is saved in the frame. The row of an instruction
//     holds before it is executed, so that the one that takes the frame down is in
//     the frame yet.
//   - In a subroutine, the return address is in a register of its own.
//
// The CFA is always where the frame begins, in the scratch space: the address
// in the caller's stack pointer. (Compilers before July 2024 write the caller's
// frame pointer for it, and it serves as well to tell frames apart.)
//
// The default rules list the registers that a function keeps.
func (f *function) rows() []cfi.Row {
	var rows []cfi.Row
	cuts := f.cuts()
	for i, offset := range cuts[:len(cuts)-1] {
		row, ok := f.rowAt(offset)
		if !ok {
			continue
		}
		row.Start, row.End = f.start+offset, f.start+cuts[i+1]
		rows = append(rows, row)
	}
	return rows
}

// cuts returns the offsets at which something changes, 0 and the function's
// size among them.
func (f *function) cuts() []uint64 {
	cuts := []uint64{0, f.size, f.set, f.down, f.inFrameEnd(), f.maskStored}
	if f.restored != 0 {
		cuts = append(cuts, f.restored)
	}
	for _, list := range [...][]saves{f.calleeSaves, f.callerSaves} {
		for i := range list {
			cuts = append(cuts, list[i].start)
		}
	}
	for i := range f.subroutines {
		cuts = append(cuts, f.subroutines[i].start, f.subroutines[i].end)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	return slices.DeleteFunc(cuts, func(offset uint64) bool { return offset > f.size })
}

// inFrameEnd returns the offset up to which the frame is known to be in use.
func (f *function) inFrameEnd() uint64 {
	switch {
	case f.isKernel:
		return f.down
	case f.restored != 0:
		return f.restored
	}
	return min(f.down+1, f.size) // before the instruction at down is executed
}

// rowAt returns the row at an offset, without its bounds.
func (f *function) rowAt(offset uint64) (row cfi.Row, ok bool) {
	row.ReturnAddress = uint64(ip)
	inFrame := f.abi != nil && offset >= f.set && offset < f.inFrameEnd()
	if s := f.subroutineAt(offset); s != nil {
		switch {
		case !inFrame && f.abi != nil:
			return row, false
		case inFrame && f.unit != 0:
			row.CFA = f.cfa(f.abi.fp)
		default:
			row.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: expression{}.constant(0).inScratch()}
		}
		row.Rules = []cfi.RegisterRule{{Column: uint64(ip), Rule: cfi.Rule{
			Kind: cfi.Expression, Expr: expression{}.drop().inRegister(s.register, s.offset),
		}}}
		f.outerReturns(&row, s)
		f.callSite(&row, offset, inFrame)
		return row, true
	}
	if f.hasUnfound || f.abi == nil || f.unit == 0 {
		return row, false
	}
	switch {
	case inFrame:
		row.CFA = f.cfa(f.abi.fp)
		f.frameRules(&row, offset)
		f.callSite(&row, offset, inFrame)
	case f.isKernel:
		return row, false
	case offset < f.set, f.restored != 0 && offset >= f.restored:
		row.CFA = f.cfa(f.abi.sp)
		row.Rules = []cfi.RegisterRule{{Column: uint64(ip), Rule: cfi.Rule{
			Kind: cfi.Expression, Expr: expression{}.drop().inRegister(f.abi.descriptor, f.abi.ip),
		}}}
		f.savesLeft(&row, offset)
	default:
		return row, false
	}
	return row, true
}

// outerReturns adds the rules of registers with return addresses of the
// subroutines which may have called s. It adds only return addresses that stay
// in their registers throughout. The other bytes of these registers are not
// known.
func (f *function) outerReturns(row *cfi.Row, s *subroutine) {
	bytes := map[uint32][]uint64{}
	for i := range f.subroutines {
		o := &f.subroutines[i]
		if (o.register != s.register || o.offset != s.offset) && o.live.Start <= s.first && o.live.End >= s.last {
			bytes[o.register] = append(bytes[o.register], o.offset)
		}
	}
	for register, list := range bytes {
		if f.abi != nil && register == f.abi.descriptor {
			continue
		}
		slices.Sort(list)
		e, next := expression{}.drop(), uint64(0)
		for _, offset := range list {
			if offset < next {
				continue
			}
			if offset > next {
				e = e.piece(offset - next)
			}
			e = e.inRegister(register, offset).piece(returnSize)
			next = offset + returnSize
		}
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(register), Rule: cfi.Rule{Kind: cfi.Expression, Expr: e}})
	}
	slices.SortFunc(row.Rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
}

// returnSize is the size of a return address in bytes.
const returnSize = 4

// cfa returns the rule of a CFA that a byte of the descriptor has.
func (f *function) cfa(offset uint64) cfi.CFARule {
	return cfi.CFARule{Kind: cfi.CFAExpression, Expr: expression{}.framePointer(f.abi.descriptor, offset, f.unit).inScratch()}
}

// frameRules adds the rules of a row in the frame.
func (f *function) frameRules(row *cfi.Row, offset uint64) {
	if f.isKernel {
		row.Rules = []cfi.RegisterRule{{Column: uint64(ip), Rule: cfi.Rule{Kind: cfi.Undefined}}}
		return
	}
	rules := []cfi.RegisterRule{
		{Column: uint64(ip), Rule: savedAt(f.descriptor + f.abi.ip)},
		{Column: uint64(f.abi.descriptor), Rule: f.descriptorRule()},
	}
	if f.maskStored != 0 && offset >= f.maskStored {
		rules = append(rules, cfi.RegisterRule{Column: uint64(emask), Rule: savedAt(f.maskAt)})
	}
	row.Rules = rules
	f.savesLeft(row, offset)
}

// savesLeft adds the rules of registers that are saved in the frame, and sorts
// all rules.
func (f *function) savesLeft(row *cfi.Row, offset uint64) {
	for _, s := range savesAt(f.calleeSaves, offset) {
		if s.register != f.abi.descriptor {
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(s.register), Rule: s.rule()})
		}
	}
	slices.SortFunc(row.Rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
}

// descriptorSize is how many bytes of the descriptor are sure to be saved; the
// others have no meaning.
const descriptorSize = 32

// descriptorRule returns where the descriptor is saved. Some compilers save half
// of a register of 64 bytes.
func (f *function) descriptorRule() cfi.Rule {
	if f.grf == grf32/8 {
		return savedAt(f.descriptor)
	}
	e := expression{}
	if f.descriptor != 0 {
		e = e.offset(f.descriptor)
	}
	return cfi.Rule{Kind: cfi.Expression, Expr: e.piece(descriptorSize)}
}

// callSite adds the rules of registers that the function saved before a call.
func (f *function) callSite(row *cfi.Row, offset uint64, inFrame bool) {
	if !inFrame || f.unit == 0 {
		return
	}
	for _, s := range savesAt(f.callerSaves, offset) {
		row.CallSite = append(row.CallSite, cfi.RegisterRule{Column: uint64(s.register), Rule: s.rule()})
	}
}

// savedAt returns the rule of a register that is saved at a byte of the
// frame.
func savedAt(offset uint64) cfi.Rule {
	return cfi.Rule{Kind: cfi.Offset, Offset: int64(offset)} //nolint:gosec // less than 2^31: a stream's offset
}

// rule returns where the register is saved.
func (s *saved) rule() cfi.Rule {
	if !s.isKnown {
		return cfi.Rule{Kind: cfi.Undefined}
	}
	return savedAt(s.offset)
}

// savesAt returns the registers that are saved at an offset.
func savesAt(list []saves, offset uint64) []saved {
	i := sort.Search(len(list), func(i int) bool { return list[i].start > offset })
	if i == 0 {
		return nil
	}
	return list[i-1].registers
}

// subroutineAt returns the subroutine at an offset; nil where there is none.
func (f *function) subroutineAt(offset uint64) *subroutine {
	for i := range f.subroutines {
		if s := &f.subroutines[i]; offset >= s.start && offset < s.end {
			return s
		}
	}
	return nil
}

// defaultRulesOf returns the default rules of a function, or of a subroutine of
// it.
//
// A subroutine and its caller use one allocation of registers, as one function. The
// subroutine leaves alone the registers that its caller needs, which are not known
// except the descriptor. (The compiler writes that it leaves all alone.)
func (f *function) defaultRulesOf(sub bool) []cfi.RegisterRule {
	rules := defaultRules()
	if f.abi == nil {
		return rules
	}
	for i := range rules {
		n, general := generalNumber(uint32(rules[i].Column)) //nolint:gosec // a number of Description
		if general && (!sub && f.abi.keeps(n) || generalRegister(n) == f.abi.descriptor) {
			rules[i].Rule = cfi.Rule{Kind: cfi.SameValue}
		}
	}
	return rules
}

// generalNumber returns the number of a register among the general ones.
func generalNumber(dwarf uint32) (n uint32, ok bool) {
	switch {
	case dwarf-r0 < 256:
		return dwarf - r0, true
	case dwarf-r256 < 256:
		return dwarf - r256 + 256, true
	}
	return 0, false
}

// shortestInstruction is the size of a compacted instruction.
const shortestInstruction = 8

// functions returns the ranges of the function for the engine: its
// subroutines, and the rest of its own.
func (f *function) functions(section, lanes uint32) []sdk.Function {
	own := sdk.Function{Name: f.name, Section: section, Lanes: lanes, Kind: sdk.OrdinaryFunction}
	if f.isUnnamed {
		own.Name = ""
	}
	switch {
	case f.isKernel && !f.hasUnfound:
		own.Kind = sdk.KernelFunction
	case !f.isKernel:
		own.DefaultRules = f.defaultRulesOf(false)
	}
	var list []sdk.Function
	add := func(g sdk.Function, start, end uint64) {
		if start < end {
			g.Start, g.End = f.start+start, f.start+end
			list = append(list, g)
		}
	}
	next := uint64(0)
	if f.hasUnfound && !f.isUnnamed {
		// The rest may be a subroutine's.
		next = min(f.size, shortestInstruction)
		add(own, 0, next)
		own.Name = ""
	}
	for i := range f.subroutines {
		s := &f.subroutines[i]
		add(own, next, s.start)
		add(sdk.Function{Name: s.name, Section: section, Lanes: lanes, DefaultRules: f.defaultRulesOf(true)}, s.start, s.end)
		next = s.end
	}
	add(own, next, f.size)
	return list
}
