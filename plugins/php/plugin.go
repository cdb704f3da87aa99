// SPDX-License-Identifier: Apache-2.0

// Package php is the plugin of PHP's interpreter, the Zend engine: it finds the frames of PHP in
// native stacks, their variables, the exception on its way and the fatal error, and lists fibers.
//
// The interpreter's state is the variable executor_globals, whose place the executable exports. It
// leads to the innermost of a list of frames, of type zend_execute_data, each with its function
// and its operation. The layouts of these change from one version to the next and are described
// nowhere in the executable, so they are a table by the number that modules of PHP are built for.
package php

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/sdk"
)

// New returns the runtime.
func New() sdk.Runtime { return &plugin{} }

// The indices of Symbols in the description.
const (
	symbolExecutor = iota
	symbolModules
	symbolExecute
	symbolCore
	symbolGenerator
	symbolFiber
	symbolException
	symbolError
	symbolThreads
)

// Description returns the description of PHP.
func Description() *sdk.RuntimeDescription {
	return &sdk.RuntimeDescription{
		Name: "php", Version: "1", ThreadKind: "fiber",
		// A build with threads has the second one.
		Recognises: []sdk.RuntimeRecogniser{{Symbol: "executor_globals"}, {Symbol: "executor_globals_offset"}},
		Symbols: []string{
			symbolExecutor: "executor_globals", symbolModules: "module_registry", symbolExecute: "execute_ex", symbolCore: "core_globals",
			symbolGenerator: "zend_ce_generator", symbolFiber: "zend_ce_fiber", symbolException: "zend_ce_exception", symbolError: "zend_ce_error",
			symbolThreads: "executor_globals_offset",
		},
	}
}

// plugin implements sdk.Runtime.
type plugin struct {
	sdk.RuntimeBase

	known sdk.ByHandle[*process]
}

// Describe implements sdk.Runtime.
func (*plugin) Describe(context.Context) (*sdk.RuntimeDescription, error) { return Description(), nil }

// OpenRuntime finds the version of the interpreter and the places of its state.
func (p *plugin) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	x := &process{request: req}
	r := newReader(ctx, e, x)
	answer := &sdk.OpenRuntimeAnswer{}
	switch version, err := r.open(); {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		answer.Version, answer.Problems = version, []string{"its frames are not read: " + err.Error()}
	default:
		answer.Version, answer.Fatal = version, r.fatal()
		answer.HasFrames, answer.HasThreads = true, x.fiberClass != 0
	}
	p.known.Put(req.Runtime, x)
	return answer, nil
}

// get returns a process that was opened.
func (p *plugin) get(handle uint64) (*process, error) {
	if x, isOpen := p.known.Get(handle); isOpen {
		return x, nil
	}
	return nil, sdk.ErrObjectNotOpen
}

// ManagedFrames finds the frames of PHP in native stacks.
func (p *plugin) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	x, err := p.get(req.Runtime)
	if err != nil {
		return nil, err
	}
	answer := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	if x.layout == nil {
		return answer, nil
	}
	r := newReader(ctx, e, x)
	if req.Variables {
		r.limits = &limits{depth: int(min(req.Depth, sdk.MaxVariableDepth-1)), elements: int(min(req.Elements, maxElements))}
	}
	for i := range req.Threads {
		if s := &req.Threads[i]; x.executes(s) {
			answer.Stacks[i] = r.stack(s)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return answer, nil
}

// ManagedThreads lists the fibers.
func (p *plugin) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	x, err := p.get(req.Runtime)
	if err != nil {
		return nil, err
	}
	answer := &sdk.ManagedThreadsAnswer{}
	if x.layout == nil || x.fiberClass == 0 {
		return answer, nil
	}
	r := newReader(ctx, e, x)
	answer.Threads, err = r.fibers(req.Frames)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		answer.Problems = []string{"its fibers are not listed: " + err.Error()}
	}
	return answer, nil
}

// errThreads is the answer for a build with threads.
var errThreads = errors.New("it was built with threads, which no layout here describes")
