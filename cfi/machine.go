// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
	"github.com/unwindd/unwindd/locexpr"
)

// Limits of one FDE. A function of AMDGPU may name 3584 columns.
const (
	maxColumns    = 8192
	maxRemembered = 1024    // states
	maxSavedRules = 1 << 16 // rules in remembered states
	// An insertion or a restored state moves rules. An FDE may move workBase,
	// and workPerByte more for every byte of its instructions.
	workBase    = 1 << 18
	workPerByte = 256
)

// state is the rules of a row, without its addresses.
type state struct {
	cfa        CFARule
	rules      []RegisterRule
	windowSave bool
	low        uint64 // see machine.low
	blocks     bool   // see machine.blocks
}

// remembered state has its rules at the end of machine.savedRules, once a rule has
// changed since: most code changes none between remember_state and
// restore_state.
type remembered struct {
	cfa        CFARule
	windowSave bool
	saved      bool
	firstRule  int
}

// machine executes call frame instructions and builds a row (DWARF 5, 6.4.3).
type machine struct {
	t       *Table
	cie     *CIE
	initial *state // rules of the CIE; nil while its own instructions are executed
	row     *Row
	own     Row    // of Rows: its slices are reused
	low     uint64 // columns below 64 that the row has a rule for, a bit each
	r       reader
	mask    uint64 // of an address
	fn      uint64 // start of the FDE's code

	location uint64   // start of the row that is being built, or of the next one
	budget   int      // rules that the instructions may yet move
	listing  *int     // rules that all FDEs of a listing may yet move; nil outside of one
	operands operands // of one instruction; here, so that they are not allocated
	blocks   bool     // an expression was met: remembered rules may refer to the section

	stack      []remembered
	unsaved    int // how many of the topmost states have not been saved
	savedRules []RegisterRule
}

var machines = sync.Pool{New: func() any { return new(machine) }}

// prepare readies a machine for the instructions of a CIE or FDE.
func (m *machine) prepare(c *CIE, pos, end int) {
	t := c.table
	m.t, m.cie = t, c
	m.r = t.reader(pos, end)
	m.mask = addressMask(c.AddressSize)
	m.budget = workBase + workPerByte*(end-pos)
	m.location, m.fn = 0, 0
	m.stack, m.savedRules, m.unsaved = m.stack[:0], m.savedRules[:0], 0
}

// free returns the machine to the pool, without references to files and rows. Rows
// are short: fields that are not set again are cleared here, one by one.
func (m *machine) free() {
	m.t, m.cie, m.initial, m.row, m.listing = nil, nil, nil, nil, nil
	m.r = reader{}
	if m.blocks {
		m.blocks = false
		m.operands = operands{}
		m.own.CFA = CFARule{}
		clear(m.own.Rules[:cap(m.own.Rules)])
		clear(m.stack[:cap(m.stack)])
		clear(m.savedRules[:cap(m.savedRules)])
	}
	machines.Put(m)
}

