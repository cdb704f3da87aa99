// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"fmt"
	"math"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
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
	for _, t := range r.order {
		r.addThread(t)
	}
	for i := range r.devices {
		r.addWork(&r.devices[i])
	}
	r.finishTimes()
}

// addArrows adds a span without a duration where an arrow begins whose call is not a span.
func (r *reader) addArrows() {
	if len(r.calling) == 0 || len(r.started) == 0 {
		return
	}
	have := map[int64]bool{}
	for _, t := range r.order {
		for i := range t.spans {
			if s := &t.spans[i]; s.role == roleCall && s.id >= 0 {
				have[s.id] = true
			}
		}
	}
	for id, at := range r.started {
		t := r.threads[at.thread]
		if _, isWanted := r.calling[id]; isWanted && !have[id] && t != nil && len(t.spans) > 0 {
			t.spans = append(t.spans, span{start: at.time, end: at.time, frame: r.frame([]byte("launch"), roleSpan), role: roleCall, id: id})
		}
	}
}

// launchAt notes the stack of a span that launched work.
func (r *reader) launchAt(s *span, stack, thread uint32) {
	if s.id < 0 {
		return
	}
	var table launches
	switch s.role {
	case roleCall:
		table = r.calling
	case roleOperator:
		table = r.operating
	default:
		return
	}
	known, isWanted := table[s.id]
	switch {
	case !isWanted:
	case known == nil:
		table[s.id] = &launch{stack: stack, thread: thread, start: s.start, end: s.end}
	case known.thread == thread && s.start >= known.start && s.end <= known.end:
		known.stack, known.start, known.end = stack, s.start, s.end // the call inside made it
	case s.role == roleCall && !known.several:
		known.several = true
		r.counts.severalLaunches++
	}
}

// addWork adds the time of work of an accelerator.
func (r *reader) addWork(d *deviceSpan) {
	e := trace.ProfileEvent{Name: trace.KernelTimeEvent, Unit: "nanoseconds", Device: true}
	if d.role == roleMemory {
		e.Name = MemoryEvent
	}
	event, _ := r.Event(e)
	s := trace.ProfileSample{Event: event, Time: uint64(d.start), Weight: uint64(d.end - d.start), Stop: r.Stop(stopNoLaunch)} //nolint:gosec // as in spend
	if l := r.launchOf(d); l != nil {
		s.Stack, s.Thread, s.Launch, s.Stop = l.stack, l.thread, trace.EvidenceRecorded, r.Stop(stopSpan)
	} else {
		r.counts.noLaunch++
		s.Thread = r.Thread(-1, -1, r.comm(nil))
	}
	s.Stack = r.Push(s.Stack, r.DeviceFrame(fmt.Sprintf("[GPU %s, stream %s]", r.word(d.device), r.word(d.stream))))
	name := r.names[d.name]
	if d.role == roleMemory {
		s.Stack = r.Push(s.Stack, r.DeviceFrame(name))
	} else {
		index, frame := r.Kernel(name)
		k := &r.Kernels[index]
		k.Dispatches++
		k.Time, k.HasTime = k.Time+s.Weight, true
		s.Stack = r.Push(s.Stack, frame)
	}
	r.Samples = append(r.Samples, s)
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

// finishTimes makes all times positive: a trace may count them from anywhere.
func (r *reader) finishTimes() {
	first := int64(0)
	for i := range r.Samples {
		first = min(first, int64(r.Samples[i].Time)) //nolint:gosec // as it was put there
	}
	base := r.base
	if first < 0 || base < 0 || base > math.MaxInt64/2 {
		base = -first
	}
	for i := range r.Samples {
		r.Samples[i].Time += uint64(base) //nolint:gosec // as before
	}
}
