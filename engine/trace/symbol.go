// SPDX-License-Identifier: Apache-2.0

package trace

// Symbol is one function at an address: the function that has the code, or a call that was
// inlined into it.
type Symbol struct {
	Function    string // demangled, or the plain name
	LinkageName string // as in the symbol table; "" where it is the same as Function
	// Name is the function's DW_AT_name: without its scopes and its parameters. "" where
	// there is no debug information.
	Name string
	// IsDecoded is set where Function is decoded from LinkageName by gdb's rules for Ada or
	// Fortran, or is in the words of a language runtime.
	IsDecoded bool
	// Start is the ELF virtual address at which the physical function begins; HasStart is
	// false where it is unknown.
	Start    uint64
	HasStart bool
	File     string
	Line     int // 0: unknown
	Column   int // 0: unknown
	Inlined  bool
	// Discriminator tells apart the blocks of code of one line (DWARF 5, 6.2.2;
	// DW_AT_GNU_discriminator of a call site); 0: none.
	Discriminator uint64
	// StartFile and StartLine are where the function is declared
	// (DW_AT_decl_file, DW_AT_decl_line); "" and 0: unknown.
	StartFile string
	StartLine int
	// ImplicitStartFile is set where the number of StartFile is in the abbreviation
	// (DW_FORM_implicit_const), where llvm-symbolizer does not look it up.
	ImplicitStartFile bool
	// CompDir is the directory that File was made absolute with; "" where File is as in the
	// debug information.
	CompDir string
	// Source is the text of File from the line table (DW_LNCT_LLVM_source) or from the
	// source module of the frame; "": none.
	Source string
	// SourceMD5 is the MD5 of File's bytes from the line table (DW_LNCT_MD5); "": none.
	SourceMD5 string
	// LineByAssembly is set where File and Line are of the assembly from which the code was
	// assembled: its debug information has no others.
	LineByAssembly bool
	// ScopeBySource is set where the frame is of a chain that was guessed from the source
	// module by file and line.
	ScopeBySource bool
	// IsReported is set where the function is named by a report of a crash, and no file here has its name.
	IsReported bool
	// Equals counts the functions known to share this code after linking, this one
	// included. SeveralEqual: an unknown number of them; 0: no other function is known.
	Equals int
}

// SeveralEqual is an unknown number of functions with the same code.
const SeveralEqual = -1
