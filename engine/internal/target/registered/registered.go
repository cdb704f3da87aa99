// SPDX-License-Identifier: Apache-2.0

// Package registered finds the code that a program made and registered for debuggers: a
// list of object files in its memory (GDB's JIT compilation interface, "Registering Code"
// of the manual). LLVM's execution engines, LuaJIT, V8, Wasmtime, QEMU and others keep it.
package registered

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// descriptor is the variable that leads to the list. It may be in any code object.
const descriptor = "__jit_debug_descriptor"

// Bounds of one list. A program may lie, or have been stopped while it changed the list.
const (
	maxEntries = 1 << 16
	maxFile    = 64 << 20  // bytes of an object file
	maxFiles   = 512 << 20 // of all
	chunk      = 1 << 20   // bytes that are read at once
)

// Process is the memory that a list is read from.
type Process struct {
	// Read reads memory. It returns the number of bytes read.
	Read  func(address uint64, buf []byte) (int, error)
	Order binary.ByteOrder
	// AddressSize is the size of a pointer: 4 or 8 bytes. IsPacked means that numbers of 8
	// bytes are aligned to 4, as on 32-bit x86.
	AddressSize int
	IsPacked    bool
}

// ProcessOf describes the memory of the process that an object is loaded in.
func ProcessOf(o *object.Object, read func(address uint64, buf []byte) (int, error)) *Process {
	return &Process{Read: read, Order: o.ByteOrder(), AddressSize: o.AddressSize(), IsPacked: elf.Machine(o.Machine()) == elf.EM_386}
}

// Descriptor returns the ELF virtual address of the variable in an object that leads to a list;
// ok is false if it has none.
func Descriptor(o *object.Object) (address uint64, ok bool) {
	address, ok = o.Remembered(descriptor, func() any {
		var found any // without an address where there is none
		_ = object.Guard(func() error {
			if !o.MayExport(descriptor) && !isNamed(o) {
				return nil
			}
			return o.EachSymbol(func(s *object.Symbol) {
				if found == nil && s.Defined() && s.Type == elf.STT_OBJECT && nameOf(s) == descriptor {
					found = s.Address
				}
			})
		})
		return found
	}).(uint64)
	return address, ok
}

// isNamed reports whether the variable's name is among the names of an object's own symbols,
// which are faster to read than the symbols.
func isNamed(o *object.Object) bool {
	if s := o.Section(".strtab"); s != nil {
		names, err := s.Data()
		return err == nil && bytes.Contains(names, []byte(descriptor))
	}
	return false
}

// nameOf returns the name of a symbol without its version.
func nameOf(s *object.Symbol) string {
	name, _, _ := strings.Cut(s.Name, "@")
	return name
}

// File is an object file of a list.
type File struct {
	Address, Size uint64 // in memory
}

// Files reads the list of the descriptor at an address. The error says why the list is not
// complete; the files before the error are valid.
func (p *Process) Files(address uint64) (list []File, err error) {
	size := uint64(p.AddressSize)
	entry, err := p.word(address + 8 + size) // first_entry, after version, action_flag and relevant_entry
	if err != nil {
		return nil, fmt.Errorf("%s at %#x: %w", descriptor, address, err)
	}
	total := uint64(0)
	for seen := map[uint64]bool{}; entry != 0; {
		switch {
		case seen[entry]:
			return list, fmt.Errorf("%s at %#x: the list goes round at %#x after %d entries", descriptor, address, entry, len(seen))
		case len(seen) >= maxEntries:
			return list, fmt.Errorf("%s at %#x: more than %d entries", descriptor, address, maxEntries)
		}
		seen[entry] = true
		next, file, err := p.entry(entry)
		if err != nil {
			return list, fmt.Errorf("%s at %#x: entry %d at %#x: %w", descriptor, address, len(seen), entry, err)
		}
		if total += min(file.Size, maxFile); file.Size <= maxFile && total <= maxFiles {
			list = append(list, file)
		}
		entry = next
	}
	return list, nil
}

// entry reads an entry: the next and the previous one, the address of the object file, and
// its size, which has 8 bytes on all machines.
func (p *Process) entry(address uint64) (next uint64, f File, err error) {
	size := uint64(p.AddressSize)
	sizeAt := 3 * size
	if size == 4 && !p.IsPacked {
		sizeAt = 16
	}
	b := make([]byte, sizeAt+8)
	if n, err := p.Read(address, b); n < len(b) {
		return 0, f, orMissing(err)
	}
	return p.number(b[:size]), File{p.number(b[2*size : 3*size]), p.Order.Uint64(b[sizeAt:])}, nil
}

