// SPDX-License-Identifier: Apache-2.0

package otlpcheck

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/google/pprof/profile"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
)

// Samples are the sums of a profile's samples, by a text of all their facts in a
// format: the value, its unit, the thread, and the stack with places, lines and build
// IDs. Two formats of one profile have equal sums.
type Samples map[string]int64

// Detail is the amount of detail in the texts.
type Detail int

// The details.
const (
	// Full has the details of pprof's format.
	Full Detail = iota
	// Names has the details that the profile's JSON has, too: no addresses of calls, no beginnings
	// of functions, and of a function's names the linkage name.
	Names
)

// frame is one address of a stack.
type frame struct {
	address, start, limit, offset uint64
	file, buildID                 string
	lines                         []line
}

type line struct {
	name, systemName, file string
	line, column, start    int64
}

func (s Samples) add(d Detail, value, unit string, pid, tid int64, comm string, stack []frame, n int64) {
	if n == 0 {
		return // some formats have details that others leave out
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %d/%d %q", value, unit, pid, tid, comm)
	for _, f := range stack {
		if d == Full {
			fmt.Fprintf(&b, "\n  %#x in %#x-%#x at %#x", f.address, f.start, f.limit, f.offset)
		}
		fmt.Fprintf(&b, "\n  %s %s", f.file, f.buildID)
		for _, l := range f.lines {
			if d == Full {
				fmt.Fprintf(&b, "\n    %s from %d", l.name, l.start)
			}
			fmt.Fprintf(&b, "\n    %s %s:%d:%d", l.systemName, l.file, l.line, l.column)
		}
	}
	if key := b.String(); s[key] > math.MaxInt64-n {
		s[key] = math.MaxInt64
	} else {
		s[key] += n
	}
}

// OTLP adds the samples of a message, which must pass Check.
func (s Samples) OTLP(d Detail, data *profiles.ProfilesData) {
	r := &reader{data.Dictionary}
	for _, resource := range data.ResourceProfiles {
		pid := int64(-1)
		for _, a := range resource.Resource.GetAttributes() {
			// The collector writes names as references, which profiles alone have.
			if a.Key == "process.pid" || r.text(a.KeyStrindex) == "process.pid" {
				pid = a.Value.GetIntValue()
			}
		}
		for _, scope := range resource.ScopeProfiles {
			for _, p := range scope.Profiles {
				for _, sample := range p.Samples {
					tid, comm := r.thread(sample.AttributeIndices)
					s.add(d, r.text(p.SampleType.GetTypeStrindex()), r.text(p.SampleType.GetUnitStrindex()), pid, tid, comm,
						r.stack(sample.StackIndex), sample.Values[0])
				}
			}
		}
	}
}

type reader struct{ *profiles.ProfilesDictionary }

func (r *reader) text(i int32) string { return r.StringTable[i] }

func (r *reader) thread(attributes []int32) (tid int64, comm string) {
	tid = -1
	for _, i := range attributes {
		switch a := r.AttributeTable[i]; r.text(a.KeyStrindex) {
		case "thread.id":
			tid = a.Value.GetIntValue()
		case "thread.name":
			comm = a.Value.GetStringValue()
		}
	}
	return tid, comm
}

func (r *reader) stack(i int32) (list []frame) {
	for _, n := range r.StackTable[i].LocationIndices {
		l := r.LocationTable[n]
		m := r.MappingTable[l.MappingIndex]
		f := frame{address: l.Address, start: m.MemoryStart, limit: m.MemoryLimit, offset: m.FileOffset, file: r.text(m.FilenameStrindex)}
		for _, i := range m.AttributeIndices {
			if a := r.AttributeTable[i]; r.text(a.KeyStrindex) == "process.executable.build_id.gnu" {
				f.buildID = a.Value.GetStringValue()
			}
		}
		for _, x := range l.Lines {
			fn := r.FunctionTable[x.FunctionIndex]
			f.lines = append(f.lines, line{
				r.text(fn.NameStrindex), r.text(fn.SystemNameStrindex), r.text(fn.FilenameStrindex), x.Line, x.Column, fn.StartLine,
			})
		}
		list = append(list, f)
	}
	return list
}

// Pprof adds the samples of a profile in pprof's format.
func (s Samples) Pprof(d Detail, p *profile.Profile) {
	for _, sample := range p.Sample {
		pid, tid := number(sample, "pid"), number(sample, "tid")
		stack := make([]frame, len(sample.Location))
		for i, l := range sample.Location {
			stack[i] = pprofFrame(l)
		}
		for i, n := range sample.Value {
			s.add(d, p.SampleType[i].Type, p.SampleType[i].Unit, pid, tid, strings.Join(sample.Label["comm"], ""), stack, n)
		}
	}
}

func number(s *profile.Sample, name string) int64 {
	if list := s.NumLabel[name]; len(list) == 1 {
		return list[0]
	}
	return -1
}

func pprofFrame(l *profile.Location) frame {
	f := frame{address: l.Address}
	if m := l.Mapping; m != nil {
		f.offset, f.file, f.buildID = m.Offset, m.File, m.BuildID
		if m.Start < m.Limit {
			f.start, f.limit = m.Start, m.Limit
		}
	}
	for _, x := range l.Line {
		f.lines = append(f.lines, line{x.Function.Name, x.Function.SystemName, x.Function.Filename, x.Line, x.Column, x.Function.StartLine})
	}
	return f
}

// JSON adds the weights of the samples of a profile as JSON, in the detail of Names.
func (s Samples) JSON(input io.Reader) error {
	var p struct {
		Events  []struct{ Name, Unit string }
		Samples []struct {
			Event    string
			Comm     string
			PID, TID *int64
			Weight   int64
			Frames   []int
		}
		Frames []struct {
			Module         *int
			Function, File string
			Linkage        string `json:"linkage_name"`
			Line, Column   int64
			Inlined        bool
		}
		Modules []struct {
			ID      int
			Path    string
			BuildID string `json:"build_id"`
		}
	}
	if err := json.NewDecoder(input).Decode(&p); err != nil {
		return err
	}
	units, modules := map[string]string{}, map[int]int{}
	for _, e := range p.Events {
		units[e.Name] = e.Unit
	}
	for i := range p.Modules {
		modules[p.Modules[i].ID] = i
	}
	for i := range p.Samples {
		x := &p.Samples[i]
		var stack []frame
		begun := false
		for _, n := range x.Frames {
			f := &p.Frames[n]
			if !begun {
				stack = append(stack, frame{})
			}
			top := &stack[len(stack)-1]
			begun = f.Inlined
			if f.Module != nil {
				m := &p.Modules[modules[*f.Module]]
				top.file, top.buildID = m.Path, m.BuildID
			}
			if name := f.Linkage; name != "" || f.Function != "" {
				name = cmp.Or(name, f.Function)
				top.lines = append(top.lines, line{systemName: name, file: f.File, line: f.Line, column: f.Column})
			}
		}
		s.add(Names, x.Event, units[x.Event], orNone(x.PID), orNone(x.TID), x.Comm, stack, x.Weight)
	}
	return nil
}

func orNone(n *int64) int64 {
	if n == nil {
		return -1
	}
	return *n
}

// Only returns the samples of the wanted values.
func (s Samples) Only(isWanted func(value string) bool) Samples {
	out := Samples{}
	for key, n := range s {
		if value, _, _ := strings.Cut(key, " "); isWanted(value) {
			out[key] = n
		}
	}
	return out
}

// Differences lists up to eight samples that are not the same in both.
func (s Samples) Differences(want Samples) (list []string) {
	for _, side := range []struct{ other, samples Samples }{{s, want}, {want, s}} {
		for key, n := range side.samples {
			if m, ok := side.other[key]; (!ok || m != n) && len(list) < 8 {
				list = append(list, fmt.Sprintf("%d, elsewhere %d: %s", n, m, key))
			}
		}
	}
	return list
}
