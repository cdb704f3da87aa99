// SPDX-License-Identifier: Apache-2.0

package flightrecorder

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

const (
	// maxOfGroup bounds the operations of one group that Join returns, and maxAll all of them.
	maxOfGroup, maxAll = 64, 1 << 12
	// maxLooks bounds how many states of ranks are looked at.
	maxLooks = 1 << 26
)

// Join returns the operations in which ranks wait, or that they have not entered, by group and number, and the first
// operation of each group about which ranks do not agree. Of operations in a row about which all is the same the first is
// returned. Each problem is a sentence. The result does not depend on the order of the dumps, of which one
// without a rank is left out.
func Join(dumps []*Dump) (list []trace.Collective, problems []string) {
	j := &joining{ranks: map[int64]*Dump{}, looks: maxLooks}
	j.choose(dumps)
	groups := j.groups()
	for _, g := range groups {
		list = append(list, j.operations(g)...)
		list = append(list, j.pairs(g)...)
		if len(list) > maxAll {
			list = list[:maxAll]
			j.problems = append(j.problems, fmt.Sprintf("of the operations that flight recorders have, those behind the first %d are left out", maxAll))
			break
		}
	}
	return list, j.problems
}

// joining has the dumps while they are joined.
type joining struct {
	ranks    map[int64]*Dump
	problems []string
	looks    int
}

// choose keeps one dump for each rank, the newest.
func (j *joining) choose(dumps []*Dump) {
	sorted := slices.SortedFunc(slices.Values(dumps), func(a, b *Dump) int {
		if c := cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(b.Newest, a.Newest), cmp.Compare(a.Path, b.Path)); c != 0 {
			return c
		}
		return bytes.Compare(a.Encode(), b.Encode())
	})
	for i, d := range sorted {
		switch {
		case i > 0 && d.Path == sorted[i-1].Path && bytes.Equal(d.Encode(), sorted[i-1].Encode()): // it came twice
		case d.Rank < 0:
			j.problems = append(j.problems, fmt.Sprintf("%s: a flight recorder's dump of a rank that is not known, as its name does not end in the number of a rank in its groups: it is left out", d.Path))
		case j.ranks[d.Rank] == nil:
			j.ranks[d.Rank] = d
		default:
			j.problems = append(j.problems, fmt.Sprintf("%s and %s: two dumps of the flight recorder of rank %d: the second one is left out, which is not newer", j.ranks[d.Rank].Path, d.Path, d.Rank))
		}
	}
}

// members is a process group with the dumps of its ranks.
type members struct {
	name, description string
	ranks             []int64
	isKnown           bool // ranks are as pg_config has them
	own               map[int64]*Group
}

// groups returns the process groups by name and ranks. Groups of one name may have other ranks on other hosts.
func (j *joining) groups() []*members {
	all := map[[2]string]*members{}
	byName := map[string][]*members{}
	order := slices.Sorted(maps.Keys(j.ranks))
	each := func(f func(rank int64, g *Group)) {
		for _, rank := range order {
			for i := range j.ranks[rank].Groups {
				f(rank, &j.ranks[rank].Groups[i])
			}
		}
	}
	find := func(name string, ranks []int64, isKnown bool) *members {
		key := [2]string{name, short(ranks)}
		if all[key] == nil {
			all[key] = &members{name: name, ranks: ranks, isKnown: isKnown, own: map[int64]*Group{}}
			byName[name] = append(byName[name], all[key])
		}
		return all[key]
	}
	use := func(m *members, rank int64, g *Group) {
		m.own[rank] = g
		m.description = cmp.Or(m.description, g.Description)
	}
	each(func(rank int64, g *Group) {
		if g.Ranks != nil {
			use(find(g.Name, g.Ranks, true), rank, g)
		}
	})
	// A rank that does not say who is in the group is in that of the same name, if there is one with it.
	each(func(rank int64, g *Group) {
		if g.Ranks != nil {
			return
		}
		var fits []*members
		for _, m := range byName[g.Name] {
			if _, isMember := slices.BinarySearch(m.ranks, rank); isMember && m.isKnown {
				fits = append(fits, m)
			}
		}
		if len(fits) == 1 {
			use(fits[0], rank, g)
		} else {
			use(find(g.Name, nil, false), rank, g)
		}
	})
	for _, m := range all {
		if !m.isKnown {
			m.ranks = slices.Sorted(maps.Keys(m.own))
		}
	}
	return slices.SortedFunc(maps.Values(all), func(a, b *members) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), strings.Compare(a.name, b.name), slices.Compare(a.ranks, b.ranks))
	})
}

