// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
)

// This file reads debug information that a linker left in the object files of a program (a debug map of macOS). Each
// of them is a file of the Reader. Its addresses become the program's where they are read: only the tables of lines
// and the bases of lists keep theirs.

// ObjectFiles are the object files that have the debug information of a program. They may be used concurrently.
type ObjectFiles interface {
	// Count returns how many object files there are.
	Count() int
	// At returns the number of the object file that has the code or the data at an address of the program; false
	// where none has.
	At(address uint64) (number int, ok bool)
	// Open opens an object file, and returns its code and data that the program has. It is called once for each.
	Open(number int) (*object.Object, []Moved, error)
	// Close closes files that the object files are in, after these.
	Close() error
}

// Moved is code or data of an object file, and its place in the program.
type Moved struct {
	Start, End uint64 // in the object file
	Address    uint64 // of Start in the program
}

// maxParts bounds the object files that are open at a time: each of them is a mapping.
const maxParts = 1 << 14

// parts are the object files of a Reader.
type parts struct {
	ObjectFiles
	files  []lazy[*file]
	all    lazy[[]*file]
	opened atomic.Int64
	used   []*file // that are open; with Reader.mu held
}

// NewOfParts returns a Reader of the debug information of a program in its object files.
func NewOfParts(program *object.Object, options Options, list ObjectFiles) *Reader {
	f := &file{name: program.Name(), object: program}
	f.isBigEndian, f.code = isBigEndian(program), codeSpans(program)
	r := &Reader{main: f, options: options, parts: &parts{ObjectFiles: list, files: make([]lazy[*file], list.Count())}}
	f.reader = r
	return r
}

// fileAt returns the file that describes an address; nil where none does.
func (r *Reader) fileAt(address uint64) *file {
	if r.parts == nil {
		return r.main
	}
	if n, ok := r.parts.At(address); ok {
		return r.part(n)
	}
	return nil
}

// part returns an object file, which is opened when it is needed; nil where it cannot be used, which is a problem.
func (r *Reader) part(number int) *file {
	f, _ := r.parts.files[number].get(func() (*file, error) {
		f, err := r.openPart(number)
		if err != nil {
			r.problem(err.Error())
		}
		return f, err
	})
	return f
}

var errManyParts = fmt.Errorf("more than %d object files with debug information are needed: the others are not read", maxParts)

func (r *Reader) openPart(number int) (*file, error) {
	if r.parts.opened.Add(1) > maxParts {
		return nil, errManyParts
	}
	o, moves, err := r.parts.Open(number)
	if err != nil {
		return nil, err
	}
	f, err := r.usePart(o, moves)
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = append(r.opened, o)
	r.parts.used = append(r.parts.used, f)
	return f, nil
}

// usePart reads the headers of an object file.
func (r *Reader) usePart(o *object.Object, moves []Moved) (f *file, err error) {
	err = object.Guard(func() error {
		if f, err = openFile(o, ""); err != nil {
			return err
		}
		if len(f.info) == 0 {
			return fmt.Errorf("%s: %w", o.Name(), ErrNoDebugInfo)
		}
		f.reader, f.isPart, f.moves = r, true, moves
		if _, err := f.allUnits(); err != nil {
			return fmt.Errorf("%s: %w", o.Name(), err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	f.addKept(sizeOf[file](1) + sizeOf[Moved](len(moves)))
	return f, nil
}

// files returns all files that have units, without those that they lead to.
func (r *Reader) files() []*file {
	if r.parts == nil {
		return []*file{r.main}
	}
	list, _ := r.parts.all.get(func() (list []*file, _ error) {
		for n := range r.parts.files {
			if f := r.part(n); f != nil {
				list = append(list, f)
			} else if r.parts.opened.Load() > maxParts {
				break
			}
		}
		return list, nil
	})
	return list
}

// usedFiles is files, without those that were not needed so far.
func (r *Reader) usedFiles() []*file {
	if r.parts == nil {
		return []*file{r.main}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.parts.used)
}

// UsesObjectFiles reports whether debug information in object files was used so far.
func (r *Reader) UsesObjectFiles() bool { return r.parts != nil && len(r.usedFiles()) > 0 }

// everyUnit returns the units of all files.
func (r *Reader) everyUnit() (list []*unit) {
	if r.parts == nil {
		return r.main.everyUnit()
	}
	for _, f := range r.files() {
		list = append(list, f.everyUnit()...)
	}
	return list
}

// infoSize returns the bytes of .debug_info of all files.
func (r *Reader) infoSize() (size uint64) {
	for _, f := range r.files() {
		size += uint64(len(f.info))
	}
	return size
}

// errLeftOut is the error of an address in an object file that the program does not have.
var errLeftOut = errors.New("the address is of code or data that the program does not have")

// move returns what an object file has at an address; nil where the program does not have that.
func (f *file) move(address uint64) *Moved {
	i := sort.Search(len(f.moves), func(i int) bool { return f.moves[i].Start > address })
	if i == 0 || address >= f.moves[i-1].End {
		return nil
	}
	return &f.moves[i-1]
}

// moved returns the address of the program for one of the file.
func (f *file) moved(address uint64) (uint64, error) {
	if !f.isPart {
		return address, nil
	}
	m := f.move(address)
	if m == nil {
		return 0, errLeftOut
	}
	return address - m.Start + m.Address, nil
}

// movedSpan returns the addresses of the program for a range of a function; false where the program does not have its start.
func (f *file) movedSpan(s span) (span, bool) {
	if !f.isPart {
		return s, true
	}
	m := f.move(s.start)
	if m == nil {
		return s, false
	}
	distance := m.Address - m.Start
	return span{s.start + distance, min(s.end, m.End) + distance}, true
}

// appendLive appends a range of code that is in the object.
func (f *file) appendLive(list []span, s span) []span {
	if !f.isLive(s) {
		return list
	}
	if s, ok := f.movedSpan(s); ok {
		return append(list, s)
	}
	return list
}
