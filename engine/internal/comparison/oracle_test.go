// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/proof"
)

// job is random processes, one or some of which differ from the others in a known way.
type job struct {
	*rand.Rand
	processes []*plainProcess
	moments   int
	start     time.Time
	plant     string
	planted   []int // by rank
	base      []Thread
}

// plants are ways in which the planted ranks differ. Each changes the threads of one at a moment.
var plants = map[string]func(j *job, t *Target, moment int){
	"nothing": func(*job, *Target, int) {},
	"elsewhere": func(_ *job, t *Target, _ int) {
		t.Threads[0].Frames = append(t.Threads[0].Frames[:1:1], stackOf("load read:7")...)
	},
	"slow": func(_ *job, t *Target, _ int) {
		t.Threads[0].Frames = append(t.Threads[0].Frames[:len(t.Threads[0].Frames)-1:len(t.Threads[0].Frames)-1], stackOf("compute:5")...)
	},
	"crashed": func(_ *job, t *Target, _ int) {
		t.Threads[len(t.Threads)-1].Crashed, t.Facts = true, []string{"SIGSEGV"}
	},
	"library": func(_ *job, t *Target, _ int) { t.Modules[0].BuildID = "ffff" },
	"ahead": func(_ *job, t *Target, _ int) {
		t.Threads[0].Frames = append(slices.Clone(t.Threads[0].Frames), stackOf("next:3 step:4")...)
	},
	"missing": func(_ *job, t *Target, _ int) {
		t.Threads = slices.DeleteFunc(t.Threads, func(th Thread) bool { return th.Role == "last" })
	},
	"added": func(_ *job, t *Target, _ int) {
		t.Threads = append(t.Threads, Thread{ID: "999999", Role: "extra", Frames: stackOf("start:1 spin:2")})
	},
	"moves": func(_ *job, t *Target, moment int) {
		t.Threads[0].Frames = append(slices.Clone(t.Threads[0].Frames), stackOf(fmt.Sprintf("moved:%d", moment))...)
	},
}

// newJob makes a job. Jobs with an even seed have an outlier, and are alike in all else by functions; others are
// random.
func newJob(seed uint64) *job {
	j := &job{Rand: rand.New(rand.NewPCG(seed, 50)), start: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), plant: "nothing"} //nolint:gosec // a test's
	j.moments = 1 + j.IntN(3)*j.IntN(2)
	n := 3 + j.IntN(30)
	roles := []string{"main", "worker", "io-#", "MainThread", "9", "10"}
	for i := range 2 + j.IntN(5) {
		j.base = append(j.base, Thread{ID: fmt.Sprint(100 + i), Role: roles[min(i, j.IntN(len(roles)))], Frames: j.stack(2+j.IntN(10), 0)})
	}
	if seed%2 == 0 {
		j.plan(n)
		j.base[0].Frames = append(stackOf("begin:1"), j.base[0].Frames...)
		j.base[len(j.base)-1].Role = "last"
	}
	identified := j.IntN(3) > 0
	for rank := range n {
		var moments []*Target
		for m := range j.moments {
			t := j.target(rank, m)
			if identified {
				t.Host, t.PID, t.Started = fmt.Sprint("node", rank/8), int64(1000+rank%8), j.start
				t.Taken = j.start.Add(time.Duration(m+1) * time.Second)
			}
			moments = append(moments, t)
		}
		j.processes = append(j.processes, plainProcessOf(moments))
	}
	return j
}

// plan chooses how some ranks differ.
func (j *job) plan(n int) {
	kinds := sortedKeys(plants)
	for j.plant == "nothing" || j.plant == "moves" && j.moments == 1 {
		j.plant = kinds[j.IntN(len(kinds))]
	}
	j.planted = []int{j.IntN(n)}
	if j.plant == "ahead" { // a half, or one less
		j.planted = j.Perm(n)[:(n-1)/2]
		sort.Ints(j.planted)
	}
}

