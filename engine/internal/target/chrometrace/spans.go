// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// maxDepth bounds the spans around a span.
	maxDepth = 4096
	// tolerance is by how much times may be rounded, in nanoseconds: old traces have whole
	// microseconds.
	tolerance = 1000
	// grain is how far apart two pieces of the time of one span may begin and still be one
	// sample, in nanoseconds.
	grain = 1_000_000
)

// openSpan is a span that contains the moment.
type openSpan struct {
	end    int64
	stack  uint32
	sample int  // the last of its own time; -1: none
	hasOwn bool // the stack of Python is above it
}

// nest puts the spans of a thread into stacks, and adds their own times.
type nest struct {
	r      *reader
	thread uint32 // of the file
	event  int16
	stop   uint16
	open   []openSpan
	now    int64 // up to which time is added
	rest   spanHeap
	splits int // that may be made
}

// order compares spans: outer ones first.
func order(a, b span) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), cmp.Compare(nesting[a.role], nesting[b.role]), cmp.Compare(a.id, b.id))
}

// nesting is the order of the roles of spans with equal times, from the outermost one on.
var nesting = [roleNone + 1]int{rolePython: 0, roleNote: 1, roleSpan: 2, roleOperator: 3, roleCall: 4}

// addThread adds the spans of a thread.
func (r *reader) addThread(t *thread) {
	for _, i := range t.open { // they never ended
		t.spans[i].end = max(t.spans[i].start, last(t.spans))
	}
	if len(t.spans) == 0 {
		return
	}
	slices.SortStableFunc(t.spans, order)
	event, _ := r.Event(trace.ProfileEvent{Name: SpanEvent, Unit: "nanoseconds"})
	n := &nest{r: r, thread: r.fileThread(t), event: event, stop: r.Stop(stopSpan), splits: 8 * len(t.spans)}
	for i := range t.spans {
		s := &t.spans[i]
		for len(n.rest) > 0 && order(n.rest[0], *s) <= 0 {
			rest := heap.Pop(&n.rest).(span) //nolint:errcheck,forcetypeassert // it has no others
			n.add(&rest)
		}
		n.add(s)
	}
	for len(n.rest) > 0 {
		rest := heap.Pop(&n.rest).(span) //nolint:errcheck,forcetypeassert // likewise
		n.add(&rest)
	}
	n.closeUntil(1<<63 - 1)
	t.spans = nil
}

// last is the last time of spans.
func last(spans []span) (end int64) {
	end = spans[0].start
	for i := range spans {
		end = max(end, spans[i].start, spans[i].end)
	}
	return end
}

// closeUntil closes the spans that end before a time, and adds the time of those that are open.
func (n *nest) closeUntil(time int64) {
	for len(n.open) > 0 {
		top := &n.open[len(n.open)-1]
		end := min(top.end, time)
		n.spend(top, end)
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
	if s.sample >= 0 {
		if last := &n.r.Samples[s.sample]; uint64(start)-last.Time < grain { //nolint:gosec // as times are kept
			last.Weight += amount
			return
		}
	}
	s.sample = len(n.r.Samples)
	n.r.Samples = append(n.r.Samples, trace.ProfileSample{
		Time: uint64(start), Weight: amount, Stack: s.stack, Thread: n.thread, Event: n.event, Stop: n.stop, //nolint:gosec // moved to be positive by finishTimes
	})
}

// add opens a span.
func (n *nest) add(s *span) {
	n.closeUntil(s.start)
	end, stack := s.end, uint32(0)
	hasOwn := false
	if len(n.open) > 0 {
		top := &n.open[len(n.open)-1]
		stack, hasOwn = top.stack, top.hasOwn
		if over := end - top.end; over > 0 {
			n.overlap(s, top.end, over)
			end = top.end
		}
	}
	if len(n.open) >= maxDepth {
		n.r.counts.deep++
		n.r.launchAt(s, stack, n.thread)
		return
	}
	if s.stack > 0 && !hasOwn {
		stack, hasOwn = n.r.pushRecorded(stack, n.r.names[s.stack-1]), true
	}
	stack = n.r.Push(stack, s.frame)
	n.r.launchAt(s, stack, n.thread)
	n.open = append(n.open, openSpan{end: end, stack: stack, sample: -1, hasOwn: hasOwn})
}

// overlap handles a span that ends after the one that it began in: its rest begins where that
// ends.
func (n *nest) overlap(s *span, end, over int64) {
	c := &n.r.counts
	if over <= tolerance || n.splits == 0 {
		c.cut++
		c.cutTime += over
		return
	}
	if s.id != restID {
		c.split++
	}
	n.splits--
	rest := *s
	rest.start, rest.role, rest.id = end, roleSpan, restID
	heap.Push(&n.rest, rest)
}

// restID is the ID of the rest of a span.
const restID = -2

// pushRecorded adds the stack of Python that was recorded with an operation: functions with
// semicolons between them, innermost first.
func (r *reader) pushRecorded(stack uint32, text string) uint32 {
	names := strings.Split(text, ";")
	for i := len(names) - 1; i >= 0; i-- {
		if name := strings.TrimSpace(names[i]); name != "" {
			stack = r.Push(stack, r.pythonFrame([]byte(name)))
		}
	}
	return stack
}

// spanHeap has spans, the first on top.
type spanHeap []span

func (h spanHeap) Len() int           { return len(h) }
func (h spanHeap) Less(i, j int) bool { return order(h[i], h[j]) < 0 }
func (h spanHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push implements heap.Interface.
func (h *spanHeap) Push(x any) { *h = append(*h, x.(span)) } //nolint:errcheck,forcetypeassert // it has no others

// Pop implements heap.Interface.
func (h *spanHeap) Pop() any {
	old := *h
	s := old[len(old)-1]
	*h = old[:len(old)-1]
	return s
}
