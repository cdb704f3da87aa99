// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"iter"
	"slices"
)

// A Note is a note of a section or segment.
type Note struct {
	Owner  string
	Type   uint32
	Data   []byte // read inside Guard
	Offset uint64 // of the note in the file
	// Section is the name of the section that AllNotes found the note in; ""
	// where it is in a segment only.
	Section string
}

// The note of the build ID.
const (
	gnuOwner      = "GNU"
	noteBuildID   = 3 // NT_GNU_BUILD_ID
	noteHeaderLen = 12
)

// Notes yields the notes of the program headers (PT_NOTE), in the file's order; a file that has no
// PT_NOTE has the notes of its sections. After an error
// the notes of the next segment or section follow.
func (o *Object) Notes() iter.Seq2[Note, error] {
	return func(yield func(Note, error) bool) {
		found := false
		walk := o.newNoteWalk(yield)
		for i := range o.programs {
			p := &o.programs[i]
			if p.Type != elf.PT_NOTE || p.FileSize == 0 {
				continue
			}
			found = true
			where := fmt.Sprintf("segment %d (PT_NOTE)", i)
			if !walk.all(where, "", p.Offset, p.FileSize, p.Align) {
				return
			}
		}
		if !found {
			o.sectionNotes(yield)
		}
	}
}

// AllNotes yields the notes of the sections, in the file's order, and then those
// of program headers that lie in no section of notes. After an error the notes of
// the next section or segment follow.
func (o *Object) AllNotes() iter.Seq2[Note, error] {
	return func(yield func(Note, error) bool) {
		stopped := false
		o.sectionNotes(func(n Note, err error) bool {
			stopped = !yield(n, err)
			return !stopped
		})
		if stopped || o.debugOnly {
			return // program headers of a debug file have the old places of notes
		}
		type extent struct{ start, end uint64 }
		var sections []extent
		for _, s := range o.sections {
			if s.Type == elf.SHT_NOTE && s.Size > 0 {
				sections = append(sections, extent{s.Offset, s.Offset + s.Size})
			}
		}
		slices.SortFunc(sections, func(a, b extent) int { return cmp.Compare(a.start, b.start) })
		inSection := func(offset uint64) bool {
			i, found := slices.BinarySearchFunc(sections, offset, func(e extent, start uint64) int { return cmp.Compare(e.start, start) })
			return found || i > 0 && offset < sections[i-1].end
		}
		walk := o.newNoteWalk(func(n Note, err error) bool {
			return err == nil && inSection(n.Offset) || yield(n, err)
		})
		for i := range o.programs {
			p := &o.programs[i]
			if p.Type == elf.PT_NOTE && p.FileSize > 0 && !walk.all(fmt.Sprintf("segment %d (PT_NOTE)", i), "", p.Offset, p.FileSize, p.Align) {
				return
			}
		}
	}
}

// sectionNotes yields the notes of sections.
func (o *Object) sectionNotes(yield func(Note, error) bool) {
	walk := o.newNoteWalk(yield)
	for _, s := range o.sections {
		if s.Type != elf.SHT_NOTE || s.Size == 0 {
			continue
		}
		where := fmt.Sprintf("section %s (%d)", s.Name, s.Index)
		if !walk.all(where, s.Name, s.Offset, s.Size, s.Align) {
			return
		}
	}
}

// A noteWalk yields the notes of ranges of a file.
type noteWalk struct {
	o     *Object
	yield func(Note, error) bool
	// left is how many bytes may still be walked. Ranges do not overlap in an
	// honest file; in another one, each of many could be the whole file.
	left uint64
	n    int
}

func (o *Object) newNoteWalk(yield func(Note, error) bool) noteWalk {
	return noteWalk{o: o, yield: yield, left: 2 * uint64(len(o.data))}
}

