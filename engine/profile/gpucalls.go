// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/target/gpusamples"
	"github.com/unwindd/unwindd/engine/target/perfdata"
)

// clockNames are those of clockid_t (linux/time.h).
var clockNames = map[int32]string{
	0: "CLOCK_REALTIME", 1: "CLOCK_MONOTONIC", 4: "CLOCK_MONOTONIC_RAW", 7: "CLOCK_BOOTTIME", 11: "CLOCK_TAI",
}

// clockOf is the clock of a recording.
func clockOf(f *perfdata.File) string {
	name := "the clock of perf"
	for i := range f.Attrs() {
		a := &f.Attrs()[i]
		if a.Flags&perfdata.FlagUseClockID == 0 {
			return "the clock of perf"
		}
		if name = clockNames[a.ClockID]; name == "" {
			name = fmt.Sprintf("clock %d", a.ClockID)
		}
	}
	return name
}

// compareClocks finds how times of the file are compared with those of the
// recording. Where launches are to be joined by them and they cannot be, that is an
// error: joined by wrong times, waves would stand on stacks that never launched them.
func (j *gpuJoin) compareClocks(recorded *perfdata.File, o *Options) error {
	clock := clockOf(recorded)
	c := j.b.newCallStacks(recorded, j.file.Launches, o.JoinWindow)
	j.timed = j.file.Clock == "" || j.file.Clock == clock
	if !j.timed && j.file.Clock == "CLOCK_BOOTTIME" && clock == "CLOCK_MONOTONIC" {
		j.ahead, j.timed = c.clockAhead(j.file.Launches)
	}
	if j.timed {
		c.ahead, j.calls = j.ahead, c
		return nil
	}
	differ := fmt.Sprintf("%s: its times are by %s, those of %s by %s", j.file.Path, j.file.Clock, recorded.Path(), clock)
	if slices.ContainsFunc(j.file.Launches, func(l gpusamples.Launch) bool { return l.HasTime && !l.HasStack() }) {
		return fmt.Errorf("%s: launches cannot be joined to stacks: record those with `perf record -k %s`%s", differ, j.file.Clock, probeClock(j.file.Clock))
	}
	j.b.recording.problem("%s: they are not compared", differ)
	return nil
}

// probeClock says what to record probes with where the kernel refuses them a clock:
// perf_event_set_clock (kernel/events/core.c) allows CLOCK_BOOTTIME for events that
// are not counted in interrupts that cannot be masked, which tracepoints may be.
func probeClock(clock string) string {
	if clock != "CLOCK_BOOTTIME" {
		return ""
	}
	return ", or probes of the launching calls, for which the kernel refuses that clock, with `-k CLOCK_MONOTONIC`"
}

// A threadID tells threads apart.
type threadID struct{ pid, tid int }

// A callStacks has the samples of the CPU of the threads that launch, by which
// launches get stacks.
type callStacks struct {
	builder *profileBuilder
	window  uint64              // nanoseconds
	ahead   uint64              // of the file's clock, nanoseconds
	of      map[threadID][]int  // indices of samples, by time
	probes  []string            // the name of each event that is a probe; "" of the others
	counts  [LaunchRecorded]int // of launches, by evidence
}

// newCallStacks finds the samples of the threads that launch. It comes before those
// of accelerators are added.
func (b *profileBuilder) newCallStacks(recorded *perfdata.File, launches []gpusamples.Launch, window time.Duration) *callStacks {
	c := &callStacks{builder: b, window: uint64(max(window, 0)), of: map[threadID][]int{}} //nolint:gosec // not negative
	for i := range launches {
		if l := &launches[i]; l.HasTime {
			c.of[threadID{l.PID, l.TID}] = nil
		}
	}
	if len(c.of) == 0 {
		return c
	}
	attrs := recorded.Attrs()
	for i := range attrs {
		c.probes = append(c.probes, probeName(&attrs[i]))
	}
	for i := range b.out.Samples {
		s := &b.out.Samples[i]
		if s.Event >= 0 && b.out.Events[s.Event].Device || s.Stack == 0 {
			continue
		}
		t := &b.out.Threads[s.Thread]
		if list, ok := c.of[threadID{t.PID, t.TID}]; ok {
			c.of[threadID{t.PID, t.TID}] = append(list, i)
		}
	}
	return c
}

