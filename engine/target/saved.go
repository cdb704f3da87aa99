// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// HasSaved reports whether a register of the thread lies in the target's memory.
func HasSaved(t *trace.Thread, number uint32) bool {
	_, ok := savedRegisters(t, number)
	return ok
}

// savedRegisters returns the saved registers that include a register.
func savedRegisters(t *trace.Thread, number uint32) (s *sdk.SavedRegisters, ok bool) {
	for i := range t.Saved {
		if s := &t.Saved[i]; number-s.First < s.Count {
			return s, true
		}
	}
	return nil, false
}

// ReadSaved reads a register of a thread from the target's memory; info has its size. ok is
// false if the register does not lie there, or the target lacks that memory.
func ReadSaved(t Target, th *trace.Thread, info sdk.RegisterInfo) (value []byte, ok bool) {
	s, ok := savedRegisters(th, info.Number)
	if !ok {
		return nil, false
	}
	size := (uint64(info.Bits) + 7) / 8
	value = make([]byte, size)
	n, err := t.ReadMemory(s.Into, s.Address+uint64(info.Number-s.First)*size, value)
	return value, err == nil && n == len(value)
}

// AllRegisters returns the registers of a thread's top frame, including the registers that
// lie in memory as far as the target has it.
func AllRegisters(t Target, th *trace.Thread, d *sdk.Description) sdk.Registers {
	if len(th.Saved) == 0 {
		return th.Registers
	}
	saved := slices.SortedFunc(slices.Values(th.Saved), func(a, b sdk.SavedRegisters) int { return cmp.Compare(a.First, b.First) })
	var all sdk.Registers // set in the order of their numbers, so that Set moves none
	own := th.Registers.Numbers
	addOwn := func(below uint64) {
		for ; len(own) > 0 && uint64(own[0]) < below; own = own[1:] {
			value, _ := th.Registers.Get(own[0])
			all.Set(own[0], value)
		}
	}
	for _, s := range saved {
		info, ok := d.Register(s.First)
		size := (int(info.Bits) + 7) / 8
		if !ok || size == 0 || int(s.Count) > sdk.MaxRegisterData/size {
			continue
		}
		addOwn(uint64(s.First))
		buf := make([]byte, size*int(s.Count))
		n, _ := t.ReadMemory(s.Into, s.Address, buf)
		for i := range n / size {
			all.Set(s.First+uint32(i), buf[i*size:][:size]) //nolint:gosec // below Count
		}
	}
	addOwn(1 << 32)
	return all
}

// HasPlaced reports whether a thread has an instance of an address space of its own.
func HasPlaced(th *trace.Thread, space locexpr.AddressSpace) bool {
	return slices.ContainsFunc(th.Memory, func(m sdk.SpaceMemory) bool { return m.Space == space })
}

// ReadPlaced reads an address of a thread's instance of an address space, at the place that the
// thread's Memory gives.
func ReadPlaced(t Target, th *trace.Thread, space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	return readPlaces(t, func(address uint64) *sdk.SpaceMemory { return spaceMemory(th, space, address) }, address, buf)
}

func spaceMemory(t *trace.Thread, space locexpr.AddressSpace, address uint64) *sdk.SpaceMemory {
	for i := range t.Memory {
		if m := &t.Memory[i]; m.Space == space && address-m.Start < m.Size {
			return m
		}
	}
	return nil
}
