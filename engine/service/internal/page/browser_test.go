// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/service"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// TestMain makes this executable the workers of its servers, too.
func TestMain(m *testing.M) {
	if !worker.IsWorker(os.Args[1:]) {
		os.Exit(m.Run())
	}
	err := worker.Main(os.Args[1+len(worker.Args):], func(*worker.Setup) (plugin.Options, error) {
		return plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}, nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	crashCore = "../../../../examples/crash/server.core"
	crashID   = "01092ed6fbfc989c60cdda4dd2cc30a56e23db6d" // of crashExe
	crashExe  = "../../../../examples/crash/server"
	mixed     = "../../../../examples/mixed/mixed.snapshot"
	words     = "../../../../examples/profile/perf.data"
	wordsExe  = "../../../../examples/profile/words"
)

// patience bounds how long something may take on a machine that is busy.
const patience = 5 * time.Minute

// serveAt starts a server at a port of this machine, with its state in a folder. Where
// tokens are given, callers have to show one.
func serveAt(t *testing.T, state string, tokens service.Tokens) (url string, end func()) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "page-") // of a short path: those of sockets are bounded
	if err != nil {
		t.Fatal(err)
	}
	o := service.Options{Limits: service.DefaultLimits, Self: self, State: state, Run: dir, Tokens: tokens, Log: hclog.NewNullLogger()}
	o.Workers = 2
	s, err := service.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l, nil) }()
	end = sync.OnceFunc(func() {
		_ = l.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := s.Drain(ctx); err != nil {
			t.Error(err)
		}
		_ = os.RemoveAll(dir)
	})
	t.Cleanup(end)
	return "http://" + l.Addr().String(), end
}

// putExecutable puts an executable by its build ID.
func putExecutable(t *testing.T, url, path string) {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	note, err := f.Section(".note.gnu.build-id").Data()
	if err != nil {
		t.Fatal(err)
	}
	const head = 16 // of a note of the owner GNU
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, fmt.Sprintf("%s/v1/objects/%x", url, note[head:]), bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusCreated {
		t.Fatal(answer.Status)
	}
}

// pageFile is a path as a browser takes it.
func pageFile(t *testing.T, path string) string {
	t.Helper()
	all, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// wait waits until an expression is true in the page.
func wait(t *testing.T, b *oracle.Browser, what, expression string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		var is bool
		if b.Eval(&is, `!!(`+expression+`)`); is {
			return
		}
	}
	var text string
	b.Eval(&text, `document.body.innerText`)
	t.Fatalf("%s: %s does not come true:\n%s", what, expression, text)
}

// inFrame is what the report in the frame of the page has. The frame is of no origin, so
// that a test parses what it shows once more.
func inFrame(expression string) string {
	return `(doc => ` + expression + `)(new DOMParser().parseFromString(document.querySelector('#view iframe').srcdoc, 'text/html'))`
}

const isShown = `document.querySelector('#view iframe')`

// spoke are the errors of scripts and policies, and the requests to elsewhere, that a
// browser told of.
func spoke(b *oracle.Browser, urls ...string) (list []string) {
	for _, line := range b.Said("") {
		isOwn := func(url string) bool { return strings.Contains(line, `"request":{"url":"`+url+`/`) }
		if strings.HasPrefix(line, "Network.requestWillBeSent") && slices.ContainsFunc(urls, isOwn) {
			continue
		}
		if strings.Contains(line, "Failed to load resource") {
			continue // an answer that is a problem
		}
		list = append(list, line)
	}
	return list
}

