// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/flamepage"
)

const (
	// maxFlameSamples bounds the samples of an event in a page.
	maxFlameSamples = 4_000_000
	// flameSteps is the number of steps of time in which samples are joined: more than a
	// window has pixels.
	flameSteps = 1 << 13
)

// joinSamples joins the samples of an event that are of one call of one thread in one step of
// time, where there are more than most. It returns the length of a step in nanoseconds; 0: all
// are as they were. Where it has to it takes longer steps.
func joinSamples(e *flamepage.Event, most int) (step uint64) {
	if len(e.Samples) <= most {
		return 0
	}
	first, last := e.Samples[0].Time, e.Samples[0].Time
	for i := range e.Samples {
		first, last = min(first, e.Samples[i].Time), max(last, e.Samples[i].Time)
	}
	for steps := uint64(flameSteps); len(e.Samples) > most && steps > 0; steps /= 8 {
		step = (last-first)/steps + 1
		for i := range e.Samples {
			s := &e.Samples[i]
			s.Time = first + (s.Time-first)/step*step
		}
		slices.SortFunc(e.Samples, compareSamples)
		joined := e.Samples[:0]
		for _, s := range e.Samples {
			if n := len(joined); n > 0 && compareSamples(joined[n-1], s) == 0 {
				joined[n-1].Weight = add(joined[n-1].Weight, s.Weight)
				continue
			}
			joined = append(joined, s)
		}
		e.Samples = joined
	}
	return step
}

func compareSamples(a, b flamepage.Sample) int {
	return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.Call, b.Call))
}