// title is the name of a group as it is shown.
func (m *members) title() string {
	if m.description == "" || m.description == "undefined" {
		return m.name
	}
	return m.name + " (" + m.description + ")"
}

// standing is where a rank stands in an operation.
type standing int

const (
	entered standing = iota
	completed
	missing
	unrecorded
	standings
)

// standingOf returns where a rank stands in the operation of a number, and its record; nil: there is none.
func (j *joining) standingOf(m *members, rank, sequence int64) (standing, *Record) {
	d, g := j.ranks[rank], m.own[rank]
	switch {
	case d == nil:
		return unrecorded, nil
	case g == nil && d.IsCut:
		return unrecorded, nil
	case g == nil:
		return missing, nil
	}
	if i, ok := slices.BinarySearchFunc(g.Records, sequence, func(r Record, n int64) int { return cmp.Compare(r.Sequence, n) }); ok {
		r := &g.Records[i]
		if r.IsCompleted {
			return completed, r
		}
		return entered, r
	}
	switch {
	case sequence <= g.Completed:
		return completed, nil
	case sequence > g.Enqueued && (len(g.Records) > 0 || g.Enqueued > 0 || !d.IsCut):
		return missing, nil
	case len(g.Records) == 0 || sequence < g.Records[0].Sequence:
		return unrecorded, nil
	}
	return entered, nil
}

// turns returns the numbers at which something may be other than at the number before.
func (m *members) turns() []int64 {
	all := map[int64]bool{}
	for _, rank := range m.ranks {
		g := m.own[rank]
		if g == nil {
			continue
		}
		for _, n := range [...]int64{g.Completed + 1, g.Enqueued, g.Enqueued + 1} {
			all[n] = true
		}
		for i := range g.Records {
			all[g.Records[i].Sequence] = true
		}
	}
	most := int64(0)
	for _, g := range m.own {
		most = max(most, g.Enqueued)
	}
	if most > 0 {
		all[1] = true // of a rank that has entered none
	}
	list := slices.Sorted(maps.Keys(all))
	return slices.DeleteFunc(list, func(n int64) bool { return n < 1 || n > most })
}

// operations returns the operations of a group that are not completed by all.
func (j *joining) operations(m *members) (list []trace.Collective) {
	last, isDifferent, left := [standings]string{}, false, 0
	for _, n := range m.turns() {
		if j.looks -= len(m.ranks); j.looks < 0 {
			j.problems = append(j.problems, fmt.Sprintf("the flight recorders' operations of group %s from %d on are not compared: there are too many", m.title(), n))
			break
		}
		c, sets := j.operation(m, n)
		isSame := sets == last
		last = sets
		isOpen := c.Entered != "" || c.Missing != ""
		if len(c.Different) > 0 && isDifferent {
			c.Different = nil // which of the ones behind it belong together is not known
		}
		if (!isOpen || isSame) && len(c.Different) == 0 {
			continue
		}
		isDifferent = isDifferent || len(c.Different) > 0
		if len(list) == maxOfGroup {
			left++
			continue
		}
		list = append(list, c)
	}
	if left > 0 {
		j.problems = append(j.problems, fmt.Sprintf("of group %s the flight recorders have %d further operations that are not completed by all ranks", m.title(), left))
	}
	return list
}

