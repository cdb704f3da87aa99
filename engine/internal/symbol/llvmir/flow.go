// SPDX-License-Identifier: Apache-2.0

package llvmir

import (
	"cmp"
	"slices"
	"sort"
)

// flow propagates records through the blocks of a function. A record is valid up to the
// next one of its variable, on every path: where paths with different records meet, none is
// valid. So a record ends where a loop computes one of its values again: on the path into
// the loop it was not valid yet. This works only for values that are computed on every path
// to the record; a record with other values is ignored.
type flow struct {
	f       *Function
	isKnown bool      // the successors of each block are known
	preds   [][]int32 // blocks by block
	results map[string]int32
	left    *int // steps
	passed  map[[2]int32]bool
	found   []recordSpan
}

// recordSpan is instructions for which a record of a group is valid.
type recordSpan struct {
	span
	record int
}

// States of a block's ends, below the indexes of records.
const (
	unknownState = -2 // not reached yet
	noState      = -1 // no record is valid
)

func newFlow(f *Function, left *int) *flow {
	w := &flow{f: f, left: left, results: map[string]int32{}, passed: map[[2]int32]bool{}}
	for inst := range f.Instructions() {
		if inst.Result != "" {
			w.results[inst.Result] = int32(inst.Index)
		}
	}
	w.findPreds()
	return w
}

// findPreds finds the predecessors of each block.
func (w *flow) findPreds() {
	f := w.f
	names := map[string]int32{}
	l := lexer{data: f.module.source}
	for i := range f.blocks {
		b := &f.blocks[i]
		switch {
		case b.label != 0:
			names[unquote(l.text(l.tokenAt(int(b.label))))] = int32(i)
		case b.number >= 0:
			names[itoa(b.number)] = int32(i)
		}
	}
	w.preds = make([][]int32, len(f.blocks))
	w.isKnown = true
	for i := range f.blocks {
		last := w.end(i) - 1
		if last < f.blocks[i].first {
			continue // it was cut off
		}
		inst := &f.instructions[last]
		lx := lexer{data: f.module.source[:inst.end], pos: int(inst.start)}
		for t := lx.next(); t.kind != endToken; t = lx.next() {
			if t.kind != wordToken || string(lx.text(t)) != "label" {
				continue
			}
			t = lx.next()
			if t.kind != localToken {
				continue
			}
			target, ok := names[unquote(lx.text(t))]
			if !ok {
				w.isKnown = false
				return
			}
			w.preds[target] = append(w.preds[target], int32(i))
		}
	}
}

// end is the index behind the last instruction of a block.
func (w *flow) end(block int) int32 {
	if block+1 < len(w.f.blocks) {
		return w.f.blocks[block+1].first
	}
	return int32(len(w.f.instructions))
}

// event is the point where a record becomes valid, or, with noState, where the last one
// ends.
type event struct {
	start int32 // before this instruction
	state int
}

// events are the events of a part of a variable.
func (w *flow) events(group []*DebugRecord, part *Fragment) []event {
	var list []event
	for i, d := range group {
		own := d.Fragment == part || d.Fragment != nil && part != nil && *d.Fragment == *part
		if !own && !d.Fragment.overlaps(part) {
			continue
		}
		e := event{int32(d.Before), noState}
		if own && !d.IsKilled && w.areComputed(d) {
			e.state = i
		}
		if d.Kind == DeclareRecord || d.Kind == DeclareValueRecord {
			if !own {
				continue
			}
			// It is valid as soon as its values are computed.
			e.start = 0
			for _, name := range d.names {
				if result, ok := w.results[name]; ok {
					e.start = max(e.start, result+1)
				}
			}
			list = append(list, e)
			continue
		}
		list = append(list, e)
	}
	slices.SortStableFunc(list, func(a, b event) int { return cmp.Compare(a.start, b.start) })
	return list
}

// areComputed reports whether the values of a record are computed wherever the record is
// reached. A declaration waits for them.
func (w *flow) areComputed(d *DebugRecord) bool {
	if d.Kind == DeclareRecord || d.Kind == DeclareValueRecord {
		return true
	}
	reached := w.blockAt(int32(d.Before))
	for _, name := range d.names {
		result, ok := w.results[name]
		if !ok { // a parameter
			continue
		}
		if defined := w.blockAt(result); defined == reached && result >= int32(d.Before) || defined != reached && !w.passes(defined, reached) {
			return false
		}
	}
	return true
}

