// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/internal/trie"
)

// The sizes of the text of a profile.
const (
	topFunctions = 30    // lines of the table of functions
	treeShare    = 0.005 // the least share of all for a call in the tree
	longPath     = 50    // bytes of a path; longer ones are shortened
)

// WriteText writes the profile for people: for every event the functions in
// which most of it happened, then the tree of calls. With o.Verbose names and paths
// are not shortened.
func (r *Profile) WriteText(w io.Writer, o TextOptions) error {
	b := NewPrinter(w)
	t := &profileText{Printer: b, r: r, paint: newPaint(o.Color), isWhole: o.Verbose, naming: names{o.FullNames || o.Verbose, wideName}}
	t.nameLines()
	first := true
	for i := range r.values {
		v := &r.values[i]
		if v.kind != valueOfWeight || r.isEmpty {
			continue
		}
		if !first {
			t.printf("\n")
		}
		first = false
		t.event(v)
	}
	if first {
		t.printf("%s: no samples\n", r.subject())
	}
	t.kernels()
	return b.Flush()
}

type profileText struct {
	*Printer
	paint
	r       *Profile
	isWhole bool
	naming  names
	// lines are the functions of the text, lineOf their indices by function. Unknown
	// functions of a module share a line.
	lines  []profileFunction
	lineOf []int32
	// alike are the short names that several functions have.
	alike map[string]bool
}

func (t *profileText) nameLines() {
	index := map[profileFunction]int32{}
	t.lineOf = make([]int32, len(t.r.functions))
	for i, f := range t.r.functions {
		if !f.isNamed {
			f = profileFunction{name: "??", module: f.module, isKernel: f.isKernel, isDevice: f.isDevice}
		}
		n, ok := index[f]
		if !ok {
			n = int32(len(t.lines))
			index[f] = n
			t.lines = append(t.lines, f)
		}
		t.lineOf[i] = n
	}
	t.findAlike()
}

// findAlike finds the short names that several functions have.
func (t *profileText) findAlike() {
	first := map[string]string{} // of each short name
	t.alike = map[string]bool{}
	for i := range t.lines {
		full, short := t.lines[i].name, t.naming.ofProfile(&t.lines[i])
		if first[short] == "" {
			first[short] = full
		}
		t.alike[short] = t.alike[short] || first[short] != full
	}
}

// name returns the name of a function: the short one, unless others have it too and the full one
// is not long.
func (t *profileText) name(f *profileFunction) string {
	short := t.naming.ofProfile(f)
	if t.alike[short] && utf8.RuneCountInString(f.name) <= t.naming.most {
		return f.name
	}
	return short
}

// event writes the tables of one event.
func (t *profileText) event(v *profileValue) {
	c := t.count(v)
	a := newAmounts(c.total, v.unit)
	t.printf("%s\n", t.header(fmt.Sprintf("%s: %s, %s, %s", t.r.subject(), v.name, plural(c.samples, "sample", "samples"), a.text(c.total))))
	if c.total == 0 {
		return
	}
	t.top(c, a)
	t.tree(c)
}

// profileCount is the amount of an event in functions and calls.
type profileCount struct {
	total     uint64
	samples   int
	flat, cum []uint64 // by line
	guessed   []uint64 // by line: the part of cum with the function as a guess
	// waves are the numbers of samples with functions as the innermost, and lanes the numbers
	// of active lanes in these; nil where the event is not of waves.
	waves, lanes []uint64
	hasDevice    bool // there are functions of accelerators
	nodes        []callNode
	tree         *trie.Trie // numbers the nodes
}

// callNode is a function called at its parent's place. Recursive calls are counted as the
// outer one.
type callNode struct {
	line        int32 // index of lines; -1-n: the thread's name is names[n]
	parent      int32
	total       uint64
	self        uint64
	guessed     uint64 // the part of total with the call as a guess
	isRecursive bool
	children    []int32
}

func (c *profileCount) under(parent, line int32) int32 {
	n, isNew := c.tree.Child(uint32(parent), uint32(line))
	if isNew {
		c.nodes = append(c.nodes, callNode{line: line, parent: parent})
		c.nodes[parent].children = append(c.nodes[parent].children, int32(n))
	}
	return int32(n)
}

