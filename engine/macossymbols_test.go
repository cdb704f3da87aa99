// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/download"
	"github.com/unwindd/unwindd/engine/internal/symbolstore"
	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/symbolize"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/aarch64"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// macDumps are the writers of minidumps by the architectures of macOS.
var macDumps = map[string]dumpWriter{
	"x86_64":  {9, x86_64.Description(), 1232, func(c []byte) { binary.LittleEndian.PutUint32(c[48:], 0x10000b) }},
	"aarch64": {12, aarch64.Description(), 912, func(c []byte) { binary.LittleEndian.PutUint32(c, 0x400007) }},
}

// macIdentity is the identity of the program of the cores, as Breakpad writes it: the first three numbers of its UUID
// are in the dump's byte order.
func macIdentity(b *minidumptest.Builder, id []byte) []byte {
	be := binary.BigEndian
	return b.Pack("RSDS", be.Uint32(id), be.Uint16(id[4:]), be.Uint16(id[6:]), id[8:16], uint32(0), "chain\x00")
}

// TestMacOSDumpsBySymbolFilesAlone walks minidumps of the cores of TestMacOSCoresWithoutTools, which have a thread at each
// instruction of each function of a chain, by the symbol file of the program: the stacks are the cores'.
func TestMacOSDumpsBySymbolFilesAlone(t *testing.T) {
	for _, name := range []string{"arm64", "signed", "x86_64"} {
		t.Run(name, func(t *testing.T) {
			e := macEngine(t, Options{Sysroot: t.TempDir()})
			core, err := e.Open(filepath.Join("testdata/macos", name+".core.gz"))
			if err != nil {
				t.Fatal(err)
			}
			defer core.Close()
			dir := t.TempDir()
			dump := filepath.Join(dir, "made.dmp")
			macDumps[core.Threads()[0].Arch].write(t, core, dump, macIdentity)
			program := filepath.Join(dir, "program", "chain")
			if err := os.Mkdir(filepath.Dir(program), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(program, core.process.Modules()[0].Object.Data(), 0o600); err != nil {
				t.Fatal(err)
			}
			compareWithSymbols(t, core, dump, storeOfSymbols(t, e, program))
		})
	}
}

func macEngine(t *testing.T, o Options) *Engine {
	t.Helper()
	o.Plugins = plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), aarch64.New()}}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// storeOfSymbols writes the symbol file of a program into a store.
func storeOfSymbols(t *testing.T, e *Engine, program string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	s := symbolize.New(symbolize.Options{Plugins: func() (*plugin.Manager, error) { return e.Plugins(), nil }})
	defer s.Close()
	f, err := s.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	place, err := f.SymbolStorePath()
	if err != nil {
		t.Fatal(err)
	}
	place = filepath.Join(dir, place)
	if err := os.MkdirAll(filepath.Dir(place), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(place)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if w, err := f.WriteSymbolFile(file); err != nil || len(w.Problems) > 0 || w.CFI == 0 || w.Unwritten > 0 {
		t.Fatalf("%+v, %v", w, err)
	}
	return dir
}

// compareWithSymbols wants the stacks of a target in a minidump of it that has a store of symbols alone.
func compareWithSymbols(t *testing.T, want *Target, dump, store string) {
	t.Helper()
	stores, err := symbolstore.New([]string{store}, download.Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stores.Close)
	e := macEngine(t, Options{Sysroot: t.TempDir(), Symbols: stores})
	target, err := e.Open(dump)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	wrong, frames := 0, 0
	for i, th := range target.Threads() {
		a, b := want.Walk(context.Background(), want.Threads()[i]), target.Walk(context.Background(), th)
		if !slices.Equal(pcsOf(a), pcsOf(b)) || !slices.Equal(macNames(a), macNames(b)) {
			if wrong++; wrong < 8 {
				t.Errorf("thread %s: %#x %q, stopped: %v; by the program %#x %q", th.ID, pcsOf(b), macNames(b), b.Stopped, pcsOf(a), macNames(a))
			}
		}
		for k := range b.Frames[1:] {
			if f := &b.Frames[k+1]; f.FoundBy != trace.ByBreakpad || f.RestsOnGuess {
				t.Errorf("thread %s: frame %d is found by %s", th.ID, k+1, f.FoundBy)
			}
			frames++
		}
	}
	t.Logf("%d threads, %d wrong; %d frames by symbol files", len(target.Threads()), wrong, frames)
	if len(target.Threads()) != len(want.Threads()) || frames < 100 {
		t.Errorf("%d threads and %d frames, expected %d and more than 100", len(target.Threads()), frames, len(want.Threads()))
	}
}

// macNames are the functions of a stack's callers. The innermost frame may be in the padding behind a function, which
// a record without lines does not have.
func macNames(s *trace.Stack) (list []string) {
	for i := 1; i < len(s.Frames); i++ {
		for k := range s.Frames[i].Symbols {
			list = append(list, s.Frames[i].Symbols[k].Function)
		}
	}
	return list
}
