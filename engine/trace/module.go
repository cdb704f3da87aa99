// SPDX-License-Identifier: Apache-2.0

package trace

// DebugInfo is the result of looking for a module's debug information (`debug_info` of the
// output).
type DebugInfo string

// The results; "" in a ModuleInfo: it was not looked for.
const (
	DebugInfoFound      DebugInfo = "found"      // in the module's file, in a separate one, or in a symbol file or source module
	DebugInfoNone       DebugInfo = "none"       // there is none of these
	DebugInfoMismatch   DebugInfo = "mismatch"   // the file that should have it belongs to another module
	DebugInfoUnreadable DebugInfo = "unreadable" // it is there and cannot be opened or read
)

// ModuleInfo describes a module, as far as it is known.
type ModuleInfo struct {
	IsMissing   bool   // no code object was found
	IsJIT       bool   // the code was made at run time, and the dump of a runtime describes it
	IsDebugOnly bool   // the file that was found has debug information and no code
	HasSymbols  bool   // the code object has a symbol table of all its functions (.symtab)
	IsBigEndian bool   // the code object is of a big-endian machine
	DebugFile   string // the separate debug file in use; "" when there is none
	DebugInfo   DebugInfo
	Problems    []string // each a sentence
	Unused      []string // debug files that are there and could not be used, where no other was; sentences among Problems
	Searched    []string // other debug files that were looked at and not taken, and why
	Answers     []string // of the servers and stores that lack its files: "http://a.example: the server does not have it"
}

// Module describes a code object that is loaded into a target.
type Module struct {
	ID      int
	Path    string // in the target
	BuildID []byte // of the loaded image, if the target has it; see IsAssumed
	// IsAssumed means that BuildID is the build ID of the file that was found: the target
	// does not have one.
	IsAssumed bool
	// Symbols names the build as stores of symbol files do; zero if the target does not
	// tell.
	Symbols SymbolID
	// Version is the version of the file: "10.0.19041.546".
	Version string
	// Base and Size are the range of the whole image, if the target tells; else Size is 0,
	// and only its Segments are known.
	Base, Size uint64
	Arch       string
	// IsMachO is true for an image of macOS or iOS.
	IsMachO bool
	// Processor is the processor that the code is for; "" if the target does not tell.
	Processor string
	// File is the path of the file of the code; "" for code in the target's memory, and if
	// none was found: Problem says why.
	File     string
	Problem  string
	Segments []Segment
}

// Segment is a contiguous part of a module.
type Segment struct {
	Section    string // of a relocatable object; "" for segments
	Address    uint64 // ELF virtual address in the object
	Size       uint64
	Start      uint64 // the target's address of Address
	Executable bool
}

// SymbolID identifies a build in stores of symbol files, Breakpad's and Microsoft's.
type SymbolID struct {
	// DebugFile is the base name of the file that has the debug information:
	// "kernel32.pdb", "libc.so.6".
	DebugFile string
	// DebugID has the digits of its identifier: of a GUID and of an age.
	DebugID string
	// CodeID identifies the file of the code: the digits of a build ID, or of a PE
	// file's time and size.
	CodeID string
}

// Contains reports whether address lies in an executable segment, and returns its ELF virtual
// address.
func (m *Module) Contains(address uint64) (objectAddress uint64, ok bool) {
	for i := range m.Segments {
		s := &m.Segments[i]
		if s.Executable && address-s.Start < s.Size {
			return address - s.Start + s.Address, true
		}
	}
	return 0, false
}

// Start returns the target's address of an ELF virtual address of the module.
func (m *Module) Start(objectAddress uint64) (address uint64, ok bool) {
	for i := range m.Segments {
		s := &m.Segments[i]
		if objectAddress-s.Address < s.Size {
			return objectAddress - s.Address + s.Start, true
		}
	}
	return 0, false
}
