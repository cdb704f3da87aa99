// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// TestMacOSVariablesOfDebugMaps compares the variables of all frames of the cores of TestMacOSCoresAtEachInstruction by
// the dSYM of the program, and by its object file.
func TestMacOSVariablesOfDebugMaps(t *testing.T) {
	oracle.All(t)
	oracle.Tools(t, "clang-22", "ld64.lld-22", "dsymutil-22")
	source, err := filepath.Abs("testdata/macos")
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for _, name := range []string{"arm64", "x86_64"} {
		for _, level := range []string{"-O0", "-O2"} {
			m := macMachines[name]
			dir := oracle.Build{Sources: []string{source}, Commands: [][]string{
				{"clang-22", "-target", m.arch + "-apple-macos13", "-g", level, "-fno-stack-protector", "-c", filepath.Join(source, "chain.c"), "-o", "chain.o"},
				{"ld64.lld-22", "-arch", m.arch, "-platform_version", "macos", "13.0", "13.0", "-undefined", "dynamic_lookup", "-o", "chain", "chain.o"},
				{"dsymutil-22", "chain", "-o", "debug/chain.dSYM"},
			}}.Make(t)
			program := filepath.Join(dir, "chain")
			file, _ := writeMacOSCore(t, m, program, program)
			want, got := macOSVariables(t, file, filepath.Join(dir, "debug")), macOSVariables(t, file, "")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s %s: (-dSYM +objects)\n%.3000s", name, level, diff)
			}
			values += strings.Count(strings.Join(want, ""), `"Status":"ok"`)
		}
	}
	t.Logf("%d values", values)
	if values < 1000 {
		t.Error("too few")
	}
}

// macOSVariables returns the variables of the frames of a core as JSON.
func macOSVariables(t *testing.T, file, debugDir string) (list []string) {
	t.Helper()
	options := Options{Locals: &trace.ValueLimits{Depth: 3, Elements: 20}}
	if debugDir != "" {
		options.DebugDirs = []string{debugDir}
	}
	_, target := openMacOSCore(t, file, options)
	for _, th := range target.Threads() {
		stack := target.Walk(context.Background(), th)
		if m := target.process.Segment(stack.Frames[0].PC).Module.Info(); (m.DebugFile != "") != (debugDir != "") || m.DebugInfo != trace.DebugInfoFound {
			t.Fatalf("debug file %q: %s", m.DebugFile, m.DebugInfo)
		}
		for i := range stack.Frames {
			f := &stack.Frames[i]
			b, err := json.Marshal([]any{f.PC, f.Symbols, f.Locals()})
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, string(b))
		}
	}
	return list
}

// writeMacOSCore writes a core of a program that is said to be at a path, and returns the core and the chains of PCs.
func writeMacOSCore(t *testing.T, m *macMachine, program, path string) (file string, truth [][]uint64) {
	t.Helper()
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	f, err := macho.New(program, b)
	if err != nil {
		t.Fatal(err)
	}
	core, truth := macOSCore(t, m, f, b, path)
	file = filepath.Join(t.TempDir(), "core")
	if err := os.WriteFile(file, core.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, truth
}
