// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/macho"
)

// A Section is a section of an object.
type Section struct {
	Index     int
	Name      string // ".zdebug_" names as they are in the file
	Type      elf.SectionType
	Flags     elf.SectionFlag
	Address   uint64 // virtual
	Offset    uint64 // in the file
	Size      uint64 // sh_size: bytes in the file, or of memory for SHT_NOBITS
	Link      uint32
	Info      uint32
	Align     uint64
	EntrySize uint64

	object   *Object
	mu       sync.Mutex
	done     bool
	types    *relocations // that data was relocated by
	data     []byte
	kept     int // bytes of it that are no part of the file
	err      error
	contents *Contents // nil until they are needed
}

// raw returns the section's bytes as they are in the file.
func (s *Section) raw() ([]byte, error) {
	if s.Type == elf.SHT_NOBITS || s.Type == elf.SHT_NULL {
		return nil, ErrNoData
	}
	b, ok := slice(s.object.data, s.Offset, s.Size)
	if !ok {
		return nil, fmt.Errorf("offset %#x, size %#x is not in the %d bytes of the file", s.Offset, s.Size, len(s.object.data))
	}
	if s.object.readable(s.Offset, s.Size) < s.Size {
		return nil, macho.ErrEncrypted
	}
	return b, s.object.need(s.Offset, s.Size, s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_STRTAB)
}

// Data returns the section's contents: decompressed (SHF_COMPRESSED, .zdebug_)
// and, in a relocatable object, relocated by the types of SetRelocations. They
// are made once. Bytes that needed neither lie in the file's mapping
// and are read inside Guard.
//
// Sections of code are not relocated: the types do not describe addresses in
// instructions. A section that has no bytes in the file gives ErrNoData.
func (s *Section) Data() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all()
}

// all is Data. The caller holds mu.
func (s *Section) all() ([]byte, error) {
	if s.contents != nil && s.contents.stream != nil {
		return s.contents.whole()
	}
	types := s.object.relocations.Load()
	if !s.done || s.types != types {
		s.make(types)
	}
	return s.data, s.err
}

// make makes the contents. The caller holds mu.
func (s *Section) make(types *relocations) {
	owned := false
	before := s.kept
	s.done, s.types = true, types
	s.err = Guard(func() (err error) {
		s.data, owned, err = s.read(types)
		return err
	})
	if s.err != nil {
		s.data = nil
		s.err = s.failed(s.err)
	}
	if s.kept = 0; owned {
		s.kept = cap(s.data)
	}
	s.object.keptBytes.Add(int64(s.kept - before))
}

// read makes the contents; owned: they are no part of the file.
func (s *Section) read(types *relocations) (b []byte, owned bool, err error) {
	if b, err = s.raw(); err != nil {
		return nil, false, err
	}
	packed, size, open, err := s.packing(b)
	if err == nil && open != nil {
		b, err = s.unpack(packed, size, open)
		owned = true
	}
	if err != nil {
		return nil, false, err
	}
	if s.object.macho != nil {
		return s.relocateMachO(b, owned)
	}
	return s.relocate(b, owned, types)
}

// failed adds the section to an error.
func (s *Section) failed(err error) error {
	return fmt.Errorf("%s: section %s (%d): %w", s.object.name, s.Name, s.Index, err)
}
