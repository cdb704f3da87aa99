// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// result makes a comparison of a Part.
type result struct {
	part *Part
	out  *trace.Comparison
	// all are the stacks of all moments, and trees those in which threads stand.
	all *trees
	*trees
	roles    []string // in their order
	roleRank []uint32 // by text
	textRank []uint32 // by text; nil: it was not needed yet
	ids      []threadID

	views   []*view
	viewIDs map[string]int
	byShape map[uint32]int // views of targets of one moment
	units   []unit
	// readable is how many units have stacks that are compared.
	readable int
	builds   *builds
	classes  []*class
	vertices *vertices
	hashes   [][sha256.Size]byte // of stacks by functions; nil: they were not needed yet
}

// unit is a target of the comparison: a process, or one thread of it.
type unit struct {
	process *process
	view    int // -1: it could not be read
	// isThread is true where it is a thread, the one with an ID.
	isThread bool
	id       threadID
	crashed  bool
}

// Result returns the comparison of the targets that were added. It depends on these alone, not on
// their order, nor on how they were merged.
func (p *Part) Result() *trace.Comparison {
	r := &result{part: p, out: &trace.Comparison{CrashedOnly: p.options.CrashedOnly}, all: newTrees(p), viewIDs: map[string]int{}, byShape: map[uint32]int{}}
	r.orderRoles()
	processes := r.processes()
	r.out.ByThread = p.options.ByThread || len(processes) == 1 && processes[0].hasThreads(p)
	r.makeUnits(processes)
	r.out.ByThread = r.out.ByThread && slices.ContainsFunc(r.units, func(u unit) bool { return u.isThread })
	r.keepUsed()
	r.orderUnits()
	r.makeBuilds()
	r.makeClasses()
	r.makePartings()
	r.orderClasses()
	r.writeClasses()
	r.writeNodes()
	r.writeModules()
	r.out.Problems = r.problems(processes)
	return r.out
}

func (r *result) text(n uint32) string { return r.part.texts.list[n] }

// mainRole is the role of the thread with which a process began.
const mainRole = "main"

// orderRoles ranks the roles: main, then the others by name.
func (r *result) orderRoles() {
	met := map[uint32]bool{}
	for _, s := range r.part.shapes {
		for i := range s {
			met[s[i].role] = true
		}
	}
	roles := slices.SortedFunc(maps.Keys(met), func(a, b uint32) int {
		x, y := r.text(a), r.text(b)
		return cmp.Or(compareTrue(x != mainRole, y != mainRole), compareNatural(x, y))
	})
	r.roleRank = make([]uint32, len(r.part.texts.list))
	for i, n := range roles {
		r.roles = append(r.roles, r.text(n))
		r.roleRank[n] = uint32(i) //nolint:gosec // memory has room for fewer
	}
}

// rankOfText ranks all texts by what they are.
func (r *result) rankOfText(n uint32) uint32 {
	if r.textRank == nil {
		list := r.part.texts.list
		_, r.textRank = ranked(len(list), func(a, b uint32) int { return strings.Compare(list[a], list[b]) })
	}
	return r.textRank[n]
}

// stand is where threads of one role stand. Until nodes that are not used are left out, line and function are
// nodes of result.all.
type stand struct {
	role, line, function uint32
	moves, crashed       bool
}

func (s *stand) compareFunctions(other *stand) int {
	return cmp.Or(cmp.Compare(s.role, other.role), cmp.Compare(s.function, other.function), compareTrue(s.moves, other.moves), compareTrue(s.crashed, other.crashed))
}

func (s *stand) compareLines(other *stand) int {
	return cmp.Or(cmp.Compare(s.role, other.role), cmp.Compare(s.line, other.line), compareTrue(s.moves, other.moves), compareTrue(s.crashed, other.crashed))
}

// counts are of the threads of a unit that stand at one place.
type counts struct {
	threads, once, incomplete int    // once: of which only one moment is known
	ends                      uint32 // a text; 0: all stacks are complete
}

// count is a stand with its threads.
type count struct {
	stand
	counts
}

// view is where the threads of units stand.
type view struct {
	list []count // by all that stands have
	// functions and lines are the same by functions and by lines alone.
	functions, lines []count
	// functionKey and lineKey are equal for equal sets of stands.
	functionKey, lineKey int
	modules              []string // of which targets have different builds; nil: they were not looked for
}

func (c *counts) add(other *counts, r *result) {
	c.threads, c.once, c.incomplete = c.threads+other.threads, c.once+other.once, c.incomplete+other.incomplete
	if c.ends == 0 || other.ends != 0 && r.text(other.ends) < r.text(c.ends) {
		c.ends = other.ends
	}
}

// viewOf is the number of the view with these stands. It sorts the list.
func (r *result) viewOf(list []count) int {
	slices.SortFunc(list, func(a, b count) int { return cmp.Or(a.compareFunctions(&b.stand), cmp.Compare(a.line, b.line)) })
	list = r.merged(list, func(a, b *stand) bool { return *a == *b })
	var key []byte
	for i := range list {
		c := &list[i]
		flags := uint64(0)
		if c.moves {
			flags |= 1
		}
		if c.crashed {
			flags |= 2
		}
		for _, n := range [...]uint64{uint64(c.role), uint64(c.line), uint64(c.function), flags, uint64(c.threads), uint64(c.once), uint64(c.incomplete), uint64(c.ends)} { //nolint:gosec // not negative
			key = binary.AppendUvarint(key, n)
		}
	}
	id, ok := r.viewIDs[string(key)]
	if !ok {
		id = len(r.views)
		r.viewIDs[string(key)] = id
		r.views = append(r.views, &view{list: list})
	}
	return id
}

