// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/symbol/dwarf"
)

// This file finds the functions on the path of tail calls to a function (DWARF 5, 3.4), where
// there is only one path.

// errNoTailChain is the error where no path of tail calls from one function to another is
// known, or where there are several.
var errNoTailChain = errors.New("there is not one way of tail calls to the function")

// tailFunction is a function with code.
type tailFunction struct {
	module *code.Module
	body   dwarf.Entry
	entry  uint64 // the address where it is entered
}

// tailCall is a tail call by which a function was left for the next one.
type tailCall struct {
	from tailFunction
	site dwarf.CallSite
}

// tailChains are the paths of tail calls that were looked for, by the addresses of the first
// and the last function.
type tailChains struct {
	mu    sync.RWMutex
	known map[[2]uint64][]tailCall
	plain map[framePair]struct{}
}

// framePair is a frame and its caller, by their PCs.
type framePair struct {
	pc, caller uint64
	isExact    bool // the frame's PC is
}

// isPlain reports whether debug information is known to have no tail call between frames,
// whatever the state of the target.
func (c *tailChains) isPlain(p framePair) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	_, is := c.plain[p]
	return is
}

func (c *tailChains) addPlain(p framePair) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.plain == nil {
		c.plain = map[framePair]struct{}{}
	}
	if len(c.plain) < maxTailChains {
		c.plain[p] = struct{}{}
	}
}

// maxTailChains bounds the paths that are remembered.
const maxTailChains = 1 << 16

func (c *tailChains) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known, c.plain = nil, nil
}

// tailChain returns the one path by which tail calls lead from one function to another, the
// first call first. It is empty where both are the same, where not every tail call of every
// function that may be on a path is known, or where there is another path, even a longer or
// circular one. Unknown tail calls of the last function are assumed not to lead back to it.
func (p *Process) tailChain(first, last tailFunction) []tailCall {
	c, key := &p.tails, [2]uint64{first.entry, last.entry}
	c.mu.Lock()
	chain, isKnown := c.known[key]
	c.mu.Unlock()
	if isKnown {
		return chain
	}
	g := tailGraph{process: p}
	chain, err := g.chain(first, last)
	if err != nil {
		chain = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[[2]uint64][]tailCall{}
	}
	if len(c.known) < maxTailChains {
		c.known[key] = chain
	}
	return chain
}

// functionOf makes a tailFunction of a function; false where it has no entry.
func functionOf(m *code.Module, body dwarf.Entry) (f tailFunction, ok bool, err error) {
	start, ok, err := body.EntryPC()
	if err != nil || !ok {
		return f, false, err
	}
	entry, ok := m.Start(start)
	return tailFunction{m, body, entry}, ok, nil
}

// maxTailFunctions bounds the functions that are looked at for one path.
const maxTailFunctions = 1 << 8

// tailGraph is functions with the tail calls that lead from one to another. The first one is
// the end of the path.
type tailGraph struct {
	process *Process
	list    []tailNode
}

type tailNode struct {
	tailFunction
	calls []tailEdge
	leads bool // to the end of the path
}

type tailEdge struct {
	site   dwarf.CallSite
	callee int // index of the callee
}

func (e tailEdge) is(other tailEdge) bool {
	return e.callee == other.callee && e.site.Is(other.site.Entry)
}

func (g *tailGraph) chain(start, end tailFunction) ([]tailCall, error) {
	last, err := g.node(end)
	if err != nil {
		return nil, err
	}
	first, err := g.node(start)
	if err != nil || first == last {
		return nil, err
	}
	for i := first; i < len(g.list); i++ {
		if err := g.expand(i); err != nil {
			return nil, err
		}
	}
	if g.isCircle(last) {
		return nil, errNoTailChain
	}
	return g.only(first)
}

// node returns the index of a function, which is added where it is new. Linkers merge the code
// of several functions.
func (g *tailGraph) node(f tailFunction) (int, error) {
	for i := range g.list {
		if g.list[i].entry == f.entry {
			return i, nil
		}
	}
	if len(g.list) == maxTailFunctions {
		return 0, errNoTailChain
	}
	g.list = append(g.list, tailNode{tailFunction: f})
	return len(g.list) - 1, nil
}

