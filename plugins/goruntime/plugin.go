// SPDX-License-Identifier: Apache-2.0

// Package goruntime is the plugin of Go's runtime: it lists goroutines.
//
// The runtime keeps its goroutines, of type runtime.g, in a list that is named by
// runtime.allgptr and runtime.allglen. The places of the list and of the members of a goroutine
// are read from the program's DWARF, and so are the numbers of states and the texts of wait
// reasons: all of it changes from one version of Go to the next. For a program without DWARF it
// is known by the version, and verified by every goroutine.
package goruntime

import (
	"context"
	"encoding/binary"
	"errors"

	"github.com/unwindd/unwindd/sdk"
)

// New returns the runtime.
func New() sdk.Runtime { return &plugin{} }

// The indices of Symbols and Types in the description.
const (
	symbolSched = iota
	symbolMemstats
	symbolList
	symbolLength
	symbolSlice
	symbolReasons
)

const (
	typeG = iota
	typeM
	typeSched
	typeMemstats
)

// unit is the DW_AT_name of the unit of package runtime.
const unit = "runtime"

// Description returns the description of Go's runtime.
func Description() *sdk.RuntimeDescription {
	return &sdk.RuntimeDescription{
		Name: "go", Version: "1", ThreadKind: "goroutine", ThreadsOnly: true,
		// The Go linker writes one of these sections at least.
		Recognises: []sdk.RuntimeRecogniser{{Section: ".gopclntab"}, {Section: ".data.rel.ro.gopclntab"}, {Section: ".note.go.buildid"}},
		Symbols: []string{
			symbolSched: "runtime.sched", symbolMemstats: "runtime.memstats", symbolList: "runtime.allgptr",
			symbolLength: "runtime.allglen", symbolSlice: "runtime.allgs", symbolReasons: "runtime.waitReasonStrings",
		},
		Types: []sdk.RuntimeType{
			typeG:        {Unit: unit, Name: "runtime.g", Members: paths((&goroutineLayout{}).wanted())},
			typeM:        {Unit: unit, Name: "runtime.m", Members: paths((&machineLayout{}).wanted())},
			typeSched:    {Unit: unit, Name: "runtime.schedt", Members: []string{"lastpoll"}},
			typeMemstats: {Unit: unit, Name: "runtime.mstats", Members: []string{"last_gc_nanotime"}},
		},
		Constants: []sdk.RuntimeConstants{{Unit: unit, Prefix: statePrefix}},
	}
}

// plugin implements sdk.Runtime.
type plugin struct {
	sdk.RuntimeBase

	known sdk.ByHandle[*process]
}

// process is Go's runtime in a module of a process.
type process struct {
	*layout
	request *sdk.OpenRuntimeRequest
	order   binary.ByteOrder
	failure string // why its goroutines are not listed; "": they are
}

// Describe implements sdk.Runtime.
func (*plugin) Describe(context.Context) (*sdk.RuntimeDescription, error) { return Description(), nil }

// OpenRuntime finds the layout of the runtime.
func (p *plugin) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	g := &process{request: req, order: binary.LittleEndian}
	if req.ByteOrder == sdk.BigEndian {
		g.order = binary.BigEndian
	}
	r := &reader{process: g, ctx: ctx, engine: e}
	answer := &sdk.OpenRuntimeAnswer{HasThreads: true} // or ManagedThreads says why there are none
	var err error
	if req.HasDebugInfo {
		g.layout, err = layoutByDWARF(req)
	} else {
		answer.Version, err = r.findStripped()
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		g.failure = err.Error()
	}
	p.known.Put(req.Runtime, g)
	return answer, nil
}

// ManagedThreads lists the goroutines.
func (p *plugin) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	g, isOpen := p.known.Get(req.Runtime)
	if !isOpen {
		return nil, sdk.ErrObjectNotOpen
	}
	if why := g.failure; why != "" {
		return &sdk.ManagedThreadsAnswer{Problems: []string{"its goroutines are not listed: " + why}}, nil
	}
	l := newLister(&reader{process: g, ctx: ctx, engine: e})
	threads := l.all()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &sdk.ManagedThreadsAnswer{Threads: threads, Problems: l.problems}, nil
}

// errNoRuntime is returned for debug information without Go's runtime.
var errNoRuntime = errors.New("its debug information has no unit of Go's runtime")
