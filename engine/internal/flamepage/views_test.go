// SPDX-License-Identifier: Apache-2.0

package flamepage

import (
	"fmt"
	"strings"
	"testing"
)

// nested is a page of calls that are recursive and that two threads make:
//
//	one: main -> walk -> walk -> leaf 30, walk 10 in itself
//	two: main -> walk -> leaf 40; main -> leaf 20
func nested() *Page {
	return &Page{
		Name:      "nested",
		Functions: []Function{{Name: "one"}, {Name: "two"}, {Name: "main", Kind: CPU}, {Name: "walk", Kind: CPU, Short: "w"}, {Name: "leaf", Kind: Kernel}},
		Threads:   []Thread{{"one", 7, 7}, {"two", 7, 8}},
		Calls: []Call{
			{Caller: -1, Function: 0}, {Caller: 0, Function: 2}, {Caller: 1, Function: 3}, {Caller: 2, Function: 3}, {Caller: 3, Function: 4},
			{Caller: -1, Function: 1}, {Caller: 5, Function: 2}, {Caller: 6, Function: 3}, {Caller: 7, Function: 4}, {Caller: 6, Function: 4},
		},
		Events: []Event{{
			Name: "cycles", Unit: "count", Amount: "100", Count: 4, IsTimed: true,
			Samples: []Sample{
				{Call: 4, Weight: 30, Time: 1e9}, {Call: 3, Weight: 10, Time: 2e9},
				{Call: 8, Weight: 40, Time: 3e9, Thread: 1}, {Call: 9, Weight: 20, Time: 5e9, Thread: 1},
			},
		}},
	}
}

// drawn reads the boxes of a graph from the page, without the first one: level, width in hundredths, text.
func drawn(graph string) string {
	return `(g => g.drawn().slice(1).map(b => [b.level, Math.round(100 * b.w / g.clientWidth), b.text].join(' ')).join(', '))(document.querySelector('` + graph + `'))`
}

// rows are the rows of the table that are there.
const rows = `[...document.querySelectorAll('#table tbody tr[data-f]')].map(r => [...r.cells].map(c => c.textContent).join(' ')).join(', ')`

