// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/locexpr"
)

// RegisterInfo is the description of one register.
type RegisterInfo struct {
	Number uint32 // DWARF number
	Name   string
	Bits   uint32
	Class  RegisterClass
	Alias  string // its second name; "": it has none
	Lanes  uint32 // only threads with this many lanes have it; 0: all have it
}

// Register returns the register of a DWARF number; ok is false where the
// architecture has none.
func (d *Description) Register(number uint32) (info RegisterInfo, ok bool) {
	for i := range d.Registers {
		r := &d.Registers[i]
		if number >= r.First && number-r.First < r.Count {
			return r.info(number - r.First), true
		}
	}
	return RegisterInfo{}, false
}

// RegisterByName returns the register of a name or alias, in any case. Where
// ranges share a name, it is the first range's; Names resolves it for a thread
// with a known lane count.
func (d *Description) RegisterByName(name string) (info RegisterInfo, ok bool) {
	for i := range d.Registers {
		r := &d.Registers[i]
		if index, ok := r.index(name); ok {
			return r.info(index), true
		}
	}
	return RegisterInfo{}, false
}

// RegisterSet returns the layout of a kind of record, or nil where the
// architecture describes none. owner is ignored for sources other than
// CoreNote, and typ for PerfSample.
func (d *Description) RegisterSet(source RegisterSource, owner string, typ uint32) *RegisterSet {
	for i := range d.RegisterSets {
		s := &d.RegisterSets[i]
		if s.Source == source &&
			(source != CoreNote || s.Owner == owner) &&
			(source == PerfSample || s.Type == typ) {
			return s
		}
	}
	return nil
}

// Space returns the address space of a number. The default space is known even
// where AddressSpaces does not list it: its name is then "global".
func (d *Description) Space(number locexpr.AddressSpace) (space AddressSpace, ok bool) {
	for i := range d.AddressSpaces {
		if d.AddressSpaces[i].Number == number {
			return d.AddressSpaces[i], true
		}
	}
	if number == locexpr.DefaultSpace {
		return AddressSpace{Number: number, Name: "global", Bits: d.AddressBits}, true
	}
	return AddressSpace{}, false
}

// registerName returns a name for messages: a number where there is no name.
func (d *Description) registerName(number uint32) string {
	if info, ok := d.Register(number); ok && info.Name != "" {
		return info.Name
	}
	return strconv.FormatUint(uint64(number), 10)
}

// info describes the register index of r.
func (r *RegisterRange) info(index uint32) RegisterInfo {
	return RegisterInfo{
		Number: r.First + index, Name: r.name(index), Bits: r.Bits, Class: r.Class,
		Alias: r.nameIn(r.Aliases, index), Lanes: r.Lanes,
	}
}

// name returns the name of the register index of r.
func (r *RegisterRange) name(index uint32) string {
	if name := r.nameIn(r.Names, index); name != "" {
		return name
	}
	return fmt.Sprintf("r%d", r.First+index)
}

// nameIn returns the name in a list of the register index of r, or "".
func (r *RegisterRange) nameIn(names []string, index uint32) string {
	if pattern, ok := namePattern(names); ok {
		return strings.Replace(pattern, "%d", strconv.FormatUint(uint64(r.FirstIndex)+uint64(index), 10), 1)
	}
	if uint64(index) < uint64(len(names)) {
		return names[index]
	}
	return ""
}

// namePattern returns the single name of a list that stands for a whole range.
func namePattern(names []string) (string, bool) {
	if len(names) == 1 && strings.Contains(names[0], "%d") {
		return names[0], true
	}
	return "", false
}

// index returns the index in r of the register of a name or alias.
func (r *RegisterRange) index(name string) (uint32, bool) {
	if index, ok := r.indexIn(r.Names, name); ok {
		return index, true
	}
	return r.indexIn(r.Aliases, name)
}

// indexIn returns the index in r of the register that has a name in a list.
func (r *RegisterRange) indexIn(names []string, name string) (uint32, bool) {
	pattern, ok := namePattern(names)
	if !ok {
		for i, n := range names {
			if strings.EqualFold(n, name) && uint64(i) < uint64(r.Count) {
				return uint32(i), true
			}
		}
		return 0, false
	}
	before, after, _ := strings.Cut(pattern, "%d")
	if len(name) <= len(before)+len(after) ||
		!strings.EqualFold(name[:len(before)], before) ||
		!strings.EqualFold(name[len(name)-len(after):], after) {
		return 0, false
	}
	digits := name[len(before) : len(name)-len(after)]
	i, err := strconv.ParseUint(digits, 10, 32)
	// "v07" is not a name: a register has one spelling.
	if err != nil || i < uint64(r.FirstIndex) || i-uint64(r.FirstIndex) >= uint64(r.Count) ||
		strconv.FormatUint(i, 10) != digits {
		return 0, false
	}
	return uint32(i - uint64(r.FirstIndex)), true
}
