// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"math"
	"strings"

	"github.com/unwindd/unwindd/locexpr"
)

// Names are the names of registers and address spaces for threads with a number of
// lanes. locexpr reads and prints text with them.
//
// A register that only threads with another number of lanes have has no name: it is
// printed as its number, and its name stands for the thread's own register, or for none.
// Where the lane count is unknown, a name that ranges share stands for the first one.
type Names struct {
	d     *Description
	lanes uint32
}

var _ locexpr.Names = Names{}

// Names returns the names for threads with that many lanes; 0: unknown.
func (d *Description) Names(lanes uint32) Names { return Names{d, lanes} }

// Register returns the DWARF number of the register of a name or alias, in any
// case.
func (n Names) Register(name string) (number uint64, ok bool) {
	info, ok := n.RegisterInfo(name)
	return uint64(info.Number), ok
}

// RegisterInfo returns the register of a name or alias, in any case.
func (n Names) RegisterInfo(name string) (info RegisterInfo, ok bool) {
	for i := range n.d.Registers {
		r := &n.d.Registers[i]
		if !n.has(r.Lanes) {
			continue
		}
		if index, ok := r.index(name); ok {
			return r.info(index), true
		}
	}
	return RegisterInfo{}, false
}

// RegisterName returns the name of a register; ok is false where it has none
// that leads back to it.
func (n Names) RegisterName(number uint64) (name string, ok bool) {
	if number > math.MaxUint32 {
		return "", false
	}
	info, ok := n.d.Register(uint32(number))
	if !ok || !n.has(info.Lanes) {
		return "", false
	}
	back, ok := n.RegisterInfo(info.Name)
	return info.Name, ok && back.Number == info.Number
}

// has reports whether threads have the registers of a range.
func (n Names) has(lanes uint32) bool { return lanes == 0 || n.lanes == 0 || lanes == n.lanes }

// Space returns the address space of a name, in any case. The default space is
// "none" besides.
func (n Names) Space(name string) (space locexpr.AddressSpace, ok bool) {
	for i := range n.d.AddressSpaces {
		if strings.EqualFold(n.d.AddressSpaces[i].Name, name) {
			return n.d.AddressSpaces[i].Number, true
		}
	}
	if info, ok := n.d.Space(locexpr.DefaultSpace); ok && strings.EqualFold(info.Name, name) || strings.EqualFold(name, "none") {
		return locexpr.DefaultSpace, true
	}
	return 0, false
}

// SpaceName returns the name of an address space.
func (n Names) SpaceName(space locexpr.AddressSpace) (name string, ok bool) {
	info, ok := n.d.Space(space)
	return info.Name, ok
}

// Processor returns a processor by its name, in any case; the part behind a colon (the
// features of "gfx90a:xnack+") does not matter.
func (d *Description) Processor(name string) (p Processor, ok bool) {
	name, _, _ = strings.Cut(name, ":")
	for i := range d.Processors {
		if strings.EqualFold(d.Processors[i].Name, name) {
			return d.Processors[i], true
		}
	}
	return Processor{}, false
}

// ObjectProcessor returns the processor of the ELF flags of a code object; ok is false
// where there is none.
func (d *Description) ObjectProcessor(flags uint32) (p Processor, ok bool) {
	for _, p := range d.Processors {
		if p.FlagsMask != 0 && flags&p.FlagsMask == p.Flags {
			return p, true
		}
	}
	return Processor{}, false
}

// ShortRegisterName returns the shorter of a register's name and alias that lead back to
// it: v0 for VGPR0, EXEC for EXEC_MASK_64.
func (n Names) ShortRegisterName(number uint64) (name string, ok bool) {
	name, ok = n.RegisterName(number)
	if !ok {
		return "", false
	}
	if info, _ := n.d.Register(uint32(number)); info.Alias != "" && len(info.Alias) < len(name) {
		if back, ok := n.Register(info.Alias); ok && back == number {
			return info.Alias, true
		}
	}
	return name, true
}
