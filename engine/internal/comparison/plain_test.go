// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file compares targets in a plain way: with texts and maps, and each with all others. It knows which targets are
// moments of one process, and nothing of trees.

// plainProcess is a process at its moments, in order.
type plainProcess struct {
	moments []*Target
	stands  []plainStand // of the last moment
	facts   []string
	builds  []string
}

// plainStand is a thread: its role and its stack, with a line for each frame, outermost first.
type plainStand struct {
	role, id         string
	functions, lines []string
	moves, crashed   bool
	still            bool
}

func (s *plainStand) key() string {
	return fmt.Sprint(s.role, "|", strings.Join(s.functions, "\n"), "|", s.moves, s.crashed)
}

func (s *plainStand) lineKey() string {
	return fmt.Sprint(s.role, "|", strings.Join(s.lines, "\n"), "|", s.moves, s.crashed)
}

func (s *plainStand) stack() string { return s.role + "|" + strings.Join(s.functions, "\n") }

func plainFunction(f *trace.ComparedFrame) string {
	if f.Function == "" { // behind the others
		return fmt.Sprintf("~@%s %016x %s %v", f.Module, f.Offset, f.Runtime, f.IsWave)
	}
	return fmt.Sprintf("%s@%s %s %v", f.Function, f.Module, f.Runtime, f.IsWave)
}

func plainLine(f *trace.ComparedFrame) string {
	return fmt.Sprintf("%s %s:%d:%d %v %v %#x", plainFunction(f), f.File, f.Line, f.Column, f.IsInlined, f.IsGuess, f.Offset)
}

func plainProcessOf(moments []*Target) *plainProcess {
	p := &plainProcess{moments: moments}
	last := moments[len(moments)-1]
	for i := range last.Threads {
		t := &last.Threads[i]
		s := plainStand{role: t.Role, id: t.ID, crashed: t.Crashed}
		for k := range t.Frames {
			s.functions, s.lines = append(s.functions, plainFunction(&t.Frames[k])), append(s.lines, plainLine(&t.Frames[k]))
		}
		seen := 1
		whole := slices.Clone(s.lines)
		for _, other := range moments[:len(moments)-1] {
			for k := range other.Threads {
				if other.Threads[k].ID != t.ID {
					continue
				}
				seen++
				var functions, lines []string
				for j := range other.Threads[k].Frames {
					functions = append(functions, plainFunction(&other.Threads[k].Frames[j]))
					lines = append(lines, plainLine(&other.Threads[k].Frames[j]))
				}
				if !slices.Equal(lines, whole) {
					s.moves = true
				}
				s.functions, s.lines = plainCommon(s.functions, functions), plainCommon(s.lines, lines)
			}
		}
		s.still = seen > 1 && !s.moves
		p.stands = append(p.stands, s)
	}
	p.facts = slices.Clone(last.Facts)
	sort.Strings(p.facts)
	return p
}

func plainCommon(a, b []string) (list []string) {
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		list = append(list, a[i])
	}
	return list
}

// plainClass is a class of targets.
type plainClass struct {
	key     string
	targets []int
	parting *plainParting
}

// plainParting is where a class parts.
type plainParting struct {
	role      string
	stack     string
	isMissing bool
	last      int // frames
	here      string
	there     []string // with counts, sorted
}

// plain compares processes, which are in the order of their ranks.
type plain struct {
	all     []*plainProcess
	classes []*plainClass
}

