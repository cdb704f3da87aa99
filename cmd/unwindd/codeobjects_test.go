// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// functionsOf are the functions in the symbol table of a file, by address, and
// which of them are kernels: those have a descriptor, NAME.kd.
func functionsOf(t *testing.T, path string) (list []elf.Symbol, kernels map[string]bool) {
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
	kernels = map[string]bool{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			list = append(list, s)
		}
		if name, ok := strings.CutSuffix(s.Name, ".kd"); ok {
			kernels[name] = true
		}
	}
	slices.SortFunc(list, func(a, b elf.Symbol) int { return cmp.Compare(a.Value, b.Value) })
	if len(list) < 3 || len(kernels) == 0 {
		t.Fatalf("%s has %d functions, %d kernels", path, len(list), len(kernels))
	}
	return list, kernels
}

// addressesOfFunctions are the addresses of every fourth byte of each function.
func addressesOfFunctions(t *testing.T, path string) (list []uint64) {
	t.Helper()
	functions, _ := functionsOf(t, path)
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

// codeBase is where the snapshots of wavesEverywhere have their code.
const codeBase = 0x7f0000000000

// wavesEverywhere is a snapshot with a wave at each of the addresses of a code
// object. Only the object itself says which processor it is for.
func wavesEverywhere(t *testing.T, path string, addresses []uint64) string {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	hex := func(n uint64) string { return fmt.Sprintf("%#x", n) }
	var threads []any
	for i, a := range addresses {
		threads = append(threads, map[string]any{"id": fmt.Sprint("w", i), "arch": "amdgpu", "registers": map[string]any{"PC": hex(codeBase + a)}})
	}
	document, err := json.Marshal(map[string]any{
		"format_version": 1,
		"modules": []any{map[string]any{"path": "code.co", "arch": "amdgpu", "file": "code.co",
			"segments": []any{map[string]any{"address": hex(text.Addr), "size": hex(text.Size), "start": hex(codeBase + text.Addr)}}}},
		"threads": threads, "memory": []any{},
	})
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return archive(t, map[string][]byte{"snapshot.json": document, "code.co": code})
}

// A chain is an answer of llvm-symbolizer in JSON.
type chain struct {
	Symbol []struct {
		FunctionName, FileName string
		Line, Column           int
	}
}

// TestWavesInEveryCodeObject has waves in each function of the code objects. The
// frame is of the function, inlined calls and lines that llvm-symbolizer gives; a
// kernel was called by nothing, and a function without call frame information is
// not left.
func TestWavesInEveryCodeObject(t *testing.T) {
	long(t)
	tool := llvm(t, "symbolizer")
	waves := 0
	for _, path := range subject.CodeObjects(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var addresses []uint64
			var text strings.Builder
			functions, names := functionsOf(t, path)
			kernels := map[uint64]bool{}
			for _, s := range functions {
				for a := s.Value; a < s.Value+s.Size; a += max(s.Size/16&^3, 4) {
					addresses, kernels[a] = append(addresses, a), names[s.Name]
					fmt.Fprintf(&text, "%#x\n", a)
				}
			}
			waves += len(addresses)
			out := runTool(t, ".", tool, text.String(), "--no-demangle", "--output-style=JSON", "-e", path)
			answers := strings.Split(strings.TrimSpace(out.Stdout), "\n")
			if len(answers) != len(addresses) {
				t.Fatalf("llvm-symbolizer gives %d answers, expected %d", len(answers), len(addresses))
			}
			r := stackJSON(t, "--in-process", wavesEverywhere(t, path, addresses))
			if m := r.Modules[0]; m.Arch != "amdgpu" || m.Problem != "" && !strings.HasPrefix(m.Problem, "call frame information is overridden: ") || len(r.Target.Problems) > 0 {
				t.Errorf("module %+v; problems %q", m, r.Target.Problems)
			}
			for i, a := range addresses {
				var want chain
				if err := json.Unmarshal([]byte(answers[i]), &want); err != nil {
					t.Fatal(err)
				}
				var theirs, ours []string
				for k, s := range want.Symbol {
					theirs = append(theirs, fmt.Sprint(s.FunctionName, " ", s.FileName, ":", s.Line, ":", s.Column, " ", k+1 < len(want.Symbol)))
				}
				th := r.Threads[i]
				for _, f := range th.Frames {
					name := f.LinkageName
					if name == "" {
						name = f.Function
					}
					ours = append(ours, fmt.Sprint(name, " ", f.File, ":", f.Line, ":", f.Column, " ", f.Inlined))
				}
				if strings.HasSuffix(path, ".cfi.co") && !kernels[a] {
					ours = ours[:min(len(ours), len(theirs))] // what the missing registers lead to
				}
				if !slices.Equal(ours, theirs) {
					t.Fatalf("%#x:\n%q, of llvm-symbolizer\n%q", a, ours, theirs)
				}
				if kernels[a] != (th.Stopped.Reason == "outermost") {
					t.Fatalf("%#x, kernel: %v, stopped: %v", a, kernels[a], th.Stopped)
				}
			}
		})
	}
	t.Logf("%d waves", waves)
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
