// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// stackPageOf is a report as a page.
func stackPageOf(t *testing.T, g *given) string {
	t.Helper()
	var b bytes.Buffer
	if err := g.report().WritePage(&b, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// browsed opens a page.
func browsed(t *testing.T, page string) (b *oracle.Browser, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	url = "file://" + file
	return oracle.Browse(t, url), url
}

// hostile is text that would be more than text: for HTML, for its scripts and styles, for
// the eye, and for how a page's lines are taken in pieces.
const hostile = "</i></details><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">" +
	"</style>{{.}}\u202egnp.\x01w\x02\x00\x1b[31m' \" ]]> <!-- \n &lt;\u2028"

// hostileReport has hostile text wherever a target has text.
func hostileReport() *given {
	g := withVariables()
	v := trace.Value{Name: hostile, Type: hostile, Text: hostile, HasText: true, Status: trace.ValueOK, Children: []trace.Value{
		{Name: hostile, Type: hostile, Text: hostile, HasText: true, Children: []trace.Value{{Role: trace.ValueRole(hostile), Text: hostile, HasText: true}}}}}
	g.Head = Head{
		Target: Target{Kind: hostile, Path: hostile, Problems: []string{hostile}, Hints: []Hint{{Module: hostile, BuildID: hostile, Needs: Need(hostile), Text: hostile}}, Crash: &Crash{Name: hostile, Assertion: hostile},
			Agents: []Agent{{hostile, hostile}}, Dispatches: []Dispatch{{ID: hostile, Queue: hostile, Kernel: hostile}}},
		Modules: []Module{{Path: hostile, DebugFile: hostile, DebugInfo: hostile, Problem: hostile}},
		facts: &trace.Facts{
			Process:     trace.Process{ID: 1, Command: hostile, Executable: hostile, Created: time.Unix(1, 0)},
			System:      trace.System{OS: hostile, Version: hostile, Build: hostile, Arch: hostile, CPU: hostile},
			Annotations: []trace.Annotation{{Name: hostile, Value: hostile}}, Messages: []trace.Message{{Module: hostile, Text: hostile}},
		},
	}
	s := g.stacks[0]
	s.Thread.ID, s.Thread.Name, s.Thread.Wave.Kernel = hostile, hostile, hostile
	f := &s.Frames[len(s.Frames)-1]
	f.FoundBy, f.Module = trace.FoundBy(hostile), &trace.Module{}
	f.Symbols = []trace.Symbol{{Function: hostile, File: hostile, Line: 1, Inlined: true}, {Function: hostile, File: hostile, Line: 2}}
	f.Details = &trace.FrameDetails{Locals: [][]trace.FrameVariable{{}, {{Variable: trace.Variable{Value: v}}}}}
	s.Stopped.Detail = hostile
	g.globals[0].Value = v
	second := waveStack(hostile)
	second.Thread.Name = hostile
	g.stacks = append(g.stacks, second, waveStack(hostile+"2"))
	return g
}

// TestPageEscapesWhatIsForeign: nothing of a target becomes an element or a script, and
// the shown text is escaped as in the text form.
func TestPageEscapesWhatIsForeign(t *testing.T) {
	page := stackPageOf(t, hostileReport())
	for _, raw := range []string{"<script>d", "<img", "\u202e", "\x01", "\x00", "\x1b", "\u2028", "</style>{"} {
		if strings.Contains(page, raw) {
			t.Errorf("the page has %q", raw)
		}
	}
	b, url := browsed(t, page)
	var count, shown int
	b.Eval(&count, `document.querySelectorAll('script').length + document.querySelectorAll('style').length + document.querySelectorAll('img').length`)
	b.Eval(&shown, `document.body.textContent.split("<script>document.title='taken'</script>").length - 1`)
	if count != 2 || shown < 40 {
		t.Errorf("%d scripts, styles and images, expected 2; the text is shown %d times", count, shown)
	}
	var title string
	if b.Eval(&title, `document.title`); title == "taken" {
		t.Error("a script of the target ran")
	}
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// TestPageRunsNoOtherScript: the policy holds where an element of the page would not.
func TestPageRunsNoOtherScript(t *testing.T) {
	page := strings.Replace(stackPageOf(t, reportOf(waveStack("w"))), "<main>", `<main><script>document.title='taken'</script><img src="x" onerror="document.title='taken'">`, 1)
	b, url := browsed(t, page)
	var title string
	if b.Eval(&title, `document.title`); title == "taken" {
		t.Error("a script that is not the page's ran")
	}
	if said := b.Said(url); len(said) < 2 {
		t.Errorf("the browser refused %q, expected the script and the picture", said)
	}
}

// differentStacks are stacks of threads, each with frames of its own.
func differentStacks(threads, frames int) *given {
	g := reportOf()
	for i := range threads {
		s := &trace.Stack{Thread: &trace.Thread{ID: fmt.Sprint(10000 + i), Name: "worker"}, Stopped: trace.Stopped{Reason: trace.StopOutermost}}
		for k := range frames {
			pc := uint64(0x7f0000001000 + 0x1000*i + 0x10*k)
			s.Frames = append(s.Frames, trace.Frame{PC: pc, FoundBy: trace.ByCFI, Module: &libm.Module, ModuleOffset: pc, Symbols: []trace.Symbol{
				{Function: "std::__invoke_impl<void, worker(int, queue*), int, queue*>", File: "/usr/include/c++/12/bits/invoke.h", Line: 61, Column: 7, Start: pc - 8, HasStart: true}}})
		}
		g.stacks = append(g.stacks, s)
	}
	return g
}

// TestPageOfManyThreadsIsSmallAndOpensSoon, of threads of which no two are alike.
func TestPageOfManyThreadsIsSmallAndOpensSoon(t *testing.T) {
	g := differentStacks(2000, 10)
	start := time.Now()
	page := stackPageOf(t, g)
	took := time.Since(start)
	b, _ := browsed(t, page)
	var stacks int
	var ready float64
	b.Eval(&stacks, `document.querySelectorAll('.s').length`)
	b.Eval(&ready, `performance.getEntriesByType('navigation')[0].loadEventEnd`)
	t.Logf("%d bytes, written in %v, ready after %.0f ms", len(page), took, ready)
	if stacks != 2000 || len(page) > 6<<20 || ready > 30e3 {
		t.Errorf("%d stacks in %d bytes, ready after %.0f ms", stacks, len(page), ready)
	}
	alike := differentStacks(1, 10)
	for i := range 2000 {
		s := *alike.stacks[0]
		s.Thread = &trace.Thread{ID: fmt.Sprint(10000 + i), Name: "worker"}
		alike.stacks = append(alike.stacks, &s)
	}
	if page := stackPageOf(t, alike); len(page) > 200<<10 {
		t.Errorf("threads that are alike take %d bytes", len(page))
	}
}

// abortedStack is a thread that ended itself far from the program's own function, with source.
func abortedStack() *Stacks {
	s := &trace.Stack{Thread: &trace.Thread{ID: "1", Crashed: true, Signal: 6}, Stopped: trace.Stopped{Reason: trace.StopOutermost}}
	for i, name := range []string{
		"__pthread_kill_implementation", "raise", "abort", "__gnu_cxx::__verbose_terminate_handler()", "__cxxabiv1::__terminate(void (*)())", "std::terminate()",
		"__cxa_throw", "bank::pay(int)", "bank::run()", "main",
	} {
		s.Frames = append(s.Frames, trace.Frame{PC: uint64(0x1000 * (i + 1)), FoundBy: trace.ByCFI, Module: &libm.Module, Symbols: []trace.Symbol{{Function: name, File: "a.cc", Line: 15}}})
	}
	r := reportOf(s).report()
	r.source = func(*trace.Frame, *trace.Symbol) (trace.SourceLines, error) {
		return trace.SourceLines{First: 1, Text: make([]string, 30)}, nil
	}
	return r
}

// TestPageOpensAtTheProgramsOwnFrame: the machinery that ended the program is folded, and can be
// opened; where it is not folded, the page is scrolled to the frame.
func TestPageOpensAtTheProgramsOwnFrame(t *testing.T) {
	for _, noFold := range []bool{false, true} {
		var page bytes.Buffer
		if err := abortedStack().WritePage(&page, TextOptions{NoFold: noFold}); err != nil {
			t.Fatal(err)
		}
		b, url := browsed(t, page.String())
		b.Resize(1280, 900)
		b.Go(url)
		var got struct {
			Own         string
			Top, Bottom float64
			Folded      []int
		}
		b.Eval(&got, `(own => ({Own: own.querySelector('.n').textContent, Top: own.getBoundingClientRect().top, Bottom: own.getBoundingClientRect().bottom,
			Folded: [...document.querySelectorAll('.folded > .x')].map(e => e.querySelectorAll('.r').length)}))(document.querySelector('.own'))`)
		if got.Own != "bank::pay" || got.Top < 40 || got.Bottom > 900 || fmt.Sprint(got.Folded) != map[bool]string{false: "[7]", true: "[]"}[noFold] {
			t.Errorf("not folded %v: %+v, expected the function bank::pay in the window, and 7 frames folded", noFold, got)
		}
	}
}

// TestPageHasFullNamesBesideShortOnes: a key shows them, the search finds what is in them, and the
// copied text keeps the short ones.
func TestPageHasFullNamesBesideShortOnes(t *testing.T) {
	b, _ := browsed(t, stackPageOf(t, differentStacks(1, 2)))
	const full, short = "std::__invoke_impl<void, worker(int, queue*), int, queue*>", "std::__invoke_impl<...>"
	var got []any
	const read = `(n => [n.title, n.textContent, getComputedStyle(n, '::after').content, document.querySelector('#full').hidden])(document.querySelector('.r .n'))`
	if b.Eval(&got, read); fmt.Sprint(got) != fmt.Sprint([]any{full, short, "none", false}) {
		t.Errorf("%q", got)
	}
	b.Press("f")
	if b.Eval(&got, read); fmt.Sprint(got) != fmt.Sprint([]any{full, short, `"` + full + `"`, false}) {
		t.Errorf("f: %q", got)
	}
	var found string
	b.Eval(&found, `(f => { f.value = 'WORKER(INT'; f.dispatchEvent(new Event('input')); return new Promise(done => setTimeout(() => done(document.querySelector('#found').textContent), 100)); })(document.querySelector('#find'))`)
	if found != "1 of 1 stack, 2 places" {
		t.Errorf("%q is found", found)
	}
}

// TestPageKeepsGoroutinesAndThreadsApart: goroutines come before threads, each kind below its title,
// and a thread is not counted as one more goroutine.
func TestPageKeepsGoroutinesAndThreadsApart(t *testing.T) {
	page := stackPageOf(t, goroutineStacks())
	last := -1
	for _, want := range []string{
		`<h2 class="kind">goroutines</h2>`, "goroutine 1 [running], thread 4711 &#34;server&#34;, crashed", "3 goroutines [chan \\u202e receive, at least 2 minutes]: 5-7",
		"all 3 goroutines", `<h2 class="kind">goroutines of Go&#39;s runtime</h2>`, "goroutine 10 [", `<h2 class="kind">threads</h2>`, "thread 4712",
	} {
		i := strings.Index(page, want)
		if i < 0 || i < last || strings.Count(page, want) != 1 {
			t.Errorf("%q is at %d, %d times, expected once after %d", want, i, strings.Count(page, want), last)
		}
		last = i
	}
	if strings.Contains(page, "all 2 threads") {
		t.Error("a goroutine is listed as a thread")
	}
}

// TestLivingProcessesAreNamed by their IDs and executables, on the page and in the text: they have
// not ended.
func TestLivingProcessesAreNamed(t *testing.T) {
	began := time.Date(2026, 11, 28, 19, 21, 26, 0, time.UTC)
	g := reportOf(waveStack("w"))
	g.Head.Target = Target{Kind: string(trace.LiveProcess), Path: "/proc/29542", Process: &Process{PID: 29542, Executable: "/srv/bank"}}
	g.Head.facts = &trace.Facts{Process: trace.Process{ID: 29542, Executable: "/srv/bank", Created: began, Kept: began.Add(time.Minute)}}
	const want = "process 29542 (bank), taken 2026-11-28 19:22:26 UTC\n"
	if got := stackText(t, g, TextOptions{}); !strings.HasPrefix(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
	page := stackPageOf(t, g)
	for _, want := range []string{"<title>process 29542 (bank)</title>", "<i class=h>" + strings.TrimSpace(want) + "</i>", "<dt>taken</dt><dd>2026-11-28 19:22:26 UTC"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	g.Head.Target.Signal, g.Head.Target.Kind = 11, "elf-core"
	if page := stackPageOf(t, g); !strings.Contains(page, "<dt>ended</dt>") || strings.Contains(page, "<dt>taken</dt>") {
		t.Error("a process that crashed has not ended")
	}
	p, err := NewProfile(&trace.Profile{Path: "/proc/29542", Threads: []trace.ProfileThread{{PID: 29542, TID: 29543, Comm: "worker"}, {PID: 29542, TID: 29542, Comm: "bank/0"}}})
	if err != nil || p.subject() != "process 29542 (bank/0)" || p.title() != p.subject() {
		t.Errorf("a profile is called %q, %q: %v", p.subject(), p.title(), err)
	}
}

// TestMissingSourceIsSaidOnce below the stacks, for all files.
func TestMissingSourceIsSaidOnce(t *testing.T) {
	g := differentStacks(3, 2)
	for i, s := range g.stacks {
		for k := range s.Frames {
			s.Frames[k].Symbols[0].File = fmt.Sprintf("/build/%d.c", i)
		}
	}
	lacking := func(page bool) string {
		r := g.report()
		r.source = func(_ *trace.Frame, s *trace.Symbol) (trace.SourceLines, error) {
			return trace.SourceLines{}, fmt.Errorf("open %s: no such file", s.File)
		}
		var b bytes.Buffer
		write := r.WriteText
		if page {
			write = r.WritePage
		}
		if err := write(&b, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	text, page := lacking(false), lacking(true)
	if strings.Count(text, "no source") != 1 || !strings.Contains(text, "\nno source of 3 files (-v lists them), the first one: open /build/0.c: no such file\n") {
		t.Error(text)
	}
	if strings.Count(page, "no source") != 1 || !strings.Contains(page, "<summary>no source of 3 files</summary><ul><li>open /build/0.c: no such file<li>open /build/1.c: no such file<li>") {
		t.Errorf("the page says %d times that there is no source", strings.Count(page, "no source"))
	}
}

// TestPageShowsGuessesAndGaps: guesses have their mark and their reason, and a stack that ends early
// says so while it is closed.
func TestPageShowsGuessesAndGaps(t *testing.T) {
	g := differentStacks(2, 3)
	g.stacks[0].Frames[1].FoundBy = trace.ByScan
	g.stacks[0].Frames[2].RestsOnGuess = true
	g.stacks[1].Stopped = trace.Stopped{Reason: trace.StopNoRow, Detail: "why"}
	b, _ := browsed(t, stackPageOf(t, g))
	for expression, want := range map[string]string{
		`[...document.querySelectorAll('.r.guess .by')].map(e => e.textContent).join()`:                        "guess: scan,cfi, rests on a guess",
		`getComputedStyle(document.querySelector('.r.guess')).boxShadow === 'none'`:                            "false",
		`[...document.querySelectorAll('.v')].map(e => e.textContent).join()`:                                  "has a guess,ends early",
		`document.querySelectorAll('.s')[1].querySelector('.e').textContent.trim()`:                            "stopped: no-row: why",
		`(s => (s.open = false, s.querySelector('.v').getClientRects().length))(document.querySelector('.s'))`: "1",
	} {
		var got any
		if b.Eval(&got, expression); fmt.Sprint(got) != want {
			t.Errorf("%s is %v, expected %s", expression, got, want)
		}
	}
	b.Resize(400, 800)
	var seen bool
	if b.Eval(&seen, `document.querySelector('.r.guess .by').getClientRects().length > 0`); !seen {
		t.Error("on a narrow screen a guess is not marked")
	}
}

// TestPageKeepsPartsOfFoldedVariables: stacks are folded by their text, and the first
// one's variables keep their parts.
func TestPageKeepsPartsOfFoldedVariables(t *testing.T) {
	g := reportOf()
	for i := range 3 {
		v := trace.Value{Name: "p", Type: "struct p", Address: uint64(i), HasAddress: true, Children: []trace.Value{{Name: "x", Text: "7", HasText: true, Status: trace.ValueOK}}, Status: trace.ValueOK}
		g.stacks = append(g.stacks, &trace.Stack{
			Thread: &trace.Thread{ID: fmt.Sprint(i)}, Stopped: trace.Stopped{Reason: trace.StopOutermost},
			Frames: []trace.Frame{{PC: 1, FoundBy: trace.ByContext, Details: &trace.FrameDetails{Locals: [][]trace.FrameVariable{{{Variable: trace.Variable{Value: v}}}}}}},
		})
	}
	page := stackPageOf(t, g)
	for _, want := range []string{"3 threads: 0-2", `<ul class="x"><li><i class="n">x</i> = 7`} {
		if strings.Count(page, want) != 1 {
			t.Errorf("the page has %d times %q", strings.Count(page, want), want)
		}
	}
}

// TestPageThatCannotBeWrittenEndsTheWalk as with the other forms.
func TestPageThatCannotBeWrittenEndsTheWalk(t *testing.T) {
	walked := 0
	r := reportOf().report()
	r.each = func(yield func(*trace.Stack) bool) {
		for i := range 100000 {
			if walked++; !yield(waveStack(fmt.Sprint("w", i))) {
				return
			}
		}
	}
	if err := r.WritePage(&brokenWriter{1 << 17}, TextOptions{NoFold: true}); err == nil || walked > 50000 {
		t.Errorf("%v after %d stacks", err, walked)
	}
}