// TestServePageShowsReports drops what people have, and looks at what they see.
func TestServePageShowsReports(t *testing.T) {
	url, _ := serveAt(t, t.TempDir(), nil)
	putExecutable(t, url, crashExe)
	putExecutable(t, url, wordsExe)
	b := oracle.Browse(t, url+"/")
	expect := func(what, expression, want string) {
		t.Helper()
		var got string
		if b.Eval(&got, expression); !strings.Contains(got, want) {
			t.Errorf("%s: %q, expected %q", what, got, want)
		}
	}
	b.Click("#wanted [data-name=locals]")
	b.Drop("#drop", pageFile(t, crashCore))
	wait(t, b, "the core", isShown)
	expect("the crashed thread", inFrame(`doc.querySelector('.s.crashed').textContent`), "content_length /example/server.c:40:9")
	expect("its variables", inFrame(`doc.querySelector('.s.crashed .k').textContent`), "variable")
	expect("the title", `document.title`, "server.core")
	b.Click("#back")
	wait(t, b, "the list", `!document.querySelector('#start').hidden && !document.querySelector('#view iframe')`)
	bad := filepath.Join(t.TempDir(), "bad.core")
	if err := os.WriteFile(bad, []byte("\x7fELF, as far as it goes"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Drop("#drop", pageFile(t, mixed), bad, pageFile(t, words))
	const openers = `document.querySelectorAll('#sent button[aria-label^=Open]')`
	wait(t, b, "three files more", openers+`.length === 3 && document.querySelectorAll('#sent .failed').length === 1`)
	expect("the problem", `document.querySelector('#sent .failed').innerText`, "What was sent cannot be read: bad.core: not an ELF core: offset 0x4")
	expect("its request", `document.querySelector('#sent .failed').innerText`, "The server's log has it as request ")
	expect("what is said", `document.querySelector('#said').textContent`, "perf.data is ready")
	b.Eval(new(any), openers+`[1].click()`)
	wait(t, b, "the snapshot", isShown)
	expect("the wave", inFrame(`doc.querySelector('.s.crashed').textContent`), "grade")
	b.Eval(new(any), `history.back()`)
	wait(t, b, "the list", `!document.querySelector('#start').hidden && !document.querySelector('#view iframe')`)
	b.Eval(new(any), openers+`[2].click()`)
	wait(t, b, "the recording", isShown)
	expect("the flame graph", inFrame(`doc.querySelector('.event .n').title`), "insert(Node*, unsigned int)")
	if said := spoke(b, url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// dropOver drops files on a report. When they come over its frame, it is covered.
func dropOver(t *testing.T, b *oracle.Browser, files ...string) {
	t.Helper()
	wait(t, b, "the report", `document.activeElement.tagName === 'IFRAME'`) // it was loaded
	// A mouse tells again and again where it is: the frame may not be painted, or not listen, at first.
	over := false
	for began := time.Now(); !over && time.Since(began) < patience; time.Sleep(50 * time.Millisecond) {
		b.DragOver("#view", files...)
		b.Eval(&over, `!document.querySelector('#over').hidden`)
	}
	wait(t, b, "the cover", `!document.querySelector('#over').hidden`)
	b.Screenshot() // the browser finds by what is painted what files are dropped on
	b.Drop("#over", files...)
}

// TestServePageTakesWhatACoreIsMissing: the report of a core names the executable that it is missing,
// an executable of another build is told from it, and when the right one is dropped on the report,
// the core is done again.
func TestServePageTakesWhatACoreIsMissing(t *testing.T) {
	oracle.Tools(t, "objcopy")
	url, _ := serveAt(t, t.TempDir(), nil)
	b := oracle.Browse(t, url+"/")
	dir := t.TempDir()
	other, unnamed := filepath.Join(dir, "server"), filepath.Join(dir, "unnamed")
	oracle.Run(t, "objcopy", "--remove-section=.note.gnu.build-id", crashExe, unnamed)
	exe, err := os.ReadFile(crashExe)
	id, _ := hex.DecodeString(crashID)
	if err == nil {
		err = os.WriteFile(other, bytes.ReplaceAll(exe, id, bytes.Repeat([]byte{7}, len(id))), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	const wants = "Drop /srv/example/server here, too, to have names (build ID " + crashID + ")."
	b.Drop("#drop", pageFile(t, crashCore))
	wait(t, b, "the core", isShown)
	wait(t, b, "what it is missing", `!document.querySelector('#wants').hidden && document.querySelector('#wants').innerText.startsWith('`+wants+`')`)
	var got []any
	b.Eval(&got, `[`+inFrame(`doc.querySelectorAll('[data-needs]').length`)+`, document.querySelector('#sent .missing').textContent, document.querySelector('#said').textContent.endsWith('`+wants+`')]`)
	if want := []any{0., wants, true}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	dropOver(t, b, other, unnamed)
	wait(t, b, "two other files", `document.querySelector('#sent').innerText.includes('It is another build than the one that is missing, which has build ID `+crashID+`') &&
		document.querySelector('#sent').innerText.includes('unnamed: it has no build ID, by which files are kept here. Run')`)
	b.Eval(&got, `[document.querySelector('#view iframe') !== null, document.querySelector('#over').hidden, `+inFrame(`doc.body.textContent.includes('content_length')`)+`]`)
	if want := []any{true, true, false}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	dropOver(t, b, pageFile(t, crashExe))
	wait(t, b, "the names", isShown+` && `+inFrame(`doc.querySelector('.s.crashed').textContent.includes('content_length /example/server.c:40:9')`)+` && document.querySelector('#wants').hidden`)
	b.Eval(&got, `[document.querySelectorAll('#sent li').length - document.querySelectorAll('#sent li li').length, document.querySelector('#sent .missing').hidden]`)
	if want := []any{4., true}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	if said := spoke(b, url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// TestServePageTakesABundle: what is dropped together is sent in an order in which a core finds its
// executable, and each once; the report is opened.
func TestServePageTakesABundle(t *testing.T) {
	url, _ := serveAt(t, t.TempDir(), nil)
	b := oracle.Browse(t, url+"/")
	b.Eval(new(any), `(open => { window.asked = []; XMLHttpRequest.prototype.open = function (method, url) { asked.push(method + ' ' + url.split('?')[0]); return open.call(this, method, url); }; })(XMLHttpRequest.prototype.open)`)
	b.Drop("#drop", pageFile(t, crashCore), pageFile(t, crashExe))
	wait(t, b, "the core", isShown)
	var got []any
	b.Eval(&got, `[asked.join(), `+inFrame(`doc.querySelector('.s.crashed').textContent.includes('content_length /example/server.c:40:9')`)+`, document.querySelector('#wants').hidden]`)
	if want := []any{"POST /v1/objects,POST /v1/stack", true, true}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
}

// TestServePageTakesFilesOverAReport: the report in its frame tells that files are dragged over it,
// and the page takes them: another core leads to the list.
func TestServePageTakesFilesOverAReport(t *testing.T) {
	url, _ := serveAt(t, t.TempDir(), nil)
	b := oracle.Browse(t, url+"/")
	b.Drop("#drop", pageFile(t, mixed))
	wait(t, b, "the snapshot", isShown)
	b.Eval(new(any), `(f => { f.contentWindow.postMessage('unwindd: files', '*'); dispatchEvent(new MessageEvent('message', { data: 'unwindd: files', source: window })); })(document.querySelector('#view iframe'))`)
	var over bool
	if b.Eval(&over, `document.querySelector('#over').hidden`); !over {
		t.Error("a message that is not the report's covers it")
	}
	b.Eval(new(any), `(f => dispatchEvent(new MessageEvent('message', { data: 'unwindd: files', source: f.contentWindow })))(document.querySelector('#view iframe'))`)
	wait(t, b, "the cover", `!document.querySelector('#over').hidden && getComputedStyle(document.querySelector('#over')).position === 'fixed'`)
	b.Drop("#over", pageFile(t, words))
	wait(t, b, "the list", `document.querySelector('#over').hidden && !document.querySelector('#start').hidden && document.querySelectorAll('#sent button[aria-label^=Open]').length === 2`)
	if said := spoke(b, url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// TestServePageByKeys sends a file and comes back without a mouse.
func TestServePageByKeys(t *testing.T) {
	url, _ := serveAt(t, t.TempDir(), nil)
	b := oracle.Browse(t, url+"/")
	focus := func(what, want string) {
		t.Helper()
		var got string
		b.Eval(&got, `document.activeElement.id || document.activeElement.dataset.name || document.activeElement.textContent || document.activeElement.tagName`)
		if got != want {
			t.Fatalf("%s: the focus is at %q, expected %q", what, got, want)
		}
	}
	for _, want := range []string{"theme", "files", "crashed", "locals"} {
		b.Press("Tab")
		focus("Tab", want)
	}
	var seen string
	b.Eval(&seen, `getComputedStyle(document.activeElement).outlineStyle`)
	if seen == "none" {
		t.Error("what has the focus is not to be seen")
	}
	b.Press(" ")
	wait(t, b, "a blank", `document.querySelector('[data-name=locals]').checked`)
	b.Eval(new(any), `document.querySelector('#files').focus()`)
	b.Choose(func() { b.Press(" ") }, pageFile(t, mixed))
	wait(t, b, "the report", isShown+` && document.activeElement.tagName === 'IFRAME'`)
	// What is in the frame shows itself in a picture alone, and takes keys once it is drawn.
	for before, mean := 0.0, -1.0; mean != before; time.Sleep(200 * time.Millisecond) {
		before = mean
		mean, _ = b.Brightness()
	}
	b.Press("Tab", "Tab", "Tab", "Enter")
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if mean, _ := b.Brightness(); mean < 0.5 {
			break
		} else if time.Since(began) > patience {
			t.Fatalf("the report's own script does not make it dark: its brightness is %.2f", mean)
		}
	}
	b.Eval(new(any), `document.querySelector('#back').focus()`)
	b.Press("Escape")
	wait(t, b, "Escape", `!document.querySelector('#start').hidden`)
	focus("the way back", "Open the stacks")
	b.Press("Enter")
	wait(t, b, "Enter", isShown)
	if said := spoke(b, url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// TestServePageCancels ends a request that is under way.
func TestServePageCancels(t *testing.T) {
	url, _ := serveAt(t, t.TempDir(), nil)
	b := oracle.Browse(t, url+"/")
	// A request that has no end, as of a server that works.
	b.Eval(new(any), `XMLHttpRequest.prototype.send = function () { setTimeout(() => this.upload.dispatchEvent(new ProgressEvent('progress', {loaded: 1, total: 4})), 0); }; 0`)
	b.Eval(new(any), `XMLHttpRequest.prototype.abort = function () { this.dispatchEvent(new ProgressEvent('abort')); }; 0`)
	b.Drop("#drop", pageFile(t, mixed), pageFile(t, crashCore))
	wait(t, b, "the progress", `document.querySelector('#sent progress').value === 0.25 && document.querySelector('#sent .state').textContent.startsWith('25% sent')`)
	b.Press("Escape")
	wait(t, b, "Escape", `document.querySelector('#sent li').innerText.includes('Canceled') && document.querySelectorAll('#sent li')[1].innerText.includes('25% sent')`)
	b.Eval(new(any), `document.querySelectorAll('#sent li')[1].querySelector('button').click()`)
	wait(t, b, "Cancel", `document.querySelectorAll('#sent .failed').length === 2 && document.querySelectorAll('#sent button').length === 2`)
}

// TestServePageTakesNamesForNames: no name of a file, and no text in one, is a script or an
// element.
func TestServePageTakesNamesForNames(t *testing.T) {
	url, _ := serveAt(t, t.TempDir(), nil)
	b := oracle.Browse(t, url+"/")
	const hostile = `<img src=x onerror="top.hacked=1"><script>top.hacked=1<`
	dir := t.TempDir()
	bad := filepath.Join(dir, hostile+".bad")
	if err := os.WriteFile(bad, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	core, err := os.ReadFile(crashCore)
	if err != nil {
		t.Fatal(err)
	}
	good := filepath.Join(dir, hostile+".core")
	core = bytes.ReplaceAll(core, []byte("/srv/example/server\x00"), []byte("<script>top.h=1//s\x00"))
	if err := os.WriteFile(good, core, 0o600); err != nil {
		t.Fatal(err)
	}
	b.Click("#keep")
	b.Drop("#drop", bad, good)
	wait(t, b, "both", `document.querySelectorAll('#sent .failed').length === 1 && document.querySelector('#kept a')`)
	// The list is made again as files come: a click may miss the link.
	b.Eval(new(any), `document.querySelector('#kept a').click()`)
	wait(t, b, "the report", isShown)
	var got []any
	b.Eval(&got, `[window.hacked, window.h, document.querySelectorAll('img').length, document.querySelectorAll('script').length,
		`+inFrame(`doc.querySelectorAll('img').length`)+`, `+inFrame(`doc.querySelectorAll('script').length`)+`]`)
	if want := []any{nil, nil, 0., 1., 0., 1.}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	var name string
	if b.Eval(&name, `document.querySelector('#sent li').textContent`); !strings.Contains(name, hostile) {
		t.Errorf("the file is called %q", name)
	}
	if said := spoke(b, url); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
}

// TestServePageKeepsReports: a link to a report is one after a restart too, until the report
// is removed.
func TestServePageKeepsReports(t *testing.T) {
	state := t.TempDir()
	url, end := serveAt(t, state, nil)
	b := oracle.Browse(t, url+"/")
	b.Click("#keep")
	b.Drop("#drop", pageFile(t, mixed))
	wait(t, b, "the report", isShown)
	var link string
	b.Eval(&link, `location.pathname`)
	if !strings.HasPrefix(link, "/reports/") || len(link) != len("/reports/")+26 {
		t.Fatalf("the link is %q", link)
	}
	b.Go("about:blank")
	end()
	again, _ := serveAt(t, state, nil)
	b.Go(again + link)
	var got string
	b.Eval(&got, `document.querySelector('.s.crashed').textContent + (document.querySelector('nav').hidden ? ', without its script' : '')`)
	if !strings.Contains(got, "grade") || strings.HasSuffix(got, "without its script") {
		t.Errorf("the report is %q", got)
	}
	b.Eval(&got, `(() => { try { localStorage.length; return 'its origin'; } catch (e) { return e.name + ' ' + self.origin; } })()`)
	if got != "SecurityError null" {
		t.Errorf("the report has %s", got)
	}
	if said := spoke(b, url, again); len(said) > 0 {
		t.Errorf("the browser said %q", said)
	}
	// The list is of this browser's, and of the server's address, which is another one now.
	b.Go(again + "/")
	b.Eval(new(any), `localStorage.setItem('unwindd.reports', JSON.stringify([{id: '`+strings.TrimPrefix(link, "/reports/")+`', name: 'mixed', date: '2026-01-02'}, {id: '../../x'}, 7]))`)
	b.Go(again + "/")
	wait(t, b, "the list", `document.querySelectorAll('#kept li').length === 1`)
	b.Click("#kept button")
	wait(t, b, "the end of the report", `document.querySelectorAll('#kept li').length === 0 && document.querySelector('#keptPart').hidden`)
	answer, err := http.Get(again + link) //nolint:noctx // the test has a limit
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusNotFound {
		t.Errorf("a report that was removed has status %s", answer.Status)
	}
}

// TestServePageAsksForTokens where the server does, for a report that a link leads to as
// well.
func TestServePageAsksForTokens(t *testing.T) {
	const token = "0123456789abcdef"
	url, _ := serveAt(t, t.TempDir(), service.Tokens{sha256.Sum256([]byte(token)): "somebody"})
	b := oracle.Browse(t, url+"/")
	show := func(typed string) {
		t.Helper()
		b.Eval(new(any), `document.querySelector('#secret').focus()`)
		for _, c := range typed {
			b.Press(string(c))
		}
		b.Press("Enter")
	}
	wait(t, b, "the question", `!document.querySelector('#token').hidden && document.querySelector('#work').hidden`)
	show("another-token-here")
	wait(t, b, "the refusal", `document.querySelector('#refused').textContent.includes('not one of this server')`)
	b.Eval(new(any), `document.querySelector('#secret').value = ''`)
	show(token)
	wait(t, b, "the way in", `document.querySelector('#token').hidden && !document.querySelector('#work').hidden`)
	b.Click("#keep")
	b.Drop("#drop", pageFile(t, mixed))
	wait(t, b, "the report", isShown)
	var link string
	b.Eval(&link, `location.pathname`)
	b.Eval(new(any), `sessionStorage.clear()`)
	b.Go(url + link)
	wait(t, b, "the question", `!document.querySelector('#token').hidden && !document.querySelector('#view iframe')`)
	show(token)
	wait(t, b, "the report of the link", isShown)
	var got string
	if b.Eval(&got, inFrame(`doc.querySelector('.s.crashed').textContent`)); !strings.Contains(got, "grade") {
		t.Errorf("the report is %q", got)
	}
	if b.Eval(&got, `JSON.stringify(localStorage)`); strings.Contains(got, token) {
		t.Errorf("the token stays in %s", got)
	}
}

// TestServePageIsLightAndDark by what the user prefers.
func TestServePageIsLightAndDark(t *testing.T) {
	url, _ := serveAt(t, t.TempDir(), nil)
	b := oracle.Browse(t, url+"/")
	for scheme, isDark := range map[string]bool{"light": false, "dark": true} {
		b.Media("screen", scheme)
		if mean, _ := b.Brightness(); mean < 0.5 != isDark {
			t.Errorf("%s: the brightness is %.2f", scheme, mean)
		}
	}
	b.Resize(360, 700)
	var wide float64
	if b.Eval(&wide, `document.documentElement.scrollWidth`); wide > 360 {
		t.Errorf("on a phone the page is %v pixels wide, expected 360", wide)
	}
}