// count goes over the samples of a value once.
func (t *profileText) count(v *profileValue) *profileCount {
	c := &profileCount{
		flat: make([]uint64, len(t.lines)), cum: make([]uint64, len(t.lines)), guessed: make([]uint64, len(t.lines)),
		nodes: make([]callNode, 1), tree: trie.New(len(t.r.p.Stacks)),
	}
	if t.r.hasLanes(v.event) {
		c.waves, c.lanes = make([]uint64, len(t.lines)), make([]uint64, len(t.lines))
	}
	leaves := t.leaves(v, c)
	w := callCounter{profileText: t, count: c, seen: make([]int, len(t.lines)), nodes: make([]int32, len(t.lines))}
	for i := range leaves {
		w.add(&leaves[i], i+1)
	}
	return c
}

// callCounter adds samples to counts, leaf by leaf.
type callCounter struct {
	*profileText
	count *profileCount
	seen  []int   // by line: the number of the last leaf with it
	nodes []int32 // by line: its node of that leaf
	path  []callStep
	stack []uint32
}

// callStep is a function of a stack.
type callStep struct {
	line    int32
	isGuess bool
}

// add adds the n-th leaf.
func (w *callCounter) add(l *profileLeaf, n int) {
	c := w.count
	w.findPath(l.stack)
	isInverted := w.r.isInverted()
	node := int32(0)
	if !isInverted {
		node = w.thread(node, l)
	}
	for i := range w.path {
		step := &w.path[i]
		if isInverted {
			step = &w.path[len(w.path)-1-i]
		}
		node = w.step(node, step, l, n)
	}
	if isInverted {
		node = w.thread(node, l)
	}
	c.nodes[node].self = add(c.nodes[node].self, l.weight)
	if len(w.path) == 0 {
		return
	}
	last := w.path[len(w.path)-1].line
	c.flat[last] = add(c.flat[last], l.weight)
	if c.waves != nil {
		c.waves[last] += l.samples
		c.lanes[last] += l.lanes
	}
}

// findPath finds the functions of a stack, outermost first.
func (w *callCounter) findPath(stack uint32) {
	w.path = w.path[:0]
	w.stack = w.r.p.StackFrames(w.stack[:0], stack)
	for _, frame := range slices.Backward(w.stack) {
		isGuess := w.r.p.Frames[frame].FoundBy.IsGuess()
		for _, function := range slices.Backward(w.r.functionOf[frame]) {
			w.path = append(w.path, callStep{w.lineOf[function], isGuess})
		}
	}
}

// thread is the node of a leaf's thread below a node.
func (w *callCounter) thread(node int32, l *profileLeaf) int32 {
	node = w.count.under(node, -1-l.name)
	w.count.nodes[node].total = add(w.count.nodes[node].total, l.weight)
	return node
}

// step is the node of a function below a node: where the leaf had it before, that node again.
func (w *callCounter) step(node int32, step *callStep, l *profileLeaf, n int) int32 {
	c, line := w.count, step.line
	if w.seen[line] == n {
		node = w.nodes[line]
		c.nodes[node].isRecursive = true
		return node
	}
	node = c.under(node, line)
	w.seen[line], w.nodes[line] = n, node
	c.nodes[node].total = add(c.nodes[node].total, l.weight)
	c.cum[line] = add(c.cum[line], l.weight)
	if step.isGuess {
		c.nodes[node].guessed = add(c.nodes[node].guessed, l.weight)
		c.guessed[line] = add(c.guessed[line], l.weight)
	}
	c.hasDevice = c.hasDevice || w.lines[line].isDevice
	return node
}

// profileLeaf is the samples of one stack in threads of one name.
type profileLeaf struct {
	name                   int32
	stack                  uint32
	weight, samples, lanes uint64
}

// leaves groups the samples of a value, in the order of each group's first, and counts them.
func (t *profileText) leaves(v *profileValue, c *profileCount) (leaves []profileLeaf) {
	type key struct {
		name  int32
		stack uint32
	}
	known := map[key]int{}
	names := t.names()
	for i := range t.r.p.Samples {
		s := &t.r.p.Samples[i]
		if s.Event != v.event {
			continue
		}
		c.samples += int(s.Count()) //nolint:gosec // 65,536 at most
		c.total = add(c.total, v.amount(s))
		k := key{names[s.Thread], s.Stack}
		n, ok := known[k]
		if !ok {
			n = len(leaves)
			known[k] = n
			leaves = append(leaves, profileLeaf{name: k.name, stack: k.stack})
		}
		l := &leaves[n]
		l.weight = add(l.weight, v.amount(s))
		l.samples += s.Count()
		l.lanes += uint64(s.ActiveLanes) * s.Count()
	}
	return leaves
}

// names numbers the names of threads: threads with the same name have one number.
func (t *profileText) names() []int32 {
	index := map[string]int32{}
	numbers := make([]int32, len(t.r.p.Threads))
	for i := range t.r.p.Threads {
		name := t.r.p.Threads[i].Comm
		if _, ok := index[name]; !ok {
			index[name] = int32(i) // the first thread of the name
		}
		numbers[i] = index[name]
	}
	return numbers
}

