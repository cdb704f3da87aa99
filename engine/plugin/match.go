// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"

	"github.com/unwindd/unwindd/sdk"
)

// recognises reports whether a description claims a code object: one of its
// recognisers matches in every member that it sets. machine is 0 for a file
// that is not ELF; magic is the file's first bytes.
func recognises(d *sdk.Description, machine uint16, osabi uint8, flags uint32, magic []byte) bool {
	for i := range d.Recognises {
		r := &d.Recognises[i]
		switch {
		case r.NoteOwner != "": // a recogniser of dumps
		case r.ELFMachine == 0 && len(r.Magic) == 0: // an empty recogniser
		case r.ELFMachine != 0 && r.ELFMachine != machine:
		case r.OSABI >= 0 && r.OSABI != int32(osabi):
		case flags&r.FlagsMask != r.Flags:
		case !bytes.HasPrefix(magic, r.Magic):
		default:
			return true
		}
	}
	return false
}

// Recognises reports whether a code object is of the architecture: by its ELF header, or,
// where machine is 0, by the file's first bytes.
func (a *Arch) Recognises(machine uint16, osabi uint8, flags uint32, magic []byte) bool {
	return recognises(a.desc, machine, osabi, flags, magic)
}

// recognisesMachine reports whether a description claims an ELF machine, for some
// OS ABI and flags.
func recognisesMachine(d *sdk.Description, machine uint16) bool {
	for i := range d.Recognises {
		if machine != 0 && d.Recognises[i].ELFMachine == machine {
			return true
		}
	}
	return false
}

// recognisesNote reports whether a description claims dumps with notes of an owner.
func recognisesNote(d *sdk.Description, owner string) bool {
	for i := range d.Recognises {
		if owner != "" && d.Recognises[i].NoteOwner == owner {
			return true
		}
	}
	return false
}
