// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

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
	huge := comparison.New(comparison.Options{})
	for i := range 50 {
		t := rank(i, "main;"+randomName(i, 20_000), nil)
		t.Threads[0].Role = strings.Repeat("r", 9000)
		huge.Add(t)
	}
	for name, compared := range map[string]*trace.Comparison{"distinct stacks": distinct(100, 30, 4), "huge names": huge.Result(), "many targets": equal(4000, 2)} {
		const most = 30_000
		page := pageOf(t, compared, ordinary, most)
		if len(page) > most+100_000 {
			t.Errorf("%s: the page has %d bytes", name, len(page))
		}
		if !strings.Contains(page, `<p class="left f">`) {
			t.Errorf("%s: the page does not say that it is not whole", name)
		}
		if whole := pageOf(t, compared, ordinary, maxPage); strings.Contains(whole, `<p class="left f">`) != (name == "huge names") {
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
	c := distinct(20, 10, 5)
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
	c := distinct(100, 10, 4)
	l := ordinary
	l.nodes = 1500
	b := browsePage(t, pageOf(t, c, l, maxPage))
	b.expect("what is left out", `document.querySelector('.left').innerText`, "Left out, as the page would be too large: 5,000 inner frames of stacks that few targets have: each stack says how many it lacks.")
	b.Click("#list .row")
	b.expect("a stack", `[...document.querySelectorAll('#report .s p')].map(e => e.innerText).filter(text => text.endsWith('left out of this page')).length > 0`, "true")
	b.quiet()
}

// TestVeryDeepStacksAreShown in a tree and in a report, in pieces.
func TestVeryDeepStacksAreShown(t *testing.T) {
	p := comparison.New(comparison.Options{})
	for i := range 3 {
		var stack strings.Builder
		for k := range 20_000 {
			fmt.Fprintf(&stack, "f%d@%d;", k%1000, k)
		}
		p.Add(rank(i, stack.String()+fmt.Sprintf("last%d", i/2), nil))
	}
	b := browse(t, p.Result())
	b.expect("the tree", rowsOf("#tree"), "▾ f0 › 19,998 more › f999 3\nlast1 1 1\nlast0 2 2")
	b.Click("#list .row")
	b.expect("frames that exist", `document.querySelectorAll('#report li').length`, "201")
	b.expect("more of them", textOf("#report li:last-child"), "200 more of 19,801")
	b.Click("#report li:last-child button")
	b.expect("frames that exist then", `document.querySelectorAll('#report li').length`, "401")
	b.Eval(new(any), `document.querySelector('[data-view=tree]').click()`)
	b.Press("c")
	b.Eval(new(any), `document.querySelector('#tree').focus()`)
	b.Press("Home", " ", "End")
	b.expect("all calls, unfolded", `document.querySelectorAll('#tree .row').length < 100 && document.querySelector('#tree-at .n').innerText`, "last0")
	b.quiet()
}

// TestDamagedPagesHaveTheText where the data cannot be read.
func TestDamagedPagesHaveTheText(t *testing.T) {
	page := pageOf(t, equal(10, 4), ordinary, maxPage)
	before, data, _ := strings.Cut(page, `id="data">`)
	b := browsePage(t, before+`id="data">`+data[40:])
	b.expect("what is said", `document.querySelector('#wait').innerText.startsWith('This browser cannot read the stacks')`, "true")
	b.expect("the text", `document.querySelector('#text').getClientRects().length + ' ' + document.querySelector('#app').hidden`, "1 true")
}

// TestSizes writes how large pages of 10,000 targets with 30 threads are, and how fast they open.
func TestSizes(t *testing.T) {
	oracle.All(t)
	for _, c := range []struct {
		name string
		make func() *trace.Comparison
	}{
		{"all alike", func() *trace.Comparison { return equal(10000, 30) }},
		{"five classes", func() *trace.Comparison { return job(10000, 30) }},
		{"each its own", func() *trace.Comparison { return distinct(10000, 30, 4) }},
	} {
		compared := c.make()
		page := pageOf(t, compared, ordinary, maxPage)
		if len(page) > 20<<20 {
			t.Errorf("%s: the page has %d bytes", c.name, len(page))
		}
		b := browsePage(t, page)
		var took float64
		var said string
		b.Eval(&took, `Number(document.documentElement.dataset.ready)`)
		b.Eval(&said, `[...document.querySelectorAll('.left')].map(e => e.innerText).join('\n')`)
		t.Logf("%s: %d nodes by functions, %d by lines; the page has %d bytes and is ready after %.0f ms\n%s", c.name, len(compared.Functions), len(compared.Lines), len(page), took, said)
		b.quiet()
	}
}
