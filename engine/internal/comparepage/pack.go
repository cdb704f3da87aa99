// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/look"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// The data of a page are a header of JSON with all texts, and then lists, each behind its length. Members of a
// list's elements are columns, one after the other: equal numbers are side by side, and pack well. A text is
// its number, from 1 on, in the header's list; 0: none. A node is its number in preorder from 1 on; 0: none.

// header is the header.
type header struct {
	Texts    []string `json:"texts"`
	ByThread bool     `json:"byThread"`
}

// limits bound a page.
type limits struct {
	nodes   int // of each tree
	threads int // stacks of classes and of variants, each
	targets int
	classes int
	text    int // bytes of a text
}

// half are limits of half the size, down to a page that always fits.
func (l limits) half() limits {
	return limits{max(l.nodes/2, 100), max(l.threads/2, 100), max(l.targets/2, 100), max(l.classes/2, 100), max(l.text/2, 64)}
}

// The most elements of short lists: facts and problems of a target, moments, labels, branches.
const (
	maxFew  = 50
	maxMany = 1000
)

// few are the first elements of a list.
func few[T any](list []T, most int) []T { return list[:min(len(list), most)] }

// texts numbers the texts of a page.
type texts struct {
	list    []string
	numbers map[string]uint64
	most    int // bytes of one
	cut     int // how many are not whole
}

// shown is a text as a page shows it: escaped, and not too long.
func (t *texts) shown(s string) string {
	whole := len(s)
	if whole > t.most {
		s = strings.ToValidUTF8(s[:t.most], "")
	}
	if s = escape.Text(s); len(s) < whole && whole > t.most {
		t.cut++
		s += "…"
	}
	return s
}

// number is the number of a text; 0 of "".
func (t *texts) number(s string) uint64 {
	if s == "" {
		return 0
	}
	n, ok := t.numbers[s]
	if !ok {
		t.list = append(t.list, t.shown(s))
		n = uint64(len(t.list))
		t.numbers[s] = n
	}
	return n
}

// packing is the state while the data of a page are written.
type packing struct {
	*look.Columns
	*trace.Comparison
	limits
	texts     *texts
	frames    []trace.ComparedFrame
	frameOf   map[trace.ComparedFrame]uint64
	functions *forest
	lines     *forest
	targets   []int32 // the number of each in the page, from 1 on; 0: it is left out
	classes   []int   // the classes that are in the page, in order
	labels    []string
	leftOut   []string
}

// writeData writes the data of a page and returns sentences about the parts of the comparison that are not in them.
func writeData(w io.Writer, c *trace.Comparison, l limits) ([]string, error) {
	p := &packing{
		Comparison: c, limits: l, texts: &texts{numbers: map[string]uint64{}, most: l.text},
		frameOf: map[trace.ComparedFrame]uint64{},
	}
	p.classes = p.chosenClasses()
	p.targets = p.chosenTargets()
	p.labels = p.chosenLabels()
	p.functions = newForest(c.Functions, p.isNeeded(), l.nodes)
	p.lines = newForest(c.Lines, make([]bool, len(c.Lines)), l.nodes)
	body := &bytes.Buffer{}
	p.Columns = look.NewColumns(body) // texts get their numbers meanwhile, and stand before them
	p.columns()
	if err := p.Flush(); err != nil {
		return nil, err
	}
	out := look.NewPacker(w)
	if err := out.JSON(header{p.texts.list, c.ByThread}); err != nil {
		return nil, err
	}
	_, _ = out.Write(body.Bytes()) // Close has the error
	p.lacks(p.functions.leftOut()+p.lines.leftOut(), "inner frame", " of stacks that few "+word(c)+"s have: each stack says how many it lacks")
	p.lacks(p.texts.cut, "end", fmt.Sprintf(" of texts of more than %d bytes", l.text))
	return p.leftOut, out.Close()
}

// lacks says how much the page lacks of something; n is 0 where it lacks nothing.
func (p *packing) lacks(n int, word, detail string) {
	if n > 0 {
		p.leftOut = append(p.leftOut, "Left out, as the page would be too large: "+plural(n, word)+detail+".")
	}
}

