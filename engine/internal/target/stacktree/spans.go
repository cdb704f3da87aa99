// SPDX-License-Identifier: Apache-2.0

package stacktree

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// SpanEvent is the event of the time of threads within spans, without the spans inside.
const SpanEvent = "span-time"

const (
	// maxDepth bounds the spans around a span.
	maxDepth = 4096
	// tolerance is by how much times may be rounded, in nanoseconds: some traces have whole
	// microseconds.
	tolerance = 1000
	// grain is how far apart two pieces of the time of one span may begin and still be one
	// sample, in nanoseconds.
	grain = 1_000_000
)

// Span is something that a thread did for a time.
type Span struct {
	Start, End int64 // nanoseconds
	Frame      uint32
	// Rank and ID order spans with equal times, the outer one first.
	Rank uint8
	ID   int64
	// IsCall is true for functions and calls, which end before the one that called them does. Where
	// a file has a later end for one, that is wrong.
	IsCall bool
	// Note stands for frames above the span's own; 0: there are none.
	Note uint32
}

// Nesting makes stacks of spans: of spans that lie in each other, the inner one's frame is under
// the outer one's.
type Nesting struct {
	Builder *Builder
	// Opened is called for each span, with the stack that ends with it.
	Opened func(s *Span, stack, thread uint32)
	// Above returns the stack for a span's Note, under a stack; inherit is true where the spans
	// within have these frames as well.
	Above   func(note, stack uint32) uint32
	Inherit bool

	cut, split, deep int
	cutTime          int64
}

// openSpan is a span that contains the moment.
type openSpan struct {
	end     int64
	stack   uint32
	sample  int // the last of its own time; -1: none
	hasNote bool
	isCall  bool
}

// nest is the work on one thread.
type nest struct {
	*Nesting
	thread uint32
	event  int16
	stop   uint16
	open   []openSpan
	now    int64 // up to which time is added
	rest   spanHeap
	splits int // that may be made
}

// order compares spans: outer ones first.
func order(a, b Span) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
}

// Add adds the spans of a thread, and sorts them. Their own times are samples, whose Time is
// negative where a span's is: see Builder.MoveTimes.
func (n *Nesting) Add(spans []Span, thread uint32, stop trace.Stopped) {
	if len(spans) == 0 {
		return
	}
	slices.SortStableFunc(spans, order)
	event, _ := n.Builder.Event(trace.ProfileEvent{Name: SpanEvent, Unit: "nanoseconds"})
	w := &nest{Nesting: n, thread: thread, event: event, stop: n.Builder.Stop(stop), splits: 8 * len(spans)}
	for i := range spans {
		for len(w.rest) > 0 && order(w.rest[0], spans[i]) <= 0 {
			w.addRest()
		}
		w.add(&spans[i])
	}
	for len(w.rest) > 0 {
		w.addRest()
	}
	w.closeUntil(1<<63 - 1)
}

// closeUntil closes the spans that end before a time, and adds the time of open ones.
func (n *nest) closeUntil(time int64) {
	for len(n.open) > 0 {
		top := &n.open[len(n.open)-1]
		n.spend(top, min(top.end, time))
		if top.end > time {
			return
		}
		n.open = n.open[:len(n.open)-1]
	}
	n.now = time
}

// spend adds the time up to an end to a span's own.
func (n *nest) spend(s *openSpan, end int64) {
	if end <= n.now {
		return
	}
	start, amount := n.now, uint64(end-n.now) //nolint:gosec // positive
	n.now = end
	samples := n.Builder.Samples
	if s.sample >= 0 {
		if last := &samples[s.sample]; uint64(start)-last.Time < grain { //nolint:gosec // as times are kept
			last.Weight += amount
			return
		}
	}
	s.sample = len(samples)
	n.Builder.Samples = append(samples, trace.ProfileSample{
		Time: uint64(start), Weight: amount, Stack: s.stack, Thread: n.thread, Event: n.event, Stop: n.stop, //nolint:gosec // see MoveTimes
	})
}

// add opens a span.
func (n *nest) add(s *Span) {
	n.closeUntil(s.Start)
	end, stack, hasNote := s.End, uint32(0), false
	if len(n.open) > 0 {
		top := &n.open[len(n.open)-1]
		stack, hasNote = top.stack, top.hasNote
		if over := end - top.end; over > 0 {
			n.overlap(s, top, over)
			end = top.end
		}
	}
	if len(n.open) >= maxDepth {
		n.deep++
		n.Opened(s, stack, n.thread)
		return
	}
	if s.Note > 0 && !hasNote {
		stack = n.Above(s.Note, stack)
		hasNote = n.Inherit
	}
	stack = n.Builder.Push(stack, s.Frame)
	n.Opened(s, stack, n.thread)
	n.open = append(n.open, openSpan{end: end, stack: stack, sample: -1, hasNote: hasNote, isCall: s.IsCall})
}

