// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
)

// ELFMachine is the machine that the header of an ELF file names: several architectures may
// share a number.
type ELFMachine struct {
	Number uint16    // e_machine
	Class  elf.Class // elf.ELFCLASSNONE: unknown
	Data   elf.Data  // elf.ELFDATANONE: unknown
}

// NewELFMachine returns the machine of a number, a class and a byte order.
func NewELFMachine(number uint16, class elf.Class, order binary.ByteOrder) ELFMachine {
	m := ELFMachine{Number: number, Class: class, Data: elf.ELFDATA2LSB}
	if order.Uint16([]byte{0, 1}) == 1 {
		m.Data = elf.ELFDATA2MSB
	}
	return m
}

// String returns the machine for messages: "ELF machine 21 (ppc64), 64-bit, big-endian".
func (m ELFMachine) String() string {
	text := DescribeMachine(m.Number)
	switch m.Class {
	case elf.ELFCLASS32:
		text += ", 32-bit"
	case elf.ELFCLASS64:
		text += ", 64-bit"
	}
	switch m.Data {
	case elf.ELFDATA2LSB:
		text += ", little-endian"
	case elf.ELFDATA2MSB:
		text += ", big-endian"
	}
	return text
}

// IsLike reports whether two machines have one number and one encoding of data: processes run
// code of such machines, of whichever class.
func (m ELFMachine) IsLike(other ELFMachine) bool {
	return m.Number == other.Number && m.Data == other.Data
}

// Matches reports whether the machine has a number, a class and an encoding of data, of which 0
// matches any. A class or an encoding that is unknown matches too.
func (m ELFMachine) Matches(number uint16, class, data uint8) bool {
	return (number == 0 || number == m.Number) &&
		(class == 0 || m.Class == elf.ELFCLASSNONE || elf.Class(class) == m.Class) &&
		(data == 0 || m.Data == elf.ELFDATANONE || elf.Data(data) == m.Data)
}

// ELFMachine returns the machine of the object, and for a PE file the one that an ELF file would
// have; its number is 0 where there is none, and for a foreign object.
func (o *Object) ELFMachine() ELFMachine {
	if o.foreign || o.Machine() == 0 {
		return ELFMachine{}
	}
	class := elf.ELFCLASS32
	if o.header.wide {
		class = elf.ELFCLASS64
	}
	return NewELFMachine(o.Machine(), class, o.ByteOrder())
}