// blockAt is the block of an instruction; a record after the last one is in the last block.
func (w *flow) blockAt(index int32) int32 {
	return int32(sort.Search(len(w.f.blocks), func(k int) bool { return w.f.blocks[k].first > index })) - 1
}

// passes reports whether every path to a block goes through another one.
func (w *flow) passes(through, target int32) bool {
	if through == 0 || !w.isKnown {
		return true
	}
	key := [2]int32{through, target}
	if known, ok := w.passed[key]; ok {
		return known
	}
	seen := map[int32]bool{target: true}
	result := true
	for list := []int32{target}; len(list) > 0 && result; {
		block := list[len(list)-1]
		list = list[:len(list)-1]
		if *w.left--; *w.left < 0 || block == 0 {
			result = false
			break
		}
		for _, p := range w.preds[block] {
			if p != through && !seen[p] {
				seen[p] = true
				list = append(list, p)
			}
		}
	}
	w.passed[key] = result
	return result
}

// find adds the instructions for which records of one part are valid. It is false where
// that takes too many steps.
func (w *flow) find(group []*DebugRecord, part *Fragment) bool {
	f := w.f
	events := w.events(group, part)
	if *w.left -= len(group) + len(events) + len(f.blocks); *w.left < 0 {
		return false
	}
	// The events of each block: a point between two blocks belongs to the block of its
	// record, the later one, except after the last instruction of a block.
	first := make([]int, len(f.blocks)+1)
	for i := range f.blocks {
		start := f.blocks[i].first
		first[i] = sort.Search(len(events), func(k int) bool { return events[k].start >= start })
	}
	first[len(f.blocks)] = len(events)
	before := make([]int, len(f.blocks))
	after := make([]int, len(f.blocks))
	for i := range before {
		before[i], after[i] = unknownState, unknownState
	}
	for changed := true; changed; {
		changed = false
		for i := range f.blocks {
			if *w.left--; *w.left < 0 {
				return false
			}
			state := w.meet(i, after)
			before[i] = state
			if state != unknownState || i == 0 {
				for _, e := range events[first[i]:first[i+1]] {
					state = e.state
				}
			}
			if state != after[i] {
				after[i], changed = state, true
			}
		}
	}
	for i := range f.blocks {
		state, start := before[i], f.blocks[i].first
		if state == unknownState {
			state = noState
		}
		for _, e := range events[first[i]:first[i+1]] {
			w.add(span{start, e.start}, state)
			start, state = max(start, e.start), e.state
		}
		w.add(span{start, w.end(i)}, state)
	}
	return true
}

// meet is the state at the beginning of a block: the record that is valid at the end of
// every predecessor.
func (w *flow) meet(block int, out []int) int {
	if block == 0 || !w.isKnown {
		return noState
	}
	state := unknownState
	for _, p := range w.preds[block] {
		switch {
		case out[p] == unknownState:
		case state == unknownState:
			state = out[p]
		case state != out[p]:
			return noState
		}
	}
	return state
}

func (w *flow) add(s span, record int) {
	if record < 0 || s.start >= s.end {
		return
	}
	w.found = append(w.found, recordSpan{s, record})
}

// take returns the records found in a scope, by place, neighbours joined, and drops them.
func (w *flow) take(scope []span) []recordSpan {
	slices.SortStableFunc(w.found, func(a, b recordSpan) int {
		return cmp.Or(cmp.Compare(a.record, b.record), cmp.Compare(a.start, b.start))
	})
	var list []recordSpan
	for i := 0; i < len(w.found); {
		k := w.found[i].record
		var own []span
		for ; i < len(w.found) && w.found[i].record == k; i++ {
			if n := len(own); n > 0 && own[n-1].end == w.found[i].start {
				own[n-1].end = w.found[i].end
				continue
			}
			own = append(own, w.found[i].span)
		}
		for _, s := range intersect(own, scope) {
			list = append(list, recordSpan{s, k})
		}
	}
	w.found = w.found[:0]
	slices.SortStableFunc(list, func(a, b recordSpan) int { return cmp.Compare(a.start, b.start) })
	return list
}
