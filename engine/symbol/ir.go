// SPDX-License-Identifier: Apache-2.0

package symbol

import (
	"iter"

	"github.com/unwindd/unwindd/locexpr"
)

// An IR is code in an intermediate representation (SPIR-V, LLVM IR), which a
// driver compiles when a program runs. Its positions are instructions of
// functions, not addresses. It may be used concurrently.
type IR interface {
	// Format is "spirv" or "llvmir".
	Format() string
	// Records are what the debug information is written in, in its own order.
	Records() iter.Seq[Record]
	// Positions are those of all instructions of all functions, in the module's
	// order.
	Positions() iter.Seq[Position]
	// Find returns the position that a text names: FUNCTION+INSTRUCTION, %ID of
	// an instruction's result, or an offset (see Position.Offset). FUNCTION is
	// the name or the ID of a function, and alone its first instruction. A bare
	// number is decimal, or hexadecimal where hex says so. The error says what
	// was expected.
	Find(text string, hex bool) (Position, error)
	// Calls are the calls of functions that the module has, in its order. Calls of
	// what is computed are not among them.
	Calls() iter.Seq[Call]
	// Variables are the variables that the debug information describes.
	Variables() []Variable
	// Sources are the source files that it names.
	Sources() []SourceFile
	// Macros are the definitions of macros, and their ends.
	Macros() []Macro
	// Problems are what could not be read, each with its place.
	Problems() []string
}

// A Position is where an instruction comes from.
type Position struct {
	Function    string // that holds the instruction, as a linker has it; an ID where it has no name
	Instruction int    // counted from 0 within the function
	// Offset is the word of the module (SPIR-V), or the line of the text (LLVM
	// IR, from 1), at which the instruction begins.
	Offset uint64
	// Frames are the function at the source's position and those it was inlined
	// into, innermost first; the last one is Function. There is always one, with
	// a name at least.
	Frames []Frame
	// Scopes are, for each frame, the ID of the record of its innermost scope;
	// "" where none is known.
	Scopes []string
}

// A Call is an instruction that calls a function of the module.
type Call struct {
	Position
	Callee string // as Position.Function
	// NeverInlined says that the call, or the function, must not be inlined.
	NeverInlined bool
}

// A Record is one node of an IR's debug information.
type Record struct {
	ID       string // "%214", "!12"; "" where it has none
	Kind     string // "DebugLexicalBlock", "DILexicalBlock"
	Offset   uint64 // as in Position
	Operands []Operand
}

// An Operand is one member of a Record.
type Operand struct {
	Name string
	// Value is a string (the ID of another record, or the name of a value of an
	// enumeration), an int64, a uint64, a bool, or a list of such ([]any).
	Value any
	// Text is what a Value that is an ID stands for: a string or a number of the
	// module. HasText says whether it stands for one.
	Text    string
	HasText bool
}

// A Variable is a variable or parameter that an IR describes.
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
	// InlinedAt is the ID of the record of the call that it was inlined with.
	InlinedAt string
	Ranges    []VariableRange
}

// A VariableRange says where a variable is while instructions run.
type VariableRange struct {
	Function string // "" for the whole program
	// Start and End are instructions of Function; End is the first one that is
	// outside.
	Start, End int
	// IsAddress says that the variable is in memory, where Expression leads; else
	// its value is known.
	IsAddress bool
	Values    []string // of the IR: "%37", "i32 0"
	// Members lead from the variable to the member of it that Values are of, as
	// OpAccessChain does; none: all of it.
	Members []string
	// Expression is what is to be done with the values, in locexpr.Canonical;
	// it begins with the values on the stack, the first one pushed first, and
	// yields a location description.
	Expression []byte
	// Problem says why there is no Expression; "": there is one.
	Problem string
}

// A SourceFile is a source file that an IR names.
type SourceFile struct {
	ID       string // of its record
	Path     string
	Checksum string // "MD5:HEX"; "" where there is none
	Text     string // the text that is embedded
	HasText  bool
}

// A Macro is a definition of a macro, or its end.
type Macro struct {
	ID      string // of its record
	Name    string // with the parameters of a macro that has them
	Value   string
	File    string
	Line    int  // 0: on the command line of the compiler
	IsUndef bool // it ends here
}

// MaxIRTypeBits bounds the size of a type that IRTypeOffset stands for.
const MaxIRTypeBits = 1 << 16

// IRTypeOffset is the operand of DW_OP_convert in an expression of an IR, which
// has no compilation unit with an entry for the type: it stands for the base
// type of a size in bits and of a DW_ATE_* encoding.
func IRTypeOffset(bits uint32, encoding uint8) uint64 { return uint64(bits)<<8 | uint64(encoding) }

// IRType is the base type that an operand made by IRTypeOffset stands for, for
// locexpr.Context.BaseType; ok is false where it stands for none.
func IRType(offset uint64) (t *locexpr.BaseType, ok bool) {
	bits, encoding := offset>>8, uint8(offset)
	if bits == 0 || bits > MaxIRTypeBits || encoding == 0 {
		return nil, false
	}
	return &locexpr.BaseType{Encoding: encoding, Bits: uint32(bits)}, true
}
