package cfi

import (
	"slices"
	"sync"

	"github.com/unwindd/unwindd/locexpr"
)

// Limits of one FDE. A function of AMDGPU may name 3584 columns.
const (
	maxColumns    = 8192
	maxRemembered = 1024    // states
	maxKept       = 1 << 16 // rules in remembered states
	// An insertion or a restored state moves rules. An FDE may move workBase,
	// and workPerByte more for every byte of its instructions.
	workBase    = 1 << 18
	workPerByte = 256
)

// A state is what rules are in force: a row without its addresses.
type state struct {
	cfa        CFARule
	rules      []RegisterRule
	windowSave bool
}

// A remembered state has its rules at the end of machine.kept.
type remembered struct {
	cfa        CFARule
	windowSave bool
	kept       int
}

// A machine executes call frame instructions and builds a row (DWARF 5, 6.4.3).
type machine struct {
	t       *Table
	cie     *CIE
	initial *state // rules of the CIE; nil while its own instructions are executed
	row     *Row
	r       reader
	mask    uint64 // of an address
	fn      uint64 // start of the FDE's code

	location uint64 // where the row that is being built starts, or the next one
	work     int
	operands operands // of one instruction; here, so that they are not allocated

	stack []remembered
	kept  []RegisterRule
}

var machines = sync.Pool{New: func() any { return new(machine) }}

func newMachine(t *Table, c *CIE, pos, end int, row *Row) *machine {
	m := machines.Get().(*machine)
	m.t, m.cie, m.row = t, c, row
	m.r = t.reader(pos, end)
	m.mask = addressMask(c.AddressSize)
	m.work = workBase + workPerByte*(end-pos)
	return m
}

// free gives the machine back, without what it knows of files and rows.
func (m *machine) free() {
	*m = machine{stack: m.stack[:0], kept: m.kept[:0]}
	machines.Put(m)
}

// run executes instructions until the location moves away from the row's start.
// more is false when the instructions end first.
func (m *machine) run() (more bool, err error) {
	for m.r.pos < len(m.r.data) {
		at := m.r.pos
		code := m.r.data[at]
		m.r.pos++
		if code == 0 { // nop, most of all padding
			continue
		}
		op := &opcodes[code]
		if op.apply == nil {
			return false, m.t.errorf(uint64(at), ErrInstruction, "%#02x", code)
		}
		o := &m.operands
		*o = operands{}
		if err = m.decode(code, op, o); err == nil {
			err = op.apply(m, o)
		}
		if err != nil {
			return false, m.t.errorf(uint64(at), err, "%s", op.name)
		}
		if m.location != m.row.Start {
			return true, nil
		}
	}
	return false, nil
}

// address reads the operand of set_loc: in .debug_frame a segment selector may
// precede it.
func (m *machine) address() (uint64, error) {
	m.r.word(m.cie.SegmentSize)
	b := m.t.bases()
	b.function, b.hasFunction = m.fn, true
	at := uint64(m.r.pos)
	p, _, err := m.r.pointer(m.cie.FDEEncoding, m.cie.AddressSize, &b)
	if err != nil {
		return 0, err
	}
	if p.Indirect {
		return m.t.follow(at, p.Address, m.cie.AddressSize)
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

func (m *machine) set(column uint64, rule Rule) error {
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
	return nil
}

// moved charges for rules that are copied.
func (m *machine) moved(n int) error {
	m.work -= n
	if m.work < 0 {
		return ErrLimit
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

func defCFARegister(m *machine, o *operands) error {
	if m.row.CFA.Kind != CFARegister {
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

// negativeOffset is offset with the sign turned (LSB 5.0, 10.5.2).
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
	if err := m.moved(len(m.row.Rules) - i); err != nil {
		return err
	}
	m.row.Rules = slices.Delete(m.row.Rules, i, i+1)
	return nil
}

// windowSave says that the register window was saved (SPARC). AArch64 has the
// same number for a toggle, DW_CFA_AARCH64_negate_ra_state.
func windowSave(m *machine, _ *operands) error {
	m.row.WindowSave = !m.row.WindowSave
	return nil
}

// Row state instructions (DWARF 5, 6.4.2.4). The state includes the CFA, as
// producers mean it.

func rememberState(m *machine, _ *operands) error {
	if len(m.stack) >= maxRemembered || len(m.kept)+len(m.row.Rules) > maxKept {
		return ErrLimit
	}
	if err := m.moved(len(m.row.Rules)); err != nil {
		return err
	}
	m.stack = append(m.stack, remembered{m.row.CFA, m.row.WindowSave, len(m.kept)})
	m.kept = append(m.kept, m.row.Rules...)
	return nil
}

func restoreState(m *machine, _ *operands) error {
	if len(m.stack) == 0 {
		return ErrNoState
	}
	top := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	if err := m.moved(len(m.kept) - top.kept); err != nil {
		return err
	}
	m.row.CFA, m.row.WindowSave = top.cfa, top.windowSave
	m.row.Rules = append(m.row.Rules[:0], m.kept[top.kept:]...)
	m.kept = m.kept[:top.kept]
	return nil
}
