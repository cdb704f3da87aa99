// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"errors"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// translator is an architecture that has memory of which it alone knows where it is, and
// that does not find it before it is told to stop.
type translator struct {
	sdk.Architecture
	begun chan struct{}
}

func (a *translator) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	answer, err := a.Architecture.BindThreads(ctx, e, req)
	if err == nil {
		for i := range answer.Threads {
			answer.Threads[i].Maps = []sdk.SpaceMap{{Space: locexpr.DefaultSpace, Ranges: []sdk.MapRange{
				{Kind: sdk.OpaqueMap, Start: 0x1000, Size: 0x1000},
			}}}
		}
	}
	return answer, err
}

func (a *translator) Translate(ctx context.Context, _ sdk.Engine, _ *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
	a.begun <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// A call of a plugin that a walk, an evaluation or a read of memory makes ends with the context of
// its caller.
func TestCallsOfPluginsEndWithTheirCallers(t *testing.T) {
	thread := &trace.Thread{ID: "1", Arch: "x86_64"}
	d := x86_64.Description()
	thread.Registers.Set(d.PC, []byte{0, 0x30, 0, 0, 0, 0, 0, 0})
	thread.Registers.Set(d.SP, []byte{0, 0x10, 0, 0, 0, 0, 0, 0})
	arch := &translator{x86_64.New(), make(chan struct{})}
	p := newProcess(t, arch, Options{MaxFrames: 8}, &many{threads: []*trace.Thread{thread}})
	for name, call := range map[string]func(context.Context) error{
		"walk": func(ctx context.Context) error {
			p.Walk(ctx, thread)
			return ctx.Err()
		},
		"evaluation": func(ctx context.Context) error {
			return p.Evaluate(ctx, thread, 0, Surroundings{}, locexpr.DWARF5, func(c locexpr.Context, ev *locexpr.Evaluator) error {
				_, err := ev.Value(ctx, []byte{0x77, 0, 0x06}, c) // DW_OP_breg7 0; DW_OP_deref
				return err
			})
		},
		"read": func(ctx context.Context) error {
			view, ok := p.View(ctx, thread)
			if !ok {
				return errors.New("no view")
			}
			return view.Read(ctx, locexpr.DefaultSpace, 0x1000, make([]byte, 8))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() { done <- call(ctx) }()
			for isAsked := false; ; {
				select {
				case <-arch.begun:
					isAsked = true
					cancel()
				case err := <-done:
					if !isAsked || !errors.Is(err, context.Canceled) {
						t.Errorf("%v, asked: %v, expected %v", err, isAsked, context.Canceled)
					}
					return
				}
			}
		})
	}
}
