// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"cmp"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// rows are those of a function: in order, not overlapping, with gaps where
// nothing is known. It has a row wherever one of these is known:
//
//   - Before its frame is set up, and after it is taken down, the descriptor is the
//     caller's, with the return address in it. The frame will be, or was, where the
//     caller's stack pointer points to.
//   - In between, the descriptor is saved in the frame. The row of an instruction
//     holds before it is executed, so that the one that takes the frame down is in
//     the frame yet.
//   - In a subroutine, the return address is in a register of its own.
//
// The CFA is in all of these where the frame begins, in the scratch space: what
// the caller's stack pointer points to. (Compilers before July 2024 write the
// caller's frame pointer for it, and it serves as well to tell frames apart.)
//
// The registers that a function keeps are those of its default rules.
func (f *function) rows() []cfi.Row {
	var rows []cfi.Row
	cuts := f.cuts()
	for i, at := range cuts[:len(cuts)-1] {
		row, ok := f.rowAt(at)
		if !ok {
			continue
		}
		row.Start, row.End = f.start+at, f.start+cuts[i+1]
		rows = append(rows, row)
	}
	return rows
}

// cuts are the offsets at which something changes, 0 and the function's size
// among them.
func (f *function) cuts() []uint64 {
	cuts := []uint64{0, f.size, f.set, f.down, f.inFrameEnd(), f.maskStored}
	if f.restored != 0 {
		cuts = append(cuts, f.restored)
	}
	for _, list := range [...][]saves{f.calleeSaves, f.callerSaves} {
		for i := range list {
			cuts = append(cuts, list[i].at)
		}
	}
	for i := range f.subroutines {
		cuts = append(cuts, f.subroutines[i].start, f.subroutines[i].end)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	return slices.DeleteFunc(cuts, func(at uint64) bool { return at > f.size })
}

// inFrameEnd is the offset up to which the frame is known to be in use.
func (f *function) inFrameEnd() uint64 {
	switch {
	case f.isKernel:
		return f.down
	case f.restored != 0:
		return f.restored
	}
	return min(f.down+1, f.size) // before the instruction at down is executed
}

// rowAt is the row at an offset, without its bounds.
func (f *function) rowAt(at uint64) (row cfi.Row, ok bool) {
	row.ReturnAddress = uint64(ip)
	inFrame := f.abi != nil && at >= f.set && at < f.inFrameEnd()
	if s := f.subroutineAt(at); s != nil {
		switch {
		case !inFrame && f.abi != nil:
			return row, false
		case inFrame && f.unit != 0:
			row.CFA = f.cfa(f.abi.fp)
		default:
			row.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: expression{}.constant(0).inScratch()}
		}
		row.Rules = []cfi.RegisterRule{{Column: uint64(ip), Rule: cfi.Rule{
			Kind: cfi.Expression, Expr: expression{}.drop().inRegister(s.register, s.at),
		}}}
		f.outerReturns(&row, s)
		f.callSite(&row, at, inFrame)
		return row, true
	}
	if f.hasUnfound || f.abi == nil || f.unit == 0 {
		return row, false
	}
	switch {
	case inFrame:
		row.CFA = f.cfa(f.abi.fp)
		f.frameRules(&row, at)
		f.callSite(&row, at, inFrame)
	case f.isKernel:
		return row, false
	case at < f.set, f.restored != 0 && at >= f.restored:
		row.CFA = f.cfa(f.abi.sp)
		row.Rules = []cfi.RegisterRule{{Column: uint64(ip), Rule: cfi.Rule{
			Kind: cfi.Expression, Expr: expression{}.drop().inRegister(f.abi.descriptor, f.abi.ip),
		}}}
		f.savesLeft(&row, at)
	default:
		return row, false
	}
	return row, true
}

