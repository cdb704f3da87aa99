// SPDX-License-Identifier: Apache-2.0

// Package linetext reads files of lines as profilers write them: the file is mapped, and its
// lines are read one by one, so that the memory in use does not grow with the file. The list of
// problems is bounded.
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
	// maxKept bounds the memory that a reader keeps of a file.
	maxKept = 256 << 20
	// window is the number of bytes that are read before their pages are released.
	window = 16 << 20
)

// ErrCut means that a file ends inside a line.
var ErrCut = errors.New("the file ends inside the line")

// errTooLong means that a line is too long to be read.
var errTooLong = fmt.Errorf("the line has more than %d bytes", MaxLine)

// File is a file of lines. EachLine may be called concurrently, other methods may not.
type File struct {
	// MaxKept bounds the bytes that Keep counts.
	MaxKept  int
	path     string
	mapping  *object.Mapping // nil for bytes in memory
	data     []byte
	kept     int
	problems problems.List[string]
}

// Open maps a file, and returns the result of open for it. The error for an empty file wraps
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
	result, err := open(f)
	if err != nil {
		return none, errors.Join(err, f.Close())
	}
	return result, nil
}

// New returns a file of bytes in memory.
func New(path string, data []byte) *File { return &File{MaxKept: maxKept, path: path, data: data} }

// Path returns the path of the file.
func (f *File) Path() string { return f.path }

// Close unmaps the file.
func (f *File) Close() error { return f.mapping.Close() }

// Problem adds a sentence about a line to the problems.
func (f *File) Problem(number int, format string, args ...any) {
	if f.problems.HasRoom(maxProblems) {
		f.problems.Keep(fmt.Sprintf("%s:%d: ", f.path, number) + fmt.Sprintf(format, args...))
	}
}

// Problems returns the problems, and how many were not kept.
func (f *File) Problems() []string {
	list := f.problems.Kept()
	if n := f.problems.Dropped(); n > 0 {
		list = append(list, fmt.Sprintf("%s: %d more problems", f.path, n))
	}
	return list
}

// Keep counts bytes that are kept; it returns false if there are too many.
func (f *File) Keep(n int) bool {
	if n > f.MaxKept-f.kept {
		return false
	}
	f.kept += n
	return true
}

// Line is a line of a File. It is valid until the function that it was passed to returns.
type Line struct {
	Number int    // from 1
	Text   []byte // without the end of the line
	// Err is why Text is incomplete: the line is too long, or ErrCut.
	Err error
}

// EachLine calls see for the lines that are not blank, in their order. It returns the error of
// see, or an error if the file was truncated meanwhile.
func (f *File) EachLine(see func(*Line) error) error {
	var l Line
	released := 0
	err := object.Guard(func() error {
		for offset := 0; offset < len(f.data); {
			if offset-released >= window {
				f.mapping.ReleasePages(uint64(released), uint64(offset)) //nolint:gosec // not negative
				released = offset
			}
			text, _, ended := bytes.Cut(f.data[offset:], []byte("\n"))
			offset += len(text) + 1
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
