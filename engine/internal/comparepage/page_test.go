// SPDX-License-Identifier: Apache-2.0

package comparepage

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/internal/comparison"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// ready waits until the page has read its stacks.
const ready = `new Promise(done => { const look = () => document.documentElement.dataset.ready ? setTimeout(done, 50) : setTimeout(look, 5); look(); })`

type browser struct {
	*oracle.Browser
	t   *testing.T
	url string
}

func (b *browser) expect(what, expression, want string) {
	b.t.Helper()
	var got any
	if b.Eval(&got, expression); fmt.Sprint(got) != want {
		b.t.Errorf("%s: %v, expected %s", what, got, want)
	}
}

// quiet fails where the browser said anything.
func (b *browser) quiet() {
	b.t.Helper()
	if said := b.Said(b.url); len(said) > 0 {
		b.t.Errorf("the browser said %q", said)
	}
}

func browse(t *testing.T, c *trace.Comparison, flags ...string) *browser {
	t.Helper()
	var text bytes.Buffer
	if err := Write(&text, c, "the text form"); err != nil {
		t.Fatal(err)
	}
	return browsePage(t, text.String(), flags...)
}

func browsePage(t *testing.T, text string, flags ...string) *browser {
	t.Helper()
	oracle.Tools(t, "chromium")
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, url: "file://" + file}
	b.Browser = oracle.Browse(t, b.url, flags...)
	if len(flags) == 0 {
		b.Eval(new(any), ready)
	}
	return b
}

// settled is an expression after the page had time to search and to draw.
func settled(expression string) string {
	return `new Promise(done => setTimeout(() => requestAnimationFrame(() => done(` + expression + `)), 250))`
}

// textOf is the text of an element in one line.
func textOf(selector string) string {
	return `(document.querySelector('` + selector + `') || {innerText: 'nothing'}).innerText.replace(/\s+/g, ' ').trim()`
}

// rowsOf are the rows of a list that are seen, a line each.
func rowsOf(list string) string {
	return `[...document.querySelectorAll('` + list + ` .row')].filter(e => getComputedStyle(e).display !== 'none').sort((a, b) => a.dataset.i - b.dataset.i).map(e => e.innerText.replace(/\s+/g, ' ').trim()).join('\n')`
}

const titles = `document.querySelector('#classestitle').innerText + '; ' + document.querySelector('#listtitle span').innerText`

// TestTheOutlierIsTheFirstRow of a page of 10,000 targets: one click lights where it parts from the others, and one
// more shows its report.
func TestTheOutlierIsTheFirstRow(t *testing.T) {
	oracle.Tools(t, "chromium")
	b := browse(t, job(10000, 30))
	b.expect("titles", titles, "4 classes, 1 not read; 10,000 targets")
	b.expect("the first class", textOf("#classes li"), "1 1 target rank 5000, host node0625, local_rank 0 SIGSEGV: null pointer: reads 0x18 the main thread parts from the others in step here: backward › 1 more › memcpy (crashed) others, 9,996 targets: all_reduce › 2 more › poll others, 1 target: next_batch › 1 more › __read")
	b.expect("the tree opens where classes part", rowsOf("#tree"), strings.Join([]string{
		"▾ _start › 4 more › step 9,998", "backward › 1 more › memcpy 1 1", "next_batch › 1 more › __read 2 1", "all_reduce › 2 more › poll 3 5 9,996", "▸ clone3 › start_thread 9,998",
	}, "\n"))
	b.expect("rows that exist", `document.querySelectorAll('#list .row').length < 60`, "true")
	b.Click("#classes li:nth-child(1) button")
	b.expect("its targets", titles, "4 classes, 1 not read; 1 target of class 1")
	b.expect("its way", `[...document.querySelectorAll('#tree .lit')].map(e => e.innerText.replace(/\s+/g, ' ').trim()).join('; ')`, "▾ _start › 4 more › step parts here 9,998; backward › 1 more › memcpy here 1 1")
	b.expect("its place", `document.querySelector('#tree-at .n').innerText`, "memcpy")
	b.Click("#list .row")
	b.expect("the report", textOf("#report h2")+` + '; ' + `+textOf("#report dl"), "rank 5000, host node0625, local_rank 0; path snapshots/rank5000.snapshot rank 5000 host node0625 local_rank 0 process 40000 moment 2023-11-14 22:13:25.000 UTC threads 30")
	b.expect("stacks", `document.querySelectorAll('#report .s').length`, "30")
	b.expect("the crash", textOf("#report .s"), "main 40000 crashed #0 memcpy #1 at::native::copy_kernel<float, long, true> src/at::native::copy_kernel<float, long, true>.cc:77 #2 backward src/backward.cc:9 "+
		"#3 step src/step.cc:41 #4 train src/train.cc:88 #5 <module> src/<module>.cc:12 #6 Py_RunMain #7 main #8 _start")
	b.expect("its own frames", `[...document.querySelectorAll('#report .own .n')].map(e => e.innerText).join(' ')`, "memcpy at::native::copy_kernel<float, long, true> backward")
	b.expect("the fact", textOf("#report > .w"), "SIGSEGV: null pointer: reads 0x18")
	b.Press("Escape")
	b.expect("back", `document.activeElement.id + document.querySelector('#report').hidden`, "listtrue")
	b.quiet()
}

