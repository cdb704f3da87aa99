// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/internal/oracle"
)

// local is what a job writes that no server does.
func local(t *testing.T, j job.Stack, name, path string) string {
	t.Helper()
	e, err := engine.New(j.Engine(engine.Options{
		Plugins: inProcess(), Sysroot: t.TempDir(), DebugDirs: []string{examples + "crash"},
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	target, err := e.OpenFile(f, name)
	if err != nil {
		t.Fatal(err)
	}
	stacks, err := j.Of(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	defer stacks.Close()
	var out bytes.Buffer
	if err := stacks.WriteReport(t.Context(), &out, job.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestStacksAreThoseOfTheCommand compares the answers to all kinds of options with what the
// same job writes in this process.
func TestStacksAreThoseOfTheCommand(t *testing.T) {
	s := start(t, testOptions(t))
	for _, c := range []struct {
		query string
		path  string
		set   func(*job.Stack)
	}{
		{"format=text", mixed, func(*job.Stack) {}},
		{"format=text&lanes", mixed, func(j *job.Stack) { j.Lanes = true }},
		{"format=text&thread=w0&lane=20", mixed, func(j *job.Stack) { j.Thread, j.Lane = "w0", new(uint32(20)) }},
		{"", mixed, func(j *job.Stack) { j.Format = "json" }},
		{"format=html", mixed, func(j *job.Stack) { j.Format = "html" }},
		{"format=breakpad", mixed, func(j *job.Stack) { j.Format = "breakpad" }},
		{"format=text&crashed&top=2&no-inlines", mixed, func(j *job.Stack) { j.Crashed, j.Top, j.NoInlines = true, 2, true }},
		{"format=text&signature", mixed, func(j *job.Stack) { j.Signature = true }},
	} {
		j := job.NewStack()
		c.set(&j)
		if err := j.Check(); err != nil {
			t.Fatal(err)
		}
		want := local(t, j, "target", c.path)
		if got := s.post(t, "/v1/stack?"+c.query, file(t, c.path)); got != want {
			t.Errorf("%s:\n%s\nexpected\n%s", c.query, got, want)
		}
	}
}

// TestSymbolTablesNameAddresses has an address named of an executable that has a symbol table
// and no debug information.
func TestSymbolTablesNameAddresses(t *testing.T) {
	oracle.Tools(t, "strip")
	exe := filepath.Join(t.TempDir(), "server")
	oracle.Run(t, "strip", "--strip-debug", "-o", exe, crashExe)
	s := start(t, testOptions(t))
	if answer, text := s.ask(t, http.MethodPut, "/v1/objects/"+crashID, bytes.NewReader(file(t, exe))); answer.StatusCode != http.StatusCreated {
		t.Fatal(answer.Status, text)
	}
	if text := s.post(t, "/v1/symbolize?build-id="+crashID, []byte(`{"addresses":["0x401100"]}`)); !strings.Contains(text, "read_body") {
		t.Error(text)
	}
}

// TestObjectsAreFiledByTheirOwnBuildID: the server reads the build ID of a file that is sent
// without one, and refuses what it could not find again.
func TestObjectsAreFiledByTheirOwnBuildID(t *testing.T) {
	oracle.Tools(t, "objcopy", "strip")
	dir := t.TempDir()
	made := func(name string, args ...string) []byte {
		path := filepath.Join(dir, name)
		oracle.Run(t, args[0], append(args[1:], crashExe, path)...)
		return file(t, path)
	}
	s := start(t, testOptions(t))
	for _, c := range []struct {
		path string
		body []byte
		kind *problemKind
		want string
	}{
		{"/v1/objects", file(t, crashCore), unreadable, "object: it has no build ID"},
		{"/v1/objects?name=/tmp/../%2e%2e/server", made("unnamed", "objcopy", "--remove-section=.note.gnu.build-id"), unreadable, "server: it has no build ID, by which files are kept here. Run `unwindd stack CORE FILE`"},
		{"/v1/objects?name=server.debug", made("empty", "objcopy", "--only-keep-debug", "--remove-section=.debug_*"), unreadable, "server.debug: it has neither code nor debug information"},
		{"/v1/objects?name=x", []byte("no object"), unreadable, "x: "},
		{"/v1/objects?build-id=00", nil, badRequest, `no parameter "build-id", expected name`},
	} {
		answer, text := s.ask(t, http.MethodPost, c.path, bytes.NewReader(c.body))
		wantProblem(t, answer, text, c.kind, c.want)
	}
	for _, want := range []int{http.StatusCreated, http.StatusOK} {
		answer, text := s.ask(t, http.MethodPost, "/v1/objects?name=server", bytes.NewReader(file(t, crashExe)))
		if answer.StatusCode != want || answer.Header.Get("Location") != "/v1/objects/"+crashID || !strings.Contains(text, `"build_id": "`+crashID+`"`) || !strings.Contains(text, `"executable": true`) {
			t.Errorf("%s, at %q:\n%s", answer.Status, answer.Header.Get("Location"), text)
		}
	}
	if text := s.post(t, "/v1/stack?format=text", file(t, crashCore)); !strings.Contains(text, "read_body.cold+0x0 /example/server.c:47:11") {
		t.Error(text)
	}
}

// TestObjectsArePutOnce has a core walked whose executable is put by its build ID, and put
// again.
func TestObjectsArePutOnce(t *testing.T) {
	s := start(t, testOptions(t))
	core := file(t, crashCore)
	if text := s.post(t, "/v1/stack?format=text", core); strings.Contains(text, "read_body") {
		t.Fatalf("the executable is known before it was put:\n%s", text)
	}
	answer, text := s.ask(t, http.MethodGet, "/v1/objects/"+crashID, nil)
	wantProblem(t, answer, text, notFound, crashID)
	answer, text = s.ask(t, http.MethodPost, "/v1/symbolize?build-id="+crashID, strings.NewReader(`{"addresses":["0x401100"]}`))
	wantProblem(t, answer, text, notFound, crashID)
	answer, text = s.ask(t, http.MethodPut, "/v1/objects/02"+crashID[2:], bytes.NewReader(file(t, crashExe)))
	wantProblem(t, answer, text, mismatch, "the file has build ID "+crashID)
	answer, text = s.ask(t, http.MethodPut, "/v1/objects/"+crashID, bytes.NewReader(core))
	wantProblem(t, answer, text, unreadable, "it has no build ID")

	s.putCrash(t)
	if answer, _ := s.ask(t, http.MethodPut, "/v1/objects/"+crashID, bytes.NewReader(file(t, crashExe))); answer.StatusCode != http.StatusNoContent {
		t.Errorf("put again: %s", answer.Status)
	}
	if _, text := s.ask(t, http.MethodGet, "/v1/objects/"+crashID, nil); !strings.Contains(text, `"executable": true`) || !strings.Contains(text, `"debuginfo": true`) {
		t.Error(text)
	}
	text = s.post(t, "/v1/stack?format=text", core)
	for _, want := range []string{"read_body.cold+0x0 /example/server.c:47:11", "null pointer: reads 1 byte at 0x0 in content_length"} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	text = s.post(t, "/v1/symbolize?build-id="+crashID, []byte(`{"addresses":["0x401100", 4200721]}`))
	var symbols []struct {
		Address string
		Symbol  []struct{ FunctionName string }
	}
	if err := json.Unmarshal([]byte(text), &symbols); err != nil || len(symbols) != 2 || symbols[0].Symbol[0].FunctionName != "content_length" ||
		symbols[1].Address != "0x401911" || symbols[1].Symbol[0].FunctionName != "read_body" {
		t.Errorf("%v: %s", err, text)
	}
}

// TestWhatWasPutStaysKnown has a core walked again: what a worker has found out about the
// executable is not found out once more.
func TestWhatWasPutStaysKnown(t *testing.T) {
	o := testOptions(t)
	o.Workers = 1
	s := start(t, o)
	s.putCrash(t)
	core := file(t, crashCore)
	unknown := func() string {
		s.post(t, "/v1/stack", core)
		_, text := s.ask(t, "GET", "/metrics", nil)
		_, rest, _ := strings.Cut(text, `unwindd_cache_lookups_total{cache="code_objects",result="miss"} `)
		count, _, _ := strings.Cut(rest, "\n")
		return count
	}
	first := unknown()
	if second := unknown(); second != first || first == "" {
		t.Errorf("%q code objects were not known after a second request, %q after the first", second, first)
	}
}

// TestProfilesAndSnapshots has a recording and a core answered of.
func TestProfilesAndSnapshots(t *testing.T) {
	s := start(t, testOptions(t))
	if text := s.post(t, "/v1/profile?format=text", file(t, wordsData)); !strings.Contains(text, "83 samples") {
		t.Error(text)
	}
	s.putCrash(t)
	made := s.post(t, "/v1/snapshot", file(t, crashCore))
	want := s.post(t, "/v1/stack?format=text&name=x", file(t, crashCore))
	if got := s.post(t, "/v1/stack?format=text&name=x", []byte(made)); got != strings.Replace(want, "elf-core x", "snapshot x", 1) {
		t.Errorf("stacks of the snapshot:\n%s\nexpected\n%s", got, want)
	}
}

// TestProblems has requests that cannot be answered, each with its kind of problem.
func TestProblems(t *testing.T) {
	o := testOptions(t)
	o.Body, o.Answer = 1<<20, 2000
	s := start(t, o)
	small := file(t, mixed)
	for _, c := range []struct {
		method, path, body string
		kind               *problemKind
		words              string
	}{
		{"POST", "/v1/stack", "no target at all", unreadable, "target: not a core, minidump or snapshot"},
		{"POST", "/v1/stack?name=core.17", "no target at all", unreadable, "core.17: not a core, minidump or snapshot"},
		{"POST", "/v1/stack", "", badRequest, "no data"},
		{"POST", "/v1/stack?depht=3", "x", badRequest, `no parameter "depht", expected code, crashed, depth`},
		{"POST", "/v1/stack?top=-1", "x", badRequest, `parameter top is "-1", expected a number from 0`},
		{"POST", "/v1/stack?crashed=maybe", "x", badRequest, "expected true or false"},
		{"POST", "/v1/stack?top=1&top=2", "x", badRequest, "parameter top is there 2 times"},
		{"POST", "/v1/stack?format=xml", "x", badRequest, "--format xml: expected text, json"},
		{"POST", "/v1/stack?crashed&thread=1", "x", badRequest, "--crashed and --thread 1: expected one of them"},
		{"POST", "/v1/stack?thread=nobody", string(small), unreadable, "there is no thread nobody; there are: "},
		{"POST", "/v1/stack", strings.Repeat("x", 1<<20+1), tooMuch, "more than 1048576 bytes were sent"},
		{"POST", "/v1/stack", string(small), longAnswer, "the answer has more than 2000 bytes"},
		{"POST", "/v1/profile", "x", unreadable, "perf.data"},
		{"POST", "/v1/profile?format=xml", "x", badRequest, "--format xml"},
		{"POST", "/v1/symbolize?build-id=0", "{}", badRequest, "expected bytes in hexadecimal"},
		{"POST", "/v1/symbolize?build-id=01", "{}", badRequest, "expected 2 to 64 bytes"},
		{"POST", "/v1/symbolize?build-id=0102", "{}", badRequest, "0 addresses"},
		{"POST", "/v1/symbolize?build-id=0102", "[", badRequest, `expected {"addresses"`},
		{"POST", "/v1/symbolize?build-id=0102", `{"addresses":["x"]}`, badRequest, "expected a number"},
		{"PUT", "/v1/objects/xy", "x", badRequest, `build ID "xy"`},
		{"GET", "/v1/objects/0102", "", notFound, "0102"},
	} {
		answer, text := s.ask(t, c.method, c.path, strings.NewReader(c.body))
		wantProblem(t, answer, text, c.kind, c.words)
	}
	for name, kind := range problemKinds {
		if _, text := s.ask(t, "GET", problemPath+name, nil); !strings.HasPrefix(text, fmt.Sprintf("%s (status %d)\n", kind.title, kind.status)) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

// TestBodiesOfUnknownLengthAreBounded has bodies that do not say how long they are: each may
// have as many bytes as one may, a caller as many as it leaves for others, and all together as
// many as there is room for.
func TestBodiesOfUnknownLengthAreBounded(t *testing.T) {
	for _, c := range []struct {
		body, spool, others int64
		kind                *problemKind
		words               string
	}{
		{1 << 20, 1 << 30, 0, tooMuch, "more than 1048576 bytes were sent"},
		{1 << 30, 2 << 20, 0, tooMuch, "more than 1048576 bytes were sent"},
		{1 << 30, 6 << 20, 3 << 20, overShare, "has its share of all bytes on disk"},
		{1 << 30, 2 << 20, 1 << 20, overShare, "has its share of all bytes on disk"},
	} {
		o := testOptions(t)
		o.Body, o.Spool = c.body, c.spool
		s := start(t, o)
		if err := s.budget.of("another").take(c.others); err != nil {
			t.Fatal(err)
		}
		long := struct{ io.Reader }{strings.NewReader(strings.Repeat("x", 2<<20))}
		answer, text := s.ask(t, "POST", "/v1/stack", long)
		wantProblem(t, answer, text, c.kind, c.words)
	}
}

// TestOnlyThoseWhoMayAsk has requests of other hosts, of pages of other sites, and without
// tokens refused.
func TestOnlyThoseWhoMayAsk(t *testing.T) {
	o := testOptions(t)
	o.Hosts = []string{"stacks.example.org"}
	s := start(t, o)
	for _, c := range []struct {
		headers []string
		words   string // "": it is let in
	}{
		{nil, ""},
		{[]string{"Host", "evil.example.org"}, `for "evil.example.org"`},
		{[]string{"Host", "stacks.example.org"}, ""},
		{[]string{"Sec-Fetch-Site", "cross-site"}, "a page of another site"},
		{[]string{"Sec-Fetch-Site", "same-origin"}, ""},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, ""},
	} {
		answer, text := s.ask(t, "GET", "/healthz", nil, c.headers...)
		if c.words != "" {
			wantProblem(t, answer, text, forbidden, c.words)
		} else if text != "ok\n" {
			t.Errorf("%v: %s: %s", c.headers, answer.Status, text)
		}
	}

	tokens, err := ReadTokens(strings.NewReader("# who may ask\n\nalice 0123456789abcdef\nbob fedcba9876543210\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.SetTokens(tokens)
	answer, text := s.ask(t, "GET", "/metrics", nil)
	wantProblem(t, answer, text, unauthorized, "expected Authorization: Bearer TOKEN")
	if answer.Header.Get("WWW-Authenticate") == "" {
		t.Error("no WWW-Authenticate")
	}
	answer, text = s.ask(t, "GET", "/metrics", nil, "Authorization", "Bearer 0123456789abcdee")
	wantProblem(t, answer, text, unauthorized, "the token is not one of this server")
	if answer, _ := s.ask(t, "GET", "/metrics", nil, "Authorization", "Bearer fedcba9876543210"); answer.StatusCode != http.StatusOK {
		t.Error(answer.Status)
	}
	for _, bad := range []string{
		"", "alice", "alice short", "a b c", "alice 0123456789abcdef\nbob 0123456789abcdef", "alice sha256:0123456789abcdef", "alice sha256:" + strings.Repeat("x", 64),
		strings.Repeat("a", 101) + " 0123456789abcdef",
	} {
		if _, err := ReadTokens(strings.NewReader(bad)); err == nil {
			t.Errorf("tokens %q are read", bad)
		}
	}
}

// TestManyCallers has many requests answered at once, all of them right.
func TestManyCallers(t *testing.T) {
	o := testOptions(t)
	o.Workers = 3
	s := start(t, o)
	s.putCrash(t)
	core := file(t, crashCore)
	want := s.post(t, "/v1/stack?format=text", core)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for range 5 {
				answer, err := s.client.Post(s.url+"/v1/stack?format=text", "", bytes.NewReader(core)) //nolint:noctx // it ends
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(answer.Body)
				_ = answer.Body.Close()
				if err != nil || string(got) != want {
					t.Errorf("%v: %s\nexpected\n%s", err, got, want)
				}
			}
		})
	}
	wg.Wait()
	until(t, "all bytes are given back", func() bool { return s.budget.inUse() == 0 })
}

// TestAQueueThatIsFull tells who comes that he is to come again.
func TestAQueueThatIsFull(t *testing.T) {
	o := testOptions(t)
	o.Workers, o.Waiting = 1, 0
	s := start(t, o)
	free := s.fill(t)
	answer, text := s.ask(t, "POST", "/v1/stack", bytes.NewReader(file(t, mixed)))
	wantProblem(t, answer, text, busy, "too many requests wait")
	if answer.Header.Get("Retry-After") != "2" {
		t.Errorf("Retry-After is %q", answer.Header.Get("Retry-After"))
	}
	free()
	s.post(t, "/v1/stack", file(t, mixed))
}

// TestSlowCallers has a caller that sends nothing told so, and one that sends half a body.
func TestSlowCallers(t *testing.T) {
	o := testOptions(t)
	o.Idle = 100 * time.Millisecond
	s := start(t, o)
	reads, writes := io.Pipe()
	defer writes.Close()
	go func() { _, _ = writes.Write([]byte("\x7fELF")) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/stack", reads)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, answer, string(text), tooSlow, "nothing came")
}
