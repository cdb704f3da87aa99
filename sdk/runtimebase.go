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