// TestSearchFindsTargetsAndFunctions by ranks, labels, hosts, paths, functions and facts.
func TestSearchFindsTargetsAndFunctions(t *testing.T) {
	oracle.Tools(t, "chromium")
	b := browse(t, job(10000, 30))
	for _, c := range []struct{ words, found, classes string }{
		{"3333", "1 target", "1 of 4 classes; 1 target"},
		{"rank 3333", "1 target", "1 of 4 classes; 1 target"},
		{"rank=0-7,12", "9 targets", "2 of 4 classes; 9 targets"},
		{"rank 9990-9999", "10 targets", "1 of 4 classes, 1 not read; 10 targets"},
		{"node0416", "8 targets", "2 of 4 classes; 8 targets"},
		{"NODE0416 local_rank 5", "1 target", "1 of 4 classes; 1 target"},
		{"rank77.snap", "1 target", "1 of 4 classes; 1 target"},
		{"read_shard", "1 target, 1 call", "1 of 4 classes; 1 target"},
		{"sigsegv", "1 target", "1 of 4 classes; 1 target"},
		{"step node0416", "8 targets, 1 call", "2 of 4 classes; 8 targets"},
		{"unexpected", "2 targets", "0 of 4 classes, 1 not read; 2 targets"},
		{"no-such-thing", "0 targets", "0 of 4 classes; 0 targets"},
		{"", "", "4 classes, 1 not read; 10,000 targets"},
	} {
		b.Eval(new(any), fmt.Sprintf(`(f => { f.value = %q; f.dispatchEvent(new Event('input')); })(document.querySelector('#find'))`, c.words))
		b.expect(c.words, settled(`document.querySelector('#found').innerText`), c.found)
		b.expect(c.words, titles, c.classes)
	}
	b.Press("/", "r", "e", "a", "d", "_", "Enter")
	b.expect("the call", settled(`document.activeElement.id + ' ' + document.querySelector('#tree-at').classList.contains('hit') + ' ' + document.querySelector('#tree-at').innerText.replace(/\s+/g, ' ').trim()`), "tree true next_batch › 1 more › __read 2 1")
	b.Press("/", "Escape", "/", "1", "3", "7", "Enter")
	b.expect("the rank", settled(`document.activeElement.id + ' ' + document.querySelector('#list-at').innerText.replace(/\s+/g, ' ').trim()`), "list 5 rank 137, host node0017, local_rank 1 snapshots/rank137.snapshot")
	b.Press("Enter")
	b.expect("its report", textOf("#report h2"), "rank 137, host node0017, local_rank 1")
	b.Press("Escape", "Escape")
	b.expect("the end", settled(titles), "4 classes, 1 not read; 10,000 targets")
	b.Eval(new(any), `((l, v) => { l.value = [...l.options].find(o => o.text === 'rank').value; l.dispatchEvent(new Event('change')); v.value = '5,3333'; v.dispatchEvent(new Event('input')); })(document.querySelector('#label'), document.querySelector('#value'))`)
	b.expect("a filter", settled(titles+` + '; ' + location.hash`), "2 of 4 classes; 2 targets; #target=138&label=rank&value=5%2C3333")
	b.expect("counts of the tree", rowsOf("#tree")+`.split('\n')[0]`, "▾ _start › 4 more › step 2")
	b.quiet()
}