// ordered are the lines of an event, the heaviest first.
func (t *profileText) ordered(c *profileCount) []int32 {
	list := make([]int32, 0, len(t.lines))
	for i := range t.lines {
		if c.cum[i] > 0 {
			list = append(list, int32(i))
		}
	}
	slices.SortFunc(list, func(x, y int32) int {
		return cmp.Or(cmp.Compare(c.flat[y], c.flat[x]), cmp.Compare(c.cum[y], c.cum[x]), compareLines(&t.lines[x], &t.lines[y]))
	})
	return list
}

// top writes the table of the heaviest functions.
func (t *profileText) top(c *profileCount, a amounts) {
	list := t.ordered(c)
	width := max(len(a.text(c.total)), 4)
	header := fmt.Sprintf("%*s    flat%%  %*s     cum%%  ", width, "flat", width, "cum")
	if c.waves != nil {
		header += "lanes  "
	}
	if c.hasDevice {
		header += hostColumn
	}
	t.printf("\n%s\n", t.header(header+"function"))
	var rest uint64
	for i, line := range list {
		if i >= topFunctions {
			rest = add(rest, c.flat[line])
			continue
		}
		t.printf("%*s  %s  %*s  %s  ", width, a.text(c.flat[line]), percent(c.flat[line], c.total),
			width, a.text(c.cum[line]), percent(c.cum[line], c.total))
		if c.waves != nil {
			t.printf("%5s  ", mean(c.lanes[line], c.waves[line]))
		}
		f := &t.lines[line]
		t.mark(c, f)
		t.function(f, t.path(f.file))
		if f.module != "" && f.file != "" {
			t.printf(" %s", t.faint("in "+moduleName(f.module)))
		}
		t.guess(c.guessed[line], c.cum[line])
		t.printf("\n")
	}
	if n := len(list) - topFunctions; n > 0 {
		t.printf("%*s  %s  %s\n", width, a.text(rest), percent(rest, c.total), t.faint(fmt.Sprintf("in %d functions more", n)))
	}
}

// deviceColumn stands before functions of accelerators where there are any, and hostColumn
// before others.
const (
	deviceColumn = "gpu "
	hostColumn   = "    "
)

// mark marks functions of accelerators, where there are any; nil is no function.
func (t *profileText) mark(c *profileCount, f *profileFunction) {
	switch {
	case !c.hasDevice:
	case f != nil && f.isDevice:
		t.printf("%s", t.device(deviceColumn))
	default:
		t.printf(hostColumn)
	}
}

func compareLines(a, b *profileFunction) int {
	return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.module, b.module),
		strings.Compare(a.file, b.file), cmp.Compare(a.line, b.line))
}

// function writes a function with its place, or with its module where there is none.
func (t *profileText) function(f *profileFunction, file string) {
	t.printf("%s", t.paint.function(t.name(f)))
	switch {
	case f.line > 0:
		t.printf(" %s", t.place(position(file, f.line, 0)))
	case f.file != "":
		t.printf(" %s", t.place(file))
	case f.module != "":
		t.printf(" %s", t.faint("in "+moduleName(f.module)))
	}
	if f.namedBy != "" && !strings.HasSuffix(f.name, "["+f.namedBy+"]") {
		t.printf(" %s", t.faint("(named by "+f.namedBy+")"))
	}
}

// tree writes the calls from the outermost on. An only call is below its caller, several are
// branches.
func (t *profileText) tree(c *profileCount) {
	mark := ""
	if c.hasDevice {
		mark = hostColumn
	}
	header := " total    self  " + mark + "calls"
	if t.r.isInverted() {
		header = " total          " + mark + "callers"
	}
	t.printf("\n%s\n", t.header(header))
	w := treeWriter{profileText: t, count: c, least: max(uint64(float64(c.total)*treeShare), 1)}
	w.push(0, "")
	for len(w.open) > 0 {
		call := w.open[len(w.open)-1]
		w.open = w.open[:len(w.open)-1]
		w.write(call)
		indent := call.indent
		switch call.branch {
		case "├ ":
			indent += "│ "
		case "└ ":
			indent += "  "
		}
		w.push(call.node, indent)
	}
	if w.cut > 0 {
		t.printf("%s          %s%s\n", percent(w.cutWeight, c.total)[1:], mark,
			t.faint(fmt.Sprintf("in %d calls below %s%%, which are left out", w.cut, strconv.FormatFloat(treeShare*100, 'g', -1, 64))))
	}
}

