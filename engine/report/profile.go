// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/unwindd/unwindd/engine/trace"
)

// Profile writes the profile of a recording, or of some of its events, in several formats:
// WriteText, WriteJSON, WritePprof, WriteFolded, WriteSpeedscope, WriteFirefox, WritePage.
// Equal profiles give equal bytes.
type Profile struct {
	// Jobs is the number of goroutines that make the text of samples; 0: one for each CPU.
	// The output does not depend on it.
	Jobs int
	// NoSymbols means that no symbols were requested: then no hint says that they are missing.
	NoSymbols bool

	p      *trace.Profile
	values []profileValue
	// valueOf is the value of an event's weights, by event, from event -1 on; -1: the event
	// was not requested. The event's other values follow it.
	valueOf []int
	// eventNames are by event, from event -1 on. empty are the requested events without samples.
	eventNames []string
	meanings   []string // likewise: general names
	empty      []int16
	isEmpty    bool // there are no samples
	// whole is the amount that was selected from; nil: all is shown.
	whole   *profileShare
	seconds float64 // that the recording, or its selected time, took; 0: not known
	// isBottomUp means that trees begin with the innermost functions; isRooted that stacks end at
	// the function whose callers are shown, and trees begin with it.
	isBottomUp, isRooted bool
	// marksGuesses means that functions of frames that are guesses are marked.
	marksGuesses bool
	// isFiltered means that some events were requested by name.
	isFiltered bool

	functions  []profileFunction
	functionOf [][]int32 // by frame: indices of functions, innermost first, at least one
}

// profileValue is a number that samples have: the weight of an event, the number of active
// lanes, or the weight in some states.
type profileValue struct {
	name, unit string
	event      int16
	kind       valueKind
	states     *stateSet // of valueOfState
}

type valueKind uint8

// The kinds of values. Each requested event has one of its weight.
const (
	valueOfWeight valueKind = iota
	valueOfLanes
	valueOfState
)

// unknownEvent names samples of an unknown event.
const unknownEvent = "unknown"

// activeLanes is added to the name of an event of waves for the value of their lanes.
const activeLanes = ":active-lanes"

// NewProfile prepares to write a profile: all of it, or the named events. An event is named as the
// recording has it, or without its modifiers and its PMU, or by perf's general name: "cycles" is
// "cpu_core/cycles:Pu/", too. Where several have the name, all of them are written. Events of
// several PMUs that count the same are one, unless one of them is named with its PMU. Events
// without samples are left out.
func NewProfile(p *trace.Profile, events ...string) (*Profile, error) {
	return NewSelectedProfile(p, trace.ProfileSelection{}, events...)
}

// profile is the profile with the chosen events. isFiltered means that they were named.
func (c *eventChoice) profile(isFiltered bool) *Profile {
	r := &Profile{p: c.p, valueOf: make([]int, len(c.p.Events)+1), isFiltered: isFiltered, eventNames: c.names.shown, meanings: c.names.meaning, seconds: c.seconds()}
	for i := range r.valueOf {
		r.valueOf[i] = -1
	}
	var shown []int16
	shown, r.empty = c.order()
	if len(shown) == 0 { // forms of output have events in any case
		shown, r.isEmpty = r.empty, true
	}
	for _, event := range shown {
		r.addEvent(event)
	}
	r.nameFunctions()
	return r
}

// addEvent adds the values of an event.
func (r *Profile) addEvent(event int16) {
	r.valueOf[event+1] = len(r.values)
	v := profileValue{name: r.eventNames[event+1], unit: unitOf(r.p, event), event: event}
	r.values = append(r.values, v)
	if r.hasLanes(event) {
		r.values = append(r.values, profileValue{name: v.name + activeLanes, unit: "count", event: event, kind: valueOfLanes})
	}
	r.values = append(r.values, r.stateValues(&v)...)
}

// MarkGuesses returns the profile with a mark at the functions of frames that are guesses,
// for formats without another sign of them: WritePprof, WriteFolded, WriteSpeedscope and
// WriteFirefox. The text and the page always show guesses, and JSON and OTLP have a member.
func (r *Profile) MarkGuesses() *Profile {
	if r.marksGuesses || !slices.ContainsFunc(r.p.Frames, func(f trace.ProfileFrame) bool { return f.FoundBy.IsGuess() }) {
		return r
	}
	marked := *r
	marked.marksGuesses, marked.functions = true, nil
	marked.nameFunctions()
	return &marked
}

// BottomUp returns the profile with trees that begin with the innermost functions, and lead to
// their callers, in WriteText and WriteFolded.
func (r *Profile) BottomUp() *Profile {
	turned := *r
	turned.isBottomUp = true
	return &turned
}

// isInverted reports whether trees lead from callees to callers.
func (r *Profile) isInverted() bool { return r.isBottomUp || r.isRooted }

// Events are the names of the profile's events that have samples. The first is the one that says
// where the time of processors went, or else the heaviest; the others are in the order of the
// recording. Where there are no samples at all it is the first event.
func (r *Profile) Events() []string {
	var names []string
	for _, v := range r.values {
		if v.kind == valueOfWeight && (!r.isEmpty || len(names) == 0) {
			names = append(names, v.name)
		}
	}
	return names
}

// hasLanes reports whether the samples of an event have their active lanes.
func (r *Profile) hasLanes(event int16) bool { return event >= 0 && r.p.Events[event].Lanes }

// isOfDevice reports whether an event is of accelerators.
func (r *Profile) isOfDevice(event int16) bool {
	return event >= 0 && (r.p.Events[event].Device || r.p.Events[event].Lanes)
}

