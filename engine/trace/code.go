// SPDX-License-Identifier: Apache-2.0

package trace

// SourceLines are lines of a source file.
type SourceLines struct {
	First int // the number of the first line, from 1
	Text  []string
	// Warning is why the lines may not be the lines that were compiled; "" if there is no
	// doubt.
	Warning string
}

// Instruction is an instruction of a target.
type Instruction struct {
	Address uint64
	Bytes   []byte
	Text    string // as the architecture's plugin writes it, or the disassembler of Options
	IsAt    bool   // it is at the requested address
}

// FrameCode is the instructions around the PC of a frame.
type FrameCode struct {
	// Lines are consecutive instructions. IsAt marks the one at the PC of a frame whose PC is
	// exact, and else the call that ends at the PC. Where the beginning of the function is not
	// known they begin at the PC, so that the call is not among them.
	Lines []Instruction
	// Problem is why there are no instructions, or none before the PC; else "".
	Problem string
}
