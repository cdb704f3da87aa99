// SPDX-License-Identifier: Apache-2.0

package sdk

import "context"

// RuntimeBase answers every call of a Runtime except Describe with "nothing". A plugin
// embeds it, writes Describe, and overrides the calls in which its runtime has something.
type RuntimeBase struct{}

// OpenRuntime answers that the runtime has nothing to add.
func (RuntimeBase) OpenRuntime(context.Context, RuntimeEngine, *OpenRuntimeRequest) (*OpenRuntimeAnswer, error) {
	return &OpenRuntimeAnswer{}, nil
}

// CodeRules answers that no PC is in code of the runtime.
func (RuntimeBase) CodeRules(_ context.Context, _ RuntimeEngine, req *CodeRulesRequest) (*CodeRulesAnswer, error) {
	a := &CodeRulesAnswer{Code: make([]CodeRules, len(req.PCs))}
	for i := range a.Code {
		a.Code[i].Reason = "the runtime makes no code"
	}
	return a, nil
}

// ManagedFrames answers that no stack has frames of the language.
func (RuntimeBase) ManagedFrames(_ context.Context, _ RuntimeEngine, req *ManagedFramesRequest) (*ManagedFramesAnswer, error) {
	return &ManagedFramesAnswer{Stacks: make([]ManagedStack, len(req.Threads))}, nil
}

// ManagedThreads answers that the runtime schedules no threads.
func (RuntimeBase) ManagedThreads(context.Context, RuntimeEngine, *ManagedThreadsRequest) (*ManagedThreadsAnswer, error) {
	return &ManagedThreadsAnswer{}, nil
}

// WithRuntimeBase returns r with RuntimeBase's answers in place of ErrNotImplemented, as
// WithBase does for architectures.
func WithRuntimeBase(r Runtime) Runtime { return &withRuntimeBase{r} }

type withRuntimeBase struct{ Runtime }

func (w *withRuntimeBase) OpenRuntime(ctx context.Context, e RuntimeEngine, req *OpenRuntimeRequest) (*OpenRuntimeAnswer, error) {
	return orBase(ctx, e, req, w.Runtime.OpenRuntime, RuntimeBase{}.OpenRuntime)
}

func (w *withRuntimeBase) CodeRules(ctx context.Context, e RuntimeEngine, req *CodeRulesRequest) (*CodeRulesAnswer, error) {
	return orBase(ctx, e, req, w.Runtime.CodeRules, RuntimeBase{}.CodeRules)
}

func (w *withRuntimeBase) ManagedFrames(ctx context.Context, e RuntimeEngine, req *ManagedFramesRequest) (*ManagedFramesAnswer, error) {
	return orBase(ctx, e, req, w.Runtime.ManagedFrames, RuntimeBase{}.ManagedFrames)
}

func (w *withRuntimeBase) ManagedThreads(ctx context.Context, e RuntimeEngine, req *ManagedThreadsRequest) (*ManagedThreadsAnswer, error) {
	return orBase(ctx, e, req, w.Runtime.ManagedThreads, RuntimeBase{}.ManagedThreads)
}