// restID is the ID of the rest of a span.
const restID = -2

// overlap handles a span that ends after the one that it began in: its rest begins where that
// ends. A call is cut where its caller ends.
func (n *nest) overlap(s *Span, top *openSpan, over int64) {
	if over <= tolerance || n.splits == 0 || s.IsCall && top.isCall {
		n.cut++
		n.cutTime += over
		return
	}
	if s.ID != restID {
		n.split++
	}
	n.splits--
	rest := *s
	rest.Start, rest.ID, rest.Rank = top.end, restID, 0
	heap.Push(&n.rest, rest)
}

// addRest opens the first rest of a span.
func (n *nest) addRest() {
	rest := heap.Pop(&n.rest).(Span) //nolint:forcetypeassert // it has no others
	n.add(&rest)
}

// Report adds the problems with the spans.
func (n *Nesting) Report() {
	if n.cut > 0 {
		n.Builder.Problem("%d spans end after the span that they are in, by %v in all: they are cut there", n.cut, time.Duration(n.cutTime))
	}
	if n.split > 0 {
		n.Builder.Problem("%d spans end after the span that they began in: the rest of them is beside it", n.split)
	}
	if n.deep > 0 {
		n.Builder.Problem("%d spans lie in more than %d others: their time counts for the spans around them", n.deep, maxDepth)
	}
}

// spanHeap has spans, the first on top.
type spanHeap []Span

func (h spanHeap) Len() int           { return len(h) }
func (h spanHeap) Less(i, j int) bool { return order(h[i], h[j]) < 0 }
func (h spanHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *spanHeap) Push(x any) { *h = append(*h, x.(Span)) } //nolint:forcetypeassert // it has no others

// Pop implements heap.Interface.
func (h *spanHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}

// Work is work of an accelerator.
type Work struct {
	Name           string
	Device, Stream string
	Start, End     int64 // nanoseconds
	IsMemory       bool  // a copy, or memory that was filled
	// Stack and Thread are of the launch, where HasLaunch.
	Stack, Thread uint32
	HasLaunch     bool
	Stop          trace.Stopped
}

// MemoryEvent is the event of the time that accelerators copied and filled memory.
const MemoryEvent = "gpu-memory-time"

// AddWork adds work of an accelerator, under the stack of its launch.
func (b *Builder) AddWork(w *Work) {
	e := trace.ProfileEvent{Name: trace.KernelTimeEvent, Unit: "nanoseconds", Device: true}
	if w.IsMemory {
		e.Name = MemoryEvent
	}
	event, _ := b.Event(e)
	s := trace.ProfileSample{
		Event: event, Time: uint64(w.Start), Weight: uint64(w.End - w.Start), Stack: w.Stack, Thread: w.Thread, Stop: b.Stop(w.Stop), //nolint:gosec // see MoveTimes
	}
	if w.HasLaunch {
		s.Launch = trace.EvidenceRecorded
	}
	s.Stack = b.Push(s.Stack, b.DeviceFrame(fmt.Sprintf("[GPU %s, stream %s]", w.Device, w.Stream)))
	if w.IsMemory {
		s.Stack = b.Push(s.Stack, b.DeviceFrame(w.Name))
	} else {
		index, frame := b.Kernel(w.Name)
		k := &b.Kernels[index]
		k.Dispatches++
		k.Time, k.HasTime = k.Time+s.Weight, true
		s.Stack = b.Push(s.Stack, frame)
	}
	b.Samples = append(b.Samples, s)
}

// MoveTimes adds a number of nanoseconds to the times of all samples, which may count from
// anywhere, or makes the first time 0 where that is needed for positive ones.
func (b *Builder) MoveTimes(base int64) {
	first := int64(0)
	for i := range b.Samples {
		first = min(first, int64(b.Samples[i].Time)) //nolint:gosec // as it was put there
	}
	if first < 0 || base < 0 || base > 1<<62 {
		base = -first
	}
	for i := range b.Samples {
		b.Samples[i].Time += uint64(base) //nolint:gosec // not negative
	}
}
