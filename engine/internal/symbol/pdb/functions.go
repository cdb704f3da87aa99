// SPDX-License-Identifier: Apache-2.0

package pdb

import (
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
		start := x.procedure.start
		if x.isNamed {
			end = x.procedure.end
			if x.part.number > 0 {
				start, end = x.part.start, x.part.end
			}
			s.Name, _ = f.procedureName(x.index, x.procedure)
			ok = s.Name != ""
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
