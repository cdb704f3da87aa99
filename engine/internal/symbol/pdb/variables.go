// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"slices"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/codeview"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// This file gives the records of functions and of variables to readers of variables.

// Types returns the records of types and of identifiers. What the file lacks has no records.
func (f *File) Types() (types, ids *codeview.Types) {
	t := f.types()
	types, ids = t.types, t.ids
	if types == nil {
		types = &codeview.Types{}
	}
	if ids == nil {
		ids = &codeview.Types{}
	}
	return types, ids
}

// FunctionRecords is a function with the records in it.
type FunctionRecords struct {
	file  *File
	found found
	parts []separated
}

// FunctionRecords returns the function at an address whose records the file has.
func (f *File) FunctionRecords(address uint64) (r *FunctionRecords, ok bool) {
	f.guard(func() {
		var x found
		if x, ok = f.locate(address); ok {
			r, ok = f.recordsOf(x)
		}
	})
	return r, ok
}

func (f *File) recordsOf(x found) (*FunctionRecords, bool) {
	r, ok := recordAt(x.index.stream, x.procedure.record, x.index.end)
	if !x.isNamed || !ok || !isProcedure[r.kind] {
		return nil, false
	}
	return &FunctionRecords{f, x, x.module.separatedCode().parts[x.procedure.record]}, true
}

// Start returns the address of the function; false where it has none in the image.
func (r *FunctionRecords) Start() (uint64, bool) { return r.file.address(r.found.procedure.start) }

// Code returns the code of the function, in the order in which the file has it.
func (r *FunctionRecords) Code() (list []symbol.CodeRange) {
	list = r.file.codeRanges(list, r.found.procedure.section)
	for _, s := range r.parts {
		list = r.file.codeRanges(list, s.section)
	}
	return list
}

// codeRanges appends the addresses of code.
func (f *File) codeRanges(dst []symbol.CodeRange, code section) []symbol.CodeRange {
	f.dbi.omap.each(code, func(image section, _ uint32) bool {
		dst = append(dst, symbol.CodeRange{Start: f.base + uint64(image.start), End: f.base + uint64(image.end)})
		return true
	})
	return dst
}

// Record is a symbol record.
type Record struct {
	Kind uint16 // an S_* constant of cvinfo.h
	Data []byte // behind the kind
	At   uint32 // offset in its stream
}

// Each calls yield with the record of the function and those in it, until it returns false. The
// record that ends the function is the last one.
func (r *FunctionRecords) Each(yield func(Record) bool) {
	x := r.found.index
	first, ok := recordAt(x.stream, r.found.procedure.record, x.end)
	if !ok {
		return
	}
	head := first.fields
	head.U32()
	end := head.U32()
	for at := first.start; ; {
		s, ok := recordAt(x.stream, at, x.end)
		if !ok || !yield(Record{s.kind, s.Rest, s.start}) || at >= end {
			return
		}
		at = s.next
	}
}

// Sites returns the code of the inlined calls of the function, by the offsets of their records.
func (r *FunctionRecords) Sites() map[uint32][]symbol.CodeRange {
	all := map[uint32][]symbol.CodeRange{}
	sites, ok := r.file.sites(r.found.index, r.found.procedure)
	if !ok {
		return all
	}
	code := []section{r.found.procedure.section}
	for i := range r.parts {
		code = append(code, r.parts[i].section)
	}
	for sites.next() {
		var list []section
		for i := range sites.rows {
			row := &sites.rows[i]
			if uint64(row.part) >= uint64(len(code)) {
				continue
			}
			within := code[row.part]
			start, end := within.start+row.start, min(within.start+row.end, within.end)
			if start < within.start || start >= end {
				continue
			}
			list = append(list, section{start, end})
		}
		all[sites.start] = r.file.joined(list)
	}
	return all
}

