// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/trace"
)

// pprof is the profile in the format of profile.proto: a sample type for every event, and
// more for the active lanes of waves and for their states. Samples with equal stacks of one
// thread are merged. An address that is not exact is the byte before a return address, which
// is in the call, as profile.proto has it.
func (r *Profile) pprof() *profile.Profile { return (&pprofBuilder{r: r}).profile() }

// profile is the profile with its samples.
func (b *pprofBuilder) profile() *profile.Profile {
	r := b.r
	b.prepare()
	b.out.Sample = make([]*profile.Sample, len(b.list))
	for i, x := range b.list {
		out := &profile.Sample{Value: b.valuesOf(nil, i), Location: make([]*profile.Location, 0, b.depth(x.stack))}
		for n := x.stack; n != 0; n = r.p.Stacks[n].Caller {
			out.Location = append(out.Location, b.byFrame[r.p.Stacks[n].Frame])
		}
		b.label(out, &r.p.Threads[x.thread])
		b.out.Sample[i] = out
	}
	return b.out
}

// prepare makes the profile without its samples, and a list of the samples.
func (b *pprofBuilder) prepare() {
	r := b.r
	b.begin()
	for i := range r.values {
		v := &r.values[i]
		b.out.SampleType = append(b.out.SampleType, &profile.ValueType{Type: v.name, Unit: v.unit})
	}
	if len(r.values) > 0 {
		b.out.DefaultSampleType = r.values[0].name
	}
	b.numberStacks(b.locateFrames())
	// Waves may be sampled by a clock of their own.
	first, last := uint64(math.MaxUint64), uint64(0)
	timed := slices.ContainsFunc(r.values, func(v profileValue) bool { return !r.isOfDevice(v.event) })
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		if !r.isRequested(s) {
			continue
		}
		if s.Time != 0 && (!timed || !r.isOfDevice(s.Event)) { // some samples of accelerators have no time
			first, last = min(first, s.Time), max(last, s.Time)
		}
		b.sample(s)
	}
	if first < last {
		b.out.DurationNanos = int64(min(last-first, math.MaxInt64))
	}
	b.period()
	b.mainFirst()
}

// begin makes a profile that has nothing yet.
func (b *pprofBuilder) begin() {
	b.out = &profile.Profile{}
	b.mappings = make([]*profile.Mapping, len(b.r.p.Modules))
	b.functions = map[profile.Function]*profile.Function{}
	b.locations = map[string]*profile.Location{}
	b.byFrame = make([]*profile.Location, len(b.r.p.Frames))
	b.samples = map[pprofSample]int{}
}

type pprofBuilder struct {
	r *Profile
	// isMarked means that functions have marks of the device that executes them, and code
	// without a name is a function named by its address.
	isMarked bool
	// processes are the names of processes that samples are labelled with, by PID.
	processes map[int]string
	out       *profile.Profile
	mappings  []*profile.Mapping // by module
	functions map[profile.Function]*profile.Function
	locations map[string]*profile.Location
	byFrame   []*profile.Location
	stacks    *stackNumbers
	// list are the samples, each the first of the merged ones, and first the sums of one
	// event of each, as indices of sums. samples finds them.
	list    []pprofSample
	first   []int32
	sums    []pprofSums
	values  []int64
	samples map[pprofSample]int
}

// pprofSums are the sums of a sample's values of one event: from values[offset] on, the
// profile's values first to end. An event may have twenty values, and most samples have one
// event.
type pprofSums struct {
	first, end, offset int
	next               int32 // of another event of the sample, as an index of sums; -1: there is none
}

type pprofSample struct{ stack, thread uint32 }

func (b *pprofBuilder) sample(s *trace.ProfileSample) {
	key := pprofSample{b.stacks.number(s.Stack), s.Thread}
	i, ok := b.samples[key]
	if !ok {
		i = len(b.list)
		b.samples[key] = i
		b.list = append(b.list, pprofSample{s.Stack, s.Thread})
		b.first = append(b.first, -1)
	}
	sums := b.sumsOf(i, b.r.valueOf[s.Event+1])
	for j := sums.first; j < sums.end; j++ {
		v := &b.values[sums.offset+j-sums.first]
		*v = int64(min(add(uint64(*v), b.r.values[j].amount(s)), math.MaxInt64))
	}
}