// treeWriter writes the calls of an event as a tree.
type treeWriter struct {
	*profileText
	count     *profileCount
	least     uint64         // the weight of a call that is written, at least
	open      []indentedCall // yet to be written, the next one last
	cut       int            // calls that are left out
	cutWeight uint64
}

// indentedCall is a line of the tree.
type indentedCall struct {
	node           int32
	indent, branch string
}

// push opens the calls below a node, the heaviest first.
func (w *treeWriter) push(node int32, indent string) {
	nodes := w.count.nodes
	children := nodes[node].children
	slices.SortFunc(children, func(x, y int32) int {
		a, b := &nodes[x], &nodes[y]
		if order := cmp.Compare(b.total, a.total); order != 0 || min(a.line, b.line) < 0 {
			return cmp.Or(order, cmp.Compare(b.line, a.line))
		}
		return compareLines(&w.lines[a.line], &w.lines[b.line])
	})
	kept := len(children)
	for kept > 0 && nodes[children[kept-1]].total < w.least {
		kept--
		w.cut++
		w.cutWeight = add(w.cutWeight, nodes[children[kept]].total)
	}
	if kept == 1 {
		w.open = append(w.open, indentedCall{children[0], indent, ""})
		return
	}
	for i := kept - 1; i >= 0; i-- {
		branch := "├ "
		if i == kept-1 {
			branch = "└ "
		}
		w.open = append(w.open, indentedCall{children[i], indent, branch})
	}
}

// write writes the line of a call.
func (w *treeWriter) write(call indentedCall) {
	n := &w.count.nodes[call.node]
	self := "       "
	if n.self > 0 && !w.r.isInverted() {
		self = percent(n.self, w.count.total)
	}
	w.printf("%s %s  ", percent(n.total, w.count.total)[1:], self)
	var f *profileFunction
	if n.line >= 0 {
		f = &w.lines[n.line]
	}
	w.mark(w.count, f)
	w.printf("%s%s", w.faint(call.indent), w.faint(call.branch))
	if f == nil {
		name := "[unknown]"
		if comm := w.r.p.Threads[-1-n.line].Comm; comm != "" {
			name = strconv.Quote(comm)
		}
		w.printf("%s", w.header(name))
	} else {
		w.function(f, path.Base(f.file))
		w.guess(n.guessed, n.total)
	}
	if n.isRecursive {
		w.printf(" %s", w.faint("(recursive)"))
	}
	w.printf("\n")
}

// guessText describes the part of a total in frames that are a guess; "" for none.
func guessText(part, total uint64) string {
	switch {
	case part == 0:
		return ""
	case part == total:
		return " (a guess)"
	}
	return fmt.Sprintf(" (a guess in %s)", strings.TrimSpace(percent(part, total)))
}

// guess writes guessText.
func (t *profileText) guess(part, total uint64) {
	if text := guessText(part, total); text != "" {
		t.printf("%s", t.warn(text))
	}
}

// mean is the average number of active lanes in a sample.
func mean(lanes, samples uint64) string {
	if samples == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(lanes)/float64(samples))
}

// percent writes a part as a percentage of a total, seven columns wide.
func percent(part, total uint64) string {
	if total == 0 {
		return "      -"
	}
	return fmt.Sprintf("%6.1f%%", float64(part)*100/float64(total))
}

// amounts writes numbers of one kind in one scale.
type amounts struct {
	divide float64
	unit   string
}

// timeScales are the scales for nanoseconds.
var timeScales = []amounts{{1e9, " s"}, {1e6, " ms"}, {1e3, " µs"}, {1, " ns"}}

func newAmounts(largest uint64, unit string) amounts {
	if unit != "nanoseconds" {
		return amounts{}
	}
	for _, s := range timeScales {
		if float64(largest) >= s.divide {
			return s
		}
	}
	return timeScales[len(timeScales)-1]
}

func (a amounts) text(n uint64) string {
	if n == 0 {
		return "0"
	}
	if a.divide <= 1 {
		return strconv.FormatUint(n, 10) + a.unit
	}
	return strconv.FormatFloat(float64(n)/a.divide, 'f', 2, 64) + a.unit
}

// path is a path, without its beginning where it is long.
func (t *profileText) path(file string) string {
	if t.isWhole || len(file) <= longPath {
		return file
	}
	tail := file[len(file)-longPath+len("..."):]
	if i := strings.IndexByte(tail, '/'); i >= 0 {
		return "..." + tail[i:]
	}
	return path.Base(file)
}
