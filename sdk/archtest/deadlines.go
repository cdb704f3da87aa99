// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"errors"
	"time"

	"github.com/unwindd/unwindd/sdk"
)

// deadlines makes every call with a context that has ended, and with one that
// ends while the engine is slow to answer. A call must return then, with an answer or
// an error.
func (v *verifier) deadlines() {
	ranges := &sdk.FrameRulesRequest{Functions: v.codeRanges()}
	object := &sdk.OpenObjectRequest{Object: 1, Sections: []sdk.SectionInfo{{Name: ".text", Size: 100}}}
	target := &sdk.OpenTargetRequest{}
	for _, r := range v.desc.Recognises {
		target.Notes = append(target.Notes, sdk.Note{Owner: r.NoteOwner, Type: 1, Data: noise(100)})
	}
	threads := &sdk.BindThreadsRequest{Threads: v.threads(4)}
	e := v.offer(slowEngine{})
	calls := []struct {
		name string
		call func(context.Context) error
	}{
		{"Describe", func(ctx context.Context) error { _, err := v.arch.Describe(ctx); return err }},
		{"OpenTarget", func(ctx context.Context) error { _, err := v.arch.OpenTarget(ctx, e, target); return err }},
		{"OpenObject", func(ctx context.Context) error { _, err := v.arch.OpenObject(ctx, e, object); return err }},
		{"FrameRules", func(ctx context.Context) error { _, err := v.arch.FrameRules(ctx, e, ranges); return err }},
		{"BindThreads", func(ctx context.Context) error { _, err := v.arch.BindThreads(ctx, e, threads); return err }},
		{"Translate", func(ctx context.Context) error {
			_, err := v.arch.Translate(ctx, e, &sdk.TranslateRequest{Lane: -1})
			return err
		}},
		{"ClassifyReturn", func(ctx context.Context) error { _, err := v.arch.ClassifyReturn(ctx, v.returns(64)); return err }},
		{"Disassemble", func(ctx context.Context) error {
			_, err := v.arch.Disassemble(ctx, &sdk.DisassembleRequest{Code: noise(1000)})
			return err
		}},
	}
	for _, c := range calls {
		if v.failures[c.name] >= maxFailures {
			continue
		}
		for _, left := range []time.Duration{0, 50 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(v.ctx, left)
			_, err := guarded(ctx, left+grace, func(ctx context.Context) (struct{}, error) { return struct{}{}, c.call(ctx) })
			cancel()
			switch {
			case v.ctx.Err() != nil:
				return
			case errors.Is(err, errLate):
				v.find(Error, "Return when the context of the call ends; pass it on to every read from the engine.",
					"%s: no return %v after its context ended", c.name, grace)
			case errors.Is(err, context.DeadlineExceeded):
			case err != nil:
				v.wrong(c.name, "a request whose context ended", err)
			}
		}
	}
}
