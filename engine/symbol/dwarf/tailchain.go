package dwarf

import (
	"errors"
	"slices"
)

// This file finds the functions that a function was reached through by tail calls
// (DWARF 5, 3.4), where there is only one way.

// ErrNoTailChain says that no way of tail calls from one function to another is
// known, or that there are several.
var ErrNoTailChain = errors.New("there is not one way of tail calls to the function")

// A TailCall is a tail call by which a function was left for the next one.
type TailCall struct {
	Function Entry // that was left
	Site     CallSite
}

// Function is the function with code at an address of the object; the zero Entry
// where none is known.
func (r *Reader) Function(address uint64) (e Entry, err error) {
	err = r.protect(func() error {
		b, f, err := r.describing(address)
		if err == nil && f != nil {
			e, err = b.entryAt(b.offset + uint64(f.offset))
		}
		return err
	})
	return e, err
}

// FunctionFrom is the function that is entered at an address of the object; the zero
// Entry where none is.
func (r *Reader) FunctionFrom(address uint64) (Entry, error) {
	e, err := r.Function(address)
	if err != nil || e.IsZero() {
		return Entry{}, err
	}
	if pc, ok, err := e.EntryPC(); err != nil || !ok || pc != address {
		return Entry{}, err
	}
	return e, nil
}

// PC is where the tail call is in the object: after is the address behind it, as gcc
// writes it (DW_AT_call_return_pc, DW_AT_low_pc of GNU's form), and at that of the
// instruction, as clang writes it (DW_AT_call_pc). One that is not said is 0; ok is
// false where neither is.
func (s CallSite) PC() (at, after uint64, ok bool, err error) {
	after, _, err = s.Address(s.callAttributes().returnPC)
	if err == nil && s.Tag() != TagGNUCallSite {
		at, _, err = s.Address(AttrCallPC)
	}
	return at, after, at != 0 || after != 0, err
}

// maxTailFunctions bounds the functions that are looked at for one way.
const maxTailFunctions = 1 << 8

// TailChain finds the one way by which tail calls lead from a function with code to
// another one, the first call first; it is empty where both are one. Every tail call
// of every function on the way must be known, and no other way may exist, be it
// longer or in circles: the error is else ErrNoTailChain. Tail calls of the last
// function that are not known are taken for such that do not lead back to it. named
// says where the object has the function of a linkage name.
func (r *Reader) TailChain(from, to Entry, named func(string) (address uint64, ok bool)) (chain []TailCall, err error) {
	err = r.protect(func() error {
		g := tailGraph{reader: r, named: named}
		chain, err = g.chain(from, to)
		return err
	})
	return chain, err
}

// A tailGraph is functions with the tail calls that lead from one to another. The
// first one is where the way leads.
type tailGraph struct {
	reader *Reader
	named  func(string) (uint64, bool)
	list   []tailNode
}

type tailNode struct {
	body  Entry
	entry uint64 // where it is entered
	calls []tailEdge
	leads bool // to the end of the way
}

type tailEdge struct {
	site CallSite
	to   int // index of the callee
}

func (g *tailGraph) chain(from, to Entry) ([]TailCall, error) {
	last, err := g.node(to)
	if err != nil {
		return nil, err
	}
	first, err := g.node(from)
	if err != nil || first == last {
		return nil, err
	}
	for i := first; i < len(g.list); i++ {
		if err := g.expand(i); err != nil {
			return nil, err
		}
	}
	if g.isCircle(last) {
		return nil, ErrNoTailChain
	}
	return g.only(first)
}

// node is the index of a function, which is added where it is new. Linkers make one
// code of several functions.
func (g *tailGraph) node(body Entry) (int, error) {
	entry, ok, err := body.EntryPC()
	if err != nil || !ok {
		return 0, errors.Join(err, ErrNoTailChain)
	}
	for i := range g.list {
		if g.list[i].entry == entry {
			return i, nil
		}
	}
	if len(g.list) == maxTailFunctions {
		return 0, ErrNoTailChain
	}
	g.list = append(g.list, tailNode{body: body, entry: entry})
	return len(g.list) - 1, nil
}

// expand finds the tail calls of a function. The error says that not all are known;
// the others are there.
func (g *tailGraph) expand(index int) error {
	sites, areAll, err := g.list[index].body.TailCalls()
	if err == nil && !areAll {
		err = ErrNoTailChain
	}
	for _, site := range sites {
		callees, unknown := g.callees(site)
		for _, callee := range callees {
			to, full := g.node(callee)
			if full != nil {
				unknown = full
				continue
			}
			edge := tailEdge{site, to}
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

func (e tailEdge) is(other tailEdge) bool { return e.to == other.to && e.site.Is(other.site.Entry) }

// callees are the functions that a tail call may lead to: the instances of its callee
// in its unit, and the one that other units call by its name.
func (g *tailGraph) callees(site CallSite) ([]Entry, error) {
	callee, err := site.Callee()
	if err != nil || callee.IsZero() {
		return nil, errors.Join(err, ErrNoTailChain)
	}
	list, err := callee.Instances(site.Entry)
	if err != nil {
		return nil, err
	}
	if name := callee.LinkageName(); name != "" {
		if address, ok := g.named(name); ok {
			e, err := g.reader.FunctionFrom(address)
			if err != nil || e.IsZero() {
				return list, errors.Join(err, ErrNoTailChain) // its code is not described
			}
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		return nil, ErrNoTailChain // it is another object's
	}
	return list, nil
}

// isCircle says whether tail calls lead from a function to it again, as far as they
// are known.
func (g *tailGraph) isCircle(index int) bool {
	n := &g.list[index]
	circle := tailGraph{reader: g.reader, named: g.named, list: []tailNode{{body: n.body, entry: n.entry}}}
	for i := 0; i < len(circle.list); i++ {
		_ = circle.expand(i) // what is not known counts as what does not lead back
		for _, c := range circle.list[i].calls {
			if c.to == 0 {
				return true
			}
		}
	}
	return false
}

// only follows the one way from a function to the end.
func (g *tailGraph) only(from int) (chain []TailCall, err error) {
	g.findLeading()
	for at := from; at != 0; {
		n := &g.list[at]
		ways := 0
		for _, c := range n.calls {
			if g.list[c.to].leads {
				ways++
				at = c.to
				chain = append(chain, TailCall{n.body, c.site})
			}
		}
		if ways != 1 || len(chain) > len(g.list) {
			return nil, ErrNoTailChain
		}
	}
	return chain, nil
}

// findLeading marks the functions from which tail calls lead to the end of the way.
func (g *tailGraph) findLeading() {
	g.list[0].leads = true
	for isNew := true; isNew; {
		isNew = false
		for i := range g.list {
			n := &g.list[i]
			for _, c := range n.calls {
				if g.list[c.to].leads && !n.leads {
					n.leads, isNew = true, true
				}
			}
		}
	}
}
