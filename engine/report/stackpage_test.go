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
		Target: Target{Kind: hostile, Path: hostile, Problems: []string{hostile}, Crash: &Crash{Name: hostile, Assertion: hostile},
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
