// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// equal is a job of ranks whose stacks are all alike.
func equal(ranks, threads int) *maker {
	m := newMaker()
	m.ranks(ranks)
	all := make([]int, ranks)
	list := []thread{{role: "main", stack: waits}}
	for i := range all {
		all[i] = i
	}
	for i := 1; i < threads; i++ {
		list = append(list, thread{role: fmt.Sprintf("worker %c", 'a'+i%26), stack: elsewhere + fmt.Sprintf("poll_queue_%d@%d epoll_wait", i, 10+i)})
	}
	m.class(all, list, nil)
	return m
}

// distinct is a job of ranks that are a class each: below a function that all have, each thread has functions of
// its own.
func distinct(ranks, threads, deep int) *maker {
	m := newMaker()
	m.ranks(ranks)
	random := rand.New(rand.NewPCG(1, 2))
	m.Functions = []trace.CallNode{{Parent: -1, Frame: trace.ComparedFrame{Function: "start_thread"}}}
	m.Lines = []trace.CallNode{{Parent: -1, Frame: trace.ComparedFrame{Function: "start_thread", File: "pthread.c", Line: 1}}}
	for i := range ranks {
		c := trace.TargetClass{Targets: []int{i}, Labels: map[string]string{}, Signature: fmt.Sprintf("%016x", random.Uint64())}
		v := trace.ClassVariant{Targets: c.Targets}
		for k := range threads {
			at := 0
			for range deep {
				f := trace.ComparedFrame{Function: fmt.Sprintf("space::function_%d<int>(char const*)", random.IntN(100_000)), Module: "libwork.so"}
				m.Functions = append(m.Functions, trace.CallNode{Parent: at, Frame: f})
				f.File, f.Line = "/src/work/source.cc", random.IntN(5000)
				m.Lines = append(m.Lines, trace.CallNode{Parent: at, Frame: f, Function: len(m.Functions) - 1})
				at = len(m.Functions) - 1
			}
			t := trace.ClassThread{Role: fmt.Sprintf("worker %c", 'a'+k), Node: at, Threads: 1, Least: 1, Most: 1, IDs: []trace.ClassThreadID{{Target: i, ID: fmt.Sprint(random.IntN(4e6))}}}
			c.Threads, v.Threads = append(c.Threads, t), append(v.Threads, t)
		}
		here := c.Threads[0].Node - deep + 1
		c.PartsAt = &trace.Parting{Role: c.Threads[0].Role, Node: c.Threads[0].Node, Last: 0, Here: here}
		for b := range 20 {
			there := (here + (b+1)*deep*threads) % (len(m.Functions) - 1) / deep
			c.PartsAt.There = append(c.PartsAt.There, trace.PartingBranch{Node: there*deep + 1, Targets: 1, Threads: 1})
		}
		c.Variants = []trace.ClassVariant{v}
		m.Targets[i].Class, m.Targets[i].Threads = i, threads
		m.Classes = append(m.Classes, c)
	}
	return m
}

func pageOf(t *testing.T, c *trace.Comparison, l limits, most int) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b, c, "", l, most); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPagesAreBounded: data that are too large lose frames of few targets, and the page has where classes part, and
// says how much it lacks.
func TestPagesAreBounded(t *testing.T) {
	huge := newMaker()
	huge.ranks(50)
	for i := range 50 {
		huge.class([]int{i}, []thread{{role: strings.Repeat("r", 9000), stack: "main " + randomName(i, 100_000)}}, nil)
	}
	for name, m := range map[string]*maker{"distinct stacks": distinct(300, 30, 4), "huge names": huge, "many targets": equal(20000, 2)} {
		comparison := m.done()
		const most = 50_000
		page := pageOf(t, comparison, ordinary, most)
		if len(page) > most+100_000 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
		if !strings.Contains(page, `<p class="left f">`) {
			t.Errorf("%s: the page does not say that it is not whole", name)
		}
		if whole := pageOf(t, comparison, ordinary, maxPage); strings.Contains(whole, `<p class="left f">`) != (name == "huge names") {
			t.Errorf("%s: a whole page says that it is not", name)
		}
	}
}

// randomName is a name that cannot be packed.
func randomName(seed, length int) string {
	random, b := rand.New(rand.NewPCG(uint64(seed), 9)), strings.Builder{}
	for b.Len() < length {
		fmt.Fprintf(&b, "%016x", random.Uint64())
	}
	return b.String()
}

// TestCallersOfWhatIsOnAPageAreOnIt wherever its trees are cut.
func TestCallersOfWhatIsOnAPageAreOnIt(t *testing.T) {
	c := distinct(20, 10, 5).done()
	random := rand.New(rand.NewPCG(5, 6))
	for most := range 200 {
		needed := make([]bool, len(c.Functions))
		for range 3 {
			for n := random.IntN(len(needed)); n >= 0; n = c.Functions[n].Parent {
				needed[n] = true
			}
		}
		f := newForest(c.Functions, needed, most)
		if len(f.kept) != most {
			t.Fatalf("%d nodes, expected %d", len(f.kept), most)
		}
		lacking := 0
		for i := range needed {
			number, cut := f.place(i)
			if (cut == 0) != (f.places[i] >= 0) || number == 0 && most > 0 && c.Functions[i].Parent < 0 {
				t.Fatalf("node %d is at %d, %d frames further out", i, number, cut)
			}
			if needed[i] && cut > 0 {
				lacking++
			}
			if parent := c.Functions[i].Parent; f.places[i] >= 0 && parent >= 0 && f.places[parent] < 0 {
				t.Fatalf("node %d is there without its caller", i)
			}
		}
		if lacking > 0 && most > 18 {
			t.Errorf("%d nodes that are needed are left out of %d", lacking, most)
		}
	}
}

// TestCutStacksAreShownAsCut in the reports of targets.
func TestCutStacksAreShownAsCut(t *testing.T) {
	c := distinct(100, 10, 4).done()
	l := ordinary
	l.nodes = 1500
	b := browsePage(t, pageOf(t, c, l, maxPage))
	b.expect("what is left out", `document.querySelector('.left').innerText`, "5002 inner frames of stacks that few targets have are left out: the page would be too large. Stacks say where.")
	b.Click("#list .row")
	b.expect("a stack", `[...document.querySelectorAll('#report .s p')].map(e => e.innerText).filter(text => text.endsWith('left out of this page')).length > 0`, "true")
	b.quiet()
}

// TestSizes writes how large pages of 10,000 targets with 30 threads are, and how fast they open.
func TestSizes(t *testing.T) {
	oracle.All(t)
	for _, c := range []struct {
		name string
		make func() *maker
	}{
		{"all alike", func() *maker { return equal(10000, 30) }},
		{"five classes", func() *maker { return job(10000, 30) }},
		{"each its own", func() *maker { return distinct(10000, 30, 4) }},
	} {
		comparison := c.make().done()
		page := pageOf(t, comparison, ordinary, maxPage)
		if len(page) > 20<<20 {
			t.Errorf("%s: the page has %d bytes", c.name, len(page))
		}
		b := browse(t, comparison)
		var took float64
		var said string
		b.Eval(&took, `Number(document.documentElement.dataset.ready)`)
		b.Eval(&said, `[...document.querySelectorAll('.left')].map(e => e.innerText).join('\n')`)
		t.Logf("%s: %d nodes by functions, %d by lines; the page has %d bytes and is ready after %.0f ms\n%s", c.name, len(comparison.Functions), len(comparison.Lines), len(page), took, said)
		b.quiet()
	}
}
