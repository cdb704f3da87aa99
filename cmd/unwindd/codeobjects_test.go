// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// addressesOfFunctions are the addresses of every fourth byte of each function.
func addressesOfFunctions(t *testing.T, path string) (list []uint64) {
	t.Helper()
	functions, _ := subject.DeviceFunctions(t, path)
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
	ours, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	var all, some []string
	files := 0
	for _, path := range subject.CodeObjects(t) {
		if strings.HasSuffix(path, ".cfi.co") {
			continue // the code of another one
		}
		files++
		for i, a := range addressesOfFunctions(t, path) {
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
		answers := func(tool string) []string {
			r := runTool(t, ".", tool, strings.Join(c.questions, "\n")+"\n", c.args...)
			list := strings.SplitAfter(startLine.ReplaceAllString(r.Stdout, ""), c.separator)
			if r.Status != 0 || r.Stderr != "" || len(list) != len(c.questions)+1 {
				t.Fatalf("%s %v: status %d, %d answers to %d questions\n%.2000s", tool, c.args, r.Status, len(list), len(c.questions), r.Stderr)
			}
			return list
		}
		want, got := answers(theirs), answers(ours)
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

// TestProgramsWithDeviceCode dumps and symbolizes the code objects inside of
// programs that clang has linked, in bundles, in compressed ones, and in those
// that its linker wrapper makes: as the files that clang-offload-bundler takes out.
func TestProgramsWithDeviceCode(t *testing.T) {
	long(t)
	oracle.Tools(t, "objcopy", "llvm-symbolizer-22")
	for _, flags := range [][]string{nil, {"--offload-compress"}, {"--offload-new-driver"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			program := subject.BuildHIP(t, flags...)
			dir := filepath.Dir(program)
			if r := runTool(t, dir, "objcopy", "", "--dump-section", ".hip_fatbin=bundle", program, "rest"); r.Status != 0 {
				t.Fatal(r.Stderr)
			}
			d := dumpNotes(t, program)
			if len(d.Nested) != 3 || len(d.Problems) > 0 {
				t.Fatalf("%d code objects, problems %q", len(d.Nested), d.Problems)
			}
			compared := 0
			for _, n := range d.Nested {
				if n.Kind == "host" {
					continue
				}
				compared++
				file := filepath.Join(dir, n.Processor+".co")
				r := runTool(t, dir, "clang-offload-bundler-22", "", "-unbundle", "-type=o", "-input=bundle", "-targets="+n.ID, "-output="+file)
				if info, err := os.Stat(file); r.Status != 0 || err != nil || info.Size() != int64(n.Size) {
					t.Fatalf("%s of %d bytes: clang-offload-bundler takes out %v, %v: %s", n.ID, n.Size, info, err, r.Stderr)
				}
				nested := program + "#" + n.Processor
				for _, what := range []string{"notes", "rows", "cfi", "expr"} {
					want, _, _ := unwindd(t, "dump", what, file)
					got, stderr, status := unwindd(t, "dump", what, nested)
					if status != 0 || got != want || want == "" {
						t.Errorf("dump %s %s: status %d, %s\n%.2000s, want\n%.2000s", what, n.ID, status, stderr, got, want)
					}
				}
				var addresses []string
				for _, a := range addressesOfFunctions(t, file) {
					addresses = append(addresses, fmt.Sprintf("%#x", a))
				}
				want := runTool(t, dir, "llvm-symbolizer-22", "", append([]string{"-e", file}, addresses...)...)
				got, stderr, status := unwindd(t, append([]string{"symbolize", "--obj", nested}, addresses...)...)
				if status != 0 || got != want.Stdout || !strings.Contains(got, "shapes.hip:") {
					t.Errorf("symbolize %s: status %d, %s\n%.2000s, of llvm-symbolizer\n%.2000s", n.ID, status, stderr, got, want.Stdout)
				}
			}
			if compared != 2 {
				t.Errorf("%d code objects for processors: %+v", compared, d.Nested)
			}
		})
	}
}
