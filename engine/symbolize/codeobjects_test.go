// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"debug/elf"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/subject"
)

// addressesIn are the addresses of every fourth byte of functions.
func addressesIn(functions []elf.Symbol) (list []uint64) {
	for _, s := range functions {
		for a := s.Value; a < s.Value+s.Size; a += 4 {
			list = append(list, a)
		}
	}
	return list
}

// startLine is startFile, and the end of the line.
var startLine = regexp.MustCompile(startFile.String() + `\n`)

// TestCodeObjectsSymbolizeAsLLVM asks for every instruction of every function of
// the code objects, and for the variables there.
func TestCodeObjectsSymbolizeAsLLVM(t *testing.T) {
	long(t)
	var all, some []string
	files := 0
	for _, path := range subject.CodeObjects(t) {
		if strings.HasSuffix(path, ".cfi.co") {
			continue // the code of another one
		}
		files++
		functions, _ := subject.DeviceFunctions(t, path)
		for i, a := range addressesIn(functions) {
			all = append(all, fmt.Sprintf("%q %#x", path, a))
			if i%8 == 0 {
				all = append(all, fmt.Sprintf("FRAME %q %#x", path, a))
				some = append(some, fmt.Sprintf("%q %#x", path, a))
			}
		}
	}
	if t.Logf("%d questions about %d files", len(all), files); len(all) < 50_000 {
		t.Errorf("expected 50,000 questions")
	}
	for _, c := range []struct {
		questions []string
		separator string
		args      []string
	}{
		{all, "\n\n", []string{"--verbose"}},
		{some, "\n", []string{"--output-style=JSON", "--no-demangle"}},
	} {
		in := strings.Join(c.questions, "\n") + "\n"
		split := func(name string, a answers) []string {
			list := strings.SplitAfter(startLine.ReplaceAllString(a.Stdout, ""), c.separator)
			if a.Failed || a.Stderr != "" || len(list) != len(c.questions)+1 {
				t.Fatalf("%s %v: %d answers to %d questions\n%.2000s", name, c.args, len(list), len(c.questions), a.Stderr)
			}
			return list
		}
		want := split("llvm-symbolizer", askTool(t, "llvm-symbolizer-22", in, c.args...))
		got := split("unwindd", Options{}.ask(t, &Session{}, c.args, nil, in))
		differ := 0
		for i, q := range c.questions {
			if want[i] == got[i] {
				continue
			}
			if differ++; differ <= 5 {
				t.Errorf("%v: %s:\n%s\nof llvm-symbolizer\n%s", c.args, q, got[i], want[i])
			}
		}
		if differ > 0 {
			t.Errorf("%v: %d of %d answers differ", c.args, differ, len(c.questions))
		}
	}
}
