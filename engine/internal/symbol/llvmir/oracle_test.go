// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/internal/oracle"
)

// A sample is a module that a compiler wrote.
type sample struct {
	name    string
	version string // of the LLVM that reads it
	text    []byte
	bitcode func(testing.TB) string
}

var versions = []string{"14", "15", "22"}

// rustLLVM is the LLVM that reads what rustc writes.
func rustLLVM(t testing.TB) string {
	t.Helper()
	found := regexp.MustCompile(`LLVM version: (\d+)`).FindStringSubmatch(oracle.Run(t, "rustc", "-vV"))
	if found == nil {
		t.Fatal("rustc -vV does not say which LLVM it has")
	}
	for _, v := range versions {
		a, _ := strconv.Atoi(found[1])
		if b, _ := strconv.Atoi(v); a <= b {
			return v
		}
	}
	return versions[len(versions)-1]
}

var compiled struct {
	once sync.Once
	list []sample
}

// samples are the modules of the corpus, and those that the compilers at hand
// make of testdata.
func samples(t testing.TB) []sample {
	t.Helper()
	oracle.Tools(t, "rustc")
	for _, v := range versions {
		oracle.Tools(t, "clang-"+v, "llvm-as-"+v, "llvm-dis-"+v, "llc-"+v)
	}
	modules := oracle.Beside(t, "corpus/llvmir/*.ll")
	compiled.once.Do(func() {
		add := func(name, version string, text []byte) {
			s := sample{name: name, version: version, text: text}
			var once sync.Once
			var bitcode string
			s.bitcode = func(t testing.TB) string {
				once.Do(func() { bitcode = oracle.With{Input: string(text)}.Run(t, "llvm-as-"+version, "-o", "-") })
				return bitcode
			}
			compiled.list = append(compiled.list, s)
		}
		for _, path := range modules {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			version := strings.TrimPrefix(strings.Split(filepath.Base(path), ".")[2], "clang")
			if version == "13" {
				version = "14"
			}
			add(filepath.Base(path), version, text)
		}
		for _, v := range versions {
			for _, c := range []struct {
				source string
				flags  []string
			}{
				{"shapes.c", []string{"-O0"}}, {"shapes.c", []string{"-O1"}}, {"shapes.c", []string{"-O2", "-g3", "-fdebug-macro"}},
				{"shapes.cpp", []string{"-O0", "-std=c++17"}}, {"shapes.cpp", []string{"-O2", "-std=c++17"}},
				{"shapes.cpp", []string{"-O1", "-std=c++17", "-gmlt"}},
				{"shapes.m", []string{"-O0", "-target", "x86_64-apple-macosx10.15"}},
				{"shapes.c", []string{"-O2", "-gembed-source", "-gdwarf-5"}},
			} {
				args := append([]string{"-g", "-S", "-emit-llvm", "-o", "-", "testdata/" + c.source}, c.flags...)
				add(c.source+" by clang "+v+" "+strings.Join(c.flags, " "), v, []byte(oracle.Run(t, "clang-"+v, args...)))
			}
		}
		for _, flags := range [][]string{{}, {"-O"}} {
			out := filepath.Join(t.TempDir(), "shapes.ll")
			oracle.Run(t, "rustc", append([]string{"-g", "--emit=llvm-ir", "-o", out, "testdata/shapes.rs"}, flags...)...)
			text, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			add("shapes.rs "+strings.Join(flags, " "), rustLLVM(t), text)
		}
	})
	if len(compiled.list) == 0 {
		t.Fatal("there are no samples")
	}
	return compiled.list
}

// eachSample runs a test for every sample.
func eachSample(t *testing.T, f func(*testing.T, *sample, *Module)) {
	t.Helper()
	if testing.Short() {
		t.Skip("it compares one thread's work")
	}
	list := samples(t)
	for i := range list {
		s := &list[i]
		t.Run(s.name, func(t *testing.T) {
			m, err := Parse(s.name, s.text)
			if err != nil {
				t.Fatal(err)
			}
			f(t, s, m)
			if p := m.Problems(); len(p) > 0 {
				t.Errorf("problems: %q", p)
			}
		})
	}
}

