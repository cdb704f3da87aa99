// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file makes samples of the time that threads are on no CPU: a thread's stack when it
// stopped, below it a frame that says why, with the time until it ran again.

// offCPU follows the threads of a recording. Its events come in the order of time.
type offCPU struct {
	builder *profileBuilder
	flags   []perfdata.TracepointFlag
	threads map[int]*stopped
	// numbers are the threads of samples by the kernel's numbers, where they differ: perf ran in
	// a namespace of its own.
	numbers map[int]int
	// samples are of the event off-cpu, and wakes of off-cpu-wakers.
	samples, wakes []trace.ProfileSample
	frames         map[string]uint32 // of states
	isWide         bool              // all switches of CPUs are recorded
	losses         int               // how often records were lost up to now
	last           uint64            // the latest time
	missed         offCPUMissed
}

// offCPUMissed counts stops that are not known as a whole.
type offCPUMissed struct {
	ends      int           // stops without a known end
	threads   int           // with such
	uncertain int           // stops during which records were lost
	lost      time.Duration // of them
	open      int           // threads that did not run again
	openTime  time.Duration
}

// stopped is a thread, and how it stopped.
type stopped struct {
	isOut, isDead, everIn, misses bool
	state                         string
	losses                        int
	time, woken                   uint64 // woken is 0 where no wake was recorded
	sample, waker                 trace.ProfileSample
}

// newOffCPU returns what follows the threads of a recording; nil where nothing says when they
// stop.
func newOffCPU(b *profileBuilder) *offCPU {
	r := b.recording.sched
	if r == nil {
		return nil
	}
	return &offCPU{builder: b, flags: r.flags, isWide: r.isWide, threads: map[int]*stopped{}, numbers: map[int]int{}, frames: map[string]uint32{}}
}

// add follows the events of a batch, whose samples are the last of the profile's.
func (o *offCPU) add(w *walkedBatch) {
	if o == nil {
		return
	}
	first := len(o.builder.out.Samples) - len(w.samples)
	events := w.sched
	for i := 0; i <= len(w.samples); i++ {
		isSched := false
		for len(events) > 0 && events[0].sample == i {
			e := &events[0]
			isSample := e.kind == schedSwitch || e.kind == schedWake
			isSched = isSched || isSample
			var s *trace.ProfileSample
			if isSample {
				s = &o.builder.out.Samples[first+i]
			}
			o.event(e, s)
			events = events[1:]
		}
		if i < len(w.samples) && !isSched {
			o.ran(&w.samples[i])
		}
	}
}

// event follows one event; s is the sample that it is.
func (o *offCPU) event(e *schedEvent, s *trace.ProfileSample) {
	o.last = max(o.last, e.time)
	o.isWide = o.isWide || e.isWide
	switch e.kind {
	case schedSwitch:
		// A thread that ends has no number any more (-1).
		if tid := o.builder.out.Threads[s.Thread].TID; tid != e.thread && tid > 0 {
			o.numbers[e.thread] = tid
		}
		if e.next >= 0 {
			o.in(o.number(e.next), e.time)
		}
		o.out(o.number(e.thread), e, s)
	case schedWake:
		o.wake(o.number(e.next), e.time, s)
	case schedIn:
		o.in(e.thread, e.time)
	case schedPreempt:
		if t := o.threads[e.thread]; t != nil && t.isOut && t.state == stateUnknown {
			t.state = statePreempted
		}
	case schedExit:
		o.thread(e.thread).isDead = true
	case schedStart:
		delete(o.threads, e.thread)
	case schedLost:
		o.losses++
	}
}

// number returns the thread of a number of the kernel.
func (o *offCPU) number(thread int) int {
	if tid, ok := o.numbers[thread]; ok {
		return tid
	}
	return thread
}

