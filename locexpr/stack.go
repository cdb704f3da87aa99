// SPDX-License-Identifier: Apache-2.0

package locexpr

import "fmt"

// This file has the stack, the implicit conversions between values and
// locations (A.2.5.4.4.3), and the stack operations (A.2.5.4.1).

// push adds an entry to the stack and returns it. It still has the contents of an earlier
// entry.
func (ev *evaluation) push() (*Entry, error) {
	if ev.n >= len(ev.stack) {
		if err := ev.grow(); err != nil {
			return nil, err
		}
	}
	s := &ev.stack[ev.n]
	ev.n++
	return s, nil
}

func (ev *evaluation) grow() error {
	if ev.n >= ev.settings.Limits.depth() {
		return fmt.Errorf("%w: more than %d entries on the stack", ErrLimit, ev.settings.Limits.depth())
	}
	larger := make([]Entry, min(2*len(ev.stack), ev.settings.Limits.depth()))
	copy(larger, ev.stack)
	ev.stack = larger
	return nil
}

// top returns the top entry, nil when the stack is empty.
func (ev *evaluation) top() *Entry {
	if ev.n == 0 {
		return nil
	}
	return &ev.stack[ev.n-1]
}

// need checks that the stack holds n entries.
func (ev *evaluation) need(n int) error {
	if ev.n < n {
		return illFormed{fmt.Errorf("%w: %d entries, %d needed", ErrStackUnderflow, ev.n, n)}
	}
	return nil
}

// pushGeneric pushes a value of the generic type, cut to its size
// (A.2.5.4.3.1).
func (ev *evaluation) pushGeneric(v uint64) error { return ev.pushWord(genericEntry, v) }

// pushAddress pushes the location of a byte address in the default space.
func (ev *evaluation) pushAddress(address uint64) error { return ev.pushWord(addressEntry, address) }

func (ev *evaluation) pushWord(kind entryKind, v uint64) error {
	if ev.n >= len(ev.stack) {
		if err := ev.grow(); err != nil {
			return err
		}
	}
	s := &ev.stack[ev.n]
	ev.n++
	s.kind = kind
	s.value.word = v & ev.mask
	return nil
}

func (ev *evaluation) pushLocation(l *Location) error {
	s, err := ev.push()
	if err != nil {
		return err
	}
	s.kind = locationEntry
	s.location = *l
	return nil
}

// pushValue pushes a value of any type.
func (ev *evaluation) pushValue(v Value) error {
	if v.typ == nil && v.more == nil {
		return ev.pushGeneric(v.word)
	}
	s, err := ev.push()
	if err != nil {
		return err
	}
	s.kind = valueEntry
	s.value = v
	return nil
}

// popInteger pops a value of an integral type, and returns its low 64 bits,
// zero-extended.
func (ev *evaluation) popInteger() (uint64, error) {
	if n := ev.n - 1; n >= 0 && ev.stack[n].kind <= addressEntry {
		ev.n = n
		return ev.stack[n].value.word, nil
	}
	i, err := ev.popIntegral()
	return i.word & lowMask(i.size), err
}

// popSpace pops the number of an address space.
func (ev *evaluation) popSpace() (AddressSpace, error) {
	i, err := ev.popIntegral()
	if err != nil {
		return 0, err
	}
	v, ok := i.uint64()
	if !ok {
		return 0, illFormedf("the architecture has no address space of such a number")
	}
	return AddressSpace(v), nil
}

// popDisplacement pops a signed distance. The signedness of the generic type is
// not specified; a displacement may be negative, so it is taken as signed
// (A.2.5.4.4.1).
func (ev *evaluation) popDisplacement() (int64, error) {
	i, err := ev.popIntegral()
	if err != nil {
		return 0, err
	}
	v, ok := i.int64()
	if !ok {
		return 0, fmt.Errorf("%w: a displacement beyond 63 bits", ErrOutOfBounds)
	}
	return v, nil
}

// unary returns the top entry as a value of the generic type, for an operation that replaces
// it; nil when there is none or it is none.
func (ev *evaluation) unary() *Entry {
	if ev.n == 0 {
		return nil
	}
	s := &ev.stack[ev.n-1]
	if s.kind > addressEntry {
		return nil
	}
	s.kind = genericEntry
	return s
}

