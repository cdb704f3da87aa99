// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// linkTo makes a link of a name to an executable, in a folder of its own.
func linkTo(t *testing.T, name, target string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// toolPair is unwindd under a tool's name, and that tool under the same name.
func toolPair(t *testing.T, name, peer string) (ours, theirs string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return linkTo(t, name, self), linkTo(t, name, oracle.Tool(t, peer))
}

// A toolRun is what a tool printed and how it ended.
type toolRun struct {
	Stdout, Stderr string
	Status         int
}

func runTool(t *testing.T, dir, tool, stdin string, args ...string) toolRun {
	t.Helper()
	cmd := exec.Command(tool, args...)
	cmd.Dir = dir
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return toolRun{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// symbolizeSubjects are the builds of testdata/symbolize, in one folder.
func symbolizeSubjects(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs("../../engine/symbolize/testdata/subject.cc")
	if err != nil {
		t.Fatal(err)
	}
	return oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"g++", "-O2", "-g", "-o", "gcc", source},
		{"g++", "-O0", "-gdwarf-4", "-o", "plain", source},
		{"clang++", "-O2", "-g", "-fdebug-info-for-profiling", "-o", "clang", source},
		{"strip", "-g", "-o", "symbols", "gcc"},
		{"strip", "-o", "stripped", "gcc"},
		{"cp", "gcc", "with blank"},
		{"mkdir", "folder"},
		{"touch", "empty"},
	}}.Make(t)
}

// addressesOfText are addresses in a file's .text, every step bytes.
func addressesOfText(t *testing.T, path string, step uint64) []uint64 {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	var list []uint64
	for a := text.Addr; a < text.Addr+text.Size; a += step {
		list = append(list, a)
	}
	return list
}

func linesOf(format string, addresses []uint64) string {
	var b strings.Builder
	for _, a := range addresses {
		fmt.Fprintf(&b, format+"\n", a)
	}
	return b.String()
}

// inlinedAddress finds an address with two inlined calls or more in the subject.
func inlinedAddress(t *testing.T, dir, symbolizer string) uint64 {
	t.Helper()
	addresses := addressesOfText(t, filepath.Join(dir, "gcc"), 1)
	out := runTool(t, dir, symbolizer, linesOf("%#x", addresses), "-e", "gcc")
	for i, answer := range strings.Split(out.Stdout, "\n\n") {
		if strings.Count(answer, "\n") >= 5 && strings.Contains(answer, "\nentry\n") {
			return addresses[i]
		}
	}
	t.Fatal("no address has inlined calls")
	return 0
}

// startFile is a line of --verbose. llvm-symbolizer has "<invalid>" in it where it
// does not know the file and leaves out inlined calls.
var startFile = regexp.MustCompile(`(?m)^  Function start filename: .*$`)

func compareTools(t *testing.T, dir, ours, theirs string, args ...string) {
	t.Helper()
	want, got := runTool(t, dir, theirs, "", args...), runTool(t, dir, ours, "", args...)
	for r, tool := range map[*toolRun]string{&want: theirs, &got: ours} {
		r.Stdout = startFile.ReplaceAllString(r.Stdout, "")
		r.Stderr = strings.TrimSuffix(strings.ReplaceAll(r.Stderr, tool, "tool"), "\n")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v: (-theirs +ours)\n%.3000s", args, diff)
	}
}

