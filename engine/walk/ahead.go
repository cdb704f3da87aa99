// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// This file looks ahead to where a walk will go, so that plugins are asked about many functions
// at once. What it finds is a guess: it decides how many calls are made, and nothing else.

const (
	// minWords and maxWords bound how many bytes of a stack are looked at.
	minWords, maxWords = 1 << 10, 64 << 10
	// bytesOfFrame is how much of a stack is looked at for each place that is looked for.
	bytesOfFrame = 256
	// maxThreadsAhead bounds the threads whose places are looked at.
	maxThreadsAhead = 1 << 9
)

// lookahead finds the places that a walk may come to next: the words of the stack above the frame
// whose row is looked up, and where the threads behind the walked one are.
type lookahead struct {
	walker *walker
	f      *frame // whose row is looked up
	words  []byte
	sites  int // calls about call sites in this stack
	// targets are of the calls whose return addresses a scan has still to judge.
	targets []uint64
}

// start makes the look-ahead ready for another stack.
func (a *lookahead) start(w *walker) { a.walker, a.f, a.sites, a.targets = w, nil, 0, nil }

// isOff reports whether nothing may be read ahead: a recorder keeps what a walk reads.
func (a *lookahead) isOff() bool { return a.f == nil || a.walker.process.shared.isAlone }

// places returns the look-ahead for rows of modules; nil where nothing may be read ahead.
func (a *lookahead) places() code.Ahead {
	if a.isOff() {
		return nil
	}
	return a
}

// Places implements code.Ahead.
func (a *lookahead) Places(o *code.Object, most int) []code.Place {
	f := a.f
	if f.module == nil || f.module.Code != o {
		return nil
	}
	var segment trace.Segment
	for _, s := range f.module.Placed {
		if s.Executable && f.lookup-s.Address < s.Size {
			segment = s
		}
	}
	base := f.pc - f.offset
	return a.among(most, func(pc uint64, isExact bool) (code.Place, bool) {
		p := code.Place{Address: pc - base, IsExact: isExact}
		inside := p.Address
		if !isExact {
			inside--
		}
		return p, inside-segment.Address < segment.Size
	})
}

// unmapped returns at most so many places in code that is in no module.
func (a *lookahead) unmapped(most int) []code.Place {
	if a.isOff() {
		return nil
	}
	w := a.walker
	distance := uint64(w.machine.Description.CallDistance)
	return a.among(most, func(pc uint64, isExact bool) (code.Place, bool) {
		inside := pc
		if !isExact {
			inside -= distance
		}
		return code.Place{Address: pc, IsExact: isExact}, w.isCode(inside) && w.isCode(pc) && w.segmentAt(inside) == nil && w.segmentAt(pc) == nil
	})
}

// maxSites is how many call sites one call asks about beside the one that is needed.
const maxSites = 128

// callSites returns words of the stack that may be return addresses, for a question about another
// one: the more, the more such questions the stack has led to.
func (a *lookahead) callSites() (pcs []uint64) {
	n := a.sites
	a.sites = min(max(2*n, 4), maxSites)
	if n == 0 || a.isOff() || a.walker.input.sample != nil {
		return nil // the first may be the only one
	}
	for _, p := range a.returns(n, func(pc uint64, _ bool) (code.Place, bool) {
		return code.Place{Address: pc}, a.walker.isCode(pc - 1)
	}) {
		pcs = append(pcs, p.Address)
	}
	return pcs
}

// scan records the targets of the calls before words of the stack that a scan is about to judge.
func (a *lookahead) scan(s *scan) {
	a.targets = a.targets[:0]
	for i, site := range s.sites {
		if site.IsAfterCall && site.IsDirect && len(a.targets) < maxSites {
			a.targets = append(a.targets, (s.pcs[i]+uint64(site.Target))&s.machine.addresses) //nolint:gosec // it wraps, as addresses do
		}
	}
}

// called returns the targets that are in a segment, by address of its object.
func (a *lookahead) called(s *code.Segment) (list []uint64) {
	if a.isOff() {
		return nil
	}
	for _, target := range a.targets {
		if target >= s.Start && target < s.End {
			list = append(list, s.ObjectAddress(target))
		}
	}
	return list
}

// among returns at most so many places that find accepts: half of them of other threads, where
// there are as many, and the others of the stack.
func (a *lookahead) among(most int, find func(pc uint64, isExact bool) (code.Place, bool)) []code.Place {
	threads := a.threads(most, find)
	words := a.returns(most, find)
	if room := max(most-len(threads), (most+1)/2); len(words) > room {
		words = words[:room]
	}
	list := append(words, threads...)
	return list[:min(len(list), most)]
}

// returns returns the places that words of the stack point to, the innermost first.
func (a *lookahead) returns(most int, find func(pc uint64, isExact bool) (code.Place, bool)) (list []code.Place) {
	w := a.walker
	d := w.machine.Description
	word, step := int(d.AddressBits+7)/8, int(d.StackAlign)
	start, ok := a.floor()
	if !ok || step == 0 || word == 0 || w.thread.binding == nil {
		return nil
	}
	start = (start + uint64(step) - 1) / uint64(step) * uint64(step)
	size := min(max(most*bytesOfFrame, minWords), maxWords)
	if len(a.words) < size {
		a.words = make([]byte, size)
	}
	n, _ := w.input.memory.ReadMemory(locexpr.DefaultSpace, nil, start, a.words[:size])
	for offset := 0; offset+word <= n && len(list) < most; offset += step {
		pc := stripped(integer(a.words[offset:offset+word], w.machine.Order), w.thread.binding.ReturnAddressMask)
		if p, ok := find(pc, false); ok {
			list = append(list, p)
		}
	}
	return list
}

// floor returns where the stack above the frame begins; false: it is not known.
func (a *lookahead) floor() (uint64, bool) {
	for f := a.f.callee; f != nil; f = f.callee {
		if f.hasCFA && f.cfaSpace == locexpr.DefaultSpace {
			return f.cfa, true
		}
	}
	sp, err := a.walker.liveRegister(uint64(a.walker.machine.Description.SP))
	return sp, err == nil
}

// threads returns the places of threads behind the walked one.
func (a *lookahead) threads(most int, find func(pc uint64, isExact bool) (code.Place, bool)) (list []code.Place) {
	w := a.walker
	if w.input.sample != nil {
		return nil
	}
	i, ok := w.process.indexOf(w.thread.Thread)
	if !ok {
		return nil
	}
	d := w.machine.Description
	for next := i + 1; next < min(w.process.list.Len(), i+1+maxThreadsAhead); next++ {
		th := w.process.list.At(next)
		bytes, ok := th.Registers.Get(d.PC)
		if len(list) == most || !ok || len(bytes) > 8 || th.Arch != d.Name {
			continue
		}
		if p, ok := find(integer(bytes, w.machine.Order), !th.IsInCall); ok {
			list = append(list, p)
		}
	}
	return list
}
