// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

const (
	crashExample = "../../examples/crash/server"
	mixedExample = "../../examples/mixed/mixed.snapshot"
)

// withLocals asks for the variables of every frame.
func withLocals(a *enginetest.Ask) { a.Stack.Locals = true }

// stackPage writes stacks as a page, and returns the address of the file.
func stackPage(t *testing.T, path string, set ...func(*enginetest.Ask)) (url string) {
	t.Helper()
	page := enginetest.Text(t, path, append(set, func(a *enginetest.Ask) { a.Stack.Format = "html" })...)
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	return "file://" + file
}

// pageTextOf is JavaScript that gives the text form of the page's stacks: their text
// without the parts that are marked to be the page's alone.
const pageTextOf = `[...document.querySelectorAll('.s')].map(s => {
	const c = s.cloneNode(true);
	c.querySelectorAll('.x, .m, .by').forEach(e => e.remove());
	return c.textContent;
})`

// stackTexts are the stacks of the text form with lanes.
func stackTexts(t *testing.T, path string, set ...func(*enginetest.Ask)) []string {
	t.Helper()
	out := enginetest.Text(t, path, append(set, func(a *enginetest.Ask) { a.Stack.Lanes = true })...)
	parts := strings.Split(strings.TrimSuffix(out, "\n"), "\n\n")[1:]
	parts = slices.DeleteFunc(parts, func(s string) bool {
		return strings.HasPrefix(s, "modules\n") || strings.HasPrefix(s, "globals\n") || strings.HasPrefix(s, "problem:") || strings.HasPrefix(s, "no source")
	})
	for i := range parts {
		parts[i] += "\n"
	}
	return parts
}