// TestPageIsDrivenByKeys from the classes to the tree and back.
func TestPageIsDrivenByKeys(t *testing.T) {
	b := browse(t, job(100, 5))
	const at = `document.querySelector('#tree-at').getAttribute('aria-label').split(':')[0] + ' ' + document.querySelector('#tree-at').getAttribute('aria-expanded') + ' ' + document.querySelector('#tree-at').getAttribute('aria-level')`
	b.Press("c", "ArrowDown", "Enter")
	b.expect("the second class", titles, "4 classes, 1 not read; 1 target of class 2")
	b.Eval(new(any), `document.querySelector('#tree').focus()`)
	b.expect("where it parts", at, "__read null 2")
	b.Press("Home")
	b.expect("Home", at, "step true 1")
	b.Press("ArrowLeft")
	b.expect("left closes", at, "step false 1")
	b.Press("ArrowRight", "ArrowRight")
	b.expect("right opens, and goes in", at, "memcpy null 2")
	b.Press("ArrowLeft")
	b.expect("left goes out", at, "step true 1")
	b.Press(" ")
	b.expect("Space unfolds", at, "_start true 1")
	b.expect("each call", rowsOf("#tree")+`.split('\n').slice(0, 6).join(', ')`, "▾ _start 98, ▾ main 98, ▾ Py_RunMain 98, ▾ <module> 98, ▾ train 98, ▾ step parts here 98")
	b.Press("End", "Enter")
	b.expect("Enter lists its targets", titles, "4 classes, 1 not read; 98 targets in start_thread")
	b.Press("l", "ArrowDown", "ArrowDown", "Enter")
	b.expect("the third of the list", textOf("#report h2"), "rank 2, host node0000, local_rank 2")
	b.Press("Escape", "Escape")
	b.expect("back", titles, "4 classes, 1 not read; 100 targets")
	b.Press("3")
	b.expect("operations", textOf("#operations tr:nth-child(2)"), "nccl:all_reduce default_pg 4,711 Rank 3 has another size: 1024, not 2048. 0-99 33 all others all_reduce at dist.py:30")
	b.Press("ArrowRight")
	b.expect("modules", textOf("#modules tr:nth-child(2)"), "libnccl.so.2 0badc0de 1 target 11112222 97 targets")
	b.Click("#modules button")
	b.expect("targets of a build", titles, "4 classes, 1 not read; 1 target with libnccl.so.2 0badc0de")
	b.Press("?")
	b.expect("help", `document.querySelector('#help').hidden`, "false")
	b.quiet()
}

// TestALinkShowsTheSame, and a hostile one shows the page.
func TestALinkShowsTheSame(t *testing.T) {
	b := browse(t, job(100, 5))
	for hash, want := range map[string]string{
		"class=2&target=34&view=report&find=read_shard": "1 of 4 classes; 1 target of class 2; rank 33, host node0004, local_rank 1",
		"class=99&target=-1&view=<b>&label=x":           "4 classes, 1 not read; 100 targets; nothing",
		"class=1e9&target=0x10&view=constructor":        "4 classes, 1 not read; 100 targets; rank 15, host node0001, local_rank 7",
	} {
		b.Go("about:blank")
		b.Go(b.url + "#" + hash)
		b.Eval(new(any), ready)
		b.expect(hash, titles+` + '; ' + `+`(document.querySelector('#report h2') || {textContent: 'nothing'}).textContent`, want)
	}
}

// TestPageFitsItsMedium: nothing is cut in a window of 400 pixels, and nothing but lists scrolls in a large one.
func TestPageFitsItsMedium(t *testing.T) {
	b := browse(t, job(1000, 30))
	const wide = `(document.documentElement.scrollWidth <= innerWidth) + ' ' + [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide, .rows') && e.getClientRects().length && e.getBoundingClientRect().right > innerWidth + 1).length`
	for _, width := range []int{400, 1280} {
		b.Resize(width, 800)
		for _, view := range []string{"tree", "report", "operations", "modules"} {
			b.Click("[data-view=" + view + "]")
			b.expect(view, settled(wide), "true 0")
		}
		b.Click("#classes li:nth-child(2) button")
		b.Click("#list .row")
		b.expect("a report", settled(wide), "true 0")
		b.expect("it is in view", `document.querySelector('#report h2').getBoundingClientRect().top >= 0 && document.querySelector('#report h2').getBoundingClientRect().bottom < innerHeight`, "true")
		b.Press("Escape")
		b.Click("#classes li:nth-child(2) button")
	}
	b.expect("the window does not scroll", `document.documentElement.scrollHeight`, "800")
	for _, scheme := range []string{"light", "dark"} {
		b.Media("screen", scheme)
		if mean, colours := b.Brightness(); (mean < 0.5) != (scheme == "dark") || colours < 50 {
			t.Errorf("%s: the brightness is %.2f, with %d colours", scheme, mean, colours)
		}
	}
	b.Media("print", "dark")
	b.expect("paper", `[...document.querySelectorAll('nav, #app, #text')].map(e => e.getClientRects().length).join(' ')`, "0 0 1")
	b.quiet()
}

