package engine

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
)

// errUndefined says that a register has no recoverable value in a frame.
var errUndefined = errors.New("is undefined")

// slotKind says where a core register of a frame is.
type slotKind uint8

const (
	slotUndefined slotKind = iota // no recoverable value
	slotLive                      // still in register bits of the thread
	slotMemory                    // in the default address space at bits
	slotValue                     // is bits
	slotPlace                     // where place says
)

// slot is where a core register of a frame is. A caller's register is a
// location (heterogeneous extension, A.6.4.1), kept small for the forms that
// nearly every rule has.
type slot struct {
	kind  slotKind
	bits  uint64
	place *locexpr.Location
}

// frame is an activation while its stack is walked.
type frame struct {
	walker *walker
	callee *frame // nil in the top frame
	index  int
	pc     uint64
	exact  bool
	found  FoundBy

	module *module
	offset uint64 // pc as an address of module's object
	lookup uint64 // what rows and symbols are looked up by: inside the call, or offset

	source *rowSource       // the row in force; nil until found
	cfa    locexpr.Location // where source is set
	hasCFA bool

	slots    []slot
	callSite map[uint64]locexpr.Location // other registers that a call-site rule places
	entering []uint64                    // registers whose place on entry is being found
}

// frame is the context in which expressions of its row are evaluated.
type frameContext struct {
	locexpr.NoContext
	*frame
}

// nowhere says whether the PC of the frame is not known: it is the top frame of
// a thread whose PC the target does not say.
func (f *frame) nowhere() bool { return f.walker.thread.noPC }

// isCore says whether every frame carries register reg in its slots.
func (f *frame) isCore(reg uint64) bool {
	return reg < uint64(len(f.slots)) && f.walker.machine.bits[reg] != 0
}

// location says where register reg of this frame is (A.2.5.4.4.4).
func (f *frame) location(reg uint64) (locexpr.Location, error) {
	if f.isCore(reg) {
		switch s := &f.slots[reg]; s.kind {
		case slotLive:
			return locexpr.RegisterLocation(s.bits, f.walker.scope()), nil
		case slotMemory:
			return locexpr.MemoryLocation(locexpr.DefaultSpace, s.bits), nil
		case slotValue:
			return locexpr.ImplicitUint64(s.bits, f.walker.machine.bits[reg], f.walker.machine.order), nil
		case slotPlace:
			return *s.place, nil
		}
		return locexpr.UndefinedLocation(), nil
	}
	if l, ok := f.callSite[reg]; ok {
		return l, nil
	}
	if f.callee == nil {
		return locexpr.RegisterLocation(reg, f.walker.scope()), nil
	}
	return f.callee.saved(reg)
}

// saved says where the caller's register reg is, by this frame's row.
func (f *frame) saved(reg uint64) (locexpr.Location, error) {
	if f.source == nil {
		return locexpr.UndefinedLocation(), nil
	}
	rule := f.source.defaults.rule(f.source.row, reg)
	return rule.Location(f.walker.evaluator(f.source), frameContext{frame: f}, reg, f.cfa)
}

// value reads register reg of this frame, which has at most 64 bits.
func (f *frame) value(reg uint64) (uint64, error) {
	m := f.walker.machine
	if f.isCore(reg) {
		switch s := &f.slots[reg]; s.kind {
		case slotLive:
			return f.walker.liveRegister(s.bits)
		case slotMemory:
			return f.walker.word(s.bits, m.bits[reg])
		case slotValue:
			return s.bits, nil
		case slotUndefined:
			return 0, fmt.Errorf("%s %w in frame %d", f.walker.registerName(reg), errUndefined, f.index)
		}
	}
	info, ok := m.desc.Register(uint32(reg))
	if !ok || reg > uint64(^uint32(0)) {
		return 0, fmt.Errorf("%s has no register %d", m.desc.Name, reg)
	}
	if info.Bits > 64 {
		return 0, fmt.Errorf("%s has %d bits, expected at most 64", info.Name, info.Bits)
	}
	l, err := f.location(reg)
	if err != nil {
		return 0, err
	}
	if l.IsUndefined() {
		return 0, fmt.Errorf("%s %w in frame %d", info.Name, errUndefined, f.index)
	}
	var buf [8]byte
	if err := l.Read(frameContext{frame: f}, buf[:(info.Bits+7)/8], uint64(info.Bits)); err != nil {
		return 0, err
	}
	return integer(buf[:(info.Bits+7)/8], m.order), nil
}

// integer is the number in at most 8 bytes.
func integer(b []byte, order locexpr.ByteOrder) uint64 {
	var full [8]byte
	if order == locexpr.BigEndian {
		copy(full[8-len(b):], b)
		return binary.BigEndian.Uint64(full[:])
	}
	copy(full[:], b)
	return binary.LittleEndian.Uint64(full[:])
}

// applyCallSite puts the row's call-site rules in force: where this frame's own
// registers are while its call is in progress. They override what the callee's
// row recovered, so the top frame, which is in no call, does not use them.
func (f *frame) applyCallSite() error {
	rules := f.source.row.CallSite
	if f.callee == nil || len(rules) == 0 {
		return nil
	}
	// All are evaluated before one takes effect: they hold side by side.
	places := make([]locexpr.Location, len(rules))
	for i, r := range rules {
		l, err := r.Rule.Location(f.walker.evaluator(f.source), frameContext{frame: f}, r.Column, f.cfa)
		if err != nil {
			return err
		}
		places[i] = l
	}
	for i, r := range rules {
		if f.isCore(r.Column) {
			f.slots[r.Column] = placeSlot(&places[i])
			continue
		}
		if f.callSite == nil {
			f.callSite = map[uint64]locexpr.Location{}
		}
		f.callSite[r.Column] = places[i]
	}
	return nil
}