// stack makes a random stack, which begins with frames that other stacks have, too.
func (j *job) stack(depth, first int) []trace.ComparedFrame {
	var names []string
	for i := range depth {
		name := string(rune('a' + j.IntN(1+min(i, 3)*j.IntN(3))))
		if j.IntN(8) == 0 {
			name += "@other"
		}
		names = append(names, fmt.Sprintf("%s:%d", name, first+j.IntN(2)))
	}
	list := stackOf(strings.Join(names, " "))
	for i := range list {
		list[i].Module = strings.TrimSuffix(list[i].Module, ":0")
		switch j.IntN(12) {
		case 0:
			list[i].Function, list[i].Offset = "", uint64(j.IntN(2))
		case 1:
			list[i].IsInlined = true
		case 2:
			list[i].IsGuess = true
		case 3:
			list[i].Runtime, list[i].Module = "cpython", ""
		}
	}
	return list
}

// target is a rank at a moment.
func (j *job) target(rank, moment int) *Target {
	t := targetOf(rank)
	t.Path = fmt.Sprintf("job/rank%d.%d.snap", rank, moment)
	t.Modules = []trace.ModuleBuild{{Name: "program", BuildID: "aaaa"}, {Name: "unused", BuildID: fmt.Sprint(rank % 2)}}
	for i := range j.base {
		th := j.base[i]
		th.Frames = slices.Clone(th.Frames)
		t.Threads = append(t.Threads, th)
	}
	if j.plant == "nothing" {
		j.disturb(t)
	} else {
		// More threads of a stack, and other lines, make no class.
		for i := range j.IntN(3) {
			th := t.Threads[1]
			th.ID = fmt.Sprint(500 + i)
			t.Threads = append(t.Threads[:1:1], append([]Thread{th}, t.Threads[1:]...)...)
		}
		if j.moments == 1 && j.IntN(4) == 0 {
			f := &t.Threads[0].Frames[len(t.Threads[0].Frames)-1]
			f.Line += 1000
		}
	}
	if slices.Contains(j.planted, rank) {
		plants[j.plant](j, t, moment)
	}
	return t
}

// disturb changes a target in any way.
func (j *job) disturb(t *Target) {
	for i := range t.Threads {
		switch j.IntN(10) {
		case 0:
			t.Threads[i].Frames = j.stack(1+j.IntN(6), j.IntN(2))
		case 1:
			t.Threads[i].Frames = t.Threads[i].Frames[:j.IntN(len(t.Threads[i].Frames)+1)]
		case 2:
			t.Threads[i].Crashed = true
		}
	}
	switch j.IntN(8) {
	case 0:
		t.Modules[0].BuildID = "bbbb"
	case 1:
		t.Modules = append(t.Modules, trace.ModuleBuild{Name: "other", BuildID: fmt.Sprint("c", j.IntN(2))})
	case 2:
		t.Facts = []string{"SIGABRT", "a fact"}[j.IntN(2):]
	case 3:
		t.Threads = t.Threads[j.IntN(len(t.Threads)):]
	case 4:
		t.Threads = append(t.Threads, t.Threads[0])
		t.Threads[len(t.Threads)-1].ID = "777"
	}
}

// targets are all moments of all processes.
func (j *job) targets() (list []*Target) {
	for _, p := range j.processes {
		list = append(list, p.moments...)
	}
	return list
}

// threads are the threads of all processes, each as a process.
func (j *job) threads() (list []*plainProcess) {
	for _, p := range j.processes {
		last := p.moments[len(p.moments)-1]
		var ids []threadID
		for i := range last.Threads {
			ids = append(ids, newThreadID(last.Threads[i].ID))
		}
		slices.SortFunc(ids, func(a, b threadID) int { return a.compare(&b) })
		for _, id := range ids {
			var moments []*Target
			for _, m := range p.moments {
				one := *m
				one.Threads = slices.DeleteFunc(slices.Clone(m.Threads), func(t Thread) bool { return t.ID != id.String() })
				if len(one.Threads) > 0 && !one.Threads[0].Crashed {
					one.Facts = nil
				}
				moments = append(moments, &one)
			}
			list = append(list, plainProcessOf(moments))
		}
		if len(ids) == 0 {
			list = append(list, p)
			p.builds = nil
		}
	}
	return list
}

