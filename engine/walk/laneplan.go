// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/locexpr"
)

// laneChoice gives each lane a place: the same for all, or by a mask in registers one of two
// choices. DW_AT_LLVM_lane_pc as compilers write it is such a tree, whose masks alone differ
// between waves.
type laneChoice struct {
	mask       []uint64    // the registers of the mask, the low-order one first; nil: one place is for all
	content    []uint64    // the register with that place; nil: it is place
	clear, set *laneChoice // for lanes by their bit of mask
	place      lanePlace
}

// placesPlan has the choices of all scopes at a place of code.
type placesPlan []*laneChoice

// maskBits is the size of the masks in a plan, and the largest number of lanes.
const maskBits = 64

// maxPlannedCalls bounds the calls within each other; evaluations have a larger bound.
const maxPlannedCalls = 8

var errNoPlan = errors.New("the expression is not a choice by masks")

// lanePlanner makes a choice of an expression, by its operations.
type lanePlanner struct {
	u     *unitContext
	lanes uint32
	left  int // operations that may follow
	depth int // calls within each other
	stack []plannedEntry
}

// plannedEntry is an entry of the stack: one of its members.
type plannedEntry struct {
	choice    *laneChoice
	place     *lanePlace // a value, or the undefined location
	address   *uint64    // a location in memory
	registers []uint64   // a location in registers
	pieces    pieceState // of registers
}

type pieceState uint8

const (
	oneRegister pieceState = iota
	openPieces
	closedPieces
	maskValue // the value in them
)

// planPlaces returns the choices of the scopes at the frame's place; nil where one is something else.
func (f *frame) planPlaces(d *code.LaneAttributes, lanes uint32) (plan placesPlan) {
	m := f.walker.machine
	if d.Active != nil || m.Description.AddressBits != maskBits || m.Order != locexpr.LittleEndian || lanes > maskBits {
		return nil
	}
	for i := range d.Scopes {
		s := &d.Scopes[i]
		exprs, err := s.PC.At(f.lookup)
		if err != nil || len(exprs) > 1 || countOf(s, int(lanes)) != int(lanes) {
			return nil
		}
		if len(exprs) == 0 {
			continue
		}
		p := lanePlanner{u: f.unitContext(s.Function, nil), lanes: lanes, left: maxLaneOps}
		if p.operations(s.PC.Unit, exprs[0]) != nil || len(p.stack) != 1 || p.stack[0].choice == nil {
			return nil
		}
		plan = append(plan, p.stack[0].choice)
	}
	return plan
}

// operations executes the operations of an expression on the planner's stack.
func (p *lanePlanner) operations(unit dwarf.Unit, expr []byte) error {
	if unit.OffsetSize() != 4 || unit.AddressSize() != maskBits/8 {
		return errNoPlan
	}
	for instruction, err := range locexpr.Decode(expr, p.u.code.UnitDialect(unit), unit.AddressSize(), locexpr.LittleEndian) {
		if p.left--; err != nil || instruction.Op == nil || p.left < 0 {
			return errNoPlan
		}
		if err := p.operation(unit, &instruction); err != nil {
			return err
		}
	}
	return nil
}

func (p *lanePlanner) operation(unit dwarf.Unit, o *locexpr.Instruction) error {
	kind, register := operationKind(*o)
	switch kind {
	case "DW_OP_LLVM_undefined":
		p.push(plannedEntry{place: &lanePlace{kind: absent}})
	case "DW_OP_reg":
		return p.register(register)
	case "DW_OP_addr":
		p.push(plannedEntry{address: &o.Operands[0]})
	case "DW_OP_addrx":
		address, err := unit.Addrx(o.Operands[0])
		if err != nil {
			return err
		}
		p.push(plannedEntry{address: &address})
	case "DW_OP_stack_value":
		e := p.pop()
		if e.address == nil {
			return errNoPlan
		}
		p.push(plannedEntry{place: &lanePlace{placed, *e.address + p.u.ev.LoadBias}})
	case "DW_OP_piece", "DW_OP_LLVM_piece_end":
		return p.piece(kind, o.Operands[0])
	case "DW_OP_regval_type", "DW_OP_deref_type":
		return p.value(unit, kind, o)
	case "DW_OP_LLVM_extend", "DW_OP_LLVM_select_bit_piece":
		if o.Operands[0] != maskBits || o.Operands[1] != uint64(p.lanes) {
			return errNoPlan
		}
		return p.choose(kind)
	case "DW_OP_call":
		return p.call(unit, o.Operands[0]+unit.Offset())
	case "DW_OP_call_ref":
		return p.call(unit, o.Operands[0])
	default:
		return errNoPlan
	}
	return nil
}