// placeSlot is the slot of a register that is at a location.
func placeSlot(l *locexpr.Location) slot {
	if l.IsUndefined() {
		return slot{}
	}
	if space, address, ok := l.MemoryAddress(); ok && space == locexpr.DefaultSpace {
		return slot{kind: slotMemory, bits: address}
	}
	return slot{kind: slotPlace, place: l}
}

// callerSlots finds where the caller's core registers are. It fills dst.
func (f *frame) callerSlots(dst []slot) error {
	row, defaults := f.source.row, f.source.defaults
	space, base, inDefault := f.cfa.MemoryAddress()
	inDefault = inDefault && space == locexpr.DefaultSpace
	for n := range dst {
		dst[n] = slot{}
		if f.walker.machine.bits[n] == 0 {
			continue
		}
		rule := defaults.rule(row, uint64(n))
		switch rule.Kind {
		case cfi.Undefined, cfi.Unspecified:
			continue
		case cfi.SameValue:
			dst[n] = f.slots[n]
			continue
		case cfi.Register:
			if f.isCore(rule.Register) {
				dst[n] = f.slots[rule.Register]
				continue
			}
		case cfi.Offset:
			if inDefault {
				dst[n] = slot{kind: slotMemory, bits: base + uint64(rule.Offset)}
				continue
			}
		case cfi.ValOffset:
			if inDefault {
				dst[n] = slot{kind: slotValue, bits: base + uint64(rule.Offset)}
				continue
			}
		}
		l, err := rule.Location(f.walker.evaluator(f.source), frameContext{frame: f}, uint64(n), f.cfa)
		if err != nil {
			// One register whose rule cannot be evaluated does not cost the
			// others: it is undefined, unless the walk itself needs it.
			if uint64(n) == row.ReturnAddress {
				return err
			}
			continue
		}
		dst[n] = placeSlot(&l)
	}
	return nil
}

// The evaluation context of a frame.

func (c frameContext) Register(reg uint64) (locexpr.Location, error) { return c.location(reg) }
func (c frameContext) RegisterValue(reg uint64) (uint64, error)      { return c.value(reg) }
func (c frameContext) ByteOrder() locexpr.ByteOrder                  { return c.walker.machine.order }
func (c frameContext) Scope() locexpr.Scope                          { return c.walker.scope() }

// ProgramLocation is in the top frame the PC, and in another the call, not the
// return address, which may belong to something else (A.2.5.1).
func (c frameContext) ProgramLocation() (uint64, error) {
	if c.nowhere() {
		return c.NoContext.ProgramLocation()
	}
	if c.exact {
		return c.pc, nil
	}
	return c.pc - (c.offset - c.lookup), nil
}

func (c frameContext) CFA() (locexpr.Location, error) {
	if !c.hasCFA {
		return c.NoContext.CFA()
	}
	return c.cfa, nil
}

func (c frameContext) ReadMemory(space locexpr.AddressSpace, scope locexpr.Scope, address uint64, dst []byte) error {
	return c.walker.readSpace(space, scope, address, dst)
}

func (c frameContext) WriteMemory(locexpr.AddressSpace, locexpr.Scope, uint64, []byte) error {
	return errReadOnly
}

func (c frameContext) WriteRegister(uint64, locexpr.Scope, []byte, uint64, uint64) error {
	return errReadOnly
}

// errReadOnly says that a target keeps state and cannot be changed.
var errReadOnly = errors.New("the target is read-only")

func (c frameContext) RegisterBits(reg uint64) (uint32, bool) {
	if reg > uint64(^uint32(0)) {
		return 0, false
	}
	info, ok := c.walker.machine.desc.Register(uint32(reg))
	if !ok {
		return 0, false
	}
	return c.walker.registerBits(&info), true
}

func (c frameContext) SpaceBits(space locexpr.AddressSpace) (uint32, bool) {
	s, ok := c.walker.machine.desc.Space(space)
	return s.Bits, ok
}

// LargestSpaceBits is the address size of the largest space of the architecture.
func (c frameContext) LargestSpaceBits() uint32 {
	d := c.walker.machine.desc
	bits := d.AddressBits
	for i := range d.AddressSpaces {
		bits = max(bits, d.AddressSpaces[i].Bits)
	}
	return bits
}

func (c frameContext) ReadRegister(reg uint64, _ locexpr.Scope, dst []byte, bitOffset, bits uint64) error {
	bytes, ok := c.walker.thread.Registers.Get(uint32(reg))
	if !ok || reg > uint64(^uint32(0)) {
		return fmt.Errorf("%s is not in the target: %w", c.walker.registerName(reg), target.ErrNoMemory)
	}
	if bitOffset+bits < bits || bitOffset+bits > uint64(len(bytes))*8 {
		return fmt.Errorf("bits %d to %d of %s, which has %d", bitOffset, bitOffset+bits, c.walker.registerName(reg), len(bytes)*8)
	}
	value, err := locexpr.ImplicitLocation(bytes).Offset(int64(bitOffset))
	if err != nil {
		return err
	}
	return value.Read(c, dst, bits)
}
