// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"strconv"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/internal/flightrecorder"
	"github.com/unwindd/unwindd/engine/internal/label"
	"github.com/unwindd/unwindd/engine/internal/target/chrometrace"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file adds files to a comparison that describe targets, and are none themselves: dumps of flight recorders, and traces of
// PyTorch's profiler. Their data travels with the parts of the comparison, and is joined once all targets are there.

// The keys of their notes.
const (
	dumpNote  = "flight recorder"
	traceNote = "trace"
)

// addNote adds such a file; isOne is false for others.
func (c *Comparer) addNote(w *comparer, data []byte, path string) (isOne bool, err error) {
	switch {
	case flightrecorder.Accepts(data):
		d, err := flightrecorder.Read(bytes.NewReader(data), path)
		if err != nil {
			return true, err
		}
		// A rule knows better than the name of the file.
		if rank, err := strconv.ParseInt(c.labelsOf(&label.Start{Path: path})[label.Rank], 10, 32); err == nil && rank >= 0 {
			d.Rank = rank
		}
		w.part.AddNote(dumpNote, d.Encode())
	case chrometrace.Accepts(data):
		d, err := chrometrace.ReadDistributed(path, data)
		if err != nil {
			return true, err
		}
		traced := label.Traced{Path: path, Host: d.Host, PID: d.PID, Labels: label.OfJob(d.Rank, d.Size)}
		w.part.AddNote(traceNote, traced.Encode())
	default:
		return false, nil
	}
	return true, nil
}

// resultOf returns the comparison of a part with what its notes tell.
func resultOf(p *comparison.Part) *trace.Comparison {
	var dumps []*flightrecorder.Dump
	var traces []*label.Traced
	var problems []string
	p.Notes(func(key string, data []byte) {
		var err error
		switch key {
		case dumpNote:
			var d *flightrecorder.Dump
			if d, err = flightrecorder.Decode(data); err == nil {
				dumps = append(dumps, d)
			}
		case traceNote:
			var t *label.Traced
			if t, err = label.DecodeTraced(data); err == nil {
				traces = append(traces, t)
			}
		}
		if err != nil {
			problems = append(problems, err.Error()+": it is left out")
		}
	})
	if len(traces) > 0 {
		var found []string
		p, found = withTraces(p, traces)
		problems = append(problems, found...)
	}
	out := p.Result()
	collectives, found := flightrecorder.Join(dumps)
	out.Collectives = collectives
	out.Problems = append(append(out.Problems, problems...), found...)
	return out
}

// withTraces returns a part with the labels that traces have of its targets.
func withTraces(p *comparison.Part, traces []*label.Traced) (labelled *comparison.Part, problems []string) {
	var processes []*label.Process
	p.Processes(func(host string, pid int64, labels map[string]string) {
		processes = append(processes, &label.Process{Host: host, PID: pid, Labels: labels})
	})
	problems = label.Apply(traces, processes)
	return p.WithLabels(func(i int) map[string]string { return processes[i].Labels }), problems
}
