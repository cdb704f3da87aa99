package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/plugin"
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
		err := core.Evaluate(context.Background(), th, index, Surroundings{}, locexpr.DWARF5, func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
			l, err := ev.Location([]byte{0x50 + xmm0}, ctx)
			if err != nil {
				return err
			}
			got := make([]byte, 16)
			err = l.Read(ctx, got, 128)
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
		err := core.Evaluate(context.Background(), th, index, Surroundings{}, nil, func(ctx locexpr.Context, _ *locexpr.Evaluator) error {
			got, err := ctx.ProgramLocation()
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
		"frame base":       {0x91, 0},          // DW_OP_fbreg 0
		"entry value":      {0xa3, 1, 0x50},    // DW_OP_entry_value { DW_OP_reg0 }
		"object":           {0x97},             // DW_OP_push_object_address
		"base type":        {0xa5, 0, 1},       // DW_OP_regval_type rax, 1
		"parameter":        {0xfa, 1, 0, 0, 0}, // DW_OP_GNU_parameter_ref 1
		"address of .addr": {0xa1, 0},          // DW_OP_addrx 0
	} {
		err := core.Evaluate(context.Background(), core.Threads()[0], 0, Surroundings{}, locexpr.DWARF5, func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
			_, err := ev.Location(expr, ctx)
			return err
		})
		if !errors.Is(err, locexpr.ErrNoContext) {
			t.Errorf("%s: %v, expected %v", name, err, locexpr.ErrNoContext)
		}
	}
}