func TestOptionsEqualLLVMSymbolizer(t *testing.T) {
	long(t)
	dir := symbolizeSubjects(t)
	ours, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	a := fmt.Sprintf("%#x", inlinedAddress(t, dir, theirs))
	if err := os.WriteFile(filepath.Join(dir, "response"), []byte("-e \"with blank\" "+a), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-e", "gcc", a}, {"-e=gcc", a}, {"-egcc", a}, {"--obj", "gcc", a}, {"--exe=gcc", a}, {"-pie", "gcc", a}, {"-sfCpi", "-e", "gcc", a},
		{"gcc " + a, "0x2"}, {"gcc", a}, {"-e", "plain", "-e", "gcc", a}, {"-e", "gcc", "-demangle=false", a}, {"@response"}, {"@missing"},
		{"-e", "missing", "1"}, {"-e", "missing", "1", "--output-style=JSON"}, {"-e", "folder", "1"}, {"-e", "empty", "1"},
		{"--unknown", "1"}, {"-e"}, {"-e", "gcc", "--"}, {"-e", "gcc", "-x"}, {"-inlining=false", "-e", "gcc", "1"},
		{"--inlining=false", "-e", "gcc", a}, {"--output-style=other", "-e", "gcc", a}, {"--functions=other", "-e", "gcc", a},
		{"--build-id=abcd", "1"}, {"--build-id=abcd", "-e", "gcc", "1"}, {"-e", "gcc", a, "", "entry"},
		{"-e", "gcc", "--print-source-context-lines", "2", a, "--output-style", "JSON"}, {"-e", "gcc", a, "entry", "zzz", "--output-style=JSON", "-p"},
		{"--adjust-vma=0x10", "-e", "gcc", "-a", a},
		{"-e", "gcc", "--functions=linkage", "--inlining=true", "--default-arch=x86_64", a}, {"-e", "gcc", "-f=none", a}, {"-e", "gcc", "-ap", "-f=short", a},
	} {
		compareTools(t, dir, ours, theirs, args...)
	}
	// The package of split units is where --dwp says.
	dir = splitSubject(t)
	for _, file := range []string{"package", "missing"} {
		compareTools(t, dir, ours, theirs, "-e", "split", "--dwp", file, "entry")
	}
	self, _ := os.Executable()
	want := runTool(t, dir, ours, "", "-e", "split", "--dwp=package", "entry")
	if got := runTool(t, dir, self, "", "symbolize", "--obj", "split", "--dwp", "package", "entry"); got != want || !strings.Contains(got.Stdout, "subject.cc:") {
		t.Errorf("symbolize --dwp: %+v, expected %+v", got, want)
	}
}

// splitSubject has a program whose split units are in a package.
func splitSubject(t *testing.T) (dir string) {
	t.Helper()
	source, err := filepath.Abs("../../engine/symbolize/testdata/subject.cc")
	if err != nil {
		t.Fatal(err)
	}
	return oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"clang++", "-O2", "-gdwarf-5", "-gsplit-dwarf", "-o", "split", source},
		{"llvm-dwp-22", "-e", "split", "-o", "package"},
		{"sh", "-c", "rm *.dwo"},
	}}.Make(t)
}

func TestErrorsEqualAddr2line(t *testing.T) {
	dir := symbolizeSubjects(t)
	ours, theirs := toolPair(t, "addr2line", "addr2line")
	for _, args := range [][]string{
		{"-e", "missing", "1"}, {"-e", "folder", "1"}, {"-j", ".none", "-e", "plain", "1"}, {"1"}, {"-Q"}, {"-e"}, {"--fo"},
		{"--func", "--exe", "plain", "1"}, {"-e", "plain", "--inl", "1"}, {"1", "-f", "-e", "plain"}, {"-eplain", "--", "1"},
	} {
		want, got := runTool(t, dir, theirs, "", args...), runTool(t, dir, ours, "", args...)
		for r, tool := range map[*toolRun]string{&want: theirs, &got: ours} {
			r.Stderr, _, _ = strings.Cut(strings.ReplaceAll(r.Stderr, tool, "addr2line"), "\nUsage")
			r.Stderr = strings.TrimSuffix(r.Stderr, "\n")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v: (-addr2line +ours)\n%s", args, diff)
		}
	}
}