// out notes that a thread stops with a sample.
func (o *offCPU) out(tid int, e *schedEvent, s *trace.ProfileSample) {
	if tid == 0 {
		o.isWide = true // an idle CPU
	}
	if tid <= 0 {
		return
	}
	t := o.thread(tid)
	if t.isOut {
		o.miss(t)
	}
	before := t.sample
	*t = stopped{isOut: true, isDead: t.isDead, everIn: t.everIn, misses: t.misses, state: o.stateName(e), losses: o.losses, time: e.time, sample: *s}
	if before.Weight > 0 && o.builder.out.Threads[s.Thread].TID < 0 {
		t.sample.Thread = before.Thread // the kernel has taken its number away
	}
	t.isDead = t.isDead || t.state == stateDead
}

// thread returns a thread by its number.
func (o *offCPU) thread(tid int) *stopped {
	t := o.threads[tid]
	if t == nil {
		t = &stopped{}
		o.threads[tid] = t
	}
	return t
}

// miss notes that the end of a stop is not known.
func (o *offCPU) miss(t *stopped) {
	if t.isOut = false; t.isDead {
		return
	}
	o.missed.ends++
	if !t.misses {
		t.misses = true
		o.missed.threads++
	}
}

// evidenceTime is how long after a stop a sample of the kernel's code proves that the thread ran
// again: before that it may be the code that stops it.
const evidenceTime = uint64(time.Millisecond)

// ran notes that a sample of another event is of a thread. Where that stopped, the record of its
// running again is lost, or none is written.
func (o *offCPU) ran(s *walkedSample) {
	o.last = max(o.last, s.time)
	t := o.threads[s.tid]
	if t == nil || !t.isOut || s.time <= t.time || o.builder.isSummed(s.event) {
		return
	}
	if s.kernel == 0 && s.frames > 0 || s.time-t.time > evidenceTime {
		o.miss(t)
	}
}

// wake notes that a thread is woken by a sample's thread.
func (o *offCPU) wake(tid int, now uint64, s *trace.ProfileSample) {
	if t := o.threads[tid]; t != nil && t.isOut && t.woken == 0 && now >= t.time && now > 0 {
		t.woken, t.waker = now, *s
	}
}

// in ends the stop of a thread.
func (o *offCPU) in(tid int, now uint64) {
	t := o.threads[tid]
	if t == nil {
		return
	}
	t.everIn = true
	if !t.isOut || now < t.time { // a switch is recorded twice, or a clock went back
		return
	}
	t.isOut = false
	if t.losses != o.losses {
		o.missed.uncertain++
		o.missed.lost += time.Duration(now - t.time) //nolint:gosec // of one recording
		return
	}
	o.keep(t, now)
}

// keep adds the samples of a stop up to a time.
func (o *offCPU) keep(t *stopped, end uint64) {
	blocked := end
	if t.woken > 0 && t.woken <= end {
		blocked = t.woken
		if blocked > t.time {
			w := t.waker
			w.Weight = blocked - t.time
			o.wakes = append(o.wakes, w)
		}
	}
	o.keepPart(t, t.time, blocked, t.state)
	o.keepPart(t, blocked, end, stateRunnable)
}

// keepPart adds a sample of a part of a stop.
func (o *offCPU) keepPart(t *stopped, start, end uint64, state string) {
	if end <= start {
		return
	}
	frame, ok := o.frames[state]
	if !ok {
		frame = o.builder.named(namedFrame{name: state, module: -1, kernel: -1})
		o.builder.out.Frames[frame].FoundBy = trace.ByContext
		o.frames[state] = frame
	}
	s := t.sample
	s.Time, s.Weight = start, end-start
	s.Stack = o.builder.push(trace.ProfileStack{Caller: s.Stack, Frame: frame})
	o.samples = append(o.samples, s)
}

// end adds the samples to the profile.
func (o *offCPU) end() {
	if o == nil {
		return
	}
	var left []*stopped
	for _, t := range o.threads {
		if t.isOut && !t.isDead && t.time < o.last {
			left = append(left, t)
		}
	}
	slices.SortFunc(left, func(a, b *stopped) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.sample.Thread, b.sample.Thread))
	})
	for _, t := range left {
		switch {
		case t.misses || !o.isWide && !t.everIn:
			o.miss(t)
		case t.losses != o.losses:
			o.missed.uncertain++
			o.missed.lost += time.Duration(o.last - t.time) //nolint:gosec // of one recording
		default:
			o.missed.open++
			o.missed.openTime += time.Duration(o.last - t.time) //nolint:gosec // likewise
			o.keep(t, o.last)
		}
	}
	o.addEvent(trace.OffCPUEvent, o.samples)
	o.addEvent(trace.WakersEvent, o.wakes)
	o.report()
}

