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
	"github.com/unwindd/unwindd/internal/proof"
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
	source, err := filepath.Abs("testdata/symbolize/subject.cc")
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

var styles = []string{"LLVM", "GNU", "JSON"}

// questionsOfProtocol are lines of the protocol, right and wrong ones. A is for
// an address with inlined calls, in hexadecimal.
const questionsOfProtocol = `gcc 0xA
"gcc" 0xA
'with blank' 0xA
"with blank" 0xA
CODE gcc 0xA
FILE:gcc 0xA
FILE:"gcc" 0xA
FILE: gcc 0xA
BUILDID:abcd 0x1
BUILDID:zz 0x1
FILE:FILE:gcc 0x1
FILE:BUILDID:gcc 0x1
FILE:
BUILDID:

gcc
gcc 
gcc zzz
gcc entry
gcc entry+4
gcc entry+0x4
gcc entry+zz
gcc +4
gcc -1
gcc _ZN2ns3boxIiE3getEi
missing 0x1
missing 0x2
missing name
DATA missing 0x1
empty 0x1
folder 0x1
"gcc 0x1
"gcc"1
"" 1
gcc 11c0
gcc 08
gcc 0x
gcc 010700
gcc 0b11
gcc 0xA extra
  gcc   0xA  
gcc	0xA
CODE 
CODE
DATA
gcc 0xfffffffffffffffff
DATA gcc 0x1
stripped 0xA
symbols 0xA`

func TestProtocolEqualsLLVMSymbolizer(t *testing.T) {
	long(t)
	dir := symbolizeSubjects(t)
	ours, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	inlined := inlinedAddress(t, dir, theirs)
	questions := strings.ReplaceAll(questionsOfProtocol, "0xA", fmt.Sprintf("%#x", inlined))
	options := []string{
		"", "-a", "-p", "-ap", "-s", "--no-inlines", "--no-demangle", "-f=none", "-f=short", "--relativenames",
		"--print-source-context-lines=3", "--functions=linkage --inlining=true --default-arch=x86_64",
	}
	for _, style := range styles {
		for _, option := range options {
			t.Run(style+" "+option, func(t *testing.T) {
				args := append([]string{"--output-style=" + style}, strings.Fields(option)...)
				q := questions
				if strings.Contains(option, "a") && strings.HasPrefix(option, "-a") {
					// It prints the address of an earlier question before an error.
					q = regexp.MustCompile(`(?m)^gcc (08|0x|11c0|0xf+)$\n`).ReplaceAllString(q, "")
				}
				compareTools(t, dir, ours, theirs, q, args...)
			})
		}
	}
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

func compareTools(t *testing.T, dir, ours, theirs, stdin string, args ...string) {
	t.Helper()
	want, got := runTool(t, dir, theirs, stdin, args...), runTool(t, dir, ours, stdin, args...)
	for r, tool := range map[*toolRun]string{&want: theirs, &got: ours} {
		r.Stdout = startFile.ReplaceAllString(r.Stdout, "")
		r.Stderr = strings.TrimSuffix(strings.ReplaceAll(r.Stderr, tool, "tool"), "\n")
	}
	got.Stdout = withTheirNames(want.Stdout, got.Stdout)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v: (-theirs +ours)\n%.3000s", args, diff)
	}
}

var (
	positionLine = regexp.MustCompile(`:\d+$`)
	functionName = regexp.MustCompile(`"(?:Function|Linkage)Name":"(?:[^"\\]|\\.)*"`)
)

// withTheirNames takes names of C++ that the library demangles otherwise from the other
// tool's output: a few names at most (docs/differences.md).
func withTheirNames(theirs, ours string) string {
	a, b := strings.Split(theirs, "\n"), strings.Split(ours, "\n")
	if len(a) != len(b) {
		return ours
	}
	names := map[string]bool{}
	for i := range b {
		isJSON := strings.HasPrefix(a[i], "{")
		switch {
		case a[i] == b[i]:
			continue
		case isJSON && functionName.ReplaceAllString(a[i], "") == functionName.ReplaceAllString(b[i], ""):
			mine := functionName.FindAllString(b[i], -1)
			for j, name := range functionName.FindAllString(a[i], -1) {
				names[name] = names[name] || name != mine[j]
			}
		case !isJSON && !positionLine.MatchString(a[i]) && strings.Contains(b[i], "(") && (strings.Contains(a[i], "(") || strings.Contains(a[i], "_Z")):
			names[a[i]] = true
		default:
			return ours
		}
		b[i] = a[i]
	}
	differ := 0
	for _, isOther := range names {
		if isOther {
			differ++
		}
	}
	if differ > 4 {
		return ours
	}
	return strings.Join(b, "\n")
}