// chosenClasses are the classes of the page: of too many the smallest and the largest.
func (p *packing) chosenClasses() []int {
	all := len(p.Classes)
	var list []int
	for i := range all {
		if i < p.limits.classes-1 || i == all-1 {
			list = append(list, i)
		}
	}
	p.lacks(all-len(list), "class", " of the larger ones, with their targets")
	return list
}

// chosenTargets numbers the targets of the page: of too many the ones of the smallest classes, and as many of
// the others as fit.
func (p *packing) chosenTargets() []int32 {
	numbers := make([]int32, len(p.Targets))
	free := p.limits.targets
	for _, i := range p.classes {
		list := p.Classes[i].Targets
		for _, target := range list[:min(len(list), free)] {
			numbers[target] = 1
		}
		free -= min(len(list), free)
	}
	kept := int32(0)
	for i := range numbers {
		if numbers[i] > 0 {
			kept++
			numbers[i] = kept
		}
	}
	p.lacks(len(numbers)-int(kept), word(p.Comparison), " in the lists of the larger classes: they are counted")
	return numbers
}

// isNeeded marks the functions where classes part, with all their callers.
func (p *packing) isNeeded() []bool {
	needed := make([]bool, len(p.Functions))
	mark := func(node int) {
		for ; node >= 0 && node < len(needed) && !needed[node]; node = p.Functions[node].Parent {
			needed[node] = true
		}
	}
	for _, i := range p.classes {
		at := p.Classes[i].PartsAt
		if at == nil {
			continue
		}
		mark(at.Last)
		mark(at.Here)
		for _, there := range few(at.There, trace.MaxBranches) {
			mark(there.Node)
		}
	}
	return needed
}

// list writes the length of a list.
func (p *packing) list(n int) { p.Uint(uint64(n)) }

// text writes a text.
func (p *packing) text(s string) { p.Uint(p.texts.number(s)) }

// column writes a number for each element of a list.
func column[T any](p *packing, list []T, number func(e *T) uint64) {
	for i := range list {
		p.Uint(number(&list[i]))
	}
}

// textColumn writes a text for each element of a list.
func textColumn[T any](p *packing, list []T, text func(e *T) string) {
	column(p, list, func(e *T) uint64 { return p.texts.number(text(e)) })
}

// columns writes all columns.
func (p *packing) columns() {
	p.forest(p.functions, p.writeFunctions)
	p.forest(p.lines, p.writeLines)
	p.writeFrames()
	p.writeTargets()
	p.writeClasses()
	p.writeModules()
	p.writeCollectives()
}

// forest writes the columns of a tree: the levels, the frames and others.
func (p *packing) forest(f *forest, others func(nodes []*trace.CallNode)) {
	p.list(len(f.kept))
	order := p.Levels(f.parents, f.numbers)
	nodes := make([]*trace.CallNode, len(order))
	for i, k := range order {
		nodes[i] = &f.nodes[f.kept[k]]
	}
	column(p, nodes, func(n **trace.CallNode) uint64 { return p.frame((*n).Frame) })
	others(nodes)
}

// frame numbers a frame.
func (p *packing) frame(f trace.ComparedFrame) uint64 {
	n, ok := p.frameOf[f]
	if !ok {
		n = uint64(len(p.frames))
		p.frames = append(p.frames, f)
		p.frameOf[f] = n
	}
	return n
}

func (p *packing) writeFunctions(nodes []*trace.CallNode) {
	column(p, nodes, func(n **trace.CallNode) uint64 { return uint64((*n).Targets) })
	column(p, nodes, func(n **trace.CallNode) uint64 { return uint64((*n).Threads) })
	column(p, nodes, func(n **trace.CallNode) uint64 { return uint64((*n).Ends) })
}

func (p *packing) writeLines(nodes []*trace.CallNode) {
	last := 0
	for _, n := range nodes {
		function, _ := p.functions.place(n.Function)
		p.Int(int64(function - last))
		last = function
	}
}

