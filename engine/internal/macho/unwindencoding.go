// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// UnwindEncoding is a compact unwind encoding: where a function's frame is in its body, neither in its
// prologue nor in an epilogue.
type UnwindEncoding uint32

// UnwindMode is the mode of an encoding.
type UnwindMode uint8

// The modes of encodings.
const (
	NoUnwind          UnwindMode = iota // the code has no unwind information
	FrameMode                           // the frame pointer is set: UNWIND_X86_64_MODE_RBP_FRAME, UNWIND_ARM64_MODE_FRAME
	FramelessMode                       // the stack pointer has a distance from the caller's: *_STACK_IMMD, *_FRAMELESS
	FramelessIndirect                   // the same, and the distance is in an instruction of the function: *_STACK_IND
	DWARFMode                           // an FDE of __eh_frame has the rows
	UnknownMode                         // of no version of the header
)

// Parts of encodings.
const (
	notFunctionStart  = 0x80000000
	hasLSDA           = 0x40000000
	personalityMask   = 0x30000000
	personalityShift  = 28
	modeMask          = 0x0f000000
	modeShift         = 24
	dwarfOffsetMask   = 0x00ffffff
	x64FrameRegisters = 0x00007fff
	x64FrameOffset    = 0x00ff0000
	x64StackSize      = 0x00ff0000
	x64StackAdjust    = 0x0000e000
	x64RegisterCount  = 0x00001c00
	x64Permutation    = 0x000003ff
	arm64StackSize    = 0x00fff000
)

// unwindModes are the modes of a machine by their numbers in an encoding.
var unwindModes = map[uint32][16]UnwindMode{
	MachineX86_64: modes(map[int]UnwindMode{1: FrameMode, 2: FramelessMode, 3: FramelessIndirect, 4: DWARFMode}),
	MachineARM64:  modes(map[int]UnwindMode{2: FramelessMode, 3: DWARFMode, 4: FrameMode}),
}

func modes(known map[int]UnwindMode) (list [16]UnwindMode) {
	for i := range list {
		list[i] = UnknownMode
	}
	for number, mode := range known {
		list[number] = mode
	}
	list[0] = NoUnwind
	return list
}

// unwindModeNames are the names of modes in the header, without their prefixes.
var unwindModeNames = map[uint32][]string{
	MachineX86_64: {NoUnwind: "none", FrameMode: "RBP_FRAME", FramelessMode: "STACK_IMMD", FramelessIndirect: "STACK_IND", DWARFMode: "DWARF", UnknownMode: "unknown"},
	MachineARM64:  {NoUnwind: "none", FrameMode: "FRAME", FramelessMode: "FRAMELESS", FramelessIndirect: "unknown", DWARFMode: "DWARF", UnknownMode: "unknown"},
}

// Mode returns the mode of an encoding.
func (u *UnwindInfo) Mode(e UnwindEncoding) UnwindMode {
	return unwindModes[u.file.header.machine][e&modeMask>>modeShift]
}

// ModeName returns the name of an encoding's mode in the header, without its prefix: "RBP_FRAME".
func (u *UnwindInfo) ModeName(e UnwindEncoding) string {
	return unwindModeNames[u.file.header.machine][u.Mode(e)]
}

// HasLSDA reports whether the function has data for exceptions.
func (e UnwindEncoding) HasLSDA() bool { return e&hasLSDA != 0 }

// IsPart reports whether the code is not the beginning of a function.
func (e UnwindEncoding) IsPart() bool { return e&notFunctionStart != 0 }

// Personality returns the number of the function's personality, from 1 on; 0: it has none.
func (e UnwindEncoding) Personality() int { return int(e & personalityMask >> personalityShift) }

// FDE returns the offset in __eh_frame of the FDE of an encoding in DWARFMode. One that does not fit is 0.
func (e UnwindEncoding) FDE() uint64 { return uint64(e & dwarfOffsetMask) }

// DWARF's numbers of registers.
const (
	x64RBX, x64RBP, x64RSP, x64R12, x64Return = 3, 6, 7, 12, 16
	arm64X19, arm64FP, arm64LR, arm64SP       = 19, 29, 30, 31
	arm64D8                                   = 72
)

// x64Registers are the registers of x86-64 by their numbers in encodings; 0: none.
var x64Registers = [8]uint64{0, x64RBX, x64R12, x64R12 + 1, x64R12 + 2, x64R12 + 3, x64RBP, 0}

// arm64Pairs are the pairs of registers that encodings of arm64 have, in the order of their places.
var arm64Pairs = []struct {
	bit   UnwindEncoding
	first uint64
}{
	{0x001, arm64X19}, {0x002, arm64X19 + 2}, {0x004, arm64X19 + 4}, {0x008, arm64X19 + 6}, {0x010, arm64X19 + 8},
	{0x100, arm64D8}, {0x200, arm64D8 + 2}, {0x400, arm64D8 + 4}, {0x800, arm64D8 + 6},
}

