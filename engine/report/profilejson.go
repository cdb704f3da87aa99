// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// profileTarget is the member target of a profile's JSON.
type profileTarget struct {
	Path     string   `json:"path"`
	Lost     uint64   `json:"lost"`
	Problems []string `json:"problems"`
	Hints    []Hint   `json:"hints,omitempty"`
}

type profileEventJSON struct {
	Name   string `json:"name"`
	Unit   string `json:"unit"`
	Lanes  bool   `json:"lanes"`
	States bool   `json:"states,omitempty"`
	Device bool   `json:"device,omitempty"`
}

// profileFrameJSON is a physical frame or a call inlined into one. Members that a stack's
// frame has too are the same.
type profileFrameJSON struct {
	PC             string   `json:"pc"`
	FoundBy        string   `json:"found_by"`
	Managed        *Managed `json:"managed,omitempty"`
	Module         *int32   `json:"module,omitempty"`
	ModuleOffset   string   `json:"module_offset,omitempty"`
	Function       string   `json:"function,omitempty"`
	LinkageName    string   `json:"linkage_name,omitempty"`
	FunctionOffset string   `json:"function_offset,omitempty"`
	File           string   `json:"file,omitempty"`
	Line           int      `json:"line,omitempty"`
	Column         int      `json:"column,omitempty"`
	LineFrom       string   `json:"line_from,omitempty"`
	ScopeFrom      string   `json:"scope_from,omitempty"`
	EqualFunctions int      `json:"equal_functions,omitempty"`
	Inlined        bool     `json:"inlined"`
	Kernel         bool     `json:"kernel"`
	Device         bool     `json:"device,omitempty"`
	Dispatched     *int32   `json:"dispatched,omitempty"`
	NamedBy        string   `json:"named_by,omitempty"`
	Instruction    string   `json:"instruction,omitempty"`
}

// profileModuleJSON is a module of a profile.
type profileModuleJSON struct {
	Module
	Kernel bool   `json:"kernel"`
	Start  string `json:"start"`
	End    string `json:"end"`
	Offset string `json:"offset"`
}

// writeTargetJSON begins a JSON value with its member target.
func (r *Profile) writeTargetJSON(b output) error {
	t := profileTarget{r.p.Path, r.p.Lost, r.p.Problems, r.hints()}
	if t.Problems == nil {
		t.Problems = []string{}
	}
	b.put(`{"target":`)
	return compactJSON(b, t)
}

// WriteJSON writes the profile as one JSON value and a newline, with an entry for every
// sample. Its memory does not grow with the samples. Only frames and modules of samples are
// written.
func (r *Profile) WriteJSON(w io.Writer) error {
	b := newOutput(w)
	if err := r.writeTargetJSON(b); err != nil {
		return err
	}
	if err := r.writeMemoryJSON(b); err != nil {
		return err
	}
	b.put(",\n\"events\":[")
	for n, event := range r.eventsInOrder() {
		e := profileEventJSON{Name: r.eventNames[event+1], Unit: unitOf(r.p, event), Lanes: r.hasLanes(event), Device: r.isOfDevice(event)}
		e.States = event >= 0 && r.p.Events[event].States
		if err := nextJSON(b, n, e); err != nil {
			return err
		}
	}
	b.put("],\n\"samples\":[")
	used, err := r.writeSamples(b)
	if err != nil {
		return err
	}
	b.put("],\n\"frames\":[")
	n := 0
	modules := make([]bool, len(r.p.Modules))
	for _, i := range used {
		f := &r.p.Frames[i]
		if f.Module >= 0 {
			modules[f.Module] = true
		}
		for j := range max(1, len(f.Symbols)) {
			if err := nextJSON(b, n, r.newProfileFrame(f, j)); err != nil {
				return err
			}
			n++
		}
	}
	b.put("],\n\"kernels\":[")
	if err := r.writeKernels(b, modules); err != nil {
		return err
	}
	b.put("],\n\"modules\":[")
	n = 0
	for i := range r.p.Modules {
		if !modules[i] {
			continue
		}
		m := &r.p.Modules[i]
		out := profileModuleJSON{newModule(m.Module, m.ModuleInfo, m.ModuleInfo.DebugInfo), m.Kernel, address(m.Start), address(m.End), address(m.Offset)}
		out.ID = i
		if err := nextJSON(b, n, out); err != nil {
			return err
		}
		n++
	}
	b.put("]}\n")
	return b.Flush()
}