// LLVM reads the module and prints it again: every node must be the same, with
// every field.
func TestNodesEqualLLVMs(t *testing.T) {
	kinds := map[string]int{}
	eachSample(t, func(t *testing.T, s *sample, m *Module) {
		var want []string
		for _, line := range strings.Split(oracle.With{Input: s.bitcode(t)}.Run(t, "llvm-dis-"+s.version, "-o", "-"), "\n") {
			if strings.HasPrefix(line, "!") && strings.Contains(line, " = ") {
				want = append(want, line)
			}
		}
		var got []string
		for n, err := range m.Nodes() {
			if err != nil {
				t.Fatal(err)
			}
			kinds[n.Kind]++
			got = append(got, n.ID+" = "+n.String())
		}
		if len(got) != len(want) || len(got) < 10 {
			t.Fatalf("%d nodes, LLVM has %d", len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("node %d:\n got %s\nwant %s", i, got[i], want[i])
			}
		}
	})
	t.Log(kinds)
	for i := range Kinds {
		switch k := &Kinds[i]; k.Name {
		case "DIExpression", "DIArgList": // they have no numbers
		default:
			if kinds[k.Name] == 0 {
				t.Errorf("no sample has a %s", k.Name)
			}
		}
	}
}

// An annotated instruction has its position and those it was inlined at behind
// it: [debug line = 2:44@3:80].
var (
	annotation    = regexp.MustCompile(`\[debug line = ([0-9:@]+)\]`)
	functionLine  = regexp.MustCompile(`^define .*?@("[^"]*"|[-\w$.]+)\(`)
	intrinsicCall = regexp.MustCompile(`^  (tail )?call void @llvm\.dbg\.`)
)

// annotated are the chains of positions of the instructions that LLVM prints, by
// function; "" for those without. LLVM prints an instruction on a line with two
// blanks before it, and continues it on lines with more.
func annotated(text string) map[string][]string {
	functions := map[string][]string{}
	name, skipped := "", false
	for _, line := range strings.Split(text, "\n") {
		switch found := functionLine.FindStringSubmatch(line); {
		case found != nil:
			name = strings.TrimPrefix(unquote([]byte(found[1])), "\x01")
			functions[name] = []string{}
		case name == "":
		case line == "}":
			name = ""
		case strings.HasPrefix(line, "  ") && strings.TrimSpace(line) != "":
			if line[2] != ' ' && line[2] != ']' {
				if skipped = intrinsicCall.MatchString(line); skipped {
					continue
				}
				functions[name] = append(functions[name], "")
			} else if skipped || strings.HasPrefix(strings.TrimSpace(line), "#dbg_") {
				continue
			}
			if a := annotation.FindStringSubmatch(line); a != nil {
				list := functions[name]
				list[len(list)-1] = a[1]
			}
		}
	}
	return functions
}

// chainText is a position as an annotation has it.
func chainText(p *symbol.Position) string {
	if p.Scopes[0] == "" {
		return ""
	}
	var parts []string
	for _, f := range p.Frames {
		parts = append(parts, fmt.Sprintf("%d:%d", f.Line, f.Column))
	}
	return strings.Join(parts, "@")
}

func TestPositionsOfEveryInstructionEqualLLVMs(t *testing.T) {
	located, inlined := 0, 0
	eachSample(t, func(t *testing.T, s *sample, m *Module) {
		want := annotated(oracle.With{Input: s.bitcode(t)}.Run(t, "llvm-dis-"+s.version, "--show-annotations", "-o", "-"))
		got := map[string][]string{}
		for _, f := range m.Functions() {
			got[f.Name()] = []string{}
		}
		for p := range m.Positions() {
			if p.Instruction != len(got[p.Function]) {
				t.Fatalf("instruction %d of %s follows %d", p.Instruction, p.Function, len(got[p.Function])-1)
			}
			chain := chainText(&p)
			got[p.Function] = append(got[p.Function], chain)
			if chain != "" {
				located++
			}
			if strings.Contains(chain, "@") {
				inlined++
			}
		}
		if a, b := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(a, b) || len(a) == 0 {
			t.Fatalf("functions %q, LLVM has %q", a, b)
		}
		for name := range want {
			if !slices.Equal(got[name], want[name]) {
				t.Errorf("%s:\n got %q\nwant %q", name, got[name], want[name])
			}
		}
	})
	t.Logf("%d instructions with positions, %d of inlined calls", located, inlined)
	if located < 3000 || inlined < 300 {
		t.Errorf("%d instructions with positions and %d of inlined calls are too few to tell", located, inlined)
	}
}

// A lineRow is a row of a line table, or a position.
type lineRow struct {
	file         string // without its directory
	line, column int
}

