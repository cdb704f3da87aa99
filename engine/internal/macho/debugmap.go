// SPDX-License-Identifier: Apache-2.0

package macho

import "strings"

// DebugObject is an object file that a program was linked of, with the places that its code and data have
// in the program (a debug map: entries of the symbol table, see stab.h).
type DebugObject struct {
	Path    string // of the file, or of the archive that has it, on the machine that linked
	Member  string // of the archive; "": the object is a file of its own
	Time    uint64 // when the file was written to last, in seconds since 1970; 0: not known
	Symbols []DebugSymbol
}

// DebugSymbol is a function or a variable of an object file, and its place in the program.
type DebugSymbol struct {
	Name    string // as both symbol tables have it
	Address uint64 // virtual, in the program
	Size    uint64 // of a function; 0: not known
}

// maxDebugObjects bounds the object files of a debug map.
const maxDebugObjects = 1 << 20

// DebugMap returns the object files that have the DWARF of a program which was linked without dsymutil, in the file's
// order; none where there is no debug map. Those before an error are whole.
func (f *File) DebugMap() (list []DebugObject, err error) {
	var r mapReader
	err = f.Symbols(r.entry)
	for i := range r.list {
		if len(r.list[i].Symbols) > 0 {
			list = append(list, r.list[i])
		}
	}
	return list, err
}

// A mapReader joins the entries of a debug map.
type mapReader struct {
	list   []DebugObject
	isOpen bool // a function, the last symbol, has no size yet
}

// entry takes an entry of the symbol table.
func (r *mapReader) entry(s *Symbol) {
	if !s.IsStab() {
		return
	}
	if s.Type == StabObject {
		r.isOpen = false
		if len(r.list) < maxDebugObjects {
			r.list = append(r.list, DebugObject{Time: s.Value})
			one := &r.list[len(r.list)-1]
			one.Path, one.Member = cutMember(s.Name)
		}
		return
	}
	if len(r.list) == 0 {
		return
	}
	one := &r.list[len(r.list)-1]
	switch {
	case s.Type == StabSource, s.Type == StabBegin:
		r.isOpen = false
	case s.Type == StabFunction && s.Name == "":
		if r.isOpen {
			one.Symbols[len(one.Symbols)-1].Size = s.Value
		}
		r.isOpen = false
	case s.Type == StabFunction || s.Type == StabStatic:
		one.Symbols = append(one.Symbols, DebugSymbol{Name: s.Name, Address: s.Value})
		r.isOpen = s.Type == StabFunction
	}
}

// cutMember splits the path of an object file, ARCHIVE(MEMBER) of one in an archive.
func cutMember(path string) (file, member string) {
	if strings.HasSuffix(path, ")") {
		if i := strings.LastIndexByte(path, '('); i > 0 {
			return path[:i], path[i+1 : len(path)-1]
		}
	}
	return path, ""
}