func (j *job) result(byThread bool) *trace.Comparison {
	p := New(Options{ByThread: byThread})
	for _, t := range j.targets() {
		p.Add(t)
	}
	return p.Result()
}

// In random jobs the classes, the nodes and where classes part are as a plain comparison of texts finds them, the outlier is
// the first, and it does not matter in which order targets are added, merged, written and read.
func TestRandomJobsAreAsAPlainComparisonFindsThem(t *testing.T) {
	n := uint64(100)
	switch {
	case testing.Short():
		n = 30
	case proof.IsRequested():
		n = 2000
	case oracle.AllRequested():
		n = 400
	}
	planted := map[string]int{}
	for seed := range n {
		j := newJob(seed)
		want := newPlain(j.processes, false)
		have := j.result(false)
		k := &check{T: t, seed: seed, want: want, have: have}
		k.check()
		if j.plant != "nothing" {
			planted[j.plant]++
			if !slices.Equal(have.Classes[0].Targets, j.planted) {
				t.Errorf("seed %d: %s of %v: the first class is %v", seed, j.plant, j.planted, have.Classes[0].Targets)
			}
		}
		k.want, k.have = newPlain(j.threads(), true), j.result(true)
		k.check()
		whole := encoded(t, have)
		for range 3 {
			if other := encoded(t, j.merged(t).Result()); !bytes.Equal(whole, other) {
				t.Fatalf("seed %d: another order yields another result:\n%s\n%s", seed, whole, other)
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	for kind := range plants {
		if kind != "nothing" && planted[kind] == 0 && !testing.Short() {
			t.Errorf("no job with an outlier that is %s", kind)
		}
	}
	t.Log(planted)
}

// merged adds the targets in any order to some parts, and merges these in any order; some are written and read.
func (j *job) merged(t *testing.T) *Part {
	parts := []*Part{New(Options{})}
	for range j.IntN(4) {
		parts = append(parts, New(Options{}))
	}
	list := j.targets()
	for _, i := range j.Perm(len(list)) {
		parts[j.IntN(len(parts))].Add(list[i])
	}
	for len(parts) > 1 {
		i := j.IntN(len(parts) - 1)
		if j.IntN(2) == 0 {
			parts[i] = reread(t, parts[i])
		}
		parts[i].Merge(parts[i+1])
		parts = slices.Delete(parts, i+1, i+2)
	}
	return reread(t, parts[0])
}

// check compares a comparison with a plain one.
type check struct {
	*testing.T
	seed uint64
	want *plain
	have *trace.Comparison
}

func (k *check) path(nodes []trace.CallNode, n int, name func(*trace.ComparedFrame) string) (list []string) {
	for ; n >= 0; n = nodes[n].Parent {
		list = append(list, name(&nodes[n].Frame))
	}
	slices.Reverse(list)
	return list
}

func (k *check) errorf(format string, args ...any) {
	k.Helper()
	k.Errorf("seed %d: %s", k.seed, fmt.Sprintf(format, args...))
}

func (k *check) check() {
	if len(k.have.Targets) != len(k.want.all) || len(k.have.Classes) != len(k.want.classes) {
		k.errorf("%d targets, %d classes, expected %d, %d", len(k.have.Targets), len(k.have.Classes), len(k.want.all), len(k.want.classes))
		return
	}
	for i, c := range k.want.classes {
		have := &k.have.Classes[i]
		if !slices.Equal(have.Targets, c.targets) {
			k.errorf("class %d: targets %v, expected %v", i, have.Targets, c.targets)
			return
		}
		k.threads(have.Targets, have.Threads, k.have.Functions, plainFunction, func(s *plainStand) (string, []string) { return s.key(), s.functions })
		k.variants(have)
		k.parting(i, have.PartsAt, c.parting)
		k.builds(have, k.want.all[c.targets[0]])
	}
	k.nodes(k.have.Functions, plainFunction, k.want.nodes(func(s *plainStand) []string { return s.functions }))
	k.nodes(k.have.Lines, plainLine, k.want.nodes(func(s *plainStand) []string { return s.lines }))
	for i := range k.have.Lines {
		n := &k.have.Lines[i]
		if have, want := plainFunction(&k.have.Functions[n.Function].Frame), plainFunction(&n.Frame); have != want {
			k.errorf("line node %d has the function %s, expected %s", i, have, want)
		}
		if n.Parent >= 0 && k.have.Lines[n.Parent].Function != k.have.Functions[n.Function].Parent {
			k.errorf("line node %d: the caller has another function", i)
		}
	}
}

// threads checks the threads of a class or a variant.
func (k *check) threads(targets []int, have []trace.ClassThread, nodes []trace.CallNode, name func(*trace.ComparedFrame) string, key func(*plainStand) (string, []string)) {
	type numbers struct {
		perTarget map[int]int
		all       int
		still     bool
		frames    string
	}
	want := map[string]*numbers{}
	for _, i := range targets {
		for s := range k.want.all[i].stands {
			one := &k.want.all[i].stands[s]
			id, frames := key(one)
			if want[id] == nil {
				want[id] = &numbers{perTarget: map[int]int{}, still: true, frames: one.role + "|" + strings.Join(frames, "\n") + fmt.Sprint(one.moves, one.crashed)}
			}
			n := want[id]
			n.perTarget[i]++
			n.all++
			n.still = n.still && one.still
		}
	}
	if len(have) != len(want) {
		k.errorf("%d threads of targets %v, expected %d", len(have), targets, len(want))
		return
	}
	byFrames := map[string]*numbers{}
	for _, n := range want {
		byFrames[n.frames] = n
	}
	for i := range have {
		h := &have[i]
		n := byFrames[h.Role+"|"+strings.Join(k.path(nodes, h.Node, name), "\n")+fmt.Sprint(h.Moves, h.Crashed)]
		if n == nil {
			k.errorf("targets %v have no thread %+v", targets, h)
			continue
		}
		least, most := n.all, 0
		for _, c := range n.perTarget {
			least, most = min(least, c), max(most, c)
		}
		if len(n.perTarget) != len(targets) || h.Threads != n.all || h.Least != least || h.Most != most || h.Still != n.still {
			k.errorf("targets %v: %+v, expected %+v, %d-%d", targets, h, n, least, most)
		}
		if len(h.IDs) != min(trace.MaxClassIDs, n.all) {
			k.errorf("targets %v: %d IDs of %d threads", targets, len(h.IDs), n.all)
		}
		for _, id := range h.IDs {
			if !slices.ContainsFunc(k.want.all[id.Target].stands, func(s plainStand) bool { return s.id == id.ID && s.role == h.Role && s.crashed == h.Crashed }) {
				k.errorf("target %d has no thread %s", id.Target, id.ID)
			}
		}
	}
}

// variants checks that a class is divided by lines, the smallest variant first.
func (k *check) variants(have *trace.TargetClass) {
	want := map[string][]int{}
	for _, i := range have.Targets {
		keys := map[string]bool{}
		for s := range k.want.all[i].stands {
			keys[k.want.all[i].stands[s].lineKey()] = true
		}
		key := fmt.Sprintf("%q", sortedKeys(keys))
		want[key] = append(want[key], i)
	}
	var lists [][]int
	for _, list := range want {
		lists = append(lists, list)
	}
	sort.Slice(lists, func(i, j int) bool {
		return len(lists[i]) < len(lists[j]) || len(lists[i]) == len(lists[j]) && lists[i][0] < lists[j][0]
	})
	if len(have.Variants) != len(lists) {
		k.errorf("%d variants, expected %d", len(have.Variants), len(lists))
		return
	}
	for i := range have.Variants {
		v := &have.Variants[i]
		if !slices.Equal(v.Targets, lists[i]) {
			k.errorf("variant %v, expected %v", v.Targets, lists[i])
			continue
		}
		k.threads(v.Targets, v.Threads, k.have.Lines, plainLine, func(s *plainStand) (string, []string) { return s.lineKey(), s.lines })
	}
}

// parting checks where a class parts.
func (k *check) parting(class int, have *trace.Parting, want *plainParting) {
	if have == nil || want == nil {
		if (have == nil) != (want == nil) {
			k.errorf("class %d parts at %+v, expected %+v", class, have, want)
		}
		return
	}
	name := func(n int) string {
		if n < 0 {
			return ""
		}
		return plainFunction(&k.have.Functions[n].Frame)
	}
	got := &plainParting{
		role: have.Role, stack: have.Role + "|" + strings.Join(k.path(k.have.Functions, have.Node, plainFunction), "\n"), isMissing: have.IsMissing,
		last: len(k.path(k.have.Functions, have.Last, plainFunction)), here: name(have.Here),
	}
	for i, b := range have.There {
		got.there = append(got.there, fmt.Sprint(name(b.Node), " ", b.Targets, " ", b.Threads))
		if i > 0 && b.Targets > have.There[i-1].Targets {
			k.errorf("class %d: a branch of more targets is behind one of fewer", class)
		}
	}
	sort.Strings(got.there)
	if got.last != max(want.last, 0) || got.role != want.role || got.stack != want.stack || got.isMissing != want.isMissing || got.here != want.here ||
		len(got.there)+have.More != len(want.there) || have.More == 0 && !slices.Equal(got.there, want.there) {
		k.errorf("class %d parts at %+v (%d more), expected %+v", class, got, have.More, want)
	}
	for _, b := range got.there {
		if !slices.Contains(want.there, b) {
			k.errorf("class %d: no branch %q in %q", class, b, want.there)
		}
	}
}

func (k *check) builds(have *trace.TargetClass, want *plainProcess) {
	byName := map[string][]string{}
	for _, b := range have.Builds {
		byName[b.Name] = append(byName[b.Name], b.BuildID)
	}
	var list []string
	for _, name := range sortedKeys(byName) {
		list = append(list, name+"="+strings.Join(byName[name], ","))
	}
	if !slices.Equal(list, want.builds) || strings.Join(have.Facts, ";") != strings.Join(want.facts, ";") {
		k.errorf("builds %q, facts %q, expected %q, %q", list, have.Facts, want.builds, want.facts)
	}
}

// nodes checks the counts of a tree.
func (k *check) nodes(nodes []trace.CallNode, name func(*trace.ComparedFrame) string, want map[string]*plainNode) {
	if len(nodes) != len(want) {
		k.errorf("%d nodes, expected %d", len(nodes), len(want))
	}
	for i := range nodes {
		n := &nodes[i]
		if n.Parent >= i {
			k.errorf("node %d precedes its parent %d", i, n.Parent)
			return
		}
		one := want[strings.Join(k.path(nodes, i, name), "\n")]
		if one == nil {
			k.errorf("node %d is in no stack", i)
			continue
		}
		ok := n.Threads == one.threads && n.Ends == one.ends && n.Targets == one.targets && n.ClassCount == len(one.classes) && slices.IsSorted(n.Classes) && len(n.Classes) == len(one.classes)
		for _, c := range n.Classes {
			ok = ok && one.classes[c]
		}
		if !ok {
			k.errorf("node %d: %+v, expected %+v", i, n, one)
		}
	}
}
