// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"slices"
)

// threadSamples are the samples of one thread for one value.
type threadSamples struct {
	value   int // index of Profile.values
	thread  uint32
	samples []int32 // indices, in the profile's order
	weight  uint64  // the sum of the value
}

// samplesOfThreads are the threads of the values up to a kind, the one with the most weight
// first. A sample belongs to each value of its event.
func (r *Profile) samplesOfThreads(most valueKind) []threadSamples {
	type key struct {
		value  int
		thread uint32
	}
	indices := map[key]int{}
	var list []threadSamples
	for i := range r.p.Samples {
		s := &r.p.Samples[i]
		for v := range r.values {
			if r.values[v].kind > most || !r.values[v].has(s) {
				continue
			}
			k := key{v, s.Thread}
			n, ok := indices[k]
			if !ok {
				n = len(list)
				indices[k] = n
				list = append(list, threadSamples{value: v, thread: s.Thread})
			}
			list[n].samples = append(list[n].samples, int32(i))
			list[n].weight = add(list[n].weight, r.values[v].amount(s))
		}
	}
	slices.SortStableFunc(list, func(a, b threadSamples) int {
		return cmp.Or(cmp.Compare(a.value, b.value), cmp.Compare(b.weight, a.weight))
	})
	return list
}

// usedStacks reports for each stack except the first, which has no frames, whether a
// requested sample has it, or one that was called from it.
func (r *Profile) usedStacks() []bool {
	used := make([]bool, len(r.p.Stacks))
	for i := range r.p.Samples {
		if s := &r.p.Samples[i]; r.isRequested(s) {
			used[s.Stack] = true
		}
	}
	for i := len(used) - 1; i > 0; i-- {
		if used[i] {
			used[r.p.Stacks[i].Caller] = true // which precedes it
		}
	}
	if len(used) > 0 {
		used[0] = false
	}
	return used
}
