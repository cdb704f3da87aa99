// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// slotKind is the kind of a place of a register.
type slotKind uint8

const (
	slotUndefined slotKind = iota // no recoverable value
	slotLive                      // still in register bits of the thread
	slotMemory                    // in the default address space at bits
	slotValue                     // bits is the value, of an address's size
	slotPlace                     // at the location in place
)

// slot is where a register of a frame is: a location (heterogeneous extension, A.6.4.1),
// compact for the rules of nearly every row.
type slot struct {
	kind  slotKind
	bits  uint64
	place *locexpr.Location
}

// placedRegister is a register with its place, or why that is not known.
type placedRegister struct {
	register uint64
	slot     slot
	err      error
}

// frame is an activation while its stack is walked. It has no registers: the place of each
// follows from the rows of the frames further in.
type frame struct {
	walker *walker
	callee *frame // nil in the top frame
	index  int
	pc     uint64
	exact  bool
	found  trace.FoundBy

	restsOnGuess bool   // a frame further in is a guess
	passed       uint16 // possible return addresses nearer than the one that the scan took for this frame

	module *code.Module
	offset uint64 // pc as an address of module's object
	lookup uint64 // the address to look up rows and symbols by: inside the call, or offset

	source   *code.Row // the row in force; nil until found
	cfa      uint64    // an address of cfaSpace, where hasCFA
	cfaSpace locexpr.AddressSpace
	hasCFA   bool
	compiled bool   // source's compiled row is in force, and gave the CFA
	isPlain  bool   // source is neither a signal's nor entered by a return; false: not known
	settled  bool   // CFA and call-site rules are in force: the row's rules for the caller are final
	same     uint16 // registers that its row and others below leave unchanged: see settle

	callSite []placedRegister // own registers that a call-site rule places
	memo     []placedRegister // the caller's registers that were found by evaluation
	entering []uint64         // registers whose place on entry is being found
	listed   []slot           // the registers that are listed for frames; nil: none are

	base *base // where its registers are, in the first frame of a segment; nil: its callees have them

	place *frame // in a frame as waiting lanes see it: the frame at its PC; else nil

	called *calledBy // how its function was called, as far as known; nil: nothing is

	generated *RuntimeFunction // that a runtime made, at its PC; notGenerated: none did; nil: it is not known

	equal *equalFunction // its function among several with the same code; nil: there is only one
}

// isGuess reports whether f is a guess, or rests on one.
func (f *frame) isGuess() bool { return f.restsOnGuess || f.found.IsGuess() }

// forget removes the effects of a row.
func (f *frame) forget() {
	f.source, f.hasCFA, f.compiled, f.isPlain, f.settled, f.same = nil, false, false, false, false, 0
	f.callSite, f.memo = f.callSite[:0], f.memo[:0]
}

// frameContext is a frame as the context in which expressions of its row are evaluated.
type frameContext struct{ *frame }

var _ interface {
	locexpr.Context
	locexpr.CFAContext
	locexpr.LocationContext
	locexpr.EntryRegisterContext
	locexpr.FloatContext
	locexpr.RegisterContext
	locexpr.SpaceContext
} = frameContext{}

// errNoElement makes the error of an element of the context that is not specified.
func errNoElement(name string) error { return fmt.Errorf("%s: %w", name, locexpr.ErrNoContext) }

// ThreadLanes returns how many lanes the thread has.
func (c frameContext) ThreadLanes() uint32 { return c.walker.thread.lanes() }

// isNowhere reports whether the PC of the frame is not known: it is the top frame of a thread
// whose PC the target does not have.
func (f *frame) isNowhere() bool { return f.walker.thread.noPC }

// find returns where register reg of this frame is.
func (f *frame) find(ctx context.Context, reg uint64) (slot, error) {
	if s, ok := f.placed(reg); ok {
		return s, nil
	}
	if reg == f.walker.machine.namedPC {
		return slot{kind: slotValue, bits: f.pc}, nil
	}
	if f.base != nil {
		return f.base.find(f.walker, reg)
	}
	i, indexed := f.walker.index(reg)
	return f.callee.findSaved(ctx, reg, i, indexed)
}