// eventsInOrder are the requested events as they were recorded, also those without samples.
func (r *Profile) eventsInOrder() (list []int16) {
	list = slices.Clone(r.empty)
	for i := range r.values {
		if r.values[i].kind == valueOfWeight && !r.isEmpty {
			list = append(list, r.values[i].event)
		}
	}
	slices.SortFunc(list, func(a, b int16) int { return cmp.Compare(uint16(a), uint16(b)) }) //nolint:gosec // an unknown event comes last
	return list
}

// writeSamples writes a line for each sample, and numbers the frames by their first
// appearance. It returns the frames in that order.
func (r *Profile) writeSamples(b output) (used []uint32, err error) {
	w, err := newSampleWriter(r)
	if err != nil {
		return nil, err
	}
	comma := false
	err = inOrder(r.Jobs, len(r.p.Samples), func(text []byte, from, to int) []byte {
		for i := from; i < to; i++ {
			if s := &r.p.Samples[i]; r.isRequested(s) {
				text = w.append(append(text, ",\n"...), s)
			}
		}
		return text
	}, func(text []byte) error {
		if !comma && len(text) > 0 {
			text, comma = text[1:], true // of the first
		}
		_, err := b.Write(text)
		return err
	})
	return w.used, err
}

// sampleWriter writes samples as JSON. It keeps the text of members that many samples share:
// of an event, a thread, a wave's state, and the end of a stack.
type sampleWriter struct {
	*Profile
	events, threads, stops []string
	states, launches       []string
	numbers                []byte       // of the frames that appear, each with a comma before it
	number                 []numberText // by frame: its functions' numbers in numbers, innermost first
	next                   int          // the number of the next frame that appears
	used                   []uint32
}

// numberText is a part of sampleWriter.numbers; without an end it belongs to a frame that
// does not appear.
type numberText struct{ start, end int }

// appear numbers the frames of all samples.
func (w *sampleWriter) appear() {
	seen := make([]bool, len(w.p.Stacks))
	for i := range w.p.Samples {
		s := &w.p.Samples[i]
		if !w.isRequested(s) {
			continue
		}
		// The callers of a stack that was seen were seen too.
		for node := s.Stack; node != 0 && !seen[node]; node = w.p.Stacks[node].Caller {
			seen[node] = true
			if frame := w.p.Stacks[node].Frame; w.number[frame].end == 0 {
				w.appearFrame(frame)
			}
		}
	}
}

func newSampleWriter(r *Profile) (*sampleWriter, error) {
	w := &sampleWriter{
		Profile: r, events: make([]string, len(r.valueOf)), threads: make([]string, len(r.p.Threads)),
		stops: make([]string, len(r.p.Stops)), number: make([]numberText, len(r.p.Frames)),
	}
	var err error
	for i := range r.p.Threads {
		if w.threads[i], err = threadMembers(&r.p.Threads[i]); err != nil {
			return nil, err
		}
	}
	for i, s := range r.p.Stops {
		if w.stops[i], err = stopMembers(s); err != nil {
			return nil, err
		}
	}
	for i, v := range r.valueOf {
		if v >= 0 {
			if w.events[i], err = stringMember("event", r.values[v].name); err != nil {
				return nil, err
			}
		}
	}
	for i := range r.p.States {
		state := ""
		if i > 0 {
			state = r.stateName(uint8(i)) //nolint:gosec // at most gpusamples.MaxStates
		}
		text, err := stringMember("state", state)
		if err != nil {
			return nil, err
		}
		w.states = append(w.states, text)
	}
	for e := range trace.EvidenceRecorded + 1 {
		text, err := stringMember("launched_by", e.String())
		if err != nil {
			return nil, err
		}
		w.launches = append(w.launches, text)
	}
	w.appear()
	return w, nil
}

