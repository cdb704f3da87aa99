// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/hex"
	"io"

	"github.com/unwindd/unwindd/engine/trace"
)

// annotationJSON is a function of the JSON of annotations, without its lines and
// instructions.
type annotationJSON struct {
	Function    string                `json:"function"`
	LinkageName string                `json:"linkage_name,omitempty"`
	Module      string                `json:"module,omitempty"`
	Kernel      bool                  `json:"kernel"`
	Device      bool                  `json:"device,omitempty"`
	Recorded    bool                  `json:"recorded,omitempty"`
	InlinedInto []string              `json:"inlined_into,omitempty"`
	Problems    []string              `json:"problems"`
	Events      []annotationEventJSON `json:"events"`
	Lines       []annotationLineJSON  `json:"lines"`
	Code        []annotationCodeJSON  `json:"instructions"`
}

type annotationEventJSON struct {
	Name string `json:"name"`
	Unit string `json:"unit"`
	sampleCountJSON
}

// sampleCountJSON is the amount of an event at a place.
type sampleCountJSON struct {
	Event   string            `json:"event,omitempty"` // of a list
	Samples uint64            `json:"samples"`
	Weight  uint64            `json:"weight"`
	Inlined uint64            `json:"inlined,omitempty"`
	Lanes   *uint64           `json:"active_lanes,omitempty"`
	States  map[string]uint64 `json:"states,omitempty"`
}

type annotationLineJSON struct {
	File   string            `json:"file"`
	Line   int               `json:"line"`
	Text   *string           `json:"text,omitempty"`
	Counts []sampleCountJSON `json:"counts,omitempty"`
}

type annotationCodeJSON struct {
	Offset  string            `json:"module_offset"`
	Bytes   string            `json:"bytes,omitempty"`
	Text    string            `json:"text,omitempty"`
	File    string            `json:"file,omitempty"`
	Line    int               `json:"line,omitempty"`
	Inlined string            `json:"inlined,omitempty"`
	PTX     string            `json:"ptx,omitempty"`
	PTXLine int               `json:"ptx_line,omitempty"`
	Counts  []sampleCountJSON `json:"counts,omitempty"`
}

// WriteAnnotationsJSON writes the functions of Profile.Annotations as one JSON value and a
// newline, with the counts of all requested events.
func (r *Profile) WriteAnnotationsJSON(w io.Writer) error {
	b := newOutput(w)
	if err := r.writeTargetJSON(b); err != nil {
		return err
	}
	b.put(",\n\"annotations\":[")
	for i, counts := range r.countAnnotations(true) {
		if err := nextJSON(b, i, r.annotationJSON(&r.p.Annotations[i], counts)); err != nil {
			return err
		}
	}
	b.put("]}\n")
	return b.Flush()
}

func (r *Profile) annotationJSON(a *trace.ProfileAnnotation, counts []*annotationCount) *annotationJSON {
	out := &annotationJSON{
		Function: a.Function, LinkageName: a.LinkageName, Kernel: a.Kernel, Device: a.Device, Recorded: a.IsRecorded, InlinedInto: a.InlinedInto,
		Problems: append([]string{}, a.Problems...), Events: []annotationEventJSON{}, Lines: []annotationLineJSON{}, Code: []annotationCodeJSON{},
	}
	if a.Module >= 0 {
		out.Module = r.p.Modules[a.Module].Path
	}
	for _, c := range counts {
		e := annotationEventJSON{c.name, c.unit, r.sampleCountJSON(c, &c.all)}
		e.Event = ""
		out.Events = append(out.Events, e)
	}
	for i := range a.Lines {
		l := &a.Lines[i]
		line := annotationLineJSON{File: l.File, Line: l.Line, Counts: r.countsJSON(counts, func(c *annotationCount) *sampleCount { return &c.lines[i] })}
		if l.HasText {
			line.Text = &l.Text
		}
		out.Lines = append(out.Lines, line)
	}
	for i := range a.Code {
		instruction := &a.Code[i]
		out.Code = append(out.Code, annotationCodeJSON{
			Offset: address(instruction.Offset), Bytes: hex.EncodeToString(instruction.Bytes), Text: instruction.Text, File: instruction.File, Line: instruction.InlineLine, Inlined: instruction.Inlined,
			PTX: instruction.PTX, PTXLine: instruction.PTXLine,
			Counts: r.countsJSON(counts, func(c *annotationCount) *sampleCount { return &c.code[i] }),
		})
	}
	return out
}

// countsJSON are the counts of a place that are not zero.
func (r *Profile) countsJSON(counts []*annotationCount, count func(*annotationCount) *sampleCount) (list []sampleCountJSON) {
	for _, c := range counts {
		if n := count(c); n.samples > 0 {
			list = append(list, r.sampleCountJSON(c, n))
		}
	}
	return list
}

func (r *Profile) sampleCountJSON(c *annotationCount, n *sampleCount) sampleCountJSON {
	out := sampleCountJSON{Event: c.name, Samples: n.samples, Weight: n.weight, Inlined: n.inlined}
	if r.hasLanes(c.event) {
		out.Lanes = &n.lanes
	}
	for state, weight := range n.states {
		if weight == 0 {
			continue
		}
		if out.States == nil {
			out.States = map[string]uint64{}
		}
		name := r.stateName(uint8(state)) //nolint:gosec // at most gpusamples.MaxStates
		out.States[name] = add(out.States[name], weight)
	}
	return out
}
