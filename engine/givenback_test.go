// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"debug/elf"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
)

// TestRegistersThatWereGivenBack has samples in functions whose rows say that the frame
// pointer is below the stack pointer, where samples have no bytes. It is in its register where
// it was popped. Where a function keeps it in its red zone nothing is guessed.
func TestRegistersThatWereGivenBack(t *testing.T) {
	source, err := filepath.Abs("testdata/givenback.s")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(oracle.Build{Sources: []string{source}, Commands: [][]string{{"gcc", "-nostdlib", "-static", "-o", "givenback", source}}}.Make(t), "givenback")
	o, err := object.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	at := addressesOf(t, path)
	m := &target.Module{Module: trace.Module{Path: path, Arch: "x86_64"}, Object: o}
	for _, s := range o.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
	}
	e := newX86Engine(t, Options{NoSymbols: true})
	for _, tt := range []struct {
		function, back string
		want           []string
		reason         trace.StopReason
	}{
		{"returns", "after_popping", []string{"returns", "after_popping", "after_start"}, trace.StopOutermost},
		{"uses", "after_keeping", []string{"uses", "after_keeping"}, trace.StopNoMemory},
	} {
		const sp = 0x7ffe0000
		s := &walk.Sample{Sample: trace.Sample{Arch: "x86_64", StackStart: sp, Stack: make([]byte, 96)}, Loaded: []*target.Module{m}}
		binary.LittleEndian.PutUint64(s.Stack, at[tt.back])
		binary.LittleEndian.PutUint64(s.Stack[80:], at["after_start"])
		for number, value := range map[uint32]uint64{x86_64.Description().FP: sp + 72, x86_64.Description().SP: sp, x86_64.Description().PC: at[tt.function]} {
			s.Registers.Set(number, binary.LittleEndian.AppendUint64(nil, value))
		}
		var want []uint64
		for _, name := range tt.want {
			want = append(want, at[name])
		}
		process := e.Attach(s)
		for manner, got := range map[string]*trace.Stack{"sample": process.Process().Walker().Walk(context.Background(), s), "target": process.Walk(context.Background(), s.Thread())} {
			if diff := cmp.Diff(want, pcs(got)); diff != "" || got.Stopped.Reason != tt.reason {
				t.Errorf("%s, as a %s: stopped %v (-want +got)\n%s", tt.function, manner, got.Stopped, diff)
			}
		}
		process.Close()
	}
}

// addressesOf are the symbols of a file.
func addressesOf(t testing.TB, path string) map[string]uint64 {
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
	at := map[string]uint64{}
	for _, s := range symbols {
		at[s.Name] = s.Value
	}
	return at
}
