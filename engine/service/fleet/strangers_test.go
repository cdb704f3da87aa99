// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// This file has a submitter, bob, who attacks the jobs of another, alice, with the documented
// settings.

// denials counts what the server denies a connection.
type denials struct {
	mu   sync.Mutex
	list []string
}

func watchDenials(q *Queue) *denials {
	d := &denials{}
	q.conn.SetErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		if errors.Is(err, nats.ErrPermissionViolation) {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.list = append(d.list, err.Error())
		}
	})
	return d
}

// has waits until the server has denied something with a text.
func (d *denials) has(t *testing.T, text string) {
	t.Helper()
	until(t, "a denial of "+text, func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		for _, one := range d.list {
			if strings.Contains(one, `"`+text+`"`) {
				return true
			}
		}
		return false
	})
}

// state describes all streams of a worker's account.
func state(t *testing.T, worker *Queue) string {
	t.Helper()
	var b strings.Builder
	streams := worker.js.ListStreams(t.Context())
	for i := range streams.Info() {
		if i.Config.Name != "KV_"+triesBucket { // workers write there
			_, _ = fmt.Fprintf(&b, "%s %d %d %d\n", i.Config.Name, i.State.Msgs, i.State.LastSeq, i.State.Consumers)
		}
	}
	if err := streams.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestASubmitterMayNotTouchWhatIsAnothers has bob publish to every subject by which jobs, results and
// files of others are read, ended, delayed or removed. The server denies each.
func TestASubmitterMayNotTouchWhatIsAnothers(t *testing.T) {
	d := startDocumented(t)
	alice, bob := d.alice(t), d.bob(t)
	large := strings.Repeat("large input ", 1<<17)
	done, waits := submit(t, alice, "!large", How{}), jobOf(t, "!wait").id()
	wait(t, alice, done.ID)
	submit(t, alice, "!wait", How{})
	until(t, "the job is begun", func() bool { return d.doer.times("!wait") == 1 })
	queued := submit(t, alice, large, How{})
	before := state(t, d.worker)
	denied := watchDenials(bob)
	api := jetstream.DefaultAPIPrefix
	var subjects []string
	for _, user := range []string{"", userSubjects + "alice."} {
		of := func(text string) string {
			if user == "" {
				return text
			}
			return user + strings.TrimPrefix(text, allSubjects)
		}
		for _, id := range []string{done.ID, waits, queued.ID} {
			subjects = append(subjects, of(jobsPrefix)+"high."+id, of(jobsPrefix)+"normal."+id, of(resultsPrefix)+id, of(donePrefix)+id, of(cancelPrefix)+id)
		}
	}
	names := []string{resultsStream, "OBJ_" + inputsBucket, "OBJ_" + objectsBucket, "OBJ_" + reportsBucket, "KV_" + triesBucket}
	for _, p := range Priorities {
		names = append(names, jobsOf(p))
	}
	for _, name := range names {
		for _, stream := range []string{name, alice.streamOf(name)} {
			for _, what := range []string{
				"STREAM.INFO.", "STREAM.PURGE.", "STREAM.DELETE.", "STREAM.UPDATE.", "STREAM.MSG.GET.", "STREAM.MSG.DELETE.", "DIRECT.GET.", "STREAM.SNAPSHOT.",
				"STREAM.RESTORE.", "CONSUMER.CREATE.", "CONSUMER.NAMES.", "CONSUMER.LIST.", "STREAM.LEADER.STEPDOWN.",
			} {
				subjects = append(subjects, api+what+stream)
			}
			subjects = append(subjects, api+"CONSUMER.CREATE."+stream+".mine", api+"CONSUMER.DURABLE.CREATE."+stream+".mine", api+"CONSUMER.MSG.NEXT."+stream+"."+consumerName,
				api+"CONSUMER.DELETE."+stream+"."+consumerName, api+"CONSUMER.INFO."+stream+"."+consumerName, api+"CONSUMER.PAUSE."+stream+"."+consumerName,
				api+"DIRECT.GET."+stream+"."+alice.subject(resultsPrefix)+done.ID, "$JS.ACK."+stream+"."+consumerName+".1.1.1.1.0", "$JS.FC."+stream+".mine.x")
		}
	}
	for _, bucket := range []string{inputsBucket, objectsBucket, reportsBucket, alice.named(inputsBucket), alice.named(objectsBucket), alice.named(reportsBucket)} {
		subjects = append(subjects, "$O."+bucket+".M.bmFtZQ==", "$O."+bucket+".C.abc")
	}
	subjects = append(subjects, api+"STREAM.NAMES", api+"STREAM.LIST", api+"STREAM.CREATE.MINE", api+"INFO", api+"ACCOUNT.PURGE.UNWINDD", "$KV."+triesBucket+"."+waits,
		wakeSubject, askPrefix+"alice."+anyDesk, askPrefix+"alice.x", askPrefix+"bob.x.y", "_INBOX.x", "_INBOX_alice.x", "unwindd.user.bob.result.v1."+waits, "$SYS.REQ.SERVER.PING")
	for _, subject := range subjects {
		if err := bob.conn.PublishRequest(subject, "_INBOX_bob.x", []byte(`{"subjects_filter":">"}`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, subject := range subjects {
		denied.has(t, subject)
	}
	if after := state(t, d.worker); after != before {
		t.Errorf("the streams were\n%s\nand are\n%s", before, after)
	}
	close(d.doer.gate)
	for id, r := range wait(t, alice, waits, queued.ID) {
		if r.State != Done {
			t.Errorf("%s: %+v", id, r)
		}
	}
}

// TestASubmitterMayNotListen has bob subscribe to what passes for others.
func TestASubmitterMayNotListen(t *testing.T) {
	d := startDocumented(t)
	bob := d.bob(t)
	denied := watchDenials(bob)
	for _, subject := range []string{
		">", "_INBOX.>", "_INBOX_alice.>", "*.>", userSubjects + "alice.done.v1.*", donePrefix + "*", jobsPrefix + ">", userSubjects + ">", askPrefix + ">", askPrefix + "bob." + anyDesk,
		cancelPrefix + "*", wakeSubject, "$JS.ACK.>", "$JS.API.>", "$JS.EVENT.>", "$O.>", "$SYS.>",
	} {
		if _, err := bob.conn.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		denied.has(t, subject)
	}
}

// TestWhatASubmitterSeesOfOthers has bob ask a desk for the results, reports, jobs and transfers of
// alice by their IDs: for him there are none.
func TestWhatASubmitterSeesOfOthers(t *testing.T) {
	d := startDocumented(t)
	alice, bob := d.alice(t), d.bob(t)
	s := submit(t, alice, "!large", How{})
	done := wait(t, alice, s.ID)[s.ID]
	submit(t, alice, "!wait", How{})
	running := jobOf(t, "!wait").id()
	until(t, "the job is begun", func() bool { return d.doer.times("!wait") == 1 })
	if _, err := bob.Result(t.Context(), s.ID); !errors.Is(err, ErrNoResult) {
		t.Errorf("a result of another: %v", err)
	}
	if err := bob.Report(t.Context(), done, &strings.Builder{}); !errors.Is(err, ErrNoResult) {
		t.Errorf("a report of another: %v", err)
	}
	if err := bob.Results(t.Context(), func(r *Result) error { t.Errorf("%s is listed", r.ID); return nil }); err != nil {
		t.Error(err)
	}
	if ok, err := bob.Cancel(t.Context(), running); !ok || err != nil { // a job of this ID of his own
		t.Errorf("%t, %v", ok, err)
	}
	if s := submit(t, bob, "!large", How{}); s.Known {
		t.Errorf("he knows another's job: %+v", s)
	}
	r, _, err := alice.desk.ask(t.Context(), "", &question{About: askPut, Store: deskInputs, Name: strings.Repeat("ab", 32), SHA256: strings.Repeat("ab", 32), Size: 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, about := range []string{askPiece, askLastPiece, askMore} {
		if _, _, err := bob.desk.ask(t.Context(), r.Desk, &question{About: about, Transfer: r.Transfer, Place: 1}, []byte("x")); err == nil || !strings.Contains(err.Error(), errTransferLost.Error()) {
			t.Errorf("%s of another's transfer: %v", about, err)
		}
	}
	close(d.doer.gate)
	if r := wait(t, alice, running)[running]; r.State != Done {
		t.Errorf("%+v", r)
	}
	d.stop()
}

// TestAnswersGoToWhoAsked has questions that ask for answers in places of others, where a worker may
// publish.
func TestAnswersGoToWhoAsked(t *testing.T) {
	d := startDocumented(t)
	alice, bob := d.alice(t), d.bob(t)
	id := jobOf(t, "right").id()
	before := state(t, d.worker)
	for _, place := range []string{alice.subject(resultsPrefix) + id, resultsPrefix + id, alice.subject(jobsPrefix) + "normal." + id, "_INBOX_alice.x", "_INBOX_bobby.x", "$JS.API.STREAM.DELETE." + resultsStream, ""} {
		for _, about := range []string{`{"about":"hello"}`, `{`, `{"about":"list"}`} {
			m := &nats.Msg{Subject: askPrefix + "bob." + anyDesk, Reply: place, Data: append([]byte{0, 0, 0, byte(len(about))}, about...)}
			if err := bob.conn.PublishMsg(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := bob.Ping(t.Context()); err != nil { // it comes after them
		t.Fatal(err)
	}
	if after := state(t, d.worker); after != before {
		t.Errorf("the streams were\n%s\nand are\n%s", before, after)
	}
}

// TestUsersTakeTurns has bob submit many urgent jobs before alice submits one of low priority.
func TestUsersTakeTurns(t *testing.T) {
	d := startDocumented(t)
	d.stop()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go d.worker.ServeUsers(ctx)
	alice, bob := d.alice(t), d.bob(t)
	var last string
	for i := range 60 {
		last = submit(t, bob, fmt.Sprint("bomb ", i), How{Priority: "high"}).ID
	}
	own := submit(t, alice, "hers", How{Priority: "low"}).ID
	work(t, d.worker, d.doer, 1)
	hers := wait(t, alice, own)[own]
	before := 0
	all := wait(t, bob, last)
	if err := bob.Results(t.Context(), func(r *Result) error {
		if r.Begun.Before(hers.Begun) {
			before++
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if before > 2 || !all[last].Begun.After(hers.Begun) {
		t.Errorf("%d jobs of another were begun before hers", before)
	}
}

// TestWhoFillsTheQueueFillsHisOwn has bob submit until there is no room for him.
func TestWhoFillsTheQueueFillsHisOwn(t *testing.T) {
	d := startDocumented(t)
	alice, bob := d.alice(t), d.bob(t)
	task := jobOf(t, "").Task
	var err error
	for i := 0; i < 60 && err == nil; i++ {
		_, err = bob.Submit(t.Context(), task, strings.NewReader(fmt.Sprint("!wait ", i)+strings.Repeat("x", 2<<20)), How{})
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("%v, expected %v", err, ErrFull)
	}
	if _, err := bob.PutObject(t.Context(), []byte("01"), "executable", bytes.NewReader(make([]byte, 40<<20))); !errors.Is(err, ErrFull) {
		t.Errorf("a file of code: %v, expected %v", err, ErrFull)
	}
	if _, err := alice.Submit(t.Context(), task, strings.NewReader("hers"+strings.Repeat("x", 2<<20)), How{}); err != nil {
		t.Errorf("another is refused: %v", err)
	}
	d.stop()
}

// TestADeskRefusesWhatIsNotSo has questions that no client asks.
func TestADeskRefusesWhatIsNotSo(t *testing.T) {
	d := startDocumented(t)
	bob := d.bob(t)
	sum := strings.Repeat("ab", 32)
	j := jobOf(t, "text")
	good := question{About: askSubmit, Kind: "stack", Options: j.Options, SHA256: j.Input, Size: j.Size, Priority: "high"}
	for name, c := range map[string]struct {
		change func(*question)
		data   string
		words  string
	}{
		"another's bytes":       {func(*question) {}, "test", "SHA-256"},
		"fewer bytes":           {func(*question) {}, "tex", "4 bytes, with 3"},
		"no priority":           {func(q *question) { q.Priority = "urgent.*" }, "text", "a priority"},
		"many parts":            {func(q *question) { q.Kind, q.Parts = "profile", 1<<30 }, "text", "parts"},
		"options that are none": {func(q *question) { q.Options = []byte(`"` + strings.Repeat("x", maxOptions) + `"`) }, "text", "options of"},
		"a kind without end":    {func(q *question) { q.Kind = strings.Repeat("x", 1000) }, "text", "of the kind"},
		"nothing":               {func(q *question) { *q = question{} }, "", "does not know"},
		"an ID with wildcards":  {func(q *question) { *q = question{About: askResult, ID: "*"} }, "", "no job's ID"},
		"a cancel of all":       {func(q *question) { *q = question{About: askCancel, ID: ">"} }, "", "no job's ID"},
		"a cancel of none":      {func(q *question) { *q = question{About: askCancel} }, "", "no job's ID"},
		"a drop of all":         {func(q *question) { *q = question{About: askDrop, Name: ">"} }, "", "expected a build ID"},
		"an input with a name":  {func(q *question) { *q = question{About: askPut, Store: deskInputs, Name: "x", SHA256: sum} }, "", "called"},
		"a file of any name": {func(q *question) {
			*q = question{About: askPut, Store: deskObjects, Name: "../x.executable", SHA256: sum}
		}, "", "called"},
		"a file of no size": {func(q *question) { *q = question{About: askPut, Store: deskInputs, Name: sum, SHA256: sum, Size: -1} }, "", "called"},
		"no transfer":       {func(q *question) { *q = question{About: askMore, Transfer: "x", Place: 1} }, "", "given up"},
		"a report of a job": {func(q *question) { *q = question{About: askReport, ID: j.id()} }, "", "no result"},
	} {
		about := good
		c.change(&about)
		if _, _, err := bob.desk.ask(t.Context(), "", &about, []byte(c.data)); err == nil || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v, expected %q", name, err, c.words)
		}
	}
	for name, c := range map[string]struct{ announced, sent string }{"other bytes": {"right", "wrong"}, "more bytes": {"right", "right and more"}} {
		wrong := jobOf(t, c.announced)
		if _, err := bob.desk.put(t.Context(), deskInputs, wrong.Input, wrong.Input, wrong.Size, strings.NewReader(c.sent)); !errors.Is(err, errWrongSum) {
			t.Errorf("%s: %v, expected %v", name, err, errWrongSum)
		}
	}
	if s := submit(t, bob, "right", How{}); s.Known {
		t.Errorf("%+v", s)
	}
	wait(t, bob, jobOf(t, "right").id())
}

// TestTransfersAreBounded has transfers begun that do not go on.
func TestTransfersAreBounded(t *testing.T) {
	d := startDocumented(t)
	alice, bob := d.alice(t), d.bob(t)
	begin := func(i int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		sum := fmt.Sprintf("%064x", i)
		_, _, err := bob.desk.ask(ctx, "", &question{About: askPut, Store: deskInputs, Name: sum, SHA256: sum, Size: 1 << 40}, nil)
		return err
	}
	for i := range maxTransfers {
		if err := begin(i); err != nil {
			t.Fatal(err)
		}
	}
	if err := begin(99); !errors.Is(err, errBusyDesk) {
		t.Errorf("%v, expected %v", err, errBusyDesk)
	}
	large := strings.Repeat("large input ", 1<<17)
	if s := submit(t, alice, large, How{}); s.Known {
		t.Errorf("%+v", s)
	}
}

// TestRefusalsHaveTheirWord has users without permissions told so, and not left to wait: one who
// may do nothing, one with the permissions of an older version, and one who may read alone.
func TestRefusalsHaveTheirWord(t *testing.T) {
	dir := t.TempDir()
	e := withSettings(t, dir, `listen: "127.0.0.1:-1"
accounts { UNWINDD: { jetstream { max_file: 1G }, users: [
  { user: worker, password: p }
  { user: nobody, password: p, permissions: { publish: { deny: [">"] }, subscribe: { deny: [">"] } } }
  { user: older, password: p, permissions: { publish: { allow: ["unwindd.job.v1.*.*", "$JS.API.STREAM.INFO.*", "$JS.API.DIRECT.GET.>"] }, subscribe: { allow: ["_INBOX.>"] } } }
  { user: reader, password: p, permissions: { publish: { allow: ["$JS.API.STREAM.INFO.*", "$JS.API.DIRECT.GET.>"] }, subscribe: { allow: ["_INBOX_reader.>", "unwindd.done.v1.*"] } } }
] } }
jetstream { store_dir: "`+dir+`/store" }
`)
	as := func(user string) Options { return Options{URL: "nats://" + user + ":p@" + e.Address()} }
	worker := mustConnect(t, as("worker"))
	work(t, worker, newDoer(), 1)
	s := submit(t, worker, "text", How{})
	wait(t, worker, s.ID)
	for _, user := range []string{"nobody", "older"} {
		began := time.Now()
		if _, err := connectAs(t, as(user)); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "the queue refuses this user") {
			t.Errorf("%s: %v, expected %v", user, err, ErrRefused)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("%s: after %v", user, took)
		}
	}
	reader := mustConnect(t, as("reader"))
	if _, err := reader.Result(t.Context(), s.ID); err != nil {
		t.Errorf("a reader reads: %v", err)
	}
	if _, err := worker.PutObject(t.Context(), []byte("01"), "executable", strings.NewReader("y")); err != nil {
		t.Fatal(err)
	}
	task := jobOf(t, "").Task
	for what, do := range map[string]func() error{
		"submit": func() error { _, err := reader.Submit(t.Context(), task, strings.NewReader("more"), How{}); return err },
		"submit again": func() error {
			_, err := reader.Submit(t.Context(), jobOf(t, "text").Task, strings.NewReader("text"), How{Again: true})
			return err
		},
		"put an object": func() error {
			_, err := reader.PutObject(t.Context(), []byte("01"), "executable", strings.NewReader("x"))
			return err
		},
		"drop an object": func() error { return reader.DropObject(t.Context(), []byte("01"), "executable") },
		"cancel":         func() error { _, err := reader.Cancel(t.Context(), strings.Repeat("ab", 16)); return err },
		"list":           func() error { return reader.Results(t.Context(), func(*Result) error { return nil }) },
		"see figures":    func() error { _, err := reader.Figures(t.Context()); return err },
		"work":           func() error { _, err := NewWorker(t.Context(), reader, newDoer(), WorkOptions{Jobs: 1}); return err },
	} {
		began := time.Now()
		if err := do(); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v, expected %v", what, err, ErrRefused)
		}
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("%s: after %v", what, took)
		}
	}
}

// TestWordsOfUsers has names of users, and the words of subjects that they are.
func TestWordsOfUsers(t *testing.T) {
	for name, want := range map[string]string{"alice": "alice", "ci-bot_2": "ci-bot_2", "ann@example.org": "ann_40example_2eorg", "a.>": "a_2e_3e", "": "", "ä": "_c3_a4"} {
		if got := word(name); got != want || want != "" && !isWord(got) {
			t.Errorf("%q: %q, expected %q", name, got, want)
		}
	}
	for _, text := range []string{"", "a.b", "*", ">", "a b", strings.Repeat("a", maxWord+1)} {
		if isWord(text) {
			t.Errorf("%q is a word", text)
		}
	}
	for url, want := range map[string]string{"nats://alice:secret@h:4222": "alice", "nats://token@h:4222": "", "nats://h": "", "tls://bob:x@h,tls://bob:x@g": "bob", ":": ""} {
		o := Options{URL: url}
		if got := o.userName(); got != want {
			t.Errorf("%s: %q, expected %q", url, got, want)
		}
	}
}
