// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// withVariable is x86-64, and describes a variable of _start, of which there is no debug
// information: the word at the CFA.
type withVariable struct{ sdk.Architecture }

func (a withVariable) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	answer, err := a.Architecture.OpenObject(ctx, e, req)
	if err != nil {
		return nil, err
	}
	for _, f := range answer.Functions {
		if f.Name == "_start" {
			answer.Variables = append(answer.Variables, sdk.Variable{
				Name: "argc", Section: f.Section, Start: []uint64{f.Start}, End: []uint64{f.End}, Locations: [][]byte{{0x9c}}, // DW_OP_call_frame_cfa
			})
		}
	}
	return answer, nil
}

func TestVariablesOfAPluginMayLieAtTheCFA(t *testing.T) {
	e, err := engine.New(engine.Options{Locals: &trace.ValueLimits{}, Plugins: plugin.Options{InProcess: []sdk.Architecture{withVariable{x86_64.New()}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	target, err := e.Open("../examples/crash/server.core")
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	for s := range target.Stacks(t.Context()) {
		for i := range s.Frames {
			for _, list := range s.Frames[i].Locals() {
				for _, v := range list {
					if v.Name == "argc" && v.Value.HasText {
						return
					} else if v.Name == "argc" {
						t.Errorf("%+v", v)
					}
				}
			}
		}
	}
	t.Error("no variable argc with a value")
}
