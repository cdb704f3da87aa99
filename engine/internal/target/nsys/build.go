// SPDX-License-Identifier: Apache-2.0

package nsys

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// SampleEvent is the event of samples of the CPU.
const SampleEvent = "cpu-samples"

// The reasons why stacks end.
var (
	stopSpan     = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the ranges and calls of the export end here"}
	stopChain    = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the recorded call chain ends here"}
	stopNoLaunch = trace.Stopped{Reason: trace.StopEndOfStack, Detail: "the export does not have the call that launched it"}
)

// launchKey identifies a call of CUDA.
type launchKey struct{ pid, correlation int64 }

// launch is the call that launched work; several where calls have the same ID.
type launch struct {
	stack, thread uint32
	start, end    int64
	isKnown       bool
	several       bool
}

// chainRef refers to a stack of a table.
type chainRef struct {
	kind int
	id   int64
}

// frameKey identifies a frame.
type frameKey struct {
	symbol, module, address int64
	isKernel, isUnresolved  bool
	pid                     int64
}

// builder puts rows together.
type builder struct {
	*collector
	launches map[launchKey]*launch
	refs     []chainRef // by Note - 1
	frames   map[frameKey]uint32
	spans    map[int64]uint32 // frames by the number of their names
	pid      int64            // of the thread whose spans are added
	only     int64            // the only process; -1: there are several
}

// build makes the file.
func (c *collector) build() *stacktree.File {
	b := &builder{collector: c, launches: map[launchKey]*launch{}, frames: map[frameKey]uint32{}, spans: map[int64]uint32{}, only: c.onlyProcess()}
	for i := range c.chains {
		slices.SortStableFunc(c.chains[i], func(x, y chainEntry) int { return cmp.Or(cmp.Compare(x.id, y.id), cmp.Compare(x.depth, y.depth)) })
	}
	for i := range c.work {
		w := &c.work[i]
		if w.pid < 0 {
			w.pid = b.only
		}
		if w.correlation > 0 {
			b.launches[launchKey{w.pid, w.correlation}] = &launch{}
		}
	}
	nesting := &stacktree.Nesting{Builder: c.Builder, Opened: b.opened, Above: b.pushChain}
	for _, t := range c.order {
		b.addThread(nesting, t)
	}
	for i := range c.samples {
		b.addSample(&c.samples[i])
	}
	for i := range c.work {
		b.addWork(&c.work[i])
	}
	c.MoveTimes(c.epoch)
	nesting.Report()
	c.report()
	return c.Finish()
}

// onlyProcess returns the process of all threads; -1 where there are several.
func (c *collector) onlyProcess() int64 {
	only := int64(-1)
	for i, t := range c.order {
		if pid := processOf(t.id); i > 0 && pid != only {
			return -1
		}
		only = processOf(t.id)
	}
	return only
}

// report adds the problems of the whole export.
func (c *collector) report() {
	n := &c.counts
	for _, p := range []struct {
		n    int
		text string
	}{
		{n.noEnd, "rows have no times, or do not end: they are left out"},
		{n.negative, "rows end before they begin, or have times that are none: they are left out"},
		{n.noThread, "rows have no thread: they are left out"},
		{n.marks, "marks of NVTX have no duration, and are not shown"},
		{n.crossing, "ranges of NVTX begin and end anywhere (nvtxRangeStart), and are not shown"},
		{n.otherRanges, "other events of NVTX are not shown"},
		{n.noLaunch, "kernels and copies have no call in the export that launched them: they are under no stack"},
		{n.several, "calls have the correlation ID of another call: what they launched is under no stack"},
	} {
		if p.n > 0 {
			c.Problem("%d %s", p.n, p.text)
		}
	}
}

// addThread adds the spans of a thread.
func (b *builder) addThread(n *stacktree.Nesting, t *thread) {
	b.pid = processOf(t.id)
	list := make([]stacktree.Span, len(t.spans))
	for i := range t.spans {
		s := &t.spans[i]
		list[i] = stacktree.Span{Start: s.start, End: s.end, Frame: b.spanFrame(s.name), Rank: uint8(s.kind), ID: s.correlation, Note: b.note(s)}
	}
	t.spans = nil
	n.Add(list, b.fileThread(t.id), stopSpan)
}

// note returns the number of the stack that was recorded with a call; 0 where there is none.
func (b *builder) note(s *rawSpan) uint32 {
	ref := chainRef{callChains, s.chain}
	if s.kind == kindSystem {
		ref.kind = systemChains
	}
	if s.chain <= 0 || len(b.chain(ref)) == 0 {
		return 0
	}
	b.refs = append(b.refs, ref)
	return uint32(len(b.refs)) //nolint:gosec // fewer than the bytes of the file
}

// maxChain bounds the frames of a stack, of which the innermost are kept.
const maxChain = 1 << 10

// chain returns the entries of a stack, innermost first.
func (b *builder) chain(ref chainRef) []chainEntry {
	list := b.chains[ref.kind]
	first, _ := slices.BinarySearchFunc(list, ref.id, func(e chainEntry, id int64) int { return cmp.Compare(e.id, id) })
	end := first
	for end < len(list) && list[end].id == ref.id && end-first < maxChain {
		end++
	}
	return list[first:end]
}

// pushChain adds the frames of a recorded stack.
func (b *builder) pushChain(note, stack uint32) uint32 { return b.push(b.refs[note-1], stack) }