// sumsOf are the sums of a sample of the list, for the event whose first value is first.
func (b *pprofBuilder) sumsOf(i, first int) pprofSums {
	for sum := b.first[i]; sum >= 0; sum = b.sums[sum].next {
		if b.sums[sum].first == first {
			return b.sums[sum]
		}
	}
	end := first + 1
	for end < len(b.r.values) && b.r.values[end].kind != valueOfWeight {
		end++
	}
	sums := pprofSums{first, end, len(b.values), b.first[i]}
	b.first[i] = int32(len(b.sums)) //nolint:gosec // there are not more than samples
	b.sums = append(b.sums, sums)
	b.values = append(b.values, make([]int64, end-first)...)
	return sums
}

// valuesOf appends the values of a sample of the list.
func (b *pprofBuilder) valuesOf(dst []int64, i int) []int64 {
	start := len(dst)
	dst = append(dst, make([]int64, len(b.r.values))...)
	for sum := b.first[i]; sum >= 0; sum = b.sums[sum].next {
		s := &b.sums[sum]
		copy(dst[start+s.first:start+s.end], b.values[s.offset:])
	}
	return dst
}

// depth is the number of frames of a stack.
func (b *pprofBuilder) depth(stack uint32) (n int) {
	for ; stack != 0; stack = b.r.p.Stacks[stack].Caller {
		n++
	}
	return n
}

// label labels a sample with its thread, by the labels of perf_data_converter.
func (b *pprofBuilder) label(s *profile.Sample, t *trace.ProfileThread) {
	number := func(name string, n int) {
		if n >= 0 {
			if s.NumLabel == nil {
				s.NumLabel = map[string][]int64{}
			}
			s.NumLabel[name] = []int64{int64(n)}
		}
	}
	number("pid", t.PID)
	number("tid", t.TID)
	if t.Comm != "" {
		s.Label = map[string][]string{"comm": {oneLine(t.Comm)}}
	}
	if b.processes != nil {
		if s.Label == nil {
			s.Label = map[string][]string{}
		}
		s.Label[processLabel] = []string{processName(b.processes, t.PID)}
	}
}

// locateFrames makes the locations of the samples' frames, and returns the number of frames.
func (b *pprofBuilder) locateFrames() (frames int) {
	seen := make([]bool, len(b.r.p.Stacks))
	var todo []uint32
	for i := range b.r.p.Samples {
		s := &b.r.p.Samples[i]
		if !b.r.isRequested(s) {
			continue
		}
		todo = todo[:0]
		for n := s.Stack; n != 0 && !seen[n]; n = b.r.p.Stacks[n].Caller {
			seen[n] = true
			todo = append(todo, b.r.p.Stacks[n].Frame)
		}
		for _, f := range slices.Backward(todo) {
			if b.byFrame[f] == nil {
				b.location(f)
				frames++
			}
		}
	}
	return frames
}

// numberStacks prepares to number the stacks of so many frames.
func (b *pprofBuilder) numberStacks(frames int) {
	ids := make([]uint32, len(b.byFrame))
	for i, l := range b.byFrame {
		if l != nil {
			ids[i] = uint32(l.ID)
		}
	}
	b.stacks = newStackNumbers(b.r.p.Stacks, ids, frames > len(b.out.Location))
}

func (b *pprofBuilder) location(frame uint32) *profile.Location {
	if l := b.byFrame[frame]; l != nil {
		return l
	}
	f := &b.r.p.Frames[frame]
	l := &profile.Location{Address: f.PC, Mapping: b.mapping(f.Module)}
	if !f.Exact && f.PC > 0 {
		l.Address--
	}
	key := binary.LittleEndian.AppendUint64(nil, l.Address)
	key = binary.LittleEndian.AppendUint32(key, uint32(f.Module))
	for i := range f.Symbols {
		s := &f.Symbols[i]
		name := oneLine(s.Function)
		if name == "" {
			continue
		}
		fn := profile.Function{Name: withoutClone(name) + b.mark(f), SystemName: oneLine(s.LinkageName), Filename: oneLine(s.File)}
		if fn.SystemName == "" {
			fn.SystemName = name
		}
		// profile.proto has one file for a function and its lines.
		if s.StartFile == s.File {
			fn.StartLine = int64(s.StartLine)
		}
		line := profile.Line{Function: b.function(fn), Line: int64(s.Line), Column: int64(s.Column)}
		l.Line = append(l.Line, line)
		for _, n := range []uint64{line.Function.ID, uint64(s.Line), uint64(s.Column)} {
			key = binary.LittleEndian.AppendUint64(key, n)
		}
		if m := l.Mapping; m != nil {
			m.HasFunctions = true
			m.HasFilenames = m.HasFilenames || s.File != ""
			m.HasLineNumbers = m.HasLineNumbers || s.Line > 0
			m.HasInlineFrames = m.HasInlineFrames || s.Inlined
		}
	}
	if b.isMarked && len(l.Line) == 0 {
		// Without a function it would not be in the flame graph.
		l.Line = []profile.Line{{Function: b.function(profile.Function{Name: b.r.moduleName(f) + b.mark(f)})}}
	}
	if same := b.locations[string(key)]; same != nil {
		l = same
	} else {
		l.ID = uint64(len(b.out.Location)) + 1
		b.out.Location = append(b.out.Location, l)
		b.locations[string(key)] = l
	}
	b.byFrame[frame] = l
	return l
}

