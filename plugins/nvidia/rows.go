// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// rowMaker makes rows of the rows of an FDE, in their order. Compilers mean something else by
// them than the document says:
//
//   - The CFA, and the addresses of saved registers, are of local memory.
//   - Rules say that R1 is the same in the caller, also where the CFA is not R1 plus 0: the
//     caller's R1 is the CFA.
//   - The return address is in the caller's value of a register: a function that has saved
//     the register has a rule for it, beside an expression that names it.
//   - The return-address column is a register that has the lower half of an address, with the
//     upper half in the next one (functions that other sections call); R256, with an
//     expression of a base and a register that has the distance from it (functions that only
//     their own section calls); or none, which a kernel has.
//   - A register that was loaded back has an expression that adds a number to R1, which leads
//     nowhere: it has the caller's value again.
//
// Two things are wrong, which the instruction before a row mends, where it is one of the few that
// are known (see instructionBefore): where registers are saved in a function with local
// variables, and the CFA behind the instruction that takes the frame down.
type rowMaker struct {
	column   uint64 // of the return address
	isKernel bool
	code     *functionCode
	end      uint64 // of the FDE

	before cfi.Row // as the FDE has it
	saved  map[uint64]int64
	mended int // rules that code proved wrong
}

var (
	errNoReturn   = errors.New("nothing says where the return address is")
	errExpression = errors.New("an expression of the return address, expected DW_OP_addr, DW_OP_bregx and DW_OP_plus")
)

// make makes a row.
func (m *rowMaker) make(r *cfi.Row) (cfi.Row, error) {
	if err := check(r); err != nil {
		return cfi.Row{}, err
	}
	asWritten := r.Clone()
	m.mend(r)
	m.before = *asWritten
	row := cfi.Row{Start: r.Start, End: r.End, CFA: r.CFA, ReturnAddress: uint64(pc)}
	switch r.CFA.Kind {
	case cfi.CFARegister:
		row.CFA.Space = local
	case cfi.CFAExpression:
		row.CFA.Expr = expression(slices.Clone(r.CFA.Expr)).in(local)
	}
	for _, rule := range r.Rules {
		if made, ok := registerRule(rule); ok && !m.isKernel {
			row.Rules = append(row.Rules, made)
		}
	}
	back, err := m.returnRule(r)
	if err != nil {
		return row, err
	}
	at, _ := slices.BinarySearchFunc(row.Rules, uint64(pc), func(r cfi.RegisterRule, column uint64) int { return cmp.Compare(r.Column, column) })
	row.Rules = slices.Insert(row.Rules, at, cfi.RegisterRule{Column: uint64(pc), Rule: back})
	return row, nil
}

