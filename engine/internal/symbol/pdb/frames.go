// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"slices"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// found has the parts of the file for an address.
type found struct {
	rva       uint32 // in the space of symbols
	module    *module
	index     *moduleIndex
	procedure procedure // of the function, or of a thunk
	isNamed   bool      // there is a procedure
	part      separated // of the function, where the address lies in one; else number 0
	within    section   // the contribution
	// Of the procedures with the same code: how many there are, and which one this is.
	equals, number int
}

// locate finds the module and the procedure for an address; false where no module has it.
func (f *File) locate(address uint64) (x found, ok bool) {
	if address < f.base || address-f.base > 0xffffffff {
		return x, false
	}
	if x.rva, ok = f.dbi.omap.toSymbols(uint32(address - f.base)); !ok { //nolint:gosec // checked
		return x, false
	}
	return f.at(x.rva)
}

// at is locate for an RVA in the space of symbols.
func (f *File) at(rva uint32) (x found, ok bool) {
	x.rva = rva
	c, ok := f.dbi.contributions().at(rva)
	if !ok {
		return x, false
	}
	x.within = c.section
	modules := f.dbi.modules()
	if int(c.module) >= len(modules) {
		x.index = &moduleIndex{}
		return x, true // a public symbol may name it
	}
	x.module = &modules[c.module]
	x.index = x.module.index()
	list := x.index.procedures
	first, n := find(list, x.rva)
	if n > 0 {
		x.choose(f, list[first:first+n])
	} else if x.index.lineTable(x.rva, 0) != nil {
		x.part, x.isNamed = findSeparated(x.module.separatedCode().byAddress, x.rva)
		x.procedure = x.part.function
	}
	return x, true
}

// choose takes the procedure at the address. Where several begin at the same address, because
// the linker folded functions with the same code, it is the one of the public symbol that names
// them.
func (x *found) choose(f *File, list []procedure) {
	x.isNamed, x.procedure = true, list[0]
	if len(list) == 1 {
		return
	}
	x.equals = len(list)
	public, ok := f.publics().before(list[0].start)
	if !ok || public.rva != list[0].start {
		return
	}
	for i, p := range list {
		r, ok := recordAt(x.index.stream, p.record, x.index.end)
		if ok && isNameOf(r.name(), public.name) {
			x.procedure, x.number = p, i
			return
		}
	}
}

// position returns the position of the address by the line tables.
func (x *found) position(f *File) (p position, ok bool) {
	t := x.index.lineTable(x.rva, x.number)
	if t == nil {
		return p, false
	}
	rows := x.index.rows(f, t)
	if len(rows) == 0 {
		return p, false
	}
	return rowAt(rows, x.rva-t.start).position, true
}

// queryBytes is about how much of the file is mapped for an address or a function: kernels map what
// is around a page, too.
const queryBytes = 128 << 10

// Frames implements symbol.Source.
func (f *File) Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error) {
	f.guard(func() {
		x, ok := f.locate(address)
		if !ok {
			return
		}
		f.passed(queryBytes)
		last, isNamed := f.function(&x)
		p, hasLine := x.position(f)
		if !isNamed && !hasLine {
			return
		}
		if hasLine {
			last.File, last.Line, last.Column = x.index.file(f, p.file), p.line, p.column
		}
		if x.isNamed {
			dst = f.inlined(dst, &x)
		}
		dst = append(dst, last)
	})
	return dst, nil
}

// function names the function at an address, without its lines.
func (f *File) function(x *found) (s trace.Symbol, ok bool) {
	var name string
	start := x.procedure.start
	if x.isNamed {
		name, s.Name = f.procedureName(x.index, x.procedure)
	} else if p, ok := f.publicFor(x); ok {
		start, name = p.rva, p.name
	}
	if name == "" {
		return s, false
	}
	s.Equals = x.equals
	s.Function, s.LinkageName = f.readable(name, s.Name)
	s.Start, s.HasStart = f.address(start)
	return s, true
}

// publicFor returns the public symbol for an address that no procedure has: the last before it
// of the same object file, unless a procedure tells where its function ends.
func (f *File) publicFor(x *found) (p public, ok bool) {
	p, ok = f.publics().before(x.rva)
	if !ok || !p.isCode || p.rva < x.within.start {
		return p, false
	}
	_, n := find(x.index.procedures, p.rva)
	return p, n == 0
}

