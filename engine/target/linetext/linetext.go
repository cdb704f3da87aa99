// SPDX-License-Identifier: Apache-2.0

// Package linetext goes over files of lines as profilers write them: the file is
// mapped, and its lines are seen one after the other, so that the memory in use does
// not grow with them. What is wrong is kept within bounds.
package linetext

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/problems"
)

const (
	// MaxLine bounds the bytes of a line.
	MaxLine     = 1 << 20
	maxProblems = 100
	// maxKept bounds the bytes that a reader keeps of a file.
	maxKept = 256 << 20
	// window is how many bytes are seen before their memory is given back.
	window = 16 << 20
)

// ErrCut says that a file ends inside a line.
var ErrCut = errors.New("the file ends inside the line")

// errTooLong says that a line is not read.
var errTooLong = fmt.Errorf("the line has more than %d bytes", MaxLine)

// A File is a file of lines. Its lines may be seen by several at once; only one may
// use its other methods.
type File struct {
	// MaxKept bounds what Keep accounts for, in bytes.
	MaxKept  int
	path     string
	mapping  *object.Mapping // nil for bytes in memory
	data     []byte
	kept     int
	problems problems.List[string]
}

// Open maps a file, which open reads the lines of. The error of an empty one wraps
// empty.
func Open[T any](path string, empty error, open func(*File) (T, error)) (T, error) {
	var none T
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return none, fmt.Errorf("%s: %w: the file is empty", path, empty)
	}
	if err != nil {
		return none, err
	}
	f := New(path, m.Data())
	f.mapping = m
	of, err := open(f)
	if err != nil {
		return none, errors.Join(err, f.Close())
	}
	return of, nil
}

// New is a file of bytes in memory.
func New(path string, data []byte) *File { return &File{MaxKept: maxKept, path: path, data: data} }

// Path is the path of the file.
func (f *File) Path() string { return f.path }

// Close unmaps the file.
func (f *File) Close() error {
	if f.mapping == nil {
		return nil
	}
	return f.mapping.Close()
}

// Problem adds a sentence on a line.
func (f *File) Problem(number int, format string, args ...any) {
	if f.problems.HasRoom(maxProblems) {
		f.problems.Keep(fmt.Sprintf("%s:%d: ", f.path, number) + fmt.Sprintf(format, args...))
	}
}

// Problems are the sentences that were added, and how many were not kept.
func (f *File) Problems() []string {
	list := f.problems.Kept()
	if n := f.problems.Dropped(); n > 0 {
		list = append(list, fmt.Sprintf("%s: %d more problems", f.path, n))
	}
	return list
}

// Keep accounts for bytes that are kept; false where there are too many.
func (f *File) Keep(n int) bool {
	if n > f.MaxKept-f.kept {
		return false
	}
	f.kept += n
	return true
}

// A Line is a line of a File. It is valid while it is seen.
type Line struct {
	Number int    // from 1
	Text   []byte // without the end of the line
	// Err says why Text is not to be read: the line is too long, or ErrCut.
	Err error
}

// EachLine calls see for the lines that have something in them, in their order. The
// error is that of see, or says that the file was cut meanwhile.
func (f *File) EachLine(see func(*Line) error) error {
	var l Line
	given := 0
	err := object.Guard(func() error {
		for at := 0; at < len(f.data); {
			given = f.giveBack(given, at)
			text, _, ended := bytes.Cut(f.data[at:], []byte("\n"))
			at += len(text) + 1
			l.Text = bytes.TrimSuffix(text, []byte("\r"))
			l.Number++
			switch l.Err = nil; {
			case len(l.Text) > MaxLine:
				l.Text, l.Err = l.Text[:MaxLine], errTooLong
			case !ended:
				l.Err = ErrCut
			}
			if l.Err == nil && len(bytes.TrimSpace(l.Text)) == 0 {
				continue
			}
			if err := see(&l); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, object.ErrFileShrank) {
		return fmt.Errorf("%s:%d: %w", f.path, l.Number, err)
	}
	return err
}

// giveBack gives the memory back of what was seen, from what was given already.
func (f *File) giveBack(given, seen int) int {
	if f.mapping == nil || seen-given < window {
		return given
	}
	f.mapping.ReleasePages(uint64(given), uint64(seen)) //nolint:gosec // not negative
	return seen
}
