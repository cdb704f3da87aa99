// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// class is the units whose threads stand alike.
type class struct {
	units  []int
	unread string
	facts  []string
	builds []trace.ModuleBuild
	view   *view // of one of its units; nil: they could not be read
	// threads are as view.functions, counted in all units.
	threads  []classThread
	variants []*variant
	stacks   []classStack
	parting  parting
}

type variant struct {
	view    *view
	units   []int
	threads []classThread
}

// classThread is a stand in the units of a class.
type classThread struct {
	count
	least, most int
}

// orderUnits orders the units by rank, path and all else.
func (r *result) orderUnits() {
	ranks := make(map[*process]string, len(r.units))
	for i := range r.units {
		p := r.units[i].process
		ranks[p] = p.labels[rankLabel]
	}
	slices.SortFunc(r.units, func(a, b unit) int {
		if a.process != b.process {
			x, y := ranks[a.process], ranks[b.process]
			if c := cmp.Or(compareTrue(x == "", y == ""), compareNatural(x, y)); c != 0 {
				return c
			}
			if c := slices.CompareFunc(a.process.records, b.process.records, r.compareRecords); c != 0 {
				return c
			}
		}
		return cmp.Or(a.id.compare(&b.id), cmp.Compare(a.view, b.view))
	})
}

// noneCrashed is the only fact about a target in which no thread crashed, where the threads that did are compared.
const noneCrashed = "none of its threads is known to have crashed"

