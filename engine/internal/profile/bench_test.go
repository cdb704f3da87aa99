// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/recorded"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// BenchmarkProfileWalk walks the samples of recordings, of 12,000 or more samples
// each, when every row is known: an operation is a sample. cpu-ns/frame is of
// processor time. hit-% says how many look-ups of rows the cache answers in the
// first round, where every address is new once.
func BenchmarkProfileWalk(b *testing.B) {
	for _, program := range recorded.Programs {
		b.Run(program.Name, func(b *testing.B) {
			f, r := openProgram(b, program.Name, recorded.BenchmarkSamples())
			s, out := r.sampler(), &walkedBatch{}
			samples := allSamples(b, f)
			library, lookups := r.maker.Shared.Library(), 0
			for _, in := range samples {
				out.samples, out.frames = out.samples[:0], out.frames[:0]
				s.walkSample(context.Background(), in, out)
				for i := range out.frames {
					frame := &out.frames[i]
					if frame.Kind == walk.ModuleCode {
						lookups++
					}
				}
			}
			misses := library.RowMisses()
			frames, next := 0, 0
			before := oracle.ProcessorTime()
			b.ReportAllocs()
			for b.Loop() {
				out.samples, out.frames = out.samples[:0], out.frames[:0]
				s.walkSample(context.Background(), samples[next], out)
				frames += len(out.frames)
				next = (next + 1) % len(samples)
			}
			b.ReportMetric(float64(oracle.ProcessorTime()-before)/float64(frames), "cpu-ns/frame")
			b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
			b.ReportMetric(100*(1-float64(misses)/float64(lookups)), "hit-%")
		})
	}
}

// newX86Maker is a Maker whose architecture is in this process.
func newX86Maker(tb testing.TB) *Maker {
	tb.Helper()
	plugins, err := plugin.NewManager(plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(plugins.Close)
	library := code.NewLibrary(plugins, 0)
	tb.Cleanup(library.Close)
	return &Maker{
		Shared:  walk.NewShared(library, walk.Options{MaxFrames: 4096, NoSymbols: true}),
		Plugins: plugins,
		Finder:  func(string) object.Finder { return object.Finder{Store: object.NewStore()} },
	}
}

func TestMain(m *testing.M) {
	status := m.Run()
	recorded.Clean()
	os.Exit(status)
}

// allSamples are the samples of a recording. They are valid until it is closed.
func allSamples(tb testing.TB, f *perfdata.File) (all []*perfdata.Sample) {
	tb.Helper()
	for r := f.Reader(); ; {
		b, err := r.Next() // is not released: its samples stay
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		for i := range b.Samples {
			all = append(all, &b.Samples[i])
		}
	}
}

// openProgram opens the recording of a program of recorded.Programs, to be walked.
func openProgram(tb testing.TB, name string, samples int) (*perfdata.File, *recording) {
	tb.Helper()
	f, err := perfdata.Open(recorded.Recording(tb, name, samples))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	r := newX86Maker(tb).newRecording(f)
	tb.Cleanup(r.close)
	r.bind()
	return f, r
}

// TestWalkingSamplesAllocatesNothing walks the samples of recordings again: what a
// walk needs is there then. Only the evaluation of an expression, of which the
// rows of linkage tables are made, may allocate.
func TestWalkingSamplesAllocatesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	for _, program := range recorded.Programs {
		f, r := openProgram(t, program.Name, recorded.Samples())
		s, out := r.sampler(), &walkedBatch{}
		var samples []*perfdata.Sample
		for _, in := range allSamples(t, f) {
			out.samples, out.frames = out.samples[:0], out.frames[:0]
			s.walkSample(context.Background(), in, out)
			if out.samples[0].stopped.Reason == trace.StopNoMemory {
				continue // the error is made anew
			}
			if !hasExpressions(s.walker, len(out.frames)-out.samples[0].kernel) {
				samples = append(samples, in)
			}
		}
		if n := len(samples); n < recorded.Samples()/2 {
			t.Errorf("%s: only %d samples without expressions", program.Name, n)
		}
		// The runtime allocates for itself now and then, a walk each time or never.
		n := math.Inf(1)
		for range 5 {
			n = min(n, testing.AllocsPerRun(1, func() {
				for _, in := range samples {
					out.samples, out.frames = out.samples[:0], out.frames[:0]
					s.walkSample(context.Background(), in, out)
				}
			}))
		}
		if n > 0 {
			t.Errorf("%s: %g allocations for %d samples", program.Name, n, len(samples))
		}
	}
}

// hasExpressions says whether a row of the walked frames was evaluated.
func hasExpressions(w *walk.Walker, frames int) bool {
	for i := range frames {
		if w.IsEvaluated(i) {
			return true
		}
	}
	return false
}
