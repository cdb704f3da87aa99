// SPDX-License-Identifier: Apache-2.0

// Package pdb reads PDB files: functions, lines, inlined calls and frame data of Windows programs.
//
// Addresses are virtual: the base that the caller gives plus the RVA in the image.
package pdb

import (
	"errors"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
	"github.com/unwindd/unwindd/engine/trace"
)

// File is a PDB file. It may be used concurrently.
type File struct {
	container *msf.File
	base      uint64
}

// Identity tells one build of a program from all others, as the CodeView record of its image does.
type Identity struct {
	GUID    [16]byte // as the file has it, the first three fields in little-endian order
	Age     uint32   // of the DBI stream, which the image has
	Machine uint16   // of the image: a constant of package pe; 0: unknown
}

// DebugID returns the name of the file on symbol servers, Breakpad's debug identifier.
func (id *Identity) DebugID() string { return "" }

// errMissing is the error of parts that are not read.
var errMissing = errors.New("not read")

// Open opens the file at a path, for an image whose base is the address base.
func Open(_ string, _ uint64) (*File, error) { return nil, errMissing }

// New is Open for bytes that are in memory, and stay as they are. Errors begin with the name.
func New(_ string, _ []byte, _ uint64) (*File, error) { return nil, errMissing }

// Identify reads the identity of the file at a path, and nothing else.
func Identify(_ string) (Identity, error) { return Identity{}, errMissing }

// Close closes the file.
func (f *File) Close() error { return nil }

// Name returns the file's name, with which errors begin.
func (f *File) Name() string { return f.container.Name() }

// Identity returns the identity of the file.
func (f *File) Identity() Identity { return Identity{} }

// Frames implements symbol.Source.
func (f *File) Frames(dst []trace.Symbol, _ uint64) ([]trace.Symbol, error) { return dst, nil }

// Function returns the function that contains an address.
func (f *File) Function(_ uint64) (symbol.Symbol, bool) { return symbol.Symbol{}, false }

// Functions returns all functions by address, one name for each.
func (f *File) Functions() []symbol.Symbol { return nil }

// Start returns the address of the first function; false where there is none.
func (f *File) Start() (uint64, bool) { return 0, false }

// EachFunction calls yield with all functions that have code, by address, until it returns false.
func (f *File) EachFunction(_ func(*symbol.FunctionCode) bool) error { return nil }

// Covers reports whether a function has the code at an address, and up to where that holds.
func (f *File) Covers(_ uint64) (covered bool, end uint64) { return false, 0 }

// Lines appends the lines of code, by address.
func (f *File) Lines(dst []symbol.CodeLine, _ symbol.CodeRange) []symbol.CodeLine { return dst }

// EachLine calls yield with the rows of all line tables, by address, until it returns false.
func (f *File) EachLine(_ func(*symbol.LineRow) bool) error { return nil }

// Data calls yield with the variables that have symbols, in any order.
func (f *File) Data(_ func(name string, address, size uint64)) error { return nil }

// FrameData returns the frame data of 32-bit x86 at an address.
func (f *File) FrameData(_ uint64) (symbol.FrameData, bool) { return symbol.FrameData{}, false }

// Problems are the faults of the file so far; answers leave the faulty parts out.
func (f *File) Problems() []string { return nil }

// MemorySize is about how many bytes the data read so far takes.
func (f *File) MemorySize() uint64 { return 0 }

// ReleasePages releases the pages of the file that were read so far.
func (f *File) ReleasePages() {}
