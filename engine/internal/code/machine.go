// SPDX-License-Identifier: Apache-2.0

package code

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// A Machine is an architecture, prepared for code objects and walks.
type Machine struct {
	Plugin      *plugin.Arch
	Description *sdk.Description
	Order       locexpr.ByteOrder
	// Compiler compiles rows; nil where the description leaves no column to
	// compile.
	Compiler *cfi.Compiler
	// Defaults are the rules of columns that no row mentions.
	Defaults *RuleSet
	// Behind is how many bytes of code behind a call decide about rules of the caller; 0: none do.
	Behind int

	registerNames

	ahead        aheadLimit
	instructions cache[instructionKey, *sdk.Instruction]
	requested    atomic.Int64    // instructions
	watched      map[string]bool // names of functions that the plugin is told about
	dialects     sync.Map        // *locexpr.Dialect by name; made when they are needed
}

func newMachine(a *plugin.Arch) *Machine {
	m := &Machine{Plugin: a, Description: a.Description(), watched: map[string]bool{}}
	for _, name := range m.Description.Symbols {
		m.watched[name] = true
	}
	if m.Description.ByteOrder == sdk.BigEndian {
		m.Order = locexpr.BigEndian
	}
	m.Defaults = NewRuleSet(m.Description.DefaultRules)
	m.Compiler = newCompiler(m.Description)
	m.Behind = behindBytes(m)
	return m
}

// IsGeneral reports whether registers of a class and size have addresses, counts or flags, which a
// walk needs.
func IsGeneral(class sdk.RegisterClass, bits uint32) bool {
	switch class {
	case sdk.General, sdk.ProgramCounter, sdk.Flags:
		return bits > 0 && bits <= 64
	}
	return false
}

// newCompiler returns a compiler of rows for the registers that a walk needs in nearly every frame,
// the return address, the stack pointer and the frame pointer, and for those that calls
// preserve: the others have no value in a caller.
func newCompiler(d *sdk.Description) *cfi.Compiler {
	var columns []cfi.Column
	add := func(number uint64) {
		info, ok := d.Register(uint32(number))
		if !ok || number > uint64(^uint32(0)) || !IsGeneral(info.Class, info.Bits) || info.Lanes != 0 ||
			len(columns) == cfi.MaxColumns || slices.ContainsFunc(columns, func(c cfi.Column) bool { return c.Number == number }) {
			return
		}
		columns = append(columns, cfi.Column{Number: number, Bits: info.Bits})
	}
	for _, number := range []uint32{d.ReturnAddress, d.SP, d.FP, d.PC} {
		add(uint64(number))
	}
	for _, r := range d.DefaultRules {
		if r.Rule.Kind == cfi.SameValue {
			add(r.Column)
		}
	}
	c, err := cfi.NewCompiler(d.AddressBits, columns)
	if err != nil { // no description that was checked comes here
		return nil
	}
	return c
}

// SpaceName returns the architecture's name of an address space.
func (m *Machine) SpaceName(space locexpr.AddressSpace) string {
	if s, ok := m.Description.Space(space); ok {
		return s.Name
	}
	return fmt.Sprintf("address space %d", space)
}

// RegisterBits returns the size of a register; false where there is none.
func (m *Machine) RegisterBits(number uint64) (uint32, bool) {
	for i := range m.Description.Registers {
		r := &m.Description.Registers[i]
		if number-uint64(r.First) < uint64(r.Count) {
			return r.Bits, true
		}
	}
	return 0, false
}

// Dialect returns the table of a dialect of the architecture or the project; standard DWARF for no
// name. It is made once: objects and overrides are many.
func (m *Machine) Dialect(name string) (*locexpr.Dialect, error) {
	if name == "" {
		return locexpr.DWARF5, nil
	}
	if d, ok := m.dialects.Load(name); ok {
		return d.(*locexpr.Dialect), nil
	}
	for i := range m.Description.Dialects {
		if m.Description.Dialects[i].Name != name {
			continue
		}
		d, err := m.Description.Dialects[i].Table()
		if err != nil {
			return nil, err
		}
		first, _ := m.dialects.LoadOrStore(name, d)
		return first.(*locexpr.Dialect), nil
	}
	if d, ok := locexpr.DialectByName(name); ok {
		return d, nil
	}
	return nil, fmt.Errorf("%s has no dialect %s", m.Description.Name, name)
}