// placed returns where register reg of this frame is if no row below is needed for it.
func (f *frame) placed(reg uint64) (s slot, ok bool) {
	for i := range f.callSite {
		if f.callSite[i].register == reg {
			return f.callSite[i].slot, true
		}
	}
	return slot{kind: slotLive, bits: reg}, f.callee == nil
}

// findSaved returns where the caller's register reg is, by this frame's row and, as long as
// rows leave it in a register, by the rows of the frames below. i is the register's index in
// compiled rows, where indexed.
func (f *frame) findSaved(ctx context.Context, reg uint64, i int, indexed bool) (slot, error) {
	for {
		if f.compiled && indexed {
			switch rule := f.source.Fast.Rule(i); rule.Kind() {
			case cfi.Undefined:
				return slot{}, nil
			case cfi.Register:
				if f.same>>i&1 != 0 {
					f = f.spanStart()
				} else if from := int(rule.Value()); from != i {
					i, reg = from, f.walker.machine.Compiler.Columns()[from].Number
				}
			case cfi.Offset:
				address, ok := displace(f.cfa, rule.Value(), ^uint64(0))
				if !ok {
					return f.evaluate(ctx, reg)
				}
				return slot{kind: slotMemory, bits: address}, nil
			default: // ValOffset
				v, ok := displace(f.cfa, rule.Value(), f.walker.machine.addresses)
				if !ok {
					return f.evaluate(ctx, reg)
				}
				return slot{kind: slotValue, bits: v}, nil
			}
		} else {
			if f.source == nil {
				return slot{}, nil
			}
			switch rule := f.source.Defaults.Rule(f.source.Rules, reg); {
			case rule.Kind == cfi.SameValue:
			case rule.Kind == cfi.Register && f.hasSameSize(rule.Register, reg):
				reg = rule.Register
				i, indexed = f.walker.index(reg)
			default:
				return f.evaluate(ctx, reg)
			}
		}
		if s, ok := f.placed(reg); ok {
			return s, nil
		}
		if f.base != nil {
			return f.base.find(f.walker, reg)
		}
		f = f.callee
	}
}

// settle marks the CFA and the call-site rules of a frame as in force. same has the registers
// that its row leaves unchanged, by index in compiled rows; the frame keeps the ones that every
// row of its span leaves, and that no call-site rule places.
//
// A register that no function of a deep stack touches would be looked for through all of it by
// each frame. So frame n-1 stands for a span of the frames up to it, as many as the lowest bit
// of n, and a span in which every row leaves the register is skipped as one: the number of
// steps is logarithmic.
func (f *frame) settle(same uint16) {
	f.settled, f.same = true, same
	for i := range f.callSite {
		if column, indexed := f.walker.index(f.callSite[i].register); indexed {
			f.same &^= 1 << column
		}
	}
	inner := f.callee
	for size := 1; size < f.span() && f.same != 0; size *= 2 {
		f.same &= inner.same
		inner = inner.spanStart().callee
	}
}

// span returns how many frames f.same covers: f and the frames below it.
func (f *frame) span() int { return (f.index + 1) & -(f.index + 1) }

// spanStart returns the innermost frame of the span.
func (f *frame) spanStart() *frame { return f.walker.frames[f.index+1-f.span()] }

// displace adds an offset to an address; it returns false where the result is not between 0 and
// last.
func displace(address uint64, offset int64, last uint64) (uint64, bool) {
	sum := address + uint64(offset)
	return sum, sum <= last && (sum < address) == (offset < 0)
}

// hasSameSize reports whether registers may take each other's value (A.6.4.1).
func (f *frame) hasSameSize(a, b uint64) bool {
	c := frameContext{frame: f}
	aBits, aKnown := c.RegisterBits(a)
	bBits, bKnown := c.RegisterBits(b)
	return aBits == bBits || !aKnown || !bKnown
}

