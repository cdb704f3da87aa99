// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/trie"
)

// Part is the state of a comparison of some targets. It keeps each distinct stack once, and of each target which
// stacks its threads have. It is not for concurrent use.
type Part struct {
	options  Options
	texts    texts
	frames   []trace.ComparedFrame
	frameIDs map[frameKey]uint32
	// The stacks are a tree by lines. Of each node there are its parent, its frame and the child that was
	// requested last; node 0 is the root.
	nodes                  *trie.Trie
	parent, frame, current []uint32
	shapes                 []shape
	shapeIDs               map[string]uint32
	moduleSets             [][]module
	moduleIDs              map[string]uint32
	records                []record
	notes                  map[note]struct{}

	bytes   []byte   // of which records have their IDs
	numbers []uint32 // of which records have their lists
	scratch
}

// scratch is memory that is used again for each target.
type scratch struct {
	key     []byte // of the shape or the set that is looked up
	threads []keyedThread
	runs    shape
	order   []threadID
	set     []module
	list    []uint32
	names   []string
}

// record is a target at one moment. Its texts are numbers in Part.texts, and 0 is the empty one.
type record struct {
	path                    string
	host, unread            uint32
	pid                     int64
	started, taken          time.Time
	labels, facts, problems []uint32 // of labels name and value, by name
	shape, modules          uint32
	ids                     []byte // of its threads, in the order of its shape
}

// shape is which stacks the threads of a target have, in the order of numbers.
type shape []run

// run is a number of threads that have one stack, in the order of their IDs.
type run struct {
	runKey
	count uint32
}

type runKey struct {
	role, node, ends uint32
	crashed          bool
}

func (k *runKey) compare(other *runKey) int {
	if c := cmp.Or(cmp.Compare(k.role, other.role), cmp.Compare(k.node, other.node), cmp.Compare(k.ends, other.ends)); c != 0 {
		return c
	}
	switch {
	case k.crashed == other.crashed:
		return 0
	case k.crashed:
		return 1
	}
	return -1
}

type keyedThread struct {
	runKey
	id threadID
}

// module is a module with its build ID, as texts.
type module struct{ name, build uint32 }

// note is data about targets that a comparison keeps for its caller.
type note struct{ key, data string }

// maxLabels is how many labels of a target are kept.
const maxLabels = 64

// New returns a Part without targets.
func New(o Options) *Part {
	p := &Part{
		options: o, frameIDs: map[frameKey]uint32{}, nodes: trie.New(0), parent: []uint32{0}, frame: []uint32{0}, current: []uint32{0},
		shapeIDs: map[string]uint32{}, moduleIDs: map[string]uint32{}, notes: map[note]struct{}{},
	}
	p.texts.number("")
	p.shapeNumber(nil)
	p.moduleSet(nil)
	return p
}

// Len returns the number of targets.
func (p *Part) Len() int { return len(p.records) }

// texts numbers texts.
type texts struct {
	list []string
	ids  map[string]uint32
}

func (t *texts) number(s string) uint32 {
	if id, ok := t.ids[s]; ok {
		return id
	}
	if t.ids == nil {
		t.ids = map[string]uint32{}
	}
	s = strings.Clone(s) // it may be a piece of a whole file
	id := uint32(len(t.list))
	t.list, t.ids[s] = append(trie.Grown(t.list), s), id
	return id
}

// Add adds a target, which is not kept.
func (p *Part) Add(t *Target) {
	r := record{
		path: strings.Clone(t.Path), host: p.texts.number(t.Host), pid: t.PID, started: plainTime(t.Started), taken: plainTime(t.Taken),
		unread: p.texts.number(t.Unread),
	}
	p.addTexts(&r, t)
	if t.Unread == "" {
		p.addThreads(&r, t.Threads)
		p.addModules(&r, t.Modules)
	}
	p.records = append(trie.Grown(p.records), r)
}

// plainTime is a time without a place; zero where it cannot be written.
func plainTime(t time.Time) time.Time {
	if t = t.UTC().Round(0); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}

// addTexts adds labels, facts and problems.
func (p *Part) addTexts(r *record, t *Target) {
	problems := t.Problems
	names := p.names[:0]
	for name := range t.Labels {
		names = append(names, name)
	}
	slices.Sort(names)
	p.names = names
	if len(names) > maxLabels {
		problems = append([]string{fmt.Sprintf("it has %d labels, and all but %d are left out", len(names), maxLabels)}, problems...)
		slices.SortStableFunc(names, func(a, b string) int { return compareTrue(!isIdentity(a), !isIdentity(b)) })
		names = names[:maxLabels]
		slices.Sort(names)
	}
	list := p.list[:0]
	for _, name := range names {
		list = append(list, p.texts.number(name), p.texts.number(t.Labels[name]))
	}
	clear(p.names)
	p.list, r.labels = list, p.keepNumbers(list)
	r.facts, r.problems = p.keepTexts(t.Facts), p.keepTexts(problems)
}

