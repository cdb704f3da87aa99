// SPDX-License-Identifier: Apache-2.0

package object

import "debug/elf"

// LocalEntry returns the distance in bytes from the address of a function's symbol to the
// instruction where calls from the same module enter it. They skip the instructions that set the
// TOC pointer of 64-bit POWER; the symbol's st_other has the distance (Power Architecture 64-Bit
// ELF V2 ABI, 3.4.1). It is 0 on other machines.
func (o *Object) LocalEntry(other uint8) uint64 {
	const shift, mask, reserved = 5, 7, 7
	bits := other >> shift & mask
	if o.Machine() != uint16(elf.EM_PPC64) || bits < 2 || bits == reserved {
		return 0
	}
	return 1 << bits
}
