// SPDX-License-Identifier: Apache-2.0

package pe

import "github.com/unwindd/unwindd/cfi"

// Numbers of DWARF (System V ABI, AMD64 supplement, figure 3.36).
const (
	dwarfRSP           = 7
	dwarfReturnAddress = 16
	dwarfXMM0          = 17
	dwarfGSBase        = 59
)

// dwarfRegisters are the numbers by which DWARF knows the registers that instructions
// number from 0.
var dwarfRegisters = [16]uint64{0, 2, 1, 3, dwarfRSP, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15}

// DWARFRegister returns the DWARF number of a register that an unwind code names.
func DWARFRegister(c UnwindCode) uint64 {
	if c.Operation == SaveXMM128 || c.Operation == SaveXMM128Far {
		return dwarfXMM0 + uint64(c.Register&15)
	}
	return dwarfRegisters[c.Register&15]
}

// DefaultRules returns the rules of registers that a row of the file does not name, by the convention of
// Windows for its machine. The list is sorted by column.
func (f *File) DefaultRules() []cfi.RegisterRule {
	if f.header.machine == MachineARM64 {
		return arm64DefaultRules()
	}
	return x64DefaultRules()
}

// x64DefaultRules returns the rules by the convention for x86-64 ("x64 calling convention", Caller/callee saved registers), which differs from other
// systems: rdi, rsi and xmm6 to xmm15 are preserved.
func x64DefaultRules() []cfi.RegisterRule {
	var list []cfi.RegisterRule
	for column := range uint64(dwarfXMM0 + 16) {
		rule := cfi.Rule{Kind: cfi.Undefined}
		switch {
		case column == dwarfReturnAddress:
			rule = cfi.Rule{Kind: cfi.Offset, Offset: -8}
		case column == dwarfRSP:
			rule = cfi.Rule{Kind: cfi.ValOffset}
		case isPreserved(column):
			rule = cfi.Rule{Kind: cfi.SameValue}
		}
		list = append(list, cfi.RegisterRule{Column: column, Rule: rule})
	}
	// The environment block of the thread.
	return append(list, cfi.RegisterRule{Column: dwarfGSBase, Rule: cfi.Rule{Kind: cfi.SameValue}})
}

// isPreserved reports whether functions preserve a register.
func isPreserved(column uint64) bool {
	const rbx, rsi, rdi, rbp, r12, r15 = 3, 4, 5, 6, 12, 15
	return column == rbx || column == rsi || column == rdi || column == rbp ||
		column >= r12 && column <= r15 || column >= dwarfXMM0+6
}
