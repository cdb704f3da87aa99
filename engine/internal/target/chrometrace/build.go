// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
)

// launch is the call, or the operation, that launched work of an accelerator.
type launch struct {
	stack, thread uint32
	start, end    int64
	several       bool
}

// launches are the launches by what identifies them; nil where nothing refers to one.
type launches map[int64]*launch

// build makes stacks of the spans, and puts the work of accelerators under them.
func (r *reader) build() {
	calls, operations := launches{}, launches{}
	for i := range r.devices {
		d := &r.devices[i]
		if d.correlation >= 0 {
			calls[d.correlation] = nil
		} else if id, ok := r.ended[place{d.thread, d.start}]; ok {
			d.correlation = id
			calls[id] = nil
		}
		// In old traces the external ID is the correlation ID again.
		if d.external >= 0 && d.external != d.correlation {
			operations[d.external] = nil
		}
	}
	r.calling, r.operating = calls, operations
	r.addArrows()
	r.nesting = stacktree.Nesting{Builder: r.Builder, Opened: r.launchAt, Above: r.pushRecorded, Inherit: true}
	for _, t := range r.order {
		r.addThread(t)
	}
	for i := range r.devices {
		r.addWork(&r.devices[i])
	}
	r.MoveTimes(r.base)
}

// addArrows adds a span without a duration where an arrow begins whose call is not a span.
func (r *reader) addArrows() {
	if len(r.calling) == 0 || len(r.started) == 0 {
		return
	}
	have := map[int64]bool{}
	for _, t := range r.order {
		for i := range t.spans {
			if s := &t.spans[i]; s.Rank == ranks[roleCall] && s.ID >= 0 {
				have[s.ID] = true
			}
		}
	}
	for id, at := range r.started {
		t := r.threads[at.thread]
		if _, isWanted := r.calling[id]; isWanted && !have[id] && t != nil && len(t.spans) > 0 {
			t.spans = append(t.spans, stacktree.Span{Start: at.time, End: at.time, Frame: r.frame([]byte("launch"), roleSpan), Rank: ranks[roleCall], ID: id})
		}
	}
}

// addThread adds the spans of a thread.
func (r *reader) addThread(t *thread) {
	for _, i := range t.open { // they never ended
		t.spans[i].End = max(t.spans[i].Start, lastTime(t.spans))
	}
	if len(t.spans) > 0 {
		r.nesting.Add(t.spans, r.fileThread(t), stopSpan)
	}
	t.spans = nil
}

// lastTime is the last time of spans.
func lastTime(spans []stacktree.Span) (end int64) {
	end = spans[0].Start
	for i := range spans {
		end = max(end, spans[i].Start, spans[i].End)
	}
	return end
}

// pushRecorded adds the stack of Python that was recorded with an operation: functions with
// semicolons between them, innermost first.
func (r *reader) pushRecorded(note, stack uint32) uint32 {
	frames, ok := r.recorded[note]
	if !ok {
		for name := range strings.SplitSeq(r.names[note-1], ";") {
			if name = strings.TrimSpace(name); name != "" && len(frames) < maxRecorded {
				frames = append(frames, r.pythonFrame([]byte(name)))
			}
		}
		r.recorded[note] = frames
	}
	for _, frame := range slices.Backward(frames) {
		stack = r.Push(stack, frame)
	}
	return stack
}

// maxRecorded bounds the functions of a recorded stack, of which the innermost are kept.
const maxRecorded = 1 << 10

// launchAt notes the stack of a span that launched work.
func (r *reader) launchAt(s *stacktree.Span, stack, thread uint32) {
	if s.ID < 0 {
		return
	}
	var table launches
	isCall := s.Rank == ranks[roleCall]
	switch {
	case isCall:
		table = r.calling
	case s.Rank == ranks[roleOperator]:
		table = r.operating
	default:
		return
	}
	known, isWanted := table[s.ID]
	switch {
	case !isWanted:
	case known == nil:
		table[s.ID] = &launch{stack: stack, thread: thread, start: s.Start, end: s.End}
	case known.thread == thread && s.Start >= known.start && s.End <= known.end:
		known.stack, known.start, known.end = stack, s.Start, s.End // the call inside made it
	case isCall && !known.several:
		known.several = true
		r.counts.severalLaunches++
	}
}

// addWork adds the time of work of an accelerator.
func (r *reader) addWork(d *deviceSpan) {
	w := stacktree.Work{
		Name: r.names[d.name], Device: r.word(d.device), Stream: r.word(d.stream), Start: d.start, End: d.end,
		IsMemory: d.role == roleMemory, Stop: stopNoLaunch,
	}
	if l := r.launchOf(d); l != nil {
		w.Stack, w.Thread, w.HasLaunch, w.Stop = l.stack, l.thread, true, stopSpan
	} else {
		r.counts.noLaunch++
		w.Thread = r.Thread(-1, -1, r.comm(nil))
	}
	r.AddWork(&w)
}

// launchOf returns the launch of work; nil where it is not known.
func (r *reader) launchOf(d *deviceSpan) *launch {
	if l := r.calling[d.correlation]; d.correlation >= 0 && l != nil && !l.several {
		return l
	}
	if l := r.operating[d.external]; d.external >= 0 && d.external != d.correlation && l != nil && !l.several {
		return l
	}
	return nil
}

// word writes an ID, which may be a word of the trace.
func (r *reader) word(id int64) string {
	if i := -(1 << 40) - id; i >= 0 && i < int64(len(r.names)) {
		return r.names[i]
	}
	return fmt.Sprint(id)
}

// fileThread returns the index of a thread in the file.
func (r *reader) fileThread(t *thread) uint32 {
	return r.Thread(small(t.key.pid), small(t.key.tid), r.comm(t))
}

// small returns an ID that the operating system can have given; -1 for others.
func small(id int64) int {
	if id < 0 || id > math.MaxInt32 {
		return -1
	}
	return int(id)
}

// comm returns the name under which a thread is shown: its rank, where there are several
// processes, or its own name, or its program's. t is nil where the thread is not known.
func (r *reader) comm(t *thread) string {
	if r.rank >= 0 {
		return fmt.Sprintf("rank %d", r.rank)
	}
	if t == nil {
		for _, name := range r.comms { // of one process
			if len(r.comms) == 1 {
				return name
			}
		}
		return ""
	}
	// PyTorch's names of threads are "thread 4711 (python)".
	name := t.name
	if _, program, ok := strings.Cut(name, " ("); ok && strings.HasPrefix(name, "thread ") {
		name = strings.TrimSuffix(program, ")")
	}
	if name == "" {
		name = r.comms[t.key.pid]
	}
	if name == "" && t.key.tid < 0 {
		name = r.word(t.key.tid)
	}
	return name
}
