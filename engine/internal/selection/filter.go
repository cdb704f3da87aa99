// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"fmt"
	"math"

	"github.com/unwindd/unwindd/engine/trace"
)

// filter selects the samples of a profile.
type filter struct {
	selector *Selector
	p        *trace.Profile
	functions
	kept    []bool // by sample
	result  *Result
	roots   match // the functions at which stacks end; nil: none
	hidden  match // the functions that are removed; nil: none
	changed changedStacks
}

// keep keeps samples only as far as they are in a part, of which the error is where none is.
func (f *filter) keep(isIn func(*trace.ProfileSample) bool, none func() error) error {
	isAny := false
	for i := range f.kept {
		is := isIn(&f.p.Samples[i])
		isAny = isAny || is
		f.kept[i] = f.kept[i] && is
	}
	if !isAny {
		return none()
	}
	return nil
}

// processes selects the samples of processes. A process has the names of its main thread, or of
// all of its threads where that one was not sampled.
func (f *filter) processes() error {
	hasMain := map[int]bool{}
	for i := range f.p.Threads {
		t := &f.p.Threads[i]
		hasMain[t.PID] = hasMain[t.PID] || t.PID == t.TID
	}
	var all []namedThread
	for i := range f.p.Threads {
		if t := &f.p.Threads[i]; t.PID == t.TID || !hasMain[t.PID] {
			all = append(all, namedThread{t.PID, t.Comm, t.PID})
		}
	}
	selected := map[int]bool{}
	if err := f.findThreads("process", f.selector.processes, all, func(pid int) { selected[pid] = true }); err != nil || len(selected) == 0 {
		return err
	}
	return f.keep(func(s *trace.ProfileSample) bool { return selected[f.p.Threads[s.Thread].PID] }, f.nothingOf("process"))
}

// threads selects the samples of threads.
func (f *filter) threads() error {
	all := make([]namedThread, len(f.p.Threads))
	for i := range all {
		t := &f.p.Threads[i]
		all[i] = namedThread{t.TID, t.Comm, i}
	}
	selected := make([]bool, len(all))
	if err := f.findThreads("thread", f.selector.threads, all, func(i int) { selected[i] = true }); err != nil || len(f.selector.threads) == 0 {
		return err
	}
	return f.keep(func(s *trace.ProfileSample) bool { return selected[s.Thread] }, f.nothingOf("thread"))
}

// findThreads finds what patterns match.
func (f *filter) findThreads(flag string, list []namePattern, all []namedThread, add func(owner int)) error {
	for i := range list {
		if !list[i].find(all, add) {
			return noThread(f.p.Path, flag, &list[i], all)
		}
	}
	return nil
}

// nothingOf is the error for threads without samples.
func (f *filter) nothingOf(flag string) func() error {
	return func() error {
		return fmt.Errorf("%s: --%s: the selected events have no sample of it", f.p.Path, flag)
	}
}

// cpus selects the samples of processors.
func (f *filter) cpus() error {
	if len(f.selector.cpus) == 0 {
		return nil
	}
	least, most, isKnown := uint32(math.MaxUint32), uint32(0), false
	for i := range f.p.Samples {
		if s := &f.p.Samples[i]; s.HasCPU {
			least, most, isKnown = min(least, s.CPU), max(most, s.CPU), true
		}
	}
	return f.keep(func(s *trace.ProfileSample) bool { return s.HasCPU && hasCPU(f.selector.cpus, s.CPU) }, func() error {
		if !isKnown {
			return fmt.Errorf("%s: --cpu %s: the samples do not have their processor: record them with perf record --sample-cpu, or -a", f.p.Path, f.selector.selection.CPUs)
		}
		return fmt.Errorf("%s: --cpu %s: no sample is of it: their processors are from %d to %d", f.p.Path, f.selector.selection.CPUs, least, most)
	})
}

// time selects the samples of a time.
func (f *filter) time() error {
	w := &f.selector.window
	if !w.isSet() {
		return nil
	}
	first, last := uint64(math.MaxUint64), uint64(0)
	timeless := 0
	for i := range f.p.Samples {
		if s := &f.p.Samples[i]; f.isTimed(s) {
			first, last = min(first, s.Time), max(last, s.Time)
		} else {
			timeless++
		}
	}
	if first > last {
		return fmt.Errorf("%s: --time %s: the samples do not have the time at which they were taken", f.p.Path, f.selector.selection.Time)
	}
	if timeless > 0 {
		f.result.Notes = append(f.result.Notes, fmt.Sprintf("--time %s: %d samples are left out whose time is not known by the recording's clock", f.selector.selection.Time, timeless))
	}
	from, to := w.from.place(first, last, first), w.to.place(first, last, last)
	return f.keep(func(s *trace.ProfileSample) bool { return f.isTimed(s) && s.Time >= from && s.Time <= to }, func() error {
		return fmt.Errorf("%s: --time %s: no sample is of then: the recording lasts %.6g seconds", f.p.Path, f.selector.selection.Time, float64(last-first)/1e9)
	})
}

// isTimed reports whether the time of a sample is by the recording's clock.
func (f *filter) isTimed(s *trace.ProfileSample) bool {
	return s.Time != 0 && (s.Event < 0 || !f.p.Events[s.Event].OtherClock)
}

// profile is the profile with the selected samples.
func (f *filter) profile() *trace.Profile {
	out := *f.p
	var stackOf []uint32 // the new stacks, where they change
	if f.roots != nil || f.hidden != nil {
		stackOf = f.change()
		out.Stacks, out.Frames = f.changed.stacks, f.changed.frames
	}
	count := 0
	for _, is := range f.kept {
		if is {
			count++
		}
	}
	out.Samples = make([]trace.ProfileSample, 0, count)
	for i, is := range f.kept {
		if !is {
			continue
		}
		s := f.p.Samples[i]
		if stackOf != nil {
			s.Stack = stackOf[s.Stack]
		}
		out.Samples = append(out.Samples, s)
	}
	f.countKernels(&out)
	return &out
}

// countKernels counts the dispatches of kernels that are selected, as far as they are samples.
func (f *filter) countKernels(out *trace.Profile) {
	if len(f.p.Kernels) == 0 || len(out.Samples) == len(f.p.Samples) {
		return
	}
	out.Kernels = append([]trace.ProfileKernel(nil), f.p.Kernels...)
	for i := range out.Kernels {
		k := &out.Kernels[i]
		k.Dispatches, k.Time, k.HasTime = 0, 0, false
	}
	kernelOf := make([]int32, len(f.p.Stacks))
	kernelOf[0] = -1
	for i := 1; i < len(kernelOf); i++ { // a caller comes before those that it called
		s := &f.p.Stacks[i]
		if kernelOf[i] = kernelOf[s.Caller]; f.p.Frames[s.Frame].Dispatched >= 0 {
			kernelOf[i] = f.p.Frames[s.Frame].Dispatched
		}
	}
	for i, is := range f.kept {
		s := &f.p.Samples[i]
		if is && s.Event >= 0 && f.p.Events[s.Event].Name == trace.KernelTimeEvent && kernelOf[s.Stack] >= 0 {
			k := &out.Kernels[kernelOf[s.Stack]]
			k.Dispatches++
			k.Time, k.HasTime = k.Time+s.Weight, true
		}
	}
}
