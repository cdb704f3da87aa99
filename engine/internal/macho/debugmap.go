// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"path"
	"strings"
)

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
	Name       string // as both symbol tables have it
	Address    uint64 // virtual, in the program
	Size       uint64 // of a function; 0: not known
	IsFunction bool

	isGlobal bool // the symbol of its name has the address
}

// maxDebugObjects bounds the object files of a debug map.
const maxDebugObjects = 1 << 20

// DebugMap returns the object files that have the DWARF of a program which was linked without dsymutil, in the file's
// order; none where there is no debug map. Each is there once. Those before an error are whole.
func (f *File) DebugMap() (list []DebugObject, err error) {
	r := mapReader{known: map[objectKey]int{}, current: -1}
	err = f.Symbols(r.entry)
	f.findGlobals(r.list)
	for i := range r.list {
		if len(r.list[i].Symbols) > 0 {
			list = append(list, r.list[i])
		}
	}
	return list, err
}

// findGlobals sets the addresses of global variables, and leaves out those without one.
func (f *File) findGlobals(list []DebugObject) {
	addresses := map[string]uint64{}
	for i := range list {
		for _, s := range list[i].Symbols {
			if s.isGlobal {
				addresses[s.Name] = 0
			}
		}
	}
	if len(addresses) == 0 {
		return
	}
	_ = f.Symbols(func(s *Symbol) { // an error was there before
		if _, isWanted := addresses[s.Name]; isWanted && s.IsDefined() {
			addresses[s.Name] = s.Value
		}
	})
	for i := range list {
		kept := list[i].Symbols[:0]
		for _, s := range list[i].Symbols {
			if s.isGlobal {
				s.Address = addresses[s.Name]
			}
			if !s.isGlobal || s.Address != 0 {
				kept = append(kept, s)
			}
		}
		list[i].Symbols = kept
	}
}

// objectKey tells object files apart.
type objectKey struct {
	path, member string
	time         uint64
}

// A mapReader joins the entries of a debug map.
type mapReader struct {
	list    []DebugObject
	known   map[objectKey]int // their numbers
	current int               // the object file that the entries are of; -1: none
	isOpen  bool              // a function, the last symbol, has no size yet
}

// entry takes an entry of the symbol table.
func (r *mapReader) entry(s *Symbol) {
	switch {
	case !s.IsStab():
		return
	case s.Type == StabObject:
		r.object(s)
		return
	case r.current < 0:
		return
	}
	one := &r.list[r.current]
	switch {
	case s.Type == StabSource, s.Type == StabBegin:
		r.isOpen = false
	case s.Type == StabFunction && s.Name == "":
		if r.isOpen {
			one.Symbols[len(one.Symbols)-1].Size = s.Value
		}
		r.isOpen = false
	case s.Type == StabFunction || s.Type == StabStatic || s.Type == StabGlobal:
		r.isOpen = s.Type == StabFunction
		one.Symbols = append(one.Symbols, DebugSymbol{Name: s.Name, Address: s.Value, IsFunction: r.isOpen, isGlobal: s.Type == StabGlobal})
	}
}

// object begins an object file, or goes on with one that was there before.
func (r *mapReader) object(s *Symbol) {
	r.isOpen = false
	one := DebugObject{Time: s.Value}
	one.Path, one.Member = cutMember(s.Name)
	key := objectKey{path.Clean(one.Path), one.Member, one.Time}
	number, isKnown := r.known[key]
	if !isKnown {
		if number = len(r.list); number == maxDebugObjects {
			r.current = -1
			return
		}
		r.known[key] = number
		r.list = append(r.list, one)
	}
	r.current = number
}

// cutMember splits the path of an object file, ARCHIVE(MEMBER) of one in an archive.
func cutMember(name string) (file, member string) {
	if strings.HasSuffix(name, ")") {
		if i := strings.LastIndexByte(name, '('); i > 0 {
			return name[:i], name[i+1 : len(name)-1]
		}
	}
	return name, ""
}