func (b *builder) push(ref chainRef, stack uint32) uint32 {
	entries := b.chain(ref)
	for i := len(entries) - 1; i >= 0; i-- {
		stack = b.Push(stack, b.chainFrame(&entries[i], i == 0 && ref.kind == sampleChains))
	}
	return stack
}

// chainFrame returns the frame of an entry of a stack. A name that was not resolved is none.
func (b *builder) chainFrame(e *chainEntry, isExact bool) uint32 {
	name := b.strings[e.symbol]
	isUnresolved := e.isUnresolved || name == "" || strings.HasPrefix(name, "0x")
	key := frameKey{symbol: e.symbol, module: e.module, isKernel: e.isKernel, isUnresolved: isUnresolved, pid: -1}
	if isUnresolved {
		key.address, key.pid = e.address, b.pid
		if isExact {
			key.symbol = -1 // its address is looked up as it is
		}
	}
	if f, ok := b.frames[key]; ok {
		return f
	}
	f := stacktree.Frame{Object: b.strings[e.module], PID: int(key.pid), Exact: isExact, Kernel: e.isKernel, Dispatched: -1, Place: stacktree.PlaceProcess}
	if strings.HasPrefix(f.Object, "[Unknown") {
		f.Object = ""
	}
	if isUnresolved {
		f.Address, f.HasAddress = uint64(e.address), true //nolint:gosec // an address
	} else {
		f.Symbols = []trace.Symbol{{Function: name}}
	}
	index := b.Frame(f)
	b.frames[key] = index
	return index
}

// spanFrame returns the frame of a span by the number of its name.
func (b *builder) spanFrame(id int64) uint32 {
	if f, ok := b.spans[id]; ok {
		return f
	}
	name := b.strings[id]
	if i := ownTexts - id; i >= 0 && i < int64(len(b.texts)) {
		name = b.texts[i]
	}
	f := b.Named(unversioned(name))
	b.spans[id] = f
	return f
}

// unversioned returns the name of a call of CUDA without the version of its interface:
// cudaLaunchKernel of cudaLaunchKernel_v7000.
func unversioned(name string) string {
	i := strings.LastIndex(name, "_v")
	if i <= 0 || i+2 == len(name) || strings.Trim(name[i+2:], "0123456789") != "" || !strings.HasPrefix(name, "cu") {
		return name
	}
	return name[:i]
}

// opened notes the stack of a call that launched work.
func (b *builder) opened(s *stacktree.Span, stack, thread uint32) {
	if spanKind(s.Rank) != kindCall || s.ID <= 0 {
		return
	}
	l := b.launches[launchKey{b.pid, s.ID}]
	switch {
	case l == nil:
	case !l.isKnown, l.thread == thread && s.Start >= l.start && s.End <= l.end:
		*l = launch{stack: stack, thread: thread, start: s.Start, end: s.End, isKnown: true, several: l.several}
	case !l.several:
		l.several = true
		b.counts.several++
	}
}

// addSample adds a sample of the CPU.
func (b *builder) addSample(s *sample) {
	event, _ := b.Event(trace.ProfileEvent{Name: SampleEvent, Unit: "count"})
	b.pid = processOf(s.thread)
	b.Samples = append(b.Samples, trace.ProfileSample{
		Event: event, Time: uint64(s.start), Weight: 1, Thread: b.fileThread(s.thread), Stop: b.Stop(stopChain), //nolint:gosec // see MoveTimes
		Stack: b.push(chainRef{sampleChains, s.id}, 0), CPU: uint32(max(s.cpu, 0)), HasCPU: s.cpu >= 0, //nolint:gosec // a small number
	})
}

// fileThread returns the index of a thread in the file.
func (b *builder) fileThread(global int64) uint32 {
	if global < 0 {
		return b.Thread(-1, -1, "")
	}
	name := b.strings[b.names[global]]
	if _, ok := b.names[global]; !ok || name == "" {
		process := b.processes[processOf(global)]
		name = process[strings.LastIndexByte(process, '/')+1:]
	}
	return b.Thread(int(processOf(global)), int(threadOf(global)), name)
}

// copyKinds are the directions of copies (ENUM_CUDA_MEMCPY_OPER).
var copyKinds = [...]string{
	"of an unknown kind", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP", "unified HtoD", "unified DtoH", "unified DtoD",
}

// addWork adds work of a GPU.
func (b *builder) addWork(w *work) {
	out := stacktree.Work{
		Name: b.workName(w), Device: id(w.device), Stream: id(w.stream), Start: w.start, End: w.end, IsMemory: w.isMemory, Stop: stopNoLaunch,
	}
	if l := b.launches[launchKey{w.pid, w.correlation}]; w.correlation > 0 && l.isKnown && !l.several {
		out.Stack, out.Thread, out.HasLaunch, out.Stop = l.stack, l.thread, true, stopSpan
	} else {
		b.counts.noLaunch++
		process := b.processes[w.pid]
		out.Thread = b.Thread(int(w.pid), -1, process[strings.LastIndexByte(process, '/')+1:])
	}
	b.AddWork(&out)
}

func id(n int64) string {
	if n < 0 {
		return "?"
	}
	return fmt.Sprint(n)
}

// workName returns the name of a kernel or a copy.
func (b *builder) workName(w *work) string {
	switch {
	case w.isMemory && w.copied < 0:
		return "Memset"
	case w.isMemory:
		return "Memcpy " + copyKinds[min(w.copied, int64(len(copyKinds)))%int64(len(copyKinds))]
	}
	return cmp.Or(b.strings[w.demangled], b.strings[w.short], b.strings[w.mangled], "[unknown kernel]")
}
