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
		Name: hostile, Facts: []Fact{{"samples lost", "3"}}, Problems: []string{hostile},
		Functions: []Function{
			{Name: hostile, Kind: Thread}, {Name: "main", Kind: CPU, Place: "a.c:1", Module: hostile}, {Name: hostile, Kind: Kernel},
			{Name: "wave", Kind: GPU}, {Name: "light", Kind: CPU},
		},
		Events: []Event{
			{
				Name: hostile, Amount: "1.00 s", Samples: 4, Rest: hostile,
				Graph: Graph{
					Total: 1e9, Unit: "nanoseconds", LeftOut: 2, Least: 1000,
					Callers:   []int32{-1, 0, 1, 1, 1, 3},
					Functions: []int32{0, 1, 2, 3, 4, 3},
					Totals:    []uint64{1e9, 9e8, 5e8, 2e8, 1e8, 1e8},
				},
				Top: []Row{{"1", "10%", "2", "20%", Function{Name: hostile, Kind: GPU, Place: hostile, Module: hostile}}, {"0", "0%", "1", "1%", Function{Name: "main"}}},
			},
			{Name: "second", Amount: "7", Samples: 7, Graph: Graph{Total: 7, Unit: "count", Callers: []int32{-1}, Functions: []int32{0}, Totals: []uint64{7}}},
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
	return b, func(what, expression, want string) {
		t.Helper()
		var got any
		if b.Eval(&got, expression); fmt.Sprint(got) != want {
			t.Errorf("%s: %v, expected %s", what, got, want)
		}
	}, url
}

// boxes is what is drawn, a line for each box: level, left and width in hundredths of the
// graph, and text.
const boxes = `[...document.querySelectorAll('#graph div')].map(e => [e.getAttribute('aria-level'), ...[e.style.left, e.style.width].map(parseFloat).map(n => Math.round(n * 10) / 10), e.textContent.slice(0, 8)].join(' ')).sort().join('\n')`

func TestBoxesAreAsWideAsTheirShare(t *testing.T) {
	b, expect, url := browse(t, small())
	expect("all", boxes, strings.Join([]string{
		"1 0 100 all", "2 0 100 </script", "3 0 90 main", "4 0 50 </script", "4 50 20 wave", "4 70 10 light", "5 50 10 wave",
	}, "\n"))
	expect("what is left out", `document.querySelector('#left').textContent`, "2 calls of less than 1.00 µs are left out.")
	expect("the legend", `document.querySelector('#legend').innerText.replace(/\s+/g, ' ')`, "thread CPU kernel GPU")
	expect("scripts", `document.querySelectorAll('script').length + ' ' + document.querySelectorAll('img').length + ' ' + window.hacked`, "2 0 undefined")
	expect("a tooltip", `document.querySelectorAll('#graph div')[2].getAttribute('aria-label')`, "main: 90.0%, 900.00 ms, a.c:1, in "+hostile)
	b.Eval(new(any), `(e => { e.value = '1'; e.dispatchEvent(new Event('change')); })(document.querySelector('#event'))`)
	expect("the second event", boxes, "1 0 100 all\n2 0 100 </script")
	expect("its table", `document.querySelectorAll('.event:not([hidden])').length + document.querySelector('.event:not([hidden])').dataset.event`, "11")
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

func TestGraphIsDrivenByKeysAndSearched(t *testing.T) {
	b, expect, url := browse(t, small())
	const at = `document.activeElement.textContent`
	b.Eval(new(any), `document.querySelector('#graph [tabindex="0"]').focus()`)
	expect("the beginning", at, "all")
	b.Press("ArrowDown", "ArrowDown")
	expect("down", at, "main")
	b.Press("ArrowDown", "ArrowRight")
	expect("right", at, "wave")
	expect("what is said", `document.querySelector('#said').textContent`, "wave: 20.0%, 200.00 ms, GPU")
	b.Press("Enter")
	expect("Enter", boxes, strings.Join([]string{"1 0 100 all", "2 0 100 </script", "3 0 100 main", "4 0 100 wave", "5 0 50 wave"}, "\n"))
	expect("the focus stays", at, "wave")
	b.Press("Escape")
	expect("Escape", boxes+`.split('\n').length`, "7")
	b.Press("Escape", "Escape")
	expect("back", `document.querySelector('#all').disabled`, "true")
	b.Press("/")
	expect("/", `document.activeElement.id`, "find")
	b.Press("W", "a", "v", "e", "Enter")
	expect("what has it", `document.querySelectorAll('#graph .hit').length`, "2")
	expect("how much that is", `document.querySelector('#found').textContent`, "20.0% in 2 calls")
	expect("Enter goes there", at, "wave")
	b.Press("Escape")
	expect("the end of the search", `document.querySelectorAll('.hit, tr.miss').length`, "0")
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
