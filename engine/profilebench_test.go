package engine

import (
	"context"
	"errors"
	"io"
	"math"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/target/perfdata"
)

// BenchmarkProfileWalk walks the samples of recordings, of 12,000 or more samples
// each, when every row is known: an operation is a sample. cpu-ns/frame is of
// processor time. hit-% says how many look-ups of rows the cache answers in the
// first round, where every address is new once.
func BenchmarkProfileWalk(b *testing.B) {
	for _, program := range profilePrograms {
		b.Run(program.name, func(b *testing.B) {
			f, err := perfdata.Open(profileRecording(b, program.name, 12_000))
			if err != nil {
				b.Fatal(err)
			}
			defer f.Close()
			r := newX86Engine(b, Options{NoSymbols: true}).newRecording(f)
			defer r.close()
			r.bind(context.Background())
			s, out := r.sampler(), &walkedBatch{}
			samples := allSamples(b, f)
			hits, lookups := 0, 0
			slots := map[uint64]rowSlotKey{}
			for _, in := range samples {
				out.samples, out.frames = out.samples[:0], out.frames[:0]
				s.walkSample(context.Background(), in, out)
				for i := range out.frames {
					frame := &out.frames[i]
					if frame.code != moduleCode {
						continue
					}
					key := rowSlotKey{int(frame.owner), rowKey{frame.offset, frame.exact}}
					slot := rowSlot(key.module, key.row)
					lookups++
					if slots[slot] == key {
						hits++
					}
					slots[slot] = key
				}
			}
			frames, next := 0, 0
			before := cpuTime(b)
			b.ReportAllocs()
			for b.Loop() {
				out.samples, out.frames = out.samples[:0], out.frames[:0]
				s.walkSample(context.Background(), samples[next], out)
				frames += len(out.frames)
				next = (next + 1) % len(samples)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(frames), "cpu-ns/frame")
			b.ReportMetric(float64(frames)/float64(b.N), "frames/op")
			b.ReportMetric(100*float64(hits)/float64(lookups), "hit-%")
		})
	}
}

// rowSlotKey is what a slot of the cache of rows holds.
type rowSlotKey struct {
	module int
	row    rowKey
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

// TestWalkingSamplesAllocatesNothing walks the samples of recordings again: what a
// walk needs is there then. Only the evaluation of an expression, of which the
// rows of linkage tables are made, may allocate.
func TestWalkingSamplesAllocatesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("records programs")
	}
	for _, program := range profilePrograms {
		f, err := perfdata.Open(profileRecording(t, program.name, profileSamples()))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r := newX86Engine(t, Options{NoSymbols: true}).newRecording(f)
		defer r.close()
		r.bind(context.Background())
		s, out := r.sampler(), &walkedBatch{}
		var samples []*perfdata.Sample
		for _, in := range allSamples(t, f) {
			out.samples, out.frames = out.samples[:0], out.frames[:0]
			s.walkSample(context.Background(), in, out)
			w := &s.walker.walker
			if out.samples[0].stopped.Reason == StopNoMemory {
				continue // the error is made anew
			}
			if !slices.ContainsFunc(w.frames[:w.walked], func(f *frame) bool { return f.hasCFA && !f.compiled }) {
				samples = append(samples, in)
			}
		}
		if n := len(samples); n < profileSamples()/2 {
			t.Errorf("%s: only %d samples without expressions", program.name, n)
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
			t.Errorf("%s: %g allocations for %d samples", program.name, n, len(samples))
		}
	}
}
