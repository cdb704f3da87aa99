// SPDX-License-Identifier: Apache-2.0

// Package pdbtypes gives the variables and types of PDB files in the terms of DWARF: a reader of
// DWARF asks it for units, which it makes of the records of CodeView. A unit is made when it is
// needed: of a function, of a global variable, or of a class, which other units refer to. So
// only parts that are looked at are translated.
//
// The records are described by the header cvinfo.h of Microsoft's sources of its PDB library.
package pdbtypes

import (
	"hash/maphash"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
	"github.com/unwindd/unwindd/engine/internal/symbol/pdb"
)

// maker makes units of a file.
type maker struct {
	file       *pdb.File
	types, ids *codeview.Types
	machine    *machine
	globals    func() *globals // outside of functions
	statics    func() *globals // in functions
	failed     sync.Map        // texts of problems
	note       func(error)
}

// New returns a reader of the variables and types of a file; nil where its architecture is none
// whose registers are known. note is called with faults of the file.
func New(f *pdb.File, note func(error)) *dwarf.Reader {
	m := machines[f.Identity().Machine]
	if m == nil {
		return nil
	}
	types, ids := f.Types()
	k := &maker{file: f, types: types, ids: ids, machine: m, note: note}
	k.globals = sync.OnceValue(func() *globals { return readGlobals(f.EachGlobal) })
	k.statics = sync.OnceValue(func() *globals { return readGlobals(f.EachStatic) })
	return dwarf.NewGenerated(f.Name(), k)
}

// problem notes a fault of the file, once.
func (m *maker) problem(err error) {
	if _, isKnown := m.failed.LoadOrStore(err.Error(), true); !isKnown {
		m.note(err)
	}
}

// FunctionAt implements dwarf.Maker: the number of a function is its address.
func (m *maker) FunctionAt(address uint64) (uint64, bool) {
	r, ok := m.file.FunctionRecords(address)
	if !ok {
		return 0, false
	}
	return r.Start()
}

// TypesNamed implements dwarf.Maker.
func (m *maker) TypesNamed(name, _ string) (list []uint64) {
	for _, index := range m.types.Named(name) {
		list = append(list, uint64(index))
	}
	return list
}

// GlobalsNamed implements dwarf.Maker. The variables in functions are searched where others are not
// named so: all modules are read for them.
func (m *maker) GlobalsNamed(_, last string) (list []uint64) {
	for _, read := range []func() *globals{m.globals, m.statics} {
		g := read()
		for _, place := range g.byName[maphash.String(g.seed, last)] {
			list = append(list, uint64(place))
		}
		if len(list) > 0 {
			break
		}
	}
	return list
}
