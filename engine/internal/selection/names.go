// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// namePattern is an ID, a name, or a regular expression for names.
type namePattern struct {
	text       string
	id         int // where isID
	isID       bool
	expression *regexp.Regexp // nil: the text is none
}

// patterns are the patterns of a flag.
func patterns(flag string, texts []string) (list []namePattern, err error) {
	for _, text := range texts {
		if text == "" {
			return nil, fmt.Errorf("--%s: expected an ID, a name, or a regular expression for names", flag)
		}
		p := namePattern{text: text}
		id, err := strconv.ParseInt(text, 10, 32)
		p.id, p.isID = int(id), err == nil && id >= 0
		p.expression, _ = regexp.Compile(text) // names may have any characters
		list = append(list, p)
	}
	return list, nil
}

// namedThread is a thread, or a process, with one of its names.
type namedThread struct {
	id    int
	name  string
	owner int // its index, as the caller counts
}

// find calls add with the threads that a pattern matches: by ID, else by the whole name, else by
// the expression.
func (p *namePattern) find(all []namedThread, add func(owner int)) (isFound bool) {
	for _, isMatch := range []func(t *namedThread) bool{
		func(t *namedThread) bool { return p.isID && t.id == p.id },
		func(t *namedThread) bool { return t.name == p.text },
		func(t *namedThread) bool { return p.expression != nil && p.expression.MatchString(t.name) },
	} {
		for i := range all {
			if isMatch(&all[i]) {
				isFound = true
				add(all[i].owner)
			}
		}
		if isFound {
			return true
		}
	}
	return false
}

// noThread is the error for a pattern that matches none.
func noThread(path, flag string, p *namePattern, all []namedThread) error {
	known := map[string]bool{"": true}
	var list []string
	for i := range all {
		if name := all[i].name; !known[name] {
			known[name] = true
			list = append(list, name)
		}
	}
	near := func(name string) int {
		if strings.Contains(strings.ToLower(name), strings.ToLower(p.text)) {
			return 0
		}
		return editDistance(strings.ToLower(p.text), strings.ToLower(name), 1<<10)
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(near(a), near(b)), strings.Compare(a, b)) })
	const most = 10
	more := ""
	if len(list) > most {
		list, more = list[:most], fmt.Sprintf(" and %d more", len(list)-most)
	}
	return fmt.Errorf("%s: --%s %s: none has this ID or name, expected one of: %s%s", path, flag, p.text, strings.Join(list, ", "), more)
}

// functions are the names of a frame's functions.
type functions struct {
	p       *trace.Profile
	unnamed func(*trace.ProfileFrame) string
}

// count is how many functions a frame has: at least one.
func (n *functions) count(frame uint32) int { return max(1, len(n.p.Frames[frame].Symbols)) }

// name is the name of a frame's function, from the innermost on.
func (n *functions) name(frame uint32, i int) FunctionName {
	f := &n.p.Frames[frame]
	if i < len(f.Symbols) && f.Symbols[i].Function != "" {
		return NameOf(&f.Symbols[i])
	}
	return FunctionName{Function: n.unnamed(f)}
}

// all are the names of all functions, each once, by first appearance.
func (n *functions) all() (list []FunctionName) {
	known := map[FunctionName]bool{}
	for frame := range n.p.Frames {
		for i := range n.count(uint32(frame)) { //nolint:gosec // an index of Frames
			if name := n.name(uint32(frame), i); !known[name] { //nolint:gosec // likewise
				known[name] = true
				list = append(list, name)
			}
		}
	}
	return list
}

// match are the functions that match, by frame: bit i is the i-th function, and the last bit is
// for all from there on.
type match []uint64

// lastBit is the bit of the functions of a frame from the 63rd on.
const lastBit = 63

func (m match) has(frame uint32, i int) bool { return m[frame]>>min(i, lastBit)&1 != 0 }

// match finds the functions whose names match.
func (n *functions) match(isMatch func(*FunctionName) bool) (m match, isAny bool) {
	m = make(match, len(n.p.Frames))
	known := map[FunctionName]bool{}
	for frame := range m {
		for i := range n.count(uint32(frame)) { //nolint:gosec // an index of Frames
			name := n.name(uint32(frame), i) //nolint:gosec // likewise
			is, ok := known[name]
			if !ok {
				is = isMatch(&name)
				known[name] = is
			}
			if is {
				m[frame] |= 1 << min(i, lastBit)
				isAny = true
			}
		}
	}
	return m, isAny
}

// matchExpression finds the functions whose printed names match an expression.
func (n *functions) matchExpression(expression *regexp.Regexp) (m match, isAny bool) {
	return n.match(func(name *FunctionName) bool { return expression.MatchString(name.Function) })
}
