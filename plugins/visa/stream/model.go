// SPDX-License-Identifier: Apache-2.0

// Package stream reads the debug information that Intel's graphics compiler
// writes with a kernel: how instructions of the virtual ISA (vISA) became machine
// instructions (Gen), where each variable lives, and where a frame saves
// registers.
//
// The format is that of the vISA specification, appendix "Debug Information".
// Three layouts of it go by the same magic number, see Layout.
package stream

import "fmt"

// Magic is the number that a stream begins with.
const Magic = 0xdeadd010

// Layout is a layout in which compilers have written a stream. A stream does not
// name its own.
type Layout uint8

// The layouts.
const (
	// LayoutA, written until September 2024: 16 bits count the caller saves.
	LayoutA Layout = iota + 1
	// LayoutB, written until November 2024: 32 bits do.
	LayoutB
	// LayoutC, written since, is that of the specification: as B, and with the
	// place of the channel-enable mask (Frame.CE).
	LayoutC
)

// Layouts are all layouts, the oldest first.
var Layouts = []Layout{LayoutA, LayoutB, LayoutC}

// String returns "A", "B" or "C".
func (l Layout) String() string {
	if l < LayoutA || l > LayoutC {
		return fmt.Sprintf("layout %d", uint8(l))
	}
	return string(rune('A' + l - LayoutA))
}

// Stream is a debug stream (DebugFormatHeader), as it was written: numbers that
// compilers get wrong are not corrected.
type Stream struct {
	Layout  Layout
	Objects []Object // kernels and the functions that have frames of their own

	// Problems are oddities of the stream, which can be read all the same.
	Problems []string
}

// Object is a kernel or a stack-call function (DebugInfoFormat).
type Object struct {
	Name string
	// RelocOffset is where the object's first instruction lies in the binary that
	// the stream describes, in bytes; 0 for a kernel. Gen offsets in the object
	// are relative to it.
	RelocOffset uint32
	// OffsetMap maps vISA byte offsets, IndexMap vISA instruction indexes. Either
	// may be empty.
	OffsetMap   []Mapping
	IndexMap    []Mapping
	Variables   []Variable
	Subroutines []Subroutine
	Frame       Frame
}

// Mapping tells where the code of a vISA instruction begins (VISAMap). A vISA
// instruction may be there several times.
type Mapping struct {
	VISA uint32 // byte offset or index of the vISA instruction in the object
	Gen  uint32 // byte offset of its first Gen instruction in the object
}

// Variable is a vISA variable and where it lives (VarInfo).
type Variable struct {
	Name      string
	Intervals []Interval // in vISA indexes
}

// Subroutine is code that is called without a frame of its own (SubroutineInfo).
type Subroutine struct {
	Name string
	// Start and End are vISA indexes of the first and the last instruction.
	Start, End uint32
	// ReturnValue is where the return address lives, in vISA indexes.
	ReturnValue []Interval
}

// Frame is the frame of an object on the stack (CallFrameInfo). An interval list
// that is nil is absent: the stream has none.
type Frame struct {
	Size uint16 // bytes
	// BEFP is where the frame pointer of this frame (back-end frame pointer) is,
	// CallerBEFP the caller's, ReturnAddress the return address. All three are
	// in Gen offsets.
	BEFP, CallerBEFP, ReturnAddress []Interval
	// CE is nil except in layout C.
	CE          *CE
	CalleeSaves []Save
	CallerSaves []Save
}

// CE is the place where a frame keeps the channel-enable mask. Both numbers are
// 0 where it does not.
type CE struct {
	Offset  uint16 // bytes from the frame pointer (CEOffsetFromFPOff)
	StoreIP uint16 // Gen offset of the instruction that stores it (CEStoreIP)
}

// Save lists the registers that are saved from a Gen offset on, until the
// next Save of the list (PhyRegSaveInfoPerIP). One without registers tells
// that all have been restored.
type Save struct {
	// GenOffset is the end of the instruction that saves or restores, in bytes
	// from the object's first.
	GenOffset uint32
	Registers []SavedRegister
}

// SavedRegister is a part of the general registers, and where it is saved
// (RegInfoMapping).
type SavedRegister struct {
	// Offset is in bytes from the beginning of r0, Bytes how many are saved. A
	// register has 32 bytes, from PVC on 64.
	Offset, Bytes uint16
	Location      Location // in General or Memory
}

// Interval is the place of a variable for a part of the code (IntervalVISA
// and IntervalGenISA).
type Interval struct {
	// Start is where the variable becomes live, End where it no longer is: vISA
	// indexes or Gen offsets, by the list. A stream has only the low 16 bits of
	// a vISA index, and code whose instructions were reordered has intervals
	// that end before they start.
	Start, End uint32
	Virtual    Storage // the kind of variable: Address, Flag or General
	Location   Location
}

// Storage is a kind of register or memory.
type Storage uint8

// The kinds of storage, by the numbers that a stream has for them.
const (
	Address Storage = iota
	Flag
	General
	Memory
)

// Unknown is in no stream: it is the storage of a save whose place in the stream
// is impossible, see Stream.Corrected.
const Unknown Storage = 0xff

// String returns "address", "flag", "general", "memory" or "unknown".
func (s Storage) String() string {
	if s == Unknown {
		return "unknown"
	}
	if names := [...]string{"address", "flag", "general", "memory"}; int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("storage %d", uint8(s))
}

// NotAllocated is the register number, and the sub-register, of a variable
// without a register.
const NotAllocated = 0xffff

// Location is a place in a register or in memory.
type Location struct {
	Storage Storage
	// Register is the number of a register, or NotAllocated. Subregister is where
	// in it the value begins: in general registers in bytes, in address and flag
	// registers in 16-bit words. Both are 0 for memory.
	Register, Subregister uint16
	// Offset, in bytes, is relative to the scratch space of the thread where
	// IsAbsolute is set, else to the frame pointer (BE_FP) of the frame. Both are
	// 0 for registers.
	IsAbsolute bool
	Offset     int32
}
