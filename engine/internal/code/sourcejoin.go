// SPDX-License-Identifier: Apache-2.0

package code

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/symbol"
	"github.com/unwindd/unwindd/engine/trace"
)

// A sourceJoin finds by file and line which calls were inlined into a function.
//
// An IR that is not optimized has a function for each call that the compiler will inline later. A
// position in one of them stands for each path of calls that leads there. Only a single path is
// taken.
type sourceJoin struct {
	functions map[string]bool
	sites     map[int][]joinSite    // by line
	calls     map[string][]joinCall // by the function that calls
	callers   map[string][]string   // by the function that is called
	texts     map[string]string     // of files, by path

	mu   sync.Mutex
	work int                        // calls that may still be looked at
	kept map[joinKey][]trace.Symbol // results of chain
}

// A joinKey is a position, on which the calls there depend.
type joinKey struct {
	function, file string
	line, column   int
}

// A joinSite is a position of instructions in a function, which is the last of the frames.
type joinSite struct {
	function string
	frames   []trace.Symbol
	key      string // equal for equal frames
}

// A joinCall is a call that may be inlined, with the frames of its position.
type joinCall struct {
	callee string
	frames []trace.Symbol
	key    string
}

var errJoinSize = errors.New("too many inlined calls: they are not used")

// newJoin indexes the positions of an IR.
func newJoin(ir symbol.IR) (*sourceJoin, error) {
	j := &sourceJoin{
		functions: map[string]bool{}, sites: map[int][]joinSite{}, calls: map[string][]joinCall{},
		callers: map[string][]string{}, texts: map[string]string{},
		work: maxJoinWork, kept: map[joinKey][]trace.Symbol{},
	}
	budget := maxJoinFrames
	seen := map[string]bool{}
	for p := range ir.Positions() {
		if budget -= len(p.Frames); budget < 0 {
			return nil, errJoinSize
		}
		j.functions[p.Function] = true
		if len(p.Frames) == 0 || p.Frames[0].Line == 0 || p.Frames[0].File == "" {
			continue
		}
		key := p.Function + "\x00" + framesKey(p.Frames)
		if !seen[key] {
			seen[key] = true
			line := p.Frames[0].Line
			j.sites[line] = append(j.sites[line], joinSite{p.Function, p.Frames, framesKey(p.Frames[1:])})
		}
	}
	clear(seen)
	for c := range ir.Calls() {
		if budget -= len(c.Frames); budget < 0 {
			return nil, errJoinSize
		}
		key := c.Function + "\x00" + c.Callee + "\x00" + framesKey(c.Frames)
		if c.NeverInlined || len(c.Frames) == 0 || seen[key] {
			continue
		}
		seen[key] = true
		j.calls[c.Function] = append(j.calls[c.Function], joinCall{c.Callee, c.Frames, framesKey(c.Frames)})
		if pair := c.Function + "\x00" + c.Callee; !seen[pair] {
			seen[pair] = true
			j.callers[c.Callee] = append(j.callers[c.Callee], c.Function)
		}
	}
	for _, f := range ir.Sources() {
		if f.HasText {
			j.texts[path.Clean(f.Path)] = f.Text
		}
	}
	return j, nil
}

// framesKey returns a string that is equal for frames of equal functions and positions.
func framesKey(frames []trace.Symbol) string {
	var b strings.Builder
	for i := range frames {
		f := &frames[i]
		fmt.Fprintf(&b, "%s\x00%s\x00%s\x00%d\x00%d\x00", f.Function, f.LinkageName, f.File, f.Line, f.Column)
	}
	return b.String()
}

// text returns the text of a file; "" where the IR has none.
func (j *sourceJoin) text(file string) string {
	if file == "" {
		return ""
	}
	return j.texts[path.Clean(file)]
}

// root returns the function of the IR that a physical one was compiled from.
func (j *sourceJoin) root(f *trace.Symbol) string {
	for _, name := range []string{f.LinkageName, f.Function, f.Name} {
		if name != "" && j.functions[name] {
			return name
		}
	}
	return ""
}

// chain returns the calls that were inlined at the position of a physical function, and the
// function; nil where none was, or that is not known. spent: no more calls are looked for.
func (j *sourceJoin) chain(physical *trace.Symbol) (chain []trace.Symbol, spent bool) {
	root := j.root(physical)
	if root == "" {
		return nil, false
	}
	key := joinKey{root, physical.File, physical.Line, physical.Column}
	j.mu.Lock()
	defer j.mu.Unlock()
	found, ok := j.kept[key]
	if !ok {
		found = j.find(&key)
		if len(j.kept) < maxJoinKept {
			j.kept[key] = found
		}
	}
	if found != nil {
		chain = j.join(slices.Clone(found), physical)
	}
	return chain, j.work < 0
}