func (p *lanePlanner) push(e plannedEntry) { p.stack = append(p.stack, e) }

// pop returns the top entry; one without members where there is none.
func (p *lanePlanner) pop() (e plannedEntry) {
	if n := len(p.stack); n > 0 {
		e, p.stack = p.stack[n-1], p.stack[:n-1]
	}
	return e
}

// register pushes the location of a register of the top frame: the register itself.
func (p *lanePlanner) register(reg uint64) error {
	f := p.u.frame
	if p.u.code == f.module.Code {
		if _, isOne := p.u.code.PluginRegister(reg, f.lookup); isOne {
			return errNoPlan
		}
	}
	p.push(plannedEntry{registers: []uint64{reg}})
	return nil
}

// piece executes DW_OP_piece with a whole register, and DW_OP_LLVM_piece_end.
func (p *lanePlanner) piece(kind string, bytes uint64) error {
	e := p.pop()
	if kind != "DW_OP_piece" {
		if e.pieces != openPieces {
			return errNoPlan
		}
		e.pieces = closedPieces
		p.push(e)
		return nil
	}
	if len(e.registers) != 1 || e.pieces != oneRegister || p.bits(e.registers[0]) != 8*bytes {
		return errNoPlan
	}
	if n := len(p.stack); n > 0 && p.stack[n-1].pieces == openPieces {
		p.stack[n-1].registers = append(p.stack[n-1].registers, e.registers[0])
		return nil
	}
	e.pieces = openPieces
	p.push(e)
	return nil
}

// bits returns the size of a register.
func (p *lanePlanner) bits(reg uint64) uint64 {
	n, _ := frameContext{frame: p.u.frame}.RegisterBits(reg)
	return uint64(n)
}

// value pushes the mask in registers, of a type of as many bits.
func (p *lanePlanner) value(unit dwarf.Unit, kind string, o *locexpr.Instruction) error {
	offset := o.Operands[1]
	e := plannedEntry{registers: []uint64{o.Operands[0]}}
	if kind == "DW_OP_deref_type" {
		if e = p.pop(); e.pieces != closedPieces || o.Operands[0] != maskBits/8 {
			return errNoPlan
		}
	} else if err := p.register(o.Operands[0]); err != nil || p.pop().registers == nil {
		return errNoPlan
	}
	bits := uint64(0)
	for _, reg := range e.registers {
		bits += p.bits(reg)
	}
	if offset == 0 || bits != maskBits {
		return errNoPlan
	}
	t, err := unit.BaseType(offset)
	if err != nil || t.Encoding != locexpr.EncodingUnsigned || t.Size() != maskBits || t.Elements != 0 || t.Endianity != 0 {
		return errNoPlan
	}
	e.pieces = maskValue
	p.push(e)
	return nil
}

// choose executes DW_OP_LLVM_extend with a place and DW_OP_LLVM_select_bit_piece with choices.
func (p *lanePlanner) choose(kind string) error {
	e := p.pop()
	if kind == "DW_OP_LLVM_extend" {
		switch {
		case e.place != nil:
			p.push(plannedEntry{choice: &laneChoice{place: *e.place}})
		case len(e.registers) == 1 && e.pieces == oneRegister && p.bits(e.registers[0]) == maskBits:
			p.push(plannedEntry{choice: &laneChoice{content: e.registers}})
		default:
			return errNoPlan
		}
		return nil
	}
	set, unset := p.pop().choice, p.pop().choice
	if e.pieces != maskValue || set == nil || unset == nil {
		return errNoPlan
	}
	p.push(plannedEntry{choice: &laneChoice{mask: e.registers, clear: unset, set: set}})
	return nil
}