// isOfWaves reports whether the samples of an event are of waves at their program counters.
// The times of whole dispatches are of accelerators too.
func (r *Profile) isOfWaves(event int16) bool {
	return r.isOfDevice(event) && r.p.Events[event].Unit == "count"
}

// isRequested reports whether a sample is of a requested event.
func (r *Profile) isRequested(s *trace.ProfileSample) bool { return r.valueOf[s.Event+1] >= 0 }

// amount is the amount of a value in a sample.
func (v *profileValue) amount(s *trace.ProfileSample) uint64 {
	switch {
	case !v.has(s):
		return 0
	case v.kind == valueOfLanes:
		return uint64(s.ActiveLanes) * s.Count()
	}
	return s.Total()
}

// has reports whether a sample has the value at all.
func (v *profileValue) has(s *trace.ProfileSample) bool {
	return s.Event == v.event && (v.kind != valueOfState || v.states[s.State])
}

// add adds without wrapping around.
func add(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}

// profileFunction is a function as a profile counts it. For an address about which nothing is
// known it stands for that address.
type profileFunction struct {
	name     string
	module   string // the module's path; "" for none
	file     string // file of the declaration, else of the code; "": unknown
	line     int    // line of the declaration; 0: unknown
	isKernel bool
	isDevice bool // it is of an accelerator
	isNamed  bool // it has a name of its own
	isGuess  bool // its frame is a guess
	isJIT    bool // its code is in memory that is of no file

	isManaged bool   // a language runtime executes it
	namedBy   string // as in engine.ProfileFrame
}

// The marks of functions in formats without another sign of their kind; programs that draw
// flame graphs know them.
const (
	kernelMark = "_[k]"
	deviceMark = "_[G]"
	guessMark  = "_[guess]"
)

// mark is the mark of the device that executes a function, or of a guess; "" for the program
// on the CPU.
func (f *profileFunction) mark() string {
	switch {
	case f.isDevice:
		return deviceMark
	case f.isKernel:
		return kernelMark
	case f.isGuess:
		return guessMark
	}
	return ""
}

// marked is the name of a function with its mark.
func (f *profileFunction) marked() string { return f.name + f.mark() }

// nameFunctions finds the functions of all frames.
func (r *Profile) nameFunctions() {
	index := map[profileFunction]int32{}
	list := make([]int32, 0, len(r.p.Frames)) // one array for all
	ends := make([]int, 0, len(r.p.Frames))
	intern := func(f profileFunction) {
		i, ok := index[f]
		if !ok {
			i = int32(len(r.functions))
			index[f] = i
			r.functions = append(r.functions, f)
		}
		list = append(list, i)
	}
	for i := range r.p.Frames {
		f := &r.p.Frames[i]
		base := profileFunction{isKernel: f.Kernel, isDevice: f.Device, namedBy: oneLine(f.NamedBy), isGuess: r.marksGuesses && f.FoundBy.IsGuess(), isManaged: f.Managed != nil}
		// What has no process or no address is a name from a file of stacks.
		base.isJIT = f.Module < 0 && f.PID >= 0 && f.PC != 0 && len(f.Symbols) > 0 && !f.Kernel && !f.Device
		if f.Module >= 0 {
			base.module = oneLine(r.p.Modules[f.Module].Path)
		}
		if len(f.Symbols) == 0 {
			base.name = r.unknownName(f)
			intern(base)
		}
		for j := range f.Symbols {
			s := &f.Symbols[j]
			fn := base
			fn.name, fn.isNamed = oneLine(s.Function), s.Function != ""
			if !fn.isNamed {
				fn.name = r.unknownName(f)
			}
			if s.StartFile != "" {
				fn.file, fn.line = oneLine(s.StartFile), s.StartLine
			} else {
				fn.file = oneLine(s.File)
			}
			intern(fn)
		}
		ends = append(ends, len(list))
	}
	r.functionOf = make([][]int32, len(ends))
	start := 0
	for i, end := range ends {
		r.functionOf[i] = list[start:end:end]
		start = end
	}
}

// unknownName names a frame by its address in its module.
func (r *Profile) unknownName(f *trace.ProfileFrame) string {
	switch {
	case f.Module >= 0:
		return fmt.Sprintf("%s+0x%x", r.moduleName(f), f.ModuleOffset)
	case f.Kernel:
		return fmt.Sprintf("%s+0x%x", r.moduleName(f), f.PC)
	}
	return r.moduleName(f)
}

// moduleName is the name of a frame's module, in brackets.
func (r *Profile) moduleName(f *trace.ProfileFrame) string {
	switch {
	case f.Module < 0 && f.Kernel:
		return "[kernel]"
	case f.Module < 0:
		return "[unknown]"
	}
	name := moduleName(oneLine(r.p.Modules[f.Module].Path))
	if strings.HasPrefix(name, "[") {
		return name
	}
	return "[" + name + "]"
}

// moduleName is the short name of a module: the last element of its path, also where it was a
// part of that file (file://PATH#offset=N&size=N), or all of the name of an object that was
// in no file (memory://...).
func moduleName(module string) string {
	scheme, rest, isURI := strings.Cut(module, "://")
	switch {
	case !isURI:
		return path.Base(module)
	case scheme == "file":
		name, _, _ := strings.Cut(rest, "#")
		return path.Base(name)
	}
	return module
}

// oneLine is text without characters that would break its line: a name may be any bytes.
func oneLine(s string) string {
	clean := true
	for i := 0; i < len(s) && clean; i++ {
		clean = s[i] >= ' ' && s[i] < 0x7f
	}
	if clean {
		return s
	}
	return strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
}

// comm is the name of a sample's thread.
func (r *Profile) comm(s *trace.ProfileSample) string {
	return oneLine(r.p.Threads[s.Thread].Comm)
}
