// SPDX-License-Identifier: Apache-2.0

package code

import (
	"context"
	"unsafe"

	"github.com/unwindd/unwindd/sdk"
)

// readAhead has the answers about functions of an object that nothing has needed yet. Object.mu
// guards it.
type readAhead struct {
	answers map[aheadKey]aheadAnswer
	guess   Foresight
	// isWhole: the last function was read as a whole, so that an answer about another one serves
	// all of its PCs.
	isWhole bool
}

// maxUnused bounds the answers that nothing has needed. Beyond it all are dropped.
const maxUnused = 4 * maxAhead

// aheadKey has all that an answer about code depends on, by addresses of the object. Of a function
// that is read as a whole the lookup is its start, and isExact is false.
type aheadKey struct {
	lookup     uint64
	start, end uint64
	name       string
	isBounded  bool
	isExact    bool
}

func newAheadKey(b Bounds, lookup uint64, query *sdk.CodeRange) aheadKey {
	return aheadKey{lookup, b.Start, b.Start + uint64(len(query.Code)), query.Name, query.Bounded, query.Exact}
}

// whole returns the key of the whole function.
func (k aheadKey) whole() aheadKey {
	k.lookup, k.isExact = k.start, false
	return k
}

// isWhole reports whether rules are the answer for all PCs of a function.
func isWhole(query *sdk.CodeRange, rules *sdk.FrameRules) bool {
	return query.Bounded && rules.Complete && !rules.Trampoline
}

// read returns the rules of code, in the addresses of its section: those that were asked for
// before, or the plugin is asked, and about other code beside it.
func (r *codeReader) read(ctx context.Context, req codeRequest, b Bounds, query sdk.CodeRange) (*sdk.FrameRules, error) {
	key := newAheadKey(b, req.lookup, &query)
	if rules := r.take(key, query.PC); rules != nil {
		r.ahead.guess.Used()
		return rules, nil
	}
	n := newNextCode(r, query, key)
	if most := min(r.ahead.guess.Next(), r.object.machine.ahead.most()-1); most > 0 && req.ahead != nil {
		n.most = most
		n.add(req.ahead.Places(r.object, most))
		if r.ahead.isWhole && query.Bounded {
			n.addNeighbours(b)
		}
		r.ahead.guess.Requested(len(n.functions) - 1)
	}
	rules, beside, err := r.object.machine.askBeside(ctx, r.object.askFunctions, n.functions)
	for i, answer := range beside {
		r.keepAhead(n.keys[i+1], &n.functions[i+1], answer)
	}
	if err != nil {
		return nil, err
	}
	r.ahead.isWhole = isWhole(&query, rules)
	return rules, nil
}

// take returns an answer that was asked for before, and drops it; nil: there is none. Where a
// whole function has no row at the PC, the plugin is to say why.
func (r *codeReader) take(key aheadKey, pc uint64) *sdk.FrameRules {
	for _, k := range [...]aheadKey{key, key.whole()} {
		a, ok := r.ahead.answers[k]
		if !ok || a.rules == nil {
			continue
		}
		delete(r.ahead.answers, k)
		r.size.Add(-int64(a.memorySize()))
		if a.isWhole && rowIn(a.rules.Rows, pc) == nil {
			return nil
		}
		return a.rules
	}
	return nil
}

// keepAhead keeps an answer until it is needed.
func (r *codeReader) keepAhead(key aheadKey, query *sdk.CodeRange, a aheadAnswer) {
	if a.rules == nil && !a.isRefused {
		return
	}
	if a.isWhole = a.rules != nil && isWhole(query, a.rules); a.isWhole {
		key = key.whole()
	}
	if len(r.ahead.answers) >= maxUnused {
		for _, old := range r.ahead.answers {
			r.size.Add(-int64(old.memorySize()))
		}
		clear(r.ahead.answers)
	}
	if _, ok := r.ahead.answers[key]; ok {
		return
	}
	if r.ahead.answers == nil {
		r.ahead.answers = map[aheadKey]aheadAnswer{}
	}
	r.ahead.answers[key] = a
	r.size.Add(int64(a.memorySize()))
}

// memorySize returns about how many bytes the answer takes.
func (a *aheadAnswer) memorySize() int {
	size := int(unsafe.Sizeof(*a) + unsafe.Sizeof(aheadKey{}))
	if a.rules != nil {
		f := readFunction{rules: a.rules}
		size += f.memorySize()
	}
	return size
}