// evaluate finds the caller's register reg by evaluating its rule. Results of settled frames
// are kept: a register may be needed in every frame above, and an expression may need several.
//
// The rule of a vector register that is saved for some lanes names the register itself for the
// others, so that it is found through all frames further in that save it too. These are
// evaluated first, from the innermost on, because evaluations cannot be nested as deep as a
// stack is.
func (f *frame) evaluate(ctx context.Context, reg uint64) (slot, error) {
	if p := f.remembered(reg); p != nil {
		return p.slot, p.err
	}
	var inner []*frame
	for g := f.callee; g != nil && g.settled && g.remembered(reg) == nil; g = g.callee {
		if g.source == nil || g.source.Rules == nil {
			break
		}
		if rule, _ := g.rule(reg); rule.Kind == cfi.Expression || rule.Kind == cfi.ValExpression {
			inner = append(inner, g)
		}
	}
	for i := len(inner) - 1; i >= 0; i-- {
		_, _ = inner[i].evaluateRule(ctx, reg) // its users get the error
	}
	return f.evaluateRule(ctx, reg)
}

// remembered returns the earlier result of evaluate; nil if there is none.
func (f *frame) remembered(reg uint64) *placedRegister {
	for i := range f.memo {
		if f.memo[i].register == reg {
			return &f.memo[i]
		}
	}
	return nil
}

func (f *frame) evaluateRule(ctx context.Context, reg uint64) (slot, error) {
	var cfa locexpr.Location
	if f.hasCFA {
		cfa = f.cfaLocation()
	}
	var s slot
	rule, ev := f.rule(reg)
	l, err := rule.Location(ctx, ev, frameContext{frame: f}, reg, cfa)
	if err == nil {
		l = flattened(l)
		s = f.walker.slotOf(&l)
	}
	if f.settled {
		f.memo = append(f.memo, placedRegister{reg, s, err})
	}
	return s, err
}

// flattened returns a location whose parts are no composites, where each of them lies within
// one part of one. The lanes of a register that every frame of a stack saves would else be
// composites of composites, as deep as the stack.
func flattened(l locexpr.Location) locexpr.Location {
	outer := l.Place(0)
	if l.NumPlaces() != 1 || outer.Storage != locexpr.Composite {
		return l
	}
	parts := outer.Parts()
	var last locexpr.Place // the composite that has the part before
	var inner []locexpr.Part
	for i := range parts {
		p := parts[i].Location.Place(0)
		if parts[i].Location.NumPlaces() != 1 || p.Storage != locexpr.Composite {
			continue
		}
		offset := p.BitOffset
		if p.BitOffset = 0; inner == nil || !p.Equal(last) {
			last, inner = p, p.Parts()
		}
		j := 0
		for j < len(inner) && offset >= inner[j].Bits {
			offset -= inner[j].Bits
			j++
		}
		if j == len(inner) || parts[i].Bits > inner[j].Bits-offset {
			continue
		}
		if moved, err := inner[j].Location.Offset(int64(offset)); err == nil { //nolint:gosec // below the bits of a part
			parts[i].Location = moved
		}
	}
	// A new composite is as deep as its parts, while the old one was as deep as all its
	// possible parts.
	flat, err := locexpr.CompositeLocation(parts).WithScope(outer.Scope).Offset(int64(outer.BitOffset)) //nolint:gosec // within the composite
	if err != nil {
		return l
	}
	return flat
}

// cfaLocation returns the CFA of a frame that has one.
func (f *frame) cfaLocation() locexpr.Location {
	return locexpr.MemoryLocation(f.cfaSpace, f.cfa).WithScope(f.walker.scope())
}

// location returns where register reg of this frame is (A.2.5.4.4.4).
func (f *frame) location(ctx context.Context, reg uint64) (locexpr.Location, error) {
	s, err := f.find(ctx, reg)
	return f.walker.slotLocation(&s), err
}

// saved returns where the caller's register reg is, by this frame's row.
func (f *frame) saved(ctx context.Context, reg uint64) (locexpr.Location, error) {
	i, indexed := f.walker.index(reg)
	s, err := f.findSaved(ctx, reg, i, indexed)
	return f.walker.slotLocation(&s), err
}