func newPlain(all []*plainProcess, byThread bool) *plain {
	p := &plain{all: all}
	p.findBuilds()
	byKey := map[string]*plainClass{}
	for i, one := range all {
		keys := map[string]bool{}
		for k := range one.stands {
			keys[one.stands[k].key()] = true
		}
		key := fmt.Sprintf("%q %q %q", sortedKeys(keys), one.facts, one.builds)
		if byKey[key] == nil {
			byKey[key] = &plainClass{key: key}
			p.classes = append(p.classes, byKey[key])
		}
		byKey[key].targets = append(byKey[key].targets, i)
	}
	type order struct{ size, others, failed, depth, first int }
	orders := map[*plainClass]order{}
	for _, c := range p.classes {
		first := all[c.targets[0]]
		failed := 1
		if len(first.facts) > 0 || slices.ContainsFunc(first.stands, func(s plainStand) bool { return s.crashed }) {
			failed = 0
		}
		depth, others := p.part(c)
		orders[c] = order{len(c.targets), others, failed, depth, c.targets[0]}
	}
	sort.Slice(p.classes, func(i, k int) bool {
		a, b := orders[p.classes[i]], orders[p.classes[k]]
		return cmp.Or(a.size-b.size, a.others-b.others, a.failed-b.failed, a.depth-b.depth, a.first-b.first) < 0
	})
	p.classes[len(p.classes)-1].parting = nil
	if byThread {
		rest := p.classes[:len(p.classes)-1]
		sort.SliceStable(rest, func(i, k int) bool { return orders[rest[i]].depth >= 0 && orders[rest[k]].depth < 0 })
	}
	return p
}

func sortedKeys[V any](m map[string]V) (list []string) {
	for k := range m {
		list = append(list, k)
	}
	sort.Strings(list)
	return list
}

// findBuilds finds the builds of modules in the stacks of each process of which another one has another build.
func (p *plain) findBuilds() {
	buildsOf := func(one *plainProcess, name string) string {
		var list []string
		for _, m := range one.moments[len(one.moments)-1].Modules {
			if m.Name == name {
				list = append(list, m.BuildID)
			}
		}
		sort.Strings(list)
		return strings.Join(slices.Compact(list), ",")
	}
	for _, one := range p.all {
		names := map[string]bool{}
		for _, m := range one.moments[len(one.moments)-1].Modules {
			names[m.Name] = true
		}
		for _, name := range sortedKeys(names) {
			isIn := false
			for k := range one.stands {
				for _, f := range one.stands[k].functions {
					isIn = isIn || strings.Contains(f, "@"+name+" ")
				}
			}
			if !isIn {
				continue
			}
			for _, other := range p.all {
				if b := buildsOf(other, name); b != "" && b != buildsOf(one, name) {
					one.builds = append(one.builds, name+"="+buildsOf(one, name))
					break
				}
			}
		}
	}
}

// stacksOf are the stacks of a class, with whether a thread crashed there.
func (p *plain) stacksOf(c *plainClass) map[string]bool {
	stacks := map[string]bool{}
	for k := range p.all[c.targets[0]].stands {
		s := &p.all[c.targets[0]].stands[k]
		stacks[s.stack()] = stacks[s.stack()] || s.crashed
	}
	return stacks
}

// having are the targets that have a stack.
func (p *plain) having(stack string) (list []int) {
	for i, one := range p.all {
		if slices.ContainsFunc(one.stands, func(s plainStand) bool { return s.stack() == stack }) {
			list = append(list, i)
		}
	}
	return list
}

// leads reports whether a target has a thread whose stack begins with some frames, and how many threads.
func (p *plain) leads(target int, role string, frames []string) (threads int) {
	for k := range p.all[target].stands {
		s := &p.all[target].stands[k]
		if s.role == role && len(s.functions) >= len(frames) && slices.Equal(s.functions[:len(frames)], frames) {
			threads++
		}
	}
	return threads
}

func framesOf(stack string) (role string, frames []string) {
	role, rest, _ := strings.Cut(stack, "|")
	if rest != "" {
		frames = strings.Split(rest, "\n")
	}
	return role, frames
}

func compareRoles(a, b string) int {
	return cmp.Or(isTrue(a != "main")-isTrue(b != "main"), compareNatural(a, b))
}

// part finds where a class parts from the others, how many frames are in common there, and how many others have, or miss, the
// same stack.
func (p *plain) part(c *plainClass) (depth, others int) {
	own := p.stacksOf(c)
	choose, crashed := "", false
	depth, others = -1, len(p.all)
	for _, stack := range p.sorted(sortedKeys(own)) {
		n, d := len(p.having(stack))-len(c.targets), p.lastOf(stack)
		if choose == "" || cmp.Or(n-others, isTrue(!own[stack])-isTrue(!crashed), d-depth) < 0 {
			choose, others, crashed, depth = stack, n, own[stack], d
		}
	}
	without := 0
	if choose != "" {
		without = len(p.all) - len(p.having(choose))
	}
	missing, most := "", without
	all := map[string]bool{}
	for _, one := range p.all {
		for k := range one.stands {
			all[one.stands[k].stack()] = true
		}
	}
	for _, stack := range p.sorted(sortedKeys(all)) {
		if _, has := own[stack]; !has && len(p.having(stack)) > most {
			missing, most = stack, len(p.having(stack))
		}
	}
	switch {
	case missing != "":
		depth, others = p.partMissing(c, missing), len(p.all)-len(c.targets)-len(p.having(missing))
	case without > 0:
		p.partStack(c, choose, depth)
	}
	return depth, others
}