// joined are the addresses of code, whose parts next to one another are one.
func (f *File) joined(list []section) (out []symbol.CodeRange) {
	slices.SortFunc(list, func(a, b section) int { return int(int64(a.start) - int64(b.start)) })
	merged := list[:0]
	for _, s := range list {
		if n := len(merged); n > 0 && s.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	for _, s := range merged {
		out = f.codeRanges(out, s)
	}
	return out
}

// Ranges returns the addresses of size bytes of code from an offset in a section on.
func (f *File) Ranges(number uint16, offset, size uint32) []symbol.CodeRange {
	rva, ok := f.dbi.rva(number, offset)
	if !ok || rva+size < rva {
		return nil
	}
	return f.codeRanges(nil, section{rva, rva + size})
}

// Address returns the address of an offset in a section.
func (f *File) Address(number uint16, offset uint32) (uint64, bool) {
	rva, ok := f.dbi.rva(number, offset)
	if !ok {
		return 0, false
	}
	return f.address(rva)
}

const (
	kindCompile2 = 0x1116
	kindCompile3 = 0x113c
	// maxBeforeCompile bounds the records that are read for the one that describes the compiler,
	// which is among a module's first.
	maxBeforeCompile = 64
)

// Compiler returns the language (CV_CFL_LANG) and the machine (CV_CPU_TYPE_e) of the function's
// module; false where it does not tell.
func (r *FunctionRecords) Compiler() (language uint8, machine uint16, ok bool) {
	at := uint32(4)
	for range maxBeforeCompile {
		s, found := recordAt(r.found.index.stream, at, r.found.index.end)
		if !found || isProcedure[s.kind] {
			break
		}
		if s.kind == kindCompile2 || s.kind == kindCompile3 {
			language = s.U8()
			s.Take(3)
			return language, s.U16(), !s.IsCut
		}
		at = s.next
	}
	return 0, 0, false
}

// kindConstant is a constant with its value.
const kindConstant = 0x1107

// isGlobal are the kinds of records of variables and constants outside of functions.
var isGlobal = map[uint16]bool{kindGlobalData: true, kindLocalData: true, kindGlobalThread: true, kindLocalThread: true, kindConstant: true}

// GlobalPlace is where the record of a variable with one place lies: in the records of all modules,
// or of a module, whose number plus 1 is in the upper half.
type GlobalPlace uint64

// EachGlobal calls yield with the records of the variables and constants outside of functions,
// until it returns false.
func (f *File) EachGlobal(yield func(GlobalPlace, Record) bool) {
	f.guard(func() {
		if s := f.globalRecords(); s != nil {
			eachGlobal(s, 0, s.Size(), 0, yield)
		}
	})
}

// EachStatic is EachGlobal for those inside functions. It reads all modules.
func (f *File) EachStatic(yield func(GlobalPlace, Record) bool) {
	f.guard(func() {
		modules := f.dbi.modules()
		for i := range modules {
			s := f.moduleRecords(i)
			if s == nil || eachGlobal(s, 4, min(modules[i].symbols, s.Size()), GlobalPlace(i+1)<<32, yield) {
				continue
			}
			return
		}
	})
}

// globalRecords is the stream of the records of all modules; nil where there is none.
func (f *File) globalRecords() *msf.Stream {
	if f.dbi.recordStream == noStream {
		return nil
	}
	return f.container.Stream(int(f.dbi.recordStream))
}

// moduleRecords is the stream of a module's records; nil where there is none.
func (f *File) moduleRecords(number int) *msf.Stream {
	m := &f.dbi.modules()[number]
	if m.stream == noStream {
		return nil
	}
	return f.container.Stream(int(m.stream))
}

// eachGlobal calls yield with the records of variables in part of a stream; false where that returned
// false.
func eachGlobal(s *msf.Stream, offset, end uint32, module GlobalPlace, yield func(GlobalPlace, Record) bool) bool {
	for {
		r, ok := recordAt(s, offset, end)
		if !ok {
			return true
		}
		if isGlobal[r.kind] && !yield(module|GlobalPlace(r.start), Record{r.kind, r.Rest, r.start}) {
			return false
		}
		offset = r.next
	}
}

// Global returns the record of a variable at a place that EachGlobal or EachStatic gave.
func (f *File) Global(place GlobalPlace) (Record, bool) {
	s := f.globalRecords()
	if module := place >> 32; module > 0 {
		if module > GlobalPlace(len(f.dbi.modules())) {
			return Record{}, false
		}
		s = f.moduleRecords(int(module) - 1) //nolint:gosec // checked
	}
	if s == nil {
		return Record{}, false
	}
	r, ok := recordAt(s, uint32(place), s.Size()) //nolint:gosec // the lower half
	return Record{r.kind, r.Rest, r.start}, ok && isGlobal[r.kind]
}

// InlineeName returns the qualified name of an inlined function by its identifier in the function's
// module.
func (r *FunctionRecords) InlineeName(id uint32) string { return r.file.inlineeName(r.found.index, id) }