// slotLocation returns a slot as a location description.
func (w *walker) slotLocation(s *slot) locexpr.Location {
	switch s.kind {
	case slotLive:
		return locexpr.RegisterLocation(s.bits, w.scope())
	case slotMemory:
		return locexpr.MemoryLocation(locexpr.DefaultSpace, s.bits)
	case slotValue:
		return locexpr.ImplicitUint64(s.bits, w.machine.Description.AddressBits, w.machine.Order)
	case slotPlace:
		return *s.place
	}
	return locexpr.UndefinedLocation()
}

// value returns the value of register reg of this frame, which has at most 64 bits.
func (f *frame) value(ctx context.Context, reg uint64) (uint64, error) {
	bits, ok := f.walker.machine.RegisterBits(reg)
	switch {
	case !ok:
		return 0, fmt.Errorf("%s has no register %d", f.walker.machine.Description.Name, reg)
	case bits > 64:
		return 0, fmt.Errorf("%s has %d bits, expected at most 64", f.walker.registerName(reg), bits)
	}
	s, err := f.find(ctx, reg)
	if err != nil {
		return 0, err
	}
	return f.read(ctx, &s, reg, bits)
}

// read reads register reg of this frame at its place.
func (f *frame) read(ctx context.Context, s *slot, reg uint64, bits uint32) (uint64, error) {
	w := f.walker
	switch s.kind {
	case slotLive:
		return w.liveRegister(s.bits)
	case slotMemory:
		v, err := w.word(ctx, s.bits, bits)
		if err != nil && w.isRestored(ctx, s.bits, reg) {
			return w.liveRegister(reg)
		}
		return v, err
	case slotValue:
		return s.bits, nil
	case slotUndefined:
		return 0, fmt.Errorf("%s %w in frame %d", w.registerName(reg), code.ErrUndefined, f.index)
	}
	var buf [8]byte
	if err := s.place.Read(ctx, frameContext{frame: f}, buf[:(bits+7)/8], uint64(bits)); err != nil {
		return 0, err
	}
	return integer(buf[:(bits+7)/8], w.machine.Order), nil
}

// integer returns the number in at most 8 bytes.
func integer(b []byte, order locexpr.ByteOrder) uint64 {
	if len(b) == 8 {
		if order == locexpr.BigEndian {
			return binary.BigEndian.Uint64(b)
		}
		return binary.LittleEndian.Uint64(b)
	}
	var full [8]byte
	if order == locexpr.BigEndian {
		copy(full[8-len(b):], b)
		return binary.BigEndian.Uint64(full[:])
	}
	copy(full[:], b)
	return binary.LittleEndian.Uint64(full[:])
}

// applyCallSite puts the row's call-site rules in force: where this frame's own registers are
// while its call is in progress. They override the callee's row, so the top frame, which is in
// no call, does not use them.
func (f *frame) applyCallSite(ctx context.Context) error {
	rules := f.source.Rules.CallSite
	if f.callee == nil || len(rules) == 0 {
		return nil
	}
	// All are evaluated before one takes effect: they apply together.
	places := make([]placedRegister, len(rules))
	for i, r := range rules {
		l, err := r.Rule.Location(ctx, f.rowEvaluator(f.source), frameContext{frame: f}, r.Column, f.cfaLocation())
		if err != nil {
			return err
		}
		places[i] = placedRegister{register: r.Column, slot: placeSlot(&l)}
	}
	f.callSite = append(f.callSite[:0], places...)
	return nil
}

// evaluateRules finds the caller's registers whose rules are expressions, among the registers
// of compiled rows. A walk may need any of them far above, where finding them all at once would
// be one evaluation within another for every frame between. A failure does not affect the
// others.
func (f *frame) evaluateRules(ctx context.Context) {
	for i := range f.source.Rules.Rules {
		r := &f.source.Rules.Rules[i]
		if r.Rule.Kind != cfi.Expression && r.Rule.Kind != cfi.ValExpression {
			continue
		}
		if _, indexed := f.walker.index(r.Column); indexed {
			_, _ = f.evaluate(ctx, r.Column) // its users get the error
		}
	}
}