// operation returns one operation of a group, and who stands where.
func (j *joining) operation(m *members, sequence int64) (c trace.Collective, sets [standings]string) {
	var ranks [standings][]int64
	names, sizes := map[string][]int64{}, map[string][]int64{}
	shown := map[string]string{}
	c = trace.Collective{Group: m.title(), Sequence: sequence, Ranks: short(m.ranks)}
	for _, rank := range m.ranks {
		s, r := j.standingOf(m, rank, sequence)
		ranks[s] = append(ranks[s], rank)
		if r == nil {
			continue
		}
		names[r.Operation] = append(names[r.Operation], rank)
		sizes[r.Agreed] = append(sizes[r.Agreed], rank)
		shown[r.Agreed] = cmp.Or(shown[r.Agreed], r.Sizes)
		c.Operation = cmp.Or(c.Operation, r.Operation)
		if s == entered && c.Frames == nil {
			c.Frames = slices.Clone(r.Frames)
		}
	}
	for s := range sets {
		sets[s] = short(ranks[s])
	}
	c.Entered, c.Completed, c.Missing, c.Unrecorded = sets[entered], sets[completed], sets[missing], sets[unrecorded]
	switch {
	case len(names) > 1:
		c.Operation = mostFrequent(names)
		c.Different = sentences(names, "%s called %s", nil)
	case len(sizes) > 1:
		c.Different = sentences(sizes, "%s have the sizes %s", shown)
	}
	return c, sets
}

// ordered returns the keys of a map of ranks, the one with the most ranks first.
func ordered(ranks map[string][]int64) []string {
	return slices.SortedFunc(maps.Keys(ranks), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(ranks[b]), len(ranks[a])), cmp.Compare(ranks[a][0], ranks[b][0]))
	})
}

func mostFrequent(ranks map[string][]int64) string { return ordered(ranks)[0] }

// sentences describes which ranks have which values. shown has the values as they are shown; nil: they are shown as they are.
func sentences(ranks map[string][]int64, format string, shown map[string]string) (list []string) {
	keys := ordered(ranks)
	for i, key := range keys {
		if i == maxTensors {
			return append(list, fmt.Sprintf("%d further groups of ranks differ, too", len(keys)-i))
		}
		who := "ranks " + short(ranks[key])
		if len(ranks[key]) == 1 {
			who = "rank " + short(ranks[key])
			format = strings.Replace(format, " have ", " has ", 1)
		}
		value := key
		if shown != nil {
			value = shown[key]
		}
		list = append(list, fmt.Sprintf(format, who, value))
		format = strings.Replace(format, " has ", " have ", 1)
	}
	return list
}

// pairs returns the operations between two ranks of a group that have not completed. The other rank is missing
// where its record is there and has no operation of the other kind that waits for this one.
func (j *joining) pairs(m *members) (list []trace.Collective) {
	left := 0
	for _, rank := range m.ranks {
		g := m.own[rank]
		if g == nil {
			continue
		}
		for i := range g.Pairs {
			if len(list) == maxOfGroup {
				left++
				continue
			}
			if c, ok := j.pair(m, rank, &g.Pairs[i]); ok {
				list = append(list, c)
			}
		}
	}
	if left > 0 {
		j.problems = append(j.problems, fmt.Sprintf("of group %s the flight recorders have %d further operations between two ranks that have not completed", m.title(), left))
	}
	return list
}

// pair returns an operation of a rank with another one; false where it stands with the other one.
func (j *joining) pair(m *members, rank int64, p *Pair) (c trace.Collective, ok bool) {
	c = trace.Collective{Group: m.title(), Sequence: p.Sequence, Operation: p.Operation, Ranks: short([]int64{rank}), Entered: short([]int64{rank}), Frames: slices.Clone(p.Frames)}
	number := p.From
	if p.IsSend {
		number = p.To
	}
	// The numbers count within the group, so without its members it is not known whose they are.
	if !m.isKnown || number < 0 || number >= int64(len(m.ranks)) {
		return c, true
	}
	peer := m.ranks[number]
	both := []int64{min(rank, peer), max(rank, peer)}
	c.Ranks = short(both)
	d, g := j.ranks[peer], m.own[peer]
	switch {
	case d == nil || g == nil && d.IsCut:
		c.Unrecorded = short([]int64{peer})
	case g != nil && slices.ContainsFunc(g.Pairs, func(q Pair) bool { return q.From == p.From && q.To == p.To && q.IsSend != p.IsSend }):
		c.Entered = short(both)
		return c, p.IsSend // it is shown once
	default:
		c.Missing = short([]int64{peer})
	}
	return c, true
}