// Three programs, in every style, with inlined calls and without: every third
// byte of them, and every byte where time does not count.
func TestAddressesEqualLLVMSymbolizer(t *testing.T) {
	long(t)
	dir := symbolizeSubjects(t)
	ours, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	step := uint64(3)
	if proof.IsAsked() {
		step = 1
	}
	for _, file := range []string{"gcc", "plain", "clang", "symbols", "stripped"} {
		questions := linesOf("%#x", addressesOfText(t, filepath.Join(dir, file), step))
		for _, style := range styles {
			for _, option := range []string{"-i", "--no-inlines", "--verbose", "-f=short"} {
				t.Run(file+" "+style+" "+option, func(t *testing.T) {
					compareTools(t, dir, ours, theirs, questions, "--output-style="+style, "-e", file, option)
				})
			}
		}
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
	} {
		compareTools(t, dir, ours, theirs, "", args...)
	}
}

func TestAddressesEqualAddr2line(t *testing.T) {
	long(t)
	dir := symbolizeSubjects(t)
	ours, theirs := toolPair(t, "addr2line", "addr2line")
	// Of DWARF 5 it takes wrong files, and of stripped ones it tells symbols
	// that have ended: what is compared is DWARF 4, where functions are.
	questions := linesOf("%x", addressesOfText(t, filepath.Join(dir, "plain"), 5))
	extra := "\nzz\n7\n10 trailing\n  10\n12g\nffffffffffffffff\n99999999999999999999999\n"
	for _, options := range []string{"", "-a", "-f", "-i", "-s", "-C", "-p", "-fi", "-fip", "-fipa", "-fisC", "-fCp", "-j .text -f"} {
		t.Run(options, func(t *testing.T) {
			args := append([]string{"-e", "plain"}, strings.Fields(options)...)
			q := questions
			if strings.Contains(options, "-j") {
				q = "0\n10\n100\n999999\n"
			}
			want, got := runTool(t, dir, theirs, q+extra, args...), runTool(t, dir, ours, q+extra, args...)
			differ, total := 0, 0
			wants, gots := strings.Split(want.Stdout, "\n"), strings.Split(got.Stdout, "\n")
			if len(wants) != len(gots) {
				t.Fatalf("%d lines, want %d", len(gots), len(wants))
			}
			for i := range wants {
				total++
				if wants[i] != gots[i] {
					if differ++; differ <= 5 {
						t.Logf("line %d: %q, want %q", i+1, gots[i], wants[i])
					}
				}
			}
			if differ > total/100 || want.Status != got.Status {
				t.Errorf("%d of %d lines differ; status %d, want %d", differ, total, got.Status, want.Status)
			}
		})
	}
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

// Separate debug files are found by build ID, by link beside the file, and where
// --debug-dir says.
func TestSymbolizeFindsDebugFiles(t *testing.T) {
	dir := symbolizeSubjects(t)
	_, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	address := fmt.Sprintf("%#x", inlinedAddress(t, dir, theirs))
	whole := runTool(t, dir, theirs, "", "-e", "gcc", address).Stdout
	for name, script := range map[string]string{
		"link":           "cp $GCC x && objcopy --only-keep-debug x x.debug && strip -g x && objcopy --add-gnu-debuglink=x.debug x",
		"link in .debug": "cp $GCC x && objcopy --only-keep-debug x x.debug && strip -g x && objcopy --add-gnu-debuglink=x.debug x && mkdir .debug && mv x.debug .debug",
		"--debug-dir":    `cp $GCC x && id=$(readelf -n x | sed -n 's/.*Build ID: //p') && d=dir/.build-id/$(echo $id | cut -c1-2) && mkdir -p $d && objcopy --only-keep-debug x $d/$(echo $id | cut -c3-).debug && strip -g x`,
		"compressed":     "cp $GCC x && objcopy --only-keep-debug --compress-debug-sections=zlib x x.debug && strip -g x && objcopy --add-gnu-debuglink=x.debug x",
	} {
		t.Run(name, func(t *testing.T) {
			sub := t.TempDir()
			cmd := exec.Command("sh", "-ec", "mkdir dir && "+script)
			cmd.Dir = sub
			cmd.Env = append(os.Environ(), "GCC="+filepath.Join(dir, "gcc"))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			self, _ := os.Executable()
			got := runTool(t, sub, self, "", "symbolize", "--obj", "x", "--debug-dir", "dir", "-v", address)
			if got.Stdout != whole {
				t.Errorf("%s%s\nwant\n%s", got.Stdout, got.Stderr, whole)
			}
			if !strings.Contains(got.Stderr, ": taken") {
				t.Errorf("-v says\n%s", got.Stderr)
			}
		})
	}
}

// Every variable, and the frame of every fifth byte of the code. The reader knows
// more of split files and of types in units of their own than llvm-symbolizer,
// which is asked of the same program without them.
func TestDataAndFramesEqualLLVMSymbolizer(t *testing.T) {
	long(t)
	source, err := filepath.Abs("../../engine/symbol/dwarf/testdata/variables.cc")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	build := func(name, command string) {
		cmd := exec.Command("sh", "-c", command+" -o "+name+" "+source)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
	}
	ours, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	for _, c := range []struct{ name, command, form string }{
		{"gcc5", "g++ -O0 -g", ""}, {"gcc4", "g++ -O0 -gdwarf-4", ""}, {"gcc2", "g++ -O2 -g", ""},
		{"clang0", "clang++ -O0 -gdwarf-5", "-gsplit-dwarf"}, {"clang2", "clang++ -O2 -gdwarf-5 -gpubnames", ""},
		{"aranges", "clang++ -O1 -gdwarf-4 -gdwarf-aranges", ""}, {"types", "clang++ -O0 -gdwarf-5", "-fdebug-types-section"},
	} {
		build(c.name, c.command)
		whole := c.name
		if c.form != "" {
			c.name += "-form"
			build(c.name, c.command+" "+c.form)
		}
		questions := linesOf("FRAME %#x", addressesOfText(t, filepath.Join(dir, whole), 5)) +
			linesOf("DATA %#x", addressesOfVariables(t, filepath.Join(dir, whole))) + "DATA plain\nFRAME main\nDATA 1\nFRAME 1\n"
		for _, style := range styles {
			t.Run(c.name+" "+style, func(t *testing.T) {
				want := runTool(t, dir, theirs, questions, "--output-style="+style, "-e", whole)
				got := runTool(t, dir, ours, questions, "--output-style="+style, "-e", c.name)
				got.Stdout = strings.ReplaceAll(got.Stdout, c.name, whole)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("(-llvm-symbolizer +ours)\n%.3000s", diff)
				}
				if strings.Count(want.Stdout, "variables.cc") < 100 && style != "JSON" {
					t.Errorf("llvm-symbolizer tells little:\n%.1000s", want.Stdout)
				}
			})
		}
	}
}