// find finds a chain.
func (j *sourceJoin) find(key *joinKey) (found []trace.Symbol) {
	sites := j.sitesOf(key)
	if len(sites) > maxJoinSites {
		return nil
	}
	same := ""
	for i := range sites {
		s := &sites[i]
		calls, ok := j.path(key.function, s.function)
		if !ok {
			return nil
		}
		if calls == nil && s.function != key.function {
			continue // it is not called from there
		}
		chain := slices.Clone(s.frames)
		k := s.function + "\x00" + s.key
		for n := len(calls) - 1; n >= 0; n-- {
			chain = append(chain, calls[n].frames...)
			k += "\x00" + calls[n].callee + "\x00" + calls[n].key
		}
		if found != nil && k != same {
			return nil
		}
		found, same = chain, k
	}
	if len(found) < 2 || !allPlaced(found) {
		return nil
	}
	return found
}

// allPlaced reports whether every frame of a chain has a function and a position.
func allPlaced(chain []trace.Symbol) bool {
	for i := range chain {
		if chain[i].Function == "" || chain[i].File == "" || chain[i].Line == 0 {
			return false
		}
	}
	return true
}

// sitesOf returns the sites of a position, or where none has its column the sites of the line:
// compilers move and merge columns.
func (j *sourceJoin) sitesOf(key *joinKey) []joinSite {
	var line, column []joinSite
	file := path.Clean(key.file)
	j.work -= len(j.sites[key.line])
	if j.work < 0 {
		return nil
	}
	for _, s := range j.sites[key.line] {
		if path.Clean(s.frames[0].File) != file {
			continue
		}
		line = append(line, s)
		if key.column != 0 && s.frames[0].Column == key.column {
			column = append(column, s)
		}
	}
	if column != nil {
		return column
	}
	return line
}

// path returns the calls that lead from one function to another, the first one first. There are
// none where no calls lead there; ok is false where several paths do.
func (j *sourceJoin) path(first, last string) (calls []joinCall, ok bool) {
	leads := map[string]bool{last: true}
	for queue := []string{last}; len(queue) > 0; {
		f := queue[0]
		queue = queue[1:]
		if j.work -= 1 + len(j.callers[f]); j.work < 0 {
			return nil, false
		}
		for _, caller := range j.callers[f] {
			if !leads[caller] {
				leads[caller] = true
				queue = append(queue, caller)
			}
		}
	}
	if !leads[first] {
		return nil, true
	}
	for function := first; ; {
		var next *joinCall
		if j.work -= len(j.calls[function]); j.work < 0 {
			return nil, false
		}
		for i := range j.calls[function] {
			if c := &j.calls[function][i]; leads[c.callee] {
				if next != nil {
					return nil, false
				}
				next = c
			}
		}
		switch {
		case function == last:
			return calls, next == nil // else it may have been inlined into itself
		case next == nil, len(calls) == maxJoinPath:
			return nil, false
		}
		calls = append(calls, *next)
		function = next.callee
	}
}

// join makes the frames of a chain: the innermost one has the position, and the outermost one the
// name of the physical function.
func (j *sourceJoin) join(chain []trace.Symbol, physical *trace.Symbol) []trace.Symbol {
	last := len(chain) - 1
	for i := range chain {
		chain[i].Inlined, chain[i].ScopeBySource = i < last, true
		chain[i].Start, chain[i].HasStart = 0, false
	}
	first := &chain[0]
	first.File, first.Line, first.Column = physical.File, physical.Line, physical.Column
	first.Discriminator, first.CompDir, first.LineByAssembly = physical.Discriminator, physical.CompDir, physical.LineByAssembly
	if physical.Source != "" {
		first.Source = physical.Source
	}
	named := *physical
	named.ScopeBySource, named.LineByAssembly = true, false
	outer := &chain[last]
	named.File, named.Line, named.Column = outer.File, outer.Line, outer.Column
	named.Discriminator, named.CompDir, named.Source = outer.Discriminator, outer.CompDir, outer.Source
	*outer = named
	for i := range chain {
		if chain[i].Source == "" {
			chain[i].Source = j.text(chain[i].File)
		}
	}
	return chain
}