// run executes instructions until the location moves away from the row's start. more is false
// when the instructions end first.
//
// The instructions of nearly all code are executed here; rare operands of them, and all other
// instructions, by the table of opcodes.
func (m *machine) run() (more bool, err error) {
	data, pos := m.r.data, m.r.pos
	plain := m.cie.plain && m.initial != nil
	for pos < len(data) {
		code := data[pos]
		if code == dw.CFANop { // mostly padding
			pos++
			continue
		}
		if plain {
			switch code & dw.CFAHighBits {
			case dw.CFAAdvanceLoc:
				if m.advance(uint64(code & dw.CFALowBits)) {
					m.r.pos = pos + 1
					return true, nil
				}
			case dw.CFAOffset:
				if pos+1 < len(data) && data[pos+1] < leb128.More && m.setOffset(code&dw.CFALowBits, int64(data[pos+1])*m.cie.DataAlignment) {
					pos += 2
					continue
				}
			case 0:
				n := 0
				switch code {
				case dw.CFAAdvanceLoc1:
					if pos+1 < len(data) && m.advance(uint64(data[pos+1])) {
						m.r.pos = pos + 2
						return true, nil
					}
				case dw.CFADefCFAOffset:
					if pos+1 < len(data) && data[pos+1] < leb128.More {
						n = m.setCFAOffset(2, uint64(data[pos+1]))
					} else if pos+2 < len(data) && data[pos+2] < leb128.More {
						n = m.setCFAOffset(3, uint64(data[pos+1]&^leb128.More)|uint64(data[pos+2])<<7)
					}
				case dw.CFADefCFARegister:
					if pos+1 < len(data) && data[pos+1] < leb128.More && m.row.CFA.Kind == CFARegister {
						m.row.CFA.Register = uint64(data[pos+1])
						n = 2
					}
				case dw.CFADefCFA:
					if pos+2 < len(data) && data[pos+1]|data[pos+2] < leb128.More {
						m.row.CFA = CFARule{Kind: CFARegister, Register: uint64(data[pos+1]), Offset: int64(data[pos+2])}
						n = 3
					}
				}
				if n != 0 {
					pos += n
					continue
				}
			}
		}
		m.r.pos = pos + 1
		if err := m.step(code); err != nil || m.location != m.row.Start {
			return err == nil, err
		}
		pos = m.r.pos
	}
	m.r.pos = pos
	return false, nil
}

// advance is an advance_loc by a number of code units; false where the location does not
// move or would wrap around.
func (m *machine) advance(units uint64) bool {
	n := units * m.cie.CodeAlignment
	if n == 0 || n > m.mask-m.location {
		return false
	}
	m.location += n
	return true
}

// setCFAOffset is def_cfa_offset; it returns n, or 0 where there is no register
// for the offset.
func (m *machine) setCFAOffset(n int, offset uint64) int {
	if m.row.CFA.Kind != CFARegister {
		return 0
	}
	m.row.CFA.Offset = int64(offset)
	return n
}

// setOffset changes an offset rule or adds one behind few others; false when it can do
// neither.
func (m *machine) setOffset(column byte, offset int64) bool {
	if m.unsaved > 0 {
		return false
	}
	rules := m.row.Rules
	bit := uint64(1) << column
	i := bits.OnesCount64(m.low & (bit - 1))
	if m.low&bit != 0 {
		rules[i].Rule = Rule{Kind: Offset, Offset: offset}
		return true
	}
	n := len(rules)
	if n >= 64 || n == cap(rules) {
		return false
	}
	rules = rules[:n+1]
	if i < n {
		copy(rules[i+1:], rules[i:n])
	}
	rules[i] = RegisterRule{Column: uint64(column), Rule: Rule{Kind: Offset, Offset: offset}}
	m.row.Rules = rules
	m.low |= bit
	return true
}

// step executes the instruction whose first byte was read.
func (m *machine) step(code byte) error {
	pos := uint64(m.r.pos - 1)
	op := &opcodes[code]
	if op.apply == nil {
		return m.t.errorf(pos, ErrInstruction, "%#02x", code)
	}
	o := &m.operands
	*o = operands{}
	err := m.decode(code, op, o)
	if err == nil {
		err = op.apply(m, o)
	}
	if err != nil {
		return m.t.errorf(pos, err, "%s", dw.CFAName(code))
	}
	return nil
}

// address reads the operand of set_loc: in .debug_frame a segment selector may
// precede it.
func (m *machine) address() (uint64, error) {
	m.r.word(m.cie.SegmentSize)
	b := m.t.bases()
	b.function, b.hasFunction = m.fn, true
	pos := uint64(m.r.pos)
	p, _, err := m.r.pointer(m.cie.FDEEncoding, m.cie.AddressSize, &b)
	if err != nil {
		return 0, err
	}
	if p.Indirect {
		return m.t.follow(pos, p.Address, m.cie.AddressSize)
	}
	return p.Address, nil
}