// all yields the notes in a range of the file, and an error when it ends
// before its size says so. It returns false when nothing more is to be yielded.
func (w *noteWalk) all(where, section string, offset, size, align uint64) bool {
	fail := func(position uint64, err error) bool {
		return w.yield(Note{}, fmt.Errorf("%s: %s: offset %#x: %w", w.o.name, where, position, err))
	}
	var cut error
	if end := uint64(len(w.o.data)); offset > end || size > end-offset {
		cut = fmt.Errorf("size %#x is not in the %d bytes of the file", size, end)
		size = end - min(offset, end)
	}
	if size > w.left {
		fail(offset, errors.New("notes overlap"))
		return false
	}
	w.left -= size
	if err := w.o.need(offset, size, false); err != nil {
		fail(offset, err)
		return false
	}
	b := w.o.data[min(offset, uint64(len(w.o.data))):][:size]
	for position := uint64(0); position < size; {
		var note Note
		var next uint64
		// Only the parsing is guarded, not the caller's use of the note.
		err := Guard(func() (err error) {
			note, next, err = w.o.note(b, position, align)
			return err
		})
		if err != nil && cut != nil {
			break
		}
		if err != nil {
			return fail(offset+position, err)
		}
		if w.n++; w.n > maxNotes {
			fail(offset+position, fmt.Errorf("more than %d notes", maxNotes))
			return false
		}
		note.Offset, note.Section = offset+position, section
		if !w.yield(note, nil) {
			return false
		}
		position = next
	}
	if cut != nil {
		return fail(offset, cut)
	}
	return true
}

// note reads the note at an offset of b, and returns where the next one begins.
// Owner and data are padded to 4 bytes, or to 8 where the alignment is 8
// (.note.gnu.property); other alignments are taken as 4, as kernels write 0 and 1.
func (o *Object) note(b []byte, position, align uint64) (n Note, next uint64, err error) {
	if align != 8 {
		align = 4
	}
	header, ok := slice(b, position, noteHeaderLen)
	if !ok {
		return n, 0, fmt.Errorf("note header cut: %d bytes, expected %d", uint64(len(b))-position, noteHeaderLen)
	}
	order := o.header.order
	ownerSize, dataSize := uint64(order.Uint32(header)), uint64(order.Uint32(header[4:]))
	n.Type = order.Uint32(header[8:])
	owner, ok := slice(b, position+noteHeaderLen, ownerSize)
	if !ok {
		return n, 0, fmt.Errorf("note owner of %#x bytes, expected at most %#x", ownerSize, uint64(len(b))-position-noteHeaderLen)
	}
	n.Owner = cString(owner)
	start := alignUp(position+noteHeaderLen+ownerSize, align)
	if dataSize == 0 {
		start = min(start, uint64(len(b)))
	}
	n.Data, ok = slice(b, start, dataSize)
	if !ok {
		return n, 0, fmt.Errorf("note of owner %.32q, type %#x has %#x bytes at %#x, which are not in the %#x bytes of its notes", n.Owner, n.Type, dataSize, start, len(b))
	}
	return n, alignUp(start+dataSize, align), nil
}

func alignUp(n, align uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// cString returns the bytes before the first NUL.
func cString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// BuildID returns the build ID (NT_GNU_BUILD_ID) of the object; nil when it has
// none. That of a PDB file, and of a PE file with a CodeView record, has 20 bytes: the GUID in the order of its
// digits as text, and the age. A PE file without one has 8: time stamp and size of the image, all big-endian; see
// HasID. That of a Mach-O file is its UUID. Notes of sections go first: program headers of a separate debug file may have the places
// of notes in the file that it was made from.
func (o *Object) BuildID() []byte { return o.buildID() }

func (o *Object) findBuildID() (id []byte) {
	if o.header.typ == elf.ET_CORE {
		return nil // its notes describe the process
	}
	switch {
	case o.pe != nil:
		return o.peBuildID()
	case o.pdb != nil:
		return o.pdb.buildID()
	case o.macho != nil:
		return o.macho.UUID()
	}
	look := func(n Note, err error) bool {
		if err == nil && n.Owner == gnuOwner && n.Type == noteBuildID && len(n.Data) > 0 && len(n.Data) <= maxBuildID {
			err := Guard(func() error { id = append([]byte(nil), n.Data...); return nil })
			if err != nil {
				id = nil
			}
			return id == nil
		}
		return true
	}
	o.sectionNotes(look)
	if id == nil {
		o.Notes()(look)
	}
	return id
}
