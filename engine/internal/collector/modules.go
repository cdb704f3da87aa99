// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// addModules adds the code objects, and the code that is in none. modules are the
// target's, which are open as long as the snapshot is valid.
func (c *collector) addModules(modules []*code.Module) {
	type place struct {
		trace.Segment
		module int
	}
	r := c.request
	var all []place
	for i, m := range modules {
		out := *m.Module
		out.Segments = nil
		inNoFile := m.Object != nil && m.Object.Path() == ""
		added := snapshot.Module{Module: &out, Keep: inNoFile || r.Files && (r.AnyFile || m.Confirmed())}
		if m.Object != nil && !added.Keep && (r.Files || c.withheld[m.Module]) {
			c.problem("module %s: %s", m.Path, withheld(m.Module, r.Files, c.withheld[m.Module]))
		}
		if added.Keep {
			added.Companions = c.companions(m)
		}
		c.result.Modules = append(c.result.Modules, added)
		for _, s := range m.Segments {
			// Where the code object is missing, a reader takes all of it for code.
			if s.Size > 0 && (s.Executable || m.Object != nil) {
				all = append(all, place{s, i})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.Start, b.Start) })
	var placed []trace.Segment
	end := uint64(0)
	for _, p := range all {
		m := c.result.Modules[p.module]
		if p.Start < end || p.Start+p.Size < p.Start || p.Address+p.Size < p.Address {
			c.problem("module %s: its segment of %#x bytes at %#x overlaps another or reaches past the last address: it is left out", m.Path, p.Size, p.Start)
			continue
		}
		end = p.Start + p.Size
		m.Segments, placed = append(m.Segments, p.Segment), append(placed, p.Segment)
	}
	for _, m := range c.unmapped(placed) {
		c.result.Modules = append(c.result.Modules, snapshot.Module{Module: m})
	}
}

// withheld is the problem of an unconfirmed file that is left out of a snapshot: the
// file, memory that was read from it, or both.
func withheld(m *target.Module, file, memory bool) string {
	what := "the file"
	switch {
	case file && memory:
		what = "the file, and memory that was read from it,"
	case memory:
		what = "memory that was read from it"
	}
	why := "the target does not state its build ID"
	switch {
	case len(m.Object.BuildID()) == 0:
		why = "it has no build ID that the target could state"
	case len(m.BuildID) > 0:
		why = fmt.Sprintf("its build ID is %x, the target states %x", m.Object.BuildID(), m.BuildID)
	}
	return fmt.Sprintf("%s: %s is left out, as %s; --any-file puts it in", m.Object.Path(), what, why)
}

// companions returns the files that are kept with the code object of a module.
func (c *collector) companions(m *code.Module) (list []snapshot.Companion) {
	companions, problems := m.Code.Companions()
	for _, p := range problems {
		c.problem("module %s: %s", m.Path, p)
	}
	for i := range companions {
		list = append(list, snapshot.Companion{Suffix: companions[i].Suffix(), Data: companions[i].Data()})
	}
	return list
}

// unmapped makes modules of the JIT code that the walks met, which is in no module.
// placed are the segments of modules, by start.
func (c *collector) unmapped(placed []trace.Segment) []*target.Module {
	if p := c.instances[instance{}]; p != nil {
		for number := range p.all {
			start, _, _ := p.all[number].run(0)
			address := number<<pageBits + uint64(start)
			if _, executable := c.Target.Mapped(address); executable {
				c.noteCode(address)
			}
		}
	}
	numbers := make([]uint64, 0, len(c.code))
	for number := range c.code {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	var list []*target.Module
	for _, number := range numbers {
		start, end := number<<pageBits, (number+1)<<pageBits-1
		i := sort.Search(len(placed), func(i int) bool { return placed[i].Start > end })
		if i > 0 && placed[i-1].Start+placed[i-1].Size > start || end == ^uint64(0) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].Arch == c.code[number] {
			if s := &list[n-1].Segments[0]; s.Start+s.Size == start {
				s.Size += pageSize
				continue
			}
		}
		list = append(list, &target.Module{Module: trace.Module{Arch: c.code[number], Segments: []trace.Segment{{
			Address: start, Size: pageSize, Start: start, Executable: true,
		}}}})
	}
	return list
}
