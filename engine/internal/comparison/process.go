// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// This file finds the targets that are moments of one process.

// process is a process at its moments.
type process struct {
	// moments are the records that were read, in order, each of another moment; none: the process could not be
	// read, and unread is why.
	moments  []*record
	unread   string
	records  []*record // all, in order
	path     string
	pid      int64
	labels   map[string]string
	problems []string
}

// last is the last moment.
func (p *process) last() *record { return p.moments[len(p.moments)-1] }

// hasThreads reports whether it has threads at its last moment that are compared.
func (p *process) hasThreads(part *Part) bool {
	return len(p.moments) > 0 && slices.ContainsFunc(part.shapes[p.last().shape], func(one run) bool { return part.compares(&one.runKey) })
}

// compares reports whether threads are compared, or left out because they did not crash.
func (p *Part) compares(one *runKey) bool { return one.crashed || !p.options.CrashedOnly }

// rankLabel is the label by which moments of one process are found where nothing else is known.
const rankLabel = "rank"

// identityLabels tell processes apart that are of one rank.
var identityLabels = []string{"job", "host", "pod", "local_rank"}

func isIdentity(label string) bool {
	return label == rankLabel || slices.Contains(identityLabels, label)
}

// identity is equal for records that may be of one process.
type identity struct {
	kind       identityKind
	host       uint32
	pid        int64
	rank, pod  string
	isOnItsOwn int // a record of which nothing is known
}

type identityKind uint8

const (
	byItself  identityKind = iota
	byProcess              // the host and the PID
	byRank                 // a guess
)

// processes divides the records into processes.
func (r *result) processes() []*process {
	groups := map[identity][]*record{}
	var order []identity
	for i := range r.part.records {
		one := &r.part.records[i]
		id := r.identity(one, i)
		if groups[id] == nil {
			order = append(order, id)
		}
		groups[id] = append(groups[id], one)
	}
	var list []*process
	for _, id := range order {
		for _, records := range r.divide(id.kind, groups[id]) {
			list = append(list, r.process(id.kind, records))
		}
	}
	return list
}

func (r *result) identity(one *record, i int) identity {
	rank := r.label(one, rankLabel)
	switch {
	case one.host != 0 && one.pid != 0:
		return identity{kind: byProcess, host: one.host, pid: one.pid, rank: rank, pod: r.label(one, "pod")}
	case one.unread != 0:
	case rank != "":
		return identity{kind: byRank, rank: rank}
	}
	return identity{kind: byItself, isOnItsOwn: i}
}

// label is the value of a label of a record; "": it has none.
func (r *result) label(one *record, name string) string {
	for i := 0; i < len(one.labels); i += 2 {
		if r.text(one.labels[i]) == name {
			return r.text(one.labels[i+1])
		}
	}
	return ""
}

// divide divides records of one identity where something contradicts that they are of one process.
func (r *result) divide(kind identityKind, records []*record) [][]*record {
	switch {
	case len(records) == 1:
		return [][]*record{records}
	case kind == byProcess:
		return divideByStart(records)
	case kind == byRank:
		return r.divideByKnown(records)
	}
	return [][]*record{records}
}

// clockStep is how far times that are the same may differ: Linux says when a process started by the time at which
// the system started, and that by a clock that is set.
const clockStep = 2 * time.Second

// divideByStart divides the records of one PID by start times. Where there are several, records without
// one are of a process of their own.
func divideByStart(records []*record) (list [][]*record) {
	slices.SortFunc(records, func(a, b *record) int { return a.started.Compare(b.started) })
	unknown := 0
	for unknown < len(records) && records[unknown].started.IsZero() {
		unknown++
	}
	for i := unknown; i < len(records); i++ {
		if i == unknown || records[i].started.Sub(records[i-1].started) > clockStep {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], records[i])
	}
	switch {
	case len(list) == 1:
		return [][]*record{records}
	case unknown > 0:
		return append(list, records[:unknown])
	}
	return list
}

// divideByKnown divides records of one rank by all that is known of them, where two have something else.
func (r *result) divideByKnown(records []*record) (list [][]*record) {
	known := func(one *record) []string {
		values := []string{startKey(one), r.text(one.host), pidKey(one)}
		for _, name := range identityLabels {
			values = append(values, r.label(one, name))
		}
		return values
	}
	first, contradicts := known(records[0]), false
	groups := map[string]int{}
	for _, one := range records {
		values := known(one)
		for i, v := range values {
			contradicts = contradicts || v != "" && first[i] != "" && v != first[i]
			first[i] = cmp.Or(first[i], v)
		}
		key := fmt.Sprintf("%q", values)
		i, ok := groups[key]
		if !ok {
			i = len(list)
			groups[key], list = i, append(list, nil)
		}
		list[i] = append(list[i], one)
	}
	if !contradicts {
		return [][]*record{records}
	}
	return list
}

func startKey(one *record) string {
	if one.started.IsZero() {
		return ""
	}
	return one.started.Format(time.RFC3339Nano)
}

func pidKey(one *record) string {
	if one.pid == 0 {
		return ""
	}
	return strconv.FormatInt(one.pid, 10)
}