// TestPageIsReadByAssistiveTechnology: lists and tabs have roles, names and their active row.
func TestPageIsReadByAssistiveTechnology(t *testing.T) {
	b := browse(t, job(1000, 30))
	b.expect("names", `[...document.querySelectorAll('[role=tree], [role=listbox], [role=tablist], [role=tabpanel], input, select')].filter(e => !e.getAttribute('aria-label') && !e.getAttribute('aria-labelledby')).map(e => e.outerHTML).join()`, "")
	b.expect("rows", `[...document.querySelectorAll('.row')].filter(e => !['treeitem', 'option'].includes(e.getAttribute('role')) || !e.getAttribute('aria-posinset') || !e.getAttribute('aria-setsize')).length`, "0")
	b.expect("active rows", `[...document.querySelectorAll('.rows')].filter(e => !document.getElementById(e.getAttribute('aria-activedescendant'))).length`, "0")
	b.Eval(new(any), `(e => { e.scrollTop = e.scrollHeight; })(document.querySelector('#list'))`)
	b.expect("an active row that is out of sight", settled(`document.querySelector('#list-at') !== null`), "true")
	b.expect("tabs", `[...document.querySelectorAll('[role=tab]')].map(e => e.getAttribute('aria-selected') + e.tabIndex).join(' ')`, "true0 false-1 false-1 false-1")
	b.expect("what is said of a call", textOf("#said"), "step: 998 of 998 targets, 998 threads, 4 classes, the end of 6 calls in one line")
}

func TestPageOfATargetThatWasNotRead(t *testing.T) {
	b := browse(t, job(100, 5))
	b.Click("#classes li:nth-child(4) button")
	b.Click("#list .row")
	b.expect("the report", textOf("#report"), "rank 97, host node0012, local_rank 1 class 4 2 targets path snapshots/rank97.snapshot rank 97 host node0012 local_rank 1 process 40001 not read: snapshot.json: unexpected end of file")
	b.quiet()
}

// TestReportsHaveWhatIsKnownOfStacks: which stand still, which move, which end early, and the problems of the target.
func TestReportsHaveWhatIsKnownOfStacks(t *testing.T) {
	p, others := comparison.New(comparison.Options{}), common(4)
	for i := range 40 {
		first, second := rank(i, waits, others), rank(i, waits, others)
		if i == 7 {
			second = rank(i, loads, others)
		}
		second.Taken = first.Taken.Add(time.Second)
		p.Add(first)
		p.Add(second)
	}
	early := rank(50, loads, others)
	early.Threads[0].Ends, early.Problems = "no-memory: the stack was not recorded", []string{"a guess"}
	p.Add(early)
	b := browse(t, p.Result())
	report := func(words string) string {
		b.Eval(new(any), fmt.Sprintf(`(f => { f.value = %q; f.dispatchEvent(new Event('input')); })(document.querySelector('#find'))`, words))
		b.Eval(new(any), settled(`0`))
		b.Click("#list .row")
		var text string
		b.Eval(&text, textOf("#report"))
		return text
	}
	for words, want := range map[string][]string{
		"rank 3":  {"2 moments 2023-11-14 22:13:20.003 UTC 2023-11-14 22:13:21.003 UTC", "main 40003 stands still #0 poll"},
		"rank 7":  {"main 40007 moves: these are the frames that it was in at all moments #0 step", "watchdog 101 stands still #0"},
		"rank 50": {"main 40002 ends early", "it ends early: no-memory: the stack was not recorded", "problem: a guess"},
	} {
		text := report(words)
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("the report of %s has no %q:\n%s", words, part, text)
			}
		}
	}
	b.quiet()
}

// TestThreadsAreComparedInTheirWords where the targets are the threads of one process.
func TestThreadsAreComparedInTheirWords(t *testing.T) {
	p, target := comparison.New(comparison.Options{ByThread: true}), rank(0, "main", nil)
	target.Threads = nil
	for i := range 100 {
		stack := elsewhere + "pthread_cond_wait"
		if i == 42 {
			stack = elsewhere + "handle@7;lock"
		}
		target.Threads = append(target.Threads, comparison.Thread{ID: strconv.Itoa(5000 + i), Role: "worker", Frames: frames(stack)})
	}
	p.Add(target)
	b := browse(t, p.Result())
	b.expect("titles", `document.title + '; ' + `+titles, "100 threads in 2 classes; 2 classes; 100 threads")
	b.expect("the first class", textOf("#classes li"), "1 1 thread thread 5042 thread worker parts from the others in worker here: handle › lock others, 99 threads: pthread_cond_wait")
	b.expect("the facts", textOf("header dl"), "different stacks 2")
	b.Click("#classes li button")
	b.Click("#list .row")
	b.expect("the report", textOf("#report h2")+` + '; ' + `+textOf("#report .s"), "thread 5042; worker 5042 #0 lock #1 handle src/handle.cc:7 #2 worker src/worker.cc:5 #3 start_thread #4 clone3")
	b.quiet()
}
