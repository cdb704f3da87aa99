// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"errors"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/pe"
)

// A peSymbols yields the symbols of a PE file: its symbol table, then its exports, which are dynamic
// symbols. Neither has sizes: .pdata has the ends of functions.
type peSymbols struct {
	o      *Object
	starts []uint64 // of all in code, sorted
	yield  func(*Symbol)
}

// eachPESymbol is EachSymbol of a PE file.
func (o *Object) eachPESymbol(yield func(*Symbol)) error {
	r := peSymbols{o: o}
	r.yield = func(s *Symbol) {
		if o.inPECode(s) {
			r.starts = append(r.starts, s.Address)
		}
	}
	if o.pe.Machine() == pe.MachineX86_64 { // else the ends of functions are not known
		_ = r.all()
	}
	slices.Sort(r.starts)
	r.yield = func(s *Symbol) {
		if o.inPECode(s) {
			s.Size = r.size(s)
		}
		yield(s)
	}
	return r.all()
}

func (r *peSymbols) all() error {
	table := r.o.pe.Symbols(func(symbol *pe.Symbol) {
		if s, ok := r.o.peSymbol(symbol); ok {
			r.yield(&s)
		}
	})
	exports, err := r.o.pe.Exports()
	for i := range exports {
		if s, ok := r.o.peExport(&exports[i]); ok {
			r.yield(&s)
		}
	}
	return errors.Join(table, err)
}

// size returns the size of the code that a symbol names: up to its end by .pdata, or where that does
// not list it, up to the function that follows or the next symbol. It is 0 for a label in a
// function.
func (r *peSymbols) size(s *Symbol) uint64 {
	f := r.o.pe
	end, ok := f.CodeEnd(s.Address)
	if !ok {
		return 0
	}
	fn, isListed, _ := f.FunctionAt(s.Address)
	switch {
	case !isListed:
		if i, _ := slices.BinarySearch(r.starts, s.Address+1); i < len(r.starts) {
			end = min(end, r.starts[i])
		}
	case s.Type == elf.STT_NOTYPE && fn.Start != s.Address:
		return 0
	}
	return end - s.Address
}

// inPECode reports whether a symbol may name code.
func (o *Object) inPECode(s *Symbol) bool {
	return (s.Type == elf.STT_FUNC || s.Type == elf.STT_NOTYPE) && s.Name != "" && uint64(s.Section) < uint64(len(o.sections)) &&
		o.sections[s.Section].Flags&elf.SHF_EXECINSTR != 0
}

// noFile is the name that GNU's assembler writes for a source file without a name.
const noFile = "fake"

// peSymbol returns a symbol in terms of ELF; false where ELF has no such symbol.
func (o *Object) peSymbol(symbol *pe.Symbol) (s Symbol, ok bool) {
	s = Symbol{Name: symbol.Name, Binding: elf.STB_GLOBAL, Section: uint32(elf.SHN_UNDEF)}
	if symbol.Section != nil {
		s.Section, s.Address = uint32(symbol.Section.Index+1), symbol.Address()
	}
	if symbol.IsFunction {
		s.Type = elf.STT_FUNC
	}
	switch symbol.Class {
	case pe.StorageFile:
		if s.Name == noFile {
			s.Name = ""
		}
		s.Type, s.Binding, s.Section = elf.STT_FILE, elf.STB_LOCAL, uint32(elf.SHN_ABS)
	case pe.StorageExternal:
	case pe.StorageWeakExternal:
		s.Binding = elf.STB_WEAK
	case pe.StorageStatic, pe.StorageLabel:
		if s.Binding = elf.STB_LOCAL; symbol.HasRecords && !symbol.IsFunction {
			s.Type = elf.STT_SECTION
		}
	default:
		return s, false // for old debuggers
	}
	if o.pe.Machine() == pe.MachineX86 && s.Type != elf.STT_FILE {
		if name := pe.WithoutConvention(s.Name); name != s.Name {
			s.Name, s.Decorated = name, s.Name
		}
	}
	return s, true
}

// peExport returns an export as a symbol; false where it has no name or is another library's.
func (o *Object) peExport(export *pe.Export) (s Symbol, ok bool) {
	if export.Name == "" || export.Address == 0 {
		return s, false
	}
	s = Symbol{Name: export.Name, Address: export.Address, Binding: elf.STB_GLOBAL, Type: elf.STT_OBJECT, Section: uint32(elf.SHN_ABS), Dynamic: true}
	if section := o.pe.SectionAt(export.Address); section != nil {
		if s.Section = uint32(section.Index + 1); section.IsCode() {
			s.Type = elf.STT_FUNC
		}
	}
	return s, true
}
