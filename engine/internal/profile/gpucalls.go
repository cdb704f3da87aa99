// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
)

// clockNames are the names of clockid_t (linux/time.h).
var clockNames = map[int32]string{
	0: "CLOCK_REALTIME", 1: "CLOCK_MONOTONIC", 4: "CLOCK_MONOTONIC_RAW", 7: "CLOCK_BOOTTIME", 11: "CLOCK_TAI",
}

// clockOf returns the clock of a recording.
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

// compareClocks finds how times of the file are converted to the recording's. It is an error if
// they cannot be and launches are to be joined by them: joined by wrong times, waves would be
// under stacks that never launched them.
func (j *gpuJoin) compareClocks(recorded *perfdata.File, o *trace.ProfileOptions) error {
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

// probeClock returns advice on recording probes where the kernel refuses them a clock:
// perf_event_set_clock (kernel/events/core.c) allows CLOCK_BOOTTIME for events that are not
// counted in interrupts that cannot be masked, which tracepoints may be.
func probeClock(clock string) string {
	if clock != "CLOCK_BOOTTIME" {
		return ""
	}
	return ", or probes of the launching calls, for which the kernel refuses that clock, with `-k CLOCK_MONOTONIC`"
}

// threadID identifies a thread.
type threadID struct{ pid, tid int }

// callStacks has the CPU's samples of the launching threads, from which launches get stacks.
type callStacks struct {
	builder *profileBuilder
	window  uint64                      // nanoseconds
	ahead   uint64                      // of the file's clock, nanoseconds
	samples map[threadID][]int          // indices of samples, by time
	probes  []string                    // the name of each event that is a probe; "" for the others
	counts  [trace.EvidenceRecorded]int // of launches, by evidence
}

// newCallStacks finds the samples of the launching threads. It is called before the samples of
// accelerators are added.
func (b *profileBuilder) newCallStacks(recorded *perfdata.File, launches []gpusamples.Launch, window time.Duration) *callStacks {
	c := &callStacks{builder: b, window: uint64(max(window, 0)), samples: map[threadID][]int{}} //nolint:gosec // not negative
	for i := range launches {
		if l := &launches[i]; l.HasTime {
			c.samples[threadID{l.PID, l.TID}] = nil
		}
	}
	if len(c.samples) == 0 {
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
		if list, ok := c.samples[threadID{t.PID, t.TID}]; ok {
			c.samples[threadID{t.PID, t.TID}] = append(list, i)
		}
	}
	return c
}

// typeTracepoint is PERF_TYPE_TRACEPOINT of enum perf_type_id. Probes of user code that perf
// sets up have this type.
const typeTracepoint = 2

// probeName returns the name of a probe of user code: the part after the colon in
// `probe_libamdhip64:hipLaunchKernel` and `sdt_level_zero:launch_kernel`; "" for other events.
func probeName(a *perfdata.Attr) string {
	group, name, ok := strings.Cut(a.Name, ":")
	if !ok || a.Type != typeTracepoint || !strings.HasPrefix(group, "probe") && !strings.HasPrefix(group, "sdt_") && group != "uprobes" {
		return ""
	}
	return name
}

// isOf reports whether a probe is in a function: perf adds a number to the second probe of a
// name, and __return to a probe at the function's return.
func isOf(probe, function string) bool {
	rest, ok := strings.CutPrefix(probe, function)
	return ok && function != "" && (rest == "" || rest == "__return" || strings.Trim(rest, "_0123456789") == "")
}

// find returns the sample whose stack is the stack of a launch, as an index of Profile.Samples:
// of a probe, in the call or in its callees, in the launching thread while the call was in
// progress. Where there is none it is the thread's nearest sample.
func (c *callStacks) find(l *gpusamples.Launch) (sample int, evidence trace.LaunchEvidence) {
	defer func() { c.counts[evidence]++ }()
	list := c.samples[threadID{l.PID, l.TID}]
	start, end := callTimes(l, c.ahead)
	first, _ := slices.BinarySearchFunc(list, start, c.compare)
	other := -1
	for i := first; i < len(list) && c.time(list[i]) <= end; i++ {
		s := &c.builder.out.Samples[list[i]]
		switch {
		case s.Event < 0 || int(s.Event) >= len(c.probes) || c.probes[s.Event] == "":
		case isOf(c.probes[s.Event], l.API):
			return list[i], trace.EvidenceProbe
		case other < 0:
			other = list[i]
		}
	}
	// A probe of another function that the call came to: the call is on its stack.
	if other >= 0 {
		return other, trace.EvidenceProbe
	}
	return c.nearest(list, first, start, end)
}

// nearest returns the sample of a list that is nearest to a call, within the window. first is
// the index of the first sample after its start.
func (c *callStacks) nearest(list []int, first int, start, end uint64) (sample int, evidence trace.LaunchEvidence) {
	distance := c.window
	if c.window == 0 {
		return 0, trace.EvidenceUnknown
	}
	if first < len(list) {
		d := uint64(0) // during the call
		if t := c.time(list[first]); t > end {
			d = t - end
		}
		if d <= distance {
			sample, evidence, distance = list[first], trace.EvidenceNear, d
		}
	}
	if first > 0 {
		if d := start - c.time(list[first-1]); d < distance || d == distance && evidence == trace.EvidenceUnknown {
			sample, evidence = list[first-1], trace.EvidenceNear
		}
	}
	return sample, evidence
}

// callTimes returns when the call of a launch was in progress, by a clock that the file's clock
// is ahead of.
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
	// maxShift bounds how many launches may be without a probe, or probes without a launch,
	// before the first that has both.
	maxShift = 256
	// alignedRun is how many probes must lie in launches, one after the other, before a
	// difference of clocks is looked at.
	alignedRun = 4
)

