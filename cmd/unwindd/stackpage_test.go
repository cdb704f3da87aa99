// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/internal/subject"
)

// stackPage writes stacks as a page, and returns the address of the file.
func stackPage(t *testing.T, args ...string) (url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if _, stderr, status := unwindd(t, append([]string{"stack", "--in-process", "--format", "html", "-o", file}, args...)...); status != exitDone {
		t.Fatalf("exit %d\n%s", status, stderr)
	}
	return "file://" + file
}

// pageTextOf is JavaScript that gives the text form of the page's stacks: their text
// without what is marked to be the page's alone.
const pageTextOf = `[...document.querySelectorAll('.s')].map(s => {
	const c = s.cloneNode(true);
	c.querySelectorAll('.x, .m, .by').forEach(e => e.remove());
	return c.textContent;
})`

// stackTexts are the stacks of the text form.
func stackTexts(t *testing.T, args ...string) []string {
	t.Helper()
	out, stderr, status := unwindd(t, append([]string{"stack", "--in-process"}, args...)...)
	if status != exitDone {
		t.Fatalf("exit %d\n%s", status, stderr)
	}
	parts := strings.Split(strings.TrimSuffix(out, "\n"), "\n\n")[1:]
	parts = slices.DeleteFunc(parts, func(s string) bool {
		return strings.HasPrefix(s, "modules\n") || strings.HasPrefix(s, "globals\n") || strings.HasPrefix(s, "problem:")
	})
	for i := range parts {
		parts[i] += "\n"
	}
	return parts
}

// pageSubjects are targets with everything that a page has, by what they are.
func pageSubjects(t *testing.T) map[string][]string {
	subjects := map[string][]string{"waves": {mixed, "--locals", "--registers"}}
	if !testing.Short() {
		const core = "../../examples/crash/server.core"
		subjects["a core"] = []string{core, "--locals", "--source", "5", "--code", "6"}
		subjects["a core, unfolded"] = []string{core, "--no-fold", "--no-inlines"}
		deep := subject.Core(t, subject.Build(t, "recursions"))
		subjects["recursions"], subjects["recursions, unfolded"] = []string{deep}, []string{deep, "--no-fold"}
		subjects["a cut stack"] = []string{deep, "--max-frames", "100"}
	}
	return subjects
}

// TestPageSaysWhatTheTextSays: what is copied as text is the text form, line by line, and
// a page of any target shows without a word on the console or a request.
func TestPageSaysWhatTheTextSays(t *testing.T) {
	for name, args := range pageSubjects(t) {
		t.Run(name, func(t *testing.T) {
			url := stackPage(t, args...)
			b := oracle.Browse(t, url)
			var got []string
			b.Eval(&got, pageTextOf)
			if diff := cmp.Diff(stackTexts(t, append(args, "--lanes")...), got); diff != "" {
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
	url := stackPage(t, mixed, "--locals")
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
	expect("stacks", shown, len(stackTexts(t, mixed, "--lanes")))
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
	expect("c", `window.copied`, stackTexts(t, mixed, "--locals", "--lanes")[0])
	b.Press("/")
	expect("/", `document.activeElement.id`, "find")
	b.Press("m", "e", "a", "s", "u", "R", "E")
	b.Eval(new(any), `new Promise(done => setTimeout(done, 300))`)
	expect("stacks in measure", shown, 1)
	expect("frames in measure", `[...document.querySelectorAll('.hit')].every(e => e.textContent.includes('measure'))`, true)
	expect("what was found", `document.querySelector('#found').textContent`, "1 of 4 stacks, 1 frames")
	b.Press("Escape")
	expect("the end of the search", shown, 4)
	expect("the end of the search", `document.querySelectorAll('.hit').length`, 0)
	b.Press("?")
	expect("?", `document.querySelector('#help').hidden`, false)
	if said := b.Said(url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// brightness is the mean brightness of a picture, 0 to 1, and how many colours it has.
func brightness(t *testing.T, shot []byte) (mean float64, colours int) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[[3]uint32]bool{}
	size := picture.Bounds()
	each(size, func(x, y int) {
		r, g, b, _ := picture.At(x, y).RGBA()
		seen[[3]uint32{r, g, b}] = true
		mean += float64(r+g+b) / 3 / 0xffff
	})
	return mean / float64(size.Dx()*size.Dy()), len(seen)
}

// each gives the points of an area.
func each(area image.Rectangle, do func(x, y int)) {
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			do(x, y)
		}
	}
}

// TestPageIsLightAndDark by what the user prefers, and by the page's switch; what is
// printed is light, and has the stacks that were closed.
func TestPageIsLightAndDark(t *testing.T) {
	b := oracle.Browse(t, stackPage(t, mixed, "--locals"))
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
		shot := b.Screenshot()
		mean, colours := brightness(t, shot)
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
	b := oracle.Browse(t, stackPage(t, mixed, "--locals"), "--blink-settings=scriptEnabled=false")
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
	text, err := os.ReadFile(strings.TrimPrefix(stackPage(t, mixed, "--locals"), "file://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []string{"src=", "href=", "url(", "@import", "style=", "http://", "https://", "onclick="} {
		if bytes.Contains(text, []byte(other)) {
			t.Errorf("the page has %s", other)
		}
	}
}
