// SPDX-License-Identifier: Apache-2.0

// Package breakpad reads and writes Breakpad's symbol files (.sym): text, a record on each
// line, that names the functions, lines, inlined calls and public symbols of a module, and
// has the rules for unwinding its frames. The document is docs/symbol_files.md of Breakpad;
// comments name its sections.
//
//	f, err := breakpad.Open("libc.so.6.sym")
//	if err != nil {
//		return err
//	}
//	defer f.Close()
//	frames, err := f.Frames(nil, 0x27280)
//	if err != nil {
//		return err
//	}
//	for i := range frames {
//		fmt.Println(frames[i].Function, frames[i].File, frames[i].Line)
//	}
//
// A file is mapped and read once from front to back, which finds the offsets of its
// records. The records of a function are read on demand.
//
// An unreadable line is left out, and only that line. Problems lists the ones met so far.
package breakpad

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/problems"
)

// Module is a MODULE record ("MODULE records").
type Module struct {
	OS   string // Linux, mac, windows
	Arch string // x86, x86_64, arm, arm64 and others
	// ID is the debug identifier in hexadecimal digits: the 32 of a GUID and then the age.
	ID   string
	Name string // base name of the file that the symbols were extracted from
}

// Counts are the numbers of records of each kind in a file. Lines and inlined calls are not
// read before they are needed, and Records counts them together.
type Counts struct {
	Files, Origins, Functions, Publics int
	// Records is the number of lines of text that belong to functions: line records and
	// INLINE records.
	Records int
	// CFI counts the STACK CFI INIT records, CFIRows these and the STACK CFI records that
	// change them.
	CFI, CFIRows int
	// FrameData and FPO count the STACK WIN records of types 4 and 0; OtherWin counts
	// records of other types, which are unused.
	FrameData, FPO, OtherWin int
	// Damaged is the number of records that the index leaves out because they cannot be
	// read.
	Damaged int
}

// File is a symbol file. It implements symbol.Source, and may be used concurrently.
// Addresses are relative to the module's base.
type File struct {
	path    string
	data    []byte
	mapping *object.Mapping // nil: the bytes are the caller's

	module Module
	infos  []string
	counts Counts

	files, origins []numbered
	functions      []record
	publics        []record
	rules          []record    // STACK CFI
	win            [2][]record // STACK WIN: frame data, FPO

	mu       sync.Mutex
	problems problems.List[error]
}

// Open maps a file and finds its records. The error is about the file as a
// whole: it cannot be opened, or is no symbol file (ErrFormat).
func Open(path string) (*File, error) {
	m, err := object.Map(path)
	if err != nil {
		return nil, err
	}
	f := &File{path: path, data: m.Data(), mapping: m}
	if err := object.Guard(f.index); err != nil {
		_ = m.Close()
		return nil, err
	}
	return f, nil
}

// Read is Open for bytes in memory. They must not change while the File is used;
// name stands for the path in messages.
func Read(name string, data []byte) (*File, error) {
	f := &File{path: name, data: data}
	if err := f.index(); err != nil {
		return nil, err
	}
	return f, nil
}

// Close unmaps the file, which must not be used afterwards.
func (f *File) Close() error { return f.mapping.Close() }

// MemorySize is about how many bytes the data read from the File takes, without the mapped
// file.
func (f *File) MemorySize() uint64 {
	size := int(unsafe.Sizeof(*f)) + (cap(f.files)+cap(f.origins))*int(unsafe.Sizeof(numbered{}))
	for _, list := range [][]record{f.functions, f.publics, f.rules, f.win[0], f.win[1]} {
		size += cap(list) * int(unsafe.Sizeof(record{}))
	}
	for _, info := range f.infos {
		size += len(info)
	}
	return uint64(size) //nolint:gosec // of memory
}

// ReleasePages releases the pages of the mapped file that were read. The file may be read
// again, and while this runs.
func (f *File) ReleasePages() { f.mapping.ReleasePages(0, uint64(len(f.data))) }

// Path is the path passed to Open, or the name passed to Read.
func (f *File) Path() string { return f.path }

// Module is the identity of the module; zero where the file has none.
func (f *File) Module() Module { return f.module }

// Infos are the INFO records without their first word, in the order of the file:
// "CODE_ID F1C3BCC0279865FE3058404B2831D9E64135386C" for instance.
func (f *File) Infos() []string { return f.infos }

// Counts returns the numbers of records in the file.
func (f *File) Counts() Counts { return f.counts }

// maxProblems bounds the problems that are kept.
const maxProblems = 64

// Problems are the first problems met so far, and how many more there were. The records of
// a function are read on demand, and their problems are found then; a line that is read
// twice counts twice.
func (f *File) Problems() (first []error, more int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.problems.Kept(), f.problems.Dropped()
}

// problem records a fault of the record at an offset.
func (f *File) problem(offset uint64, format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.problems.HasRoom(maxProblems) {
		f.problems.Keep(f.errorf(offset, format, args...))
	}
}

func (f *File) errorf(offset uint64, format string, args ...any) error {
	return fmt.Errorf("%s: offset %#x: %w", f.path, offset, fmt.Errorf(format, args...))
}

// guard runs read, which reads bytes of the file.
func (f *File) guard(read func() error) error {
	if f.mapping == nil {
		return read()
	}
	return object.Guard(read)
}
