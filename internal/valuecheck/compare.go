// SPDX-License-Identifier: Apache-2.0

package valuecheck

import (
	"fmt"
	"strings"
)

// comparison is the comparison of one core.
type comparison struct {
	*Result
	where        string
	variable     *Node // the variable that is being compared
	location     string
	inner        bool // the frame is in a call
	isLengthLost bool // of an array of the frame
	contentsOnly bool // the cores are of two programs with the same values; see CompareContents
	isGo         bool // the peer is delve
	worst        int  // index in Outcomes of the worst part of the variable
}

// Compare compares the values of a core.
func Compare(ours *Document, theirs *Peer) *Result {
	c := &comparison{Result: NewResult(), isGo: theirs.IsDelve}
	threads := map[string]*Thread{}
	for i := range ours.Threads {
		threads[ours.Threads[i].ID] = &ours.Threads[i]
	}
	for i := range theirs.Threads {
		p := &theirs.Threads[i]
		t := threads[p.ID]
		if t == nil {
			t = &Thread{ID: p.ID}
		}
		c.thread(t, p)
	}
	c.where, c.inner = "globals", false
	c.level(ours.Globals, theirs.Globals)
	return c.Result
}

// CompareContents compares variables of two programs that were built from the same
// source with different libraries: by their names and lines, and of pointers only
// whether they are null.
func CompareContents(ours *Document, theirs *Peer) *Result {
	c := &comparison{Result: NewResult(), where: "by name", contentsOnly: true}
	type key struct {
		name string
		line int
	}
	mine := map[key]*Value{}
	for _, t := range ours.Threads {
		for _, f := range t.Frames {
			for _, v := range f.Locals {
				mine[key{v.Name, v.Line}] = v
			}
		}
	}
	for _, t := range theirs.Threads {
		for _, f := range t.Frames {
			c.Frames++
			for _, n := range f.Variables {
				if v := mine[key{n.Name, n.Line}]; v != nil && n.Line > 0 && f.Own {
					c.begin(n, v)
					c.node(n.Name, n, v)
					c.end()
				}
			}
		}
	}
	return c.Result
}

func (c *comparison) thread(t *Thread, p *PeerThread) {
	match := align(t.Frames, p.Frames)
	physical := 0
	for i := range p.Frames {
		f := &p.Frames[i]
		c.inner = physical > 0
		if f.Kind != "inline" {
			physical++
		}
		if !f.Own {
			continue
		}
		c.Frames++
		c.where = fmt.Sprintf("thread %s, frame %d at %s, %s", p.ID, i, f.PC, f.Function)
		if match[i] == nil {
			c.without(f)
			continue
		}
		c.level(match[i].Locals, f.Variables)
	}
}

// without counts the variables of a frame that we do not have.
func (c *comparison) without(f *PeerFrame) {
	for _, n := range f.Variables {
		c.begin(n, nil)
		c.each(n.Name, n, func(path string, leaf *Node) {
			if leaf.Optimized || leaf.Error != "" {
				c.count(Neither, path, leaf, nil)
			} else {
				c.count(NoFrame, path, leaf, nil)
			}
		})
		c.end()
	}
}

// variableKey tells variables of a frame apart; ordinal counts variables of one
// name and line from the innermost block on.
type variableKey struct {
	name    string
	line    int
	ordinal int
}

func keyed[T any](all []T, identify func(T) (string, int)) (keys []variableKey, byKey map[variableKey]T) {
	byKey = map[variableKey]T{}
	for _, x := range all {
		name, line := identify(x)
		key := variableKey{name, line, 0}
		for {
			if _, seen := byKey[key]; !seen {
				break
			}
			key.ordinal++
		}
		byKey[key] = x
		keys = append(keys, key)
	}
	return keys, byKey
}

// level compares the variables of a frame.
func (c *comparison) level(ours []*Value, theirs []*Node) {
	ourKeys, mine := keyed(ours, func(v *Value) (string, int) { return v.Name, v.Line })
	c.isLengthLost = lostLengths(theirs, c.inner)
	keys, byKey := keyed(theirs, func(n *Node) (string, int) { return n.Name, n.Line })
	for _, key := range keys {
		n, v := byKey[key], mine[key]
		c.begin(n, v)
		switch {
		case v == nil && n.Static:
			c.each(n.Name, n, func(path string, leaf *Node) { c.count(OnRequest, path, leaf, nil) })
		default:
			c.node(n.Name, n, v)
		}
		c.end()
	}
	for _, key := range ourKeys {
		if _, ok := byKey[key]; !ok {
			v := mine[key]
			if c.isGo {
				continue // delve leaves out variables that are declared at a later line
			}
			c.begin(&Node{}, v)
			c.count(Extra, v.Name, &Node{Name: v.Name, Type: v.Type}, v)
			c.end()
		}
	}
}

func (c *comparison) begin(n *Node, v *Value) {
	c.variable, c.location, c.worst = n, n.Place, len(Outcomes)
	if v != nil && v.Location != "" {
		c.location = v.Location + "; " + n.Place
	}
}

func (c *comparison) end() {
	if c.worst < len(Outcomes) {
		c.Variables[Outcomes[c.worst]]++
	}
}

// count counts a value, and keeps it if it is not equal.
func (c *comparison) count(o Outcome, path string, n *Node, v *Value) {
	class := ""
	if o == Miss || o == Wrong || o == OnlyWe {
		if class = c.explain(o, v); class != "" {
			o = Explained
		}
	}
	c.record(o, class, path, n, v)
}

// explained counts a value that differs for a reason.
func (c *comparison) explained(class, path string, n *Node, v *Value) {
	c.record(Explained, class, path, n, v)
}

func (c *comparison) record(o Outcome, class, path string, n *Node, v *Value) {
	if class != "" {
		c.Classes[class]++
	}
	c.Values[o]++
	for i, x := range Outcomes[:c.worst] {
		if x == o {
			c.worst = i
			break
		}
	}
	if o == Equal || o == Neither || o == Cut || o == OnRequest {
		return
	}
	c.Pairs = append(c.Pairs, &Pair{Outcome: o, Class: class, Where: c.where, Name: path, Type: n.Type,
		Ours: v.shown(), Theirs: n.shown(), Place: strings.Join(strings.Fields(c.location), " ")})
}

// each calls f for the parts of a value that have no parts.
func (c *comparison) each(path string, n *Node, f func(path string, leaf *Node)) {
	if n.Cut && len(n.Children) == 0 {
		return
	}
	if len(n.Children) == 0 || n.Synthetic || strings.HasSuffix(n.Code, "ref") {
		if n.Code == "struct" || n.Code == "union" || n.Code == "array" {
			if n.Error == "" {
				return // it is empty
			}
		}
		f(path, n)
		return
	}
	for _, child := range n.Children {
		if child.isDiscriminant() {
			continue
		}
		c.each(join(path, child.Name), child, f)
	}
}

func join(path, name string) string {
	if strings.HasPrefix(name, "[") {
		return path + name
	}
	return path + "." + name
}