// The command itself has the styles and its own flags.
func TestSymbolizeCommand(t *testing.T) {
	dir := symbolizeSubjects(t)
	_, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	a := inlinedAddress(t, dir, theirs)
	address, bare := fmt.Sprintf("%#x", a), fmt.Sprintf("%x", a)
	symbolize := func(args ...string) toolRun {
		cmd := command(append([]string{"symbolize"}, args...)...)
		return runTool(t, dir, cmd.Path, "", append([]string{"symbolize"}, args...)...)
	}
	for _, c := range []struct{ ours, theirs []string }{
		{[]string{"--obj", "gcc", address}, []string{"-e", "gcc", address}},
		{[]string{"--obj", "gcc", fmt.Sprint(a)}, []string{"-e", "gcc", fmt.Sprint(a)}}, // decimal
		{[]string{"--obj", "gcc", "--no-demangle", address}, []string{"-e", "gcc", "--no-demangle", address}},
		{[]string{"--obj", "gcc", "--no-inlines", address}, []string{"-e", "gcc", "--no-inlines", address}},
		{[]string{"--obj", "gcc", "--output-style", "json", address}, []string{"-e", "gcc", "--output-style=JSON", address}},
		{[]string{"--obj", "gcc", "--format", "json", address}, []string{"-e", "gcc", "--output-style=JSON", address}},
		{[]string{"gcc " + address}, []string{"gcc " + address}},
	} {
		want, got := runTool(t, dir, theirs, "", c.theirs...), symbolize(c.ours...)
		if w, g := startFile.ReplaceAllString(want.Stdout, ""), startFile.ReplaceAllString(got.Stdout, ""); g != w || got.Status != 0 {
			t.Errorf("%v: status %d\n%s\nwant\n%s", c.ours, got.Status, g, w)
		}
	}
	// GNU style reads bare numbers as hexadecimal.
	want := runTool(t, dir, "addr2line", "", "-afiCe", "plain", bare)
	got := symbolize("--obj", "plain", "--output-style", "gnu", "-a", bare)
	if got.Stdout != want.Stdout {
		t.Errorf("gnu: %s\nwant %s", got.Stdout, want.Stdout)
	}
	// What was looked for is told on standard error.
	if got := symbolize("--obj", "stripped", "-v", address); !strings.Contains(got.Stderr, "/usr/lib/debug/.build-id/") {
		t.Errorf("-v says\n%s", got.Stderr)
	}
	if got := symbolize("--obj", "missing", "1"); got.Status != exitInput || !strings.Contains(got.Stderr, "'missing': No such file or directory") {
		t.Errorf("a missing file: %+v", got)
	}
	if got := symbolize("--obj", "gcc", "--output-style", "odd", "1"); got.Status != exitUsage {
		t.Errorf("an unknown style: %+v", got)
	}
}

// A program that the address sanitizer stops prints its stacks through us.
func TestAddressSanitizerUsesUs(t *testing.T) {
	source, err := filepath.Abs("../../engine/symbolize/testdata/overflow.cc")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if out, err := exec.Command(oracle.Tool(t, "g++"), "-O1", "-g", "-fsanitize=address", "-o", filepath.Join(dir, "overflow"), source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ours, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	report := func(symbolizer string) string {
		cmd := exec.Command(filepath.Join(dir, "overflow"))
		cmd.Env = append(os.Environ(), "ASAN_SYMBOLIZER_PATH="+symbolizer)
		out, err := cmd.CombinedOutput()
		if err == nil {
			t.Fatal("the program was not stopped")
		}
		return regexp.MustCompile(`0x[0-9a-f]+|==[0-9]+==`).ReplaceAllString(string(out), "")
	}
	want, got := report(theirs), report(ours)
	for _, line := range []string{"in inner(int*, int)", "in outer(int*, int) ", "overflow.cc:9", "overflow.cc:13"} {
		if !strings.Contains(got, line) {
			t.Errorf("the report has no %q:\n%s", line, got)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-llvm-symbolizer +ours)\n%s", diff)
	}
}
