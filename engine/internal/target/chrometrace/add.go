// SPDX-License-Identifier: Apache-2.0

package chrometrace

import (
	"bytes"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/jsontext"
	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// role tells the kind of thing that an event stands for, by its category.
type role uint8

const (
	roleSpan     role = iota // of a thread
	rolePython               // a function of Python
	roleNote                 // an annotation
	roleOperator             // of PyTorch
	roleCall                 // of the accelerator's library
	roleKernel
	roleMemory
	roleNone // it is not shown
)

// roles are the roles of categories, in lower case. PyTorch's names changed over the years.
var roles = map[string]role{
	"python_function": rolePython, "user_annotation": roleNote, "cpu_op": roleOperator, "operator": roleOperator,
	"cuda_runtime": roleCall, "cuda_driver": roleCall, "runtime": roleCall, "hip_runtime": roleCall, "xpu_runtime": roleCall,
	"mtia_runtime": roleCall, "privateuse1_runtime": roleCall, "privateuse1_driver": roleCall,
	"kernel": roleKernel, "concurrent_kernel": roleKernel, "gpu_memcpy": roleMemory, "gpu_memset": roleMemory, "memcpy": roleMemory, "memset": roleMemory,
	// The same annotations again, at the time of the work of accelerators; synchronisation
	// whose calls are spans; counters; the time of the recording itself.
	"gpu_user_annotation": roleNone, "cuda_sync": roleNone, "cuda_event": roleNone, "cuda_profiler_range": roleNone, "trace": roleNone, "overhead": roleNone,
	"mtia_ccp_events": roleNone, "mtia_insight": roleNone, "glow_runtime": roleNone, "gpu_op": roleNone, "hpu_op": roleNone, "collective_comm": roleNone,
}

// ranks are the ranks of the roles of spans with equal times, the outermost first.
var ranks = [roleNone + 1]uint8{rolePython: 1, roleNote: 2, roleSpan: 3, roleOperator: 4, roleCall: 5}

// deviceSpan is work of an accelerator.
type deviceSpan struct {
	start, end            int64
	name                  uint32
	role                  role
	device, stream        int64
	correlation, external int64 // -1: not there
	thread                threadKey
}

// add adds the event that was read.
func (r *reader) add() {
	e := &r.event
	switch e.phase {
	case 'X':
		r.addSpan()
	case 'B', 'E':
		r.addEdge()
	case 'M':
		r.addName()
	case 's', 'f', 't':
		r.addArrow()
	case 'i', 'I', 'R', 0:
		r.leftOut["instants"]++
	case 'C':
		r.leftOut["counters"]++
	case 'b', 'e', 'n', 'S', 'T', 'p', 'F':
		r.leftOut["asynchronous events"]++
	default:
		r.leftOut["other events"]++
	}
}

// thread returns a thread of the trace.
func (r *reader) thread(key threadKey) *thread {
	t := r.threads[key]
	if t == nil {
		t = &thread{key: key}
		r.threads[key] = t
		r.order = append(r.order, t)
	}
	return t
}

// time returns the time of the event; false where it has none.
func (r *reader) time() (int64, bool) {
	if !r.event.time.isTime {
		r.counts.badTime++
		return 0, false
	}
	return r.event.time.nanos, true
}

// roleOf returns the role of a category.
func roleOf(category []byte) role {
	if known, ok := roles[string(category)]; ok {
		return known
	}
	return roles[string(bytes.ToLower(category))]
}

// addSpan adds an event with a duration.
func (r *reader) addSpan() {
	e := &r.event
	role := roleOf(e.category)
	if role == roleNone {
		r.leftOut[jsontext.Clip(string(e.category))]++
		return
	}
	start, ok := r.time()
	switch {
	case !ok:
		return
	case !e.length.isTime:
		r.counts.noTime++
		return
	case e.length.nanos < 0:
		r.counts.negative++
		return
	case role == roleKernel || role == roleMemory:
		r.addDevice(role, start)
		return
	}
	t := r.thread(e.thread)
	t.spans = append(t.spans, r.newSpan(role, start, start+e.length.nanos))
}

// newSpan returns the span of the event that was read. Its ID is the correlation ID of a call, the
// external ID of an operation, or the number of a function of Python, which follow each other as
// they are called; its Note is the recorded stack of Python of an operation, an index of names and
// 1.
func (r *reader) newSpan(role role, start, end int64) stacktree.Span {
	e := &r.event
	s := stacktree.Span{Start: start, End: end, Frame: r.frame(e.name, role), Rank: ranks[role], ID: -1, IsCall: role == rolePython || role == roleOperator || role == roleCall}
	switch {
	case role == roleCall && e.correlation.isThere:
		s.ID = e.correlation.integer
	case role == roleOperator && e.external.isThere:
		s.ID = e.external.integer
	case role == rolePython && e.pythonID.isThere:
		s.ID = e.pythonID.integer
	}
	if len(e.stack) > 0 {
		s.Note = r.text(e.stack) + 1
	}
	return s
}

// addEdge adds the begin or the end of a span.
func (r *reader) addEdge() {
	time, ok := r.time()
	if !ok {
		return
	}
	t := r.thread(r.event.thread)
	if r.event.phase == 'B' {
		role := roleOf(r.event.category)
		if role >= roleKernel {
			role = roleSpan
		}
		t.open = append(t.open, uint32(len(t.spans)))            //nolint:gosec // fewer than the bytes of the file
		t.spans = append(t.spans, r.newSpan(role, time, time-1)) // until it ends
		return
	}
	if len(t.open) == 0 {
		r.leftOut["ends of nothing"]++
		return
	}
	s := &t.spans[t.open[len(t.open)-1]]
	t.open = t.open[:len(t.open)-1]
	if s.End = time; time < s.Start {
		s.End = s.Start
		r.counts.negative++
	}
}

// addDevice adds work of an accelerator.
func (r *reader) addDevice(role role, start int64) {
	e := &r.event
	d := deviceSpan{
		start: start, end: start + e.length.nanos, name: r.text(e.name), role: role,
		device: e.thread.pid, stream: e.thread.tid, correlation: -1, external: -1, thread: e.thread,
	}
	if e.device.isThere {
		d.device = e.device.integer
	}
	if e.stream.isThere {
		d.stream = e.stream.integer
	}
	if e.correlation.isThere {
		d.correlation = e.correlation.integer
	}
	if e.external.isThere {
		d.external = e.external.integer
	}
	r.devices = append(r.devices, d)
}

// addName adds the name of a process or a thread.
func (r *reader) addName() {
	e := &r.event
	switch string(e.name) {
	case "process_name":
		r.comms[e.thread.pid] = string(e.label)
	case "thread_name":
		r.thread(e.thread).name = string(e.label)
	}
}

// addArrow adds an end of an arrow from a call to what it launched.
func (r *reader) addArrow() {
	e := &r.event
	switch string(e.category) {
	case "ac2g", "async_gpu", "async_cpu_to_gpu":
	default:
		r.leftOut["arrows"]++
		return
	}
	time, ok := r.time()
	if !ok || !e.id.isThere {
		return
	}
	// Some versions of PyTorch took the ends for each other: the accelerator's is found by its
	// place.
	at := place{e.thread, time}
	if e.phase == 's' {
		r.started[e.id.integer] = at
	} else {
		r.ended[at] = e.id.integer
	}
}

// frame returns the frame of a span.
func (r *reader) frame(name []byte, role role) uint32 {
	if f, ok := r.frames[string(name)]; ok && role != rolePython {
		return f
	}
	if role == rolePython {
		return r.pythonFrame(name)
	}
	f := r.Frame(stacktree.Frame{Symbols: []trace.Symbol{{Function: string(name)}}, PID: -1, Dispatched: -1})
	r.frames[string(name)] = f
	return f
}

// pythonFrame returns the frame of a function of Python. Names are FILE(LINE): FUNCTION, or of
// built-in functions with the address of an object, which differs from one process to the next.
func (r *reader) pythonFrame(name []byte) uint32 {
	key := "\x00" + string(name)
	if f, ok := r.frames[key]; ok {
		return f
	}
	s := pythonSymbol(string(name))
	own := "\x00" + s.Function + "\x00" + s.File
	f, ok := r.frames[own]
	if !ok || s.Line > 0 {
		f = r.Frame(stacktree.Frame{Symbols: []trace.Symbol{s}, PID: -1, Dispatched: -1})
		r.frames[own] = f
	}
	r.frames[key] = f
	return f
}

// pythonSymbol splits the name of a function of Python.
func pythonSymbol(name string) trace.Symbol {
	if i := strings.Index(name, " at 0x"); i > 0 {
		end := i + len(" at 0x")
		for end < len(name) && (name[end] >= '0' && name[end] <= '9' || name[end] >= 'a' && name[end] <= 'f') {
			end++
		}
		name = name[:i] + name[end:]
	}
	place, function, ok := strings.Cut(name, "): ")
	open := strings.LastIndexByte(place, '(')
	if !ok || open <= 0 || function == "" {
		return trace.Symbol{Function: name}
	}
	n, isNumber := parseNumber([]byte(place[open+1:]))
	if !isNumber || n.integer <= 0 || n.integer > 1<<31 {
		return trace.Symbol{Function: name}
	}
	line := int(n.integer)
	return trace.Symbol{Function: function, File: place[:open], Line: line, StartFile: place[:open], StartLine: line}
}