// TestPageSaysWhatTheTextSays: the text that is copied is the text form, line by line, and
// a page of any target shows without a word on the console or a request.
func TestPageSaysWhatTheTextSays(t *testing.T) {
	oracle.Tools(t, "chromium")
	unfolded := func(a *enginetest.Ask) { a.Stack.NoFold = true }
	recursions := subject.Core(t, subject.Build(t, "recursions"))
	for _, c := range []struct {
		name, path string
		set        func(*enginetest.Ask)
	}{
		{"waves", mixedExample, func(a *enginetest.Ask) { a.Stack.Locals, a.Stack.Registers = true, true }},
		{"a core", crashExample + ".core", func(a *enginetest.Ask) { a.Stack.Locals, a.Stack.Source, a.Stack.Code = true, new(uint32(5)), 6 }},
		{"a core, unfolded", crashExample + ".core", func(a *enginetest.Ask) { a.Stack.NoFold, a.Stack.NoInlines = true, true }},
		{"recursions", recursions, func(*enginetest.Ask) {}},
		{"recursions, unfolded", recursions, unfolded},
		{"a cut stack", recursions, func(a *enginetest.Ask) { a.Stack.MaxFrames = new(uint32(100)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := stackPage(t, c.path, c.set)
			b := oracle.Browse(t, url)
			var got []string
			b.Eval(&got, pageTextOf)
			if diff := cmp.Diff(stackTexts(t, c.path, c.set), got); diff != "" {
				t.Errorf("(-text +page):\n%s", diff)
			}
			if said := b.Said(url); len(said) > 0 {
				t.Errorf("the browser said %q", said)
			}
		})
	}
}

// TestPageIsSearchedAndDrivenByKeys on the page of waves, of which two stacks are in
// measure.
func TestPageIsSearchedAndDrivenByKeys(t *testing.T) {
	url := stackPage(t, mixedExample, withLocals)
	b := oracle.Browse(t, url)
	expect := func(what, expression string, want any) {
		t.Helper()
		var got any
		b.Eval(&got, expression)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, expected %v", what, got, want)
		}
	}
	const shown = `[...document.querySelectorAll('.s')].filter(e => e.getClientRects().length).length`
	const at = `(document.activeElement.textContent.match(/thread \w+|#\d+|\d+ variables/) || [''])[0]`
	expect("stacks", shown, len(stackTexts(t, mixedExample)))
	b.Press("j")
	expect("j", at, "thread w0")
	b.Press("j", "j", "j")
	expect("j j j", at, "#1")
	b.Press("k")
	expect("k", at, "3 variables")
	b.Press("k", "Enter")
	expect("Enter at a frame", `document.querySelector('.k').open`, true)
	b.Press("Enter", "k", "Enter")
	expect("Enter at a stack", `document.querySelector('.s').open`, false)
	b.Press("Enter")
	b.Eval(new(any), `navigator.clipboard.writeText = text => { window.copied = text; return Promise.resolve(); }; 0`)
	b.Press("c")
	expect("c", `window.copied`, stackTexts(t, mixedExample, withLocals)[0])
	b.Press("/")
	expect("/", `document.activeElement.id`, "find")
	b.Press("m", "e", "a", "s", "u", "R", "E")
	b.Eval(new(any), `new Promise(done => setTimeout(done, 300))`)
	expect("stacks in measure", shown, 1)
	expect("frames in measure", `[...document.querySelectorAll('.hit')].every(e => e.textContent.includes('measure'))`, true)
	expect("what was found", `document.querySelector('#found').textContent`, "1 of 4 stacks, 1 place")
	b.Press("Escape")
	expect("the end of the search", shown, 4)
	expect("the end of the search", `document.querySelectorAll('.hit').length`, 0)
	b.Press("?")
	expect("?", `document.querySelector('#help').hidden`, false)
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// TestPageMarksWhatItCounts looks for words that are in the title of a stack, in a frame, in an
// instruction, in a value, and in a part of a value that is closed: each place that is counted is
// marked, has one of the words, and can be seen.
func TestPageMarksWhatItCounts(t *testing.T) {
	url := stackPage(t, crashExample+".core", withLocals, func(a *enginetest.Ask) { a.Stack.Code = 4 })
	b := oracle.Browse(t, url)
	for _, c := range []struct {
		words  string
		stacks int
	}{
		{"crashed", 1}, {"content_length", 1}, {"movzbl", 1}, {"example.org", 1}, {"headers", 1}, {"5268", 1},
		{"server.c serve+0x11", 1}, {"SERVER", 4}, {"nothing-of-it", 0}, {"crashed nothing-of-it", 0}, {"0x0", 4},
	} {
		var got struct {
			Found                       string
			Shown, Marked, Seen, Others int
			Last                        bool
		}
		b.Eval(&got, fmt.Sprintf(`(async words => {
			const find = document.querySelector('#find');
			find.value = words;
			find.dispatchEvent(new Event('input'));
			await new Promise(done => setTimeout(done, 100));
			const hits = [...document.querySelectorAll('.hit')];
			const has = e => words.toLowerCase().split(' ').some(w => e.textContent.toLowerCase().includes(w));
			return {
				Found: document.querySelector('#found').textContent,
				Shown: [...document.querySelectorAll('.s')].filter(e => e.getClientRects().length).length,
				Marked: hits.length, Seen: hits.filter(e => e.getClientRects().length).length, Others: hits.filter(e => !has(e)).length,
				Last: [...document.querySelectorAll('.s:not(.miss)')].every(e => e.querySelector('.hit')),
			};
		})(%q)`, c.words))
		want := fmt.Sprintf("%d of 4 stacks, %d place", c.stacks, got.Marked)
		if !strings.HasPrefix(got.Found, want) || got.Shown != c.stacks || got.Seen != got.Marked || got.Others > 0 || !got.Last || (got.Marked > 0) != (c.stacks > 0) {
			t.Errorf("%q: %+v, expected %s", c.words, got, want)
		}
	}
	var open []int
	const opened = `[document.querySelectorAll('.k[open]').length, document.querySelectorAll('.k details[open]').length]`
	b.Eval(new(any), `(f => { f.value = 'example.org'; f.dispatchEvent(new Event('input')); })(document.querySelector('#find'))`)
	b.Eval(&open, `new Promise(done => setTimeout(() => done(`+opened+`), 100))`)
	if open[0] == 0 || open[1] == 0 {
		t.Errorf("a value that is found is not open: %v", open)
	}
	b.Eval(new(any), `document.querySelector('#find').focus()`)
	b.Press("Enter", "n", "n", "N")
	var focused string
	b.Eval(&focused, `document.activeElement.textContent`)
	if !strings.Contains(focused, "example.org") {
		t.Errorf("the focus is at %q, expected a place that was found", focused)
	}
	b.Press("/", "Escape")
	if b.Eval(&open, opened); open[0] > 0 || open[1] > 0 {
		t.Errorf("what the search opened stays open: %v", open)
	}
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// TestPageIsReadOnNarrowScreens: nothing but code and tables, which scroll by themselves, is wider
// than the window.
func TestPageIsReadOnNarrowScreens(t *testing.T) {
	for _, path := range []string{mixedExample, crashExample + ".core"} {
		b := oracle.Browse(t, stackPage(t, path, withLocals, func(a *enginetest.Ask) { a.Stack.Code, a.Stack.Registers = 4, true }))
		b.Resize(400, 860)
		var wide []string
		b.Eval(&wide, `(document.querySelectorAll('details').forEach(e => { e.open = true; }),
			[...document.querySelectorAll('body *')].filter(e => !e.closest('pre, .wide, .lanes') && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 100)))`)
		if len(wide) > 0 {
			t.Errorf("%s: %d elements are wider than the window: %q", path, len(wide), wide[:min(3, len(wide))])
		}
	}
}

// TestPageSaysWhichDebugInformationIsThere without -v, too.
func TestPageSaysWhichDebugInformationIsThere(t *testing.T) {
	lone := filepath.Join(t.TempDir(), "lone.core")
	core, err := os.ReadFile(crashExample + ".core")
	if err == nil {
		err = os.WriteFile(lone, core, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{crashExample + ".core": "/srv/example/server: found", lone: "/srv/example/server: none, no file"} {
		page := enginetest.Text(t, path, func(a *enginetest.Ask) { a.Stack.Format = "html" })
		_, table, _ := strings.Cut(page, "<th>build ID")
		var rows []string
		for _, row := range strings.Split(table, "<tr")[1:] {
			cells := strings.Split(row, "<td")
			name, _, _ := strings.Cut(strings.TrimPrefix(cells[2], ">"), "<")
			status, _, _ := strings.Cut(strings.TrimPrefix(cells[3], ">"), "<")
			rows = append(rows, name+": "+status)
			if status == "" || strings.HasPrefix(status, ",") {
				t.Errorf("the debug information of %s is %q", name, status)
			}
		}
		if !slices.Contains(rows, want) {
			t.Errorf("%q, expected %q", rows, want)
		}
	}
}

// TestPageIsLightAndDark by what the user prefers, and by the page's switch; the
// print is light, and has the stacks that were closed.
func TestPageIsLightAndDark(t *testing.T) {
	b := oracle.Browse(t, stackPage(t, mixedExample, withLocals))
	for _, c := range []struct {
		medium, scheme, click string
		isDark                bool
	}{
		{"screen", "light", "", false}, {"screen", "dark", "", true}, {"screen", "dark", "theme", false},
		{"screen", "light", "theme", true}, {"print", "dark", "", false},
	} {
		b.Media(c.medium, c.scheme)
		if c.click != "" {
			b.Eval(new(any), `document.getElementById('`+c.click+`').click()`)
		}
		mean, colours := b.Brightness()
		if isDark := mean < 0.5; isDark != c.isDark || colours < 50 {
			t.Errorf("%v: the brightness is %.2f, with %d colours", c, mean, colours)
		}
	}
	var heights []float64
	b.Eval(&heights, `(document.querySelectorAll('.s').forEach(s => s.open = false), [...document.querySelectorAll('.s')].map(s => s.getBoundingClientRect().height))`)
	for _, height := range heights {
		if height < 60 {
			t.Errorf("a closed stack is printed %v high", height)
		}
	}
}

// TestPageIsReadWithoutItsScript: stacks open and close by themselves, and what only the
// script could do is not offered.
func TestPageIsReadWithoutItsScript(t *testing.T) {
	b := oracle.Browse(t, stackPage(t, mixedExample, withLocals), "--blink-settings=scriptEnabled=false")
	for _, c := range []struct {
		expression string
		want       int
	}{
		{`document.querySelectorAll('.s').length`, 4},
		{`document.querySelectorAll('.s.crashed[open]').length`, 1},
		{`document.querySelectorAll('.copy').length`, 0},
		{`document.querySelector('nav').getClientRects().length`, 0},
		{`document.querySelector('.crashed .r').getClientRects().length`, 1},
		{`(document.querySelector('.s > summary').click(), document.querySelectorAll('.s[open]').length)`, 3},
	} {
		var got int
		if b.Eval(&got, c.expression); got != c.want {
			t.Errorf("%s is %d, expected %d", c.expression, got, c.want)
		}
	}
}

// TestPageIsOneFile: no policy but a strict one, no address of anything else.
func TestPageIsOneFile(t *testing.T) {
	text, err := os.ReadFile(strings.TrimPrefix(stackPage(t, mixedExample, withLocals), "file://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"src=", "href=", "url(", "@import", "style=", "http://", "https://", "onclick="} {
		if bytes.Contains(text, []byte(other)) {
			t.Errorf("the page has %s", other)
		}
	}
}