// find returns where the rule of a column is, or would be.
func find(rules []RegisterRule, column uint64) (int, bool) {
	lo, hi := 0, len(rules)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if rules[mid].Column < column {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo, lo < len(rules) && rules[lo].Column == column
}

// lowColumns returns the columns below 64 that have rules, a bit each.
func lowColumns(rules []RegisterRule) (low uint64) {
	for i := range rules {
		if rules[i].Column >= 64 {
			break
		}
		low |= 1 << rules[i].Column
	}
	return low
}

func (m *machine) set(column uint64, rule Rule) error {
	if err := m.save(); err != nil {
		return err
	}
	rules := m.row.Rules
	i, found := find(rules, column)
	if found {
		rules[i].Rule = rule
		return nil
	}
	if len(rules) >= maxColumns {
		return ErrLimit
	}
	if err := m.moved(len(rules) - i); err != nil {
		return err
	}
	m.row.Rules = slices.Insert(rules, i, RegisterRule{Column: column, Rule: rule})
	if column < 64 {
		m.low |= 1 << column
	}
	return nil
}

// moved takes rules that are copied from the budget.
func (m *machine) moved(n int) error {
	m.budget -= n
	if m.budget < 0 {
		return ErrLimit
	}
	return m.listed(n)
}

// listed takes rules that are copied or yielded from the budget of a listing.
func (m *machine) listed(n int) error {
	if m.listing == nil {
		return nil
	}
	*m.listing -= n
	if *m.listing < 0 {
		return ErrLimit
	}
	return nil
}

// save copies the rules of the remembered states that share theirs with the row. It comes
// before every change of a rule.
func (m *machine) save() error {
	for ; m.unsaved > 0; m.unsaved-- {
		if len(m.savedRules)+len(m.row.Rules) > maxSavedRules {
			return ErrLimit
		}
		if err := m.moved(len(m.row.Rules)); err != nil {
			return err
		}
		s := &m.stack[len(m.stack)-m.unsaved]
		s.firstRule, s.saved = len(m.savedRules), true
		m.savedRules = append(m.savedRules, m.row.Rules...)
	}
	return nil
}

func nop(*machine, *operands) error { return nil }

// Row creation instructions (DWARF 5, 6.4.2.1).

func setLoc(m *machine, o *operands) error {
	if m.initial == nil {
		return ErrInitialInstruction
	}
	if o.value[0] < m.location {
		return ErrBackwards
	}
	m.location = o.value[0]
	return nil
}

func advanceLoc(m *machine, o *operands) error {
	if m.initial == nil {
		return ErrInitialInstruction
	}
	if m.cie.CodeAlignment == 0 {
		return ErrCodeAlignment
	}
	if o.value[0] > m.mask-m.location {
		return ErrOverflow
	}
	m.location += o.value[0]
	return nil
}

// CFA definition instructions (DWARF 5, 6.4.2.2; A.6.4.2.2).

// defCFA is def_cfa and def_cfa_sf, in the default address space, and the two
// of the extension, in the one they name.
func defCFA(m *machine, o *operands) error {
	m.row.CFA = CFARule{
		Kind:     CFARegister,
		Register: o.value[0],
		Offset:   int64(o.value[1]),
		Space:    locexpr.AddressSpace(o.value[2]),
	}
	return nil
}

// defCFARegister changes the register. Without a rule before it that is ill-formed
// (A.6.4.2.2), except in a CIE, where the offset is 0: LLVM's for MIPS begin like that, and
// all readers take them so.
func defCFARegister(m *machine, o *operands) error {
	switch {
	case m.row.CFA.Kind == NoCFA && m.initial == nil:
		m.row.CFA.Kind = CFARegister
	case m.row.CFA.Kind != CFARegister:
		return ErrCFARule
	}
	m.row.CFA.Register = o.value[0]
	return nil
}

func defCFAOffset(m *machine, o *operands) error {
	if m.row.CFA.Kind != CFARegister {
		return ErrCFARule
	}
	m.row.CFA.Offset = int64(o.value[0])
	return nil
}

func defCFAExpression(m *machine, o *operands) error {
	m.row.CFA = CFARule{Kind: CFAExpression, Expr: o.expr}
	return nil
}

// Register rule instructions (DWARF 5, 6.4.2.3; A.6.4.2.3).

func undefined(m *machine, o *operands) error {
	return m.set(o.value[0], Rule{Kind: Undefined})
}

func sameValue(m *machine, o *operands) error {
	return m.set(o.value[0], Rule{Kind: SameValue})
}

func offsetRule(m *machine, o *operands) error {
	return m.set(o.value[0], Rule{Kind: Offset, Offset: int64(o.value[1])})
}

// negativeOffset is offset with the opposite sign (LSB 5.0, 10.5.2).
func negativeOffset(m *machine, o *operands) error {
	n := -int64(o.value[1])
	if n == int64(o.value[1]) && n != 0 {
		return ErrOverflow
	}
	return m.set(o.value[0], Rule{Kind: Offset, Offset: n})
}

func valOffset(m *machine, o *operands) error {
	return m.set(o.value[0], Rule{Kind: ValOffset, Offset: int64(o.value[1])})
}

func registerRule(m *machine, o *operands) error {
	return m.set(o.value[0], Rule{Kind: Register, Register: o.value[1]})
}

func expression(m *machine, o *operands) error {
	return m.set(o.value[0], Rule{Kind: Expression, Expr: o.expr})
}

func valExpression(m *machine, o *operands) error {
	return m.set(o.value[0], Rule{Kind: ValExpression, Expr: o.expr})
}

// restore gives a column the rule of the CIE; none when the CIE has none.
func restore(m *machine, o *operands) error {
	if m.initial == nil {
		return ErrInitialInstruction
	}
	column := o.value[0]
	if i, found := find(m.initial.rules, column); found {
		return m.set(column, m.initial.rules[i].Rule)
	}
	i, found := find(m.row.Rules, column)
	if !found {
		return nil
	}
	if err := m.save(); err != nil {
		return err
	}
	if err := m.moved(len(m.row.Rules) - i); err != nil {
		return err
	}
	m.row.Rules = slices.Delete(m.row.Rules, i, i+1)
	if column < 64 {
		m.low &^= 1 << column
	}
	return nil
}

// windowSave records that the register window was saved (SPARC). AArch64 has the same number
// for a toggle, DW_CFA_AARCH64_negate_ra_state, and another for one that also toggles whether
// the PC was part of the signature: removing the signature is the same for both.
func windowSave(m *machine, _ *operands) error {
	m.row.WindowSave = !m.row.WindowSave
	return nil
}

// Row state instructions (DWARF 5, 6.4.2.4). The state includes the CFA, as
// producers mean it.

func rememberState(m *machine, _ *operands) error {
	if len(m.stack) >= maxRemembered {
		return ErrLimit
	}
	m.stack = append(m.stack, remembered{cfa: m.row.CFA, windowSave: m.row.WindowSave})
	m.unsaved++
	return nil
}

func restoreState(m *machine, _ *operands) error {
	if len(m.stack) == 0 {
		return ErrNoState
	}
	top := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	m.row.CFA, m.row.WindowSave = top.cfa, top.windowSave
	if !top.saved {
		m.unsaved--
		return nil
	}
	if err := m.moved(len(m.savedRules) - top.firstRule); err != nil {
		return err
	}
	m.row.Rules = append(m.row.Rules[:0], m.savedRules[top.firstRule:]...)
	m.low = lowColumns(m.row.Rules)
	m.savedRules = m.savedRules[:top.firstRule]
	return nil
}
