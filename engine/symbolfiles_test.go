package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/download"
	"github.com/unwindd/unwindd/engine/symbolstore"
	"github.com/unwindd/unwindd/internal/oracle"
)

// storeSymbols writes the symbol files of a program and of what it is linked with into a
// store, by Breakpad's dump_syms.
const storeSymbols = `set -eu
tar xzf *.tgz
for f in x $(ldd ./x | grep -o '/[^ ]*'); do
	package/bin/linux-x64/dump_syms -d $f > sym 2>/dev/null
	read -r _ _ _ id name < sym
	mkdir -p "store/$name/$id"
	mv sym "store/$name/$id/$name.sym"
done
rm -r package *.tgz
mkdir core root
mv x.core core`

// symbolCore is a core of a program, x in the folder, that is beside none of the files
// that it needs (core/x.core), and the symbol files of those (store).
func symbolCore(t *testing.T) (dir string) {
	t.Helper()
	source, err := filepath.Abs("testdata/symbols/calls.cc")
	if err != nil {
		t.Fatal(err)
	}
	oracle.Tools(t, "gdb", "tar", "ldd")
	return oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"g++", "-g", "-O2", "-fno-optimize-sibling-calls", "-fno-reorder-blocks-and-partition", "-o", "x", source, "-lpthread"},
		{"gdb", "-nx", "-batch", "-ex", "run", "-ex", "generate-core-file x.core", "./x"},
		{"npm", "pack", "--silent", "minidump@0.26.0"},
		{"sh", "-c", storeSymbols},
	}}.Make(t)
}

// A plainFrame is what a symbol file can say of a frame.
type plainFrame struct {
	PC, CFA uint64
	Names   []string // of the program's functions, with file and line
}

// plainStacks are the stacks of a core; found counts how frames were found.
func plainStacks(t *testing.T, o Options, core string) (stacks [][]plainFrame, found map[code.FoundBy]int, infos map[string]ModuleInfo) {
	t.Helper()
	e := newX86Engine(t, o)
	c, err := e.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found, infos = map[code.FoundBy]int{}, map[string]ModuleInfo{}
	for s := range c.Stacks(context.Background()) {
		var list []plainFrame
		for i := range s.Frames {
			f := &s.Frames[i]
			if f.FoundBy == ByCallSite {
				continue // symbol files do not have call sites
			}
			found[f.FoundBy]++
			p := plainFrame{PC: f.PC, CFA: f.CFA}
			if f.Module != nil && filepath.Base(f.Module.Path) == "x" {
				for _, n := range f.Symbols {
					text := fmt.Sprintf("%s %s:%d", strings.ReplaceAll(n.Function, "> >", ">>"), n.File, n.Line)
					if n.File == "" {
						text = n.Function
					}
					p.Names = append(p.Names, text)
				}
			}
			list = append(list, p)
		}
		stacks = append(stacks, list)
	}
	for _, m := range c.Modules() {
		infos[filepath.Base(m.Path)] = c.ModuleInfo(m)
	}
	return stacks, found, infos
}

// storesOf are stores as an engine asks them.
func storesOf(t *testing.T, texts ...string) symbolstore.Client {
	t.Helper()
	c, err := symbolstore.New(texts, download.Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// TestStacksBySymbolFilesAreThoseByBinaries walks a core with the files of the program
// and without any, by the symbol files that Breakpad's dump_syms made of them: program
// counters, frame addresses, functions, inlined calls and lines are the same.
func TestStacksBySymbolFilesAreThoseByBinaries(t *testing.T) {
	dir := symbolCore(t)
	core := filepath.Join(dir, "core", "x.core")
	want, _, _ := plainStacks(t, Options{Exe: filepath.Join(dir, "x")}, core)
	without := Options{Sysroot: filepath.Join(dir, "root"), Symbols: storesOf(t, filepath.Join(dir, "store"))}
	got, found, infos := plainStacks(t, without, core)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	t.Log(found)
	if found[ByBreakpad] < 10 || found[ByCFI]+found[ByScan]+found[ByFramePointer] > 1 {
		t.Errorf("frames by %v, expected most of them by symbol files", found)
	}
	all := fmt.Sprint(got)
	for _, name := range []string{"deep(int)", "middle(int)", "each<shape>", "sorted()", "main"} {
		if !strings.Contains(all, name) {
			t.Errorf("%s is in no stack", name)
		}
	}
	for _, name := range []string{"x", "libc.so.6"} {
		if i := infos[name]; i.DebugInfo != DebugInfoFound || !strings.HasSuffix(i.DebugFile, name+".sym") {
			t.Errorf("%s: %+v", name, i)
		}
	}
}

// TestSymbolFilesBesideATarget finds the file by its name, and takes only that of the build.
func TestSymbolFilesBesideATarget(t *testing.T) {
	dir := symbolCore(t)
	of, err := filepath.Glob(filepath.Join(dir, "store", "x", "*", "x.sym"))
	if err != nil || len(of) != 1 {
		t.Fatal(of, err)
	}
	text, err := os.ReadFile(of[0])
	if err != nil {
		t.Fatal(err)
	}
	id := strings.Fields(string(text))[3]
	core, err := os.ReadFile(filepath.Join(dir, "core", "x.core"))
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, text string
		want       DebugInfo
		problem    string
	}{
		{"the right one", string(text), DebugInfoFound, ""},
		{"of another build", strings.Replace(string(text), id, strings.Repeat("0", 33), 1), DebugInfoMismatch, "identifier"},
		{"no symbol file", "hello\n", DebugInfoUnreadable, "MODULE"},
		{"with STACK WIN", string(text) + "STACK WIN 4 10 10 0 0 0 0 0 0 0 0\n", DebugInfoFound, "1 STACK WIN records"},
	}
	for _, tt := range tests {
		folder := t.TempDir()
		for name, data := range map[string][]byte{"x.sym": []byte(tt.text), "x.core": core} {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, infos := plainStacks(t, Options{Sysroot: filepath.Join(dir, "root")}, filepath.Join(folder, "x.core"))
		info := infos["x"]
		if info.DebugInfo != tt.want || !strings.Contains(strings.Join(info.Problems, "\n"), tt.problem) {
			t.Errorf("%s: %q, %q", tt.name, info.DebugInfo, info.Problems)
		}
		if slices.ContainsFunc(info.Problems, func(p string) bool { return strings.Contains(p, "x.sym") }) != (tt.problem != "") {
			t.Errorf("%s: %q", tt.name, info.Problems)
		}
	}
}
