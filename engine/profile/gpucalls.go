package profile

import (
	"cmp"
	"fmt"
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

// compareClocks finds whether times of the file are those of the recording. Where
// launches are to be joined by them and they are not, that is an error: joined by
// wrong times, waves would stand on stacks that never launched them.
func (j *gpuJoin) compareClocks(recorded *perfdata.File) error {
	clock := clockOf(recorded)
	j.timed = j.file.Clock == "" || j.file.Clock == clock
	isJoinedByTime := slices.ContainsFunc(j.file.Launches, func(l gpusamples.Launch) bool { return l.HasTime && !l.HasStack() })
	switch {
	case j.timed:
		return nil
	case isJoinedByTime:
		return fmt.Errorf("%s: its times are by %s, those of %s by %s: launches cannot be joined to stacks: record those with `perf record -k %s`",
			j.file.Path, j.file.Clock, recorded.Path(), clock, j.file.Clock)
	}
	j.b.recording.problem("%s: its times are by %s, those of %s by %s: they are not compared", j.file.Path, j.file.Clock, recorded.Path(), clock)
	return nil
}

// A threadID tells threads apart.
type threadID struct{ pid, tid int }

// A callStacks has the samples of the CPU of the threads that launch, by which
// launches get stacks.
type callStacks struct {
	builder *profileBuilder
	window  uint64              // nanoseconds
	of      map[threadID][]int  // indices of samples, by time
	probes  []string            // the name of each event that is a probe; "" of the others
	counts  [LaunchRecorded]int // of launches, by evidence
}

// newCallStacks finds the samples of the threads that launch. It comes before those
// of accelerators are added.
func (b *profileBuilder) newCallStacks(recorded *perfdata.File, launches []gpusamples.Launch, window time.Duration) *callStacks {
	c := &callStacks{builder: b, window: uint64(max(window, 0)), of: map[threadID][]int{}} //nolint:gosec // not negative
	for i := range launches {
		if l := &launches[i]; l.HasTime && !l.HasStack() {
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
	end := l.Time
	if l.HasEnd {
		end = max(l.End, l.Time)
	}
	first, _ := slices.BinarySearchFunc(list, l.Time, func(i int, t uint64) int { return cmp.Compare(c.time(i), t) })
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
	return c.nearest(list, first, l.Time, end)
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