// binary pops the top entry, and returns it and the one below, which the operation replaces,
// as integers of the generic type. s is nil, and nothing has changed, when there are no two
// such entries.
func (ev *evaluation) binary() (s *Entry, top uint64) {
	n := ev.n - 1
	if n < 1 || n >= len(ev.stack) {
		return nil, 0
	}
	s, t := &ev.stack[n-1], &ev.stack[n]
	if s.kind > addressEntry || t.kind > addressEntry {
		return nil, 0
	}
	s.kind = genericEntry
	ev.n = n
	return s, t.value.word
}

// addressOf converts a location to a value: the address of a memory byte
// address location in the default space.
func (ev *evaluation) addressOf(l *Location) (uint64, error) {
	space, address, ok := l.MemoryAddress()
	if !ok || space != DefaultSpace {
		return 0, illFormedf("a value is needed, %v is no byte address of the default address space", l.brief())
	}
	return address & ev.mask, nil
}

// popLocation pops a location description.
func (ev *evaluation) popLocation() (Location, error) {
	if ev.n == 0 {
		return Location{}, ev.need(1)
	}
	ev.n--
	return ev.locationOf(&ev.stack[ev.n])
}

// locationOf converts an entry to a location description: a generic value is an address of
// the default space, and an implicit pointer to that space is its target.
func (ev *evaluation) locationOf(s *Entry) (Location, error) {
	switch s.kind {
	case genericEntry, addressEntry:
		return ev.memory(DefaultSpace, s.value.word), nil
	case valueEntry:
		if p := s.value.implicitPointer(); p != nil && p.place.Space == DefaultSpace {
			return ev.pointerTarget(p)
		}
		return Location{}, illFormedf("a location is needed, the value %v does not convert", s.value)
	}
	if s.location.isIncomplete() {
		return Location{}, errIncomplete
	}
	if n := len(s.location.more); n > 0 {
		if err := ev.charge(n / placesPerStep); err != nil {
			return Location{}, err
		}
	}
	return s.location, nil
}

var errIncomplete = illFormedf("incomplete composite location")

// memory returns a byte address of a space, bound to the context.
func (ev *evaluation) memory(space AddressSpace, address uint64) Location {
	return Location{place: Place{Storage: Memory, Space: space, Address: address, Scope: ev.context.Scope()}}
}

// pick returns entry index, counted from the top, for a stack operation.
func (ev *evaluation) pick(index int) (*Entry, error) {
	if ev.n <= index {
		return nil, ev.need(index + 1)
	}
	s := &ev.stack[ev.n-1-index]
	if s.kind == locationEntry && s.location.isIncomplete() {
		return nil, errIncomplete
	}
	return s, nil
}

// pushCopy pushes a copy of entry index.
func (ev *evaluation) pushCopy(index int) error {
	if _, err := ev.pick(index); err != nil {
		return err
	}
	s, err := ev.push() // may move the stack
	if err != nil {
		return err
	}
	*s = ev.stack[ev.n-2-index]
	return nil
}

func opDup(ev *evaluation) error  { return ev.pushCopy(0) }
func opOver(ev *evaluation) error { return ev.pushCopy(1) }
func opPick(ev *evaluation) error { return ev.pushCopy(int(ev.inst.Operands[0])) }

func opDrop(ev *evaluation) error {
	if _, err := ev.pick(0); err != nil {
		return err
	}
	ev.n--
	return nil
}

func opSwap(ev *evaluation) error {
	second, err := ev.pick(1)
	if err != nil {
		return err
	}
	top, err := ev.pick(0)
	if err != nil {
		return err
	}
	*top, *second = *second, *top
	return nil
}

func opRot(ev *evaluation) error {
	third, err := ev.pick(2)
	if err != nil {
		return err
	}
	second, err := ev.pick(1)
	if err != nil {
		return err
	}
	top, err := ev.pick(0)
	if err != nil {
		return err
	}
	*top, *second, *third = *second, *third, *top
	return nil
}
