// SPDX-License-Identifier: Apache-2.0

package symbolize

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// long leaves comparisons of whole programs out of -short, which is how the race detector
// runs.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: run without -short")
	}
}

// answers are what was printed of questions.
type answers struct {
	Stdout, Stderr string
	Failed         bool
}

// askTool asks another tool, under the name tool, in the working directory.
func askTool(t *testing.T, tool, questions string, args ...string) answers {
	t.Helper()
	cmd := exec.Command(oracle.Tool(t, tool), args...)
	cmd.Args[0] = "tool"
	cmd.Stdin = strings.NewReader(questions)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return answers{stdout.String(), stderr.String(), err != nil}
}

// options are what options of llvm-symbolizer say, or of unwindd symbolize.
var options = map[string]func(*Session){
	"":                               func(*Session) {},
	"-i":                             func(s *Session) { s.Inlines = true },
	"--no-inlines":                   func(s *Session) { s.Inlines = false },
	"-a":                             func(s *Session) { s.Output.Addresses = true },
	"-p":                             func(s *Session) { s.Output.Pretty = true },
	"-s":                             func(s *Session) { s.Output.Paths = BaseNames },
	"--relativenames":                func(s *Session) { s.Output.Paths = RelativePaths },
	"--no-demangle":                  func(s *Session) { s.Output.Demangle = false },
	"-f=none":                        func(s *Session) { s.Output.Functions = NoNames },
	"-f=short":                       func(s *Session) { s.Output.Functions = ShortNames },
	"--verbose":                      func(s *Session) { s.Output.Verbose = true },
	"--print-source-context-lines=3": func(s *Session) { s.Output.Context = 3 },
	"--output-style=LLVM":            func(s *Session) { s.Output.Style = StyleLLVM },
	"--output-style=GNU":             func(s *Session) { s.Output.Style = StyleLLVMGNU },
	"--output-style=JSON":            func(s *Session) { s.Output.Style = StyleJSON },
	"--output-style=gnu":             func(s *Session) { s.Output.Style, s.Hex = StyleAddr2line, true },
}

// ask asks a session, with the options of a command line. The questions are arguments, or
// read.
func (o Options) ask(t *testing.T, s *Session, words []string, questions []string, input string) (a answers) {
	t.Helper()
	s.Symbolizer = New(o)
	defer s.Symbolizer.Close()
	s.Tool, s.Inlines, s.Output = "tool", true, WriterOptions{Demangle: true}
	for _, word := range words {
		options[word](s)
	}
	var stdout, stderr strings.Builder
	s.Message = func(text string) { fmt.Fprintln(&stderr, text) }
	err := s.Run(&stdout, questions, strings.NewReader(input))
	return answers{stdout.String(), stderr.String(), err != nil}
}

// subjects are the builds of testdata/subject.cc, in one folder.
func subjects(t *testing.T) string {
	t.Helper()
	source, err := filepath.Abs("testdata/subject.cc")
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
	t.Chdir(subjects(t))
	questions := strings.ReplaceAll(questionsOfProtocol, "0xA", fmt.Sprintf("%#x", inlinedAddress(t)))
	for _, style := range styles {
		for _, option := range []string{
			"", "-a", "-p", "-a -p", "-s", "--no-inlines", "--no-demangle", "-f=none", "-f=short", "--relativenames", "--print-source-context-lines=3",
		} {
			t.Run(style+" "+option, func(t *testing.T) {
				q := questions
				if strings.HasPrefix(option, "-a") {
					// It prints the address of an earlier question before an error.
					q = regexp.MustCompile(`(?m)^gcc (08|0x|11c0|0xf+)$\n`).ReplaceAllString(q, "")
				}
				compare(t, Options{}, "", q, append([]string{"--output-style=" + style}, strings.Fields(option)...)...)
			})
		}
	}
}

