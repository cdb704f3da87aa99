// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

const small = "../internal/symbol/dwarf/testdata/small5"

// newSession is a session of one file that is closed with the test.
func newSession(t testing.TB, file string) *Session {
	t.Helper()
	s := New(Options{})
	t.Cleanup(func() { s.Close() })
	return &Session{Symbolizer: s, Tool: "tool", Object: file, Inlines: true, Output: WriterOptions{Demangle: true}}
}

// What is wrong with a question is said when the answers before it are written.
func TestMessagesComeInTheOrderOfTheQuestions(t *testing.T) {
	var said strings.Builder
	s := newSession(t, "")
	s.Message = func(text string) { fmt.Fprintf(&said, "! %s\n", text) }
	s.Output.Functions = NoNames
	questions := []string{small + " 0x4000d0", small + " 1x", "missing 1", small + " 0x4000b0", "missing 2"}
	want := `/src/small.cc:18:21

! tool: error: 'SMALL 1x': expected a number as module offset
??:0:0

! tool: error: 'missing': No such file or directory
??:0:0

/src/small.cc:11:3
/src/small.cc:14:68

??:0:0

`
	if err := s.Run(&said, questions, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(said.String(), small, "SMALL"); got != want {
		t.Errorf("of arguments:\n%s\nwant\n%s", got, want)
	}
	said.Reset()
	if err := s.Run(&said, nil, strings.NewReader(strings.Join(questions, "\n"))); err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(said.String(), small, "SMALL"); got != want {
		t.Errorf("of lines that are read:\n%s\nwant\n%s", got, want)
	}
}

func TestAFileThatCannotBeOpenedEndsTheSession(t *testing.T) {
	for _, style := range []Style{StyleLLVM, StyleJSON} {
		var out strings.Builder
		s := newSession(t, "missing")
		s.Output.Style = style
		err := s.Run(&out, []string{"1"}, nil)
		var file *FileError
		if !errors.As(err, &file) || file.Name != "missing" || !errors.Is(err, fs.ErrNotExist) || err.Error() != "'missing': No such file or directory" {
			t.Errorf("style %d: %v", style, err)
		}
		want := ""
		if style == StyleJSON {
			want = `{"Address":"0x0","Error":{"Message":"No such file or directory"},"ModuleName":"missing"}` + "\n"
		}
		if out.String() != want {
			t.Errorf("style %d: %q, want %q", style, out.String(), want)
		}
	}
}

func TestTheFirstRefusalIsTheError(t *testing.T) {
	refused := []string{}
	s := newSession(t, "")
	s.Refuse = func(path string) error {
		if path == small {
			return nil
		}
		refused = append(refused, path)
		return errors.New(path + " may not be read")
	}
	err := s.Run(io.Discard, []string{small + " 1", "a 1", "b 1"}, nil)
	if err == nil || err.Error() != "a may not be read" || len(refused) != 2 {
		t.Errorf("%v; refused were %q", err, refused)
	}
}

// Answers are written before the next question is read.
func TestAnswersAreWrittenBeforeMoreIsRead(t *testing.T) {
	questions, ask := io.Pipe()
	answers, out := io.Pipe()
	s := newSession(t, small)
	done := make(chan error, 1)
	go func() { done <- s.Run(out, nil, questions) }()
	for range 3 {
		if _, err := io.WriteString(ask, "0x4000d0\n"); err != nil {
			t.Fatal(err)
		}
		const want = "outer::work(int)\n/src/small.cc:18:21\n\n"
		got := make([]byte, len(want))
		if _, err := io.ReadFull(answers, got); err != nil || string(got) != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	ask.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestErrorsOfAddr2line(t *testing.T) {
	folder, empty := t.TempDir(), t.TempDir()+"/empty"
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ file, section, want string }{
		{"missing", "", "'missing': No such file"},
		{folder, "", "Warning: '" + folder + "' is a directory"},
		{empty, "", empty + ": file format not recognized"},
		{"session_test.go", "", "session_test.go: file format not recognized"},
		{small, ".none", small + ": cannot find section .none"},
		{small, ".text", ""},
	} {
		a := Addr2line{Symbolizer: newSession(t, "").Symbolizer, File: c.file, Section: c.section}
		err := a.Run(io.Discard, []string{"0"}, nil)
		if err == nil && c.want != "" || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.file, err, c.want)
		}
	}
}

// Offsets in a section are addresses of it.
func TestAddr2lineReadsOffsetsInASection(t *testing.T) {
	o, err := object.Open(small)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	text := o.Section(".text")
	var inFile, inSection strings.Builder
	a := Addr2line{Symbolizer: newSession(t, "").Symbolizer, File: small, Output: WriterOptions{Style: StyleAddr2line}}
	for offset := range text.Size + 4 {
		address := text.Address + offset
		if offset >= text.Size {
			address = 1 // what lies behind the section is nothing of it
		}
		a.Section = ""
		if err := a.Run(&inFile, []string{fmt.Sprintf("%x", address)}, nil); err != nil {
			t.Fatal(err)
		}
		a.Section = ".text"
		if err := a.Run(&inSection, []string{fmt.Sprintf("0x%x", offset)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if inFile.String() != inSection.String() || !strings.Contains(inFile.String(), "small.cc:18") {
		t.Errorf("by address\n%sby offset\n%s", inFile.String(), inSection.String())
	}
}

// BenchmarkSession answers 4,096 questions that are there at once.
func BenchmarkSession(b *testing.B) {
	var questions strings.Builder
	for i := range 4096 {
		fmt.Fprintf(&questions, "%#x\n", 0x4000a0+i*7%0xc0)
	}
	for name, style := range map[string]Style{"llvm": StyleLLVM, "gnu": StyleAddr2line, "json": StyleJSON} {
		b.Run(name, func(b *testing.B) {
			s := newSession(b, small)
			s.Output.Style = style
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Run(io.Discard, nil, strings.NewReader(questions.String())); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Without section headers a file has no names: that it is cut is why.
func TestCutFilesAreSaid(t *testing.T) {
	data, err := os.ReadFile(small)
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/cut"
	if err := os.WriteFile(path, data[:len(data)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	var said []string
	s := New(Options{Warn: func(text string) { said = append(said, text) }})
	defer s.Close()
	for range 2 {
		if _, err := s.Open(path); err != nil {
			t.Fatal(err)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], path+": ") || !strings.Contains(said[0], "section headers at offset") {
		t.Errorf("said %q, expected one sentence of the section headers", said)
	}
}
