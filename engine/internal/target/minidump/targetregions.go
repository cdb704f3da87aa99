// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"cmp"
	"slices"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
)

// region is memory that was mapped.
type region struct {
	start, end                           uint64
	isReadable, isWritable, isExecutable bool
	file                                 string
	offset                               uint64 // of start in the file
	isImage                              bool   // it belongs to a module; file is empty
}

// addRegions collects the mappings of the dump: /proc/PID/maps or the results of
// VirtualQuery.
func (t *Target) addRegions() {
	for i := range t.Linux.Maps {
		m := &t.Linux.Maps[i]
		r := region{
			start: m.Start, end: m.End, isReadable: strings.Contains(m.Rights, "r"), isWritable: strings.Contains(m.Rights, "w"),
			isExecutable: m.IsExecutable(), file: m.Path, offset: m.Offset,
		}
		if strings.HasPrefix(m.Path, "[") { // "[stack]"
			r.file, r.offset = "", 0
		}
		t.regions = append(t.regions, r)
	}
	if t.regions == nil {
		for i := range t.MemoryInfo {
			if m := &t.MemoryInfo[i]; m.IsMapped() {
				t.regions = append(t.regions, windowsRegion(m))
			}
		}
	}
	t.regions = slices.DeleteFunc(t.regions, func(r region) bool { return r.end <= r.start })
	slices.SortStableFunc(t.regions, func(a, b region) int { return cmp.Compare(a.start, b.start) })
	for i := 1; i < len(t.regions); i++ { // where two overlap the first one is valid
		if start := max(t.regions[i].start, t.regions[i-1].end); t.regions[i].file != "" {
			t.regions[i].offset += start - t.regions[i].start
		}
		t.regions[i].start = max(t.regions[i].start, t.regions[i-1].end)
		t.regions[i].end = max(t.regions[i].start, t.regions[i].end)
	}
}

// windowsRegion returns the region of a result of VirtualQuery. A guard page has no rights
// until it is accessed.
func windowsRegion(m *MemoryInfo) region {
	r := region{start: m.Base, end: m.Base + m.Size}
	if m.Protect&(pageGuard|pageNoAccess) == 0 {
		r.isReadable = m.Protect&pageReadable != 0
		r.isWritable = m.Protect&pageWritable != 0
	}
	r.isExecutable = m.IsExecutable()
	r.isImage = m.Type == memImage
	return r
}

// Around returns the mappings around an address, if the dump has a list of them.
func (t *Target) Around(address uint64) (below, within, above *target.Mapping) {
	bounds := func(i int) (start, end uint64) { return t.regions[i].start, t.regions[i].end }
	return target.MappingsAround(len(t.regions), bounds, func(i int) *target.Mapping { return t.mappingOf(&t.regions[i]) }, address)
}

func (t *Target) mappingOf(r *region) *target.Mapping {
	m := &target.Mapping{
		Start: r.start, End: r.end, IsReadable: r.isReadable, IsWritable: r.isWritable, IsExecutable: r.isExecutable,
		File: r.file, Offset: r.offset,
	}
	for i := range t.Dump.Modules {
		if module := &t.Dump.Modules[i]; r.isImage && r.start-module.Base < uint64(module.Size) {
			m.File, m.Offset = module.Name, r.start-module.Base
			break
		}
	}
	return m
}

// regionsOf returns the regions that overlap a range.
func (t *Target) regionsOf(start, end uint64) []region {
	first := sort.Search(len(t.regions), func(i int) bool { return t.regions[i].end > start })
	last := sort.Search(len(t.regions), func(i int) bool { return t.regions[i].start >= end })
	if first >= last {
		return nil
	}
	return t.regions[first:last]
}

// Mapped reports whether an address was mapped, and whether code may be executed there, as
// far as the dump has it. A dump without a list of mappings has modules and pieces of memory.
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
	b, _ := t.bytesAt(address)
	return len(b) > 0, false
}
