// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbolstore"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// storeSymbols writes the symbol files of a program and of what it is linked with into a
// store, by Breakpad's dump_syms.
const storeSymbols = `set -eu
tar xzf *.tgz
for f in x $(ldd ./x | grep -o '/[^ ]*'); do
	package/bin/linux-x64/dump_syms $f > sym 2>/dev/null
	read -r _ _ _ id name < sym
	mkdir -p "store/$name/$id"
	mv sym "store/$name/$id/$name.sym"
done
rm -r package *.tgz
mkdir core root
mv *.core core`

// symbolCore is a core of a program, x in the folder, that is beside none of the files
// that it needs (core/x.core, and core/signal.core of a signal handler), and the symbol
// files of those (store).
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
		{
			"gdb", "-nx", "-batch", "-ex", "handle SIGUSR1 nostop noprint pass", "-ex", "run signal",
			"-ex", "generate-core-file signal.core", "./x",
		},
		{"npm", "pack", "--silent", "minidump@0.26.0"},
		{"sh", "-c", storeSymbols},
	}}.Make(t)
}

// A plainFrame is the part of a frame that a symbol file can describe.
type plainFrame struct {
	PC, CFA uint64
	// isSignal is a signal trampoline, isExact what it interrupted.
	isSignal, isExact bool

	Names []string // of the program's functions, with file and line
}

