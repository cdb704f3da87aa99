// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/engine/trace"
)

func (p *packing) writeClasses() {
	list := make([]*trace.TargetClass, len(p.classes))
	var variants []*trace.ClassVariant
	for i, class := range p.classes {
		list[i] = &p.Classes[class]
		for k := range list[i].Variants {
			variants = append(variants, &list[i].Variants[k])
		}
	}
	p.list(len(list))
	column(p, list, func(c **trace.TargetClass) uint64 { return uint64(len((*c).Targets)) })
	column(p, list, func(c **trace.TargetClass) uint64 { return uint64(len((*c).Variants)) })
	textColumn(p, list, func(c **trace.TargetClass) string { return (*c).Unread })
	textColumn(p, list, func(c **trace.TargetClass) string { return (*c).Signature })
	p.textLists(len(list), func(i int) []string { return few(list[i].Facts, maxFew) })
	p.textLists(len(list), func(i int) []string { return buildTexts(list[i].Builds) })
	for _, name := range p.labels {
		textColumn(p, list, func(c **trace.TargetClass) string { return (*c).Labels[name] })
	}
	p.writePartings(list)
	threads := make([][]trace.ClassThread, len(list))
	for i := range list {
		threads[i] = list[i].Threads
	}
	p.writeThreads(threads, p.functions)
	p.list(len(variants))
	column(p, variants, func(v **trace.ClassVariant) uint64 { return uint64(len((*v).Targets)) })
	threads = make([][]trace.ClassThread, len(variants))
	for i := range variants {
		threads[i] = variants[i].Threads
	}
	p.writeIDs(p.writeThreads(threads, p.lines))
}

// buildTexts are the names and the builds of modules, alternating.
func buildTexts(builds []trace.ModuleBuild) (list []string) {
	for _, b := range few(builds, maxFew) {
		list = append(list, b.Name, b.BuildID)
	}
	return list
}

// writePartings writes where classes part from the others, of those that do.
func (p *packing) writePartings(list []*trace.TargetClass) {
	parting := func(number func(x *trace.Parting) uint64) {
		for _, c := range list {
			if c.PartsAt != nil {
				p.Uint(number(c.PartsAt))
			}
		}
	}
	node := func(i int) uint64 {
		number, _ := p.functions.place(i)
		return uint64(number)
	}
	column(p, list, func(c **trace.TargetClass) uint64 { return flag((*c).PartsAt != nil, 1) })
	parting(func(x *trace.Parting) uint64 { return p.texts.number(x.Role) })
	parting(func(x *trace.Parting) uint64 { return node(x.Node) })
	parting(func(x *trace.Parting) uint64 { return node(x.Last) })
	parting(func(x *trace.Parting) uint64 { return node(x.Here) })
	parting(func(x *trace.Parting) uint64 { return flag(x.IsMissing, 1) })
	parting(func(x *trace.Parting) uint64 { return uint64(x.More) })
	parting(func(x *trace.Parting) uint64 { return uint64(len(few(x.There, trace.MaxBranches))) })
	for _, c := range list {
		if c.PartsAt == nil {
			continue
		}
		for _, b := range few(c.PartsAt.There, trace.MaxBranches) {
			p.Uint(node(b.Node))
			p.list(b.Targets)
			p.list(b.Threads)
		}
	}
}

// Flags of a thread.
const (
	isMoving = 1 << iota
	isStill
	isCrashed
)