// typeTracepoint is PERF_TYPE_TRACEPOINT of enum perf_type_id. Probes of user code
// that perf sets up are such.
const typeTracepoint = 2

// probeName is the name of a probe of user code: what stands behind the colon in
// `probe_libamdhip64:hipLaunchKernel` and `sdt_level_zero:launch_kernel`; "" for
// other events.
func probeName(a *perfdata.Attr) string {
	group, name, ok := strings.Cut(a.Name, ":")
	if !ok || a.Type != typeTracepoint || !strings.HasPrefix(group, "probe") && !strings.HasPrefix(group, "sdt_") && group != "uprobes" {
		return ""
	}
	return name
}

// isOf says whether a probe is one of a function: perf adds a number to the second
// one of a name, and __return to what is probed as it returns.
func isOf(probe, function string) bool {
	rest, ok := strings.CutPrefix(probe, function)
	return ok && function != "" && (rest == "" || rest == "__return" || strings.Trim(rest, "_0123456789") == "")
}

// find is the sample whose stack is that of a launch, as an index of
// Profile.Samples: that of a probe, of the call or of what it calls, in the launching
// thread while the call was in progress. Where there is none it is the thread's nearest sample.
func (c *callStacks) find(l *gpusamples.Launch) (sample int, evidence LaunchEvidence) {
	defer func() { c.counts[evidence]++ }()
	list := c.of[threadID{l.PID, l.TID}]
	start, end := callTimes(l, c.ahead)
	first, _ := slices.BinarySearchFunc(list, start, c.compare)
	other := -1
	for at := first; at < len(list) && c.time(list[at]) <= end; at++ {
		s := &c.builder.out.Samples[list[at]]
		switch {
		case s.Event < 0 || int(s.Event) >= len(c.probes) || c.probes[s.Event] == "":
		case isOf(c.probes[s.Event], l.API):
			return list[at], LaunchProbe
		case other < 0:
			other = list[at]
		}
	}
	// A probe of another function that the call came to: the call is on its stack.
	if other >= 0 {
		return other, LaunchProbe
	}
	return c.nearest(list, first, start, end)
}

// nearest is the sample of a list that is nearest to a call, within the window.
// first is the index of the first one behind its start.
func (c *callStacks) nearest(list []int, first int, start, end uint64) (sample int, evidence LaunchEvidence) {
	distance := c.window
	if c.window == 0 {
		return 0, LaunchUnknown
	}
	if first < len(list) {
		d := uint64(0) // during the call
		if t := c.time(list[first]); t > end {
			d = t - end
		}
		if d <= distance {
			sample, evidence, distance = list[first], LaunchNear, d
		}
	}
	if first > 0 {
		if d := start - c.time(list[first-1]); d < distance || d == distance && evidence == LaunchUnknown {
			sample, evidence = list[first-1], LaunchNear
		}
	}
	return sample, evidence
}

// callTimes are when the call of a launch was in progress, by a clock that the
// file's is ahead of.
func callTimes(l *gpusamples.Launch, ahead uint64) (start, end uint64) {
	start = l.Time - min(ahead, l.Time)
	end = start
	if l.HasEnd && l.End > l.Time {
		end += l.End - l.Time
	}
	return start, end
}

// compare compares a sample with a time.
func (c *callStacks) compare(sample int, t uint64) int { return cmp.Compare(c.time(sample), t) }

const (
	// maxShift bounds how many launches may be without a probe, or probes without a
	// launch, before the first that has both.
	maxShift = 256
	// alignedRun is how many probes must lie in launches, one after the other, for a
	// difference of clocks to be looked at.
	alignedRun = 4
)