// plainStacks are the stacks of a core; found counts how frames were found.
func plainStacks(t *testing.T, o engine.Options, core string) (stacks [][]plainFrame, found map[trace.FoundBy]int, infos map[string]trace.ModuleInfo) {
	t.Helper()
	e := enginetest.Engine(t, o)
	c, err := e.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found, infos = map[trace.FoundBy]int{}, map[string]trace.ModuleInfo{}
	for s := range c.Stacks(context.Background()) {
		var list []plainFrame
		for i := range s.Frames {
			f := &s.Frames[i]
			if f.FoundBy == trace.ByCallSite {
				continue // symbol files do not have call sites
			}
			found[f.FoundBy]++
			p := plainFrame{PC: f.PC, CFA: f.CFA, isSignal: f.SignalFrame, isExact: f.Exact}
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
	for _, m := range c.Process().Modules() {
		infos[filepath.Base(m.Path)] = c.ModuleInfo(&m.Module)
	}
	return stacks, found, infos
}

// stackLines has a line for each stack of a target, and for each frame.
func stackLines(t *engine.Target) (lines []string) {
	for s := range t.Stacks(context.Background()) {
		lines = append(lines, fmt.Sprint(s.Thread.ID, s.Stopped))
		for i := range s.Frames {
			f := &s.Frames[i]
			lines = append(lines, fmt.Sprintf("%#x %#x %s %v", f.PC, f.CFA, f.FoundBy, f.Symbols))
		}
	}
	return lines
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

// ownSymbols makes a store of what package symbolize writes of the files that a core needs.
func ownSymbols(t *testing.T, paths []string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, path := range paths {
		s := symbolize.New(symbolize.Options{})
		o, err := s.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		place, err := o.SymbolStorePath()
		if err != nil {
			t.Fatal(err)
		}
		place = filepath.Join(dir, place)
		if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(place)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := o.WriteSymbolFile(f); err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		_ = s.Close()
	}
	return dir
}

// TestStacksBySymbolFilesAreThoseByBinaries walks cores with the files of the program
// and without any, by the symbol files that were made of them: program counters, frame
// addresses, functions, inlined calls and lines are the same. Those of Breakpad's dump_syms
// have no inlined calls, and no rules of signal handlers.
func TestStacksBySymbolFilesAreThoseByBinaries(t *testing.T) {
	dir := symbolCore(t)
	exe := filepath.Join(dir, "x")
	var files []string
	for line := range strings.Lines(oracle.Run(t, "ldd", exe)) {
		for _, word := range strings.Fields(line) {
			if strings.HasPrefix(word, "/") {
				files = append(files, word)
			}
		}
	}
	own := ownSymbols(t, append(files, exe))
	tests := []struct {
		name, core, store string
		noInlines         bool
		functions         []string
	}{
		{"dump_syms", "x.core", filepath.Join(dir, "store"), true, []string{"outer(int)", "each<shape>", "sorted()", "main", "wait"}},
		{"own", "x.core", own, false, []string{"deep", "middle", "outer(int)", "each<shape>", "sorted()", "main", "wait"}},
		{"own, no inlined calls", "x.core", own, true, []string{"outer(int)", "each<shape>", "sorted()", "main", "wait"}},
		{"own, signal", "signal.core", own, false, []string{"handle", "deep", "middle", "outer(int)", "each<shape>", "sorted()", "main", "wait"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			core := filepath.Join(dir, "core", tt.core)
			want, _, _ := plainStacks(t, engine.Options{Exe: exe, NoInlines: tt.noInlines}, core)
			without := engine.Options{Sysroot: filepath.Join(dir, "root"), Symbols: storesOf(t, tt.store), NoInlines: tt.noInlines}
			got, found, infos := plainStacks(t, without, core)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(plainFrame{})); diff != "" {
				t.Error(diff)
			}
			t.Log(found)
			if found[trace.ByBreakpad] < 10 || len(found) != 2 {
				t.Errorf("frames by %v, expected all but the first by symbol files", found)
			}
			all := fmt.Sprint(got)
			for _, name := range tt.functions {
				if !strings.Contains(all, name) {
					t.Errorf("%s is in no stack", name)
				}
			}
			for _, name := range []string{"x", "libc.so.6"} {
				if i := infos[name]; i.DebugInfo != trace.DebugInfoFound || !strings.HasSuffix(i.DebugFile, name+".sym") {
					t.Errorf("%s: %+v", name, i)
				}
			}
		})
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
		want       trace.DebugInfo
		problem    string
	}{
		{"the right one", string(text), trace.DebugInfoFound, ""},
		{"of another build", strings.Replace(string(text), id, strings.Repeat("0", 33), 1), trace.DebugInfoMismatch, "identifier"},
		{"no symbol file", "hello\n", trace.DebugInfoUnreadable, "MODULE"},
		{"with STACK WIN", string(text) + "STACK WIN 4 10 10 0 0 0 0 0 0 0 0\n", trace.DebugInfoFound, ""},
	}
	for _, tt := range tests {
		folder := t.TempDir()
		for name, data := range map[string][]byte{"x.sym": []byte(tt.text), "x.core": core} {
			if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, _, infos := plainStacks(t, engine.Options{Sysroot: filepath.Join(dir, "root")}, filepath.Join(folder, "x.core"))
		info := infos["x"]
		if info.DebugInfo != tt.want || !strings.Contains(strings.Join(info.Problems, "\n"), tt.problem) {
			t.Errorf("%s: %q, %q", tt.name, info.DebugInfo, info.Problems)
		}
		if slices.ContainsFunc(info.Problems, func(p string) bool { return strings.Contains(p, "x.sym") }) != (tt.problem != "") {
			t.Errorf("%s: %q", tt.name, info.Problems)
		}
	}
}

// TestTargetsShareSymbolFiles opens and closes targets without files by 8 goroutines, with
// room for their symbol files and with none. One that several use is open once. It is for
// the race detector, too.
func TestTargetsShareSymbolFiles(t *testing.T) {
	dir := symbolCore(t)
	core := filepath.Join(dir, "core", "x.core")
	for _, room := range []uint64{0, 1} {
		e := enginetest.Engine(t, engine.Options{Sysroot: filepath.Join(dir, "root"), Symbols: storesOf(t, filepath.Join(dir, "store")), CacheBytes: room})
		first, err := e.Open(core)
		if err != nil {
			t.Fatal(err)
		}
		want := stackLines(first)
		one := e.Library().Bytes()
		second, err := e.Open(core)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, stackLines(second)); diff != "" {
			t.Error(diff)
		}
		if two := e.Library().Bytes(); room == 0 && two > one+one/4 {
			t.Errorf("a target takes %d bytes, two %d: expected little more", one, two)
		}
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 4 {
					c, err := e.Open(core)
					if err != nil {
						t.Error(err)
						return
					}
					if diff := cmp.Diff(want, stackLines(c)); diff != "" {
						t.Error(diff)
					}
					_ = c.Close()
				}
			})
		}
		wg.Wait()
		_, _ = first.Close(), second.Close()
		switch kept := e.Library().Bytes(); {
		case room == 0 && kept < one/2:
			t.Errorf("%d bytes are kept of targets that are closed, expected the symbol files of %d", kept, one)
		case room > 0 && kept > one/100:
			t.Errorf("%d bytes are kept of %d, expected none: there is room for 1", kept, one)
		}
	}
}
