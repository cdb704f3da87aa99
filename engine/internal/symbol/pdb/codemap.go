// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"cmp"
	"slices"
	"sort"
	"unsafe"

	"github.com/unwindd/unwindd/engine/internal/ranges"
	"github.com/unwindd/unwindd/engine/internal/symbol"
)

// codeMap has the functions of all modules, each with its part of the code.
type codeMap struct {
	functions []mapped           // by address
	pieces    []codePiece        // by function and address
	covers    []symbol.CodeRange // all code of functions
}

// mapped is a function of a module.
type mapped struct {
	procedure
	module   int32
	isShared bool // another function, of another name, has the code, too
}

// codePiece is code of a function, in the image.
type codePiece struct {
	section
	function int32
}

// readCodeMap indexes all modules.
func (f *File) readCodeMap() *codeMap {
	m := &codeMap{}
	modules := f.dbi.modules()
	for i := range modules {
		for _, p := range modules[i].index().procedures {
			m.functions = append(m.functions, mapped{procedure: p, module: int32(i)}) //nolint:gosec // at most as many as bytes of a stream
		}
	}
	slices.SortStableFunc(m.functions, func(a, b mapped) int { return cmp.Compare(a.start, b.start) })
	m.fold(f)
	var list []ranges.Range
	e := f.newEffort()
	for i := range m.functions {
		list = f.appendImage(e, list, m.functions[i].section, int32(i)) //nolint:gosec // likewise
	}
	for i := range modules {
		for _, s := range modules[i].separatedCode().byAddress {
			if n := m.function(s.function.start); n >= 0 {
				list = f.appendImage(e, list, s.section, int32(n)) //nolint:gosec // likewise
			}
		}
	}
	flat := ranges.Flatten(list)
	for r := range flat.All() {
		m.pieces = append(m.pieces, codePiece{section{uint32(r.Start), uint32(r.End)}, r.Index}) //nolint:gosec // RVA
		start, end := f.base+r.Start, f.base+r.End
		if n := len(m.covers); n > 0 && m.covers[n-1].End == start {
			m.covers[n-1].End = end
		} else {
			m.covers = append(m.covers, symbol.CodeRange{Start: start, End: end})
		}
	}
	slices.SortStableFunc(m.pieces, func(a, b codePiece) int { return cmp.Compare(a.function, b.function) })
	m.pieces, m.covers, m.functions = slices.Clip(m.pieces), slices.Clip(m.covers), slices.Clip(m.functions)
	f.kept.Add(int64(len(m.functions))*int64(unsafe.Sizeof(mapped{})) +
		int64(len(m.pieces))*int64(unsafe.Sizeof(codePiece{})) + int64(len(m.covers))*int64(unsafe.Sizeof(symbol.CodeRange{})))
	return m
}

// fold leaves one of the functions that begin at an address: the one that Frames names.
func (m *codeMap) fold(f *File) {
	out := m.functions[:0]
	for first := 0; first < len(m.functions); {
		next := first + 1
		for next < len(m.functions) && m.functions[next].start == m.functions[first].start {
			next++
		}
		chosen := m.functions[first]
		if next > first+1 {
			if x, ok := f.at(chosen.start); ok && x.isNamed {
				for _, p := range m.functions[first:next] {
					if p.record == x.procedure.record && &f.dbi.modules()[p.module] == x.module {
						chosen = p
					}
				}
			}
			name := f.nameOf(&chosen)
			chosen.isShared = slices.ContainsFunc(m.functions[first:next], func(p mapped) bool { return f.nameOf(&p) != name })
		}
		out = append(out, chosen)
		first = next
	}
	m.functions = out
}

// nameOf is the name of a function's record.
func (f *File) nameOf(p *mapped) string {
	return f.recordName(f.dbi.modules()[p.module].index(), p.procedure)
}

// function returns the index of the function that begins at an RVA; -1: there is none.
func (m *codeMap) function(start uint32) int {
	i, ok := slices.BinarySearchFunc(m.functions, start, func(p mapped, start uint32) int { return cmp.Compare(p.start, start) })
	if !ok {
		return -1
	}
	return i
}

// appendImage appends where code lies in the image.
func (f *File) appendImage(e *effort, dst []ranges.Range, code section, index int32) []ranges.Range {
	f.dbi.omap.each(code, func(image section, _ uint32) bool {
		dst = append(dst, ranges.Range{Start: uint64(image.start), End: uint64(image.end), Index: index})
		return e.take(0)
	})
	return dst
}

// each calls yield with the parts of code of symbols, until it returns false: where each lies in
// the image, and its RVA in the space of symbols.
func (m *omap) each(code section, yield func(image section, from uint32) bool) {
	if m == nil {
		yield(code, code.start)
		return
	}
	i := sort.Search(len(m.from), func(i int) bool { return m.from[i].start > code.start })
	for i = max(i-1, 0); i < len(m.from) && m.from[i].start < code.end; i++ {
		e := m.from[i]
		start, end := max(e.start, code.start), code.end
		if i+1 < len(m.from) {
			end = min(end, m.from[i+1].start)
		}
		if to := e.to + (start - e.start); e.to != 0 && start < end && to+(end-start) > to {
			if !yield(section{to, to + (end - start)}, start) {
				return
			}
		}
	}
}

// Functions returns all functions by address, one name for each.
func (f *File) Functions() (list []symbol.Symbol) {
	f.guard(func() {
		m := f.codeMap()
		for i := range m.functions {
			p := &m.functions[i]
			name, _ := f.procedureName(f.dbi.modules()[p.module].index(), p.procedure)
			if start, ok := f.address(p.start); ok && name != "" {
				list = append(list, symbol.Symbol{Name: name, Start: start, End: start + uint64(p.end-p.start)})
			}
		}
		list = f.publicFunctions(list)
	})
	slices.SortStableFunc(list, func(a, b symbol.Symbol) int { return cmp.Compare(a.Start, b.Start) })
	return slices.CompactFunc(list, func(a, b symbol.Symbol) bool { return a.Start == b.Start })
}

// Start returns the address of the first function; false where there is none.
func (f *File) Start() (address uint64, ok bool) {
	f.guard(func() {
		for _, p := range f.codeMap().functions {
			if address, ok = f.address(p.start); ok {
				break
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

// Covers reports whether a function has the code at an address, and up to where that holds.
func (f *File) Covers(address uint64) (covered bool, end uint64) {
	end = ^uint64(0)
	f.guard(func() {
		covers := f.codeMap().covers
		i := sort.Search(len(covers), func(i int) bool { return covers[i].Start > address })
		if i > 0 && address < covers[i-1].End {
			covered, end = true, covers[i-1].End
		} else if i < len(covers) {
			end = covers[i].Start
		}
	})
	return covered, end
}
