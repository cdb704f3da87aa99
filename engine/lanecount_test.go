// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/visa"
	"github.com/unwindd/unwindd/sdk"
)

// widths is Gen with code of so many lanes.
type widths struct {
	sdk.Architecture
	lanes uint32
}

func (w widths) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	a, err := w.Architecture.OpenObject(ctx, e, req)
	if err == nil {
		for i := range a.Functions {
			a.Functions[i].Lanes = w.lanes
		}
	}
	return a, err
}

// Where the target does not say how many lanes a thread has, its code does; what
// cannot be is said, and not believed.
func TestLanesOfTheCodeAThreadExecutes(t *testing.T) {
	for _, c := range []struct {
		name       string
		said, code uint32
		ip         uint64
		want       uint32
		problem    string
	}{
		{"nobody says", 0, 0, genBase, 8, ""},
		{"the code says", 0, 16, genBase, 16, ""},
		{"the code says as many as the registers", 0, 8, genBase, 8, ""},
		{"the target says, too", 32, 16, genBase, 32, ""},
		{"in other code", 0, 16, 0x10, 8, ""},
		{"the code says what cannot be", 0, 7, genBase, 8, "code of 7 lanes"},
	} {
		e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{widths{visa.New(), c.code}}}, NoSymbols: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		o, err := object.Open("../plugins/visa/testdata/skl-rec-O2-1.elf")
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		var registers sdk.Registers
		registers.Set(0, littleEndianBytes(c.ip, 4))
		registers.Set(1, littleEndianBytes(1, 4))
		th := &trace.Thread{ID: "1", Arch: "visa", Processor: "skl", Lanes: c.said, Registers: registers}
		s := &genState{thread: th, module: &target.Module{
			Module: trace.Module{
				Path: o.Path(),
				Arch: "visa",
				Segments: []trace.Segment{
					{Section: ".text", Size: 0x980, Start: genBase, Executable: true},
				},
			},
			Object: o,
		}}
		tg := e.Attach(s)
		for range 2 { // the facts that were found stay
			if stack := tg.Walk(context.Background(), th); stack.Lanes != c.want {
				t.Errorf("%s: %d lanes, want %d", c.name, stack.Lanes, c.want)
			}
		}
		lane := c.want - 1
		err = tg.process.Evaluate(context.Background(), th, 0, walk.Surroundings{Lane: &lane}, nil, func(ctx locexpr.Context, _ *locexpr.Evaluator) error {
			_, lanes, err := ctx.(locexpr.LaneContext).Lane()
			if lanes != uint64(c.want) {
				t.Errorf("%s: %d lanes in an evaluation", c.name, lanes)
			}
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if problems := strings.Join(tg.ModuleInfo(&s.module.Module).Problems, "\n"); strings.Contains(problems, " lanes, which") != (c.problem != "") || !strings.Contains(problems, c.problem) {
			t.Errorf("%s: %q", c.name, problems)
		}
	}
}