// inlinedAddress finds an address with two inlined calls or more in the subject.
func inlinedAddress(t *testing.T) uint64 {
	t.Helper()
	s := New(Options{})
	defer s.Close()
	f, err := s.Open("gcc")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addressesOfText(t, "gcc", 1) {
		if frames := f.FramesLLVM(nil, a, true); len(frames) >= 3 && frames[len(frames)-1].Name == "entry" {
			return a
		}
	}
	t.Fatal("no address has inlined calls")
	return 0
}

// startFile is a line of --verbose. llvm-symbolizer has "<invalid>" in it where it
// does not know the file and leaves out inlined calls.
var startFile = regexp.MustCompile(`(?m)^  Function start filename: .*$`)

// compare holds a session against llvm-symbolizer. The object is that of all questions; "":
// each names its own. More arguments are of that tool, where the options are of a Symbolizer.
func compare(t *testing.T, o Options, object, questions string, words ...string) {
	t.Helper()
	args := words
	if object != "" {
		args = append(args[:len(args):len(args)], "-e", object)
	}
	if o.Package != "" {
		args = append(args[:len(args):len(args)], "--dwp="+o.Package)
	}
	want, got := askTool(t, "llvm-symbolizer-22", questions, args...), o.ask(t, &Session{Object: object}, words, nil, questions)
	for _, a := range []*answers{&want, &got} {
		a.Stdout = startFile.ReplaceAllString(a.Stdout, "")
		a.Stderr = strings.TrimSuffix(a.Stderr, "\n")
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
	t.Chdir(subjects(t))
	step := uint64(3)
	if proof.IsRequested() {
		step = 1
	}
	for _, file := range []string{"gcc", "plain", "clang", "symbols", "stripped"} {
		questions := linesOf("%#x", addressesOfText(t, file, step))
		for _, style := range styles {
			for _, option := range []string{"-i", "--no-inlines", "--verbose", "-f=short"} {
				t.Run(file+" "+style+" "+option, func(t *testing.T) {
					compare(t, Options{}, file, questions, "--output-style="+style, option)
				})
			}
		}
	}
}

func TestAddressesEqualAddr2line(t *testing.T) {
	long(t)
	t.Chdir(subjects(t))
	// Of DWARF 5 it takes wrong files, and of stripped ones it tells symbols
	// that have ended: what is compared is DWARF 4, where functions are.
	questions := linesOf("%x", addressesOfText(t, "plain", 5))
	extra := "\nzz\n7\n10 trailing\n  10\n12g\nffffffffffffffff\n99999999999999999999999\n"
	letters := map[rune]func(*Addr2line){
		'a': func(l *Addr2line) { l.Output.Addresses = true }, 'f': func(l *Addr2line) { l.Output.Functions = LinkageNames },
		'i': func(l *Addr2line) { l.Inlines = true }, 's': func(l *Addr2line) { l.Output.Paths = BaseNames },
		'C': func(l *Addr2line) { l.Output.Demangle = true }, 'p': func(l *Addr2line) { l.Output.Pretty = true },
	}
	for _, word := range []string{"", "a", "f", "i", "s", "C", "p", "fi", "fip", "fipa", "fisC", "fCp", "j .text"} {
		t.Run(word, func(t *testing.T) {
			l := Addr2line{File: "plain", Symbolizer: New(Options{}), Output: WriterOptions{Style: StyleAddr2line, Functions: NoNames}}
			defer l.Symbolizer.Close()
			args, q := []string{"-e", "plain"}, questions+extra
			if word == "j .text" {
				l.Section, word = ".text", "f"
				args, q = append(args, "-j", l.Section), "0\n10\n100\n999999\n"+extra
			}
			for _, letter := range word {
				letters[letter](&l)
				args = append(args, "-"+string(letter))
			}
			want := askTool(t, "addr2line", q, args...)
			var out strings.Builder
			if err := l.Run(&out, nil, strings.NewReader(q)); err != nil {
				t.Fatal(err)
			}
			differ, total := 0, 0
			wants, gots := strings.Split(want.Stdout, "\n"), strings.Split(out.String(), "\n")
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
			if differ > total/100 || want.Failed {
				t.Errorf("%d of %d lines differ; %s", differ, total, want.Stderr)
			}
		})
	}
}

// Separate debug files are found by build ID, by link beside the file, and where
// the caller says.
func TestDebugFilesAreFound(t *testing.T) {
	dir := subjects(t)
	t.Chdir(dir)
	address := fmt.Sprintf("%#x", inlinedAddress(t))
	whole := askTool(t, "llvm-symbolizer-22", "", "-e", "gcc", address).Stdout
	for name, script := range map[string]string{
		"link":           "cp $GCC x && objcopy --only-keep-debug x x.debug && strip -g x && objcopy --add-gnu-debuglink=x.debug x",
		"link in .debug": "cp $GCC x && objcopy --only-keep-debug x x.debug && strip -g x && objcopy --add-gnu-debuglink=x.debug x && mkdir .debug && mv x.debug .debug",
		"by build ID":    `cp $GCC x && id=$(readelf -n x | sed -n 's/.*Build ID: //p') && d=dir/.build-id/$(echo $id | cut -c1-2) && mkdir -p $d && objcopy --only-keep-debug x $d/$(echo $id | cut -c3-).debug && strip -g x`,
		"compressed":     "cp $GCC x && objcopy --only-keep-debug --compress-debug-sections=zlib x x.debug && strip -g x && objcopy --add-gnu-debuglink=x.debug x",
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			oracle.With{Env: []string{"GCC=" + filepath.Join(dir, "gcc")}}.Run(t, "sh", "-ec", "mkdir dir && "+script)
			var log strings.Builder
			o := Options{DebugDirs: []string{"dir"}, Log: func(text string) { fmt.Fprintln(&log, text) }}
			if got := o.ask(t, &Session{Object: "x"}, nil, []string{address}, ""); got.Stdout != whole {
				t.Errorf("%s%s\nwant\n%s", got.Stdout, got.Stderr, whole)
			}
			if !strings.Contains(log.String(), ": taken") {
				t.Errorf("the log says\n%s", log.String())
			}
		})
	}
}

