// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// File has the parts of a file that recognisers compare: of its ELF header, or its first bytes.
type File struct {
	Machine object.ELFMachine // its number is 0 for a file that is not ELF
	OSABI   uint8
	Flags   uint32
	Magic   []byte // the first bytes; nil: no format but ELF is asked for
}

// FileOf returns a code object as recognisers see it.
func FileOf(o *object.Object) File {
	f := File{Machine: o.ELFMachine(), OSABI: o.OSABI(), Flags: o.Flags()}
	if o.IsForeign() {
		f.Magic = o.Data()[:min(len(o.Data()), object.MaxMagic)]
	}
	return f
}

// members returns the number of the members that a recogniser sets: of two that match, the one
// with more is the more specific.
func members(r *sdk.Recogniser) int {
	n := 0
	for _, isSet := range []bool{
		r.ELFMachine != 0, r.OSABI >= 0, r.FlagsMask != 0, r.ELFClass != 0, r.ELFData != 0, len(r.Magic) > 0, r.NoteOwner != "",
	} {
		if isSet {
			n++
		}
	}
	return n
}

// hasMachine reports whether a recogniser is of a machine, in class and encoding as far as both
// say them.
func hasMachine(r *sdk.Recogniser, m object.ELFMachine) bool {
	return r.ELFMachine != 0 && m.Matches(r.ELFMachine, r.ELFClass, r.ELFData)
}

// recognises returns how specifically a description claims a code object: the members of that
// of its recognisers that matches in every member that it sets, and sets most; 0: none does.
func recognises(d *sdk.Description, f *File) int {
	most := 0
	for i := range d.Recognises {
		r := &d.Recognises[i]
		switch {
		case r.NoteOwner != "": // a recogniser of dumps
		case r.ELFMachine == 0 && len(r.Magic) == 0: // an empty recogniser
		case r.ELFMachine != 0 && !hasMachine(r, f.Machine):
		case r.OSABI >= 0 && r.OSABI != int32(f.OSABI):
		case f.Flags&r.FlagsMask != r.Flags:
		case !bytes.HasPrefix(f.Magic, r.Magic):
		default:
			most = max(most, members(r))
		}
	}
	return most
}

// Recognises reports whether a code object is of the architecture.
func (a *Arch) Recognises(f File) bool { return recognises(a.desc, &f) > 0 }

// unconditional is added to the members of a recogniser that matches a machine whatever the OS
// ABI and the flags are.
const unconditional = 100

// recognisesMachine returns how specifically a description claims an ELF machine whose OS ABI
// and flags are not known; 0: it does not.
func recognisesMachine(d *sdk.Description, m object.ELFMachine) int {
	most := 0
	for i := range d.Recognises {
		r := &d.Recognises[i]
		if !hasMachine(r, m) {
			continue
		}
		n := members(&sdk.Recogniser{OSABI: -1, ELFMachine: r.ELFMachine, ELFClass: r.ELFClass, ELFData: r.ELFData})
		if r.OSABI < 0 && r.FlagsMask == 0 {
			n += unconditional
		}
		most = max(most, n)
	}
	return most
}

// recognisesNote returns 1 if a description claims dumps with notes of an owner, else 0.
func recognisesNote(d *sdk.Description, owner string) int {
	for i := range d.Recognises {
		if owner != "" && d.Recognises[i].NoteOwner == owner {
			return 1
		}
	}
	return 0
}

// How specifically a name is one's own.
const (
	byPlugin = 1 + iota // the plugin has it
	byArchitecture
)

// named returns how specifically an architecture has a name: its description's counts more than
// its plugin's; 0: it has another. A plugin that replaces another has the name of that one.
func named(a *Arch, name string) int {
	switch name {
	case a.Name(), a.replaces:
		return byArchitecture
	case a.plugin:
		return byPlugin
	}
	return 0
}
