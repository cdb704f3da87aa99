// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"fmt"
	"slices"
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

// rankLabel is the label by which moments of one process are found where nothing else is known.
const rankLabel = "rank"

// identityLabels tell processes apart that are of one rank.
var identityLabels = []string{"job", "host", "pod", "local_rank"}

// identity is equal for records that may be of one process.
type identity struct {
	kind       identityKind
	host       uint32
	pid        int64
	started    int64
	rank       string
	others     string // values of other labels
	isOnItsOwn int    // a record of which nothing is known
}

type identityKind uint8

const (
	byItself  identityKind = iota
	byProcess              // the host and the PID
	byStart                // the PID and the start time
	byRank
)

// guesses are why it is a guess that moments are of one process; "": it is none.
var guesses = map[identityKind]string{
	byStart: "they have the same process ID, start time and labels, and their hosts are not known",
	byRank:  "they have the same rank, and no more is known",
}

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
		return identity{kind: byProcess, host: one.host, pid: one.pid, rank: rank}
	case one.unread != 0:
	case one.pid != 0 && !one.started.IsZero():
		return identity{kind: byStart, pid: one.pid, started: one.started.UnixNano(), rank: rank, others: r.labelsKey(one)}
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

func (r *result) labelsKey(one *record) string {
	var b strings.Builder
	for _, n := range one.labels {
		fmt.Fprintf(&b, "%q", r.text(n))
	}
	return b.String()
}

// divide divides records of one identity where something contradicts that they are of one process.
func (r *result) divide(kind identityKind, records []*record) [][]*record {
	contradicts := func(known func(*record) string) bool {
		first := ""
		for _, one := range records {
			value := known(one)
			if first == "" {
				first = value
			} else if value != "" && value != first {
				return true
			}
		}
		return false
	}
	known := []func(*record) string{startKey}
	if kind == byRank {
		known = append(known, func(one *record) string { return r.text(one.host) }, pidKey)
		for _, name := range identityLabels {
			known = append(known, func(one *record) string { return r.label(one, name) })
		}
	}
	if len(records) == 1 || !slices.ContainsFunc(known, contradicts) {
		return [][]*record{records}
	}
	groups := map[string]int{}
	var list [][]*record
	for _, one := range records {
		key := ""
		for _, f := range known {
			key += fmt.Sprintf("%q", f(one))
		}
		i, ok := groups[key]
		if !ok {
			i = len(list)
			groups[key], list = i, append(list, nil)
		}
		list[i] = append(list[i], one)
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
	return fmt.Sprint(one.pid)
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
	if guess := guesses[kind]; guess != "" && len(p.moments) > 1 {
		p.problem(fmt.Sprintf("that %d targets are moments of one process is a guess: %s", len(p.moments), guess))
	}
	return p
}

// problem adds a problem, once.
func (p *process) problem(text string) {
	if !slices.Contains(p.problems, text) {
		p.problems = append(p.problems, text)
	}
}

// sameMoment says where two targets are one process at one time and have other stacks.
func (r *result) sameMoment(p *process, one *record) {
	if last := p.last(); last.shape != one.shape || !slices.Equal(last.ids, one.ids) {
		p.problem(fmt.Sprintf("%s and %s are this process at one time, with other stacks: those of the first are compared", last.path, one.path))
	}
}

// clockStep is how far a clock may be wrong before that is said.
const clockStep = 2 * time.Second

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
