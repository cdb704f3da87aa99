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

	"github.com/unwindd/unwindd/sdk"
)

// New returns the runtime.
func New() sdk.Runtime { return &plugin{} }

// Description returns the description of V8.
func Description() *sdk.RuntimeDescription {
	return &sdk.RuntimeDescription{
		Name: "v8", Version: "1",
		Recognises: []sdk.RuntimeRecogniser{
			{Symbol: symbolNames[symbolMajor]}, {Symbol: prefix + "frametype_EntryFrame"},
			{Symbol: codeSymbols[symbolVersionText]}, {Section: collectorSection}, // alone, without numbers
		},
		Symbols: symbolNames,
	}
}

// plugin implements sdk.Runtime.
type plugin struct {
	sdk.RuntimeBase

	known sdk.ByHandle[*process]
}

// process is V8 in a module of a process.
type process struct {
	layout    *layout
	request   *sdk.OpenRuntimeRequest
	ranges    []codeRange
	ownFrames []codeRange // V8's own code whose frames are not as the others'
	isolates  []uint64
	places    isolateLayout
}

// findCode finds the code of the process.
func (p *process) findCode(f *finder, answer *sdk.OpenRuntimeAnswer) {
	p.ranges = f.ranges()
	p.isolates, p.places = f.isolates, f.layout
	symbols := f.req.Symbols[len(symbolNames)-len(codeSymbols):]
	blob := f.blob() // others are copies of it
	end := uint64(0)
	for _, r := range p.ranges {
		for _, s := range symbols[symbolOwnFrame:] {
			if s.IsKnown && r.isBuiltin && blob != 0 {
				p.ownFrames = append(p.ownFrames, codeRange{start: s.Address - blob + r.start, size: s.Size})
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
	one := &process{layout: l, request: req}
	one.findCode(&finder{ctx: ctx, engine: e, req: req, r: r}, answer)
	p.known.Put(req.Runtime, one)
	return answer, ctx.Err()
}

// call has the objects that are read while a call is under way.
type call struct {
	*heap
	*process
	functions map[object]*function
	scripts   map[object]*script
	tables    map[object]sourcePositions // by bytecode
	code      map[uint64]*machineCode    // by PC
	names     map[object]property        // of functions, by their map
	searched  uint64                     // bytes, for code
	exits     map[uint64]uint64          // isolates, by the frame that left JavaScript last; nil: not read
}

func newCall(ctx context.Context, e sdk.RuntimeEngine, p *process) *call {
	r := sdk.NewMemoryReader(ctx, e, p.request.ByteOrder, p.request.AddressBits)
	return &call{
		heap: newHeap(p.layout, r), process: p,
		functions: map[object]*function{}, scripts: map[object]*script{}, tables: map[object]sourcePositions{}, code: map[uint64]*machineCode{}, names: map[object]property{},
	}
}

// ManagedFrames finds the functions of JavaScript in native stacks.
func (p *plugin) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	one, isKnown := p.known.Get(req.Runtime)
	if !isKnown {
		return nil, sdk.ErrObjectNotOpen
	}
	c := newCall(ctx, e, one)
	c.prefetch(req.Threads)
	answer := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	for i := range req.Threads {
		answer.Stacks[i] = c.stack(&req.Threads[i])
		answer.Stacks[i].Exception = c.exception(&req.Threads[i])
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	return answer, nil
}
