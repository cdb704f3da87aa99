// SPDX-License-Identifier: Apache-2.0

package pe

import "encoding/binary"

// TLSIndex returns the address of the number that the loader gives to the file's thread-local
// storage ("PE Format", The .tls Section); false where the file has none.
func (f *File) TLSIndex() (address uint64, ok bool, err error) {
	rva, size := f.header.directory(directoryTLS)
	word := uint64(4)
	if f.header.isPlus {
		word = 8
	}
	if rva == 0 || uint64(size) < 4*word {
		return 0, false, nil
	}
	b, err := f.at(rva, 4*word, "TLS directory")
	if err != nil {
		return 0, false, err
	}
	if b = b[2*word:]; word == 4 {
		address = uint64(u32(b, 0))
	} else {
		address = binary.LittleEndian.Uint64(b)
	}
	return address, address != 0, nil
}

// An Environment is how code of a machine finds the thread environment block of Windows (winternl.h).
type Environment struct {
	Register string // that has its address; "" where the machine is not known
	// Blocks is the offset of ThreadLocalStoragePointer in it: an array of addresses of the thread's
	// blocks, by the numbers that the loader gives to modules.
	Blocks uint64
}

var environments = map[uint16]Environment{
	MachineX86_64: {"gs.base", 0x58}, MachineARM64: {"x18", 0x58}, MachineX86: {"fs.base", 0x2c},
}

// Environment returns where the thread environment block is in a process of the file's machine.
func (f *File) Environment() Environment { return environments[f.header.machine] }
