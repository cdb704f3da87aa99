// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// This file writes a comparison in the forms of profiles: a sample is a thread.

// WriteFolded writes a line for each stack by functions: the role of the thread, the functions from
// the outermost on, and the number of threads. Names of accelerators' functions end with _[G], those that are
// guesses with " (a guess)". Lines are in the order of their bytes.
func (c *Comparison) WriteFolded(w io.Writer) error {
	type stack struct {
		role string
		node int
	}
	threads := map[stack]int{}
	for i := range c.c.Classes {
		for k := range c.c.Classes[i].Threads {
			th := &c.c.Classes[i].Threads[k]
			threads[stack{th.Role, th.Node}] += th.Threads
		}
	}
	lines := map[string]int{} // functions of one name may have several nodes
	names := make([]string, len(c.c.Functions))
	var path []string
	for s, n := range threads {
		path = path[:0]
		for node := s.node; node >= 0; node = c.c.Functions[node].Parent {
			if names[node] == "" {
				names[node] = foldedName(&c.c.Functions[node].Frame)
			}
			path = append(path, names[node])
		}
		path = append(path, foldedText(s.role))
		slices.Reverse(path)
		lines[strings.Join(path, ";")] += n
	}
	b := newOutput(w)
	list := make([]string, 0, len(lines))
	for line, n := range lines {
		list = append(list, line+" "+strconv.Itoa(n))
	}
	slices.Sort(list)
	for _, line := range list {
		b.put(line, "\n")
	}
	return b.Flush()
}

// foldedText is a text in a line whose parts are between semicolons.
func foldedText(s string) string {
	return cmp.Or(escape.Text(strings.ReplaceAll(s, ";", ":")), "[unknown]")
}

// foldedName is the name of a frame in such a line.
func foldedName(f *trace.ComparedFrame) string { return foldedText(markedName(f)) }

// markedName is the whole name of a frame with its marks.
func markedName(f *trace.ComparedFrame) string {
	name := frameName(f, true, 0)
	if f.IsWave {
		name += "_[G]"
	}
	if f.IsGuess {
		name += " (a guess)"
	}
	return name
}

// WritePprof writes the stacks in the format of profile.proto, gzipped: a sample for each stack of a class and a
// role, with the numbers of threads and of targets, and the labels class, which counts from 1, and role.
// Where threads are compared with each other there is the number of threads alone.
func (c *Comparison) WritePprof(w io.Writer) error {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "threads", Unit: "count"}, {Type: "targets", Unit: "count"}}, DefaultSampleType: "threads"}
	if c.c.ByThread {
		p.SampleType = p.SampleType[:1]
	}
	b := comparisonPprof{c: c.c, out: p, byName: map[profile.Function]*profile.Location{}, byNode: make([]*profile.Location, len(c.c.Functions))}
	for i := range c.c.Classes {
		class := &c.c.Classes[i]
		for k := range class.Threads {
			th := &class.Threads[k]
			values := []int64{int64(th.Threads), int64(len(class.Targets))}
			p.Sample = append(p.Sample, &profile.Sample{
				Value: values[:len(p.SampleType)], Location: b.stack(th.Node),
				Label: map[string][]string{"class": {strconv.Itoa(i + 1)}, "role": {oneLine(th.Role)}},
			})
		}
	}
	if err := p.CheckValid(); err != nil {
		return err
	}
	return p.Write(w)
}

// comparisonPprof makes locations of the nodes of a comparison.
type comparisonPprof struct {
	c      *trace.Comparison
	out    *profile.Profile
	byName map[profile.Function]*profile.Location
	byNode []*profile.Location
}

// stack is the stack of a node, innermost first.
func (b *comparisonPprof) stack(node int) (list []*profile.Location) {
	for ; node >= 0; node = b.c.Functions[node].Parent {
		if b.byNode[node] == nil {
			b.byNode[node] = b.location(&b.c.Functions[node].Frame)
		}
		list = append(list, b.byNode[node])
	}
	return list
}

// location is the location of a function, which has no line.
func (b *comparisonPprof) location(f *trace.ComparedFrame) *profile.Location {
	name := oneLine(markedName(f))
	function := profile.Function{Name: withoutClone(name), SystemName: name, Filename: oneLine(f.Module)}
	if l := b.byName[function]; l != nil {
		return l
	}
	key := function
	function.ID = uint64(len(b.out.Function)) + 1
	l := &profile.Location{ID: function.ID, Line: []profile.Line{{Function: &function}}}
	b.out.Function = append(b.out.Function, &function)
	b.out.Location = append(b.out.Location, l)
	b.byName[key] = l
	return l
}