// sorted sorts stacks by roles and frames.
func (p *plain) sorted(stacks []string) []string {
	sort.SliceStable(stacks, func(i, k int) bool {
		a, f := framesOf(stacks[i])
		b, g := framesOf(stacks[k])
		return cmp.Or(compareRoles(a, b), slices.Compare(f, g)) < 0
	})
	return stacks
}

// lastOf is how many frames of a stack those have in common with it that do not have it; -1: none has the role.
func (p *plain) lastOf(stack string) int {
	role, frames := framesOf(stack)
	having := p.having(stack)
	for n := len(frames); n >= 0; n-- {
		for i := range p.all {
			if !slices.Contains(having, i) && p.leads(i, role, frames[:n]) > 0 {
				return n
			}
		}
	}
	return -1
}

func (p *plain) partMissing(c *plainClass, missing string) (depth int) {
	role, frames := framesOf(missing)
	depth = -1
	for n := 0; n <= len(frames); n++ {
		if p.leads(c.targets[0], role, frames[:n]) > 0 {
			depth = n
		}
	}
	next := ""
	if n := max(depth, 0); n < len(frames) {
		next = frames[n]
	}
	threads := 0
	for _, one := range p.all {
		for k := range one.stands {
			threads += isTrue(one.stands[k].stack() == missing)
		}
	}
	c.parting = &plainParting{role: role, stack: missing, isMissing: true, last: depth, there: []string{fmt.Sprint(next, " ", len(p.having(missing)), " ", threads)}}
	return depth
}

func (p *plain) partStack(c *plainClass, stack string, depth int) {
	role, frames := framesOf(stack)
	out := &plainParting{role: role, stack: stack, last: depth}
	if n := max(depth, 0); n < len(frames) {
		out.here = frames[n]
	}
	targets, threads := map[string]int{}, map[string]int{}
	for i, one := range p.all {
		met := map[string]bool{}
		for k := range one.stands {
			s := &one.stands[k]
			if slices.Contains(c.targets, i) || depth < 0 || s.role != role || len(s.functions) < depth || !slices.Equal(s.functions[:depth], frames[:depth]) {
				continue
			}
			next := ""
			if len(s.functions) > depth {
				next = s.functions[depth]
			}
			if next == out.here {
				continue // has it too, or ends where it does
			}
			threads[next]++
			if !met[next] {
				met[next] = true
				targets[next]++
			}
		}
	}
	for next := range targets {
		out.there = append(out.there, fmt.Sprint(next, " ", targets[next], " ", threads[next]))
	}
	sort.Strings(out.there)
	c.parting = out
}

// plainNode is how many threads, targets and classes are in a node.
type plainNode struct {
	threads, ends, targets int
	classes                map[int]bool
}

// nodes counts the nodes of a tree, by their paths.
func (p *plain) nodes(stack func(*plainStand) []string) map[string]*plainNode {
	nodes := map[string]*plainNode{}
	for class, c := range p.classes {
		for _, i := range c.targets {
			met := map[string]bool{}
			for k := range p.all[i].stands {
				frames := stack(&p.all[i].stands[k])
				for n := 1; n <= len(frames); n++ {
					path := strings.Join(frames[:n], "\n")
					if nodes[path] == nil {
						nodes[path] = &plainNode{classes: map[int]bool{}}
					}
					one := nodes[path]
					one.threads++
					one.ends += isTrue(n == len(frames))
					one.targets += isTrue(!met[path])
					one.classes[class], met[path] = true, true
				}
			}
		}
	}
	return nodes
}
