// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"math"
	"slices"
)

// value is a symbolic value of a register or a word of the stack.
type value struct {
	kind valueKind
	base uint8 // the symbol that offset counts from
	add  int16 // contents: added to the loaded word
	off  int32
}

type valueKind uint8

const (
	unknown    valueKind = iota
	address              // symbol base + off
	contents             // the word that was at symbol base + off when the analysis began, + add
	tableEntry           // read from a table of branch targets
	constant             // an address of code or data
)

// The symbols: 0 to 15 are the values of the general registers when the analysis
// began; higher ones are addresses that only the machine knows (an aligned
// stack pointer), one for each instruction that makes one.
const firstFresh = GPRCount

// entryValue is the value of a register when the analysis began.
func entryValue(register uint8) value { return value{kind: address, base: register} }

// plus adds n to v.
func (v value) plus(n int64) value {
	switch v.kind {
	case address:
		if sum := int64(v.off) + n; n >= math.MinInt32 && n <= math.MaxInt32 && sum >= math.MinInt32/2 && sum <= math.MaxInt32/2 {
			v.off = int32(sum)
			return v
		}
	case contents:
		if sum := int64(v.add) + n; n >= math.MinInt16 && n <= math.MaxInt16 && sum >= math.MinInt16 && sum <= math.MaxInt16 {
			v.add = int16(sum)
			return v
		}
	case constant:
		return v
	}
	return value{}
}

// slot is a piece of the stack whose contents are known, or known to be
// overwritten.
type slot struct {
	base uint8
	size uint8
	off  int32
	v    value
}

// maxSlots bounds the slots of a state. Functions save six registers.
const maxSlots = 128

// state has the known values before an instruction.
type state struct {
	gpr   [GPRCount]value
	slots []slot // by base and offset, without overlap; never changed, only replaced
}

func (s *state) equal(o *state) bool { return s.gpr == o.gpr && slices.Equal(s.slots, o.slots) }

// overlapping returns the range of slots that share a byte with size bytes at a.
func (s *state) overlapping(a value, size int) (from, to int) {
	from = len(s.slots)
	for i := range s.slots {
		x := &s.slots[i]
		if x.base < a.base || x.base == a.base && int64(x.off)+int64(x.size) <= int64(a.off) {
			continue
		}
		from = i
		break
	}
	to = from
	for to < len(s.slots) && s.slots[to].base == a.base && int64(s.slots[to].off) < int64(a.off)+int64(size) {
		to++
	}
	return from, to
}

// load returns the word at a. Where no slot covers them they are unchanged since the
// beginning, if initial means that the contents then are known.
func (s *state) load(m *Mode, a value, initial bool) value {
	if a.kind != address {
		return value{}
	}
	from, to := s.overlapping(a, m.Word)
	switch {
	case to == from && initial && a.base < firstFresh:
		return value{kind: contents, base: a.base, off: a.off}
	case to == from+1 && s.slots[from].off == a.off && int(s.slots[from].size) == m.Word:
		return s.slots[from].v
	}
	return value{}
}

// store puts size bytes at a. An unknown address is assumed not to be where registers are
// saved: no compiler writes there.
//
// A value by which no frame is recovered is kept only where the initial contents of the
// stack count: then as a slot that was overwritten or pushed.
func (s *state) store(m *Mode, a value, size int, v value, initial bool) {
	if a.kind != address {
		return
	}
	if size != m.Word {
		v = value{}
	}
	from, to := s.overlapping(a, size)
	keep := m.isWorthKeeping(v) || initial && (from < to || a == s.gpr[SP])
	if from == to && !keep {
		return
	}
	slots := make([]slot, 0, len(s.slots)+3)
	slots = append(slots, s.slots[:from]...)
	if keep {
		end := int64(a.off) + int64(size)
		// The rest of a slot beyond the bytes that were written is unknown.
		if from < to && s.slots[from].off < a.off {
			slots = append(slots, slot{base: a.base, off: s.slots[from].off, size: uint8(a.off - s.slots[from].off)})
		}
		slots = append(slots, slot{base: a.base, off: a.off, size: uint8(size), v: v})
		if last := to - 1; from < to && int64(s.slots[last].off)+int64(s.slots[last].size) > end {
			slots = append(slots, slot{base: a.base, off: int32(end), size: uint8(int64(s.slots[last].off) + int64(s.slots[last].size) - end)})
		}
	}
	slots = append(slots, s.slots[to:]...)
	if len(slots) > maxSlots {
		s.forget(initial)
		return
	}
	s.slots = slots
}

