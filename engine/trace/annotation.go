// SPDX-License-Identifier: Apache-2.0

package trace

// ProfileAnnotation is a function with its lines and instructions, and the places of samples in it.
type ProfileAnnotation struct {
	Function    string // as in Symbol
	LinkageName string
	// Module is an index of Modules; -1: not known.
	Module         int32
	Kernel, Device bool // as in Frame
	// Lines are lines of its source, in the order of files and lines: the lines of its code
	// and, where the file was found, the lines between them.
	Lines []AnnotatedLine
	// Code are its instructions in the order of their addresses. It is empty for a function
	// that is inlined wherever it was sampled.
	Code []AnnotatedInstruction
	// IsRecorded is true where Code has only the sampled instructions, from a file of samples:
	// the code object was not found.
	IsRecorded bool
	// InlinedInto are the functions that it was inlined into in the profile, each once.
	InlinedInto []string
	// Places are the places of frames in the function, for counting the samples of which they
	// are the innermost.
	Places []AnnotatedPlace
	// Problems describe what information is missing, each in a sentence.
	Problems []string
}

// AnnotatedLine is a line of a function's source.
type AnnotatedLine struct {
	File    string
	Line    int
	Text    string
	HasText bool // the file was found
}

// AnnotatedInstruction is an instruction of a function.
type AnnotatedInstruction struct {
	Offset uint64 // as ProfileFrame.ModuleOffset
	Bytes  []byte // none where only its text was recorded
	Text   string // "" where only its address is known
	// Line is the index in ProfileAnnotation.Lines of the function's own line; -1: it has none.
	Line int32
	// Inlined is the innermost function that is inlined there, with the line in File; ""
	// where it is the function itself.
	Inlined    string
	File       string
	InlineLine int
	// PTX is the line of assembly that a cubin has for it, in PTX, and PTXLine its number in
	// the text; 0: it has none.
	PTX     string
	PTXLine int
}

// AnnotatedPlace is the place of a frame in a function.
type AnnotatedPlace struct {
	Frame uint32 // index of Profile.Frames
	// Code and Line are indices of ProfileAnnotation.Code and Lines; -1: not known.
	Code, Line int32
	// IsInlined is true where the sampled code belongs to a function that was inlined into this
	// one.
	IsInlined bool
	// Kernel is the index in Profile.Kernels of the kernel that must have been dispatched for
	// the frame to be in the function; -1: it always is.
	Kernel int32
}
