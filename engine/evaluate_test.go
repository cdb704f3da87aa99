// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"debug/elf"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/ehpe"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

func openCrash(t *testing.T) *Target {
	t.Helper()
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	core, err := e.Open("../examples/crash/server.core")
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// DW_OP_reg17 is xmm0, a register that frames do not carry along.
func TestVectorRegistersAreThoseOfTheTopFrameOnly(t *testing.T) {
	core := openCrash(t)
	th := core.Threads()[0]
	const xmm0 = 17
	want, ok := th.Registers.Get(xmm0)
	if !ok {
		t.Fatal("xmm0 is not in the core")
	}
	for index, undefined := range []bool{false, true} {
		err := core.process.Evaluate(context.Background(), th, index, walk.Surroundings{}, locexpr.DWARF5, func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
			l, err := ev.Location(t.Context(), []byte{0x50 + xmm0}, ctx)
			if err != nil {
				return err
			}
			got := make([]byte, 16)
			err = l.Read(t.Context(), ctx, got, 128)
			if undefined {
				if !errors.Is(err, locexpr.ErrUndefined) {
					t.Errorf("frame %d: %v, expected %v", index, err, locexpr.ErrUndefined)
				}
				return nil
			}
			if diff := cmp.Diff(want[:16], got); diff != "" {
				t.Errorf("frame %d (-want +got)\n%s", index, diff)
			}
			return err
		})
		if err != nil {
			t.Errorf("frame %d: %v", index, err)
		}
	}
}

func TestProgramLocationIsInsideTheCall(t *testing.T) {
	core := openCrash(t)
	th := core.Threads()[0]
	frames := core.Walk(context.Background(), th).Frames
	for index, f := range frames {
		want := f.PC
		if !f.Exact {
			want--
		}
		err := core.process.Evaluate(context.Background(), th, index, walk.Surroundings{}, nil, func(ctx locexpr.Context, _ *locexpr.Evaluator) error {
			got, err := ctx.(locexpr.LocationContext).ProgramLocation()
			if got != want {
				t.Errorf("frame %d: %#x, expected %#x", index, got, want)
			}
			return err
		})
		if err != nil {
			t.Errorf("frame %d: %v", index, err)
		}
	}
}

func TestSurroundingsThatAreNotSpecified(t *testing.T) {
	core := openCrash(t)
	for name, expr := range map[string][]byte{
		"frame base":          {dw.OpFbreg, 0},
		"entry value":         {dw.OpEntryValue, 1, dw.OpReg0},
		"object":              {dw.OpPushObjectAddress},
		"base type":           {dw.OpRegvalType, 0, 1},
		"parameter":           {dw.OpGNUParameterRef, 1, 0, 0, 0},
		"address of .addr":    {dw.OpAddrx, 0},
		"call":                {dw.OpCall2, 1, 0},
		"call by offset":      {dw.OpCallRef, 1, 0, 0, 0},
		"variable":            {dw.OpGNUVariableValue, 1, 0, 0, 0},
		"base of an encoding": {dw.OpGNUEncodedAddr, ehpe.PCRel | ehpe.SData4, 0, 0, 0, 0},
	} {
		err := core.process.Evaluate(context.Background(), core.Threads()[0], 0, walk.Surroundings{}, locexpr.DWARF5, func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
			_, err := ev.Location(t.Context(), expr, ctx)
			return err
		})
		if !errors.Is(err, locexpr.ErrNoContext) {
			t.Errorf("%s: %v, expected %v", name, err, locexpr.ErrNoContext)
		}
	}
}

func TestTheLargestSpaceBoundsComposites(t *testing.T) {
	core := openCrash(t)
	err := core.process.Evaluate(context.Background(), core.Threads()[0], 0, walk.Surroundings{}, nil, func(ctx locexpr.Context, _ *locexpr.Evaluator) error {
		if bits := ctx.(locexpr.SpaceContext).LargestSpaceBits(); bits != 64 {
			t.Errorf("%d bits, expected 64", bits)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestThreadLocalStorageOfAModuleWithoutAny(t *testing.T) {
	core := openCrash(t)
	tried := 0
	for _, m := range core.process.Modules() {
		if m.Object == nil || slices.ContainsFunc(m.Object.Programs(), func(p object.Program) bool { return p.Type == elf.PT_TLS }) {
			continue
		}
		tried++
		err := core.process.Evaluate(context.Background(), core.Threads()[0], 0, walk.Surroundings{Module: m}, nil, func(ctx locexpr.Context, _ *locexpr.Evaluator) error {
			_, err := ctx.(locexpr.TLSContext).TLS(t.Context(), 0)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), m.Path+": it has no segment PT_TLS") {
			t.Errorf("%s: %v, expected that there is none", m.Path, err)
		}
	}
	if tried == 0 {
		t.Error("every module has thread-local storage")
	}
}

func TestAModuleOfAnotherTarget(t *testing.T) {
	core, other := openCrash(t), openCrash(t)
	err := core.process.Evaluate(context.Background(), core.Threads()[0], 0, walk.Surroundings{Module: other.process.Modules()[0]}, nil,
		func(locexpr.Context, *locexpr.Evaluator) error { t.Error("evaluated"); return nil })
	if err == nil {
		t.Error("no error")
	}
}

// A thread whose PC the target does not say has a top frame to evaluate in, and
// no stack.
func TestAThreadWithoutPC(t *testing.T) {
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	state := &walk.Synthetic{Arch: "x86_64"}
	made := e.Attach(state)
	s := made.Walk(context.Background(), state.Thread())
	if len(s.Frames) != 0 || s.Stopped.Reason != trace.StopNoMemory || !strings.Contains(s.Stopped.Detail, "rip") {
		t.Errorf("stack of %d frames, %+v", len(s.Frames), s.Stopped)
	}
	evaluated := 0
	for index, want := range []error{nil, walk.ErrNoFrame} {
		err := made.process.Evaluate(context.Background(), state.Thread(), index, walk.Surroundings{}, nil, func(ctx locexpr.Context, _ *locexpr.Evaluator) error {
			evaluated++
			if pc, err := ctx.(locexpr.LocationContext).ProgramLocation(); !errors.Is(err, locexpr.ErrNoContext) {
				t.Errorf("program location %#x, %v, expected %v", pc, err, locexpr.ErrNoContext)
			}
			if l, err := ctx.(locexpr.TLSContext).TLS(t.Context(), 0); !errors.Is(err, locexpr.ErrNoContext) {
				t.Errorf("thread-local storage %v, %v, expected %v", l, err, locexpr.ErrNoContext)
			}
			return nil
		})
		if !errors.Is(err, want) {
			t.Errorf("frame %d: %v, expected %v", index, err, want)
		}
	}
	if evaluated != 1 {
		t.Errorf("%d evaluations, expected 1", evaluated)
	}
}
