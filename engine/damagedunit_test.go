// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// Of a function whose unit cannot be read there are no variables, and no places to check.
// The snapshot is examples/mixed/mixed.snapshot, in which bytes of a module's abbreviations
// were changed (.ci/peers/mutations -seed 20261128 -first 24823).
func TestVariablesOfADamagedUnit(t *testing.T) {
	e, err := engine.New(engine.Options{
		Locals:  &trace.ValueLimits{Depth: 9, Elements: 8},
		Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	target, err := e.Open("testdata/variables/damaged-unit.snapshot.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for _, thread := range target.Threads() {
		if stack := target.Walk(t.Context(), thread); len(stack.Frames) == 0 {
			t.Errorf("thread %s has no frames", thread.ID)
		}
	}
}
