// SPDX-License-Identifier: Apache-2.0

// Package source finds source files, and returns the lines around a line.
//
// The text is embedded in the debug information, or in a file of the target, or on a debuginfod
// server. A file is refused if debug information has another checksum; if that has none, a file
// that is newer than the code object comes with a warning. Files, lines and memory are bounded.
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
	"github.com/unwindd/unwindd/engine/trace"
)

const (
	maxFile  = 64 << 20  // bytes of a source file
	maxKept  = 128 << 20 // bytes of files that are kept
	maxKnown = 1 << 14   // files, and answers, that are remembered
)

// MaxLines bounds the number of lines in a request.
const MaxLines = 1000

// Place is a line of a source file of a code object.
type Place struct {
	File string // the path in debug information
	Line int    // from 1
	// Text is the text of the file, if debug information embeds it.
	Text string
	// MD5 is the checksum of the file (DW_LNCT_MD5); "" if it is not known.
	MD5     string
	BuildID []byte // of the code object
	// Object is the path of the code object, and Modified the time when it was written;
	// zero if that is not known.
	Object   string
	Modified time.Time
	IsLocal  bool // no server is asked for the file
}

// PlaceOf returns the place of a frame.
func PlaceOf(f *trace.Symbol) Place {
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

// New makes Files that looks up files by a finder.
func New(finder *object.Finder) *Files {
	return &Files{finder: finder, files: map[fileKey]*file{}, lines: map[lineKey]*answer{}}
}

// fileKey identifies a file. Units may embed different texts for one path.
type fileKey struct {
	path, md5, buildID string
	isLocal            bool
	embedded           *byte // the start of the embedded text; nil if there is none
}

// file is the result of looking for a file.
type file struct {
	text     text
	modified time.Time // of a file of the target; zero if the file is certain
	err      error
}

type lineKey struct {
	fileKey
	line, count int
	modified    time.Time
}

type answer struct {
	lines trace.SourceLines
	err   error
}

// Lines returns about count lines, with that of the place in the middle. The error has the reason
// for each file that was tried.
func (s *Files) Lines(p Place, count int) (trace.SourceLines, error) {
	if p.Line < 1 || p.File == "" {
		return trace.SourceLines{}, errors.New("no line is known")
	}
	key := lineKey{fileKey{path: p.File, md5: p.MD5, buildID: string(p.BuildID), isLocal: p.IsLocal}, p.Line, count, p.Modified}
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

func (s *Files) find(p *Place, key fileKey, count int) (l trace.SourceLines, err error) {
	f := s.file(p, key)
	if f.err != nil {
		return l, f.err
	}
	if l.First, l.Text, err = f.text.around(p.Line, min(max(count, 1), MaxLines)); err != nil {
		return trace.SourceLines{}, fmt.Errorf("%s: %w", p.File, err)
	}
	if !f.modified.IsZero() && !p.Modified.IsZero() && f.modified.After(p.Modified) {
		l.Warning = fmt.Sprintf("%s is newer than %s", p.File, p.Object)
	}
	return l, nil
}

// file returns a file, which it reads unless it is kept.
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

// read reads a file from the target, or else from the finder's Remote.
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
	if p.IsLocal {
		return f
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

// take copies the text of a file whose checksum is sum, or of any file if sum is "". It closes
// the mapping.
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
