// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"fmt"
)

// dynamicTags returns the tags of PT_DYNAMIC that this package reads; nil where there is none.
func (o *Object) dynamicTags() (map[elf.DynTag]uint64, error) {
	h := &o.header
	var dynamic *Program
	for i := range o.programs {
		if o.programs[i].Type == elf.PT_DYNAMIC {
			dynamic = &o.programs[i]
			break
		}
	}
	if dynamic == nil || dynamic.FileSize == 0 {
		return nil, nil
	}
	b, err := o.ProgramData(*dynamic)
	if err != nil {
		return nil, err
	}
	tags := make(map[elf.DynTag]uint64)
	size := 2 * o.AddressSize()
	for i := 0; i+size <= len(b); i += size {
		f := fields{b[i : i+size], h.order, h.wide}
		tag := elf.DynTag(f.word(0, 0))
		if tag == elf.DT_NULL {
			break
		}
		switch tag {
		case elf.DT_SYMTAB, elf.DT_STRTAB, elf.DT_STRSZ, elf.DT_SYMENT, elf.DT_HASH, elf.DT_GNU_HASH, elf.DT_PLTGOT, elf.DT_SONAME, elf.DT_RPATH, elf.DT_RUNPATH:
			tags[tag] = f.word(4, 8)
		}
	}
	return tags, nil
}

// SharedName returns the name by which others depend on the object (DT_SONAME); "" where it has
// none.
func (o *Object) SharedName() string { return o.dynamicString(elf.DT_SONAME, maxSharedName) }

// maxSharedName bounds the name of SharedName, in bytes, with the NUL behind it, and
// maxRunPath the directories of RunPaths.
const (
	maxSharedName = 256
	maxRunPath    = 64 << 10
)

// dynamicString returns the string that a tag of PT_DYNAMIC names, of fewer than most bytes; ""
// where there is none.
func (o *Object) dynamicString(tag elf.DynTag, most uint64) (text string) {
	_ = Guard(func() error { // a file that is cut has none
		tags, err := o.dynamicTags()
		if offset, ok := tags[tag]; ok && err == nil && tags[elf.DT_STRTAB] != 0 && offset < tags[elf.DT_STRSZ] {
			b := o.fileUpTo(tags[elf.DT_STRTAB]+offset, min(tags[elf.DT_STRSZ]-offset, most))
			if before, _, ok := bytes.Cut(b, []byte{0}); ok {
				text = string(before)
			}
		}
		return nil
	})
	return text
}

// GlobalOffsetTable returns the virtual address that data-relative pointers of
// .eh_frame are relative to: DT_PLTGOT, or else .got.plt or .got. ok is false
// where there is none.
func (o *Object) GlobalOffsetTable() (address uint64, ok bool) {
	err := Guard(func() error {
		tags, err := o.dynamicTags()
		address, ok = tags[elf.DT_PLTGOT]
		return err
	})
	if err == nil && ok {
		return address, true
	}
	for _, name := range []string{".got.plt", ".got"} {
		if s := o.Section(name); s != nil {
			return s.Address, true
		}
	}
	return 0, false
}

// eachDynamicSymbol yields the symbols that PT_DYNAMIC leads to. The number
// of symbols is not in the dynamic section; a hash table tells it.
func (o *Object) eachDynamicSymbol(yield func(*Symbol)) error {
	h := &o.header
	tags, err := o.dynamicTags()
	if err != nil {
		return err
	}
	symtab, ok := tags[elf.DT_SYMTAB]
	if !ok {
		return nil
	}
	if size, ok := tags[elf.DT_SYMENT]; ok && size != uint64(h.symbolSize()) {
		return fmt.Errorf("PT_DYNAMIC: symbols of %d bytes, expected %d", size, h.symbolSize())
	}
	n, err := o.countDynamicSymbols(tags)
	if err != nil {
		return fmt.Errorf("PT_DYNAMIC: %w", err)
	}
	all := o.fileFrom(symtab)
	table, ok := entries(all, 0, n, uint64(h.symbolSize()))
	if !ok {
		return fmt.Errorf("PT_DYNAMIC: %d symbols at address %#x are not in the file", n, symtab)
	}
	names, ok := slice(o.fileFrom(tags[elf.DT_STRTAB]), 0, tags[elf.DT_STRSZ])
	if !ok {
		return fmt.Errorf("PT_DYNAMIC: string table at address %#x, size %#x is not in the file", tags[elf.DT_STRTAB], tags[elf.DT_STRSZ])
	}
	return o.eachInTable(table, names, nil, true, yield)
}

// countDynamicSymbols counts the symbols.
func (o *Object) countDynamicSymbols(tags map[elf.DynTag]uint64) (uint64, error) {
	if hash, ok := tags[elf.DT_HASH]; ok {
		return o.countHash(hash)
	}
	if hash, ok := tags[elf.DT_GNU_HASH]; ok {
		return o.countGNUHash(hash)
	}
	return 0, fmt.Errorf("expected DT_HASH or DT_GNU_HASH beside DT_SYMTAB")
}

// countHash returns nchain, which is the number of symbols.
func (o *Object) countHash(address uint64) (uint64, error) {
	b, ok := slice(o.fileFrom(address), 0, 8)
	if !ok {
		return 0, fmt.Errorf("DT_HASH at address %#x is not in the file", address)
	}
	return uint64(o.header.order.Uint32(b[4:])), nil
}

// countGNUHash returns one more than the number of the last hashed symbol: the
// chain that begins last is followed to its end.
func (o *Object) countGNUHash(address uint64) (uint64, error) {
	h := &o.header
	b := o.fileFrom(address)
	header, ok := slice(b, 0, 16)
	if !ok {
		return 0, fmt.Errorf("DT_GNU_HASH at address %#x is not in the file", address)
	}
	buckets, first, bloom := uint64(h.order.Uint32(header)), uint64(h.order.Uint32(header[4:])), uint64(h.order.Uint32(header[8:]))
	offset := 16 + bloom*uint64(o.AddressSize())
	table, ok := slice(b, offset, 4*buckets)
	if !ok || buckets > maxSymbols {
		return 0, fmt.Errorf("DT_GNU_HASH at address %#x: %d buckets are not in the file", address, buckets)
	}
	last := uint64(0)
	for i := 0; i < len(table); i += 4 {
		last = max(last, uint64(h.order.Uint32(table[i:])))
	}
	if last < first {
		return first, nil // nothing is hashed
	}
	for chain, end := offset+4*buckets, last+maxSymbols; last < end; last++ {
		v, ok := slice(b, chain+4*(last-first), 4)
		if !ok {
			return 0, fmt.Errorf("DT_GNU_HASH at address %#x: the chain of symbol %d is not in the file", address, last)
		}
		if h.order.Uint32(v)&1 != 0 {
			return last + 1, nil
		}
	}
	return 0, fmt.Errorf("DT_GNU_HASH at address %#x: a chain of more than %d symbols", address, maxSymbols)
}
