// SPDX-License-Identifier: Apache-2.0

// Package symbol says what code is called. Its sub-packages read the forms in
// which compilers and linkers keep names and positions.
package symbol

// A Frame is one function at an address: the function that holds the code, or
// a call that was inlined into it.
type Frame struct {
	Function    string // demangled, or the plain name
	LinkageName string // as in the symbol table; "" where it is the same as Function
	// Name is the function's DW_AT_name: without what is around it, and without
	// its parameters. "" where there is no debug information.
	Name string
	// IsDecoded says that Function is what gdb makes of LinkageName by the rules of a
	// language, Ada or Fortran.
	IsDecoded bool
	// Start is the ELF virtual address at which the physical function begins;
	// HasStart says whether it is known.
	Start    uint64
	HasStart bool
	File     string
	Line     int // 0: unknown
	Column   int // 0: unknown
	Inlined  bool
	// Discriminator tells apart the blocks of code of one line (DWARF 5,
	// 6.2.2; DW_AT_GNU_discriminator of a call site); 0: none.
	Discriminator uint64
	// StartFile and StartLine are where the function is declared
	// (DW_AT_decl_file, DW_AT_decl_line); "" and 0: unknown.
	StartFile string
	StartLine int
	// ImplicitStartFile says that the number of StartFile is in the abbreviation
	// (DW_FORM_implicit_const), where llvm-symbolizer does not look it up.
	ImplicitStartFile bool
	// CompDir is the directory that File was made absolute with; "" where File
	// is as the debug information has it.
	CompDir string
	// Source is the text of File, where the line table holds it
	// (DW_LNCT_LLVM_source) or the source module that gave the frame; "" else.
	Source string
	// SourceMD5 is the MD5 of File's bytes, where the line table has it
	// (DW_LNCT_MD5); "" else.
	SourceMD5 string
	// LineByAssembly says that File and Line are those of the assembly that the
	// code was made from: its debug information has none.
	LineByAssembly bool
	// ScopeBySource says that the frame is one of a chain that was concluded from
	// the source module by file and line: a guess.
	ScopeBySource bool
	// Equals is how many functions are known to have the same code, this one counted:
	// linkers make one of those that are equal. SeveralEqual: it is not said how many; 0:
	// no other one is known.
	Equals int
}

// SeveralEqual stands for a number of functions with the same code that is not said.
const SeveralEqual = -1

// A Local is a variable or parameter of a function.
type Local struct {
	Function string // DW_AT_name of the function, or of the one that was inlined
	Name     string // "" where it has none
	File     string // that declares it; "": unknown
	Line     int    // likewise; 0: unknown
	// FrameOffset is its offset from the function's frame base, in bytes, where
	// it has such a place; Size is its size in bytes; TagOffset what is added to
	// the tag of the frame's pointer for its own (DW_AT_LLVM_tag_offset).
	FrameOffset                           int64
	Size, TagOffset                       uint64
	HasFrameOffset, HasSize, HasTagOffset bool
}

// A Source knows names and positions of one code object.
type Source interface {
	// Frames appends the frames at an ELF virtual address, innermost first; the
	// last one is the physical function. Nothing is appended when the source
	// knows nothing of the address. A caller that has a return address passes
	// an address inside the call.
	Frames(dst []Frame, address uint64) ([]Frame, error)
}

// A Symbol is an entry of a symbol table that names code.
type Symbol struct {
	Name       string // without @VERSION
	Start, End uint64 // ELF virtual addresses; End is Start where the size is unknown
}
