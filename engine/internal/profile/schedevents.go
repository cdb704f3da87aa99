// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
)

// This file reads when threads stop, are woken and run again, from the samples of the kernel's
// scheduler (sched:sched_switch, sched:sched_waking, context-switches) and records of switches.

// schedKind is the kind of a schedEvent.
type schedKind uint8

const (
	schedSwitch  schedKind = iota // a sample: its thread stops, and next runs
	schedWake                     // a sample: its thread wakes next
	schedOut                      // a thread stopped
	schedPreempt                  // likewise, and would have run on
	schedIn                       // a thread runs
	schedExit                     // a thread ends
	schedStart                    // a thread begins
	schedLost                     // records were lost
)

// schedEvent is an event of the scheduler.
type schedEvent struct {
	sample int // the sample of the batch that it is, or that follows it
	kind   schedKind
	// state is the prev_state of the thread that stops; hasState: it is known.
	state    int64
	hasState bool
	isWide   bool // it is of a whole CPU
	thread   int  // that stops, by the kernel's number; of samples where it is known, else 0
	next     int  // that runs, or is woken; -1: not known
	time     uint64
}

// schedRole is the role of an event's samples.
type schedRole struct {
	kind   schedKind
	isRole bool
	// thread, state and next are fields of the raw data; their size is 0 where there are none.
	thread, state, next perfdata.TracepointField
}

// schedReader reads events of the scheduler. nil: the recording has none.
type schedReader struct {
	roles []schedRole               // by event
	flags []perfdata.TracepointFlag // of states
	// isWide: the events are of CPUs, not of some threads.
	isWide bool
}

// knownFlags are the states of threads of kernels since Linux 4.14 (TASK_REPORT in
// include/linux/sched.h).
var knownFlags = []perfdata.TracepointFlag{
	{Mask: 1, Name: "S"}, {Mask: 2, Name: "D"}, {Mask: 4, Name: "T"}, {Mask: 8, Name: "t"},
	{Mask: 0x10, Name: "X"}, {Mask: 0x20, Name: "Z"}, {Mask: 0x40, Name: "P"}, {Mask: 0x80, Name: "I"},
}

// softwareSwitches is PERF_COUNT_SW_CONTEXT_SWITCHES.
const softwareSwitches = 3

// newSchedReader returns the reader of a recording; nil where it has no samples of threads that
// stop.
func newSchedReader(f *perfdata.File) *schedReader {
	r := &schedReader{roles: make([]schedRole, len(f.Attrs())), flags: knownFlags}
	stops, counted := false, -1
	for i := range f.Attrs() {
		a := &f.Attrs()[i]
		switch name := tracepointName(f, a); {
		case name == "sched_switch" && a.SampleType&perfdata.SampleRaw != 0:
			r.roles[i], stops = r.switchRole(f), true
			r.isWide = r.isWide || isOfCPUs(a)
		case name == "sched_waking" || name == "sched_wakeup" || name == "sched_wakeup_new":
			r.roles[i] = wakeRole(f, name)
		case a.Type == typeSoftware && a.Config == softwareSwitches && a.SamplePeriod == 1 && a.Flags&perfdata.FlagFreq == 0:
			counted = i
		}
	}
	if !stops && counted >= 0 {
		r.roles[counted], stops = schedRole{kind: schedSwitch, isRole: true}, true
		r.isWide = isOfCPUs(&f.Attrs()[counted])
	}
	if !stops {
		return nil
	}
	return r
}

// isOfCPUs reports whether an event was recorded on CPUs for all threads (perf record -a, -C):
// only then perf records the CPU of samples unasked.
func isOfCPUs(a *perfdata.Attr) bool {
	return a.SampleType&perfdata.SampleCPU != 0 && a.Flags&perfdata.FlagEnableOnExec == 0
}

// tracepointName returns the name of a tracepoint of the scheduler; "" for another event.
func tracepointName(f *perfdata.File, a *perfdata.Attr) string {
	if a.Type != typeTracepoint {
		return ""
	}
	if t := f.TracepointOf(a); t != nil && t.System == "sched" {
		return t.Name
	}
	for _, name := range []string{"sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new"} {
		if isEventName(a.Name, "sched:"+name) {
			return name
		}
	}
	return ""
}

// isEventName reports whether an event has a name, with modifiers or without: "cycles:u".
func isEventName(event, name string) bool {
	return event == name || len(event) > len(name) && event[:len(name)] == name && event[len(name)] == ':'
}

// switchRole finds the fields of sched_switch.
func (r *schedReader) switchRole(f *perfdata.File) schedRole {
	role := schedRole{
		kind: schedSwitch, isRole: true,
		thread: f.KnownField("prev_pid", 24, 4), state: f.KnownField("prev_state", 32, 8), next: f.KnownField("next_pid", 56, 4),
	}
	if t := f.Tracepoint("sched", "sched_switch"); t != nil {
		role.thread, _ = t.Field("prev_pid")
		role.state, _ = t.Field("prev_state")
		role.next, _ = t.Field("next_pid")
		if len(t.Flags) > 0 {
			r.flags = t.Flags
		}
	}
	return role
}

// wakeRole finds the field of the thread that is woken.
func wakeRole(f *perfdata.File, name string) schedRole {
	role := schedRole{kind: schedWake, isRole: true, next: f.KnownField("pid", 24, 4)}
	if t := f.Tracepoint("sched", name); t != nil {
		role.next, _ = t.Field("pid")
	}
	return role
}

// read appends the event that a sample is; index is the sample's in its batch.
func (r *schedReader) read(s *perfdata.Sample, index int, list []schedEvent) []schedEvent {
	if s.Event < 0 || s.Event >= len(r.roles) || !r.roles[s.Event].isRole {
		return list
	}
	role := &r.roles[s.Event]
	e := schedEvent{sample: index, kind: role.kind, next: -1, time: s.Time, thread: s.TID}
	if next, ok := role.next.Int(s.Raw); ok {
		e.next = int(int32(next)) //nolint:gosec // a number of 32 bits
	}
	if thread, ok := role.thread.Int(s.Raw); ok {
		e.thread = int(int32(thread)) //nolint:gosec // likewise
	}
	e.state, e.hasState = role.state.Int(s.Raw)
	return append(list, e)
}

// switchKinds are the kinds of records.
var switchKinds = [...]schedKind{
	perfdata.SwitchIn: schedIn, perfdata.SwitchOut: schedOut, perfdata.SwitchPreempt: schedPreempt,
	perfdata.SwitchExit: schedExit, perfdata.SwitchStart: schedStart, perfdata.SwitchLost: schedLost,
}

// readBatch reads the events of a batch, in their order.
func (w *walkedBatch) readBatch(r *schedReader, b *perfdata.Batch) {
	if r == nil {
		return
	}
	// The walk of a sample meets a file that shrank, too, and reports it.
	_ = object.Guard(func() error { w.sched = r.events(b, w.sched[:0]); return nil })
}

// events appends the events of a batch, in their order.
func (r *schedReader) events(b *perfdata.Batch, list []schedEvent) []schedEvent {
	records := b.Switches
	for i := 0; i <= len(b.Samples); i++ {
		for len(records) > 0 && records[0].Before <= i {
			s := &records[0]
			list = append(list, schedEvent{sample: i, kind: switchKinds[s.Kind], next: s.TID, thread: s.TID, isWide: s.IsWide, time: s.Time})
			records = records[1:]
		}
		if i < len(b.Samples) {
			list = r.read(&b.Samples[i], i, list)
		}
	}
	return list
}
