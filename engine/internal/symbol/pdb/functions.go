// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// Function returns the function that contains an address. Its name is the decorated one.
func (f *File) Function(address uint64) (s symbol.Symbol, ok bool) {
	f.guard(func() {
		x, isThere := f.locate(address)
		if !isThere {
			return
		}
		end := x.within.end
		start := uint32(0)
		if x.isNamed {
			end = x.procedure.end
			start, s.Name, ok = f.procedureName(x.index, x.procedure)
		} else if p, isThere := f.publicFor(&x); isThere {
			start, s.Name, ok = p.rva, p.name, true
			if next, isThere := f.publics().after(x.rva); isThere {
				end = min(end, next)
			}
		}
		if ok {
			s.Start, ok = f.address(start)
			s.End = s.Start + uint64(end-start)
		}
	})
	return s, ok
}

// Functions returns all functions by address, one name for each.
func (f *File) Functions() (list []symbol.Symbol) {
	f.guard(func() {
		modules := f.dbi.modules()
		for i := range modules {
			list = f.functionsOf(list, modules[i].index())
		}
		list = f.publicFunctions(list)
	})
	slices.SortStableFunc(list, func(a, b symbol.Symbol) int { return cmp.Compare(a.Start, b.Start) })
	return slices.CompactFunc(list, func(a, b symbol.Symbol) bool { return a.Start == b.Start })
}

// functionsOf appends the functions of a module.
func (f *File) functionsOf(list []symbol.Symbol, x *moduleIndex) []symbol.Symbol {
	for i, p := range x.procedures {
		if i > 0 && x.procedures[i-1].start == p.start {
			continue // folded
		}
		start, name, ok := f.procedureName(x, p)
		if !ok || start != p.start {
			continue
		}
		if address, ok := f.address(start); ok {
			list = append(list, symbol.Symbol{Name: name, Start: address, End: address + uint64(p.end-p.start)})
		}
	}
	return list
}

// publicFunctions appends the public symbols of code.
func (f *File) publicFunctions(list []symbol.Symbol) []symbol.Symbol {
	p := f.publics()
	for i := range p.count {
		s, ok := p.number(i)
		if !ok || !s.isCode {
			continue
		}
		address, ok := f.address(s.rva)
		if !ok {
			continue
		}
		list = append(list, symbol.Symbol{Name: s.name, Start: address, End: address})
	}
	return list
}

// Start returns the address of the first function; false where there is none.
func (f *File) Start() (address uint64, ok bool) {
	f.guard(func() {
		modules := f.dbi.modules()
		for i := range modules {
			if x := modules[i].index(); len(x.procedures) > 0 {
				if a, isThere := f.address(x.procedures[0].start); isThere && (!ok || a < address) {
					address, ok = a, true
				}
			}
		}
		p := f.publics()
		for i := range p.count {
			if s, isThere := p.number(i); isThere && s.isCode {
				if a, isThere := f.address(s.rva); isThere && (!ok || a < address) {
					address, ok = a, true
				}
				break
			}
		}
	})
	return address, ok
}

// after returns the RVA of the first symbol behind an RVA in its section.
func (p *publics) after(rva uint32) (next uint32, ok bool) {
	i := p.search(rva)
	if i < 0 || uint32(i) >= p.count { //nolint:gosec // not negative
		return 0, false
	}
	where, _, ok := p.place(uint32(i)) //nolint:gosec // less than count
	if !ok {
		return 0, false
	}
	next, ok = p.f.dbi.rva(where.section, where.offset)
	return next, ok && next > rva
}