// process makes a process of its records.
func (r *result) process(kind identityKind, records []*record) *process {
	byTime := !slices.ContainsFunc(records, func(one *record) bool { return one.taken.IsZero() })
	slices.SortFunc(records, func(a, b *record) int {
		if byTime && !a.taken.Equal(b.taken) {
			return a.taken.Compare(b.taken)
		}
		return r.compareRecords(a, b)
	})
	p := &process{path: records[0].path, labels: map[string]string{}, records: records}
	unread, first := 0, ""
	for _, one := range records {
		p.pid = cmp.Or(p.pid, one.pid)
		for i := 0; i < len(one.labels); i += 2 {
			if name := r.text(one.labels[i]); p.labels[name] == "" {
				p.labels[name] = r.text(one.labels[i+1])
			}
		}
		for _, n := range one.problems {
			p.problem(r.text(n))
		}
		switch {
		case one.unread != 0:
			unread++
			first = cmp.Or(first, r.text(one.unread))
		case byTime && len(p.moments) > 0 && p.last().taken.Equal(one.taken):
			r.sameMoment(p, one)
		default:
			p.moments = append(p.moments, one)
		}
	}
	switch {
	case len(p.moments) == 0:
		p.unread = first
		p.problem(first)
	case unread > 0:
		p.problem(fmt.Sprintf("%d of its %d moments could not be read: %s", unread, unread+len(p.moments), first))
	}
	r.clock(p)
	if kind == byRank && len(p.moments) > 1 {
		p.problem(fmt.Sprintf("that %d targets are moments of one process is a guess: they have the same rank, and their hosts are not known", len(p.moments)))
	}
	return p
}

// maxProblems bounds the problems of a process that are listed.
const maxProblems = 64

// problem adds a problem, once.
func (p *process) problem(text string) {
	if len(p.problems) >= maxProblems {
		text = "there are more problems, which are left out"
	}
	if len(p.problems) <= maxProblems && !slices.Contains(p.problems, text) {
		p.problems = append(p.problems, text)
	}
}

// sameMoment says where two targets are one process at one time and have other stacks.
func (r *result) sameMoment(p *process, one *record) {
	if last := p.last(); last.shape != one.shape || !slices.Equal(last.ids, one.ids) {
		p.problem(fmt.Sprintf("%s and %s are this process at one time, with other stacks: those of the first are compared", last.path, one.path))
	}
}

// clock says where the times of a process contradict each other.
func (r *result) clock(p *process) {
	for _, one := range p.moments {
		if !one.taken.IsZero() && !one.started.IsZero() && one.taken.Add(clockStep).Before(one.started) {
			p.problem(fmt.Sprintf("its stacks were taken at %s, before it started at %s: a clock was set or is wrong",
				one.taken.Format(time.RFC3339), one.started.Format(time.RFC3339)))
			return
		}
	}
}

// compareRecords orders records by rank, path, labels and identity, and then by all that they have.
func (r *result) compareRecords(a, b *record) int {
	if c := cmp.Or(compareNatural(a.path, b.path), r.compareTexts(a.labels, b.labels), strings.Compare(r.text(a.host), r.text(b.host)),
		cmp.Compare(a.pid, b.pid), a.started.Compare(b.started), a.taken.Compare(b.taken), strings.Compare(r.text(a.unread), r.text(b.unread)),
		r.compareTexts(a.facts, b.facts), r.compareTexts(a.problems, b.problems)); c != 0 {
		return c
	}
	return cmp.Or(r.compareThreads(a, b), r.compareModules(a, b))
}

// compareTexts orders lists of texts.
func (r *result) compareTexts(a, b []uint32) int {
	return slices.CompareFunc(a, b, func(x, y uint32) int {
		if x == y {
			return 0
		}
		return compareNatural(r.text(x), r.text(y))
	})
}

// compareThreads orders records by their threads: rarely needed, for records that are alike in all else.
func (r *result) compareThreads(a, b *record) int {
	if a.shape == b.shape && slices.Equal(a.ids, b.ids) {
		return 0
	}
	return slices.CompareFunc(r.sortedThreads(a), r.sortedThreads(b), func(x, y keyedThread) int {
		return cmp.Or(x.id.compare(&y.id), x.runKey.compare(&y.runKey))
	})
}

// sortedThreads are the threads of a record by IDs, with numbers of roles, nodes and reasons that
// depend on their contents alone.
func (r *result) sortedThreads(one *record) []keyedThread {
	list := r.part.threadsOf(nil, &r.ids, one)
	for i := range list {
		k := &list[i].runKey
		k.role, k.node, k.ends = r.rankOfText(k.role), r.all.lines.number[k.node], r.rankOfText(k.ends)
	}
	slices.SortFunc(list, func(x, y keyedThread) int { return cmp.Or(x.id.compare(&y.id), x.runKey.compare(&y.runKey)) })
	return list
}

func (r *result) compareModules(a, b *record) int {
	if a.modules == b.modules {
		return 0
	}
	list := func(one *record) (names []string) {
		for _, m := range r.part.moduleSets[one.modules] {
			names = append(names, r.text(m.name)+"\x00"+r.text(m.build))
		}
		slices.Sort(names)
		return names
	}
	return slices.Compare(list(a), list(b))
}

// compared is the process as a target of the comparison.
func (p *process) compared() trace.ComparedTarget {
	t := trace.ComparedTarget{Path: p.path, Labels: p.labels, PID: p.pid, Count: len(p.moments), Problems: p.problems}
	for _, one := range p.moments {
		if !one.taken.IsZero() {
			t.Moments = append(t.Moments, one.taken)
		}
	}
	return t
}