// forget drops the slots of the stack. Where its initial contents count, the stack
// pointer goes too, so that nothing is concluded from them.
func (s *state) forget(all bool) {
	s.slots = nil
	if all {
		s.gpr = [GPRCount]value{}
	}
}

// isWorthKeeping reports whether a frame may be recovered by v: a register's initial
// value, an address of the frame, the return address.
func (m *Mode) isWorthKeeping(v value) bool {
	switch v.kind {
	case address:
		return v.base == SP || v.base < firstFresh && v.off == 0 && m.IsPreserved(v.base)
	case contents:
		return true
	}
	return false
}

// expire drops the slots that lie more than keep bytes below the stack
// pointer: anything may overwrite them.
func (s *state) expire(keep int64) {
	sp := s.gpr[SP]
	if sp.kind != address {
		return
	}
	dead := func(x slot) bool { return x.base == sp.base && int64(x.off) < int64(sp.off)-keep }
	if slices.ContainsFunc(s.slots, dead) {
		s.slots = slices.DeleteFunc(slices.Clone(s.slots), dead)
	}
}

// renew sets a register to a symbol that nothing else refers to.
func (s *state) renew(register uint8, symbol uint8) {
	for i := range s.gpr {
		if v := s.gpr[i]; v.kind != unknown && v.base == symbol {
			s.gpr[i] = value{}
		}
	}
	stale := func(x slot) bool { return x.base == symbol || x.v.kind != unknown && x.v.base == symbol }
	if slices.ContainsFunc(s.slots, stale) {
		s.slots = slices.DeleteFunc(slices.Clone(s.slots), stale)
	}
	s.gpr[register] = value{kind: address, base: symbol}
}

// join returns the values that two states have in common.
func join(a, b *state, initial bool) state {
	out := *a
	for i := range out.gpr {
		if a.gpr[i] != b.gpr[i] {
			out.gpr[i] = value{}
		}
	}
	if slices.Equal(a.slots, b.slots) {
		return out
	}
	out.slots = nil
	if !initial {
		// A slot that is absent is not known.
		for _, x := range a.slots {
			if slices.Contains(b.slots, x) {
				out.slots = append(out.slots, x)
			}
		}
		return out
	}
	// A slot that is absent has its initial contents: what one state has overwritten is
	// not known in both.
	out.slots = joinSlots(a.slots, b.slots)
	if len(out.slots) > maxSlots {
		out.forget(true)
	}
	return out
}

// joinSlots merges two lists of slots. A slot that is not in both lists is
// unknown; the bytes of slots that overlap become one slot.
func joinSlots(a, b []slot) []slot {
	out := make([]slot, 0, len(a)+len(b))
	for len(a) > 0 || len(b) > 0 {
		var x slot
		switch {
		case len(b) == 0 || len(a) > 0 && (a[0].base < b[0].base || a[0].base == b[0].base && a[0].off <= b[0].off):
			x, a = a[0], a[1:]
			if len(b) > 0 && x == b[0] {
				b = b[1:]
			} else {
				x.v = value{}
			}
		default:
			x, b = b[0], b[1:]
			x.v = value{}
		}
		if n := len(out); n > 0 {
			last := &out[n-1]
			lastEnd, end := int64(last.off)+int64(last.size), int64(x.off)+int64(x.size)
			if last.base == x.base && int64(x.off) < lastEnd {
				last.v = value{}
				if size := max(lastEnd, end) - int64(last.off); size <= math.MaxUint8 {
					last.size = uint8(size)
					continue
				}
				x.off, x.size = int32(lastEnd), uint8(end-lastEnd)
			}
		}
		out = append(out, x)
	}
	return out
}

// locate is the address of an operand in memory.
func (s *state) locate(m *Memory) value {
	if m.IsOpaque || m.Base == None {
		return value{}
	}
	v := s.gpr[m.Base]
	if v.kind != address {
		return value{}
	}
	return v.plus(m.Offset)
}

// push and pop move n bytes.
func (s *state) push(m *Mode, v value, n int, initial bool) {
	s.gpr[SP] = s.gpr[SP].plus(-int64(n))
	s.store(m, s.gpr[SP], n, v, initial)
}

