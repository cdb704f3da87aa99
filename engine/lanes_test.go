// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// countedFunctions has functions of 16 bytes with the attributes that bound lanes
// and iterations.
const countedFunctions = `
	.text
	.globl _start
_start:
	.fill 16*8, 1, 0x90
	.section .debug_abbrev,"",@progbits
	.uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 6; .byte 0, 0
	.uleb128 2; .uleb128 0x2e; .byte 0; .uleb128 3; .uleb128 8; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 0xb; .byte 0, 0
	.uleb128 3; .uleb128 0x2e; .byte 0; .uleb128 3; .uleb128 8; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 0xb
	.uleb128 0x3e0a; .uleb128 0x18; .byte 0, 0 # DW_AT_LLVM_iterations, DW_FORM_exprloc
	.uleb128 4; .uleb128 0x2e; .byte 0; .uleb128 3; .uleb128 8; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 0xb
	.uleb128 0x3e11; .uleb128 0xb; .byte 0, 0 # DW_AT_LLVM_lanes as LLVM numbers it, DW_FORM_data1
	.byte 0
	.section .debug_info,"",@progbits
	.long .Lend-.Lstart
.Lstart:
	.short 4
	.long .debug_abbrev
	.byte 8
	.uleb128 1; .quad _start; .long 16*8
	.uleb128 2; .asciz "plain"; .quad _start; .byte 16
	.uleb128 3; .asciz "four"; .quad _start+16; .byte 16; .byte 2, 0x34, 0x9f # DW_OP_lit4; DW_OP_stack_value
	.uleb128 3; .asciz "none"; .quad _start+32; .byte 16; .byte 2, 0x30, 0x9f # DW_OP_lit0; DW_OP_stack_value
	.uleb128 3; .asciz "memory"; .quad _start+48; .byte 16; .byte 1, 0x34 # DW_OP_lit4
	.uleb128 3; .asciz "register"; .quad _start+64; .byte 16; .byte 3, 0x70, 0, 0x9f # DW_OP_breg0 0; DW_OP_stack_value
	.uleb128 4; .asciz "lanes"; .quad _start+80; .byte 16; .byte 8
	.byte 0
.Lend:
`

func TestLanesAndIterationsAreThoseOfTheFunction(t *testing.T) {
	oracle.Tools(t, "clang", "ld.lld")
	dir := t.TempDir()
	source, o, file := filepath.Join(dir, "counted.s"), filepath.Join(dir, "counted.o"), filepath.Join(dir, "counted")
	if err := os.WriteFile(source, []byte(countedFunctions), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"clang", "--target=x86_64-linux-gnu", "-c", source, "-o", o}, {"ld.lld", o, "-o", file}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	code, err := object.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { code.Close() })
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	m := &target.Module{Module: trace.Module{Path: file, Arch: "x86_64", File: file}, Object: code}
	start := uint64(0)
	for _, s := range code.Segments() {
		m.Segments = append(m.Segments, trace.Segment{Address: s.Address, Size: s.MemSize, Start: loadedAt + s.Address, Executable: s.Executable()})
		if s.Executable() {
			start = loadedAt + s.Address
		}
	}
	const none, illFormed, evaluation = "", "ill-formed", "evaluation"
	for _, c := range []struct {
		pc        uint64 // from the first function
		lane      int64
		iteration int64
		expr      string
		want      uint64
		kind      string
		reason    string
	}{
		{0, -1, 0, "LLVM_push_iteration", 0, none, ""},
		{0, -1, 1, "LLVM_push_iteration", 0, illFormed, "iteration 1 of 1"}, // the default of DW_AT_LLVM_iterations
		{0, -1, -1, "LLVM_push_iteration", 0, evaluation, "iteration: not in the evaluation context"},
		{16, -1, 3, "LLVM_push_iteration", 3, none, ""},
		{16, -1, 4, "LLVM_push_iteration", 0, illFormed, "iteration 4 of 4"},
		{32, -1, 0, "LLVM_push_iteration", 0, illFormed, "DW_AT_LLVM_iterations: 0x0, expected 1 or more"},
		{48, -1, 0, "LLVM_push_iteration", 0, illFormed, "DW_AT_LLVM_iterations: expected one implicit location"},
		{64, -1, 6, "LLVM_push_iteration", 6, none, ""},
		{64, -1, 7, "LLVM_push_iteration", 0, illFormed, "iteration 7 of 7"},
		{80, 7, -1, "LLVM_push_lane", 7, none, ""},
		{80, 8, -1, "LLVM_push_lane", 0, illFormed, "lane 8 of 8"},
		{80, -1, -1, "LLVM_push_lane", 0, evaluation, "lane: not in the evaluation context"},
		{112, -1, 5, "LLVM_push_iteration", 5, none, ""}, // no function is described: nothing is known
	} {
		var r sdk.Registers
		r.Set(16, binary.LittleEndian.AppendUint64(nil, start+c.pc)) // rip
		r.Set(0, binary.LittleEndian.AppendUint64(nil, 7))
		tg := e.Attach(&walk.Sample{Sample: trace.Sample{Arch: "x86_64", ThreadID: "1", Registers: r}, Loaded: []*target.Module{m}})
		var s walk.Surroundings
		if c.lane >= 0 {
			lane := uint32(c.lane)
			s.Lane = &lane
		}
		if c.iteration >= 0 {
			iteration := uint64(c.iteration)
			s.Iteration = &iteration
		}
		expr, err := locexpr.Parse(c.expr, locexpr.TextOptions{Dialect: locexpr.Canonical})
		if err != nil {
			t.Fatal(err)
		}
		err = tg.Process().Evaluate(context.Background(), tg.Threads()[0], 0, s, nil, func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
			v, err := ev.Value(t.Context(), expr, ctx)
			if err == nil && (v.Uint64() != c.want || c.kind != none) {
				t.Errorf("%+v: %v", c, v)
			}
			return err
		})
		kind := none
		if in := (*locexpr.Error)(nil); errors.As(err, &in) {
			kind = in.Kind.String()
		}
		if kind != c.kind || err != nil && !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestMemoryOfALaneThatIsNot reads private memory, in which that of a lane beyond
// the others would be the next words of the first.
func TestMemoryOfALaneThatIsNot(t *testing.T) {
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{amdgpu.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	state := &walk.Synthetic{Arch: "amdgpu", Processor: "gfx90a", Memory: []walk.Piece{{Space: 6, Address: 0, Bytes: make([]byte, 0x1000)}}}
	tg := e.Attach(state)
	for lane, reason := range map[uint32]string{0: "", 63: "", 64: "lane 64 of a thread with 64", 1 << 31: "lane 2147483647 of"} {
		err := tg.Process().Evaluate(context.Background(), state.Thread(), 0, walk.Surroundings{Lane: &lane}, nil, func(ctx locexpr.Context, _ *locexpr.Evaluator) error {
			var b [4]byte
			return locexpr.MemoryLocation(5, 8).WithScope(ctx.Scope()).Read(t.Context(), ctx, b[:], 32)
		})
		if (err == nil) != (reason == "") || err != nil && !strings.Contains(err.Error(), reason) {
			t.Errorf("lane %d: %v, expected %q", lane, err, reason)
		}
	}
}
