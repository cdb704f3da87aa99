// SPDX-License-Identifier: Apache-2.0

// Package v8 is the plugin of V8, the JavaScript engine of Node.js: it finds the functions of
// JavaScript in native stacks.
//
// A build of V8 for debuggers after death exports v8dbg_* symbols, numbers that say where objects
// have what. They are read from the process; what V8 does not say of itself is known by its
// version. Every frame of V8's code has the address of the caller's frame at rbp, and below it
// either the kind of the frame or the function and its context. Every object is verified by its
// map before it is used.
package v8

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// New returns the runtime.
func New() sdk.Runtime { return &plugin{} }

// Description returns the description of V8.
func Description() *sdk.RuntimeDescription {
	return &sdk.RuntimeDescription{
		Name: "v8", Version: "1",
		Recognises: []sdk.RuntimeRecogniser{{Symbol: symbolNames[symbolMajor]}, {Symbol: prefix + "frametype_EntryFrame"}},
		Symbols:    symbolNames,
	}
}

// plugin implements sdk.Runtime.
type plugin struct {
	sdk.RuntimeBase

	mu    sync.Mutex
	known map[uint64]*process // by handle
	order []uint64            // of known, the oldest first
}

// maxKnown bounds the processes that are remembered.
const maxKnown = 256

// process is V8 in a module of a process.
type process struct {
	layout   *layout
	request  *sdk.OpenRuntimeRequest
	ranges   []codeRange
	hasNames bool            // V8's own code has symbols
	goesOn   map[uint64]bool // addresses of V8's own code at whose beginning frames go on
}

// findCode finds the code of the process.
func (p *process) findCode(f *finder, answer *sdk.OpenRuntimeAnswer) {
	p.ranges = f.ranges()
	symbols := f.req.Symbols[len(symbolNames)-len(codeSymbols):]
	p.hasNames = symbols[symbolEntry].IsKnown
	blob := f.blob() // others are copies of it
	end := uint64(0)
	for _, r := range p.ranges {
		for _, s := range symbols[symbolEntry+1:] {
			if s.IsKnown && r.isBuiltin && blob != 0 {
				p.goesOn[s.Address-blob+r.start] = true
			}
		}
		name := "code range"
		if r.isBuiltin {
			name = "embedded builtins"
		}
		if r.start >= end { // else it is a copy in the range before
			answer.Code = append(answer.Code, sdk.RuntimeCode{Start: r.start, End: r.start + r.size, Name: name})
			end = r.start + r.size
		}
	}
}

// Describe implements sdk.Runtime.
func (*plugin) Describe(context.Context) (*sdk.RuntimeDescription, error) { return Description(), nil }

// OpenRuntime finds the version of V8 and where its objects have what.
func (p *plugin) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	r := sdk.NewMemoryReader(ctx, e, req.ByteOrder, req.AddressBits)
	l, text, err := newLayout(r, req)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if errors.Is(err, errNowhere) {
		return &sdk.OpenRuntimeAnswer{}, nil
	}
	answer := &sdk.OpenRuntimeAnswer{Version: text, HasFrames: err == nil}
	if err != nil {
		answer.Problems = []string{fmt.Sprintf("frames of JavaScript are not shown: %v", err)}
		return answer, nil
	}
	one := &process{layout: l, request: req, goesOn: map[uint64]bool{}}
	one.findCode(&finder{ctx, e, req, r}, answer)
	p.keep(req.Runtime, one)
	return answer, ctx.Err()
}

// keep remembers a process, and forgets the oldest one where there are too many.
func (p *plugin) keep(handle uint64, one *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil {
		p.known = map[uint64]*process{}
	}
	if p.known[handle] == nil {
		p.order = append(p.order, handle)
	}
	p.known[handle] = one
	if len(p.order) > maxKnown {
		delete(p.known, p.order[0])
		p.order = p.order[1:]
	}
}

// find returns a process that was opened.
func (p *plugin) find(handle uint64) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.known[handle]; one != nil {
		return one, nil
	}
	return nil, sdk.ErrObjectNotOpen
}

// call has the objects that are read while a call is under way.
type call struct {
	*heap
	*process
	functions map[object]*function
	scripts   map[object]*script
	tables    map[object]sourcePositions // by bytecode
	code      map[uint64]*machineCode    // by PC
	searched  uint64                     // bytes, for code
}

func newCall(ctx context.Context, e sdk.RuntimeEngine, p *process) *call {
	r := sdk.NewMemoryReader(ctx, e, p.request.ByteOrder, p.request.AddressBits)
	return &call{
		heap: newHeap(p.layout, r), process: p,
		functions: map[object]*function{}, scripts: map[object]*script{}, tables: map[object]sourcePositions{}, code: map[uint64]*machineCode{},
	}
}

// ManagedFrames finds the functions of JavaScript in native stacks.
func (p *plugin) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	one, err := p.find(req.Runtime)
	if err != nil {
		return nil, err
	}
	c := newCall(ctx, e, one)
	c.prefetch(req.Threads)
	answer := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	for i := range req.Threads {
		answer.Stacks[i] = c.stack(&req.Threads[i])
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return answer, nil
}
