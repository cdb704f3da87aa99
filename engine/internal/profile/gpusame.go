// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"math"

	"github.com/unwindd/unwindd/engine/trace"
)

// sameSamples joins samples of an accelerator that differ in their times only, so that the memory
// of a profile is in proportion to what differs.
type sameSamples struct {
	out   *trace.Profile
	known map[trace.ProfileSample]int // indices of last
	first int                         // index of the first joined sample in out
	last  []uint64                    // the last time of each
	n     int                         // of samples that came
}

func newSameSamples(out *trace.Profile) *sameSamples {
	return &sameSamples{out: out, known: map[trace.ProfileSample]int{}}
}

// minDifferent is how many different samples are known before joining is given up where most
// differ.
const minDifferent = 1 << 20

// add joins a sample to those that are the same, or keeps it as the first. It returns false where
// joining was given up.
func (j *sameSamples) add(s *trace.ProfileSample) bool {
	if j.known == nil {
		return false
	}
	j.n++
	key := *s
	key.Time = min(s.Time, 1) // 0 is no time
	if i, ok := j.known[key]; ok {
		if same := &j.out.Samples[j.first+i]; same.More < math.MaxUint16 {
			same.More++
			same.Time, j.last[i] = min(same.Time, s.Time), max(j.last[i], s.Time)
			return true
		}
	}
	if len(j.last) == 0 {
		j.first = len(j.out.Samples)
	}
	if len(j.last) >= minDifferent && j.n < 2*len(j.last) {
		j.end()
		return false
	}
	j.known[key] = len(j.last)
	j.last = append(j.last, s.Time)
	j.out.Samples = append(j.out.Samples, *s)
	return true
}

// end makes the last time of each event that of a sample. No sample is joined from then on.
func (j *sameSamples) end() {
	if j.known == nil {
		return
	}
	j.known = nil
	latest := map[int16]int{}
	for i, last := range j.last {
		event := j.out.Samples[j.first+i].Event
		if best, ok := latest[event]; !ok || last > j.last[best] {
			latest[event] = i
		}
	}
	for event := range j.out.Events {
		i, ok := latest[int16(event)] //nolint:gosec // events are numbered by int16
		if !ok {
			continue
		}
		s := &j.out.Samples[j.first+i]
		if s.Time == j.last[i] {
			continue
		}
		s.More--
		split := *s
		split.Time, split.More = j.last[i], 0
		j.out.Samples = append(j.out.Samples, split)
	}
}
