// SPDX-License-Identifier: Apache-2.0

package flamepage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// hostile is text that would be a script, if it were not taken for text.
const hostile = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">`

// small is a page of two events, the first of which has calls of all kinds.
func small() *Page {
	return &Page{
		Name: hostile, Facts: []Fact{{"samples lost", "3"}}, Problems: []string{hostile}, LeftOut: hostile,
		Functions: []Function{
			{Name: hostile, Kind: ThreadName}, {Name: "main", Kind: CPU, Place: "a.c:1", Module: hostile}, {Name: hostile, Kind: Kernel},
			{Name: "wave", Kind: GPU}, {Name: "light", Kind: CPU}, {Name: "[cut short: here]", Kind: Gap}, {Name: "made", Kind: JIT}, {Name: "script", Kind: Managed},
		},
		Threads: []Thread{{hostile, 1, 1}, {"other", 1, 2}},
		Calls: []Call{
			{Caller: -1, Function: 0}, {Caller: 0, Function: 1}, {Caller: 1, Function: 2}, {Caller: 1, Function: 3}, {Caller: 1, Function: 4, IsGuess: true},
			{Caller: 3, Function: 3}, {Caller: 0, Function: 5}, {Caller: 6, Function: 6}, {Caller: 7, Function: 7}, {Caller: 2, Function: 1},
		},
		Events: []Event{
			{
				Name: hostile, Unit: "nanoseconds", Amount: "1.00 s", Count: 6, Rest: hostile, IsTimed: true,
				Samples: []Sample{
					{Call: 2, Weight: 3e8, Time: 5e9}, {Call: 9, Weight: 2e8, Time: 8e9, Thread: 1}, {Call: 3, Weight: 1e8, Time: 6e9}, {Call: 5, Weight: 1e8, Time: 7e9},
					{Call: 4, Weight: 2e8, Time: 9e9}, {Call: 8, Weight: 1e8, Time: 9e9, Thread: 1},
				},
				Top: []Row{{"1", "10%", "2", "20%", Function{Name: hostile, Kind: GPU, Place: hostile, Module: hostile}}, {"0", "0%", "1", "1%", Function{Name: "main"}}},
			},
			{Name: "second", Unit: "count", Amount: "7", Count: 7, Samples: []Sample{{Call: 0, Weight: 7}}},
		},
	}
}

func browse(t *testing.T, p *Page, flags ...string) (b *oracle.Browser, expect func(what, expression, want string), url string) {
	t.Helper()
	var text bytes.Buffer
	if err := Write(&text, p); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	url = "file://" + file
	b = oracle.Browse(t, url, flags...)
	if len(flags) == 0 {
		b.Eval(new(any), ready)
	}
	return b, func(what, expression, want string) {
		t.Helper()
		var got any
		if b.Eval(&got, expression); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, expected %s", what, got, want)
		}
	}, url
}

// ready waits until the page has read its samples.
const ready = `new Promise(done => { const look = () => document.documentElement.dataset.ready ? setTimeout(done, 50) : setTimeout(look, 5); look(); })`

// boxes is what is drawn, a line for each box: level, left and width in hundredths of the
// graph, and name.
const boxes = `(g => g.drawn().map(b => [b.level, ...[b.x, b.w].map(n => Math.round(1000 * n / g.clientWidth) / 10), b.text.slice(0, 8)].join(' ')).sort().join('\n'))(document.querySelector('#graph'))`

// settled is an expression after what it depends on is drawn.
func settled(expression string) string {
	return `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(` + expression + `))))`
}

func TestBoxesAreAsWideAsTheirShare(t *testing.T) {
	b, expect, url := browse(t, small())
	expect("all", boxes, strings.Join([]string{
		"0 0 100 all: 1.0", "1 0 100 </script", "2 0 90 main", "2 90 10 [cut sho", "3 0 50 </script", "3 50 20 wave", "3 70 20 light", "3 90 10 made",
		"4 0 20 main", "4 50 10 wave", "4 90 10 script",
	}, "\n"))
	expect("the whole", `document.querySelector('#said').textContent`, "all: 1.00 s, 100%, 6 samples")
	expect("what is left out", `document.querySelector('#left').textContent`, hostile)
	expect("the legend", `document.querySelector('#legend').innerText.replace(/\s+/g, ' ')`, "thread CPU kernel GPU JIT managed cut short guess")
	expect("scripts", `document.querySelectorAll('script').length + ' ' + document.querySelectorAll('img').length + ' ' + window.hacked`, "1 0 undefined")
	b.Eval(new(any), `(e => { e.value = '1'; e.dispatchEvent(new Event('change')); })(document.querySelector('#event'))`)
	expect("the second event", settled(boxes), "0 0 100 all: 7, \n1 0 100 </script")
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

func TestGraphIsDrivenByKeysAndSearched(t *testing.T) {
	b, expect, url := browse(t, small())
	const at = `document.querySelector('#graph-item').getAttribute('aria-label').slice(0, 12)`
	b.Eval(new(any), `document.querySelector('#graph').focus()`)
	expect("the beginning", at, "all: 1.00 s,")
	b.Press("ArrowDown", "ArrowDown")
	expect("down", at, "main: 90.0%,")
	b.Press("ArrowDown", "ArrowRight")
	expect("right", at, "wave: 20.0%,")
	expect("what is said", `document.querySelector('#said').textContent`, "wave: 20.0%, 200.00 ms, itself 100.00 ms, GPU")
	b.Press("Enter")
	expect("Enter", boxes, strings.Join([]string{"0 0 100 all: 1.0", "1 0 100 </script", "2 0 100 main", "3 0 100 wave", "4 0 50 wave"}, "\n"))
	expect("the focus stays", at, "wave: 20.0%,")
	b.Press("Escape")
	expect("Escape", boxes+`.split('\n').length`, "8")
	b.Press("Backspace", "Escape")
	expect("back", `document.querySelector('#all').disabled`, "true")
	b.Press("/")
	expect("/", `document.activeElement.id`, "find")
	b.Press("W", "a", "v", "e", "Enter")
	expect("how much that is", `document.querySelector('#found').textContent`, "20.0%, 200.00 ms in 2 calls")
	expect("Enter goes there", at, "wave: 20.0%,")
	b.Press("Escape")
	expect("the end of the search", `document.querySelector('#found').textContent`, "")
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

func TestPageIsReadWithoutItsScript(t *testing.T) {
	_, expect, _ := browse(t, small(), "--blink-settings=scriptEnabled=false")
	expect("rows", `document.querySelectorAll('.event tr').length + ' ' + document.querySelector('.event').innerText.includes('window.hacked')`, "3 true")
	expect("what only the script does", `[...document.querySelectorAll('nav, #flame')].filter(e => e.getClientRects().length).length`, "0")
}

func TestPageWithoutSamples(t *testing.T) {
	b, expect, url := browse(t, &Page{Name: "empty"})
	expect("the page", `document.querySelector('main').innerText.includes('There are no samples')`, "true")
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}
