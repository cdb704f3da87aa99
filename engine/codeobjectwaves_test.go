// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

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
	t.Parallel()
	long(t)
	const tool = "llvm-symbolizer-22"
	oracle.Tools(t, tool)
	waves := 0
	for _, path := range subject.CodeObjects(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var addresses []uint64
			var text strings.Builder
			functions, names := subject.DeviceFunctions(t, path)
			kernels := map[uint64]bool{}
			for _, s := range functions {
				for a := s.Value; a < s.Value+s.Size; a += max(s.Size/16&^3, 4) {
					addresses, kernels[a] = append(addresses, a), names[s.Name]
					fmt.Fprintf(&text, "%#x\n", a)
				}
			}
			waves += len(addresses)
			out := oracle.With{Input: text.String()}.Run(t, tool, "--no-demangle", "--output-style=JSON", "-e", path)
			answers := strings.Split(strings.TrimSpace(out), "\n")
			if len(answers) != len(addresses) {
				t.Fatalf("llvm-symbolizer gives %d answers, expected %d", len(answers), len(addresses))
			}
			r := enginetest.Report(t, wavesEverywhere(t, path, addresses))
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
