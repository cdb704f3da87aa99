// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"fmt"

	"github.com/unwindd/unwindd/plugins/visa/stream"
)

// abi describes how stack-call functions use registers. A frame's descriptor, the
// register with the stack pointers, is saved where the frame begins; so offsets
// in the register are offsets in the frame, too.
//
// The descriptor is the last but two of a kernel's registers in the first version,
// the last one from the second version on. The compiler's "BE" pointers belong to
// frames in the scratch space; its "FE" pointers, to the program's own stack, are
// in the same register and do not matter to an unwinder.
type abi struct {
	descriptor uint32 // register with the pointers, as DWARF numbers it
	registers  uint32 // how many general registers a kernel has
	reserved   uint32 // how many at the end are not for variables
	header     uint32 // register for building messages to memory, which no function keeps; 0: none

	// Bytes of the descriptor: frame pointer, stack pointer, return address; each
	// is of 32 bits. (The third version leaves 64 bits for each. The upper 32 of a
	// return address are beyond the IP of 32 bits.)
	fp, sp, ip uint64
}

// abiVersions are the versions, told by where the frame pointer is.
var abiVersions = [...]struct {
	distance   uint32 // of the descriptor from the end of the general registers
	reserved   uint32
	header     uint32 // distance from the end; 0: none
	fp, sp, ip uint64
}{
	{3, 3, 2, 12, 8, 0}, // version 1: r125, r126, r127
	{1, 3, 2, 12, 8, 0}, // version 2: r127, r126, r125
	{1, 1, 0, 0, 8, 16}, // version 3: r127
	{2, 2, 0, 0, 8, 16}, // version 3 of 512 registers: r510
}

// The general registers that a kernel may have.
const (
	registerStep = 32
	maxRegisters = 512
)

// abiOf returns the ABI that has its frame pointer at a place.
func abiOf(l stream.Location) (*abi, error) {
	if l.Storage != stream.General {
		return nil, fmt.Errorf("the frame pointer is in %v, expected a general register", l.Storage)
	}
	for _, v := range abiVersions {
		registers := uint32(l.Register) + v.distance
		if v.fp != uint64(l.Subregister) || registers > maxRegisters || registers%registerStep != 0 || (v.distance == 2) != (registers == maxRegisters) {
			continue
		}
		a := &abi{descriptor: generalRegister(uint32(l.Register)), registers: registers, reserved: v.reserved, fp: v.fp, sp: v.sp, ip: v.ip}
		if v.header != 0 {
			a.header = generalRegister(registers - v.header)
		}
		return a, nil
	}
	return nil, fmt.Errorf("the frame pointer is at byte %d of r%d, where none of the calling conventions has it", l.Subregister, l.Register)
}

// calleeSaved returns the first register that functions keep.
func (a *abi) calleeSaved() uint32 { return (a.registers - 8) / 2 }

// keeps reports whether functions keep a general register: registers for variables
// from calleeSaved on, and the reserved ones except those that every function
// writes.
func (a *abi) keeps(n uint32) bool {
	return n >= a.calleeSaved() && n < a.registers && generalRegister(n) != a.header
}

// generalRegister returns the DWARF number of a general register.
func generalRegister(n uint32) uint32 {
	if n < 256 {
		return r0 + n
	}
	return r256 + n - 256
}
