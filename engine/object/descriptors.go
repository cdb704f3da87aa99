// SPDX-License-Identifier: Apache-2.0

package object

import "debug/elf"

// descriptorSection is the section of function descriptors of ABIs whose symbols and entry points
// lead to descriptors and not to code, as that of 64-bit PowerPC (64-bit PowerPC ELF ABI
// Supplement 1.9, 3.2.5). The first word of a descriptor is the address of the code.
const descriptorSection = ".opd"

// IsDescriptors reports whether the section has descriptors of functions.
func (s *Section) IsDescriptors() bool { return s.Name == descriptorSection }

// DescribedCode returns the address of the code of the function whose descriptor is at an offset
// of the section, and the section that the code is in; ok is false where the section has no
// descriptors, or the one there leads to no code. It is called inside Guard.
func (s *Section) DescribedCode(offset uint64) (address uint64, home *Section, ok bool) {
	size := uint64(s.object.AddressSize())
	if !s.IsDescriptors() {
		return 0, nil, false
	}
	data, err := s.Data()
	if err != nil || offset >= uint64(len(data)) || uint64(len(data))-offset < size {
		return 0, nil, false
	}
	if address = uint64(s.object.ByteOrder().Uint32(data[offset:])); size == 8 {
		address = s.object.ByteOrder().Uint64(data[offset:])
	}
	for _, home := range s.object.sections {
		if home.Flags&elf.SHF_EXECINSTR != 0 && home.Flags&elf.SHF_ALLOC != 0 && address-home.Address < home.Size {
			return address, home, true
		}
	}
	return 0, nil, false
}

// EntryCode returns the address of the code at the entry point: Entry, or what its descriptor
// leads to.
func (o *Object) EntryCode() (address uint64) {
	address = o.Entry()
	s := o.Section(descriptorSection)
	if s == nil || address-s.Address >= s.Size {
		return address
	}
	_ = Guard(func() error { // a file that shrank has no descriptor there
		if code, _, ok := s.DescribedCode(address - s.Address); ok {
			address = code
		}
		return nil
	})
	return address
}
