// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/trace"
)

// memoryKey is one kind of access to memory.
type memoryKey struct {
	event  int
	source perfdata.DataSource
}

// maxMemory bounds the kinds of accesses that are counted apart: few of the bits of a data source
// occur together.
const maxMemory = 1 << 12

// memoryCount counts the samples of a memoryKey.
type memoryCount struct{ samples, latency uint64 }

// addMemory counts the access to memory of a sample, where it has one.
func (b *profileBuilder) addMemory(s *walkedSample) {
	if s.event < 0 || !s.source.IsKnown() {
		return
	}
	if b.memory == nil {
		b.memory = map[memoryKey]*memoryCount{}
	}
	key := memoryKey{s.event, s.source}
	c := b.memory[key]
	if c == nil && len(b.memory) >= maxMemory {
		key.source = 0
		c = b.memory[key]
	}
	if c == nil {
		c = &memoryCount{}
		b.memory[key] = c
	}
	c.samples++
	if sum := c.latency + s.latency; sum >= c.latency {
		c.latency = sum
	}
}

// memoryAccesses returns the kinds of accesses by event, the most frequent first.
func (b *profileBuilder) memoryAccesses() (list []trace.DataAccess) {
	merged := map[trace.DataAccess]memoryCount{}
	for key, c := range b.memory {
		m := trace.DataAccess{
			Event: key.event, Operation: key.source.Operation(), Level: key.source.Level(), Snoop: key.source.Snoop(), TLB: key.source.TLB(), Locked: key.source.IsLocked(),
		}
		sum := merged[m]
		merged[m] = memoryCount{sum.samples + c.samples, sum.latency + c.latency}
	}
	for m, c := range merged {
		m.Samples, m.Latency = c.samples, c.latency
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b trace.DataAccess) int {
		return cmp.Or(cmp.Compare(a.Event, b.Event), cmp.Compare(b.Samples, a.Samples), cmp.Compare(a.Operation, b.Operation),
			cmp.Compare(a.Level, b.Level), cmp.Compare(a.Snoop, b.Snoop), cmp.Compare(a.TLB, b.TLB))
	})
	return list
}

// reportBranches says which events have records of branches that are no calls of a stack.
func (r *recording) reportBranches() {
	for i := range r.file.Attrs() {
		if a := &r.file.Attrs()[i]; a.HasBranches() {
			r.problem("%s: the samples of %s have records of the branches that the processor took before (perf record -b): these are no frames, and are not shown; `perf report --branch-history` and `perf script -F +brstack` show them",
				r.file.Path(), cmp.Or(a.Name, "an event without a name"))
		}
	}
}
