// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// batches counts how many functions an architecture is asked about, and in how many calls.
type batches struct {
	sdk.Architecture
	calls, functions int
}

func (a *batches) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	a.calls++
	a.functions += len(req.Functions)
	return a.Architecture.FrameRules(ctx, e, req)
}

// manyFunctions is a sample in the last of n functions without call frame information, each of
// which was called by the one before: f0 by the program's first code.
func manyFunctions(t testing.TB, n int) (s *walk.Sample, returns []uint64) {
	t.Helper()
	var text strings.Builder
	fmt.Fprint(&text, ".text\n.globl _start\n_start: call f0\n.Lend: hlt\n")
	for i := range n {
		fmt.Fprintf(&text, ".type f%d,@function\nf%[1]d: push %%rbx\nsub $16,%%rsp\nmov %%rdi,%%rbx\ncall f%d\nr%[1]d: add $16,%%rsp\npop %%rbx\nret\n.size f%[1]d,.-f%[1]d\n", i, i+1)
	}
	fmt.Fprintf(&text, ".type f%d,@function\nf%[1]d: mov 0,%%eax\nret\n.size f%[1]d,.-f%[1]d\n", n)
	path := assemble(t, text.String(), "-nostdlib", "-static", "-Wl,--build-id")
	o := openObject(t, path)
	m := &target.Module{Module: trace.Module{Path: path, Arch: "x86_64"}, Object: o}
	for _, s := range o.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: s.Address, Executable: s.Executable()})
	}
	at := addressesOf(t, path)
	const sp = 0x7ffe0000
	s = &walk.Sample{Sample: trace.Sample{Arch: "x86_64", StackStart: sp}, Loaded: []*target.Module{m}}
	for i := n - 1; i >= 0; i-- {
		returns = append(returns, at[fmt.Sprint("r", i)])
		s.Stack = binary.LittleEndian.AppendUint64(s.Stack, at[fmt.Sprint("r", i)])
		s.Stack = append(s.Stack, make([]byte, 24)...) // what the function keeps there
	}
	s.Stack = binary.LittleEndian.AppendUint64(s.Stack, at["_start"]+5)
	s.Registers.Set(x86_64.Description().SP, binary.LittleEndian.AppendUint64(nil, sp))
	s.Registers.Set(x86_64.Description().PC, binary.LittleEndian.AppendUint64(nil, at[fmt.Sprint("f", n)]))
	return s, returns
}

// TestManyFunctionsTakeFewCalls walks through 20,000 functions without call frame information:
// the plugin, which would be a process, is asked about them in some hundred calls.
func TestManyFunctionsTakeFewCalls(t *testing.T) {
	oracle.Tools(t, "gcc")
	const n = 20000
	s, returns := manyFunctions(t, n)
	arch := &batches{Architecture: x86_64.New()}
	e := newEngineOf(t, arch, Options{NoSymbols: true, MaxFrames: 2 * n})
	stack := e.Attach(s).Walk(t.Context(), s.Thread())
	if len(stack.Frames) != n+2 {
		t.Fatalf("%d frames, expected %d: %+v", len(stack.Frames), n+2, stack.Stopped)
	}
	for i, pc := range returns {
		if f := stack.Frames[i+1]; f.PC != pc || f.FoundBy != trace.ByRules {
			t.Fatalf("frame %d at %#x by %s, expected %#x by its code", i+1, f.PC, f.FoundBy, pc)
		}
	}
	t.Logf("%d calls about %d functions", arch.calls, arch.functions)
	if arch.calls > 120 || arch.functions > n+maxUseless {
		t.Errorf("%d calls about %d functions, expected 120 about %d", arch.calls, arch.functions, n)
	}
}

// maxUseless is how many functions may be asked about that no frame is in.
const maxUseless = 50

// BenchmarkFunctionsWithoutRows is a walk through functions without call frame information, with
// the architecture in this process.
func BenchmarkFunctionsWithoutRows(b *testing.B) {
	oracle.Tools(b, "gcc")
	s, _ := manyFunctions(b, 2000)
	for b.Loop() {
		e := newEngineOf(b, x86_64.New(), Options{NoSymbols: true})
		if stack := e.Attach(s).Walk(b.Context(), s.Thread()); len(stack.Frames) != 2002 {
			b.Fatalf("%d frames", len(stack.Frames))
		}
	}
}
