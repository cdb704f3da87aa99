// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestEvaluationsHaveTheirOwnSettings evaluates in threads whose frames were
// found in different ways: by call frame information, and by rules, which the
// evaluator for expressions of plugins evaluates.
func TestEvaluationsHaveTheirOwnSettings(t *testing.T) {
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	mixed, err := e.Open("../examples/mixed/mixed.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	lane := uint32(20)
	evaluated := 0
	for _, th := range mixed.Threads() {
		if th.Arch != "amdgpu" {
			continue
		}
		for index, f := range mixed.Walk(context.Background(), th).Frames {
			bias := f.PC - f.ModuleOffset // the objects are linked at 0
			err := mixed.process.Evaluate(context.Background(), th, index, walk.Surroundings{Lane: &lane}, nil, func(ctx locexpr.Context, ev *locexpr.Evaluator) error {
				// What the evaluation asks for is found by other evaluators.
				if v, err := ev.Value(t.Context(), expression(t, "LLVM_call_frame_entry_reg PC; drop; LLVM_push_lane"), ctx); err == nil && v.Uint64() != 20 {
					t.Errorf("%s frame %d: lane %v", th.ID, index, v)
				}
				if v, err := ev.Value(t.Context(), expression(t, "LLVM_push_lane"), ctx); err != nil || v.Uint64() != 20 {
					t.Errorf("%s frame %d: lane %v: %v", th.ID, index, v, err)
				}
				l, err := ev.Location(t.Context(), expression(t, "addr 0x1000"), ctx)
				if _, address, _ := l.MemoryAddress(); address != bias+0x1000 {
					t.Errorf("%s frame %d: addr 0x1000 is %v, expected %#x", th.ID, index, l, bias+0x1000)
				}
				if f.HasCFA {
					if l, err := ev.Location(t.Context(), expression(t, "call_frame_cfa"), ctx); err != nil || l.Place(0).Address != f.CFA {
						t.Errorf("%s frame %d: CFA %v: %v, expected %#x", th.ID, index, l, err, f.CFA)
					}
				}
				evaluated++
				return err
			})
			if err != nil {
				t.Errorf("%s frame %d: %v", th.ID, index, err)
			}
		}
	}
	if evaluated < 4 {
		t.Errorf("%d frames", evaluated)
	}
}

// expression is the bytes of an expression of AMDGPU in the canonical dialect.
func expression(t *testing.T, text string) []byte {
	t.Helper()
	expr, err := locexpr.Parse(text, locexpr.TextOptions{Dialect: locexpr.Canonical, Names: amdgpu.Description().Names(64)})
	if err != nil {
		t.Fatal(err)
	}
	return expr
}