// check checks what a row of a file has of its own: registers and expressions.
func check(r *cfi.Row) error {
	switch r.CFA.Kind {
	case cfi.NoCFA:
		return errors.New("no rule for the CFA")
	case cfi.CFARegister:
		if r.CFA.Register > uint64(^uint32(0)) || !isRegister(uint32(r.CFA.Register)) {
			return fmt.Errorf("the CFA is by column %#x, which is no register", r.CFA.Register)
		}
	}
	for _, expr := range append([][]byte{r.CFA.Expr}, expressionsOf(r)...) {
		for _, err := range locexpr.Decode(expr, locexpr.Canonical, 8, locexpr.LittleEndian) {
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// expressionsOf lists the expressions of rules.
func expressionsOf(r *cfi.Row) (list [][]byte) {
	for i := range r.Rules {
		list = append(list, r.Rules[i].Rule.Expr)
	}
	return list
}

// mend corrects the rules of a row.
func (m *rowMaker) mend(r *cfi.Row) {
	before := m.code.instructionBefore(r.Start)
	if r.End == m.end && r.CFA.Kind == cfi.CFARegister && r.CFA.Register == uint64(r1) && r.CFA.Offset > 0 &&
		m.before.CFA.Offset == r.CFA.Offset && before.setsStackPointer() {
		r.CFA.Offset = 0
		m.mended++
	}
	for i := range r.Rules {
		rule := &r.Rules[i]
		switch {
		case rule.Rule.Kind == cfi.Expression && isStackPointerPlus(rule.Rule.Expr):
			rule.Rule = cfi.Rule{Kind: cfi.SameValue}
		case rule.Rule.Kind == cfi.Offset:
			rule.Rule.Offset = m.savedAt(r, rule, before)
		}
	}
}

// savedAt returns the distance from the CFA at which a register is saved: as the instruction
// before the first row of the rule stores it, or else as the rule says.
func (m *rowMaker) savedAt(r *cfi.Row, rule *cfi.RegisterRule, before instruction) int64 {
	if old, _ := m.before.Rule(rule.Column); old.Kind == cfi.Offset && old.Offset == rule.Rule.Offset {
		if offset, ok := m.saved[rule.Column]; ok {
			return offset
		}
		return rule.Rule.Offset
	}
	delete(m.saved, rule.Column)
	offset, ok := before.storeOf(rule.Column)
	if !ok || r.CFA.Kind != cfi.CFARegister || r.CFA.Register != uint64(r1) {
		return rule.Rule.Offset
	}
	if offset -= r.CFA.Offset; offset == rule.Rule.Offset {
		return offset
	}
	m.mended++
	if m.saved == nil {
		m.saved = map[uint64]int64{}
	}
	m.saved[rule.Column] = offset
	return offset
}

// isStackPointerPlus reports whether an expression is DW_OP_bregx of R1.
func isStackPointerPlus(expr []byte) bool {
	if len(expr) == 0 || expr[0] != dw.OpBregx {
		return false
	}
	register, n := binary.Uvarint(expr[1:])
	if n <= 0 || register != uint64(r1) {
		return false
	}
	_, size := signed(expr[1+n:])
	return size > 0 && 1+n+size == len(expr)
}

// registerRule makes the rule of a register; false where it has its default rule, as R1, RZ
// and columns that are no registers always have.
func registerRule(rule cfi.RegisterRule) (cfi.RegisterRule, bool) {
	if rule.Column > uint64(^uint32(0)) || !isRegister(uint32(rule.Column)) {
		return rule, false
	}
	switch number := uint32(rule.Column); {
	case number == r1, number == rz, number == urz, number == pc:
		return rule, false
	case rule.Rule.Kind == cfi.Undefined || rule.Rule.Kind == cfi.SameValue:
		return rule, rule.Rule.Kind != defaultRule(number).Kind
	case rule.Rule.Kind == cfi.Expression:
		rule.Rule.Expr = expression(slices.Clone(rule.Rule.Expr)).in(local)
	case rule.Rule.Kind == cfi.Register && (rule.Rule.Register > uint64(^uint32(0)) || !isRegister(uint32(rule.Rule.Register))):
		rule.Rule = cfi.Rule{Kind: cfi.Undefined}
	}
	return rule, true
}

// isRegister reports whether the architecture has a register.
func isRegister(number uint32) bool {
	return slices.ContainsFunc(allRanges, func(r registerRange) bool { return number-r.first < r.count })
}

// registerRange is a range of numbers of registers.
type registerRange struct{ first, count uint32 }

var allRanges = func() (list []registerRange) {
	for _, r := range registerRanges() {
		list = append(list, registerRange{r.First, r.Count})
	}
	return list
}()

// returnRule returns the rule of the caller's PC.
func (m *rowMaker) returnRule(r *cfi.Row) (cfi.Rule, error) {
	switch {
	case m.isKernel || m.column == noColumn:
		return cfi.Rule{Kind: cfi.Undefined}, nil
	case m.column == uint64(pc):
		return distanceRule(r)
	case m.column >= uint64(r0) && m.column < uint64(rz):
		return pairRule(r, m.column)
	}
	return cfi.Rule{}, fmt.Errorf("return-address column %#x, expected a register R, %#x or none", m.column, pc)
}

// distanceRule is the rule of a return address that is a base and the distance from it.
func distanceRule(r *cfi.Row) (cfi.Rule, error) {
	rule, _ := r.Rule(uint64(pc))
	switch rule.Kind {
	case cfi.Register:
		return pairRule(r, rule.Register)
	case cfi.ValExpression:
	default:
		return cfi.Rule{}, errNoReturn
	}
	base, register, more, ok := baseAndRegister(rule.Expr)
	if !ok {
		return cfi.Rule{}, errExpression
	}
	distance := expression(nil).constant(0)
	if register != uint64(rz) {
		var err error
		if distance, err = callersValue(r, register); err != nil {
			return cfi.Rule{}, err
		}
	}
	base += uint64(more) //nolint:gosec // a sum of addresses
	return cfi.Rule{Kind: cfi.ValExpression, Expr: append(distance.address(base), dw.OpPlus)}, nil
}

// pairRule is the rule of a return address whose lower half is in a register, and the upper
// half in the next one. A function that moves the lower half to another register without a
// rule for the upper one has moved both.
func pairRule(r *cfi.Row, lower uint64) (cfi.Rule, error) {
	low, err := callersValue(r, lower)
	if err != nil {
		return cfi.Rule{}, err
	}
	upper := lower + 1
	rule, _ := r.Rule(lower)
	if moved, _ := r.Rule(upper); rule.Kind == cfi.Register && moved.Kind != cfi.Register && moved.Kind != cfi.Offset && moved.Kind != cfi.Expression {
		upper = rule.Register + 1
	}
	high, err := callersValue(r, upper)
	if err != nil {
		return cfi.Rule{}, err
	}
	expr := append(low, high...)
	return cfi.Rule{Kind: cfi.ValExpression, Expr: append(expr, dw.OpConst1u, 32, dw.OpShl, dw.OpOr)}, nil
}

// baseAndRegister reads the expression of a return address: a base, a register that has the
// distance from it, and what else is added. The register is RZ for a function that has one
// caller.
func baseAndRegister(expr []byte) (base, register uint64, more int64, ok bool) {
	const addressSize = 8
	if len(expr) < 1+addressSize+1 || expr[0] != dw.OpAddr || expr[1+addressSize] != dw.OpBregx {
		return 0, 0, 0, false
	}
	base = binary.LittleEndian.Uint64(expr[1:])
	rest := expr[1+addressSize+1:]
	register, n := binary.Uvarint(rest)
	if n <= 0 || register < uint64(r0) || register > uint64(rz) {
		return 0, 0, 0, false
	}
	more, size := signed(rest[n:])
	return base, register, more, size > 0 && bytes.Equal(rest[n+size:], []byte{dw.OpPlus})
}

// signed reads a signed LEB128 number of up to 63 bits; the size is 0 where there is none.
func signed(b []byte) (n int64, size int) {
	for shift := 0; size < len(b) && shift < 63; shift += 7 {
		c := b[size]
		size++
		n |= int64(c&0x7f) << shift
		if c&0x80 == 0 {
			if c&0x40 != 0 {
				n |= -1 << (shift + 7)
			}
			return n, size
		}
	}
	return 0, 0
}

// callersValue pushes the value of 32 bits that a register has in the caller.
func callersValue(r *cfi.Row, register uint64) (expression, error) {
	rule, _ := r.Rule(register)
	switch rule.Kind {
	case cfi.Unspecified, cfi.SameValue:
		return expression(nil).register(register), nil
	case cfi.Register:
		return expression(nil).register(rule.Register), nil
	case cfi.Offset:
		if r.CFA.Kind != cfi.CFARegister {
			return nil, errNoReturn
		}
		return expression(nil).registerPlus(r.CFA.Register, r.CFA.Offset+rule.Offset).in(local).word(), nil
	case cfi.Expression:
		return expression(slices.Clone(rule.Expr)).in(local).word(), nil
	case cfi.ValExpression:
		return slices.Clone(rule.Expr), nil
	}
	return nil, errNoReturn
}

// isEqualRow reports whether rows have the same rules.
func isEqualRow(a, b *cfi.Row) bool {
	return a.CFA.Kind == b.CFA.Kind && a.CFA.Register == b.CFA.Register && a.CFA.Offset == b.CFA.Offset && bytes.Equal(a.CFA.Expr, b.CFA.Expr) &&
		slices.EqualFunc(a.Rules, b.Rules, func(a, b cfi.RegisterRule) bool {
			return a.Column == b.Column && a.Rule.Kind == b.Rule.Kind && a.Rule.Register == b.Rule.Register &&
				a.Rule.Offset == b.Rule.Offset && bytes.Equal(a.Rule.Expr, b.Rule.Expr)
		})
}

// expression is an expression in the canonical dialect.
type expression []byte

// constant pushes a number.
func (e expression) constant(n uint64) expression {
	if n < 32 {
		return append(e, dw.OpLit0+byte(n))
	}
	return binary.AppendUvarint(append(e, dw.OpConstu), n)
}

// address pushes an address of the code object.
func (e expression) address(n uint64) expression {
	return binary.LittleEndian.AppendUint64(append(e, dw.OpAddr), n)
}

// register pushes the value of a register.
func (e expression) register(number uint64) expression { return e.registerPlus(number, 0) }

// registerPlus pushes the sum of the value of a register of 32 bits and a number. DW_OP_bregx
// would read as many bits as an address has.
func (e expression) registerPlus(number uint64, n int64) expression {
	e = append(binary.AppendUvarint(append(e, dw.OpRegx), number), dw.OpDerefSize, 4)
	if n == 0 {
		return e
	}
	return append(appendSigned(append(e, dw.OpConsts), n), dw.OpPlus)
}

// appendSigned appends a signed LEB128 number.
func appendSigned(b []byte, n int64) []byte {
	for n < -0x40 || n >= 0x40 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n)&0x7f)
}

// in makes an address a place of a space.
func (e expression) in(space locexpr.AddressSpace) expression {
	return append(e.constant(uint64(space)), dw.OpLLVMUser, dw.UserFormAspaceAddress)
}

// word reads the 32 bits at a place.
func (e expression) word() expression { return append(e, dw.OpDerefSize, 4) }
