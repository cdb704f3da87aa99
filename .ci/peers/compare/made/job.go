// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// state is where the threads of a rank stand, and what happened to it.
type state struct {
	threads         []place
	isCrashed       bool
	hasOtherLibrary bool
}

// key groups the states by a plain rule: the set of places, what happened, and the library.
func (s *state) key() string {
	var list []string
	for _, p := range s.threads {
		list = append(list, p.String())
	}
	slices.Sort(list)
	return fmt.Sprint(slices.Compact(list), s.isCrashed, s.hasOtherLibrary)
}

// job is the ranks of one job, of which some were made to differ.
type job struct {
	ranks []state
	// planted are the ranks that differ alone, by how.
	planted map[string]int
}

// kinds are the ways in which one rank may differ.
var kinds = []struct {
	name  string
	plant func(r *rand.Rand, s *state)
}{
	{"elsewhere", func(r *rand.Rand, s *state) {
		which := 1 + r.IntN(len(roles)-2)
		s.set(which, odd(which).place)
	}},
	{"slow", func(_ *rand.Rand, s *state) { s.set(0, 2) }},
	{"checkpoint", func(_ *rand.Rand, s *state) { s.set(0, 3) }},
	{"crashed", func(_ *rand.Rand, s *state) {
		s.set(len(roles)-1, odd(len(roles)-1).place)
		s.isCrashed = true
	}},
	{"library", func(_ *rand.Rand, s *state) { s.hasOtherLibrary = true }},
}

// set moves the last thread of a role to a place.
func (s *state) set(role, to int) {
	for i := range slices.Backward(s.threads) {
		if s.threads[i].role == role {
			s.threads[i].place = to
			return
		}
	}
}

// newJob makes a job of so many ranks. Threads of a role are spread over some of its places at random, so that
// each rank has a thread at each of them.
func newJob(r *rand.Rand, ranks int, plant []int, isHalfAhead bool) *job {
	j := &job{planted: map[string]int{}, ranks: make([]state, ranks)}
	used := make([][]int, len(roles))
	for i := range roles {
		healthy := r.Perm(max(len(roles[i].places)-1, 1))
		used[i] = healthy[:1+r.IntN(min(len(healthy), max(roles[i].count-1, 1)))]
	}
	used[0] = []int{0}
	for k := range j.ranks {
		for i := range roles {
			for n := range roles[i].count {
				at := used[i][r.IntN(len(used[i]))]
				if n < len(used[i]) {
					at = used[i][n]
				}
				j.ranks[k].threads = append(j.ranks[k].threads, place{i, at})
			}
		}
	}
	order := r.Perm(ranks)
	for i, kind := range plant {
		rank := order[i]
		kinds[kind].plant(r, &j.ranks[rank])
		j.planted[kinds[kind].name] = rank
	}
	if isHalfAhead {
		for _, rank := range order[len(plant) : len(plant)+ranks/2] {
			j.ranks[rank].set(0, 1)
		}
	}
	return j
}

// randomJob makes a small job in which some ranks differ.
func randomJob(r *rand.Rand) *job {
	return newJob(r, 16+r.IntN(49), r.Perm(len(kinds))[:r.IntN(len(kinds)+1)], r.IntN(3) == 0)
}

// groups returns the ranks of a job by the plain rule, each group in order.
func (j *job) groups() (list [][]int) {
	index := map[string]int{}
	for rank := range j.ranks {
		key := j.ranks[rank].key()
		i, ok := index[key]
		if !ok {
			i = len(list)
			index[key] = i
			list = append(list, nil)
		}
		list[i] = append(list[i], rank)
	}
	return list
}

// check holds a comparison against the plain grouping. It returns the first difference; "": there is none.
func (j *job) check(c *trace.Comparison) string {
	var got, want []string
	last := 0
	for i := range c.Classes {
		class := &c.Classes[i]
		if len(class.Targets) < last {
			return fmt.Sprintf("class %d has %d targets, fewer than the one before", i, len(class.Targets))
		}
		last = len(class.Targets)
		got = append(got, fmt.Sprint(ranksOf(c, class.Targets)))
	}
	for _, g := range j.groups() {
		want = append(want, fmt.Sprint(g))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		return fmt.Sprintf("the classes are\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for name, rank := range j.planted {
		if problem := j.checkPlanted(c, name, rank); problem != "" {
			return problem
		}
	}
	return ""
}

// checkPlanted reports whether a rank that was made to differ is found, before all classes of more than one rank, and
// with the frame where it differs.
func (j *job) checkPlanted(c *trace.Comparison, name string, rank int) string {
	at := slices.IndexFunc(c.Classes, func(class trace.TargetClass) bool {
		return len(class.Targets) == 1 && ranksOf(c, class.Targets)[0] == rank
	})
	if at < 0 {
		return fmt.Sprintf("rank %d (%s) is in no class of its own", rank, name)
	}
	class := &c.Classes[at]
	if name == "library" {
		if len(class.Builds) == 0 {
			return fmt.Sprintf("rank %d has another library, which its class does not name", rank)
		}
		return ""
	}
	if name == "crashed" && !slices.Contains(class.Facts, "SIGSEGV / SEGV_MAPERR") {
		return fmt.Sprintf("rank %d crashed, and the facts of its class are %q", rank, class.Facts)
	}
	if class.PartsAt == nil || class.PartsAt.Here < 0 {
		return fmt.Sprintf("rank %d (%s) parts from the others nowhere: %+v", rank, name, class.PartsAt)
	}
	here := c.Functions[class.PartsAt.Here].Frame.Function
	for _, p := range j.ranks[rank].threads {
		if here == p.String() && (p == odd(p.role) || p.role == 0 && p.place > 0) {
			return ""
		}
	}
	return fmt.Sprintf("rank %d (%s) parts from the others at %s, which is not where it differs", rank, name, here)
}

// ranksOf returns the ranks of targets, by their paths.
func ranksOf(c *trace.Comparison, targets []int) (list []int) {
	for _, t := range targets {
		path := c.Targets[t].Path
		rank := -1
		_, _ = fmt.Sscanf(path[strings.LastIndex(path, "/rank"):], "/rank%05d.snapshot", &rank)
		list = append(list, rank)
	}
	slices.Sort(list)
	return list
}

func sorted(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}
