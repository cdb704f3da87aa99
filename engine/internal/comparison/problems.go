// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// problems are about the comparison as a whole.
func (r *result) problems(processes []*process) (list []string) {
	list = append(list, r.twins(processes)...)
	list = append(list, r.spread(processes)...)
	list = append(list, r.singleMoments()...)
	return append(list, r.threadFacts(processes)...)
}

// twins are the processes of one rank.
func (r *result) twins(processes []*process) []string {
	byRank := map[string][]*process{}
	for _, p := range processes {
		if rank := p.labels[rankLabel]; rank != "" {
			byRank[rank] = append(byRank[rank], p)
		}
	}
	var ranks []string
	for rank, list := range byRank {
		if len(list) > 1 {
			ranks = append(ranks, rank)
		}
	}
	if len(ranks) == 0 {
		return nil
	}
	first := byRank[slices.MinFunc(ranks, compareNatural)]
	slices.SortFunc(first, func(a, b *process) int { return slices.CompareFunc(a.records, b.records, r.compareRecords) })
	example := fmt.Sprintf("%s and %s", first[0].path, first[1].path)
	if len(ranks) == 1 {
		return []string{fmt.Sprintf("rank %s is the label of %d processes, such as %s: they are targets of their own", ranks[0], len(first), example)}
	}
	return []string{fmt.Sprintf("ranks %s are each the label of several processes, such as %s: they are targets of their own", Short(ranks), example)}
}

// maxSpread is within which time targets are taken to be of one moment.
const maxSpread = time.Minute

// span is the first and the last time, each with its host.
type span struct{ first, last time.Time }

func (s *span) add(t time.Time) {
	if s.first.IsZero() || t.Before(s.first) {
		s.first = t
	}
	if t.After(s.last) {
		s.last = t
	}
}

func (s *span) length() time.Duration { return s.last.Sub(s.first) }

// spread says where the first moments of targets are far apart.
func (r *result) spread(processes []*process) []string {
	var all span
	byHost := map[string]*span{}
	for _, p := range processes {
		if len(p.moments) == 0 || p.moments[0].taken.IsZero() {
			continue
		}
		host := r.text(p.moments[0].host)
		if byHost[host] == nil {
			byHost[host] = &span{}
		}
		byHost[host].add(p.moments[0].taken)
		all.add(p.moments[0].taken)
	}
	hosts := slices.SortedFunc(maps.Keys(byHost), func(a, b string) int {
		return cmp.Or(cmp.Compare(byHost[b].length(), byHost[a].length()), compareNatural(a, b))
	})
	switch {
	case len(hosts) == 0 || all.length() <= maxSpread:
		return nil
	case byHost[hosts[0]].length() <= maxSpread:
		return []string{fmt.Sprintf("the times at which targets were taken differ by %s between hosts: either they were not taken at one moment, or clocks differ",
			all.length().Round(time.Second))}
	case hosts[0] == "":
		return []string{fmt.Sprintf("targets were taken within %s, not at one moment, or clocks differ", all.length().Round(time.Second))}
	}
	return []string{fmt.Sprintf("targets of host %s were taken within %s, not at one moment", hosts[0], byHost[hosts[0]].length().Round(time.Second))}
}

// singleMoments says that some targets have one moment, and others several.
func (r *result) singleMoments() []string {
	one, several := 0, 0
	for i := range r.units {
		switch n := len(r.units[i].process.moments); {
		case n == 1:
			one++
		case n > 1:
			several++
		}
	}
	if one == 0 || several == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d targets have one moment, and %d several: whether threads of the former move is not known", one, several)}
}

// threadFacts are the facts about processes none of whose threads crashed, where threads are compared.
func (r *result) threadFacts(processes []*process) (list []string) {
	if !r.out.ByThread {
		return nil
	}
	crashed := map[*process]bool{}
	for i := range r.units {
		crashed[r.units[i].process] = crashed[r.units[i].process] || r.units[i].crashed
	}
	for _, p := range processes {
		if len(p.moments) == 0 || crashed[p] {
			continue
		}
		for _, n := range p.last().facts {
			list = append(list, p.path+": "+r.text(n))
		}
	}
	slices.SortFunc(list, compareNatural)
	return list
}