// merged adds the counts of equal stands that follow each other.
func (r *result) merged(list []count, equal func(a, b *stand) bool) (out []count) {
	for i := range list {
		if n := len(out); n > 0 && equal(&out[n-1].stand, &list[i].stand) {
			out[n-1].add(&list[i].counts, r)
		} else {
			out = append(out, list[i])
		}
	}
	return out
}

// standing is a thread with where it stands.
type standing struct {
	stand
	id   threadID
	once bool
	ends uint32
}

func (s *standing) count() count {
	c := count{s.stand, counts{threads: 1, ends: s.ends}}
	if s.once {
		c.once = 1
	}
	if s.ends != 0 {
		c.incomplete = 1
	}
	return c
}

// makeUnits finds the units, and where their threads stand.
func (r *result) makeUnits(processes []*process) {
	for _, p := range processes {
		switch {
		case p.unread != "":
			r.units = append(r.units, unit{process: p, view: -1})
		case r.out.ByThread && p.hasThreads(r.part):
			for _, s := range r.standings(p) {
				r.units = append(r.units, unit{process: p, view: r.viewOf([]count{s.count()}), isThread: true, id: s.id, crashed: s.crashed})
			}
		default:
			r.units = append(r.units, unit{process: p, view: r.viewOfProcess(p)})
		}
	}
}

func (r *result) viewOfProcess(p *process) int {
	if len(p.moments) > 1 {
		var list []count
		for _, s := range r.standings(p) {
			list = append(list, s.count())
		}
		return r.viewOf(list)
	}
	shape := p.last().shape
	id, ok := r.byShape[shape]
	if !ok {
		var list []count
		for i := range r.part.shapes[shape] {
			one := &r.part.shapes[shape][i]
			if !r.part.compares(&one.runKey) {
				continue
			}
			s := r.standing(&keyedThread{runKey: one.runKey})
			s.once = true
			c := s.count()
			c.threads, c.once, c.incomplete = c.threads*int(one.count), c.once*int(one.count), c.incomplete*int(one.count)
			list = append(list, c)
		}
		id = r.viewOf(list)
		r.byShape[shape] = id
	}
	return id
}

// standing is where a thread stands at one moment.
func (r *result) standing(t *keyedThread) standing {
	line := r.all.lines.number[t.node]
	return standing{stand: stand{role: r.roleRank[t.role], line: line, function: r.all.function[line], crashed: t.crashed}, id: t.id, ends: t.ends}
}

// standings are where the threads of a process stand at its last moment. A thread that stands elsewhere at another
// moment is where it was at all moments.
func (r *result) standings(p *process) []standing {
	var list []standing
	for _, t := range r.part.threadsOf(nil, &r.ids, p.last()) {
		if !r.part.compares(&t.runKey) {
			continue
		}
		s := r.standing(&t)
		s.once = true
		list = append(list, s)
	}
	if len(p.moments) == 1 {
		return list
	}
	index := map[threadID]int{} // -1: several threads have the ID
	for i := range list {
		if _, isTwice := index[list[i].id]; isTwice || list[i].id.String() == "" {
			index[list[i].id] = -1
		} else {
			index[list[i].id] = i
		}
	}
	for _, moment := range p.moments[:len(p.moments)-1] {
		r.addMoment(list, index, moment)
	}
	return list
}

// addMoment compares where threads stood at another moment.
func (r *result) addMoment(list []standing, index map[threadID]int, moment *record) {
	then := r.part.threadsOf(nil, &r.ids, moment)
	met := map[threadID]int{}
	for i := range then {
		met[then[i].id]++
	}
	for i := range then {
		k, ok := index[then[i].id]
		if !ok || k < 0 || met[then[i].id] > 1 {
			continue
		}
		before, s := r.standing(&then[i]), &list[k]
		s.once = false
		s.moves = s.moves || s.line != before.line
		s.line, s.function = r.all.lines.common(s.line, before.line), r.all.functions.common(s.function, before.function)
	}
}

// keepUsed leaves out the nodes of other moments, and finds the sets of stands of views.
func (r *result) keepUsed() {
	lines, functions := make([]bool, r.all.lines.size()), make([]bool, r.all.functions.size())
	for _, v := range r.views {
		for i := range v.list {
			lines[v.list[i].line], functions[v.list[i].function] = true, true
		}
	}
	r.trees = r.all.only(lines, functions)
	for _, v := range r.views {
		for i := range v.list {
			r.renumber(&v.list[i].stand)
		}
	}
	functionKeys, lineKeys := map[string]int{}, map[string]int{}
	for _, v := range r.views {
		v.functions = r.merged(v.list, func(a, b *stand) bool { return a.compareFunctions(b) == 0 })
		byLine := slices.Clone(v.list)
		slices.SortFunc(byLine, func(a, b count) int { return a.compareLines(&b.stand) })
		v.lines = r.merged(byLine, func(a, b *stand) bool { return a.compareLines(b) == 0 })
		v.functionKey = setNumber(functionKeys, v.functions, func(s *stand) uint32 { return s.function })
		v.lineKey = setNumber(lineKeys, v.lines, func(s *stand) uint32 { return s.line })
	}
}

// renumber makes the nodes of all stacks those that are used. Their order stays.
func (r *result) renumber(s *stand) {
	s.line, s.function = r.lines.number[s.line], r.functions.number[s.function]
}

// setNumber numbers the sets of stands.
func setNumber(known map[string]int, list []count, node func(*stand) uint32) int {
	var key []byte
	for i := range list {
		s := &list[i].stand
		flags := uint64(0)
		if s.moves {
			flags |= 1
		}
		if s.crashed {
			flags |= 2
		}
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(s.role)), uint64(node(s))<<2|flags)
	}
	n, ok := known[string(key)]
	if !ok {
		n = len(known)
		known[string(key)] = n
	}
	return n
}