// nextCode is code that is asked about beside the code that is needed, which is its first.
type nextCode struct {
	reader    *codeReader
	most      int // functions to add
	left      int // bytes of their code
	functions []sdk.CodeRange
	keys      []aheadKey        // of functions
	listed    map[aheadKey]bool // keys, and the keys of whole functions
}

func newNextCode(r *codeReader, needed sdk.CodeRange, key aheadKey) *nextCode {
	n := &nextCode{reader: r, left: maxAheadCode, listed: map[aheadKey]bool{}}
	n.list(needed, key)
	return n
}

func (n *nextCode) list(query sdk.CodeRange, key aheadKey) {
	n.functions, n.keys = append(n.functions, query), append(n.keys, key)
	n.listed[key] = true
	if n.reader.ahead.isWhole && query.Bounded {
		n.listed[key.whole()] = true
	}
}

func (n *nextCode) isFull() bool { return len(n.functions) > n.most }

// add adds the code at places at which a walk would ask for it.
func (n *nextCode) add(places []Place) {
	o := n.reader.object
	for _, p := range places {
		if n.isFull() {
			return
		}
		if _, ok := o.rows.found.find(rowKey{p.Address, p.IsExact}); ok {
			continue
		}
		lookup := p.Address
		if !p.IsExact {
			lookup -= uint64(o.machine.Description.CallDistance)
			if o.isBehindFunction(p.Address, lookup) {
				continue // it may be a trampoline, which is read by its first byte
			}
		}
		described := o.rows.bounds(lookup)
		if described.IsKnown && !o.plugin.checksCFI {
			continue
		}
		n.addFunction(described, p.Address, lookup, p.IsExact)
	}
}

// addFunction adds the function at an address, or the code around it, unless it was read, is
// too large, or is read with other functions.
func (n *nextCode) addFunction(b Bounds, pc, lookup uint64, isExact bool) {
	r := n.reader
	o := r.object
	if !b.IsKnown {
		b = symbolBounds(o.symbolAt(lookup))
	}
	if _, isPart := sdk.PartOf(b.Name); isPart {
		return
	}
	if !b.IsKnown || b.size() > MaxFunctionCode || lookup < b.Start {
		b = o.codeWindow(pc)
	}
	if b.size() > uint64(n.left) || r.known(b, lookup) != nil { //nolint:gosec // left is never negative
		return
	}
	query, _ := o.codeRange(b, lookup, isExact)
	if key := newAheadKey(b, lookup, &query); len(query.Code) > 0 && !n.has(key) {
		n.left -= len(query.Code)
		n.list(query, key)
	}
}

// has reports whether code is asked about, or was.
func (n *nextCode) has(key aheadKey) bool {
	for _, k := range [...]aheadKey{key, key.whole()} {
		if _, isAsked := n.reader.ahead.answers[k]; isAsked || n.listed[k] {
			return true
		}
	}
	return false
}

// addNeighbours adds the functions behind and before one, in turn.
func (n *nextCode) addNeighbours(b Bounds) {
	behind, before := b, b
	isBehind, isBefore := true, true
	for steps := 0; !n.isFull() && (isBehind || isBefore) && steps < 2*maxAhead; steps++ {
		if isBehind {
			if behind, isBehind = n.functionBehind(behind); isBehind {
				n.addNeighbour(behind)
			}
		}
		if isBefore && !n.isFull() {
			if before, isBefore = n.functionBefore(before); isBefore {
				n.addNeighbour(before)
			}
		}
	}
}

func (n *nextCode) addNeighbour(b Bounds) {
	o := n.reader.object
	if described := o.rows.bounds(b.Start); !described.IsKnown || o.plugin.checksCFI {
		n.addFunction(described, b.Start, b.Start, true)
	}
}

// paddings are the alignments of functions.
var paddings = [...]uint64{1, 16, 64, 256}

// functionBehind returns the function that a symbol names right behind another one, or behind the
// padding there.
func (n *nextCode) functionBehind(b Bounds) (Bounds, bool) {
	for _, align := range paddings {
		next := symbolBounds(n.reader.object.symbolAt((b.End + align - 1) &^ (align - 1)))
		if next.IsKnown && next.Start >= b.End {
			return next, true
		}
	}
	return Bounds{}, false
}

// functionBefore returns the function that a symbol names right before another one, or before
// the padding there.
func (n *nextCode) functionBefore(b Bounds) (Bounds, bool) {
	for _, distance := range paddings {
		if b.Start < distance {
			break
		}
		last := symbolBounds(n.reader.object.symbolAt(b.Start - distance))
		if last.IsKnown && last.End <= b.Start {
			return last, true
		}
	}
	return Bounds{}, false
}