// Flags of a frame.
const (
	isInlined = 1 << iota
	isWave
	isGuess
)

func (p *packing) writeFrames() {
	p.list(len(p.frames))
	textColumn(p, p.frames, nameOf)
	textColumn(p, p.frames, func(f *trace.ComparedFrame) string { return f.Short })
	textColumn(p, p.frames, func(f *trace.ComparedFrame) string { return f.Module })
	textColumn(p, p.frames, func(f *trace.ComparedFrame) string { return f.Runtime })
	textColumn(p, p.frames, func(f *trace.ComparedFrame) string { return f.File })
	column(p, p.frames, func(f *trace.ComparedFrame) uint64 { return uint64(max(f.Line, 0)) })
	column(p, p.frames, func(f *trace.ComparedFrame) uint64 { return uint64(max(f.Column, 0)) })
	column(p, p.frames, func(f *trace.ComparedFrame) uint64 {
		return flag(f.IsInlined, isInlined) | flag(f.IsWave, isWave) | flag(f.IsGuess, isGuess)
	})
}

func flag(is bool, bit uint64) uint64 {
	if is {
		return bit
	}
	return 0
}

// nameOf is the name of a frame's function, or where it is.
func nameOf(f *trace.ComparedFrame) string {
	switch {
	case f.Function != "":
		return f.Function
	case f.Module != "":
		return f.Module + "+0x" + strconv.FormatUint(f.Offset, 16)
	}
	return "0x" + strconv.FormatUint(f.Offset, 16)
}

// target is a target of the page, with the number of its variant among all variants.
type target struct {
	*trace.ComparedTarget
	variant int
}

// listed are the targets of the page, in order.
func (p *packing) listed() (list []target) {
	first, next := make([]int, len(p.Classes)), 0
	for _, i := range p.classes {
		first[i] = next
		next += len(p.Classes[i].Variants)
	}
	for i := range p.Targets {
		if t := &p.Targets[i]; p.targets[i] > 0 {
			list = append(list, target{t, first[t.Class] + t.Variant})
		}
	}
	return list
}

func (p *packing) writeTargets() {
	list := p.listed()
	p.list(len(list))
	textColumn(p, list, func(t *target) string { return t.Path })
	column(p, list, func(t *target) uint64 { return uint64(p.classPlace(t.Class)) })
	column(p, list, func(t *target) uint64 { return uint64(t.Variant) })
	column(p, list, func(t *target) uint64 { return uint64(max(t.PID, 0)) })
	column(p, list, func(t *target) uint64 { return uint64(t.Threads) })
	column(p, list, func(t *target) uint64 { return uint64(t.Count) })
	column(p, list, func(t *target) uint64 { return uint64(len(few(t.Moments, maxFew))) })
	last := int64(0)
	for _, t := range list {
		for _, m := range few(t.Moments, maxFew) {
			p.Int(m.UnixMicro() - last)
			last = m.UnixMicro()
		}
	}
	p.textLists(len(list), func(i int) []string { return few(list[i].Problems, maxProblems) })
	p.list(len(p.labels))
	for _, name := range p.labels {
		p.text(name)
		textColumn(p, list, func(t *target) string { return t.Labels[name] })
	}
}

// classPlace is the place of a class in the page.
func (p *packing) classPlace(class int) int {
	place, _ := slices.BinarySearch(p.classes, class)
	return place
}

// textLists writes a list of texts for each element of a list.
func (p *packing) textLists(n int, texts func(i int) []string) {
	for i := range n {
		p.list(len(texts(i)))
	}
	for i := range n {
		for _, text := range texts(i) {
			p.text(text)
		}
	}
}

// chosenLabels are the names of labels, the ones that most targets have first.
func (p *packing) chosenLabels() []string {
	counts := map[string]int{}
	for i := range p.Targets {
		for name := range p.Targets[i].Labels {
			counts[name]++
		}
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	p.lacks(len(names)-maxFew, "label", " that the fewest "+word(p.Comparison)+"s have")
	return few(names, maxFew)
}