// expand finds the tail calls of a function. It returns an error where not all are known; the
// others are added.
func (g *tailGraph) expand(index int) error {
	caller := g.list[index].tailFunction
	sites, areAll, err := caller.body.TailCalls()
	if err == nil && !areAll {
		err = errNoTailChain
	}
	for _, site := range sites {
		callees, unknown := g.callees(caller.module, site)
		for _, callee := range callees {
			next, full := g.node(callee)
			if full != nil {
				unknown = full
				continue
			}
			edge := tailEdge{site, next}
			if !slices.ContainsFunc(g.list[index].calls, edge.is) {
				g.list[index].calls = append(g.list[index].calls, edge)
			}
		}
		if err == nil {
			err = unknown
		}
	}
	return err
}

// callees returns the functions that a tail call of a module may lead to: the instances of its
// callee in its unit, and functions with its name. It returns an error where there may be
// others.
func (g *tailGraph) callees(m *code.Module, site dwarf.CallSite) (list []tailFunction, err error) {
	callee, err := site.Callee()
	if err != nil || callee.IsZero() {
		return nil, errors.Join(err, errNoTailChain)
	}
	bodies, err := callee.Instances(site.Entry)
	if err != nil {
		return nil, err
	}
	for _, body := range bodies {
		f, ok, err := functionOf(m, body)
		if err != nil || !ok {
			return list, errors.Join(err, errNoTailChain)
		}
		list = append(list, f)
	}
	if name := callee.LinkageName(); name != "" {
		if list, err = g.named(m, name, list); err != nil {
			return list, err
		}
	}
	if len(list) == 0 {
		err = errNoTailChain
	}
	return list, err
}

// named appends the functions that a module may call by a linkage name: its own, and exported
// ones of other modules.
func (g *tailGraph) named(m *code.Module, name string, list []tailFunction) ([]tailFunction, error) {
	for _, other := range g.process.Loaded() {
		if other == m && len(list) > 0 {
			continue // its unit has it
		}
		offset, isSure, ok := other.Code.Named(name, other != m)
		if !ok {
			continue
		}
		d := other.Code.DWARF()
		if !isSure || d == nil {
			return list, errNoTailChain // its tail calls are not described
		}
		body, err := d.FunctionFrom(offset)
		if err != nil || body.IsZero() {
			return list, errors.Join(err, errNoTailChain)
		}
		f, ok, err := functionOf(other, body)
		if err != nil || !ok {
			return list, errors.Join(err, errNoTailChain)
		}
		list = append(list, f)
	}
	return list, nil
}

// isCircle reports whether tail calls lead from a function to it again, as far as they are
// known.
func (g *tailGraph) isCircle(index int) bool {
	circle := tailGraph{process: g.process, list: []tailNode{{tailFunction: g.list[index].tailFunction}}}
	for i := 0; i < len(circle.list); i++ {
		_ = circle.expand(i) // unknown calls are assumed not to lead back
		for _, c := range circle.list[i].calls {
			if c.callee == 0 {
				return true
			}
		}
	}
	return false
}

// only follows the one path from a function to the end.
func (g *tailGraph) only(first int) (chain []tailCall, err error) {
	g.findLeading()
	for node := first; node != 0; {
		n := &g.list[node]
		paths := 0
		for _, c := range n.calls {
			if g.list[c.callee].leads {
				paths++
				node = c.callee
				chain = append(chain, tailCall{n.tailFunction, c.site})
			}
		}
		if paths != 1 || len(chain) > len(g.list) {
			return nil, errNoTailChain
		}
	}
	return chain, nil
}

// findLeading marks the functions from which tail calls lead to the end of the path.
func (g *tailGraph) findLeading() {
	g.list[0].leads = true
	for isNew := true; isNew; {
		isNew = false
		for i := range g.list {
			n := &g.list[i]
			for _, c := range n.calls {
				if g.list[c.callee].leads && !n.leads {
					n.leads, isNew = true, true
				}
			}
		}
	}
}
