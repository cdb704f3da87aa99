// SPDX-License-Identifier: Apache-2.0

package profile

// An Annotation is a function with its lines and instructions, and where samples were
// in it.
type Annotation struct {
	Function    string // as in symbol.Frame
	LinkageName string
	// Module is an index of Modules; -1: not known.
	Module         int32
	Kernel, Device bool // as in Frame
	// Lines are of its source, in the order of files and lines: those that its code is
	// from and, where the file was found, those between them.
	Lines []AnnotatedLine
	// Code are its instructions in the order of their addresses. There are none of a
	// function that is inlined wherever it was sampled.
	Code []AnnotatedInstruction
	// IsRecorded says that Code is what a file of samples has of the instructions that were
	// sampled: the code object was not found.
	IsRecorded bool
	// InlinedInto are the functions that it was inlined into where it was met, each once.
	InlinedInto []string
	// Places are the frames that are in the function, for counting samples of which they
	// are the innermost.
	Places []AnnotatedPlace
	// Problems are what is missing, each a sentence.
	Problems []string
}

// An AnnotatedLine is a line of a function's source.
type AnnotatedLine struct {
	File    string
	Line    int
	Text    string
	HasText bool // the file was found
}

// An AnnotatedInstruction is an instruction of a function.
type AnnotatedInstruction struct {
	Offset uint64 // as Frame.ModuleOffset
	Bytes  []byte // none where only its text was recorded
	Text   string // "" where only its address is known
	// Line is the index in Annotation.Lines of the function's own line; -1: it has none.
	Line int32
	// Inlined is the innermost function that is inlined there, with the line in File; ""
	// where it is the function itself.
	Inlined    string
	File       string
	InlineLine int
}

// An AnnotatedPlace is where a frame is in a function.
type AnnotatedPlace struct {
	Frame uint32 // index of Profile.Frames
	// Code and Line are indices of Annotation.Code and Lines; -1: at none that is known.
	Code, Line int32
	// IsInlined says that the sampled code is of a function that was inlined into this
	// one.
	IsInlined bool
	// Kernel is the index of Profile.Kernels of what must have been dispatched for the
	// frame to be one of the function; -1: it always is.
	Kernel int32
}