// mark is the suffix of the names of a frame's functions.
func (b *pprofBuilder) mark(f *trace.ProfileFrame) string {
	fn := profileFunction{isGuess: b.r.marksGuesses && f.FoundBy.IsGuess()}
	if b.isMarked {
		fn.isKernel, fn.isDevice = f.Kernel, f.Device
	}
	return fn.mark()
}

// withoutClone is a function's name without the marks of a copy that a compiler made, which
// pprof leaves out of names, too: its pages take the part behind the last dot for the name.
func withoutClone(name string) string {
	for strings.HasSuffix(name, ")") {
		index := strings.LastIndex(name, " (.")
		if index <= 0 || strings.ContainsAny(name[index+2:len(name)-1], "()") {
			break
		}
		name = name[:index]
	}
	return name
}

func (b *pprofBuilder) function(f profile.Function) *profile.Function {
	key := f
	if same := b.functions[key]; same != nil {
		return same
	}
	f.ID = uint64(len(b.out.Function)) + 1
	b.functions[key] = &f
	b.out.Function = append(b.out.Function, &f)
	return &f
}

func (b *pprofBuilder) mapping(module int32) *profile.Mapping {
	if module < 0 {
		return nil
	}
	m := b.mappings[module]
	if m == nil {
		found := &b.r.p.Modules[module]
		m = &profile.Mapping{
			ID: uint64(len(b.out.Mapping)) + 1, Start: found.Start, Limit: found.End, Offset: found.Offset,
			File: oneLine(found.Path), BuildID: hex.EncodeToString(found.BuildID),
		}
		b.mappings[module] = m
		b.out.Mapping = append(b.out.Mapping, m)
	}
	return m
}

// mainFirst puts the main executable before the other mappings, as profile.proto requires:
// among the files that are no libraries the one with most frames.
func (b *pprofBuilder) mainFirst() {
	frames := map[*profile.Mapping]int{}
	perStack := make([]int, len(b.r.p.Stacks))
	for _, s := range b.list {
		perStack[s.stack]++
	}
	// A caller comes before those that it called.
	perFrame := make([]int, len(b.r.p.Frames))
	for i := len(perStack) - 1; i > 0; i-- {
		s := b.r.p.Stacks[i]
		perStack[s.Caller] += perStack[i]
		perFrame[s.Frame] += perStack[i]
	}
	for i, n := range perFrame {
		if n > 0 {
			frames[b.byFrame[i].Mapping] += n
		}
	}
	main := 0
	for i, m := range b.out.Mapping {
		switch name := path.Base(m.File); {
		case strings.HasPrefix(name, "["), strings.HasSuffix(name, ".so"), strings.Contains(name, ".so."):
			frames[m] = 0
		case frames[m] > frames[b.out.Mapping[main]]:
			main = i
		}
	}
	if main > 0 {
		m := b.out.Mapping[main]
		b.out.Mapping = slices.Insert(slices.Delete(b.out.Mapping, main, main+1), 0, m)
	}
	for i, m := range b.out.Mapping {
		m.ID = uint64(i) + 1
	}
}

// period sets the weight of a sample of the first event, where it is the same for all.
func (b *pprofBuilder) period() {
	if len(b.r.values) == 0 {
		return
	}
	v := &b.r.values[0]
	if period := b.r.periodOf(v); period > 0 {
		b.out.PeriodType = &profile.ValueType{Type: v.name, Unit: v.unit}
		b.out.Period = period
	}
}

// periodOf is the weight of every sample of a value's event; 0 where it varies.
func (r *Profile) periodOf(v *profileValue) int64 {
	period := uint64(0)
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		switch {
		case s.Event != v.event:
		case period != 0 && s.Weight != period:
			return 0
		default:
			period = s.Weight
		}
	}
	if period > math.MaxInt64 {
		return 0
	}
	return int64(period)
}
