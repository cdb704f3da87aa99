// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// builds are the modules of which targets have different builds.
type builds struct {
	// bySet are the builds of differing modules in each set of modules, by name.
	bySet map[uint32]map[string][]string
	// names are the differing modules in stacks, sorted, at most maxSplitting. own is which of them a node of
	// functions is in, from 1 on, where none of its callers is in it, and outer the next such node
	// further out; 0: there is none.
	names      []string
	own, outer []uint32
	met        []int // by node: the last view that met it
}

// maxSplitting bounds the modules whose builds divide classes.
const maxSplitting = 256

// makeBuilds finds the modules of which targets have different builds.
func (r *result) makeBuilds() {
	b := &builds{bySet: map[uint32]map[string][]string{}}
	r.builds = b
	first, differ := map[uint32][]module{}, map[uint32]bool{}
	for i := range r.units {
		u := &r.units[i]
		if u.view < 0 || b.bySet[u.modules()] != nil {
			continue
		}
		b.bySet[u.modules()] = map[string][]string{}
		for _, run := range byName(r.part.moduleSets[u.modules()]) {
			name := run[0].name
			if first[name] == nil {
				first[name] = run
			} else if !slices.Equal(first[name], run) {
				differ[name] = true
			}
		}
	}
	for set, list := range b.bySet {
		for _, run := range byName(r.part.moduleSets[set]) {
			if differ[run[0].name] {
				name := r.text(run[0].name)
				for _, m := range run {
					list[name] = append(list[name], r.text(m.build))
				}
				slices.Sort(list[name])
			}
		}
	}
	names := map[string]bool{}
	for n := range differ {
		names[r.text(n)] = true
	}
	b.find(r.trees, names)
}

func (u *unit) modules() uint32 { return u.process.last().modules }

// byName divides a sorted set into the builds of each module.
func byName(set []module) (list [][]module) {
	for start := 0; start < len(set); {
		end := start
		for end < len(set) && set[end].name == set[start].name {
			end++
		}
		list = append(list, set[start:end])
		start = end
	}
	return list
}

// find finds the nodes that are in differing modules.
func (b *builds) find(t *trees, differ map[string]bool) {
	inStacks := map[string]bool{}
	for i := range t.attributes {
		if name := t.attributes[i].Module; differ[name] {
			inStacks[name] = true
		}
	}
	b.names = slices.Sorted(maps.Keys(inStacks))
	b.names = b.names[:min(len(b.names), maxSplitting)]
	number := map[string]uint32{}
	for i, name := range b.names {
		number[name] = uint32(i) + 1 //nolint:gosec // bounded
	}
	n := t.functions.size()
	b.own, b.outer, b.met = make([]uint32, n), make([]uint32, n), make([]int, n)
	if len(b.names) == 0 {
		return
	}
	isOnPath := make([]bool, len(b.names)+1)
	var path []uint32 // nodes whose own is not 0
	for i := 1; i < n; i++ {
		node := uint32(i) //nolint:gosec // memory has room for fewer
		for len(path) > 0 && t.functions.last[path[len(path)-1]] < node {
			isOnPath[b.own[path[len(path)-1]]] = false
			path = path[:len(path)-1]
		}
		if len(path) > 0 {
			b.outer[node] = path[len(path)-1]
		}
		if m := number[t.attributes[node].Module]; m != 0 && !isOnPath[m] {
			b.own[node], isOnPath[m] = m, true
			path = append(path, node)
		}
	}
}

// inView lists the differing modules in the stacks of a view, by name.
func (b *builds) inView(v *view, number int) (list []string) {
	if len(b.names) == 0 {
		return nil
	}
	for i := range v.functions {
		node := v.functions[i].function
		if b.own[node] == 0 {
			node = b.outer[node]
		}
		for ; node != 0 && b.met[node] != number+1; node = b.outer[node] {
			b.met[node] = number + 1
			list = append(list, b.names[b.own[node]-1])
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ofUnit are the builds of the differing modules in the stacks of a unit.
func (r *result) buildsOf(u *unit) (list []trace.ModuleBuild) {
	v := r.views[u.view]
	if v.modules == nil {
		v.modules = append([]string{}, r.builds.inView(v, u.view)...)
	}
	for _, name := range v.modules {
		for _, build := range r.builds.bySet[u.modules()][name] {
			list = append(list, trace.ModuleBuild{Name: name, BuildID: build})
		}
	}
	return list
}

// maxBuildTargets bounds the targets in the lists of all modules together.
const maxBuildTargets = 1 << 22

// writeModules lists the modules of which targets have different builds.
func (r *result) writeModules() {
	type build struct{ name, id string }
	targets := map[build]int{}
	units := map[uint32][]int{} // by set of modules
	unknown := map[string][]int{}
	for i := range r.units {
		u := &r.units[i]
		if u.view < 0 {
			continue
		}
		units[u.modules()] = append(units[u.modules()], i)
		for _, name := range r.views[u.view].modules {
			if r.builds.bySet[u.modules()][name] == nil {
				unknown[name] = append(unknown[name], i)
			}
		}
	}
	sets := map[build][]uint32{}
	for set, list := range r.builds.bySet {
		for name, ids := range list {
			for _, id := range ids {
				targets[build{name, id}] += len(units[set])
				sets[build{name, id}] = append(sets[build{name, id}], set)
			}
		}
	}
	for name, list := range unknown {
		targets[build{name, ""}] = len(list)
	}
	longest := longestList(slices.Collect(maps.Values(targets)), maxBuildTargets)
	byModule := map[string][]trace.TargetsOfBuild{}
	for b, count := range targets {
		one := trace.TargetsOfBuild{BuildID: b.id, Count: count}
		if count <= longest {
			one.Targets = append(one.Targets, unknown[b.name][:len(unknown[b.name])*isTrue(b.id == "")]...)
			for _, set := range sets[b] {
				one.Targets = append(one.Targets, units[set]...)
			}
			slices.Sort(one.Targets)
		}
		byModule[b.name] = append(byModule[b.name], one)
	}
	for _, name := range slices.Sorted(maps.Keys(byModule)) {
		list := byModule[name]
		slices.SortFunc(list, func(a, b trace.TargetsOfBuild) int {
			return cmp.Or(cmp.Compare(a.Count, b.Count), strings.Compare(a.BuildID, b.BuildID))
		})
		r.out.Modules = append(r.out.Modules, trace.ModuleBuilds{Name: name, Builds: list})
	}
}

func isTrue(b bool) int {
	if b {
		return 1
	}
	return 0
}

// longestList is how long lists may be so that all that are no longer have at most a number of elements together.
func longestList(lengths []int, most int) int {
	slices.Sort(lengths)
	total := 0
	for i, n := range lengths {
		if total += n; total > most {
			// Of equally long ones all or none.
			for i > 0 && lengths[i-1] == n {
				i--
			}
			if i == 0 {
				return 0
			}
			return lengths[i-1]
		}
	}
	if len(lengths) == 0 {
		return 0
	}
	return lengths[len(lengths)-1]
}