// slotOf returns the slot of a register with a location.
func (w *walker) slotOf(l *locexpr.Location) slot {
	if v, bits, ok := l.ImplicitWord(w.machine.Order); ok && bits == w.machine.Description.AddressBits {
		return slot{kind: slotValue, bits: v}
	}
	return placeSlot(l)
}

// placeSlot returns the slot of a register with a location.
func placeSlot(l *locexpr.Location) slot {
	if l.IsUndefined() {
		return slot{}
	}
	if space, address, ok := l.MemoryAddress(); ok && space == locexpr.DefaultSpace {
		return slot{kind: slotMemory, bits: address}
	}
	place := *l // only this kind is allocated on the heap
	return slot{kind: slotPlace, place: &place}
}

// The evaluation context of a frame.

func (c frameContext) Register(ctx context.Context, reg uint64) (locexpr.Location, error) {
	return c.location(ctx, reg)
}

func (c frameContext) RegisterValue(ctx context.Context, reg uint64) (uint64, error) {
	return c.value(ctx, reg)
}

func (c frameContext) ByteOrder() locexpr.ByteOrder { return c.walker.machine.Order }
func (c frameContext) Scope() locexpr.Scope         { return c.walker.scope() }

// ProgramLocation returns the PC in the top frame, and in another the address of the call, not
// the return address, which may belong to other code (A.2.5.1).
func (c frameContext) ProgramLocation() (uint64, error) {
	if c.isNowhere() {
		return 0, errNoElement("program location")
	}
	if c.exact {
		return c.pc, nil
	}
	return c.pc - (c.offset - c.lookup), nil
}

func (c frameContext) CFA() (locexpr.Location, error) {
	if !c.hasCFA {
		return locexpr.Location{}, errNoElement("CFA of a call frame")
	}
	return c.cfaLocation(), nil
}

func (c frameContext) ReadMemory(ctx context.Context, space locexpr.AddressSpace, scope locexpr.Scope, address uint64, dst []byte) error {
	return c.walker.readSpace(ctx, space, scope, address, dst)
}

func (c frameContext) RegisterBits(reg uint64) (uint32, bool) {
	bits, ok := c.walker.machine.RegisterBits(reg)
	if !ok {
		return 0, false
	}
	return c.walker.threadBits(uint32(reg), bits), true
}

func (c frameContext) SpaceBits(space locexpr.AddressSpace) (uint32, bool) {
	s, ok := c.walker.machine.Description.Space(space)
	return s.Bits, ok
}

// FloatFormat returns the format of floating point numbers of a type.
func (c frameContext) FloatFormat(t *locexpr.BaseType) locexpr.FloatFormat {
	return c.walker.machine.Description.FloatFormat(t)
}

// NarrowIn returns where in a register objects are that are smaller than it.
func (c frameContext) NarrowIn(reg uint64) locexpr.Narrow {
	return c.walker.machine.Description.NarrowIn(reg)
}

// LargestSpaceBits returns the address size of the largest space of the architecture.
func (c frameContext) LargestSpaceBits() uint32 {
	d := c.walker.machine.Description
	bits := d.AddressBits
	for i := range d.AddressSpaces {
		bits = max(bits, d.AddressSpaces[i].Bits)
	}
	return bits
}

func (c frameContext) ReadRegister(ctx context.Context, reg uint64, _ locexpr.Scope, dst []byte, bitOffset, bits uint64) error {
	bytes, ok := c.walker.topRegister(reg)
	if !ok {
		return fmt.Errorf("%s is not in the target: %w", c.walker.registerName(reg), target.ErrNoMemory)
	}
	if bitOffset+bits < bits || bitOffset+bits > uint64(len(bytes))*8 {
		return fmt.Errorf("bits %d to %d of %s, which has %d", bitOffset, bitOffset+bits, c.walker.registerName(reg), len(bytes)*8)
	}
	if bitOffset%8 == 0 && bits%8 == 0 {
		copy(dst, bytes[bitOffset/8:][:bits/8])
		return nil
	}
	value, err := locexpr.ImplicitLocation(bytes).Offset(int64(bitOffset))
	if err != nil {
		return err
	}
	return value.Read(ctx, c, dst, bits)
}