func (p *Part) keepTexts(texts []string) []uint32 {
	list := p.list[:0]
	for _, s := range texts {
		list = append(list, p.texts.number(s))
	}
	p.list = list
	return p.keepNumbers(list)
}

// chunk is how many elements the lists of records share.
const chunk = 1 << 13

func (p *Part) keepNumbers(list []uint32) []uint32 { return kept(&p.numbers, list) }

// kept copies a list to a piece of memory that many lists share.
func kept[T any](free *[]T, list []T) []T {
	if len(list) == 0 {
		return nil
	}
	if len(list) > chunk/4 {
		return slices.Clone(list)
	}
	if cap(*free)-len(*free) < len(list) {
		*free = make([]T, 0, chunk)
	}
	start := len(*free)
	*free = append(*free, list...)
	return (*free)[start:len(*free):len(*free)]
}

// addThreads adds the stacks of a target.
func (p *Part) addThreads(r *record, threads []Thread) {
	list := p.threads[:0]
	for i := range threads {
		t := &threads[i]
		key := runKey{role: p.texts.number(t.Role), node: p.stack(t.Frames), ends: p.texts.number(t.Ends), crashed: t.Crashed}
		list = append(list, keyedThread{key, newThreadID(t.ID)})
	}
	p.keep(r, list)
	clear(list) // of texts of the caller
	p.threads = list[:0]
}

// keep sorts the threads of a record and keeps them.
func (p *Part) keep(r *record, list []keyedThread) {
	slices.SortFunc(list, func(a, b keyedThread) int {
		if c := a.runKey.compare(&b.runKey); c != 0 {
			return c
		}
		return a.id.compare(&b.id)
	})
	s, order := p.runs[:0], p.order[:0]
	for i := range list {
		if n := len(s); n > 0 && s[n-1].runKey == list[i].runKey {
			s[n-1].count++
		} else {
			s = append(s, run{list[i].runKey, 1})
		}
		order = append(order, list[i].id)
	}
	r.shape = p.shapeNumber(s)
	p.key = appendIDs(p.key[:0], order)
	clear(order)
	p.runs, p.order = s, order
	r.ids = kept(&p.bytes, p.key)
}

// stack is the node of a stack.
func (p *Part) stack(frames []trace.ComparedFrame) (node uint32) {
	for i := range frames {
		f := &frames[i]
		// Most stacks are as the one before.
		if c := p.current[node]; c != 0 && p.frames[p.frame[c]] == *f {
			node = c
			continue
		}
		node = p.child(node, p.frameNumber(f))
	}
	return node
}

// child is the child of a node by a frame.
func (p *Part) child(node, frame uint32) uint32 {
	c, isNew := p.nodes.Child(node, frame)
	if isNew {
		p.parent, p.frame, p.current = append(trie.Grown(p.parent), node), append(trie.Grown(p.frame), frame), append(trie.Grown(p.current), 0)
	}
	p.current[node] = c
	return c
}

// frameKey is a frame without pointers: a large table of them costs the collector of garbage nothing.
type frameKey struct {
	texts                      [5]uint32
	offset                     uint64
	line, column               int
	isInlined, isWave, isGuess bool
}

func (p *Part) frameNumber(f *trace.ComparedFrame) uint32 {
	own := *f
	key := frameKey{offset: f.Offset, line: f.Line, column: f.Column, isInlined: f.IsInlined, isWave: f.IsWave, isGuess: f.IsGuess}
	for i, s := range [...]*string{&own.Function, &own.Short, &own.Module, &own.Runtime, &own.File} {
		key.texts[i] = p.texts.number(*s)
		*s = p.texts.list[key.texts[i]]
	}
	if id, ok := p.frameIDs[key]; ok {
		return id
	}
	id := uint32(len(p.frames)) //nolint:gosec // memory has room for fewer
	p.frames = append(trie.Grown(p.frames), own)
	p.frameIDs[key] = id
	return id
}

// shapeNumber is the number of a shape, whose runs are sorted.
func (p *Part) shapeNumber(s shape) uint32 {
	p.key = p.key[:0]
	for i := range s {
		r := &s[i]
		crashed := uint64(0)
		if r.crashed {
			crashed = 1
		}
		for _, n := range [...]uint64{uint64(r.role), uint64(r.node), uint64(r.ends)<<1 | crashed, uint64(r.count)} {
			p.key = binary.AppendUvarint(p.key, n)
		}
	}
	if id, ok := p.shapeIDs[string(p.key)]; ok {
		return id
	}
	id := uint32(len(p.shapes)) //nolint:gosec // memory has room for fewer
	p.shapes = append(trie.Grown(p.shapes), slices.Clone(s))
	p.shapeIDs[string(p.key)] = id
	return id
}

