// SPDX-License-Identifier: Apache-2.0

// Package x86code reads the code of x86 processors, for the plugins of their modes: the
// layout of instructions, the effect of each on a function's frame, its accesses of
// memory, its text, and the frames of functions that have no call frame information.
//
// The frame of a function is found by following every instruction that can be reached
// from the function's start, with the stack pointer, the frame pointer and the preserved
// registers as symbolic values, over all branches. A value that differs between two paths
// to an instruction is unknown there.
//
// The package is large because the disassembler lacks most of that: the tables of
// encodings, the effect of each operation on the state, and its memory accesses are here.
package x86code

import (
	"math"
	"slices"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// MaxInstruction is the length of the longest instruction, in bytes.
const MaxInstruction = 15

// Convention is a mode of the processor, with the registers and the calling convention of
// the programs that execute in it. Registers are by their DWARF numbers unless noted.
type Convention struct {
	Word      int                    // bytes of an address, and of a word that is pushed: 8 or 4
	Numbers   [GPRCount]uint32       // the general registers, by their encoding
	PC        uint32                 // the program counter
	FSBase    uint32                 // the bases of two segments
	GSBase    uint32                 //
	Saved     []uint32               // what a function keeps for its caller beside the stack pointer, by number
	RedZone   int64                  // bytes below the stack pointer that survive interrupts
	CallSpace int64                  // the least distance of the CFA from the stack pointer of a call, in bytes
	Alignment int64                  // of the arguments that are pushed for a call, in bytes
	Search    []uint8                // the order in which frames are searched by, in the encoding
	Stubs     []Stub                 // entries of linkage tables, the longest first
	Syscall   string                 // the instruction that enters Linux's kernel
	Exits     []int64                // the system calls of Linux that end a thread or a process
	Clones    []Clone                // those that make threads
	Signals   []SignalCode           // what signal handlers return to
	Kinds     codeflow.FunctionKinds // functions that differ from their call frame information
	// Special finds the rows of code of language runtimes; ok is false where there is none.
	Special func(r *sdk.CodeRange, offset int) (rules sdk.FrameRules, ok bool)
}

// Mode reads the code of a convention. It is read only.
type Mode struct {
	Convention
	StackOrder  []uint8  // Search for functions that change stacks: an address from the stack pointer is on the current one
	saved       []uint8  // Saved, by their encoding
	preserved   uint16   // what a call keeps, as bits of the encoding's order
	signalTexts []string // the whole code of each of Signals
	oneByte     *[256]uint16
	reader      codeflow.Reader
}

// NewMode returns the reader of a convention's code.
func NewMode(c Convention) *Mode {
	m := &Mode{Convention: c, oneByte: &oneByte, preserved: 1 << SP}
	if c.Word == 4 {
		m.oneByte = &oneByte32
	}
	for _, r := range c.Saved {
		m.saved = append(m.saved, m.GPROf(r))
		m.preserved |= 1 << m.GPROf(r)
	}
	for _, signal := range c.Signals {
		m.signalTexts = append(m.signalTexts, signal.text())
	}
	m.StackOrder = append([]uint8{SP}, slices.DeleteFunc(slices.Clone(c.Search), func(r uint8) bool { return r == SP })...)
	m.reader = m.newReader()
	return m
}

// address is an address of the mode: computations wrap around at its size.
func (m *Mode) address(a uint64) uint64 {
	if m.Word == 4 {
		return a & math.MaxUint32
	}
	return a
}

// IsPreserved reports whether a call keeps a register.
func (m *Mode) IsPreserved(register uint8) bool { return m.preserved>>register&1 != 0 }