// Row fills in the row of a function's body by its entry. It is an error for an entry whose mode has no
// row: NoUnwind, DWARFMode.
func (u *UnwindInfo) Row(e *UnwindEntry, row *cfi.Row) error {
	*row = cfi.Row{Start: e.Start, End: e.End, Rules: row.Rules[:0], CallSite: row.CallSite[:0]}
	var err error
	switch mode := u.Mode(e.Encoding); {
	case mode == NoUnwind || mode == DWARFMode || mode == UnknownMode:
		err = fmt.Errorf("encoding %#08x has no row", uint32(e.Encoding))
	case u.file.header.machine == MachineARM64:
		arm64Row(mode, e.Encoding, row)
	case mode == FrameMode:
		err = x64FrameRow(e.Encoding, row)
	default:
		err = u.x64FramelessRow(mode, e, row)
	}
	if err != nil {
		row.Rules, row.CFA = row.Rules[:0], cfi.CFARule{}
		return u.errorf(e.Offset, "%w", err)
	}
	slices.SortFunc(row.Rules, func(a, b cfi.RegisterRule) int { return int(a.Column) - int(b.Column) }) //nolint:gosec // of a table
	return nil
}

// save adds a register that is saved below the CFA.
func save(row *cfi.Row, column uint64, below int64) {
	row.Rules = append(row.Rules, cfi.RegisterRule{Column: column, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -below}})
}

// arm64Row is Row of arm64: the registers lie below the frame record, or below the caller's stack pointer.
func arm64Row(mode UnwindMode, e UnwindEncoding, row *cfi.Row) {
	row.ReturnAddress = arm64LR
	below := int64(0)
	if mode == FrameMode {
		row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: arm64FP, Offset: 16}
		save(row, arm64LR, 8)
		save(row, arm64FP, 16)
		below = 16
	} else {
		row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: arm64SP, Offset: int64(e&arm64StackSize>>12) * 16}
	}
	for _, pair := range arm64Pairs {
		if e&pair.bit != 0 {
			save(row, pair.first, below+8)
			save(row, pair.first+1, below+16)
			below += 16
		}
	}
}

// x64FrameRow is Row of x86-64 with a frame pointer: five places for registers, from the lowest on.
func x64FrameRow(e UnwindEncoding, row *cfi.Row) error {
	row.ReturnAddress = x64Return
	row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: x64RBP, Offset: 16}
	save(row, x64Return, 8)
	save(row, x64RBP, 16)
	below := 16 + int64(e&x64FrameOffset>>16)*8
	for places := e & x64FrameRegisters; places != 0; places >>= 3 {
		switch number := places & 7; {
		case number == 6 || number == 7:
			return fmt.Errorf("encoding %#08x saves register %d in a frame, expected 1 to 5", uint32(e), number)
		case number != 0 && (below <= 16 || hasRule(row, x64Registers[number])):
			return fmt.Errorf("encoding %#08x saves register %d twice, or above the frame", uint32(e), number)
		case number != 0:
			save(row, x64Registers[number], below)
		}
		below -= 8
	}
	return nil
}

func hasRule(row *cfi.Row, column uint64) bool {
	return slices.ContainsFunc(row.Rules, func(r cfi.RegisterRule) bool { return r.Column == column })
}

// maxStackSize bounds the size that an instruction of a function adds to its frame.
const maxStackSize = 1 << 31

// x64FramelessRow is Row of x86-64 without a frame pointer: registers lie below the return address.
func (u *UnwindInfo) x64FramelessRow(mode UnwindMode, e *UnwindEntry, row *cfi.Row) error {
	row.ReturnAddress = x64Return
	size := int64(e.Encoding & x64StackSize >> 16)
	if mode == FramelessMode {
		size *= 8
	} else {
		code, err := u.file.Bytes(e.Start+uint64(size), 4) //nolint:gosec // a byte
		if err != nil {
			return fmt.Errorf("encoding %#08x: the size of the frame: %w", uint32(e.Encoding), err)
		}
		size = int64(binary.LittleEndian.Uint32(code)) + int64(e.Encoding&x64StackAdjust>>13)*8
	}
	count := int64(e.Encoding & x64RegisterCount >> 10)
	if size%8 != 0 || size < 8*(count+1) || size >= maxStackSize || count > 6 {
		return fmt.Errorf("encoding %#08x: a frame of %d bytes with %d registers", uint32(e.Encoding), size, count)
	}
	row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: x64RSP, Offset: size}
	save(row, x64Return, 8)
	registers, ok := permutation(uint32(e.Encoding&x64Permutation), int(count))
	if !ok {
		return fmt.Errorf("encoding %#08x: permutation %d of %d registers is none", uint32(e.Encoding), e.Encoding&x64Permutation, count)
	}
	for i, number := range registers[:count] {
		save(row, x64Registers[number], 8*(count+1-int64(i)))
	}
	return nil
}

// permutation returns the registers of a frame, the one of the lowest address first. Each digit of the number
// counts the registers that are left, smaller ones first: of n registers of six, the first digit has
// six values, the next one five, and so on.
func permutation(number uint32, count int) (registers [6]uint8, ok bool) {
	var digits [6]uint32
	for i := count - 1; i >= 0; i-- {
		values := uint32(6 - i) //nolint:gosec // 1 to 6
		digits[i], number = number%values, number/values
	}
	left := [6]uint8{1, 2, 3, 4, 5, 6}
	for i, digit := range digits[:count] {
		rest := left[:6-i]
		registers[i] = rest[digit]
		copy(rest[digit:], rest[digit+1:])
	}
	return registers, number == 0
}
