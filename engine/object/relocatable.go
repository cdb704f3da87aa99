// SPDX-License-Identifier: Apache-2.0

package object

import "debug/elf"

// IsRelocatable reports whether the sections of an ELF file have no addresses yet, so that each
// begins at 0 and an address alone does not identify one: of an object file of a compiler, and of
// a cubin, which is an executable by its type and is placed by the driver that loads it. Symbols
// of both count from the beginning of their section, and both have relocations.
func (o *Object) IsRelocatable() bool { return o.relocatable }

// isUnlinkedCubin reports whether the object is a cubin whose sections were not placed. The image
// that a driver placed in the memory of a GPU has addresses.
func (o *Object) isUnlinkedCubin() bool {
	if elf.Machine(o.header.machine) != elf.EM_CUDA || o.header.typ != elf.ET_EXEC {
		return false
	}
	hasCode := false
	for _, s := range o.sections {
		if !s.Occupies() {
			continue
		}
		if s.Address != 0 {
			return false
		}
		hasCode = hasCode || s.Flags&elf.SHF_EXECINSTR != 0
	}
	return hasCode
}
