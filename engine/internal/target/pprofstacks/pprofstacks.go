// SPDX-License-Identifier: Apache-2.0

// Package pprofstacks reads profiles in the format of profile.proto, as pprof, Go's programs and
// `unwindd profile --format pprof` write them.
package pprofstacks

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/unwindd/unwindd/engine/internal/target/stacktree"
	"github.com/unwindd/unwindd/engine/trace"
)

// Form is the name of the format.
const Form = "pprof"

// IsPprof reports whether a file that is not packed may be a profile: writers begin with the first
// type of sample, or with the type of the period, and these with the number of a name.
func IsPprof(data []byte) bool {
	const sampleType, periodType, typeName = 1<<3 | 2, 11<<3 | 2, 1 << 3
	return len(data) > 3 && (data[0] == sampleType || data[0] == periodType) && data[1] > 0 && data[1] <= 22 && data[2] == typeName
}

// errDifference is returned for a profile with weights below zero.
var errDifference = errors.New("it has weights below zero, as a difference of profiles: expected a profile")

// reader reads a profile.
type reader struct {
	*stacktree.Builder
	p         *profile.Profile
	events    []int16 // by type of sample
	factors   []uint64
	locations map[frameKey]uint32
	stop      uint16
}

// frameKey is a location, which is exact in the innermost frame.
type frameKey struct {
	location uint64
	isLeaf   bool
}

// stopText is why stacks end.
var stopText = trace.Stopped{Reason: trace.StopOutermost, Detail: "the stack of the profile ends here"}

// nanoseconds are how many of them units of time have.
var nanoseconds = map[string]uint64{"nanoseconds": 1, "microseconds": 1e3, "milliseconds": 1e6, "seconds": 1e9}

// Read reads a profile that is not packed. The error names the path.
func Read(path string, data []byte) (*stacktree.File, error) {
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: as a profile of pprof: %w", path, err)
	}
	r := &reader{Builder: stacktree.NewBuilder(path, Form), p: p, locations: map[frameKey]uint32{}}
	r.stop = r.Stop(stopText)
	r.addEvents()
	for _, s := range p.Sample {
		if err := r.sample(s); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	return r.Finish(), nil
}

// addEvents adds the types of samples.
func (r *reader) addEvents() {
	for _, t := range r.p.SampleType {
		e := trace.ProfileEvent{Name: t.Type, Unit: "count"}
		factor := uint64(1)
		if n, isTime := nanoseconds[t.Unit]; isTime {
			e.Unit, factor = "nanoseconds", n
		}
		if t.Type == "cpu" && e.Unit == "nanoseconds" {
			e.Meaning = "cpu-clock"
		}
		index, ok := r.Event(e)
		if !ok {
			index = -1
			r.Problem("the samples of %s are left out: there are too many events", t.Type)
		}
		r.events, r.factors = append(r.events, index), append(r.factors, factor)
	}
}

// sample adds a sample of each of its values.
func (r *reader) sample(s *profile.Sample) error {
	var stack uint32
	for i := len(s.Location) - 1; i >= 0; i-- {
		stack = r.Push(stack, r.frame(s.Location[i], i == 0))
	}
	thread := r.thread(s)
	for i, value := range s.Value {
		switch {
		case value < 0:
			return errDifference
		case value == 0 || r.events[i] < 0:
			continue
		}
		weight := uint64(value)
		if weight > math.MaxUint64/r.factors[i] {
			weight = math.MaxUint64
		} else {
			weight *= r.factors[i]
		}
		r.Samples = append(r.Samples, trace.ProfileSample{Event: r.events[i], Thread: thread, Stack: stack, Stop: r.stop, Weight: weight})
	}
	return nil
}

// thread is the thread of a sample, by the labels that writers use.
func (r *reader) thread(s *profile.Sample) uint32 {
	number := func(name string) int {
		if list := s.NumLabel[name]; len(list) > 0 && list[0] >= 0 && list[0] <= math.MaxInt32 {
			return int(list[0])
		}
		return -1
	}
	comm := ""
	for _, name := range []string{"comm", "thread"} {
		if list := s.Label[name]; len(list) > 0 && comm == "" {
			comm = list[0]
		}
	}
	return r.Thread(number("pid"), number("tid"), comm)
}

// frame is the frame of a location.
func (r *reader) frame(l *profile.Location, isLeaf bool) uint32 {
	key := frameKey{l.ID, isLeaf}
	index, ok := r.locations[key]
	if ok {
		return index
	}
	// Addresses are shown, and not looked up: the file of that name may be another one by now.
	f := stacktree.Frame{PID: -1, Dispatched: -1, Exact: isLeaf, Address: l.Address}
	for i := range l.Line {
		if line := &l.Line[i]; line.Function != nil {
			f.Symbols = append(f.Symbols, symbol(line, i < len(l.Line)-1))
		}
	}
	if m := l.Mapping; m != nil {
		f.Object = m.File
		f.Kernel = strings.HasPrefix(m.File, "[kernel")
		if l.Address >= m.Start && !f.Kernel {
			f.Address = l.Address - m.Start + m.Offset
		}
		if id, ok := stacktree.CubinOf(m.File, m.BuildID); ok && len(f.Symbols) > 0 {
			f.Address, f.Device, f.ObjectID, f.HasObjectID = l.Address, true, id, true
		}
	}
	index = r.Frame(f)
	r.locations[key] = index
	return index
}

// symbol is a function of a location.
func symbol(line *profile.Line, isInlined bool) trace.Symbol {
	s := trace.Symbol{
		Function: line.Function.Name, LinkageName: line.Function.SystemName, File: line.Function.Filename, Inlined: isInlined,
		Line: stacktree.Position(line.Line), Column: stacktree.Position(line.Column), StartLine: stacktree.Position(line.Function.StartLine),
	}
	if s.StartLine > 0 {
		s.StartFile = s.File
	}
	return s
}
