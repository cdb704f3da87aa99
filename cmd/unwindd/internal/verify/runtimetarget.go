// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// RuntimeCall is a call that an engine made of a language runtime.
type RuntimeCall[R, A any] struct {
	Engine  sdk.RuntimeEngine // that reads the target
	Request *R
	Answer  *A
	Err     error
}

// The calls that an engine makes of a language runtime.
type (
	// RuntimeOpened is a call of OpenRuntime.
	RuntimeOpened = RuntimeCall[sdk.OpenRuntimeRequest, sdk.OpenRuntimeAnswer]
	// FramesCall is a call of ManagedFrames.
	FramesCall = RuntimeCall[sdk.ManagedFramesRequest, sdk.ManagedFramesAnswer]
	// ThreadsCall is a call of ManagedThreads.
	ThreadsCall = RuntimeCall[sdk.ManagedThreadsRequest, sdk.ManagedThreadsAnswer]
)

// RuntimeTarget is an open target, for calls of one language runtime about it.
type RuntimeTarget struct {
	// Modules are the modules that have the runtime, as it was asked about them.
	Modules []*RuntimeOpened

	calls  *runtimeRecorder
	target *engine.Target
	engine *engine.Engine
}

// OpenRuntimes opens a target, and the runtime in its modules. o has the architectures of the target.
func OpenRuntimes(ctx context.Context, r sdk.Runtime, d *sdk.RuntimeDescription, o plugin.Options, path string) (*RuntimeTarget, error) {
	calls := &runtimeRecorder{runtime: r, description: d}
	t, err := openRecorded(ctx, []sdk.Runtime{calls}, []string{d.Name}, o, path)
	if err != nil {
		return nil, err
	}
	t.calls, t.Modules = calls, calls.opened
	return t, nil
}

// RuntimeOf returns the index of the first of the runtimes described that a module of a target
// has.
func RuntimeOf(ctx context.Context, descriptions []*sdk.RuntimeDescription, o plugin.Options, path string) (int, error) {
	var all []*runtimeRecorder
	var inProcess []sdk.Runtime
	var names []string
	for _, d := range descriptions {
		r := &runtimeRecorder{runtime: describedRuntime{description: d}, description: d}
		all, inProcess, names = append(all, r), append(inProcess, r), append(names, d.Name)
	}
	t, err := openRecorded(ctx, inProcess, names, o, path)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	if i := slices.IndexFunc(all, func(r *runtimeRecorder) bool { return len(r.opened) > 0 }); i >= 0 {
		return i, nil
	}
	if len(names) == 0 {
		return 0, fmt.Errorf("%s: there is no plugin of a language runtime", path)
	}
	return 0, fmt.Errorf("%s: no module has one of the language runtimes %s", path, strings.Join(names, ", "))
}

// openRecorded opens a target with runtimes that record what they are asked, and with no others.
// Settings for plugins of their names are meant for the others.
func openRecorded(ctx context.Context, runtimes []sdk.Runtime, names []string, o plugin.Options, path string) (*RuntimeTarget, error) {
	o.InProcessRuntimes, o.OnlyInProcessRuntimes = runtimes, true
	o.Disabled = slices.DeleteFunc(slices.Clone(o.Disabled), func(name string) bool { return slices.Contains(names, name) })
	o.Replace = maps.Clone(o.Replace)
	maps.DeleteFunc(o.Replace, func(old, _ string) bool { return slices.Contains(names, old) })
	e, err := engine.New(engine.Options{Plugins: o})
	if err != nil {
		return nil, err
	}
	t := &RuntimeTarget{engine: e}
	if t.target, err = e.Open(path); err != nil {
		_ = e.Close()
		return nil, err
	}
	for range t.target.StacksOf(ctx, nil) {
		break // the runtimes are opened before the first stack is walked
	}
	return t, nil
}

// Close closes the target.
func (t *RuntimeTarget) Close() {
	_ = t.target.Close()
	_ = t.engine.Close()
}

// Frames has the engine ask for the frames of the language in the stacks of threads, which have these IDs,
// or of all threads. It returns the first call, which is about no more stacks than one call is; nil where
// the engine asked nothing.
func (t *RuntimeTarget) Frames(ctx context.Context, ids []string) (*FramesCall, error) {
	threads := t.target.Threads()
	if len(ids) > 0 {
		threads = nil
	}
	for _, id := range ids {
		all := t.target.Threads()
		i := slices.IndexFunc(all, func(th *trace.Thread) bool { return th.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("no thread %s", id)
		}
		threads = append(threads, all[i])
	}
	for range t.target.StacksOf(ctx, threads) {
		if len(t.calls.frames) > 0 {
			break
		}
	}
	return first(t.calls.frames), ctx.Err()
}

// Threads has the engine ask for the threads that the runtime schedules. It returns the first
// call; nil where the engine asked nothing.
func (t *RuntimeTarget) Threads(ctx context.Context) (*ThreadsCall, error) {
	_ = t.target.WithGoroutines(ctx) // shares what the target has, which is closed with it
	return first(t.calls.threads), ctx.Err()
}

// Problems lists what the engine says of the runtime and its answers.
func (t *RuntimeTarget) Problems() (list []string) {
	for _, p := range t.target.Problems() {
		if text, ok := strings.CutPrefix(p, "runtime "+t.calls.description.Name+" in "); ok {
			list = append(list, text)
		}
	}
	return list
}

func first[T any](list []*T) *T {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// describedRuntime is a language runtime of which there is only the description.
type describedRuntime struct {
	sdk.RuntimeBase
	description *sdk.RuntimeDescription
}

// Describe implements sdk.Runtime.
func (d describedRuntime) Describe(context.Context) (*sdk.RuntimeDescription, error) {
	return d.description, nil
}

// runtimeRecorder is a language runtime that passes calls on, and keeps them.
type runtimeRecorder struct {
	runtime     sdk.Runtime
	description *sdk.RuntimeDescription

	mu      sync.Mutex
	opened  []*RuntimeOpened
	frames  []*FramesCall
	threads []*ThreadsCall
}

// record makes a call and keeps it.
func record[R, A any](ctx context.Context, r *runtimeRecorder, list *[]*RuntimeCall[R, A], e sdk.RuntimeEngine, req *R,
	f func(context.Context, sdk.RuntimeEngine, *R) (*A, error),
) (*A, error) {
	a, err := f(ctx, e, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, &RuntimeCall[R, A]{Engine: e, Request: req, Answer: a, Err: err})
	return a, err
}

// Describe implements sdk.Runtime.
func (r *runtimeRecorder) Describe(context.Context) (*sdk.RuntimeDescription, error) {
	return r.description, nil
}

// OpenRuntime implements sdk.Runtime.
func (r *runtimeRecorder) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	return record(ctx, r, &r.opened, e, req, r.runtime.OpenRuntime)
}

// CodeRules implements sdk.Runtime. Walks of stacks make this call, which is not kept.
func (r *runtimeRecorder) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	return r.runtime.CodeRules(ctx, e, req)
}

// ManagedFrames implements sdk.Runtime. Variables are asked for in any case.
func (r *runtimeRecorder) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	limits := trace.DefaultValueLimits
	with := *req
	with.Variables, with.Depth, with.Elements = true, uint32(limits.Depth), uint32(limits.Elements) //nolint:gosec // small
	return record(ctx, r, &r.frames, e, &with, r.runtime.ManagedFrames)
}

// ManagedThreads implements sdk.Runtime.
func (r *runtimeRecorder) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	return record(ctx, r, &r.threads, e, req, r.runtime.ManagedThreads)
}
