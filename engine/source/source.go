// SPDX-License-Identifier: Apache-2.0

// Package source finds the text of source files, and gives the lines around one of them.
//
// The text is that which debug information has itself, or a file of the target, or what a
// debuginfod server has for the code object. A file is refused where debug information has
// a checksum that is not the file's; where it has none, a file that is newer than the code
// object is given with a warning. Everything is bounded: files, lines and how much is kept.
package source

import (
	"crypto/md5" //nolint:gosec // DWARF 5 has this sum of source files
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
)

const (
	maxFile  = 64 << 20  // bytes of a source file
	maxKept  = 128 << 20 // bytes of files that are kept
	maxKnown = 1 << 14   // files, and lines, that are remembered
)

// MaxLines is how many lines may be asked for.
const MaxLines = 1000

// Lines are lines of a source file.
type Lines struct {
	First int // the number of the first line, from 1
	Text  []string
	// Warning is why the lines may not be those that were compiled; "" else.
	Warning string
}

// A Place is a line of a source file of a code object.
type Place struct {
	File string // as debug information has it
	Line int    // from 1
	// Text is the text of the file where debug information has it; "" else.
	Text string
	// MD5 is the sum of the file's bytes (DW_LNCT_MD5); "" where it is not known.
	MD5     string
	BuildID []byte // of the code object
	// Object is the path of the code object, and Modified when that was written; the
	// zero time where it is not known.
	Object   string
	Modified time.Time
}

// PlaceOf is the place of a function at an address.
func PlaceOf(f *symbol.Frame) Place {
	return Place{File: f.File, Line: f.Line, Text: f.Source, MD5: f.SourceMD5}
}

// Files finds source files and keeps them. It may be used concurrently.
type Files struct {
	finder *object.Finder

	mu    sync.Mutex
	files map[fileKey]*file
	lines map[lineKey]*answer
	bytes int // of files
}

// New makes Files that the finder finds.
func New(finder *object.Finder) *Files {
	return &Files{finder: finder, files: map[fileKey]*file{}, lines: map[lineKey]*answer{}}
}

// A fileKey says which file is asked for. Units may have texts of their own for one path.
type fileKey struct {
	path, md5, buildID string
	embedded           *byte // where the text is that debug information has; nil: it has none
}

// A file is one that was looked for.
type file struct {
	text     text
	modified time.Time // of a file of the target; zero where it is known to be the right one
	err      error
}

type lineKey struct {
	fileKey
	line, count int
	modified    time.Time
}

type answer struct {
	lines Lines
	err   error
}

// Lines gives about as many lines as are asked for, with that of the place in the middle.
// The error says why there is no such line: each place that was looked at.
func (s *Files) Lines(p Place, count int) (Lines, error) {
	if p.Line < 1 || p.File == "" {
		return Lines{}, errors.New("no line is known")
	}
	key := lineKey{fileKey{path: p.File, md5: p.MD5, buildID: string(p.BuildID)}, p.Line, count, p.Modified}
	if p.Text != "" {
		key.embedded = unsafe.StringData(p.Text)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.lines[key]
	if a == nil {
		a = &answer{}
		a.lines, a.err = s.find(&p, key.fileKey, count)
		if len(s.lines) >= maxKnown {
			clear(s.lines)
		}
		s.lines[key] = a
	}
	return a.lines, a.err
}

func (s *Files) find(p *Place, key fileKey, count int) (l Lines, err error) {
	f := s.file(p, key)
	if f.err != nil {
		return l, f.err
	}
	if l.First, l.Text, err = f.text.around(p.Line, min(max(count, 1), MaxLines)); err != nil {
		return Lines{}, fmt.Errorf("%s: %w", p.File, err)
	}
	if !f.modified.IsZero() && !p.Modified.IsZero() && f.modified.After(p.Modified) {
		l.Warning = fmt.Sprintf("%s is newer than %s", p.File, p.Object)
	}
	return l, nil
}

// file reads a file, once as long as it is kept.
func (s *Files) file(p *Place, key fileKey) *file {
	if f := s.files[key]; f != nil {
		return f
	}
	f := &file{}
	switch {
	case p.Text == "":
		f = s.read(p)
	case len(p.Text) > maxFile:
		f.err = fmt.Errorf("%s: its text in the debug information has %d bytes, expected at most %d", p.File, len(p.Text), maxFile)
	default:
		f.text = newText(p.Text)
	}
	if s.bytes += len(f.text.all); s.bytes > maxKept || len(s.files) >= maxKnown {
		clear(s.files)
		s.bytes = len(f.text.all)
	}
	s.files[key] = f
	return f
}

// read looks for a file in the target, and asks the finder's Remote.
func (s *Files) read(p *Place) *file {
	f := &file{}
	if !strings.HasPrefix(p.File, "/") {
		f.err = fmt.Errorf("%s: the directory that it is in is not known", p.File)
		return f
	}
	var m *object.Mapping
	if m, f.err = s.finder.MapNamed(p.File); f.err == nil {
		f.modified = m.ModTime()
		if f.err = f.take(m, p.MD5); f.err == nil {
			if p.MD5 != "" {
				f.modified = time.Time{}
			}
			return f
		}
	}
	path, tried := s.finder.FetchSource(p.BuildID, p.File)
	if path != "" {
		m, err := s.finder.MapSource(path, p.File)
		if err == nil {
			err = f.take(m, p.MD5)
		}
		if err != nil {
			tried = append(tried, object.Attempt{Path: p.File, Reason: err.Error()})
		} else {
			f.modified, f.err = time.Time{}, nil
			return f
		}
	}
	for _, a := range tried {
		f.err = fmt.Errorf("%w; %s: %s", f.err, a.Path, a.Reason)
	}
	return f
}

// take copies the text of a file, where its sum is the right one; "" is any. It closes the
// mapping.
func (f *file) take(m *object.Mapping, sum string) error {
	defer m.Close()
	if n := len(m.Data()); n > maxFile {
		return fmt.Errorf("%s: %d bytes, expected at most %d of a source file", m.Path(), n, maxFile)
	}
	var text string
	if err := object.Guard(func() error { text = string(m.Data()); return nil }); err != nil {
		return err
	}
	if sum != "" {
		if got := md5.Sum([]byte(text)); string(got[:]) != sum { //nolint:gosec // see above
			return fmt.Errorf("%s: is not the file that was compiled: its MD5 is %x, expected %x", m.Path(), got, sum)
		}
	}
	f.text = newText(text)
	return nil
}
