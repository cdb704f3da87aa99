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
	Function(number uint64) (MadeUnit, error)
	// Type makes the type unit of a signature, to which references have DW_FORM_ref_sig8.
	Type(signature uint64) (MadeUnit, error)
	// TypesNamed returns the signatures of the definitions of types that may have a name, with
	// their scopes or without; last is its part behind the last ::.
	TypesNamed(name, last string) []uint64
	// GlobalsNamed is TypesNamed for the numbers of variables of static storage.
	GlobalsNamed(name, last string) []uint64
	// Global makes the unit of a variable.
	Global(number uint64) (MadeUnit, error)
}

// MadeUnit is a unit of DWARF 5 in little-endian order, with the only table of abbreviations and
// lists in sections of its own.
type MadeUnit struct{ Info, Abbrev, Loclists, Rnglists []byte }

// madeKey tells made units apart.
type madeKey struct {
	kind   madeKind
	number uint64
}

type madeKind uint8

const (
	madeFunction madeKind = iota
	madeType
	madeGlobal
)

// madeUnits are the units that were made so far.
type madeUnits struct {
	Maker
	mu    sync.Mutex
	units map[madeKey]*lazy[*unit]
}

// NewMade returns a Reader of units that a maker makes. Errors begin with the name. It knows
// scopes, variables and types: positions, names by address and calls are for others to tell.
func NewMade(name string, maker Maker) *Reader {
	f := &file{name: name}
	r := &Reader{main: f, made: &madeUnits{Maker: maker, units: map[madeKey]*lazy[*unit]{}}}
	f.reader = r
	return r
}

// IsMade reports whether the units are made of debug information of another format, in which
// lanes and calls are not described.
func (r *Reader) IsMade() bool { return r.made != nil }

// madeUnit returns a unit, which is made once.
func (r *Reader) madeUnit(kind madeKind, number uint64) (*unit, error) {
	m := r.made
	key := madeKey{kind, number}
	m.mu.Lock()
	slot := m.units[key]
	if slot == nil {
		slot = &lazy[*unit]{}
		m.units[key] = slot
	}
	m.mu.Unlock()
	return slot.get(func() (*unit, error) {
		makers := map[madeKind]func(uint64) (MadeUnit, error){madeFunction: m.Function, madeType: m.Type, madeGlobal: m.Global}
		made, err := makers[kind](number)
		if err != nil {
			return nil, err
		}
		return r.openMade(made)
	})
}

// openMade reads the header of a unit.
func (r *Reader) openMade(made MadeUnit) (*unit, error) {
	f := &file{name: r.main.name, reader: r, sections: sections{info: made.Info, abbrev: made.Abbrev, rnglists: made.Rnglists}}
	if _, err := f.loclists.get(func() ([]byte, error) { return made.Loclists, nil }); err != nil {
		return nil, err
	}
	r.main.addKept(len(made.Info) + len(made.Abbrev) + len(made.Loclists) + len(made.Rnglists) + sizeOf[file](1))
	x := f.unitsUpTo(uint64(len(made.Info)))
	if x.err == nil && len(x.list) != 1 {
		x.err = fmt.Errorf("%s: %d units were made, expected 1", f.name, len(x.list))
	}
	if x.err != nil {
		return nil, x.err
	}
	return x.list[0], nil
}

// madeFunctionAt is describing for made units.
func (r *Reader) madeFunctionAt(address uint64) (*body, *function, error) {
	number, ok := r.made.FunctionAt(address)
	if !ok {
		return nil, nil, nil
	}
	u, err := r.madeUnit(madeFunction, number)
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

// madeNamed are the definitions of a name: types, or variables.
func (r *Reader) madeNamed(name string, isType bool) (list []Entry, err error) {
	numbers, kind := r.made.GlobalsNamed, madeGlobal
	if isType {
		numbers, kind = r.made.TypesNamed, madeType
	}
	for _, n := range numbers(name, lastName(name)) {
		u, err := r.madeUnit(kind, n)
		if err != nil {
			r.problem(err.Error())
			continue
		}
		e, err := u.made(isType)
		if err != nil {
			r.problem(err.Error())
			continue
		}
		if !e.IsZero() && (e.Name() == name || e.QualifiedName() == name) {
			list = append(list, e)
		}
	}
	return list, nil
}

// made is the type of a type unit, or the variable of a unit.
func (u *unit) made(isType bool) (Entry, error) {
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