// writeThreads writes lists of threads with their stacks in a tree. Of too many it writes the first of each
// list, and how many are left out; it returns the ones that it wrote.
func (p *packing) writeThreads(lists [][]trace.ClassThread, f *forest) (all []trace.ClassThread) {
	share := max(p.limits.threads/max(len(lists), 1), 1)
	total := 0
	for _, list := range lists {
		total += len(list)
	}
	if total <= p.limits.threads {
		share = total
	}
	for _, list := range lists {
		part := few(list, share)
		p.list(len(part))
		all = append(all, part...)
	}
	for _, list := range lists {
		p.list(max(len(list)-share, 0))
	}
	if f == p.lines {
		p.lacks(total-len(all), "stack", " in the reports of "+word(p.Comparison)+"s with the most stacks")
	}
	textColumn(p, all, func(t *trace.ClassThread) string { return t.Role })
	column(p, all, func(t *trace.ClassThread) uint64 { number, _ := f.place(t.Node); return uint64(number) })
	column(p, all, func(t *trace.ClassThread) uint64 { _, cut := f.place(t.Node); return uint64(cut) })
	column(p, all, func(t *trace.ClassThread) uint64 {
		return flag(t.Moves, isMoving) | flag(t.Still, isStill) | flag(t.Crashed, isCrashed)
	})
	column(p, all, func(t *trace.ClassThread) uint64 { return uint64(t.Threads) })
	column(p, all, func(t *trace.ClassThread) uint64 { return uint64(t.Least) })
	column(p, all, func(t *trace.ClassThread) uint64 { return uint64(t.Most) })
	column(p, all, func(t *trace.ClassThread) uint64 { return uint64(t.Incomplete) })
	textColumn(p, all, func(t *trace.ClassThread) string { return t.Ends })
	return all
}

// writeIDs writes the IDs of threads: twice a number, or twice a text and 1 more.
func (p *packing) writeIDs(threads []trace.ClassThread) {
	isListed := func(id trace.ClassThreadID) bool {
		return id.Target >= 0 && id.Target < len(p.targets) && p.targets[id.Target] > 0
	}
	var ids []trace.ClassThreadID
	for i := range threads {
		list := slices.DeleteFunc(slices.Clone(few(threads[i].IDs, trace.MaxClassIDs)), func(id trace.ClassThreadID) bool { return !isListed(id) })
		p.list(len(list))
		ids = append(ids, list...)
	}
	last := int32(0)
	for _, id := range ids {
		p.Int(int64(p.targets[id.Target] - last))
		last = p.targets[id.Target]
	}
	column(p, ids, func(id *trace.ClassThreadID) uint64 {
		if n, err := strconv.ParseUint(id.ID, 10, 52); err == nil && strconv.FormatUint(n, 10) == id.ID {
			return 2 * n
		}
		return 2*p.texts.number(id.ID) + 1
	})
}

// writeModules writes the modules of which there are several builds.
func (p *packing) writeModules() {
	list := few(p.Modules, maxMany)
	p.lacks(len(p.Modules)-len(list), "module", " of which there are several builds")
	p.list(len(list))
	textColumn(p, list, func(m *trace.ModuleBuilds) string { return m.Name })
	for i := range list {
		builds := few(list[i].Builds, maxMany)
		p.list(len(builds))
		p.list(len(list[i].Builds) - len(builds))
		for k := range builds {
			p.text(builds[k].BuildID)
			p.list(builds[k].Count)
			p.ranges(builds[k].Targets)
		}
	}
}

// ranges writes targets of the page as ranges: how far it is from the end of the one before, and how long.
func (p *packing) ranges(targets []int) {
	var list [][2]int32
	for _, i := range targets {
		n := p.targets[i]
		if n == 0 {
			continue
		}
		if k := len(list) - 1; k >= 0 && list[k][1] == n {
			list[k][1]++
			continue
		}
		list = append(list, [2]int32{n, n + 1})
	}
	p.list(len(list))
	last := int32(0)
	for _, r := range list {
		p.Int(int64(r[0] - last))
		p.list(int(r[1] - r[0]))
		last = r[1]
	}
}

// writeCollectives writes the collective operations.
func (p *packing) writeCollectives() {
	list := few(p.Collectives, maxMany)
	p.lacks(len(p.Collectives)-len(list), "collective operation", "")
	p.list(len(list))
	textColumn(p, list, func(c *trace.Collective) string { return c.Group })
	for i := range list {
		p.Int(list[i].Sequence)
	}
	for _, text := range []func(c *trace.Collective) string{
		func(c *trace.Collective) string { return c.Operation },
		func(c *trace.Collective) string { return c.Ranks },
		func(c *trace.Collective) string { return c.Entered },
		func(c *trace.Collective) string { return c.Completed },
		func(c *trace.Collective) string { return c.Missing },
		func(c *trace.Collective) string { return c.Unrecorded },
	} {
		textColumn(p, list, text)
	}
	p.textLists(len(list), func(i int) []string { return few(list[i].Different, maxFew) })
	p.textLists(len(list), func(i int) []string { return few(list[i].Frames, maxFew) })
}