// facts are the facts about a unit, sorted.
func (r *result) facts(u *unit) (list []string) {
	switch {
	case u.view < 0 || u.isThread && !u.crashed:
		return nil
	case r.out.CrashedOnly && !u.process.hasThreads(r.part):
		return []string{noneCrashed}
	}
	for _, n := range u.process.last().facts {
		list = append(list, r.text(n))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// classKey is equal for units of one class.
type classKey struct {
	functions             int
	facts, builds, unread string
}

// makeClasses divides the units into classes.
func (r *result) makeClasses() {
	known := map[classKey]*class{}
	for i := range r.units {
		u := &r.units[i]
		key, facts := classKey{functions: -1}, r.facts(u)
		var builds []trace.ModuleBuild
		if u.view < 0 {
			key.unread = plainReason(u.process)
		} else {
			builds = r.buildsOf(u)
			key.functions = r.views[u.view].functionKey
			key.facts, key.builds = fmt.Sprintf("%q", facts), fmt.Sprintf("%q", builds)
		}
		c := known[key]
		if c == nil {
			c = &class{facts: facts, builds: builds, unread: key.unread}
			known[key] = c
			r.classes = append(r.classes, c)
		}
		c.units = append(c.units, i)
	}
	for _, c := range r.classes {
		r.countClass(c)
		if r.isCompared(c) {
			r.readable += len(c.units)
		}
	}
}

// isCompared reports whether a class has stacks that can part from others: it was read, and is not the class of targets in
// which no thread crashed where others are left out.
func (r *result) isCompared(c *class) bool {
	return c.view != nil && !(r.out.CrashedOnly && len(c.view.functions) == 0)
}

// countClass counts the threads of a class and divides it into variants.
func (r *result) countClass(c *class) {
	if c.unread != "" {
		c.exactReason(r)
		return
	}
	c.view = r.views[r.units[c.units[0]].view]
	known := map[int]*variant{}
	for _, i := range c.units {
		view := r.views[r.units[i].view]
		c.threads = r.counted(c.threads, view.functions)
		v := known[view.lineKey]
		if v == nil {
			v = &variant{view: view}
			known[view.lineKey] = v
			c.variants = append(c.variants, v)
		}
		v.units = append(v.units, i)
		v.threads = r.counted(v.threads, view.lines)
	}
	slices.SortFunc(c.variants, func(a, b *variant) int {
		return cmp.Or(cmp.Compare(len(a.units), len(b.units)), cmp.Compare(a.units[0], b.units[0]))
	})
}

// counted adds the counts of a unit.
func (r *result) counted(list []classThread, unit []count) []classThread {
	if list == nil {
		list = make([]classThread, len(unit))
		for i := range unit {
			list[i] = classThread{unit[i], unit[i].threads, unit[i].threads}
		}
		return list
	}
	for i := range unit {
		t := &list[i]
		t.add(&unit[i].counts, r)
		t.least, t.most = min(t.least, unit[i].threads), max(t.most, unit[i].threads)
	}
	return list
}

// plainReason is why a process could not be read, without its path and without numbers, which differ among files of which
// the same is wrong.
func plainReason(p *process) string {
	text := withoutPath(p)
	var b strings.Builder
	for i := 0; i < len(text); {
		start := i
		for i < len(text) && isWord(text[i]) {
			i++
		}
		word := text[start:i]
		isNumber := word != "" && (len(digits(word)) == len(word) || strings.HasPrefix(word, "0x"))
		if isNumber && !(i < len(text)-1 && text[i] == '-' && isWord(text[i+1])) { // 64-bit
			word = "#"
		}
		b.WriteString(word)
		if i < len(text) {
			b.WriteByte(text[i])
			i++
		}
	}
	return b.String()
}

func isWord(c byte) bool {
	return c == '_' || isDigit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= 0x80
}

// withoutPath is the reason without the path of the file.
func withoutPath(p *process) string {
	text := strings.TrimPrefix(p.unread, "open ")
	base := path.Base(p.path)
	if _, isNumber := number(base); isNumber || len(base) < 2 {
		return strings.TrimPrefix(text, p.path+": ") // a process
	}
	out := ""
	for i := strings.Index(text, base); i >= 0; i = strings.Index(text, base) {
		end := i + len(base)
		i = len(strings.TrimSuffix(text[:end], p.path))
		// It may be a longer path of the same file.
		out += text[:strings.LastIndexAny(text[:min(i, end-len(base))], " \"'(")+1] + "the file"
		text = text[end:]
	}
	return strings.TrimPrefix(out+text, "the file: ")
}

// exactReason leaves numbers in the reason that are the same in all targets of the class.
func (c *class) exactReason(r *result) {
	first := withoutPath(r.units[c.units[0]].process)
	for _, i := range c.units {
		if withoutPath(r.units[i].process) != first {
			return
		}
	}
	c.unread = first
}

// orderClasses orders the classes, the smallest first; of threads those first that have others in their role.
func (r *result) orderClasses() {
	slices.SortFunc(r.classes, func(a, b *class) int {
		return cmp.Or(cmp.Compare(len(a.units), len(b.units)), compareTrue(a.unread != "", b.unread != ""), cmp.Compare(a.parting.others, b.parting.others),
			compareTrue(!a.failed(), !b.failed()), cmp.Compare(a.parting.depth, b.parting.depth), cmp.Compare(a.units[0], b.units[0]))
	})
	if n := len(r.classes); r.out.ByThread && n > 0 {
		slices.SortStableFunc(r.classes[:n-1], func(a, b *class) int { return compareTrue(a.isApart(), b.isApart()) })
	}
}

// isApart reports whether no thread of another class begins as the threads of the class do, in their role.
// A process has such threads, as the first one. Of threads they come behind the others.
func (c *class) isApart() bool { return c.parting.depth < 0 }

// failed reports whether something happened to the targets.
func (c *class) failed() bool {
	return len(c.facts) > 0 || slices.ContainsFunc(c.threads, func(t classThread) bool { return t.crashed })
}

// writeClasses fills the targets and the classes of the comparison.
func (r *result) writeClasses() {
	r.out.Targets = make([]trace.ComparedTarget, len(r.units))
	for i := range r.units {
		r.out.Targets[i] = r.target(&r.units[i])
	}
	r.out.Classes = make([]trace.TargetClass, len(r.classes))
	for i, c := range r.classes {
		out := &r.out.Classes[i]
		*out = trace.TargetClass{
			Targets: c.units, Labels: r.labels(c.units), Unread: c.unread, Facts: c.facts, Builds: c.builds,
			Threads: r.threadsOf(c.units, c.threads, false),
		}
		for k, v := range c.variants {
			out.Variants = append(out.Variants, trace.ClassVariant{Targets: v.units, Threads: r.threadsOf(v.units, v.threads, true)})
			for _, unit := range v.units {
				r.out.Targets[unit].Variant = k
			}
		}
		for _, unit := range c.units {
			r.out.Targets[unit].Class = i
		}
	}
	r.writePartings()
}

// target is a unit as a target.
func (r *result) target(u *unit) trace.ComparedTarget {
	t := u.process.compared()
	if u.isThread {
		labels := make(map[string]string, len(t.Labels)+1)
		for name, value := range t.Labels {
			labels[name] = value
		}
		labels["thread"] = u.id.String()
		t.Labels = labels
	}
	if u.view >= 0 {
		for _, c := range r.views[u.view].functions {
			if c.function != 0 || c.moves {
				t.Threads += c.threads
			}
		}
	}
	return t
}

// labels are the labels of units in short.
func (r *result) labels(units []int) map[string]string {
	values := map[string][]string{}
	for _, i := range units {
		for name, value := range r.out.Targets[i].Labels {
			if list := values[name]; len(list) == 0 || list[len(list)-1] != value {
				values[name] = append(list, value)
			}
		}
	}
	out := make(map[string]string, len(values))
	for name, list := range values {
		out[name] = Short(list)
	}
	return out
}

// node is the index of a node.
func node(n uint32) int { return int(n) - 1 }

// threadsOf are the threads of a class, or of a variant by lines.
func (r *result) threadsOf(units []int, threads []classThread, byLines bool) []trace.ClassThread {
	if len(threads) == 0 {
		return nil
	}
	list := make([]trace.ClassThread, len(threads))
	for i := range threads {
		t := &threads[i]
		list[i] = trace.ClassThread{
			Role: r.roles[t.role], Node: node(t.function), Moves: t.moves, Still: !t.moves && t.once == 0, Crashed: t.crashed,
			Threads: t.threads, Least: t.least, Most: t.most, Incomplete: t.incomplete, Ends: r.text(t.ends),
		}
		if byLines {
			list[i].Node = node(t.line)
		}
	}
	compare := (*stand).compareFunctions
	if byLines {
		compare = (*stand).compareLines
	}
	// Each target has a thread of each, so that the first ones have enough.
	for _, i := range units[:min(len(units), trace.MaxClassIDs)] {
		for _, s := range r.unitStandings(&r.units[i]) {
			k, ok := slices.BinarySearchFunc(threads, s, func(t classThread, s standing) int { return compare(&t.stand, &s.stand) })
			if ok && len(list[k].IDs) < trace.MaxClassIDs {
				list[k].IDs = append(list[k].IDs, trace.ClassThreadID{Target: i, ID: s.id.String()})
			}
		}
	}
	return list
}

// unitStandings are where the threads of a unit stand, by IDs.
func (r *result) unitStandings(u *unit) []standing {
	if u.isThread {
		v := r.views[u.view]
		return []standing{{stand: v.list[0].stand, id: u.id}}
	}
	list := r.standings(u.process)
	for i := range list {
		r.renumber(&list[i].stand)
	}
	slices.SortFunc(list, func(a, b standing) int { return a.id.compare(&b.id) })
	return list
}