// call executes the expression of an entry.
func (p *lanePlanner) call(unit dwarf.Unit, offset uint64) error {
	entry, err := unit.Entry(offset)
	if err != nil {
		return err
	}
	l, ok, err := entry.Location(dw.AttrLocation)
	if err != nil || !ok || l.Lists != nil {
		return errNoPlan
	}
	if p.depth++; p.depth > maxPlannedCalls {
		return errNoPlan
	}
	defer func() { p.depth-- }()
	return p.operations(l.Unit, l.Expr)
}

// assign puts the places of lanes by a plan into places, which are undescribed; ok is false where a
// mask cannot be read.
func (p placesPlan) assign(f *frame, places []lanePlace) (ok bool) {
	got := make([]lanePlace, len(places))
	for _, c := range p {
		if !c.assign(f, got, ^uint64(0)) {
			return false
		}
		for lane := range places {
			if places[lane].kind != placed {
				places[lane] = got[lane]
			}
		}
	}
	return true
}

// assign sets the places of the lanes in which. All registers must be readable, as they are read by
// an evaluation of the expression.
func (c *laneChoice) assign(f *frame, got []lanePlace, which uint64) (ok bool) {
	if c.mask != nil {
		mask, ok := f.contentOf(c.mask)
		return ok && c.clear.assign(f, got, which&^mask) && c.set.assign(f, got, which&mask)
	}
	place := c.place
	if c.content != nil {
		if place.pc, ok = f.contentOf(c.content); !ok {
			return false
		}
		place.kind = placed
	}
	for lane := range got {
		if which>>lane&1 != 0 {
			got[lane] = place
		}
	}
	return true
}

// isTop reports whether the frame has the registers with which the thread stopped.
func (f *frame) isTop() bool {
	return f.callee == nil && f.base == nil && f.place == nil && len(f.callSite) == 0
}

// contentOf returns the number in registers of a top frame that have 64 bits together, the low-order
// one first; ok is false where one cannot be read.
func (f *frame) contentOf(registers []uint64) (n uint64, ok bool) {
	shift := 0
	for _, reg := range registers {
		bits, _ := frameContext{frame: f}.RegisterBits(reg)
		content, isAvailable := f.walker.topRegister(reg)
		if !isAvailable || uint32(8*len(content)) != bits || shift+len(content) > maskBits/8 { //nolint:gosec // a register is small
			return 0, false
		}
		n |= integer(content, locexpr.LittleEndian) << (8 * shift)
		shift += len(content)
	}
	return n, shift == maskBits/8
}

// lanePlans keeps the plans of the places at which the threads of a process are: thousands of waves
// wait at a few places of a kernel.
type lanePlans struct {
	mu    sync.RWMutex
	known map[lanesPlace]placesPlan // nil values: there is none
}

// lanesPlace is a place of code that the threads of a machine have in common.
type lanesPlace struct {
	module     *code.Module
	machine    *machine
	pc, lookup uint64
	lanes      uint32
}

// maxLanePlans is how many plans a process keeps.
const maxLanePlans = 1 << 14

// of returns the plan of a frame's place, which is made once; nil: there is none.
func (l *lanePlans) of(f *frame, d *code.LaneAttributes, lanes uint32) placesPlan {
	key := lanesPlace{f.module, f.walker.machine, f.pc, f.lookup, lanes}
	l.mu.RLock()
	plan, isKnown := l.known[key]
	isFull := len(l.known) >= maxLanePlans
	l.mu.RUnlock()
	if isKnown || isFull {
		return plan
	}
	plan = f.planPlaces(d, lanes)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[lanesPlace]placesPlan{}
	}
	l.known[key] = plan
	return plan
}