// addEvent adds the samples of an event, by time.
func (o *offCPU) addEvent(name string, samples []trace.ProfileSample) {
	if len(samples) == 0 {
		return
	}
	out := &o.builder.out
	index := int16(len(out.Events)) //nolint:gosec // perfdata bounds them
	out.Events = append(out.Events, trace.ProfileEvent{Name: name, Unit: "nanoseconds"})
	slices.SortStableFunc(samples, func(a, b trace.ProfileSample) int { return cmp.Compare(a.Time, b.Time) })
	for i := range samples {
		samples[i].Event = index
	}
	out.Samples = append(out.Samples, samples...)
}

// report adds problems about stops that are not known as a whole.
func (o *offCPU) report() {
	r, m := o.builder.recording, &o.missed
	switch {
	case m.ends == 0:
	case o.isWide:
		r.problem("%s: %d stops, of %d threads, are left out, since the recording misses when they ran again", trace.OffCPUEvent, m.ends, m.threads)
	default:
		r.problem("%s: %d stops, of %d threads, are left out, since the recording does not say when they ran again: `perf record --switch-events`, or -e sched:sched_switch with -a, records that", trace.OffCPUEvent, m.ends, m.threads)
	}
	if o.isOfSomeCPUs() {
		r.problem("%s: only some CPUs were recorded: a thread that ran on another one counts as stopped", trace.OffCPUEvent)
	}
	if m.uncertain > 0 {
		r.problem("%s: %d stops, of %v in all, are left out, since records were lost while they lasted", trace.OffCPUEvent, m.uncertain, shortDuration(m.lost))
	}
	if m.open > 0 {
		r.problem("%s: %d threads did not run again before the recording ended: their last stops, %v in all, count up to then", trace.OffCPUEvent, m.open, shortDuration(m.openTime))
	}
}

// shortDuration returns a duration as sentences have it.
func shortDuration(d time.Duration) time.Duration {
	if d > time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d
}

// isOfSomeCPUs reports whether perf was told to record some CPUs only.
func (o *offCPU) isOfSomeCPUs() bool {
	return o.isWide && slices.ContainsFunc(o.builder.recording.file.Features().CmdLine, func(word string) bool {
		return strings.HasPrefix(word, "-C") || word == "--cpu" || strings.HasPrefix(word, "--cpu=")
	})
}

// The frames of states. A thread that waits for a CPU may have been preempted, or have given up
// its own, or have been woken.
const (
	stateUnknown   = "[off-cpu]"
	stateRunnable  = "[runnable]"
	statePreempted = "[preempted]"
	stateDead      = ""
)

// stateNames are the frames by the letters of states (proc_pid_stat(5)).
var stateNames = map[string]string{
	"S": "[sleeping]", "D": "[uninterruptible]", "T": "[stopped]", "t": "[traced]", "P": "[parked]", "I": "[idle]", "N": "[idle]",
	"X": stateDead, "Z": stateDead, "x": stateDead,
}

// stateName returns the frame for the state of a thread that stops.
func (o *offCPU) stateName(e *schedEvent) string {
	if !e.hasState {
		return stateUnknown
	}
	most := uint64(0)
	for _, f := range o.flags {
		most = max(most, f.Mask)
		if uint64(e.state)&f.Mask != 0 { //nolint:gosec // bits
			if name, ok := stateNames[f.Name]; ok {
				return name
			}
			return stateUnknown
		}
	}
	if uint64(e.state) > most { //nolint:gosec // bits
		return statePreempted
	}
	return stateRunnable
}

// isSummed reports whether the samples of an event are sums that were made after the threads had
// run (perf record --off-cpu).
func (b *profileBuilder) isSummed(event int) bool {
	return event >= 0 && b.recording.file.Attrs()[event].IsOffCPUTime()
}