// append appends a sample.
func (w *sampleWriter) append(line []byte, s *trace.ProfileSample) []byte {
	line = append(line, '{')
	line = append(line, w.events[s.Event+1]...)
	line = append(line, w.threads[s.Thread]...)
	if s.HasCPU {
		line = append(line, `"cpu":`...)
		line = append(strconv.AppendUint(line, uint64(s.CPU), 10), ',')
	}
	line = append(line, `"time":`...)
	line = strconv.AppendUint(line, s.Time, 10)
	line = append(line, `,"weight":`...)
	line = strconv.AppendUint(line, s.Weight, 10)
	line = append(line, ',')
	if w.hasLanes(s.Event) {
		line = append(line, `"active_lanes":`...)
		line = append(strconv.AppendUint(line, uint64(s.ActiveLanes), 10), ',')
	}
	if int(s.State) < len(w.states) {
		line = append(line, w.states[s.State]...)
	}
	line = append(line, w.launches[min(s.Launch, trace.EvidenceRecorded)]...)
	line = append(line, `"frames":[`...)
	comma := 1 // that the first number goes without
	for node := s.Stack; node != 0; {
		stack := &w.p.Stacks[node]
		n := w.number[stack.Frame]
		line = append(line, w.numbers[n.start+comma:n.end]...)
		node, comma = stack.Caller, 0
	}
	line = append(line, `],`...)
	line = append(line, w.stops[s.Stop]...)
	return append(line, '}')
}

// appearFrame numbers the functions of a frame.
func (w *sampleWriter) appearFrame(frame uint32) {
	n := numberText{start: len(w.numbers)}
	for range max(1, len(w.p.Frames[frame].Symbols)) {
		w.numbers = strconv.AppendInt(append(w.numbers, ','), int64(w.next), 10)
		w.next++
	}
	n.end = len(w.numbers)
	w.number[frame] = n
	w.used = append(w.used, frame)
}

// stringMember is a member of an object, with the comma behind it; "" where the
// value is empty.
func stringMember(name, value string) (string, error) {
	if value == "" {
		return "", nil
	}
	b := bytes.NewBufferString(`"` + name + `":`)
	if err := compactJSON(b, value); err != nil {
		return "", err
	}
	b.WriteByte(',')
	return b.String(), nil
}

// threadMembers are the members of a sample for its thread.
func threadMembers(t *trace.ProfileThread) (string, error) {
	text, err := stringMember("comm", t.Comm)
	if t.PID >= 0 {
		text += `"pid":` + strconv.Itoa(t.PID) + `,`
	}
	if t.TID >= 0 {
		text += `"tid":` + strconv.Itoa(t.TID) + `,`
	}
	return text, err
}

// stopMembers are the members of a sample for the end of its stack.
func stopMembers(s trace.Stopped) (string, error) {
	detail := s.Detail
	if s.Reason == trace.StopOutermost {
		detail = ""
	}
	text, err := stringMember("detail", detail)
	if err != nil {
		return "", err
	}
	// A reason is one of a few words.
	return strings.TrimSuffix(`"stopped":"`+string(s.Reason)+`",`+text, ","), nil
}

// newProfileFrame describes a function at a frame's address: the i-th, innermost first.
func (r *Profile) newProfileFrame(f *trace.ProfileFrame, i int) *profileFrameJSON {
	out := &profileFrameJSON{
		PC: address(f.PC), FoundBy: string(f.FoundBy), Inlined: i < len(f.Symbols)-1,
		Kernel: f.Kernel, Device: f.Device, NamedBy: f.NamedBy, Instruction: f.Instruction,
	}
	if r.isDispatched(f) && !out.Inlined {
		out.Dispatched = &f.Dispatched
	}
	if f.Module >= 0 {
		out.Module, out.ModuleOffset = &f.Module, address(f.ModuleOffset)
	}
	if f.Managed != nil {
		out.Managed = &Managed{Runtime: f.Managed.Runtime, Kind: string(f.Managed.Kind)}
	}
	if len(f.Symbols) == 0 {
		return out
	}
	s := &f.Symbols[i]
	out.Function, out.LinkageName = s.Function, s.LinkageName
	out.File, out.Line, out.Column = s.File, s.Line, s.Column
	out.LineFrom, out.ScopeFrom = nameSources(s)
	out.EqualFunctions = equalFunctions(s)
	if !out.Inlined && s.HasStart {
		out.FunctionOffset = offset(f.ModuleOffset, s.Start)
	}
	return out
}

// compactJSON writes a value without blanks, without a newline and without the
// escapes that only HTML needs.
func compactJSON(w io.Writer, v any) error {
	b, err := escape.AppendJSON(nil, v, "")
	if err != nil {
		return err
	}
	_, err = w.Write(bytes.TrimSuffix(b, []byte("\n")))
	return err
}