// addressesOfVariables are addresses in the variables of a file's symbol table.
func addressesOfVariables(t *testing.T, path string) (list []uint64) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_OBJECT && s.Size > 0 && s.Section < elf.SHN_LORESERVE && !strings.Contains(s.Name, "@") {
			list = append(list, s.Value, s.Value+1, s.Value+s.Size/2, s.Value+s.Size-1)
		}
	}
	if len(list) < 60 {
		t.Fatalf("%d addresses of variables", len(list))
	}
	return list
}

// The package of split units is where --dwp says.
func TestPackageEqualsLLVMSymbolizer(t *testing.T) {
	oracle.Tools(t, "clang++", "llvm-dwp-22")
	source, err := filepath.Abs("testdata/symbolize/subject.cc")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range []string{
		"clang++ -O2 -gdwarf-5 -gsplit-dwarf -o split " + source, "llvm-dwp-22 -e split -o package", "rm *.dwo",
	} {
		cmd := exec.Command("sh", "-c", c)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
	ours, theirs := toolPair(t, "llvm-symbolizer", "llvm-symbolizer-22")
	questions := linesOf("%#x", addressesOfText(t, filepath.Join(dir, "split"), 3))
	compareTools(t, dir, ours, theirs, questions, "-e", "split", "--dwp=package")
	compareTools(t, dir, ours, theirs, questions, "-e", "split", "--dwp", "missing")
	self, _ := os.Executable()
	with := runTool(t, dir, ours, questions, "-e", "split", "--dwp=package").Stdout
	without := runTool(t, dir, ours, questions, "-e", "split").Stdout
	if got := runTool(t, dir, self, questions, "symbolize", "--obj", "split", "--dwp", "package").Stdout; got != with || got == without {
		t.Errorf("symbolize --dwp prints what it prints without: %v; what llvm-symbolizer --dwp does: %v", got == without, got == with)
	}
}

// A program that the address sanitizer stops prints its stacks through us.
func TestAddressSanitizerUsesUs(t *testing.T) {
	source, err := filepath.Abs("testdata/symbolize/overflow.cc")
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
