// SPDX-License-Identifier: Apache-2.0

// Package cpython is the plugin of CPython 3.8 to 3.15: it finds the Python frames of threads, the
// names of threads, the global interpreter lock, exceptions, and asyncio's tasks.
//
// From 3.13 on the interpreter says at _PyRuntime where its structs have their members; for what it
// leaves out, and for older versions, tables per version are used, and verified by the objects.
// The stack of Python is a list of frames that belongs to a thread's state. The engine walks the C
// stack; the frames of Python are put where the C function stands that executes them, by a variable
// of that function which the list of frames leads to.
package cpython

import (
	"context"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// New returns the runtime.
func New() sdk.Runtime { return &plugin{} }

// The indices of Symbols in the description.
const (
	symbolRuntime = iota
	symbolVersion
	symbolEval
	symbolNone
)

// Description returns the description of CPython.
func Description() *sdk.RuntimeDescription {
	return &sdk.RuntimeDescription{
		Name: "cpython", Version: "1", ThreadKind: "task",
		// A program that has CPython in it and is stripped still has the section.
		Recognises: []sdk.RuntimeRecogniser{{Symbol: "_PyRuntime"}, {Section: runtimeSection}},
		Symbols: []string{
			symbolRuntime: "_PyRuntime", symbolVersion: "Py_Version", symbolEval: "_PyEval_EvalFrameDefault", symbolNone: "_Py_NoneStruct",
		},
	}
}

// runtimeSection is the section that _PyRuntime is in, from 3.10 on.
const runtimeSection = ".PyRuntime"

// plugin implements sdk.Runtime.
type plugin struct {
	sdk.RuntimeBase
	known sdk.ByHandle[*process]
}

// process is CPython in a module of a process.
type process struct {
	layout  *layout
	request *sdk.OpenRuntimeRequest
	runtime uint64 // the address of _PyRuntime
	none    uint64 // the address of None; 0: unknown
	version string
	// isTailCall says that functions of the module execute the frames in turns: each tail calls the
	// next, and _PyEval_EvalFrameDefault calls the first.
	isTailCall bool
	failure    string // why nothing is read; "": it is

	active active
	pages  sdk.PageList // that the last call read
}

// active has the addresses of the dicts in which interpreters have their threads.
type active struct {
	mu    sync.Mutex
	known map[activeKey]uint64
}

// activeKey is an interpreter with its sys.modules.
type activeKey struct{ interpreter, modules uint64 }

func (a *active) get(key activeKey) uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.known[key]
}

func (a *active) put(key activeKey, dict uint64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= maxInterpreters {
		a.known = map[activeKey]uint64{}
	}
	a.known[key] = dict
}

// Describe implements sdk.Runtime.
func (*plugin) Describe(context.Context) (*sdk.RuntimeDescription, error) { return Description(), nil }

// OpenRuntime finds the version and the layout of the runtime.
func (p *plugin) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	g := &process{request: req}
	err := g.open(ctx, e)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	answer := &sdk.OpenRuntimeAnswer{Version: g.version}
	if err != nil {
		g.failure = err.Error()
		answer.Problems = []string{"its frames are not known: " + g.failure}
		p.known.Put(req.Runtime, g)
		return answer, nil //nolint:nilerr // it is among the problems
	}
	answer.HasFrames, answer.HasThreads = true, true
	r := newReader(ctx, e, g)
	answer.Locks = r.locks()
	g.pages.Keep(r.mem)
	p.known.Put(req.Runtime, g)
	return answer, nil
}

// find returns a process that was opened.
func (p *plugin) find(handle uint64) (*process, error) {
	if g, isKnown := p.known.Get(handle); isKnown {
		return g, nil
	}
	return nil, sdk.ErrObjectNotOpen
}

// ManagedFrames finds the Python frames of threads.
func (p *plugin) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	g, err := p.find(req.Runtime)
	if err != nil {
		return nil, err
	}
	answer := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	if g.failure != "" {
		return answer, nil
	}
	r := newReader(ctx, e, g)
	newStacks(r, req, answer.Stacks).fill()
	g.pages.Keep(r.mem)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return answer, nil
}