func TestViewsOfAProfile(t *testing.T) {
	b, expect, url := browse(t, nested())
	expect("from above", drawn("#graph"), "1 60 two, 1 40 one, 2 60 main, 2 40 main, 3 40 w, 3 20 leaf, 3 40 w, 4 40 leaf, 4 40 w, 5 30 leaf")
	b.Click("#merge")
	expect("threads as one", settled(drawn("#graph")), "1 100 main, 2 80 w, 2 20 leaf, 3 40 w, 3 40 leaf, 4 30 leaf")
	b.Click("#fold")
	expect("recursion as one", settled(drawn("#graph")), "1 100 main, 2 80 w, 2 20 leaf, 3 70 leaf")
	b.Click("#fold")
	b.Click("[data-view=bottomup]")
	expect("from below", settled(drawn("#graph")), "1 90 leaf, 1 10 w, 2 70 w, 2 20 main, 2 10 w, 3 40 main, 3 30 w, 3 10 main, 4 30 main")
	b.Click("[data-view=order]")
	expect("in order of time", settled(drawn("#graph")), "1 60 main, 1 40 main, 2 40 w, 2 20 leaf, 2 40 w, 3 40 leaf, 3 40 w, 4 30 leaf")
	b.Click("#merge")
	expect("of each thread", settled(drawn("#graph")+`.slice(0, 20)`), "1 60 two 8, 1 40 one")
	b.Click("#merge")
	b.Click("[data-view=functions]")
	expect("functions", settled(rows), "90 90.0% 90 90.0% leaf kernel, 10 10.0% 80 80.0% w, 0 0.0% 100 100.0% main")
	b.Click("#table thead th:nth-child(4) button")
	expect("by total", settled(rows), "0 0.0% 100 100.0% main, 90 90.0% 90 90.0% leaf kernel, 10 10.0% 80 80.0% w")
	b.Click("#table tbody tr[data-f]:last-of-type, #table tbody tr:nth-child(4)")
	expect("a chosen row", settled(`document.querySelector('#chosen').innerText.replace(/\s+/g, ' ')`), "▴ callers w 80.0%, itself 10.0% ▾ callees")
	expect("its callers", drawn("#callers"), "1 100 main")
	expect("its callees", drawn("#graph"), "1 50 w, 1 50 leaf, 2 38 leaf")
	b.Eval(new(any), `document.querySelector('#callers').focus()`)
	b.Press("ArrowUp", "ArrowUp", "Enter")
	expect("one of the callers", `document.querySelector('#all').disabled + document.querySelector('#said').textContent`, "falsemain: 80.0%, 80")
	b.Press("Escape")
	expect("Escape", `document.querySelector('#all').disabled + document.querySelector('#said').textContent`, "truewalk: 80.0%, 80, itself 10")
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

func TestWhatIsSelectedAddsUp(t *testing.T) {
	b, expect, url := browse(t, nested())
	b.Click("#threads")
	expect("threads", `[...document.querySelectorAll('#threadlist div')].map(e => e.innerText.replace(/\s+/g, ' ').trim()).join(', ')`, "all threads 100.0% only, one 7 100.0% only, two 8 60.0% only, one 7 40.0% only")
	b.Click("#threadlist div:nth-child(4) input")
	expect("one thread", settled(drawn("#graph")), "1 100 two, 2 100 main, 3 67 w, 3 33 leaf, 4 67 leaf")
	expect("the whole", `document.querySelector('#said').textContent`, "all: 60, 60.0% of 100, 2 samples")
	b.Click("#threadlist div:nth-child(1) input")
	b.Press("Escape")
	// The samples are at 0, 1, 2 and 4 seconds.
	b.Eval(new(any), `(e => { const r = e.getBoundingClientRect(), at = (kind, t) => e.dispatchEvent(new PointerEvent(kind, {clientX: r.left + r.width * t / 4, clientY: r.top + 5, bubbles: true, pointerId: 1}));
		e.setPointerCapture = () => {}; at('pointerdown', 0.5); at('pointermove', 2.5); at('pointerup', 2.5); })(document.querySelector('#time'))`)
	expect("a range", settled(drawn("#graph")), "1 80 two, 1 20 one, 2 80 main, 2 20 main, 3 80 w, 3 20 w, 4 80 leaf, 4 20 w")
	expect("its times", `document.querySelector('#range').textContent`, "500.00 ms to 2.50 s of 4.00 s")
	expect("the link", `location.hash`, "#time=500000-2500000")
	b.Press("/", "w", "a", "l", "k", "Enter")
	expect("a search by the whole name", `document.querySelector('#found').textContent`, "100.0%, 50 in 3 calls")
	b.Press("/")
	b.Eval(new(any), `(e => { e.value = '^(leaf|nothing)$'; e.dispatchEvent(new Event('input')); })(document.querySelector('#find'))`)
	b.Click("#regexp")
	b.Press("/", "Enter")
	expect("an expression", `document.querySelector('#found').textContent`, "80.0%, 40 in 1 call")
	b.Eval(new(any), `(e => { e.value = 'two'; e.dispatchEvent(new Event('input')); })(document.querySelector('#find'))`)
	b.Press("/", "Enter")
	expect("the name of a thread", `document.querySelector('#found').textContent`, "0.0%, 0 in 0 calls")
	b.Press("/", "(", "Enter")
	expect("no expression", `document.querySelector('#found').textContent`, "no regular expression")
	b.Press("Escape")
	b.Click("#norange")
	b.Click("#legend button:nth-child(3)")
	expect("a kind", settled(`document.querySelector('#found').textContent + '; ' + document.querySelector('#graph').drawn().filter(b => b.isHit).length`), "90.0%, 90 in 3 calls; 3")
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// TestWhatIsTooNarrowIsOneBox: functions that are narrower than a pixel are drawn together.
func TestWhatIsTooNarrowIsOneBox(t *testing.T) {
	p := &Page{Functions: []Function{{Name: "one"}, {Name: "wide", Kind: CPU}}, Calls: []Call{{Caller: -1}, {Caller: 0, Function: 1}}}
	e := Event{Name: "cycles", Unit: "count", Count: 5001, Samples: []Sample{{Call: 1, Weight: 5000}}}
	for i := range 5000 {
		p.Functions = append(p.Functions, Function{Name: fmt.Sprintf("narrow%d", i), Kind: CPU})
		p.Calls = append(p.Calls, Call{Caller: 0, Function: int32(2 + i)})
		e.Samples = append(e.Samples, Sample{Call: int32(2 + i), Weight: 1})
	}
	p.Events = []Event{e}
	b, expect, _ := browse(t, p)
	expect("from above", drawn("#graph"), "1 100 one, 2 50 wide, 2 50 5000 narrower")
	b.Eval(new(any), `document.querySelector('#graph').focus()`)
	b.Press("ArrowDown", "ArrowDown", "ArrowRight")
	expect("no box of its own", `document.querySelector('#said').textContent`, "wide: 50.0%, 5,000, itself 5,000")
}

// TestPageFitsItsMedium: nothing is cut in a window of 400 pixels, and paper has the tables.
func TestPageFitsItsMedium(t *testing.T) {
	p := small()
	p.Name = "a recording"
	b, expect, _ := browse(t, p)
	b.Resize(400, 800)
	for _, view := range []string{"flame", "bottomup", "order", "sandwich", "functions"} {
		b.Click("[data-view=" + view + "]")
		expect(view, settled(`document.documentElement.scrollWidth + ' ' + [...document.querySelectorAll('nav, #tabs, #bar, footer, #view')].filter(e => e.getBoundingClientRect().right > 401).length`), "400 0")
	}
	expect("the tables of paper", `document.querySelector('.event').getClientRects().length`, "0")
	b.Media("print", "dark")
	expect("paper", `[...document.querySelectorAll('nav, #app, .event')].map(e => e.getClientRects().length).join(' ')`, "0 0 1 1")
}

func TestALinkShowsTheSame(t *testing.T) {
	b, expect, url := browse(t, nested())
	b.Eval(new(any), `document.querySelector('#graph').focus()`)
	b.Press("ArrowDown", "ArrowDown", "ArrowDown", "Enter")
	const at = `document.querySelector('#said').textContent + ' ' + location.hash`
	var before string
	b.Eval(&before, settled(at))
	if !strings.HasPrefix(before, "walk: 40.0%, 40, itself 0 #zoom=") {
		t.Errorf("zoomed to %s", before)
	}
	_, hash, _ := strings.Cut(before, " #")
	b.Go("about:blank")
	b.Go(url + "#" + hash)
	b.Eval(new(any), ready)
	expect("the same place", settled(at), before)
	for _, hostile := range []string{"view=<b>&event=9&f=99&mark=88&time=a-b&off=x.1.77&zoom=zz.!.-1", "time=9-1&f=-3&event=-1", "view=sandwich&f=4&find=%5B&regexp=1"} {
		b.Go("about:blank")
		b.Go(url + "#" + hostile)
		b.Eval(new(any), ready)
		expect(hostile, `document.querySelector('#wait').hidden && !document.querySelector('#app').hidden`, "true")
	}
}

// TestTwoProfilesAreCompared: a page with weights of another profile has colours for more and
// for less, and widths by either.
func TestTwoProfilesAreCompared(t *testing.T) {
	p := nested()
	e := &p.Events[0]
	e.Base, e.IsTimed = "old.data", false
	e.Samples[0].Base, e.Samples[2].Base, e.Samples[3].Base = 60, 40, 0
	e.Samples = append(e.Samples, Sample{Call: 7, Base: 20, Thread: 1})
	b, expect, url := browse(t, p)
	expect("what is said", `document.querySelector('#said').textContent`, "all: 100, 100%, 4 samples; before: 120")
	expect("widths", drawn("#graph"), "1 60 two, 1 40 one, 2 60 main, 2 40 main, 3 40 w, 3 20 leaf, 3 40 w, 4 40 leaf, 4 40 w, 5 30 leaf")
	b.Eval(new(any), `(e => { e.value = 'base'; e.dispatchEvent(new Event('change')); })(document.querySelector('#widths'))`)
	expect("widths before", settled(drawn("#graph")), "1 50 one, 1 50 two, 2 50 main, 2 50 main, 3 50 w, 3 50 w, 4 50 w, 4 33 leaf, 5 50 leaf")
	b.Click("[data-view=functions]")
	expect("functions", settled(rows), "10 10.0% 80 80.0% -6.7% -20.0% w, 90 90.0% 90 90.0% +6.7% +6.7% leaf kernel, 0 0.0% 100 100.0% 0.0% 0.0% main")
	expect("the scale", `document.querySelector('#legend').innerText.replace(/\s+/g, ' ')`, "thread CPU kernel less than old.data more")
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
	b.Go("about:blank")
	b.Go(url + "#by=base")
	b.Eval(new(any), ready)
	expect("a link", settled(`document.querySelector('#widths').value + ' ' + document.querySelector('#graph').drawn()[1].text`), "base one")
}
