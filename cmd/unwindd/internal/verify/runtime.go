// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// language implements sdk.Runtime by a function that makes calls of a plugin.
type language func(ctx context.Context, call func(context.Context, sdk.Runtime) error) error

// Runtime returns the language runtime of a plugin's process, as Architecture does.
func Runtime(p *plugin.Probe) sdk.Runtime { return language(p.CallRuntime) }

// Describe implements sdk.Runtime.
func (l language) Describe(ctx context.Context) (*sdk.RuntimeDescription, error) {
	return answerOf(ctx, l, func(ctx context.Context, r sdk.Runtime) (*sdk.RuntimeDescription, error) { return r.Describe(ctx) })
}

// OpenRuntime implements sdk.Runtime.
func (l language) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	return answerOf(ctx, l, func(ctx context.Context, r sdk.Runtime) (*sdk.OpenRuntimeAnswer, error) {
		return r.OpenRuntime(ctx, e, req)
	})
}

// CodeRules implements sdk.Runtime.
func (l language) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	return answerOf(ctx, l, func(ctx context.Context, r sdk.Runtime) (*sdk.CodeRulesAnswer, error) {
		return r.CodeRules(ctx, e, req)
	})
}

// ManagedFrames implements sdk.Runtime.
func (l language) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	return answerOf(ctx, l, func(ctx context.Context, r sdk.Runtime) (*sdk.ManagedFramesAnswer, error) {
		return r.ManagedFrames(ctx, e, req)
	})
}

// ManagedThreads implements sdk.Runtime.
func (l language) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	return answerOf(ctx, l, func(ctx context.Context, r sdk.Runtime) (*sdk.ManagedThreadsAnswer, error) {
		return r.ManagedThreads(ctx, e, req)
	})
}

// FindFunctions implements sdk.RuntimeEngine: no function is known.
func (n nothing) FindFunctions(ctx context.Context, addresses []uint64) ([]sdk.FunctionPlace, error) {
	if n.isSlow {
		return nil, n.wait(ctx)
	}
	return make([]sdk.FunctionPlace, len(addresses)), nil
}

// examineRuntime makes the checks of the kit for runtimes.
func (v *verifier) examineRuntime() bool {
	l := language(v.examinee.callRuntime)
	if d, err := l.Describe(v.ctx); err == nil && d.Validate() == nil {
		v.runtime = d
	}
	v.findings = append(v.findings, archtest.VerifyRuntime(v.ctx, l, archtest.RuntimeOptions{Deadline: v.kitDeadline()})...)
	return v.runtime != nil
}

// describeRuntime describes the runtime again.
func (v *verifier) describeRuntime() (difference string, err error) {
	again, err := language(v.examinee.callRuntime).Describe(v.ctx)
	if err != nil {
		return "", err
	}
	return archtest.RuntimeDifference(v.runtime, again), nil
}

// runtimeRequests returns a request for each call of a runtime.
func (v *verifier) runtimeRequests(e nothing) []request {
	l := language(v.examinee.callRuntime)
	open := &sdk.OpenRuntimeRequest{
		Runtime: 1, Object: 1, Path: "module", AddressBits: 64, Segments: []sdk.RuntimeSegment{{Address: 0x1000, Size: 0x10000, Start: 0x401000}},
		Symbols: make([]sdk.SymbolPlace, len(v.runtime.Symbols)), Types: make([]sdk.TypeLayout, len(v.runtime.Types)),
	}
	for i := range open.Symbols {
		open.Symbols[i] = sdk.SymbolPlace{IsKnown: true, Address: 0x401000, Size: 8}
	}
	code := &sdk.CodeRulesRequest{Runtime: 1, PCs: make([]uint64, 1000)}
	frames := &sdk.ManagedFramesRequest{Runtime: 1, Threads: make([]sdk.NativeStack, 64)}
	return []request{
		{"Describe", func(ctx context.Context) error { _, err := l.Describe(ctx); return err }},
		{"OpenRuntime", func(ctx context.Context) error { _, err := l.OpenRuntime(ctx, e, open); return err }},
		{"CodeRules", func(ctx context.Context) error { _, err := l.CodeRules(ctx, e, code); return err }},
		{"ManagedFrames", func(ctx context.Context) error { _, err := l.ManagedFrames(ctx, e, frames); return err }},
		{"ManagedThreads", func(ctx context.Context) error {
			_, err := l.ManagedThreads(ctx, e, &sdk.ManagedThreadsRequest{Runtime: 1, Frames: true})
			return err
		}},
	}
}
