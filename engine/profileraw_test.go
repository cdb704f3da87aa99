package engine

import (
	"errors"
	"io"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/perfdata"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// A rawSamples is the samples of a recording that have user registers, ready to be
// walked again and again. Their stacks are those of the mapped file.
type rawSamples struct {
	samples []rawSample
}

type rawSample struct {
	process *Target
	sample  *Sample
	raw     perfdata.Sample
}

// readRaw reads a recording. A process is a Target as long as its code is the
// same.
func readRaw(tb testing.TB, e *Engine, path string) *rawSamples {
	tb.Helper()
	f, err := perfdata.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	d := x86_64.Description()
	var set *sdk.RegisterSet
	for i := range d.RegisterSets {
		if d.RegisterSets[i].Source == sdk.PerfSample {
			set = &d.RegisterSets[i]
		}
	}
	r := &rawSamples{}
	files, processes := map[string]*object.Object{}, map[uint64]*Target{}
	for in := f.Reader(); ; {
		batch, err := in.Next()
		if errors.Is(err, io.EOF) {
			return r
		}
		if err != nil {
			tb.Fatal(err)
		}
		for i := range batch.Samples {
			raw := &batch.Samples[i]
			if raw.Registers.ABI != perfdata.Registers64 || raw.Space == nil {
				continue
			}
			process := processes[raw.Space.Code]
			if process == nil {
				process = e.Attach(&Sample{Arch: "x86_64", Loaded: spaceModules(tb, raw.Space, files)})
				processes[raw.Space.Code] = process
			}
			s := &Sample{Arch: "x86_64", Loaded: process.state.Modules(), Stack: raw.Stack}
			set.DecodeSample(raw.Registers.Mask, raw.Registers.Values, &s.Registers)
			s.StackStart, _ = s.Registers.Uint64(d.SP, d.ByteOrder)
			r.samples = append(r.samples, rawSample{process, s, *raw})
		}
	}
}

// spaceModules are the files that a process has mapped to execute.
func spaceModules(tb testing.TB, space *perfdata.Space, files map[string]*object.Object) (modules []*target.Module) {
	tb.Helper()
	for m := range space.All() {
		if !m.Executable || m.Path[0] != '/' {
			continue
		}
		o := files[m.Path]
		if o == nil {
			var err error
			if o, err = object.Open(m.Path); err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { o.Close() })
			files[m.Path] = o
		}
		s, ok := o.SegmentForMapping(m.Offset, m.End-m.Start, true)
		if !ok {
			tb.Fatalf("%s: no segment at %#x", m.Path, m.Offset)
		}
		modules = append(modules, &target.Module{
			ID: len(modules), Path: m.Path, Arch: "x86_64", Object: o, File: m.Path,
			Segments: []target.Segment{{Address: s.Address - s.Offset + m.Offset, Size: m.End - m.Start, Start: m.Start, Executable: true}},
		})
	}
	return modules
}
