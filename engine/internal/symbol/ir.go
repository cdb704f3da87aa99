// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"iter"

	"github.com/unwindd/unwindd/engine/trace"
)

// IR is code in an intermediate representation (SPIR-V, LLVM IR), which a driver compiles
// when a program runs. Its positions are instructions of functions, not addresses. It may
// be used concurrently.
type IR interface {
	// Format is "spirv" or "llvmir".
	Format() string
	// Records are the records of the debug information, in the module's order.
	Records() iter.Seq[Record]
	// Positions are the positions of all instructions of all functions, in the module's
	// order.
	Positions() iter.Seq[Position]
	// Find returns the position that a text names: FUNCTION+INSTRUCTION, %ID of an
	// instruction's result, or an offset (see Position.Offset). FUNCTION is the name or the
	// ID of a function, and alone its first instruction. A bare number is decimal, or
	// hexadecimal if hex is true. The error names the expected texts.
	Find(text string, hex bool) (Position, error)
	// Calls are the direct calls of the module's functions, in the module's order.
	Calls() iter.Seq[Call]
	// Variables are the variables that the debug information describes.
	Variables() []Variable
	// Sources are the source files that the module names.
	Sources() []SourceFile
	// Macros are the definitions of macros, and their ends.
	Macros() []Macro
	// Problems are the parts that could not be read, each with its place.
	Problems() []string
}

// Position is the origin of an instruction in the source.
type Position struct {
	Function    string // that has the instruction, as a linker names it; an ID where it has no name
	Instruction int    // counted from 0 within the function
	// Offset is the word of the module (SPIR-V), or the line of the text (LLVM
	// IR, from 1), at which the instruction begins.
	Offset uint64
	// Frames are the function at the source's position and the functions it was inlined
	// into, innermost first; the last one is Function. There is at least one, and it has a
	// name.
	Frames []trace.Symbol
	// Scopes are the IDs of the records of each frame's innermost scope; "" where it is
	// unknown.
	Scopes []string
}

// Call is an instruction that calls a function of the module.
type Call struct {
	Position
	Callee string // as Position.Function
	// NeverInlined is set where the call, or the function, must not be inlined.
	NeverInlined bool
}

// Record is one node of an IR's debug information.
type Record struct {
	ID       string // "%214", "!12"; "" where it has none
	Kind     string // "DebugLexicalBlock", "DILexicalBlock"
	Offset   uint64 // as in Position
	Operands []Operand
}

// Operand is one member of a Record.
type Operand struct {
	Name string
	// Value is a string (the ID of another record, or the name of a value of an
	// enumeration), an int64, a uint64, a bool, or a list of such ([]any).
	Value any
	// Text is the string or the number that the ID in Value refers to.
	// HasText is false where there is none.
	Text    string
	HasText bool
}

// Variable is a variable or parameter that an IR describes.
type Variable struct {
	ID          string // of its record
	Name        string // "" where it has none
	LinkageName string
	Type        string // as the source language would write it
	File        string
	Line        int // 0: unknown
	Column      int // 0: unknown
	Scope       string
	Function    string // the source's function that declares it; "" for a global one
	Argument    int    // counted from 1; 0: it is no parameter
	IsGlobal    bool
	// InlinedAt is the ID of the record of the inlined call that the variable belongs to.
	InlinedAt string
	Ranges    []VariableRange
}

// VariableRange is a range of instructions and the place of a variable there.
type VariableRange struct {
	Function string // "" for the whole program
	// Start and End are instructions of Function; End is not included.
	Start, End int
	// IsAddress is set where the variable is in memory, at the address that Expression
	// yields; else Expression yields its value.
	IsAddress bool
	Values    []string // of the IR: "%37", "i32 0"
	// Members lead from the variable to the member that Values describe, as OpAccessChain
	// does; empty: the whole variable.
	Members []string
	// Expression computes the location description from the values, in locexpr.Canonical;
	// it begins with the values on the stack, the first one pushed first.
	Expression []byte
	// Problem is why there is no Expression; "": there is one.
	Problem string
}

// SourceFile is a source file that an IR names.
type SourceFile struct {
	ID       string // of its record
	Path     string
	Checksum string // "MD5:HEX"; "" where there is none
	Text     string // embedded in the module
	HasText  bool
}

// Macro is a definition of a macro, or its end.
type Macro struct {
	ID      string // of its record
	Name    string // with its parameters, if it has any
	Value   string
	File    string
	Line    int  // 0: on the command line of the compiler
	IsUndef bool // the definition ends here
}

// MaxIRTypeBits bounds the size of a type that IRTypeOffset encodes.
const MaxIRTypeBits = 1 << 16

// IRTypeOffset is the operand of DW_OP_convert in an expression of an IR, which has no
// compilation unit with an entry for the type: it encodes the size in bits of a base type
// and its DW_ATE_* encoding.
func IRTypeOffset(bits uint32, encoding uint8) uint64 { return uint64(bits)<<8 | uint64(encoding) }