func (p *Process) word(address uint64) (uint64, error) {
	b := make([]byte, p.AddressSize)
	if n, err := p.Read(address, b); n < len(b) {
		return 0, orMissing(err)
	}
	return p.number(b), nil
}

func (p *Process) number(b []byte) uint64 {
	if len(b) == 4 {
		return uint64(p.Order.Uint32(b))
	}
	return p.Order.Uint64(b)
}

// orMissing returns the error of reading, or else ErrNoMemory.
func orMissing(err error) error {
	if err == nil {
		return target.ErrNoMemory
	}
	return err
}

// Module makes a module of an object file of a list.
func (p *Process) Module(f File, arch string) (*target.Module, error) {
	name := fmt.Sprintf("[registered at %#x]", f.Address)
	var data []byte
	for uint64(len(data)) < f.Size { // allocates as far as memory can be read
		b := make([]byte, min(f.Size-uint64(len(data)), chunk))
		if n, err := p.Read(f.Address+uint64(len(data)), b); n < len(b) {
			return nil, fmt.Errorf("%s: %d of %d bytes: %w", name, len(data)+n, f.Size, orMissing(err))
		}
		data = append(data, b...)
	}
	o, err := object.New(name, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	m := &target.Module{Module: trace.Module{Path: name, Arch: arch, Segments: segments(o)}, Object: o}
	if len(m.Segments) == 0 {
		return nil, fmt.Errorf("%s: %w", name, errNoCode)
	}
	return m, nil
}

var errNoCode = errors.New("no section of code has an address")

// segments returns the places of an object file's code, whose addresses the program has set: in
// the sections of most, in the program headers alone of some.
func segments(o *object.Object) (list []trace.Segment) {
	add := func(address, size uint64) {
		if address != 0 && size > 0 && address+size > address {
			list = append(list, trace.Segment{Address: address, Size: size, Start: address, Executable: true})
		}
	}
	for _, s := range o.Sections() {
		if s.Occupies() && s.Flags&elf.SHF_EXECINSTR != 0 {
			add(s.Address, s.Size)
		}
	}
	if len(list) == 0 && !o.IsRelocatable() {
		for _, s := range o.Segments() {
			if s.Executable() {
				add(s.Address, s.MemSize)
			}
		}
	}
	return list
}

// Modules returns the code that programs registered by descriptors in the modules of a target,
// and the problems of the lists. It leaves out code that a module of the target already has.
func Modules(modules []*target.Module, read func(address uint64, buf []byte) (int, error)) (list []*target.Module, problems []string) {
	present := placesOf(modules)
	for _, m := range modules {
		if m.Object == nil {
			continue
		}
		variable, ok := Descriptor(m.Object)
		if !ok {
			continue
		}
		if variable, ok = start(m, variable); !ok {
			continue
		}
		p := ProcessOf(m.Object, read)
		files, err := p.Files(variable)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: code that the program registered: %v", m.Path, err))
		}
		for _, f := range files {
			module, err := p.Module(f, m.Arch)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s: code that the program registered: %v", m.Path, err))
				continue
			}
			if present.add(module) {
				module.ID = len(modules) + len(list)
				list = append(list, module)
			}
		}
	}
	return list, problems
}

// start returns the target's address of an address in a module's object.
func start(m *target.Module, address uint64) (uint64, bool) {
	for i := range m.Segments {
		if s := &m.Segments[i]; address-s.Address < s.Size {
			return address - s.Address + s.Start, true
		}
	}
	return 0, false
}

// places are the segments of modules, by address.
type places []trace.Segment

func placesOf(modules []*target.Module) (p places) {
	for _, m := range modules {
		p = append(p, m.Segments...)
	}
	sort.Slice(p, func(i, j int) bool { return p[i].Start < p[j].Start })
	return p
}

// add adds the segments of a module that do not overlap others, and drops its other segments. It
// returns false if none is left.
func (p *places) add(m *target.Module) bool {
	kept := m.Segments[:0]
	for _, s := range m.Segments {
		i := sort.Search(len(*p), func(i int) bool { return (*p)[i].Start+(*p)[i].Size > s.Start })
		if i < len(*p) && (*p)[i].Start < s.Start+s.Size {
			continue
		}
		kept = append(kept, s)
		*p = append(*p, trace.Segment{})
		copy((*p)[i+1:], (*p)[i:])
		(*p)[i] = s
	}
	m.Segments = kept
	return len(kept) > 0
}
