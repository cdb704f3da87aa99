// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// Samples that differ in nothing else than their times are one, and the first and the last time
// of each event stay. One without a time, or with another place, is another one.
func TestSamplesThatDifferInTimesAreJoined(t *testing.T) {
	out := &trace.Profile{Events: make([]trace.ProfileEvent, 2)}
	j := newSameSamples(out)
	for _, s := range []trace.ProfileSample{
		{Time: 30, Stack: 1}, {Time: 10, Stack: 1}, {Time: 50, Stack: 2}, {Time: 0, Stack: 1}, {Time: 70, Stack: 1}, {Time: 20, Stack: 2},
		{Time: 5, Stack: 1, Event: 1}, {Time: 9, Stack: 1, Event: 1, Weight: 2},
	} {
		if !j.add(&s) {
			t.Fatal("joining was given up")
		}
	}
	j.end()
	want := []trace.ProfileSample{
		{Time: 10, Stack: 1, More: 1}, {Time: 20, Stack: 2, More: 1}, {Stack: 1}, {Time: 5, Stack: 1, Event: 1}, {Time: 9, Stack: 1, Event: 1, Weight: 2},
		{Time: 70, Stack: 1},
	}
	if len(out.Samples) != len(want) {
		t.Fatalf("%d samples, want %d: %+v", len(out.Samples), len(want), out.Samples)
	}
	for i := range want {
		if out.Samples[i] != want[i] {
			t.Errorf("sample %d: %+v, want %+v", i, out.Samples[i], want[i])
		}
	}
}

func TestManySameSamplesAreCounted(t *testing.T) {
	out := &trace.Profile{Events: make([]trace.ProfileEvent, 1)}
	j := newSameSamples(out)
	const n = 3*(math.MaxUint16+1) + 5
	for i := range uint64(n) {
		j.add(&trace.ProfileSample{Time: 1 + i, Weight: 3})
	}
	j.end()
	count, weight, last := uint64(0), uint64(0), uint64(0)
	for i := range out.Samples {
		s := &out.Samples[i]
		count, weight, last = count+s.Count(), weight+s.Total(), max(last, s.Time)
	}
	if count != n || weight != 3*n || last != n || len(out.Samples) != 5 {
		t.Errorf("%d samples of weight %d, the last at %d, in %d: want %d of %d, in 5", count, weight, last, len(out.Samples), n, 3*n)
	}
}

// Joining samples that all differ would take more memory than keeping them.
func TestDifferentSamplesAreNotJoined(t *testing.T) {
	out := &trace.Profile{Events: make([]trace.ProfileEvent, 1)}
	j := newSameSamples(out)
	for i := range uint64(minDifferent) {
		if !j.add(&trace.ProfileSample{Time: 1, Weight: i}) {
			t.Fatalf("joining was given up after %d samples", i)
		}
	}
	if j.add(&trace.ProfileSample{Time: 1, Weight: minDifferent}) || j.known != nil || len(out.Samples) != minDifferent {
		t.Errorf("joining went on; %d samples", len(out.Samples))
	}
}

func TestTotalDoesNotWrap(t *testing.T) {
	s := trace.ProfileSample{Weight: math.MaxUint64 / 2, More: 2}
	if s.Total() != math.MaxUint64 {
		t.Errorf("total %d", s.Total())
	}
}
