// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
	"github.com/unwindd/unwindd/internal/trie"
)

// pageBuilder makes the tree of calls of a page: names of threads, below them the reasons why
// stacks are cut short, and functions from the outermost on.
type pageBuilder struct {
	t       *profileText
	r       *Profile
	page    *flamepage.Page
	tree    *trie.Trie
	nodes   stackNodes
	threads map[string]int32 // functions of the page
	cuts    map[string]int32
	weights []float64 // of calls: the largest share in an event, with the calls that they make
}

func newPageBuilder(t *profileText, page *flamepage.Page) *pageBuilder {
	r := t.r
	b := &pageBuilder{
		t: t, r: r, page: page, tree: trie.New(len(r.p.Stacks)), nodes: newStackNodes(r.p),
		threads: map[string]int32{}, cuts: map[string]int32{},
	}
	page.Functions = make([]flamepage.Function, len(r.functions))
	for i := range r.functions {
		page.Functions[i] = t.flameFunction(&r.functions[i])
	}
	for i := range r.p.Threads {
		t := &r.p.Threads[i]
		page.Threads = append(page.Threads, flamepage.Thread{Name: escape.Text(nameOfThread(t)), PID: t.PID, TID: t.TID})
	}
	return b
}

// addSamples adds the samples of a value to its event, grouped by what they begin with: calls
// of stacks are cached for one beginning at a time.
func (b *pageBuilder) addSamples(e *flamepage.Event, v *profileValue) {
	e.IsTimed = b.isTimed(v)
	groups := map[uint32][]int32{}
	var order []uint32
	for i := range b.r.p.Samples {
		s := &b.r.p.Samples[i]
		if !v.has(s) {
			continue
		}
		root := b.root(s)
		if groups[root] == nil {
			order = append(order, root)
		}
		groups[root] = append(groups[root], int32(len(e.Samples)))
		e.Samples = append(e.Samples, flamepage.Sample{Call: int32(s.Stack), Thread: int32(s.Thread), Time: s.Time, Weight: v.amount(s)})
	}
	for _, root := range order {
		for _, i := range groups[root] {
			s := &e.Samples[i]
			s.Call = int32(b.stack(root, uint32(s.Call))) - 1
		}
	}
	b.weigh(e)
}

// isTimed reports whether the samples of a value are at different times.
func (b *pageBuilder) isTimed(v *profileValue) bool {
	first, isMet := uint64(0), false
	for i := range b.r.p.Samples {
		s := &b.r.p.Samples[i]
		if !v.has(s) {
			continue
		}
		if isMet && s.Time != first {
			return true
		}
		first, isMet = s.Time, true
	}
	return false
}

// root is the call that the stack of a sample is below.
func (b *pageBuilder) root(s *trace.ProfileSample) uint32 {
	node := b.under(0, b.named(b.threads, b.r.comm(s), flamepage.ThreadName), false)
	if text := b.cutShort(s); text != "" {
		node = b.under(node, b.named(b.cuts, text, flamepage.Gap), false)
	}
	return node
}

// named is the function of the page that stands for a name.
func (b *pageBuilder) named(known map[string]int32, name string, kind flamepage.Kind) int32 {
	n, ok := known[name]
	if !ok {
		n = int32(len(b.page.Functions))
		known[name] = n
		b.page.Functions = append(b.page.Functions, flamepage.Function{Name: escape.Text(cmp.Or(name, "[unknown]")), Kind: kind})
	}
	return n
}

// stopTexts say why callers are missing in a stack.
var stopTexts = map[trace.StopReason]string{
	trace.StopEndOfStack:   "the recorded stack ends here",
	trace.StopNoModule:     "no code object has the address",
	trace.StopNoRow:        "no rule leads to the caller",
	trace.StopNoProgress:   "the caller would be the same frame",
	trace.StopFrameLimit:   "it has more frames than were walked",
	trace.StopPluginFailed: "the architecture did not answer",
	trace.StopNoMemory:     "memory was not recorded",
	trace.StopNotStopped:   "the thread did not stop",
}

// wasRecorded are the sources of whole stacks, whose ends nothing is known about.
var wasRecorded = map[trace.FoundBy]bool{trace.ByCallChain: true, trace.ByLaunch: true, trace.ByProfiler: true, trace.ByReport: true}

// cutShort is the name of what takes the place of missing callers; "" where none are known to
// be missing. A chain that was recorded as it is may be whole, and so may be a wave.
func (b *pageBuilder) cutShort(s *trace.ProfileSample) string {
	text := stopTexts[b.r.p.Stops[s.Stop].Reason]
	if text == "" {
		return ""
	}
	if s.Stack != 0 {
		n := s.Stack
		for b.r.p.Stacks[n].Caller != 0 {
			n = b.r.p.Stacks[n].Caller
		}
		if f := &b.r.p.Frames[b.r.p.Stacks[n].Frame]; f.Device || wasRecorded[f.FoundBy] {
			return ""
		}
	}
	return "[cut short: " + text + "]"
}