// addModules adds the builds of a target's modules.
func (p *Part) addModules(r *record, modules []trace.ModuleBuild) {
	list := p.set[:0]
	for i := range modules {
		if modules[i].Name != "" && modules[i].BuildID != "" {
			list = append(list, module{p.texts.number(modules[i].Name), p.texts.number(modules[i].BuildID)})
		}
	}
	p.set, r.modules = list, p.moduleSet(list)
}

// moduleSet is the number of a set of modules. It sorts the list.
func (p *Part) moduleSet(list []module) uint32 {
	slices.SortFunc(list, func(a, b module) int { return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.build, b.build)) })
	list = slices.Compact(list)
	p.key = p.key[:0]
	for _, m := range list {
		p.key = binary.AppendUvarint(binary.AppendUvarint(p.key, uint64(m.name)), uint64(m.build))
	}
	if id, ok := p.moduleIDs[string(p.key)]; ok {
		return id
	}
	id := uint32(len(p.moduleSets)) //nolint:gosec // memory has room for fewer
	p.moduleSets = append(p.moduleSets, slices.Clone(list))
	p.moduleIDs[string(p.key)] = id
	return id
}

// AddNote keeps data about targets, for Notes. Equal data of one key is kept once.
func (p *Part) AddNote(key string, data []byte) { p.notes[note{key, string(data)}] = struct{}{} }

// Notes calls f with all data that was kept, in an order that depends on nothing else.
func (p *Part) Notes(f func(key string, data []byte)) {
	for _, n := range p.sortedNotes() {
		f(n.key, []byte(n.data))
	}
}

func (p *Part) sortedNotes() []note {
	return slices.SortedFunc(maps.Keys(p.notes), func(a, b note) int {
		return cmp.Or(compareNatural(a.key, b.key), strings.Compare(a.data, b.data))
	})
}

// Merge adds the targets of another Part, which is not used afterwards.
func (p *Part) Merge(q *Part) {
	if len(q.parent)+len(q.records) > len(p.parent)+len(p.records) {
		*p, *q = *q, *p
	}
	m := merging{p: p, q: q, texts: make([]uint32, len(q.texts.list)), nodes: make([]uint32, len(q.parent)), modules: make([]uint32, len(q.moduleSets))}
	m.merge()
}

// merging has the numbers in one Part of another one's texts, nodes and sets of modules.
type merging struct {
	p, q                  *Part
	texts, nodes, modules []uint32
	threads               []keyedThread
	ids                   []threadID
}

func (m *merging) merge() {
	p, q := m.p, m.q
	p.options = p.options.or(q.options)
	for i, s := range q.texts.list {
		m.texts[i] = p.texts.number(s)
	}
	frames := make([]uint32, len(q.frames))
	for i := range q.frames {
		frames[i] = p.frameNumber(&q.frames[i])
	}
	for i := 1; i < len(q.parent); i++ {
		m.nodes[i] = p.child(m.nodes[q.parent[i]], frames[q.frame[i]])
	}
	for i, set := range q.moduleSets {
		list := make([]module, len(set))
		for k, one := range set {
			list[k] = module{m.texts[one.name], m.texts[one.build]}
		}
		m.modules[i] = p.moduleSet(list)
	}
	for i := range q.records {
		m.record(&q.records[i])
	}
	for n := range q.notes {
		p.notes[n] = struct{}{}
	}
}

// record merges a record.
func (m *merging) record(r *record) {
	out := *r
	out.host, out.unread, out.modules = m.texts[r.host], m.texts[r.unread], m.modules[r.modules]
	for _, list := range []*[]uint32{&out.labels, &out.facts, &out.problems} {
		for i, n := range *list {
			(*list)[i] = m.texts[n]
		}
	}
	out.shape = 0
	if r.unread == 0 {
		m.threads = m.q.threadsOf(m.threads[:0], &m.ids, r)
		for i := range m.threads {
			k := &m.threads[i].runKey
			k.role, k.node, k.ends = m.texts[k.role], m.nodes[k.node], m.texts[k.ends]
		}
		m.p.keep(&out, m.threads)
	}
	m.p.records = append(trie.Grown(m.p.records), out)
}

// threadsOf appends the threads of a record.
func (p *Part) threadsOf(list []keyedThread, ids *[]threadID, r *record) []keyedThread {
	count := 0
	for i := range p.shapes[r.shape] {
		count += int(p.shapes[r.shape][i].count)
	}
	*ids, _, _ = readIDs((*ids)[:0], r.ids, count)
	next := 0
	for i := range p.shapes[r.shape] {
		one := &p.shapes[r.shape][i]
		for range one.count {
			list = append(list, keyedThread{one.runKey, (*ids)[next]})
			next++
		}
	}
	return list
}
