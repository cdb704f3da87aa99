// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
)

// breakpadID is how many bytes of a build ID the dumps of older Breakpads have.
const breakpadID = 16

// HasID reports whether an identity that a target states is the object's: its build ID, the first
// 16 bytes of a longer one, or, where it has none, Breakpad's hash of its code. A PE file has time
// and size besides.
func (o *Object) HasID(want []byte) bool {
	id := o.BuildID()
	switch {
	case len(want) == 0:
		return false
	case o.pe != nil && len(want) != len(id):
		return bytes.Equal(want, o.peTimeAndSize())
	case len(id) == 0:
		return bytes.Equal(want, o.TextID())
	case len(want) == breakpadID:
		return bytes.HasPrefix(id, want)
	}
	return bytes.Equal(id, want)
}

// hashedText is how many bytes of code Breakpad hashes.
const hashedText = 4096

// TextID returns the identity that Breakpad gives to an ELF file without a build ID
// (common/linux/file_id.cc): the exclusive or of the first 256 pieces of 16 bytes of
// .text, of which the last one reaches behind the section where that ends within it. It is
// nil where there is no code.
func (o *Object) TextID() (id []byte) {
	text := o.Section(".text")
	if text == nil || text.Type == elf.SHT_NOBITS || text.Size == 0 {
		return nil
	}
	id = make([]byte, breakpadID)
	size := min(text.Size, hashedText)
	size += -size % breakpadID
	// Readers of the section report why its bytes are not there.
	_ = Guard(func() error {
		if err := o.need(text.Offset, size, false); err != nil {
			return err
		}
		if text.Offset < uint64(len(o.data)) {
			data := o.data[text.Offset:]
			for i, b := range data[:min(uint64(len(data)), size)] {
				id[i%breakpadID] ^= b
			}
		}
		return nil
	})
	return id
}

// basePage is the size of the smallest pages: a file is mapped from the beginning of one.
const basePage = 4096

// ImageBase returns the address of the object at which the file begins in memory: the page of the
// lowest segment, a PE file's image base, or the segment __TEXT of a Mach-O file; 0 for a PDB file, whose addresses are RVAs. It is
// false where nothing is loaded.
func (o *Object) ImageBase() (address uint64, ok bool) {
	switch {
	case o.pe != nil:
		return o.pe.ImageBase(), true
	case o.pdb != nil:
		return 0, true
	case o.macho != nil:
		text := o.macho.Text()
		if text == nil {
			return 0, false
		}
		return text.Address, true
	}
	if len(o.segments) == 0 {
		return 0, false
	}
	address = o.segments[0].Address
	for i := range o.segments {
		address = min(address, o.segments[i].Address)
	}
	return address &^ (basePage - 1), true
}
