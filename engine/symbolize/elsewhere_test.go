// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// crashFile is the executable of an example.
const crashFile = "../../examples/crash/server"

// answered runs questions about a file, which answers answers.
func answered(t testing.TB, style Style, elsewhere Elsewhere, questions ...string) (string, error) {
	t.Helper()
	s := &Session{Symbolizer: New(Options{}), Tool: "test", Object: crashFile, Inlines: true, Output: WriterOptions{Style: style}, Elsewhere: elsewhere}
	defer s.Symbolizer.Close()
	var out bytes.Buffer
	err := s.Run(&out, questions, nil)
	return out.String(), err
}

// there answers questions as a server does, by the file here.
func there(t testing.TB, style Style) Elsewhere {
	return func(id []byte, file *File, questions []string) ([]byte, error) {
		if len(id) != 20 || file == nil {
			t.Errorf("build ID %x, %v", id, file)
		}
		s := &Session{Symbolizer: New(Options{}), Tool: "test", Object: crashFile, Inlines: true, Output: WriterOptions{Style: style}, Encoded: true}
		defer s.Symbolizer.Close()
		var out bytes.Buffer
		err := s.Run(&out, nil, strings.NewReader(strings.Join(questions, "\n")+"\n"))
		return out.Bytes(), err
	}
}

// TestAnswersOfAnotherMachineAreWrittenHere writes the answers of another machine as answers of this
// machine are written, and refuses malformed ones.
func TestAnswersOfAnotherMachineAreWrittenHere(t *testing.T) {
	questions := []string{"0x401100", "DATA 0x404060", "FRAME 0x401911", "content_length", "no_such_name", "", "0x1"}
	for _, style := range []Style{StyleLLVM, StyleLLVMGNU, StyleJSON, StyleAddr2line} {
		want, err := answered(t, style, nil, questions...)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := answered(t, style, there(t, style), questions...); err != nil || got != want {
			t.Errorf("style %d: %v, %q, expected %q", style, err, got, want)
		}
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		elsewhere Elsewhere
		words     string
	}{
		"no answer": {func([]byte, *File, []string) ([]byte, error) { return nil, nil }, "fewer answers than questions"},
		"garbage":   {func([]byte, *File, []string) ([]byte, error) { return []byte("garbage"), nil }, "unexpected EOF"},
		"another kind": {func([]byte, *File, []string) ([]byte, error) {
			return []byte{0xa1, 0x06, 0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, nil
		}, "cbor"},
		"an error": {func([]byte, *File, []string) ([]byte, error) { return nil, broken }, "broken"},
	} {
		if _, err := answered(t, StyleLLVM, c.elsewhere, "0x401100"); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, expected %q", name, err, c.words)
		}
	}
	here := func([]byte, *File, []string) ([]byte, error) { return nil, ErrNotElsewhere }
	if got, err := answered(t, StyleLLVM, here, "0x401100"); err != nil || !strings.Contains(got, "content_length") {
		t.Errorf("a file that is read here: %v, %s", err, got)
	}
}

// FuzzAnswersOfAnotherMachine has a server answer with any bytes.
func FuzzAnswersOfAnotherMachine(f *testing.F) {
	for _, style := range []Style{StyleLLVM, StyleJSON} {
		data, err := there(f, style)(make([]byte, 20), &File{}, []string{"0x401100", "DATA 0x404060", "FRAME 0x401911", "no_such_name"})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, style := range []Style{StyleLLVM, StyleLLVMGNU, StyleJSON, StyleAddr2line} {
			_, _ = answered(t, style, func([]byte, *File, []string) ([]byte, error) { return data, nil }, "0x401100", "main", "DATA 0x1", "FRAME 0x2")
		}
	})
}