// Every variable, and the frame of every fifth byte of the code. The reader knows
// more of split files and of types in units of their own than llvm-symbolizer,
// which is asked of the same program without them.
func TestDataAndFramesEqualLLVMSymbolizer(t *testing.T) {
	long(t)
	source, err := filepath.Abs("../internal/symbol/dwarf/testdata/variables.cc")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	build := func(name, command string) {
		words := strings.Fields(command + " -o " + name + " " + source)
		oracle.Run(t, words[0], words[1:]...)
	}
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
		questions := linesOf("FRAME %#x", addressesOfText(t, whole, 5)) +
			linesOf("DATA %#x", addressesOfVariables(t, whole)) + "DATA plain\nFRAME main\nDATA 1\nFRAME 1\n"
		for _, style := range styles {
			t.Run(c.name+" "+style, func(t *testing.T) {
				word := "--output-style=" + style
				want := askTool(t, "llvm-symbolizer-22", questions, word, "-e", whole)
				got := Options{}.ask(t, &Session{Object: c.name}, []string{word}, nil, questions)
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

// The package of split units is where the caller says.
func TestPackageEqualsLLVMSymbolizer(t *testing.T) {
	oracle.Tools(t, "clang++", "llvm-dwp-22")
	source, err := filepath.Abs("testdata/subject.cc")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	oracle.Run(t, "clang++", "-O2", "-gdwarf-5", "-gsplit-dwarf", "-o", "split", source)
	oracle.Run(t, "llvm-dwp-22", "-e", "split", "-o", "package")
	oracle.Run(t, "sh", "-c", "rm *.dwo")
	questions := linesOf("%#x", addressesOfText(t, "split", 3))
	for _, file := range []string{"package", "missing"} {
		compare(t, Options{Package: file}, "split", questions)
	}
	with, without := Options{Package: "package"}.ask(t, &Session{Object: "split"}, nil, nil, questions), Options{}.ask(t, &Session{Object: "split"}, nil, nil, questions)
	if with == without {
		t.Error("the package changes nothing")
	}
}
