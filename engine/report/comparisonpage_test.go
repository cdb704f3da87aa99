// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// pageBrowser shows pages of comparisons, one after the other.
type pageBrowser struct {
	*oracle.Browser
	t *testing.T
}

func newPageBrowser(t *testing.T) *pageBrowser {
	oracle.Tools(t, "chromium")
	return &pageBrowser{oracle.Browse(t, "about:blank"), t}
}

// show opens the page of a comparison, and returns its address.
func (b *pageBrowser) show(m *madeJob) (url string) {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(m.written(b.t, (*Comparison).WriteHTML)), 0o600); err != nil {
		b.t.Fatal(err)
	}
	b.Go("file://" + file)
	b.Eval(new(any), `new Promise(done => { const look = () => document.documentElement.dataset.ready ? setTimeout(done, 50) : setTimeout(look, 5); look(); })`)
	return "file://" + file
}

// foreign returns the requests that the browser made, without the ones for the pages.
func (b *pageBrowser) foreign() []string {
	return slices.DeleteFunc(b.Said(""), func(line string) bool {
		return strings.Contains(line, "/page.html\",\"method\"") || strings.Contains(line, `"url":"about:blank"`)
	})
}

// everywhere goes through all views, classes and targets of a page, and takes all text that was shown.
const everywhere = `(async () => {
	const wait = () => new Promise(done => setTimeout(done, 20)), texts = [];
	const take = async () => { await wait(); texts.push(document.body.innerText, ...[...document.querySelectorAll('[title], [aria-label]')].flatMap(e => [e.title, e.getAttribute('aria-label') || ''])); };
	const all = Math.min(document.querySelectorAll('#classes button').length, 8);
	for (let i = 0; i < all; i++) {
		document.querySelectorAll('#classes button')[i].click();
		await take();
		const row = document.querySelector('#list .row');
		if (row) { row.click(); await take(); document.querySelector('[data-view=tree]').click(); }
		document.querySelectorAll('#classes button')[i].click();
	}
	for (const tab of document.querySelectorAll('#tabs button')) { tab.click(); await take(); }
	return texts.join('\n');
})()`

// TestHostileNamesDoNothingOnAComparisonPage wherever a comparison has text: they make no elements, change no
// direction, and end no script.
func TestHostileNamesDoNothingOnAComparisonPage(t *testing.T) {
	names := []string{hostile, "\x00</script><script>document.title='taken'</script>", "\u202egnp.exe\u2066", "${1+1} `x` {{.}} \\u003c <!--<script>", strings.Repeat("<b>huge", 1<<17), "__proto__", "\xff\xfe"}
	b := newPageBrowser(t)
	for _, name := range names {
		b.show(hostileComparison(name))
		var text string
		b.Eval(&text, everywhere)
		if strings.ContainsAny(text, "\u202e\u2066\x00\x1b\x01") {
			t.Errorf("%.40q: the page has text that is not escaped", name)
		}
		if !strings.Contains(text, "2 classes") || !strings.Contains(text, "parts here") && !strings.Contains(text, "ends here") {
			t.Errorf("%.40q: the page shows no classes:\n%.1000s", name, text)
		}
		var got string
		b.Eval(&got, `[document.title.startsWith('4 targets'), document.querySelectorAll('script').length, document.querySelectorAll('img, b:not(.badge)').length].join(' ')`)
		if got != "true 1 0" {
			t.Errorf("%.40q: title, scripts and foreign elements are %s", name, got)
		}
		if said := b.foreign(); len(said) > 0 {
			t.Errorf("%.40q: the browser said %q", name, said)
		}
	}
}

// TestComparisonPageOfEveryKind shows each class, a target of it, and every view, and says nothing.
func TestComparisonPageOfEveryKind(t *testing.T) {
	b := newPageBrowser(t)
	for name, job := range madeComparisons() {
		m := job.comparison()
		b.show(job)
		var text string
		b.Eval(&text, everywhere)
		for i := range m.Classes {
			if c := &m.Classes[i]; c.PartsAt != nil && i < 10 {
				if want := m.Functions[max(c.PartsAt.Last, 0)].Frame.Function; !strings.Contains(text, want) {
					t.Errorf("%s: class %d parts at %s, which is not on the page", name, i+1, want)
				}
			}
		}
		var got int
		if b.Eval(&got, `document.querySelectorAll('#classes li').length`); got != min(len(m.Classes), 50) {
			t.Errorf("%s: %d classes, expected %d", name, got, len(m.Classes))
		}
		if word := fmt.Sprintf("%d thread", len(m.Targets)); m.ByThread && !strings.Contains(text, word) {
			t.Errorf("%s: the page has no %q", name, word)
		}
		if said := b.foreign(); len(said) > 0 {
			t.Errorf("%s: the browser said %q", name, said)
		}
	}
}

// TestComparisonPageHasTheText where no script runs, and on paper.
func TestComparisonPageHasTheText(t *testing.T) {
	m, b := oneOutlier(96), newPageBrowser(t)
	b.show(m)
	const text = `document.querySelector('#text').innerText`
	var got string
	if b.Eval(&got, `String(document.querySelector('#text').getClientRects().length)`); got != "0" {
		t.Errorf("the text is shown beside the page")
	}
	b.Media("print", "dark")
	if b.Eval(&got, text); strings.TrimSpace(got) != strings.TrimSpace(m.text(t, TextOptions{})) {
		t.Errorf("on paper there is\n%s\nexpected\n%s", got, m.text(t, TextOptions{}))
	}
}
