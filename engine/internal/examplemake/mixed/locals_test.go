// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/examples/mixed/parts"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestVariablesAreWhatTheWorkItemsHave holds the variables of every lane, where it is,
// against what its work-item was given.
func TestVariablesAreWhatTheWorkItemsHave(t *testing.T) {
	e, err := engine.New(engine.Options{
		Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}},
		Locals:  &trace.ValueLimits{},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	target, err := e.Open("../../../../examples/mixed/mixed.snapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	known := map[string]int{}
	for _, th := range target.Threads()[1:] {
		stack := target.Walk(context.Background(), th)
		for lane := range stack.Lanes {
			one, ok := stack.Lane(lane)
			if !ok {
				continue
			}
			item := lane
			if th.Wave.Kernel == "grade" {
				item += 64 * th.Wave.Group[0]
			}
			worst := func(side int) string { return fmt.Sprint(slices.Max(parts.Measured(int(item), side))) }
			want := map[string]string{
				"w": fmt.Sprint(parts.Wear(int(item))), "part": fmt.Sprintf("%#x", partStart+64*uint64(item)), "front": worst(0), "back": worst(1),
			}
			if th.Wave.Kernel == "grade" {
				want["wear"] = want["w"]
			}
			for i := range one.Frames {
				for _, list := range one.Frames[i].Locals() {
					for k := range list {
						v := &list[k]
						if want[v.Name] == "" || v.Status == trace.ValueOptimizedOut || v.Name == "wear" && v.Type != "int" {
							continue
						}
						known[v.Name]++
						if v.Text != want[v.Name] {
							t.Errorf("%s, lane %d: %s = %s (%s %s), expected %s", th.ID, lane, v.Name, v.Text, v.Status, v.Problem, want[v.Name])
						}
					}
				}
			}
		}
	}
	t.Log(known)
	// 64 lanes of one wave and 36 of the other have w, wherever they are.
	if known["w"] != 100 || known["wear"] < 32 || known["part"] == 0 || known["front"] == 0 {
		t.Errorf("values of lanes that are known: %v", known)
	}
}
