package minidump

import (
	"cmp"
	"slices"
	"sort"
)

// A region is memory that was mapped.
type region struct {
	start, end   uint64
	isExecutable bool
}

// addRegions collects what the dump says of mappings, /proc/PID/maps or what VirtualQuery
// said.
func (t *Target) addRegions() {
	for i := range t.Linux.Maps {
		m := &t.Linux.Maps[i]
		t.regions = append(t.regions, region{m.Start, m.End, m.IsExecutable()})
	}
	if t.regions == nil {
		for i := range t.MemoryInfo {
			if m := &t.MemoryInfo[i]; m.IsMapped() {
				t.regions = append(t.regions, region{m.Base, m.Base + m.Size, m.IsExecutable()})
			}
		}
	}
	t.regions = slices.DeleteFunc(t.regions, func(r region) bool { return r.end <= r.start })
	slices.SortStableFunc(t.regions, func(a, b region) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(t.regions); i++ { // what is mapped twice is what comes first
		t.regions[i].start = max(t.regions[i].start, t.regions[i-1].end)
		t.regions[i].end = max(t.regions[i].start, t.regions[i].end)
	}
}

// regionsOf are the regions that reach into a range.
func (t *Target) regionsOf(start, end uint64) []region {
	from := sort.Search(len(t.regions), func(i int) bool { return t.regions[i].end > start })
	to := sort.Search(len(t.regions), func(i int) bool { return t.regions[i].start >= end })
	if from >= to {
		return nil
	}
	return t.regions[from:to]
}

// Mapped says whether an address was mapped, and whether code may be executed there, as far
// as the dump says it. A dump without a list of mappings has modules and pieces of memory.
func (t *Target) Mapped(address uint64) (mapped, executable bool) {
	if r := t.regionsOf(address, address+1); len(r) > 0 && address+1 != 0 {
		return true, r[0].isExecutable
	}
	for _, m := range t.modules {
		for i := range m.Segments {
			if s := &m.Segments[i]; address-s.Start < s.Size {
				return true, s.Executable
			}
		}
	}
	return t.memoryAt(address) > 0, false
}

// memoryAt is how many bytes from an address on the dump has in one piece; 0: none.
func (d *Dump) memoryAt(address uint64) uint64 {
	i := sort.Search(len(d.memory), func(i int) bool { return d.memory[i].end() > address })
	if i == len(d.memory) || d.memory[i].Start > address {
		return 0
	}
	return d.memory[i].end() - address
}

// nextMemory is the first address from the one given on that the dump has.
func (d *Dump) nextMemory(address uint64) uint64 {
	i := sort.Search(len(d.memory), func(i int) bool { return d.memory[i].end() > address })
	if i == len(d.memory) {
		return ^uint64(0)
	}
	return max(address, d.memory[i].Start)
}
