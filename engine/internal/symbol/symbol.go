// SPDX-License-Identifier: Apache-2.0

// Package symbol names code. Its sub-packages read the formats in which compilers and
// linkers store names and positions.
package symbol

import "github.com/unwindd/unwindd/engine/trace"

// Local is a variable or parameter of a function.
type Local struct {
	Function string // DW_AT_name of the function, inlined or not
	Name     string // "" if unnamed
	File     string // of its declaration; "": unknown
	Line     int    // of its declaration; 0: unknown
	// FrameOffset is its offset from the function's frame base, in bytes, where it has such
	// a place; Size is its size in bytes; TagOffset is added to the tag of the frame's
	// pointer for its own (DW_AT_LLVM_tag_offset).
	FrameOffset                           int64
	Size, TagOffset                       uint64
	HasFrameOffset, HasSize, HasTagOffset bool
}

// Source knows names and positions of one code object.
type Source interface {
	// Frames appends the frames at an ELF virtual address, innermost first; the last one is
	// the physical function. Nothing is appended where the source does not know the
	// address. A caller that has a return address passes an address inside the call.
	Frames(dst []trace.Symbol, address uint64) ([]trace.Symbol, error)
}

// Symbol is an entry of a symbol table that names code.
type Symbol struct {
	Name       string // without @VERSION
	Start, End uint64 // ELF virtual addresses; End is Start where the size is unknown
	Other      uint8  // st_other; 0 where the table has none
}