// outerReturns adds the rules of registers that hold return addresses of the
// subroutines which may have called s. Only those are added whose return address
// stays in its register throughout. Nothing is known of the other bytes of these
// registers.
func (f *function) outerReturns(row *cfi.Row, s *subroutine) {
	bytes := map[uint32][]uint64{}
	for i := range f.subroutines {
		o := &f.subroutines[i]
		if (o.register != s.register || o.at != s.at) && o.live.Start <= s.first && o.live.End >= s.last {
			bytes[o.register] = append(bytes[o.register], o.at)
		}
	}
	for register, list := range bytes {
		if f.abi != nil && register == f.abi.descriptor {
			continue
		}
		slices.Sort(list)
		e, next := expression{}.drop(), uint64(0)
		for _, at := range list {
			if at < next {
				continue
			}
			if at > next {
				e = e.piece(at - next)
			}
			e = e.inRegister(register, at).piece(returnSize)
			next = at + returnSize
		}
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(register), Rule: cfi.Rule{Kind: cfi.Expression, Expr: e}})
	}
	slices.SortFunc(row.Rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
}

// returnSize is how many bytes a return address has.
const returnSize = 4

// cfa is the address in the scratch space that a byte of the descriptor has.
func (f *function) cfa(at uint64) cfi.CFARule {
	return cfi.CFARule{Kind: cfi.CFAExpression, Expr: expression{}.framePointer(f.abi.descriptor, at, f.unit).inScratch()}
}

// frameRules are the rules of a row in the frame.
func (f *function) frameRules(row *cfi.Row, at uint64) {
	if f.isKernel {
		row.Rules = []cfi.RegisterRule{{Column: uint64(ip), Rule: cfi.Rule{Kind: cfi.Undefined}}}
		return
	}
	rules := []cfi.RegisterRule{
		{Column: uint64(ip), Rule: savedAt(f.descriptor + f.abi.ip)},
		{Column: uint64(f.abi.descriptor), Rule: f.descriptorRule()},
	}
	if f.maskStored != 0 && at >= f.maskStored {
		rules = append(rules, cfi.RegisterRule{Column: uint64(emask), Rule: savedAt(f.maskAt)})
	}
	row.Rules = rules
	f.savesLeft(row, at)
}

// savesLeft adds the rules of registers that are saved in the frame, and sorts
// all.
func (f *function) savesLeft(row *cfi.Row, at uint64) {
	for _, s := range savesAt(f.calleeSaves, at) {
		if s.register != f.abi.descriptor {
			row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(s.register), Rule: s.rule()})
		}
	}
	slices.SortFunc(row.Rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
}

// descriptorSize is how many bytes of the descriptor are sure to be saved, and
// all that have a meaning.
const descriptorSize = 32

// descriptorRule is where the descriptor is saved. Of a register of 64 bytes some
// compilers save half.
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

// callSite adds where registers are that the function saved before a call.
func (f *function) callSite(row *cfi.Row, at uint64, inFrame bool) {
	if !inFrame || f.unit == 0 {
		return
	}
	for _, s := range savesAt(f.callerSaves, at) {
		row.CallSite = append(row.CallSite, cfi.RegisterRule{Column: uint64(s.register), Rule: s.rule()})
	}
}

// savedAt says that a register is saved at a byte of the frame.
func savedAt(at uint64) cfi.Rule {
	return cfi.Rule{Kind: cfi.Offset, Offset: int64(at)} //nolint:gosec // less than 2^31: a stream's offset
}

// rule is where the register is saved.
func (s *saved) rule() cfi.Rule {
	if !s.isKnown {
		return cfi.Rule{Kind: cfi.Undefined}
	}
	return savedAt(s.at)
}

// savesAt are the saves in force at an offset.
func savesAt(list []saves, at uint64) []saved {
	i := sort.Search(len(list), func(i int) bool { return list[i].at > at })
	if i == 0 {
		return nil
	}
	return list[i-1].registers
}

// subroutineAt is the subroutine at an offset; nil where there is none.
func (f *function) subroutineAt(at uint64) *subroutine {
	for i := range f.subroutines {
		if s := &f.subroutines[i]; at >= s.start && at < s.end {
			return s
		}
	}
	return nil
}

// defaultRulesOf are the default rules of a function, or of a subroutine of it.
//
// A subroutine and its caller use one allocation of registers, as one function. The
// subroutine leaves alone what its caller needs, and that is all: of a general
// register it is not known whether it does, but for the descriptor. (The compiler
// writes that it leaves all alone.)
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

// generalNumber is the number of a register among the general ones.
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

// functions are the ranges of the function for the engine: those of its
// subroutines, and what they leave of its own.
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
		// Of the rest it is not known whether it is a subroutine's.
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