// clockAhead finds how far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC: for as long as
// the machine slept since it was started. Nobody writes that down, but a launch takes
// microseconds, and the probe of its call lies in it: at the right difference the
// probes lie in launches. It is false where there is no such difference, or several.
func (c *callStacks) clockAhead(launches []gpusamples.Launch) (ahead uint64, ok bool) {
	calls, probes := c.callsOf(launches)
	if c.areAligned(calls, probes, 0) { // as on all machines that never sleep
		return 0, true
	}
	for id, list := range calls {
		for shift := -maxShift; shift <= maxShift; shift++ {
			from, to := c.difference(probes[id], list, shift)
			if from > to || from <= 0 {
				continue
			}
			d := uint64(from + (to-from)/2) //nolint:gosec // positive
			if !c.areAligned(calls, probes, d) {
				continue
			}
			if ok && max(d, ahead)-min(d, ahead) > uint64(to-from) { //nolint:gosec // not negative
				return 0, false // launches follow each other like clockwork
			}
			ahead, ok = d, true
		}
	}
	return ahead, ok
}

// callsOf are the calls of each thread by time, and the samples of probes of them.
func (c *callStacks) callsOf(launches []gpusamples.Launch) (calls map[threadID][]*gpusamples.Launch, probes map[threadID][]int) {
	calls, probes = map[threadID][]*gpusamples.Launch{}, map[threadID][]int{}
	for i := range launches {
		if l := &launches[i]; l.HasTime && l.HasEnd {
			id := threadID{l.PID, l.TID}
			calls[id] = append(calls[id], l)
		}
	}
	for id, list := range calls {
		slices.SortFunc(list, func(a, b *gpusamples.Launch) int { return cmp.Compare(a.Time, b.Time) })
		for _, i := range c.of[id] {
			if isOf(c.probe(i), list[0].API) {
				probes[id] = append(probes[id], i)
			}
		}
	}
	return calls, probes
}

// difference lays the first probes on the first launches, one after the other but for
// shift of them. How far the launches' clock is ahead is between from and to, if each
// probe is in its launch; from is above to where that cannot be.
func (c *callStacks) difference(probes []int, launches []*gpusamples.Launch, shift int) (from, to int64) {
	probes, launches = probes[min(max(-shift, 0), len(probes)):], launches[min(max(shift, 0), len(launches)):]
	if len(probes) < alignedRun || len(launches) < alignedRun {
		return 1, 0
	}
	from, to = math.MinInt64, math.MaxInt64
	for i := range alignedRun {
		at, l := c.time(probes[i]), launches[i]
		from, to = max(from, int64(l.Time-at)), min(to, int64(max(l.End, l.Time)-at)) //nolint:gosec // a difference
	}
	return from, to
}

// areAligned says whether most probes lie in launches, if their clock is ahead by so
// much.
func (c *callStacks) areAligned(calls map[threadID][]*gpusamples.Launch, probes map[threadID][]int, ahead uint64) bool {
	all, in := 0, 0
	for id, list := range calls {
		of := probes[id]
		for _, l := range list {
			start, end := callTimes(l, ahead)
			at, _ := slices.BinarySearchFunc(of, start, c.compare)
			if at == 0 && len(of) > 0 && c.time(of[0]) > end || at == len(of) {
				continue // not while the CPU was recorded
			}
			all++
			if c.time(of[at]) <= end {
				in++
			}
		}
	}
	return in > 0 && 2*in > all
}

// probe is the name of the probe that took a sample; "" where none did.
func (c *callStacks) probe(sample int) string {
	if e := c.builder.out.Samples[sample].Event; e >= 0 && int(e) < len(c.probes) {
		return c.probes[e]
	}
	return ""
}

func (c *callStacks) time(sample int) uint64 { return c.builder.out.Samples[sample].Time }

// report says how launches were joined, where not all were as they should be.
func (c *callStacks) report(path string, r *recording) {
	if c == nil {
		return
	}
	all := c.counts[LaunchUnknown] + c.counts[LaunchNear] + c.counts[LaunchProbe]
	if all == 0 || all == c.counts[LaunchProbe] {
		return
	}
	r.problem("%s: of %d launches %d have the stack that a probe sampled, %d that of the nearest sample of their thread, %d none", path, all,
		c.counts[LaunchProbe], c.counts[LaunchNear], c.counts[LaunchUnknown])
}