// procedureName returns the name of the function of a procedure: the decorated name of a public
// symbol at its start, else its own, which its record has.
func (f *File) procedureName(x *moduleIndex, p procedure) (name, own string) {
	own = f.recordName(x, p)
	if public, ok := f.publics().named(p.start, own); ok {
		return public.name, own
	}
	return own, own
}

// recordName is the name of the record of a procedure.
func (f *File) recordName(x *moduleIndex, p procedure) string {
	r, ok := recordAt(x.stream, p.record, x.end)
	if !ok {
		return ""
	}
	if r.kind == kindTrampoline {
		return f.trampolineName(r)
	}
	return r.name()
}

// readable returns the readable form of a name, and the linkage name where it is another. Names of
// public symbols on 32-bit x86 have the calling convention of functions of C: _cdecl, _stdcall@4,
// @fastcall@8, vectorcall@@16.
func (f *File) readable(name, own string) (function, linkage string) {
	function = name
	if name != own && f.identity.Machine == pe.MachineX86 {
		function = pe.WithoutConvention(name)
	}
	if function = withAnonymous(symbol.Demangle(function)); function == name {
		return function, ""
	}
	return function, name
}

// address is the address of an RVA in the space of symbols.
func (f *File) address(rva uint32) (address uint64, ok bool) {
	rva, ok = f.dbi.omap.toImage(rva)
	return f.base + uint64(rva), ok
}

// inlined appends the inlined calls at an address, innermost first.
func (f *File) inlined(dst []trace.Symbol, x *found) []trace.Symbol {
	first := len(dst)
	sites, ok := f.sites(x.index, x.procedure)
	if !ok {
		return dst
	}
	part, start := x.part.number, x.procedure.start
	if part > 0 {
		start = x.part.start
	}
	offset := x.rva - start
	for sites.next() {
		i := slices.IndexFunc(sites.rows, func(r siteRow) bool { return r.part == part && r.start <= offset && offset < r.end })
		if i < 0 {
			sites.leave()
			continue
		}
		sites.enter()
		if !sites.isKnown {
			continue
		}
		row := &sites.rows[i]
		s := f.inlineeSymbol(x.index, sites.id)
		s.File, s.Line, s.Column = x.index.file(f, row.file), row.line, row.column
		dst = append(dst, s)
	}
	slices.Reverse(dst[first:])
	return dst
}

// sites reads the inlined calls of a procedure.
func (f *File) sites(x *moduleIndex, p procedure) (s siteReader, ok bool) {
	r, ok := recordAt(x.stream, p.record, x.end)
	if !ok || !isProcedure[r.kind] {
		return s, false
	}
	r.U32() // parent
	return siteReader{f: f, x: x, pos: r.next, end: min(r.U32(), x.end)}, true
}

// siteReader reads the inlined calls among the records of a function.
type siteReader struct {
	f        *File
	x        *moduleIndex
	pos, end uint32

	// Of the call that next found: its record and where those in it end, the function, and the
	// code.
	start, innerEnd uint32
	id              uint32
	rows            []siteRow
	// isKnown is set where the module has the function's place. It has none where the function's
	// library has no debug information: such calls are left out, and their code keeps its line.
	isKnown bool
}

// next finds the next call.
func (s *siteReader) next() bool {
	for {
		r, ok := recordAt(s.x.stream, s.pos, s.end)
		if !ok {
			return false
		}
		s.pos = r.next
		if r.kind != kindInlineSite && r.kind != kindInlineSite2 {
			continue
		}
		r.U32() // parent
		s.start, s.innerEnd, s.id = r.start, r.U32(), r.U32()
		if r.kind == kindInlineSite2 {
			r.U32() // how often it is called
		}
		var from inlinee
		from, s.isKnown = s.x.inlinee(s.id)
		s.rows = appendRows(s.rows[:0], r.Rest, from)
		return true
	}
}

// leave goes on behind the call and the calls in it.
func (s *siteReader) leave() {
	if s.innerEnd > s.pos {
		s.pos = s.innerEnd
	}
}

// enter goes on with the calls in the call, and ends with them.
func (s *siteReader) enter() {
	if s.innerEnd > s.pos && s.innerEnd < s.end {
		s.end = s.innerEnd
	}
}
