// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"errors"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/object/pe"
)

// A peSymbols yields the symbols of a PE file: those of its symbol table, then its exports,
// which are dynamic ones. Neither has sizes: .pdata says where functions end.
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
	if o.pe.Machine() == pe.MachineX86_64 { // else nothing says where functions end
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
	table := r.o.pe.Symbols(func(from *pe.Symbol) {
		if s, ok := r.o.peSymbol(from); ok {
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

// size is how long the code is that a symbol names: to where .pdata says that it ends, or
// where it says nothing but that a function follows, to that or the next symbol. It is 0 of a
// label in a function.
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

// inPECode says whether a symbol may name code.
func (o *Object) inPECode(s *Symbol) bool {
	return (s.Type == elf.STT_FUNC || s.Type == elf.STT_NOTYPE) && s.Name != "" && uint64(s.Section) < uint64(len(o.sections)) &&
		o.sections[s.Section].Flags&elf.SHF_EXECINSTR != 0
}

// noFile is what GNU's assembler calls a source file that it was not told the name of.
const noFile = "fake"

// peSymbol is a symbol in the words of ELF; false of what is none there.
func (o *Object) peSymbol(from *pe.Symbol) (s Symbol, ok bool) {
	s = Symbol{Name: from.Name, Binding: elf.STB_GLOBAL, Section: uint32(elf.SHN_UNDEF)}
	if from.Section != nil {
		s.Section, s.Address = uint32(from.Section.Index+1), from.Address()
	}
	if from.IsFunction {
		s.Type = elf.STT_FUNC
	}
	switch from.Class {
	case pe.StorageFile:
		if s.Name == noFile {
			s.Name = ""
		}
		s.Type, s.Binding, s.Section = elf.STT_FILE, elf.STB_LOCAL, uint32(elf.SHN_ABS)
	case pe.StorageExternal:
	case pe.StorageWeakExternal:
		s.Binding = elf.STB_WEAK
	case pe.StorageStatic, pe.StorageLabel:
		if s.Binding = elf.STB_LOCAL; from.HasRecords && !from.IsFunction {
			s.Type = elf.STT_SECTION
		}
	default:
		return s, false // what was for debuggers once
	}
	if o.pe.Machine() == pe.MachineX86 && s.Type != elf.STT_FILE {
		// The convention of 32-bit x86 puts one before each name of C.
		s.Name = strings.TrimPrefix(s.Name, "_")
	}
	return s, true
}

// peExport is an export as a symbol; false of one that has no name or is another library's.
func (o *Object) peExport(from *pe.Export) (s Symbol, ok bool) {
	if from.Name == "" || from.Address == 0 {
		return s, false
	}
	s = Symbol{Name: from.Name, Address: from.Address, Binding: elf.STB_GLOBAL, Type: elf.STT_OBJECT, Section: uint32(elf.SHN_ABS), Dynamic: true}
	if in := o.pe.SectionAt(from.Address); in != nil {
		if s.Section = uint32(in.Index + 1); in.IsCode() {
			s.Type = elf.STT_FUNC
		}
	}
	return s, true
}
