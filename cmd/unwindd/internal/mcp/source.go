// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // DWARF 5 has this sum of source files
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/unwindd/unwindd/internal/escape"
)

// Bounds on source.
const (
	usualLines, mostLines = 15, 200
	maxSource             = 16 << 20 // bytes of a file
	maxLine               = 500      // bytes of a line
)

// sourceArguments are the arguments of the tool source.
type sourceArguments struct {
	place
	File  string `json:"file"`
	Line  int    `json:"line"`
	Lines int    `json:"lines"`
}

// sourceAnswer is the answer of the tool source.
type sourceAnswer struct {
	*framed
	File    string   `json:"file"`
	Found   string   `json:"found"` // the path that was read
	Line    int      `json:"line"`
	First   int      `json:"first"` // the number of the first of Lines
	Lines   []string `json:"lines"`
	Warning string   `json:"warning,omitempty"`
}

// source answers with the lines around the line of a frame, or of a file.
func source(ctx context.Context, s *Server, arguments json.RawMessage) (*answer, error) {
	var a sourceArguments
	if err := decode(arguments, &a); err != nil {
		return nil, err
	}
	if err := bounded("lines", &a.Lines, usualLines, mostLines); err != nil {
		return nil, err
	}
	var out sourceAnswer
	var at wanted
	switch {
	case a.File != "" && a.Path != "":
		return nil, errors.New("path and file: expected one of them: the path of a crash with a frame, or a file with a line")
	case a.File != "":
		at = wanted{file: a.File, line: max(a.Line, 1)}
	default:
		var err error
		if out.framed, at, err = s.lineOf(ctx, a.place); err != nil {
			return nil, err
		}
	}
	if err := s.read(&out, at, a.Lines); err != nil {
		return nil, err
	}
	return &answer{out, out.String()}, nil
}

// wanted is a line that is looked for.
type wanted struct {
	file     string
	line     int
	beside   string // the path of the crash; "" where there is none
	text     string // of the file, where the debug information has it; else ""
	md5      string // of the file; "" where it is not known
	modified time.Time
}

// lineOf returns the line of a frame.
func (s *Server) lineOf(ctx context.Context, p place) (*framed, wanted, error) {
	f, err := s.roots.open(p.Path)
	if err != nil {
		return nil, wanted{}, err
	}
	defer f.Close()
	j := newJob(p.Thread)
	t, err := s.open(f, &j)
	if err != nil {
		return nil, wanted{}, err
	}
	defer s.targets.release(t)
	in := t.Target
	if isScheduled(p.Thread) {
		in = t.WithGoroutines(ctx)
		defer in.Close()
	}
	th, err := threadOf(in, p.Thread)
	if err != nil {
		return nil, wanted{}, fmt.Errorf("%w%s", err, threadsOf(t))
	}
	at, err := frameAt(in.Walk(ctx, th), p.Frame)
	if err != nil {
		return nil, wanted{}, err
	}
	about := at.about(th.ID, p.Frame)
	if at.symbol == nil || at.symbol.Line < 1 || at.symbol.File == "" {
		return nil, wanted{}, fmt.Errorf("frame %d of thread %s has no line: its module has no debug information here", p.Frame, th.ID)
	}
	return &about, wantedAt(f.path, at), nil
}

// wantedAt returns the line of a frame of a crash.
func wantedAt(crash string, f *frameAtIndex) wanted {
	w := wanted{file: f.symbol.File, line: f.symbol.Line, beside: crash, text: f.symbol.Source, md5: f.symbol.SourceMD5}
	if m := f.frame.Module; m != nil {
		if info, err := os.Stat(cmp.Or(m.File, m.Path)); err == nil {
			w.modified = info.ModTime()
		}
	}
	return w
}

// read reads the lines around a line.
func (s *Server) read(out *sourceAnswer, w wanted, count int) error {
	out.File, out.Line, out.Found = w.file, w.line, "the debug information"
	all := w.text
	if all == "" {
		f, exact, err := s.roots.find(w.file, w.beside)
		if err != nil {
			return err
		}
		defer f.Close()
		out.Found = f.path
		if all, err = w.readAll(f); err != nil {
			return err
		}
		switch {
		case w.md5 != "":
		case !exact:
			out.Warning = "a guess: the recorded path is not beneath a root, and this file has the end of it"
		case !w.modified.IsZero() && f.info.ModTime().After(w.modified):
			out.Warning = "the file is newer than the program: it may not be the one that was compiled"
		}
	}
	return out.cut(all, count)
}

// readAll reads a file, and compares its sum.
func (w *wanted) readAll(f *file) (string, error) {
	if f.info.Size() > maxSource {
		return "", fmt.Errorf("%s has %d bytes: expected at most %d of a source file", f.path, f.info.Size(), maxSource)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSource))
	if err != nil {
		return "", err
	}
	if sum := md5.Sum(b); w.md5 != "" && string(sum[:]) != w.md5 { //nolint:gosec // see above
		return "", fmt.Errorf("%s is not the file that was compiled: its MD5 is another one. Have the user check out the sources of the crash", f.path)
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", fmt.Errorf("%s is no text", f.path)
	}
	return string(b), nil
}

// cut takes count lines of a text, with the line in the middle.
func (a *sourceAnswer) cut(all string, count int) error {
	a.First = max(a.Line-count/2, 1)
	n := 0
	lines := bufio.NewScanner(strings.NewReader(all))
	lines.Buffer(nil, maxSource+1)
	for lines.Scan() {
		if n++; n >= a.First && n < a.First+count {
			a.Lines = append(a.Lines, clip(lines.Text(), maxLine))
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if a.Line > n {
		return fmt.Errorf("%s has %d lines, and no line %d: it is not the file that was compiled", a.Found, n, a.Line)
	}
	return nil
}

// String returns the lines with their numbers, and a mark at the line.
func (a *sourceAnswer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d\n", escape.Text(a.File), a.Line)
	if a.Found != a.File {
		fmt.Fprintf(&b, "read from %s\n", escape.Text(a.Found))
	}
	if a.Warning != "" {
		fmt.Fprintf(&b, "%s\n", a.Warning)
	}
	for i, line := range a.Lines {
		mark := " "
		if a.First+i == a.Line {
			mark = ">"
		}
		fmt.Fprintf(&b, "%s%6d  %s\n", mark, a.First+i, escape.Line(line))
	}
	return b.String()
}

// failedLine is the text of the source around the line where the program failed: of its own
// innermost function, in the first thread that crashed; "" where it is not beneath the roots.
func (s *Server) failedLine(doc object, crash string) string {
	for _, th := range list(doc, "threads") {
		th, _ := th.(object)
		own := number(th, "first_own_frame")
		for _, f := range list(th, "frames") {
			f, _ := f.(object)
			file, line := text(f, "file"), number(f, "line")
			if number(f, "index") != own || file == "" || line < 1 {
				continue
			}
			var out sourceAnswer
			if s.read(&out, wanted{file: file, line: line, beside: crash}, 5) == nil {
				return fmt.Sprintf("source of frame %d of thread %s, %s", own, text(th, "id"), &out)
			}
			return ""
		}
	}
	return ""
}