func (s *state) pop(m *Mode, n int, initial bool) value {
	var v value
	if n == m.Word {
		v = s.load(m, s.gpr[SP], initial)
	}
	s.gpr[SP] = s.gpr[SP].plus(int64(n))
	return v
}

// apply makes s the state after e. symbol is the symbol that e's instruction makes, 0
// where there are no more.
func (s *state) apply(m *Mode, e *Effect, symbol uint8, initial bool) {
	switch e.Kind {
	case Push, Pop, Leave, Enter:
		s.applyStack(m, e, initial)
	case Move:
		s.gpr[e.Dst] = s.gpr[e.Src]
	case Load:
		s.gpr[e.Dst] = s.load(m, s.locate(&e.Mem), initial)
	case Store:
		s.store(m, s.locate(&e.Mem), m.Word, s.gpr[e.Src], initial)
	case Address:
		s.gpr[e.Dst] = s.addressOf(&e.Mem)
	case Add:
		s.gpr[e.Dst] = s.gpr[e.Dst].plus(e.Imm)
	case Align:
		if symbol == 0 {
			s.gpr[e.Dst] = value{}
			break
		}
		s.renew(e.Dst, symbol)
	case Swap:
		s.gpr[e.Dst], s.gpr[e.Src] = s.gpr[e.Src], s.gpr[e.Dst]
	case Table:
		s.gpr[e.Dst] = entryIf(e.Mem.IsTable || s.isConstant(e.Mem.Base) || s.isConstant(e.Mem.Index))
	case Extend:
		s.gpr[e.Dst] = entryIf(s.gpr[e.Src].kind == tableEntry)
	case Sum:
		s.gpr[e.Dst] = entryIf(s.gpr[e.Dst].kind == tableEntry || s.gpr[e.Src].kind == tableEntry)
	case Call:
		s.clobber(^m.preserved)
		s.expire(0)
	case Other, Branch:
		if e.HasMem {
			s.store(m, s.locate(&e.Mem), int(e.Size), value{}, initial)
		}
	}
	s.clobber(e.Clobbers)
	if e.Dst == SP && (e.Kind == Add || e.Kind == Address || e.Kind == Move) {
		s.expire(m.RedZone)
	}
}

// applyStack applies an effect that pushes or pops.
func (s *state) applyStack(m *Mode, e *Effect, initial bool) {
	switch e.Kind {
	case Push:
		var v value
		switch {
		case e.Src != None:
			v = s.gpr[e.Src]
		case e.HasMem:
			v = s.load(m, s.locate(&e.Mem), initial)
		}
		s.push(m, v, int(e.Size), initial)
	case Pop:
		v := s.pop(m, int(e.Size), initial)
		switch {
		case e.Dst != None:
			s.gpr[e.Dst] = v
		case e.HasMem: // its address is computed with the new rsp
			s.store(m, s.locate(&e.Mem), int(e.Size), v, initial)
		}
		s.expire(m.RedZone)
	case Leave:
		s.gpr[SP] = s.gpr[BP]
		s.gpr[BP] = s.pop(m, m.Word, initial)
		s.expire(m.RedZone)
	case Enter:
		s.push(m, s.gpr[BP], m.Word, initial)
		s.gpr[BP] = s.gpr[SP]
		s.gpr[SP] = s.gpr[SP].plus(-e.Imm)
	}
}

// clobber forgets registers, a bit each.
func (s *state) clobber(mask uint16) {
	for i := range s.gpr {
		if mask>>i&1 != 0 {
			s.gpr[i] = value{}
		}
	}
}

// addressOf is the address of an operand in memory as lea computes it.
func (s *state) addressOf(m *Memory) (v value) {
	if !m.IsOpaque && m.Base != None {
		v = s.gpr[m.Base].plus(m.Offset)
	}
	if m.IsRelative {
		v.kind = constant
	}
	if m.Base != None && m.Index != None &&
		(s.gpr[m.Base].kind == tableEntry || s.gpr[m.Index].kind == tableEntry) {
		v.kind = tableEntry // an entry relative to its table
	}
	return v
}

func (s *state) isConstant(register uint8) bool {
	return register != None && s.gpr[register].kind == constant
}

// entryIf is an entry of a table, or a value that is not known.
func entryIf(isEntry bool) (v value) {
	if isEntry {
		v.kind = tableEntry
	}
	return v
}

func (v value) isAddress() bool { return v.kind == address }