// stack is the call of a stack below a call.
func (b *pageBuilder) stack(root, stack uint32) uint32 {
	return b.nodes.find(root, stack, func(node, frame uint32) uint32 {
		functions, isGuess := b.r.functionOf[frame], b.r.p.Frames[frame].FoundBy.IsGuess()
		for k := len(functions) - 1; k >= 0; k-- {
			node = b.under(node, functions[k], isGuess)
		}
		return node
	})
}

// under is the call of a function below another one.
func (b *pageBuilder) under(caller uint32, function int32, isGuess bool) uint32 {
	label := uint32(function) * 2
	if isGuess {
		label++
	}
	n, isNew := b.tree.Child(caller, label)
	if isNew {
		b.page.Calls = append(trie.Grown(b.page.Calls), flamepage.Call{Caller: int32(caller) - 1, Function: function, IsGuess: isGuess})
	}
	return n
}

// weigh takes the shares of an event's calls.
func (b *pageBuilder) weigh(e *flamepage.Event) {
	calls := b.page.Calls
	totals := make([]float64, len(calls))
	whole := 0.0
	for _, s := range e.Samples {
		whole += float64(s.Weight)
		totals[s.Call] += float64(s.Weight)
	}
	b.weights = append(b.weights, make([]float64, len(calls)-len(b.weights))...)
	for i := len(calls) - 1; i >= 0; i-- { // a caller comes before what it calls
		if caller := calls[i].Caller; caller >= 0 {
			totals[caller] += totals[i]
		}
		if whole > 0 {
			b.weights[i] = max(b.weights[i], totals[i]/whole)
		}
	}
}

// leftOutName is the name of what takes the place of calls that are left out.
const leftOutName = "[left out: light calls]"

// staying are the calls that stay where only most of them can, and the share of the heaviest
// of the others. Callers of calls that stay do, too: no call weighs more than its caller.
func (b *pageBuilder) staying(most int) (stays []bool, least float64) {
	calls := b.page.Calls
	sorted := slices.Clone(b.weights)
	slices.SortFunc(sorted, func(x, y float64) int { return cmp.Compare(y, x) })
	least = sorted[most]
	room := most - slices.Index(sorted, least) // for calls of this weight
	stays = make([]bool, len(calls))
	for i, c := range calls {
		stays[i] = b.weights[i] > least
		if b.weights[i] == least && room > 0 && (c.Caller < 0 || stays[c.Caller]) {
			stays[i] = true
			room--
		}
	}
	return stays, least
}

// leaveOut leaves out the lightest calls where there are more than most. What happened in
// them is in one call below the one that made them, which says so.
func (b *pageBuilder) leaveOut(most int) {
	calls := b.page.Calls
	if len(calls) <= most {
		return
	}
	stays, least := b.staying(most)
	light := b.named(b.cuts, leftOutName, flamepage.Gap)
	lightBelow := map[int32]int32{} // by caller
	var kept []flamepage.Call
	places, leftOut := make([]int32, len(calls)), 0
	for i, c := range calls {
		if c.Caller >= 0 {
			c.Caller = places[c.Caller]
		}
		if !stays[i] {
			leftOut++
			if c.Caller >= 0 && kept[c.Caller].Function == light {
				places[i] = c.Caller
				continue
			}
			if place, ok := lightBelow[c.Caller]; ok {
				places[i] = place
				continue
			}
			c.Function, c.IsGuess = light, false
			lightBelow[c.Caller] = int32(len(kept))
		}
		places[i] = int32(len(kept))
		kept = append(kept, c)
	}
	b.page.Calls = kept
	for i := range b.page.Events {
		for k := range b.page.Events[i].Samples {
			s := &b.page.Events[i].Samples[k]
			s.Call = places[s.Call]
		}
	}
	b.page.LeftOut = fmt.Sprintf("%d calls of %.2g%% or less are left out.", leftOut, 100*least)
}

// managedSuffixes end the names of files of source code that the runtime of a language
// executes, or compiles while the program runs.
var managedSuffixes = map[string]bool{
	".py": true, ".rb": true, ".js": true, ".mjs": true, ".cjs": true, ".ts": true, ".php": true, ".pl": true, ".lua": true,
	".java": true, ".kt": true, ".scala": true, ".groovy": true, ".clj": true, ".cs": true, ".fs": true, ".vb": true, ".ex": true, ".erl": true, ".r": true, ".jl": true,
}

// kindOf is the kind of code of a function.
func kindOf(f *profileFunction) flamepage.Kind {
	switch {
	case f.isDevice:
		return flamepage.GPU
	case f.isKernel:
		return flamepage.Kernel
	case f.isManaged, managedSuffixes[strings.ToLower(path.Ext(f.file))], strings.HasPrefix(f.name, "py::"):
		return flamepage.Managed
	case isGenerated(f):
		return flamepage.JIT
	}
	return flamepage.CPU
}

// isGenerated reports whether a function is of code that the program made while it ran.
func isGenerated(f *profileFunction) bool {
	name := path.Base(f.module)
	for _, pattern := range []string{"jit-*.dump", "perf-*.map", "jitted-*.so"} {
		if ok, err := path.Match(pattern, name); ok && err == nil {
			return true
		}
	}
	return f.isJIT || strings.HasPrefix(f.module, "//anon") || strings.HasPrefix(f.module, "[anon") || strings.HasPrefix(f.module, "/memfd:")
}
