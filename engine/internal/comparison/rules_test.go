// SPDX-License-Identifier: Apache-2.0

package comparison

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// classesOf writes the classes as ranks and what tells them apart: "3 SIGSEGV; 0-2,4".
func classesOf(c *trace.Comparison) string {
	var list []string
	for i := range c.Classes {
		class := &c.Classes[i]
		text := class.Labels["rank"]
		if class.Unread != "" {
			text += " unread: " + class.Unread
		}
		for _, f := range class.Facts {
			text += " " + f
		}
		for _, b := range class.Builds {
			text += " " + b.Name + "=" + b.BuildID
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}

// partingOf writes where a class parts: "main a>b" is the last common frame and the next one, then where others go.
func partingOf(c *trace.Comparison, class int) string {
	p := c.Classes[class].PartsAt
	if p == nil {
		return "nowhere"
	}
	name := func(n int) string {
		if n < 0 {
			return "-"
		}
		return c.Functions[n].Frame.Function
	}
	text := fmt.Sprintf("%s %s: %s>%s", p.Role, name(p.Node), name(p.Last), name(p.Here))
	if p.IsMissing {
		text = "missing " + text
	}
	for _, b := range p.There {
		text += fmt.Sprintf(" %s*%d/%d", name(b.Node), b.Targets, b.Threads)
	}
	if p.More > 0 {
		text += fmt.Sprintf(" +%d", p.More)
	}
	return text
}

func expect(t *testing.T, have, want string) {
	t.Helper()
	if have != want {
		t.Errorf("%q, expected %q", have, want)
	}
}

// job of ranks whose main threads have stacks.
func mains(stacks ...string) (list []*Target) {
	for rank, s := range stacks {
		list = append(list, targetOf(rank, "1 main: "+s))
	}
	return list
}

func TestHowManyThreadsHaveAStackMakesNoClass(t *testing.T) {
	c := resultOf(
		targetOf(0, "1 main: a b", "2 worker: s w", "3 worker: s w"),
		targetOf(1, "1 main: a b", "2 worker: s w"),
		targetOf(2, "1 main: a b", "5 worker: s w", "3 worker: s w", "4 worker: s w"))
	expect(t, classesOf(c), "0-2")
	w := c.Classes[0].Threads[1]
	if w.Role != "worker" || w.Threads != 6 || w.Least != 1 || w.Most != 3 {
		t.Errorf("%+v", w)
	}
	want := []trace.ClassThreadID{{Target: 0, ID: "2"}, {Target: 0, ID: "3"}, {Target: 1, ID: "2"}, {Target: 2, ID: "3"}, {Target: 2, ID: "4"}, {Target: 2, ID: "5"}}
	if !slices.Equal(w.IDs, want) {
		t.Errorf("%+v, expected %+v", w.IDs, want)
	}
}

func TestEqualStacksOfOtherRolesMakeClasses(t *testing.T) {
	c := resultOf(targetOf(0, "1 main: a b"), targetOf(1, "1 main: a b"), targetOf(2, "1 other: a b"))
	expect(t, classesOf(c), "2; 0-1")
	expect(t, partingOf(c, 0), "other b: ->a")
}

func TestLinesDivideClassesIntoVariants(t *testing.T) {
	c := resultOf(mains("a:1 b:2", "a:1 b:3", "a:1 b:2")...)
	expect(t, classesOf(c), "0-2")
	v := c.Classes[0].Variants
	if len(v) != 2 || !slices.Equal(v[0].Targets, []int{1}) || !slices.Equal(v[1].Targets, []int{0, 2}) || c.Lines[v[0].Threads[0].Node].Frame.Line != 3 {
		t.Errorf("%+v", v)
	}
	for i, want := range []int{1, 0, 1} {
		if c.Targets[i].Variant != want {
			t.Errorf("target %d is of variant %d", i, c.Targets[i].Variant)
		}
	}
}

func TestInlinedCallsAndGuessesMakeNoClass(t *testing.T) {
	list := mains("a b", "a b")
	list[1].Threads[0].Frames[1].IsInlined, list[1].Threads[0].Frames[1].IsGuess = true, true
	c := resultOf(list...)
	expect(t, classesOf(c), "0-1")
	if f := c.Functions[1].Frame; f.IsInlined || !f.IsGuess {
		t.Errorf("%+v, expected a guess that is not inlined", f)
	}
	if len(c.Classes[0].Variants) != 2 {
		t.Errorf("%d variants", len(c.Classes[0].Variants))
	}
}

func TestFramesWithoutANameAreTheirOffsets(t *testing.T) {
	list := mains("a b", "a b", "a b")
	for i := range list {
		list[i].Threads[0].Frames[1] = trace.ComparedFrame{Module: "lib.so", Offset: uint64(i / 2)}
		list[i].Threads[0].Frames[0].Offset = uint64(i) // that of a named function does not count
	}
	expect(t, classesOf(resultOf(list...)), "2; 0-1")
}

func TestFactsDivideClasses(t *testing.T) {
	list := mains("a", "a", "a")
	list[1].Facts = []string{"SIGSEGV"}
	c := resultOf(list...)
	expect(t, classesOf(c), "1 SIGSEGV; 0,2")
	expect(t, partingOf(c, 0), "nowhere")
}

func TestBuildsDivideClassesWhereTheyAreInStacks(t *testing.T) {
	list := mains("a@lib", "a@lib", "a@lib", "a@lib")
	for i, t := range list {
		t.Modules = []trace.ModuleBuild{{Name: "lib", BuildID: "aa"}, {Name: "unused", BuildID: fmt.Sprint(i % 2)}, {Name: "same", BuildID: "cc"}}
	}
	list[2].Modules[0].BuildID = "bb"
	list[3].Modules = list[3].Modules[1:] // not known
	c := resultOf(list...)
	expect(t, classesOf(c), "2 lib=bb; 3; 0-1 lib=aa")
	want := []trace.ModuleBuilds{
		{Name: "lib", Builds: []trace.TargetsOfBuild{{BuildID: "", Targets: []int{3}, Count: 1}, {BuildID: "bb", Targets: []int{2}, Count: 1}, {BuildID: "aa", Targets: []int{0, 1}, Count: 2}}},
		{Name: "unused", Builds: []trace.TargetsOfBuild{{BuildID: "0", Targets: []int{0, 2}, Count: 2}, {BuildID: "1", Targets: []int{1, 3}, Count: 2}}},
	}
	if fmt.Sprintf("%+v", c.Modules) != fmt.Sprintf("%+v", want) {
		t.Errorf("%+v, expected %+v", c.Modules, want)
	}
}

func TestAModuleThatSomeTargetsLackIsNoDifference(t *testing.T) {
	list := mains("a", "a")
	list[0].Modules = []trace.ModuleBuild{{Name: "lib", BuildID: "aa"}}
	c := resultOf(list...)
	if expect(t, classesOf(c), "0-1"); c.Modules != nil {
		t.Errorf("%+v", c.Modules)
	}
}

func TestOfEquallyLargeClassesTheRarestStackIsFirst(t *testing.T) {
	// Rank 1 stands alone, rank 4 alone has not a stack, and rank 0 has one that rank 4 has too.
	c := resultOf(targetOf(0, "1 main: a", "2 w: s", "3 w: t"), targetOf(1, "1 main: b", "2 w: s"), targetOf(2, "1 main: a", "2 w: s"),
		targetOf(3, "1 main: a", "2 w: s"), targetOf(4, "1 main: a", "2 w: t"), targetOf(5, "1 main: a", "2 w: s"))
	expect(t, classesOf(c), "1; 4; 0; 2-3,5")
	// Of those that part from the others, the one that does so further out.
	c = resultOf(mains("a barrier poll x", "a barrier poll y", "a sleep z", "a barrier poll w")...)
	expect(t, classesOf(c), "2; 0; 1; 3")
	expect(t, partingOf(c, 0), "main z: a>sleep barrier*3/3")
	// A crash is before that.
	list := mains("a barrier poll x", "a barrier poll y", "a sleep z", "a barrier poll w")
	list[3].Threads[0].Crashed = true
	expect(t, classesOf(resultOf(list...)), "3; 2; 0; 1")
}

func TestOfTwoLargestClassesTheFirstParts(t *testing.T) {
	c := resultOf(mains("a b", "a c", "a b", "a c")...)
	expect(t, classesOf(c), "0,2; 1,3")
	expect(t, partingOf(c, 0), "main b: a>b c*2/2")
	expect(t, partingOf(c, 1), "nowhere")
}

func TestAStackThatEndsEarlierPartsAtItsEnd(t *testing.T) {
	c := resultOf(mains("a b c", "a b", "a b c")...)
	expect(t, partingOf(c, 0), "main b: b>- c*2/2")
	c = resultOf(mains("a b", "a b c", "a b")...)
	expect(t, partingOf(c, 0), "main c: b>c -*2/2")
}

func TestAMissingThreadIsWhereAClassParts(t *testing.T) {
	c := resultOf(targetOf(0, "1 main: a", "2 w: s t u"), targetOf(1, "1 main: a", "2 w: s x"), targetOf(2, "1 main: a"),
		targetOf(3, "1 main: a", "2 w: s t u", "3 w: s x"), targetOf(4, "1 main: a", "2 w: s t u", "3 w: s x", "4 w: s x"))
	expect(t, classesOf(c), "2; 0; 1; 3-4")
	expect(t, partingOf(c, 0), "missing w u: ->- s*3/3")
	expect(t, partingOf(c, 1), "missing w x: s>- x*3/4")
	if p := c.Classes[1].PartsAt; c.Functions[p.Last].Frame.Function != "s" {
		t.Errorf("%+v", p)
	}
}

func TestBranchesAreTheMostFrequentOnes(t *testing.T) {
	var list []*Target
	add := func(threads ...string) { list = append(list, targetOf(len(list), threads...)) }
	add("1 main: a here")
	for i := range 20 {
		name := string(rune('b' + i))
		for range 1 + i%3 {
			add("1 main: a "+name, "2 main: a "+name)
		}
	}
	c := resultOf(list...)
	expect(t, classesOf(c)[:1], "0")
	expect(t, partingOf(c, 0), "main here: a>here d*3/6 g*3/6 j*3/6 m*3/6 p*3/6 s*3/6 c*2/4 f*2/4 +12")
	// The class's own threads do not count.
	c = resultOf(targetOf(0, "1 main: a here", "2 main: a c"), targetOf(1, "1 main: a b"), targetOf(2, "1 main: a b"), targetOf(3, "1 main: a c"))
	expect(t, partingOf(c, 0), "main here: a>here b*2/2 c*1/1")
}

func TestThreadsWithoutFramesAreSaid(t *testing.T) {
	list := []*Target{targetOf(0, "1 main: a"), targetOf(1, "1 main: a"), targetOf(2, "1 main: ")}
	list[2].Threads[0].Ends = "memory is not there"
	c := resultOf(list...)
	expect(t, classesOf(c), "2; 0-1")
	th := c.Classes[0].Threads[0]
	if th.Node != -1 || th.Incomplete != 1 || th.Ends != "memory is not there" || c.Targets[2].Threads != 0 || c.Targets[1].Threads != 1 {
		t.Errorf("%+v", th)
	}
	expect(t, partingOf(c, 0), "main -: ->- a*2/2")
}

// at adds what is known of a process and a moment.
func at(t *Target, host string, pid int64, started, taken int) *Target {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	t.Host, t.PID = host, pid
	if started != 0 {
		t.Started = start.Add(time.Duration(started) * time.Second)
	}
	if taken != 0 {
		t.Taken = start.Add(time.Duration(taken) * time.Second)
	}
	return t
}

func TestWhoMovesBetweenMomentsIsTold(t *testing.T) {
	moment := func(rank, taken int, stack string) *Target {
		return at(targetOf(rank, "1 main: "+stack, "2 w: s t"), "h", int64(10+rank), 1, taken)
	}
	c := resultOf(
		moment(0, 100, "a:1 b:2 c:3"), moment(0, 101, "a:1 b:2 d:4"), moment(0, 102, "a:1 b:5"),
		moment(1, 100, "a:1 b:2"), moment(1, 101, "a:1 b:2"), moment(1, 102, "a:1 b:2"),
		moment(2, 102, "a:1 b:2"), moment(2, 101, "a:1 b:2"), moment(2, 100, "a:1 b:2"))
	expect(t, classesOf(c), "0; 1-2")
	mover, still := c.Classes[0].Threads[0], c.Classes[1].Threads[0]
	name := c.Functions[mover.Node].Frame.Function
	if !mover.Moves || mover.Still || name != "b" || still.Moves || !still.Still {
		t.Errorf("%+v in %s, %+v", mover, name, still)
	}
	if v := c.Classes[0].Variants[0].Threads[0]; c.Lines[v.Node].Frame.Function != "a" {
		t.Errorf("by lines it moves in %+v", c.Lines[v.Node].Frame)
	}
	if one := c.Targets[2]; one.Count != 3 || len(one.Moments) != 3 || !slices.IsSortedFunc(one.Moments, time.Time.Compare) || one.Path != "job/rank2.snap" {
		t.Errorf("%+v", one)
	}
	expect(t, partingOf(c, 0), "nowhere") // it is where the others are
	for i := range c.Functions {
		if f := c.Functions[i].Frame.Function; f == "c" || f == "d" {
			t.Errorf("%s, in which no thread was at all moments, is a node", f)
		}
	}
}

func TestMomentsThatAreNotKnownToBeOfOneProcessAreAGuess(t *testing.T) {
	c := resultOf(targetOf(0, "1 main: a"), targetOf(0, "1 main: a"), targetOf(1, "1 main: a"))
	if len(c.Targets) != 2 || c.Targets[0].Count != 2 || !strings.Contains(fmt.Sprint(c.Targets[0].Problems), "a guess") || len(c.Targets[1].Problems) > 0 {
		t.Errorf("%+v", c.Targets)
	}
	if len(c.Problems) != 1 || !strings.Contains(c.Problems[0], "1 targets have one moment, and 1 several") {
		t.Errorf("%q", c.Problems)
	}
}

func TestOneProcessIsFoundByHostPIDAndStart(t *testing.T) {
	for _, one := range []struct {
		name string
		a, b *Target
		want int
	}{
		{"the same", at(targetOf(0), "h", 7, 1, 100), at(targetOf(0), "h", 7, 1, 101), 1},
		{"a clock was set", at(targetOf(0), "h", 7, 1, 100), at(targetOf(0), "h", 7, 2, 101), 1},
		{"another start", at(targetOf(0), "h", 7, 1, 100), at(targetOf(0), "h", 7, 50, 101), 2},
		{"another PID", at(targetOf(0), "h", 7, 1, 100), at(targetOf(0), "h", 8, 1, 101), 2},
		{"another host", at(targetOf(0), "h", 7, 1, 100), at(targetOf(0), "g", 7, 1, 101), 2},
		{"another rank in a container of the same name", at(targetOf(0), "h", 1, 1, 100), at(targetOf(1), "h", 1, 1, 101), 2},
		{"the start is not known", at(targetOf(0), "h", 7, 1, 100), at(targetOf(0), "h", 7, 0, 101), 1},
		{"other PIDs of a rank", at(targetOf(0), "", 7, 0, 0), at(targetOf(0), "", 8, 0, 0), 2},
		{"other ranks of a PID", at(targetOf(0), "", 1, 0, 0), at(targetOf(1), "", 1, 0, 0), 2},
		{"the host is not known", at(targetOf(0), "", 7, 1, 100), at(targetOf(0), "", 7, 1, 101), 1},
		{"the host of one is not known", at(targetOf(0), "h", 7, 1, 100), at(targetOf(0), "", 7, 1, 101), 2},
		{"neither host nor rank is known", at(&Target{Path: "a"}, "", 1, 1, 100), at(&Target{Path: "b"}, "", 1, 1, 101), 2},
	} {
		one.b.Path += ".again"
		c := resultOf(one.a, one.b)
		if have := len(c.Targets); have != one.want {
			t.Errorf("%s: %d processes, expected %d", one.name, have, one.want)
		}
		isSaid := slices.ContainsFunc(c.Problems, func(s string) bool { return strings.HasPrefix(s, "rank 0 is the label of 2 processes") })
		if sameRank := one.a.Labels["rank"] == one.b.Labels["rank"]; isSaid != (one.want == 2 && sameRank && one.a.Labels != nil) {
			t.Errorf("%s: %q", one.name, c.Problems)
		}
	}
}

func TestTheSameMomentTwiceIsNoMovement(t *testing.T) {
	a := at(targetOf(0, "1 main: a b"), "h", 7, 1, 100)
	b := at(targetOf(0, "1 main: a c"), "h", 7, 1, 100)
	b.Path = "job/rank0.snap.copy"
	c := resultOf(b, a, at(targetOf(1, "1 main: a b"), "h", 8, 1, 100))
	if c.Targets[0].Count != 1 || c.Classes[0].Threads[0].Moves || !strings.Contains(fmt.Sprint(c.Targets[0].Problems), "at one time, with other stacks") {
		t.Errorf("%+v", c.Targets)
	}
	expect(t, classesOf(c), "0-1")
}

func TestThreadsOfOneIDAreNotMatched(t *testing.T) {
	c := resultOf(at(targetOf(0, "1 main: a", "2 w: b", "2 w: c"), "h", 7, 1, 100), at(targetOf(0, "1 main: a", "2 w: c", "2 w: b"), "h", 7, 1, 101),
		targetOf(1, "1 main: a"))
	for _, th := range c.Classes[0].Threads {
		if th.Moves || th.Still != (th.Role == "main") {
			t.Errorf("%+v", th)
		}
	}
}

func TestTargetsThatCannotBeReadAreClassesOfTheirReasons(t *testing.T) {
	unread := func(rank int, reason string) *Target {
		u := targetOf(rank)
		u.Unread = strings.ReplaceAll(reason, "PATH", u.Path)
		return u
	}
	list := append(mains("a", "a", "a", "a", "a"),
		unread(5, "PATH: program header 3 is at 0x40, expected a 64-bit file of 900 bytes"), unread(6, "PATH: program header 17 is at 0x80, expected a 64-bit file of 901 bytes"),
		unread(7, "open PATH: permission denied"), unread(8, "PATH: offset 55"), unread(9, "open /work/PATH: offset 55"))
	c := resultOf(list...)
	expect(t, classesOf(c), "7 unread: permission denied; 5-6 unread: program header # is at #, expected a 64-bit file of # bytes; 8-9 unread: offset 55; 0-4")
	if p := c.Targets[5].Problems; len(p) != 1 || !strings.Contains(p[0], "program header 3") {
		t.Errorf("%q", p)
	}
	if c.Classes[0].PartsAt != nil || c.Classes[0].Threads != nil {
		t.Errorf("%+v", c.Classes[0])
	}
}

func TestAMomentThatCannotBeReadIsAProblemOfItsProcess(t *testing.T) {
	gone := at(targetOf(0), "h", 7, 1, 101)
	gone.Unread = "it ended"
	c := resultOf(at(targetOf(0, "1 main: a"), "h", 7, 1, 100), gone, targetOf(1, "1 main: a"))
	if len(c.Targets) != 2 || !slices.Contains(c.Targets[0].Problems, "1 of its 2 moments could not be read: it ended") {
		t.Errorf("%+v", c.Targets)
	}
}

func TestTimesThatContradictEachOtherAreSaid(t *testing.T) {
	early := at(targetOf(0, "1 main: a"), "h", 7, 500, 100)
	c := resultOf(early, at(targetOf(1, "1 main: a"), "h", 8, 1, 100))
	if !strings.Contains(fmt.Sprint(c.Targets[0].Problems), "before it started") {
		t.Errorf("%q", c.Targets[0].Problems)
	}
	c = resultOf(at(targetOf(0, "1 main: a"), "h", 7, 1, 100), at(targetOf(1, "1 main: a"), "h", 8, 1, 1000))
	expect(t, strings.Join(c.Problems, ";"), "targets of host h were taken within 15m0s, not at one moment")
	c = resultOf(at(targetOf(0, "1 main: a"), "h", 7, 1, 100), at(targetOf(1, "1 main: a"), "g", 8, 1, 1000))
	expect(t, strings.Join(c.Problems, ";"), "the times at which targets were taken differ by 15m0s between hosts: either they were not taken at one moment, or clocks differ")
	c = resultOf(at(targetOf(0, "1 main: a"), "h", 7, 1, 100), at(targetOf(1, "1 main: a"), "g", 8, 1, 150))
	expect(t, strings.Join(c.Problems, ";"), "")
}

func TestASingleTargetIsComparedByItsThreads(t *testing.T) {
	one := targetOf(4, "1 main: a", "2 w: s t", "3 w: s t", "10 w: s u", "11 w: s t")
	one.Facts = []string{"deadlock"}
	c := resultOf(one)
	if !c.ByThread || len(c.Targets) != 5 || len(c.Classes) != 3 {
		t.Fatalf("%s", encoded(t, c))
	}
	want := []string{"10", "1", "2-3,11"} // no other is a main thread
	for i := range c.Classes {
		expect(t, c.Classes[i].Labels["thread"], want[i])
		expect(t, c.Classes[i].Labels["rank"], "4")
	}
	expect(t, partingOf(c, 0), "w u: s>u t*3/3")
	expect(t, strings.Join(c.Problems, ";"), "job/rank4.snap: deadlock")
	// Options.ByThread compares the threads of several targets, too. A target's facts belong to the thread that crashed.
	p := New(Options{ByThread: true})
	list := mains("a", "a", "a")
	list[1].Facts, list[1].Threads[0].Crashed = []string{"SIGSEGV"}, true
	for _, t := range list {
		p.Add(t)
	}
	c = p.Result()
	if !c.ByThread || len(c.Classes) != 2 || len(c.Classes[0].Facts) != 1 {
		t.Errorf("%s", encoded(t, c))
	}
}

// crashedTargets are three that crash for two causes and one that did not crash. Their other threads are elsewhere each.
func crashedTargets() (list []*Target) {
	for rank, cause := range []string{"parse", "check", "parse"} {
		one := targetOf(rank, "1 main!: run handle "+cause, "2 w: s t"+fmt.Sprint(rank))
		one.Facts = []string{"SIGSEGV"}
		list = append(list, one)
	}
	other := targetOf(3, "1 main: run", "2 w: s t9")
	other.Facts = []string{"deadlock"}
	return append(list, other)
}

func TestOnlyThreadsThatCrashedAreCompared(t *testing.T) {
	p := New(Options{CrashedOnly: true})
	for _, one := range crashedTargets() {
		p.Add(one)
	}
	c := p.Result()
	expect(t, classesOf(c), "1 SIGSEGV; 3 none of its threads is known to have crashed; 0,2 SIGSEGV")
	expect(t, partingOf(c, 0), "main check: handle>check parse*2/2")
	// Of targets in which no thread crashed nothing is said but that.
	expect(t, partingOf(c, 1), "nowhere")
	expect(t, partingOf(c, 2), "nowhere")
	if !c.CrashedOnly || c.Targets[0].Threads != 1 || c.Targets[3].Threads != 0 || len(c.Functions) != 4 {
		t.Errorf("%s", encoded(t, c))
	}
	if whole := resultOf(crashedTargets()...); len(whole.Classes) != 4 || whole.CrashedOnly {
		t.Errorf("without the choice the other threads divide the targets too: %s", classesOf(whole))
	}
}

// The most targets in which no thread crashed are no rest from which the others part.
func TestTargetsThatDidNotCrashAreNotTheRest(t *testing.T) {
	p := New(Options{CrashedOnly: true})
	for _, one := range append(crashedTargets()[:1], mains("a", "a", "a", "a")[1:]...) {
		p.Add(one)
	}
	c := p.Result()
	expect(t, classesOf(c), "0 SIGSEGV; 1-3 none of its threads is known to have crashed")
	expect(t, partingOf(c, 0), "nowhere")
}

func TestCrashedThreadsOfASingleTargetAreComparedWithEachOther(t *testing.T) {
	of := func(one *Target) *trace.Comparison {
		p := New(Options{CrashedOnly: true})
		p.Add(one)
		return p.Result()
	}
	c := of(targetOf(0, "1 main: a", "2 w!: s t", "3 w!: s u", "4 w: s v"))
	if !c.ByThread || len(c.Targets) != 2 || len(c.Classes) != 2 {
		t.Errorf("%s", encoded(t, c))
	}
	// Where none crashed there is a target, and no thread.
	if c = of(targetOf(0, "1 main: a", "2 w: s t")); c.ByThread || len(c.Targets) != 1 {
		t.Errorf("%s", encoded(t, c))
	}
}

// A part keeps all threads, so that the choice is made when parts are compared: it holds for all of them, whichever part
// has it and in whatever order they come.
func TestAChoiceOfCrashedThreadsIsOfAllPartsThatAreMerged(t *testing.T) {
	want := ""
	for _, choice := range [][]bool{{true, true, false}, {true, false, false}, {false, true, false}, {false, false, true}} {
		parts := []*Part{New(Options{CrashedOnly: choice[0]}), New(Options{CrashedOnly: choice[1]})}
		for i, one := range crashedTargets() {
			parts[i%2].Add(one)
		}
		all := New(Options{CrashedOnly: choice[2]})
		for _, p := range parts {
			all.Merge(reread(t, p))
		}
		have := string(encoded(t, reread(t, all).Result()))
		if want == "" {
			want = have
		}
		if have != want || !strings.Contains(have, noneCrashed) {
			t.Errorf("%v: %s", choice, have)
		}
	}
}

func TestTargetsAreInTheOrderOfTheirNumbers(t *testing.T) {
	var list []*Target
	for _, name := range []string{"x10", "x9", "x010", "y1", "x"} {
		list = append(list, &Target{Path: name, Threads: []Thread{{ID: "1", Role: "main", Frames: stackOf("a")}}})
	}
	list = append(list, targetOf(11, "1 main: a"), targetOf(2, "1 main: a"))
	var paths []string
	for _, one := range resultOf(list...).Targets {
		paths = append(paths, one.Path)
	}
	expect(t, strings.Join(paths, " "), "job/rank2.snap job/rank11.snap x x9 x010 x10 y1")
}

func TestValuesAreShort(t *testing.T) {
	for _, one := range []struct{ values, want string }{
		{"", ""}, {"5", "5"}, {"3 1 2 7 2", "1-3,7"}, {"10 9 1 2", "1-2,9-10"}, {"b a b", "a, b"}, {"node2 node10 4 3", "3-4, node2, node10"},
		{"007 7", "7, 007"}, {"a b c d e f g h i", "a, b, c, d, e, f, g, h, i"}, {"a b c d e f g h i j", "a, b, c, d, e, f, g, h and 2 more"},
		{"18446744073709551615 18446744073709551616 -1", "-1, 18446744073709551615, 18446744073709551616"},
	} {
		expect(t, Short(strings.Fields(one.values)), one.want)
	}
}

func TestSignaturesDoNotDependOnOtherTargets(t *testing.T) {
	a := resultOf(mains("a b", "a c d", "a c d")...)
	b := resultOf(append(mains("a x", "a c", "a x", "a c", "a b", "a x", "a c"), targetOf(9, "1 main: a x", "2 other: q"))...)
	find := func(c *trace.Comparison, rank string) string {
		for i := range c.Classes {
			if c.Classes[i].Labels["rank"] == rank {
				return c.Classes[i].Signature
			}
		}
		return "none"
	}
	expect(t, find(b, "4"), find(a, "0"))
	expect(t, find(a, "0"), "unwindd-class-1:61c2e94453fc20af")
	met := map[string]bool{}
	for i := range b.Classes {
		met[b.Classes[i].Signature] = true
	}
	if len(met) != len(b.Classes) {
		t.Errorf("%d signatures of %d classes", len(met), len(b.Classes))
	}
}

func TestStacksThatAreDeepAndManyThreadsAreCompared(t *testing.T) {
	var names strings.Builder
	for i := range 10000 {
		fmt.Fprintf(&names, "r%d ", i%3)
	}
	deep := stackOf(names.String())
	var list []*Target
	for rank := range 20 {
		one := targetOf(rank)
		one.Threads = append(one.Threads, Thread{ID: "1", Role: "main", Frames: deep[:len(deep)-isTrue(rank == 7)]})
		for i := range 1000 {
			one.Threads = append(one.Threads, Thread{ID: fmt.Sprint(10 + i), Role: "w", Frames: deep[:i%10]})
		}
		list = append(list, one)
	}
	c := resultOf(list...)
	expect(t, classesOf(c), "7; 0-6,8-19")
	if n := len(c.Functions); n != 10000 || c.Functions[n-1].Targets != 19 || c.Functions[0].Threads != 20*901 {
		t.Errorf("%d nodes, %+v", n, c.Functions[0])
	}
}

func TestNotesAreMerged(t *testing.T) {
	p, q := New(Options{}), New(Options{})
	p.AddNote("b", []byte("1"))
	p.AddNote("a", []byte("3"))
	q.AddNote("b", []byte("1"))
	q.AddNote("b", []byte("0"))
	p.Merge(reread(t, q))
	var list []string
	p.Notes(func(key string, data []byte) { list = append(list, key+string(data)) })
	expect(t, strings.Join(list, " "), "a3 b0 b1")
}

func TestNoTargetsAreNoClasses(t *testing.T) {
	c := New(Options{}).Result()
	if len(c.Classes) != 0 || len(c.Targets) != 0 || c.ByThread {
		t.Errorf("%+v", c)
	}
	c = resultOf(targetOf(0), targetOf(1))
	if len(c.Classes) != 1 || c.Classes[0].PartsAt != nil || len(c.Classes[0].Threads) != 0 {
		t.Errorf("%+v", c)
	}
}

func TestMoreTargetsOfTheSameStacksAddNoStacks(t *testing.T) {
	l := newLarge(30, 20)
	few, many := l.part(0, 1000), l.part(0, 4000)
	if len(few.parent) != len(many.parent) || len(few.shapes) != len(many.shapes) || len(few.moduleSets) != 2 {
		t.Errorf("%d and %d nodes, %d and %d shapes", len(few.parent), len(many.parent), len(few.shapes), len(many.shapes))
	}
	one := l.rank(77)
	if n := testing.AllocsPerRun(100, func() { few.Add(one) }); n > 4 {
		t.Errorf("%v allocations for a target that is known, expected 4 at most", n)
	}
}

// Parts of several machines may have targets of one path, of which nothing else is known.
func TestTargetsOfOnePathAreInOneOrder(t *testing.T) {
	var list []*Target
	for i := range 24 {
		one := &Target{Path: "core", Threads: []Thread{{ID: fmt.Sprint(1 + i/12), Role: "main", Frames: stackOf(fmt.Sprint("a b:", i/6%2))}}}
		one.Modules = []trace.ModuleBuild{{Name: "program", BuildID: fmt.Sprint(i / 3 % 2)}}
		one.Problems = []string{"", "a problem", "another one"}[i%3 : i%3+1]
		list = append(list, one)
	}
	j := &job{Rand: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // a test's
	for _, one := range list {
		j.processes = append(j.processes, &plainProcess{moments: []*Target{one}})
	}
	want := encoded(t, j.result(false))
	for range 20 {
		if have := encoded(t, j.merged(t).Result()); !bytes.Equal(have, want) {
			t.Fatalf("%s, expected %s", have, want)
		}
	}
	if c := j.result(false); len(c.Targets) != len(list) || len(c.Classes) != 2 {
		t.Errorf("%d targets, %d classes", len(c.Targets), len(c.Classes))
	}
}

func TestMuchIsLeftOutAndSaid(t *testing.T) {
	one := targetOf(0, "1 main: a")
	for i := range 100 {
		one.Labels[fmt.Sprint("label", i)] = "x"
		one.Problems = append(one.Problems, fmt.Sprint("problem ", i))
	}
	one.Taken = time.Date(12000, 1, 1, 0, 0, 0, 0, time.UTC) // JSON has none of that year
	c := resultOf(one, targetOf(1, "1 main: a"))
	encoded(t, c)
	if have := c.Targets[0]; len(have.Labels) != maxLabels || len(have.Problems) != maxProblems+1 || len(have.Moments) != 0 {
		t.Errorf("%+v", have)
	}
	if n := longestList([]int{5, 1, 3, 3, 1}, 7); n != 1 {
		t.Errorf("lists of %d, expected of 1, for both of 3 are too many", n)
	}
}
