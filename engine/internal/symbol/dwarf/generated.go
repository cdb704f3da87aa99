// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/internal/dw"
)

// This file reads units that are made of debug information of another format when they are needed.

// A Maker makes units. Each kind of unit has numbers of its own; a unit is made once. It may be
// called concurrently, inside object.Guard.
type Maker interface {
	// FunctionAt returns the number of the function at an address; false where none is known.
	FunctionAt(address uint64) (number uint64, ok bool)
	// Function makes the unit of a function.
	Function(number uint64) (GeneratedUnit, error)
	// Type makes the type unit of a signature, to which references have DW_FORM_ref_sig8.
	Type(signature uint64) (GeneratedUnit, error)
	// TypesNamed returns the signatures of the definitions of types that may have a name, with
	// their scopes or without; last is its part behind the last ::.
	TypesNamed(name, last string) []uint64
	// GlobalsNamed is TypesNamed for the numbers of variables of static storage.
	GlobalsNamed(name, last string) []uint64
	// Global makes the unit of a variable.
	Global(number uint64) (GeneratedUnit, error)
}

// GeneratedUnit is a unit of DWARF 5 in little-endian order, with the only table of abbreviations and
// lists in sections of its own.
type GeneratedUnit struct{ Info, Abbrev, Loclists, Rnglists []byte }

// generatedKey tells made units apart.
type generatedKey struct {
	kind   generatedKind
	number uint64
}

type generatedKind uint8

const (
	generatedFunction generatedKind = iota
	generatedType
	generatedGlobal
)

// generatedUnits are the units that were made so far.
type generatedUnits struct {
	Maker
	mu    sync.Mutex
	units map[generatedKey]*lazy[*unit]
}

// NewGenerated returns a Reader of units that a maker makes. Errors begin with the name. It knows
// scopes, variables and types: positions, names by address and calls are for others to tell.
func NewGenerated(name string, maker Maker) *Reader {
	f := &file{name: name}
	r := &Reader{main: f, generated: &generatedUnits{Maker: maker, units: map[generatedKey]*lazy[*unit]{}}}
	f.reader = r
	return r
}

// IsGenerated reports whether the units are made of debug information of another format, in which
// lanes and calls are not described.
func (r *Reader) IsGenerated() bool { return r.generated != nil }

// generatedUnit returns a unit, which is made once.
func (r *Reader) generatedUnit(kind generatedKind, number uint64) (*unit, error) {
	m := r.generated
	key := generatedKey{kind, number}
	m.mu.Lock()
	slot := m.units[key]
	if slot == nil {
		slot = &lazy[*unit]{}
		m.units[key] = slot
	}
	m.mu.Unlock()
	return slot.get(func() (*unit, error) {
		makers := map[generatedKind]func(uint64) (GeneratedUnit, error){generatedFunction: m.Function, generatedType: m.Type, generatedGlobal: m.Global}
		generated, err := makers[kind](number)
		if err != nil {
			return nil, err
		}
		return r.openGenerated(generated)
	})
}

// openGenerated reads the header of a unit.
func (r *Reader) openGenerated(generated GeneratedUnit) (*unit, error) {
	f := &file{name: r.main.name, reader: r, sections: sections{info: generated.Info, abbrev: generated.Abbrev, rnglists: generated.Rnglists}}
	if _, err := f.loclists.get(func() ([]byte, error) { return generated.Loclists, nil }); err != nil {
		return nil, err
	}
	r.main.addKept(len(generated.Info) + len(generated.Abbrev) + len(generated.Loclists) + len(generated.Rnglists) + sizeOf[file](1))
	x := f.unitsUpTo(uint64(len(generated.Info)))
	if x.err == nil && len(x.list) != 1 {
		x.err = fmt.Errorf("%s: %d units were made, expected 1", f.name, len(x.list))
	}
	if x.err != nil {
		return nil, x.err
	}
	return x.list[0], nil
}

// generatedFunctionAt is describing for made units.
func (r *Reader) generatedFunctionAt(address uint64) (*body, *function, error) {
	number, ok := r.generated.FunctionAt(address)
	if !ok {
		return nil, nil, nil
	}
	u, err := r.generatedUnit(generatedFunction, number)
	if err != nil {
		return nil, nil, err
	}
	b, err := u.open()
	if err != nil {
		return nil, nil, err
	}
	holder, f, err := r.functionAt(b, address)
	if f == nil || err != nil {
		return nil, nil, err
	}
	return holder, f, nil
}

// generatedNamed are the definitions of a name: types, or variables.
func (r *Reader) generatedNamed(name string, isType bool) (list []Entry) {
	numbers, kind := r.generated.GlobalsNamed, generatedGlobal
	if isType {
		numbers, kind = r.generated.TypesNamed, generatedType
	}
	for _, n := range numbers(name, lastName(name)) {
		u, err := r.generatedUnit(kind, n)
		if err != nil {
			r.problem(err.Error())
			continue
		}
		e, err := u.definition(isType)
		if err != nil {
			r.problem(err.Error())
			continue
		}
		if !e.IsZero() && (e.Name() == name || e.QualifiedName() == name) {
			list = append(list, e)
		}
	}
	return list
}

// definition is the type of a type unit, or the variable of a unit.
func (u *unit) definition(isType bool) (Entry, error) {
	b, err := u.open()
	if err != nil {
		return Entry{}, err
	}
	if isType {
		return b.entryAt(u.offset + u.typeOff)
	}
	entries := b.descend(b.first)
	for entries.next() {
		if e := entries.entry; e.Tag() == dw.TagVariable || e.Tag() == dw.TagConstant {
			return e, nil
		}
	}
	return Entry{}, entries.err
}
