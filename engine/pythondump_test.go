// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"debug/elf"
	"io"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/internal/target/minidump"
	"github.com/unwindd/unwindd/engine/internal/target/minidump/minidumptest"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
	"github.com/unwindd/unwindd/plugins/cpython"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// pythonProgram ends in a function of Python with a variable, and has a thread that waits.
const pythonProgram = `
import os, threading
def wait(lock):
    lock.acquire()
def fail(value):
    kept = {"value": [value, None]}
    os.abort()
lock = threading.Lock()
lock.acquire()
threading.Thread(target=wait, args=(lock,), daemon=True).start()
fail("text")
`

// withMemory adds the memory of a core to a dump.
func withMemory(t *testing.T, core string) func(*minidumptest.Builder) {
	f, err := elf.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var memory []byte
	var list []uint64
	for _, p := range f.Progs {
		if p.Type != elf.PT_LOAD || p.Filesz == 0 {
			continue
		}
		data, err := io.ReadAll(p.Open())
		if err != nil {
			t.Fatal(err)
		}
		memory, list = append(memory, data...), append(list, p.Vaddr, p.Filesz)
	}
	return func(b *minidumptest.Builder) {
		b.Stream(uint32(minidump.StreamMemory64List), uint64(len(list)/2), uint64(b.Put(memory)), list)
	}
}

func TestAMinidumpWithMemoryHasTheFramesOfPython(t *testing.T) {
	core := subject.Core(t, oracle.Tool(t, "python3"), "-c", pythonProgram)
	e, err := New(Options{InProcess: []sdk.Architecture{x86_64.New()}, InProcessRuntimes: []sdk.Runtime{cpython.New()}, Locals: &trace.DefaultValueLimits})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	want, err := e.Open(core)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "python.dmp")
	writeMinidump(t, want, path, identities["BpEL"], withMemory(t, core))
	got, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	type frame struct {
		Function, File string
		Line           int
		Variables      []string
	}
	frames := func(target *Target) (list [][]frame) {
		for s := range target.Stacks(t.Context()) {
			var stack []frame
			for i := range s.Frames {
				f := &s.Frames[i]
				if f.Managed() == nil {
					continue
				}
				one := frame{Function: f.Symbols[0].Function, File: f.Symbols[0].File, Line: f.Symbols[0].Line}
				for _, v := range f.Details.Locals[0] {
					one.Variables = append(one.Variables, v.Value.Name+" = "+v.Value.Text)
				}
				stack = append(stack, one)
			}
			list = append(list, stack)
		}
		return list
	}
	a, b := frames(want), frames(got)
	if d := cmp.Diff(a, b); d != "" {
		t.Errorf("(-core +dump)\n%s", d)
	}
	if len(a) != 2 || len(a[0]) != 2 || !cmp.Equal(a[0][0], frame{"fail", "<string>", 7, []string{"value = 'text'", "kept = {'value': ['text', None]}"}}) {
		t.Errorf("of the core: %+v", a)
	}
	if a, b := want.Fact(t.Context()), got.Fact(t.Context()); a != b || a == "" {
		t.Errorf("%q, of the core %q", b, a)
	}
}