var (
	fileNumber = regexp.MustCompile(`^file_names\[\s*(\d+)\]:`)
	fileName   = regexp.MustCompile(`^\s+name: "(.*)"$`)
	rowLine    = regexp.MustCompile(`^0x[0-9a-f]{16}\s+(\d+)\s+(\d+)\s+(\d+)\s.*`)
)

// lineTable are the rows of each sequence that llvm-dwarfdump prints, one for
// each function.
func lineTable(text string) [][]lineRow {
	files := map[int]string{}
	var sequences [][]lineRow
	var rows []lineRow
	number := 0
	for _, line := range strings.Split(text, "\n") {
		if found := fileNumber.FindStringSubmatch(line); found != nil {
			number, _ = strconv.Atoi(found[1])
		} else if found := fileName.FindStringSubmatch(line); found != nil {
			files[number] = filepath.Base(found[1])
		} else if found := rowLine.FindStringSubmatch(line); found != nil {
			if strings.HasSuffix(line, "end_sequence") {
				sequences, rows = append(sequences, rows), nil
				continue
			}
			r := lineRow{}
			r.line, _ = strconv.Atoi(found[1])
			r.column, _ = strconv.Atoi(found[2])
			n, _ := strconv.Atoi(found[3])
			r.file = files[n]
			rows = append(rows, r)
		}
	}
	return sequences
}

// alwaysCode are instructions for which -O0 makes code.
var alwaysCode = map[string]bool{"store": true, "ret": true, "fdiv": true, "sdiv": true, "invoke": true}

// The same module compiled without optimization: what its line table has must be
// positions of the function's instructions, and the positions of instructions
// that become code must be in it.
func TestPositionsEqualLineTables(t *testing.T) {
	checked, rowsSeen, merged := 0, 0, 0
	eachSample(t, func(t *testing.T, s *sample, m *Module) {
		if strings.Contains(s.name, "shapes.m") {
			t.Skip("the format of its object files has no section for each function")
		}
		object := filepath.Join(t.TempDir(), "module.o")
		oracle.With{Input: s.bitcode(t)}.Run(t, "llc-"+s.version, "-O0", "--function-sections", "-filetype=obj", "-o", object)
		sequences := lineTable(oracle.Run(t, "llvm-dwarfdump-"+s.version, "--debug-line", object))
		var emitted []*Function
		for i := range m.functions {
			f := &m.functions[i]
			line, _, _ := strings.Cut(string(m.source[f.start:]), "\n")
			if !strings.Contains(line, "available_externally") && m.subprogram(f) != 0 {
				emitted = append(emitted, f)
			}
		}
		if len(sequences) != len(emitted) {
			t.Fatalf("%d sequences, %d functions", len(sequences), len(emitted))
		}
		for i, f := range emitted {
			rows := map[lineRow]bool{}
			for _, r := range sequences[i] {
				rows[r] = true
			}
			positions := map[lineRow]bool{}
			own := m.scope(m.subprogram(f)).frame
			positions[lineRow{filepath.Base(own.StartFile), scopeLine(m, f), 0}] = true
			for in := range f.Instructions() {
				p := m.position(f, in.Index)
				if p.Scopes[0] == "" {
					continue
				}
				at := lineRow{filepath.Base(p.Frames[0].File), p.Frames[0].Line, p.Frames[0].Column}
				positions[at] = true
				if alwaysCode[in.Opcode] && at.line != 0 {
					checked++
					if !rows[at] && in.Opcode == "store" {
						// The compiler may make one of two stores to neighbours.
						merged++
						t.Logf("%s+%d, %s: %v is not in the line table", f.Name(), in.Index, in.Opcode, at)
					} else if !rows[at] {
						t.Errorf("%s+%d, %s: %v is not in the line table: %v", f.Name(), in.Index, in.Opcode, at, sequences[i])
					}
				}
			}
			for r := range rows {
				if rowsSeen++; r.line != 0 && !positions[r] {
					t.Errorf("%s: %v of the line table is no position", f.Name(), r)
				}
			}
		}
	})
	t.Logf("%d rows, %d instructions, %d of them merged", rowsSeen, checked, merged)
	if merged > checked/200 {
		t.Errorf("%d of %d instructions are not in line tables", merged, checked)
	}
	if checked < 300 || rowsSeen < 2000 {
		t.Errorf("%d rows and %d instructions are too few to tell", rowsSeen, checked)
	}
}

// scopeLine is the line of a function's first bracket.
func scopeLine(m *Module, f *Function) int {
	n, _ := m.open(m.subprogram(f))
	line := n.Field("scopeLine")
	return line.line()
}