// clockAhead finds how far CLOCK_BOOTTIME is ahead of CLOCK_MONOTONIC: the time that the
// machine slept since it was started. It is not recorded, but a launch takes microseconds, and
// the probe of its call lies in it: at the right difference the probes lie in launches. ok is
// false where there is no such difference, or several.
func (c *callStacks) clockAhead(launches []gpusamples.Launch) (ahead uint64, ok bool) {
	calls, probes := c.callsOf(launches)
	if c.areAligned(calls, probes, 0) { // as on all machines that never sleep
		return 0, true
	}
	for id, list := range calls {
		for shift := -maxShift; shift <= maxShift; shift++ {
			low, high := c.difference(probes[id], list, shift)
			if low > high || low <= 0 {
				continue
			}
			d := uint64(low + (high-low)/2) //nolint:gosec // positive
			if !c.areAligned(calls, probes, d) {
				continue
			}
			if ok && max(d, ahead)-min(d, ahead) > uint64(high-low) { //nolint:gosec // not negative
				return 0, false // launches follow each other like clockwork
			}
			ahead, ok = d, true
		}
	}
	return ahead, ok
}

// callsOf returns the calls of each thread by time, and the samples of their probes.
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
		for _, i := range c.samples[id] {
			if isOf(c.probe(i), list[0].API) {
				probes[id] = append(probes[id], i)
			}
		}
	}
	return calls, probes
}

// difference assigns the first probes to the first launches, one after the other, after
// skipping shift of them. The launches' clock is ahead by low to high, if each probe is in its
// launch; low is above high where that cannot be.
func (c *callStacks) difference(probes []int, launches []*gpusamples.Launch, shift int) (low, high int64) {
	probes, launches = probes[min(max(-shift, 0), len(probes)):], launches[min(max(shift, 0), len(launches)):]
	if len(probes) < alignedRun || len(launches) < alignedRun {
		return 1, 0
	}
	low, high = math.MinInt64, math.MaxInt64
	for i := range alignedRun {
		time, l := c.time(probes[i]), launches[i]
		low, high = max(low, int64(l.Time-time)), min(high, int64(max(l.End, l.Time)-time)) //nolint:gosec // a difference
	}
	return low, high
}

// areAligned reports whether most probes lie in launches, if their clock is ahead by this much.
func (c *callStacks) areAligned(calls map[threadID][]*gpusamples.Launch, probes map[threadID][]int, ahead uint64) bool {
	all, inside := 0, 0
	for id, list := range calls {
		samples := probes[id]
		for _, l := range list {
			start, end := callTimes(l, ahead)
			index, _ := slices.BinarySearchFunc(samples, start, c.compare)
			if index == 0 && len(samples) > 0 && c.time(samples[0]) > end || index == len(samples) {
				continue // not while the CPU was recorded
			}
			all++
			if c.time(samples[index]) <= end {
				inside++
			}
		}
	}
	return inside > 0 && 2*inside > all
}

// probe returns the name of the probe that took a sample; "" where none did.
func (c *callStacks) probe(sample int) string {
	if e := c.builder.out.Samples[sample].Event; e >= 0 && int(e) < len(c.probes) {
		return c.probes[e]
	}
	return ""
}

func (c *callStacks) time(sample int) uint64 { return c.builder.out.Samples[sample].Time }

// report adds problems about launches that were not joined as they should be.
func (c *callStacks) report(path string, r *recording) {
	if c == nil {
		return
	}
	all := c.counts[trace.EvidenceUnknown] + c.counts[trace.EvidenceNear] + c.counts[trace.EvidenceProbe]
	if all == 0 || all == c.counts[trace.EvidenceProbe] {
		return
	}
	r.problem("%s: of %d launches %d have the stack that a probe sampled, %d that of the nearest sample of their thread, %d none", path, all,
		c.counts[trace.EvidenceProbe], c.counts[trace.EvidenceNear], c.counts[trace.EvidenceUnknown])
}
