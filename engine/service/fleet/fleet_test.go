// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// embedded starts a server for a test, in a folder.
func embedded(t testing.TB, dir string) Server {
	t.Helper()
	e, err := start(ServerOptions{Dir: dir, Listen: "localhost:0", Log: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// connect reaches the server of a folder, as another process does.
func connect(t testing.TB, dir string) *Queue {
	t.Helper()
	q, err := Connect(t.Context(), Options{URL: ReadAddress(dir), Name: t.Name(), Keep: Keep{Bytes: 1 << 30}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	return q
}

// A doer gives back what it gets, in capitals; what begins with "!" says what becomes of it.
type doer struct {
	mu    sync.Mutex
	begun map[string]int
	gate  chan struct{} // "!wait" waits for it
}

// times is how often a job with a text was begun.
func (d *doer) times(text string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.begun[text]
}

func newDoer() *doer { return &doer{begun: map[string]int{}, gate: make(chan struct{})} }

func (d *doer) Begin(ctx context.Context, task *Task, receive func(io.Writer) error) (Report, error) {
	var in bytes.Buffer
	if err := receive(&in); err != nil {
		return nil, err
	}
	text := in.String()
	d.mu.Lock()
	d.begun[text]++
	n := d.begun[text]
	d.mu.Unlock()
	switch word, _, _ := strings.Cut(text, " "); word {
	case "!fail":
		return nil, &Fault{Problem: Problem{"unreadable", "it is no target"}}
	case "!die":
		return nil, &Fault{Problem: Problem{"died", fmt.Sprintf("death %d", n)}, Again: true}
	case "!twice":
		if n == 1 {
			return nil, &Fault{Problem: Problem{"died", "death"}, Again: true}
		}
	case "!wait":
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-d.gate:
		}
	case "!large":
		return &said{Reader: strings.NewReader(strings.Repeat("0123456789abcdef", 1<<16))}, nil
	}
	return &said{Reader: strings.NewReader(strings.ToUpper(text))}, nil
}

type said struct{ io.Reader }

func (*said) Close() error { return nil }
func (*said) About() About { return About{Type: "text/plain", Name: "target"} }

// quick is a Pace of tests.
var quick = Pace{Silence: 800 * time.Millisecond, Pause: 20 * time.Millisecond}

// work has a worker work until the test ends, or stop is called.
func work(t testing.TB, q *Queue, d Doer, jobs int) (w *Worker, stop func()) {
	t.Helper()
	w, err := NewWorker(t.Context(), q, d, WorkOptions{Name: "w", Jobs: jobs, Pace: quick})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, ctx) }()
	stop = sync.OnceFunc(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return w, stop
}

// submit asks for a job with a text.
func submit(t testing.TB, q *Queue, text string, how How) *Submitted {
	t.Helper()
	task, err := NewTask("stack", &pb.StackOptions{Format: "json", Locals: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := q.Submit(t.Context(), task, strings.NewReader(text), how)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wait gives the results of jobs, by their IDs.
func wait(t testing.TB, q *Queue, ids ...string) map[string]*Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	all := map[string]*Result{}
	err := q.Wait(ctx, ids, func(r *Result) error {
		if all[r.ID] != nil {
			t.Errorf("%s was found twice", r.ID)
		}
		all[r.ID] = r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// report is the report of a result.
func report(t testing.TB, q *Queue, r *Result) string {
	t.Helper()
	var b strings.Builder
	if err := q.Report(t.Context(), r, &b); err != nil {
		t.Fatalf("%s, %+v", err, r.Problem)
	}
	return b.String()
}

func TestJobsHaveTheirResults(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	d := newDoer()
	large := strings.Repeat("large input ", 1<<17)
	texts := []string{"", "small", large, "!large", "!fail", "!die", "!twice"}
	var ids []string
	for _, text := range texts {
		s := submit(t, q, text, How{})
		if s.Known || s.HasResult {
			t.Errorf("%.20q: %+v, expected a new job", text, s)
		}
		ids = append(ids, s.ID)
	}
	if s := submit(t, q, "small", How{}); !s.Known || s.HasResult || s.ID != ids[1] {
		t.Errorf("a job that waits: %+v", s)
	}
	work(t, connect(t, dir), d, 2)
	results := wait(t, q, ids...)
	for i, want := range []struct {
		state   State
		report  string
		problem *Problem
		tries   int
		reasons []string
	}{
		{Done, "", nil, 1, nil},
		{Done, "SMALL", nil, 1, nil},
		{Done, strings.ToUpper(large), nil, 1, nil},
		{Done, strings.Repeat("0123456789abcdef", 1<<16), nil, 1, nil},
		{Failed, "", &Problem{"unreadable", "it is no target"}, 1, nil},
		{Parked, "", &Problem{"died", "death 3"}, 3, []string{"death 1", "death 2", "death 3"}},
		{Done, "!TWICE", nil, 2, []string{"death"}},
	} {
		r := results[ids[i]]
		if r.State != want.state || r.Tries != want.tries || !cmp.Equal(r.Problem, want.problem) || !cmp.Equal(r.Reasons, want.reasons) {
			t.Errorf("%.20q: %+v, expected %+v", texts[i], r, want)
		}
		if r.State != Done {
			continue
		}
		if got := report(t, q, r); got != want.report {
			t.Errorf("%.20q: a report of %d bytes, expected %d others", texts[i], len(got), len(want.report))
		}
	}
	if s := submit(t, q, "small", How{}); !s.Known || !s.HasResult {
		t.Errorf("a job that was done: %+v", s)
	}
	if n := d.times("small"); n != 1 {
		t.Errorf("one job was done %d times", n)
	}
	s := submit(t, q, "small", How{Again: true})
	wait(t, q, s.ID)
	if n := d.times("small"); s.Known || n != 2 {
		t.Errorf("a job that is wanted again: %+v, done %d times", s, n)
	}
	if n := pending(t, q); n != 0 {
		t.Errorf("%d jobs are left", n)
	}
}

// TestAJobIsWantedAgainAtOnce has a job wanted again before the worker that has done it says so.
func TestAJobIsWantedAgainAtOnce(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	d := newDoer()
	w, err := NewWorker(t.Context(), q, d, WorkOptions{Name: "slow"})
	if err != nil {
		t.Fatal(err)
	}
	taker, err := newTaker(w)
	if err != nil {
		t.Fatal(err)
	}
	id := submit(t, q, "small", How{}).ID
	first, err := taker.take(t.Context(), q, "normal")
	if err != nil || first == nil {
		t.Fatalf("%v, %v", first, err)
	}
	if _, err := q.settle(t.Context(), &Result{ID: id, State: Failed, Problem: &Problem{"bad-input", "a wrong file"}, Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if s := submit(t, q, "small", How{Again: true}); s.Known || s.ID != id {
		t.Errorf("%+v", s)
	}
	if err := first.AckSync(); err != nil {
		t.Fatal(err)
	}
	work(t, q, d, 1)
	if r := wait(t, q, id)[id]; r.State != Done || d.times("small") != 1 {
		t.Errorf("%+v, done %d times", r, d.times("small"))
	}
}

// pending is how many jobs the stream has.
func pending(t *testing.T, q *Queue) uint64 {
	t.Helper()
	var n uint64
	for range 100 { // acknowledgements are not waited for
		n = 0
		for _, jobs := range q.jobs {
			i, err := jobs.Info(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			n += i.State.Msgs
		}
		if n == 0 {
			return 0
		}
		time.Sleep(20 * time.Millisecond)
	}
	return n
}

func TestPrioritiesAreKept(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	var ids []string
	for i, p := range []string{"low", "normal", "high", "low", "", "high"} {
		ids = append(ids, submit(t, q, fmt.Sprint(i), How{Priority: p}).ID)
	}
	d := newDoer()
	work(t, q, d, 1)
	results := wait(t, q, ids...)
	for _, order := range [][2]int{{2, 1}, {5, 1}, {2, 0}, {1, 0}, {4, 3}, {2, 5}, {0, 3}} {
		if first, second := results[ids[order[0]]], results[ids[order[1]]]; first.Begun.After(second.Begun) {
			t.Errorf("job %d was begun after job %d", order[0], order[1])
		}
	}
	task, _ := NewTask("stack", &pb.StackOptions{})
	if _, err := q.Submit(t.Context(), task, strings.NewReader("x"), How{Priority: "none"}); err == nil {
		t.Error("there is no such priority")
	}
}

func TestJobsAreCanceled(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	d := newDoer()
	w, _ := work(t, q, d, 1)
	running := submit(t, q, "!wait", How{})
	until(t, "the job is begun", func() bool { return w.Busy() == 1 })
	waits := submit(t, q, "waits", How{})
	for _, id := range []string{waits.ID, running.ID} {
		if ok, err := q.Cancel(t.Context(), id); err != nil || !ok {
			t.Fatalf("%t, %v", ok, err)
		}
	}
	if ok, err := q.Cancel(t.Context(), running.ID); err != nil || ok {
		t.Errorf("canceled twice: %t, %v", ok, err)
	}
	until(t, "the job ends", func() bool { return w.Busy() == 0 })
	for id, r := range wait(t, q, waits.ID, running.ID) {
		if r.State != Canceled {
			t.Errorf("%s: %+v", id, r)
		}
	}
	if n := pending(t, q); n != 0 || d.times("waits") != 0 {
		t.Errorf("%d jobs are left, the canceled one was begun %d times", n, d.times("waits"))
	}
	late := submit(t, q, "late", How{Deadline: time.Now().Add(-time.Second)})
	if r := wait(t, q, late.ID)[late.ID]; r.State != Expired {
		t.Errorf("after its deadline: %+v", r)
	}
}

// until waits for something.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in a minute: %s", what)
		}
	}
}

func TestAJobOfADeadWorkerIsAnothers(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	first := connect(t, dir)
	d := newDoer()
	w, _ := work(t, first, d, 1)
	q := connect(t, dir)
	s := submit(t, q, "!wait long", How{})
	until(t, "the job is begun", func() bool { return w.Busy() == 1 })
	time.Sleep(3 * quick.Silence) // it is held
	if n := d.times("!wait long"); n != 1 {
		t.Fatalf("a job that is held was begun %d times", n)
	}
	first.Close() // nothing of this worker arrives any more
	work(t, connect(t, dir), d, 1)
	until(t, "the job is begun again", func() bool { return d.times("!wait long") == 2 })
	close(d.gate)
	if r := wait(t, q, s.ID)[s.ID]; r.State != Done || report(t, q, r) != "!WAIT LONG" {
		t.Errorf("%+v", r)
	}
}

func TestAWorkerThatEndsGivesItsJobsBack(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	d := newDoer()
	w, stop := work(t, connect(t, dir), d, 1)
	s := submit(t, q, "!wait", How{})
	until(t, "the job is begun", func() bool { return w.Busy() == 1 })
	stop()
	close(d.gate)
	began := time.Now()
	work(t, connect(t, dir), d, 1)
	if r := wait(t, q, s.ID)[s.ID]; r.State != Done {
		t.Errorf("%+v", r)
	}
	if took := time.Since(began); took > 10*quick.Silence {
		t.Logf("it took %v", took)
	}
}

// Whatever dies, a job has one result, and it is the right one.
func TestWhateverDiesAJobHasOneResult(t *testing.T) {
	dir := t.TempDir()
	e := embedded(t, dir)
	q := connect(t, dir)
	d := newDoer()
	const jobs = 300
	var ids []string
	for i := range jobs {
		ids = append(ids, submit(t, q, fmt.Sprint("job ", i), How{}).ID)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	var deaths atomic.Int64
	for range 3 { // workers, whose connections break
		all.Go(func() {
			for ctx.Err() == nil {
				c, err := Connect(ctx, Options{URL: ReadAddress(dir), Patience: time.Second})
				if err != nil {
					continue
				}
				if w, err := NewWorker(ctx, c, d, WorkOptions{Jobs: 2, Pace: quick}); err == nil {
					life, end := context.WithTimeout(ctx, 150*time.Millisecond)
					go func() { <-life.Done(); c.Close() }()
					_ = w.Run(life, life)
					end()
				}
				c.Close()
				deaths.Add(1)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	address := e.Address()
	e.Close()
	e2, err := start(ServerOptions{Dir: dir, Listen: address})
	if err != nil {
		t.Fatal(err)
	}
	defer e2.Close()
	results := wait(t, q, ids...)
	cancel()
	all.Wait()
	for i, id := range ids {
		if r := results[id]; r.State != Done || report(t, q, r) != fmt.Sprint("JOB ", i) {
			t.Errorf("job %d: %+v", i, r)
		}
	}
	info, err := q.results.Info(t.Context())
	if err != nil || info.State.Msgs != jobs {
		t.Errorf("%d results of %d jobs, %v", info.State.Msgs, jobs, err)
	}
	t.Logf("%d deaths", deaths.Load())
}

// A result whose acknowledgement was lost is stored once more: that must not cost its report.
func TestAResultIsStoredTwice(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	w, err := NewWorker(t.Context(), q, newDoer(), WorkOptions{Name: "w", Jobs: 1, Pace: quick})
	if err != nil {
		t.Fatal(err)
	}
	one := &try{worker: w, queue: q, id: strings.Repeat("ab", 16)}
	store := func() *Result {
		r := &Result{ID: one.id, State: Done, Worker: "w", Begun: time.Now().UTC(), Ended: time.Now().UTC()}
		if err := one.store(t.Context(), r, &said{Reader: strings.NewReader(strings.Repeat("0123456789abcdef", 1<<16))}); err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, second := store(), store()
	for i, c := range []struct {
		r       *Result
		isFirst bool
	}{{first, true}, {first, true}, {second, false}, {first, true}} {
		if isFirst, err := one.settleOnce(t.Context(), c.r); err != nil || isFirst != c.isFirst {
			t.Errorf("%d: %t, %v, expected %t", i, isFirst, err, c.isFirst)
		}
	}
	kept, err := q.Result(t.Context(), one.id)
	if err != nil || len(report(t, q, kept)) != 16<<16 {
		t.Errorf("%+v, %v", kept, err)
	}
	if _, err := q.reports.GetInfo(t.Context(), second.Object); !errors.Is(err, jetstream.ErrObjectNotFound) {
		t.Errorf("the report of the other one: %v", err)
	}
}

// A strict doer has a fault for every error, as a server has a problem.
type strict struct{ *doer }

func (d strict) Begin(ctx context.Context, task *Task, receive func(io.Writer) error) (Report, error) {
	r, err := d.doer.Begin(ctx, task, receive)
	if err != nil {
		return nil, &Fault{Problem: Problem{"timed-out", err.Error()}}
	}
	return r, nil
}

// An input that does not come is not the job's fault: the job is tried again.
func TestAnInputThatDoesNotCome(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	w, err := NewWorker(t.Context(), q, strict{newDoer()}, WorkOptions{Name: "w", Jobs: 1, Pace: quick})
	if err != nil {
		t.Fatal(err)
	}
	one := &try{worker: w, queue: q, job: job{Input: strings.Repeat("ab", 32), Size: maxInline + 1}}
	var f *Fault
	if err := one.report(t.Context(), &Result{}); !errors.As(err, &f) || f.Name != "not-found" {
		t.Errorf("an input that is not kept: %v", err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := one.report(late, &Result{}); err == nil || errors.As(err, &f) {
		t.Errorf("%v, expected one that is no fault", err)
	}
}

func TestAFullQueueSaysSo(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q, err := Connect(t.Context(), Options{URL: ReadAddress(dir), Keep: Keep{Bytes: 32 << 10}})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	task, _ := NewTask("stack", &pb.StackOptions{})
	for i := range 100 {
		if _, err = q.Submit(t.Context(), task, strings.NewReader(fmt.Sprint(i)), How{}); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("%v, expected %v", err, ErrFull)
	}
}

func TestConnectRefuses(t *testing.T) {
	_, err := Connect(t.Context(), Options{URL: "nats://secret@127.0.0.1:1", Patience: time.Second})
	if !errors.Is(err, ErrNoQueue) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	for _, listen := range []string{"0.0.0.0:0", "localhost", "localhost:x", "192.0.2.1:4222"} {
		if _, err := start(ServerOptions{Dir: t.TempDir(), Listen: listen}); err == nil {
			t.Errorf("a server listens at %s", listen)
		}
	}
}

// TestHeadersMakeNoJobAnAnswer has a job with the headers that a server's answers have.
func TestHeadersMakeNoJobAnAnswer(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	task, err := NewTask("stack", &pb.StackOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j := &job{Version: version, Task: task, Submitted: time.Now()}
	if j.Input, j.Size, err = digest(strings.NewReader("")); err != nil {
		t.Fatal(err)
	}
	b, err := pack(j, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := &nats.Msg{Subject: jobsPrefix + "normal." + j.id(), Data: b, Header: nats.Header{statusHeader: {statusNoJob}}}
	if _, err := q.js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	work(t, q, newDoer(), 1)
	if r := wait(t, q, j.id())[j.id()]; r.State != Done || r.Tries != 1 {
		t.Errorf("%+v", r)
	}
}

// TestOrphansAreRemoved has jobs that are acknowledged and there, as after a server's death: one
// with a result, and one whose result somebody has removed.
func TestOrphansAreRemoved(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	done, again, waits := submit(t, q, "done", How{}), submit(t, q, "again", How{}), submit(t, q, "waits", How{})
	if _, err := q.settle(t.Context(), &Result{ID: done.ID, State: Failed, Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if err := q.removeUpTo(t.Context(), "normal", q.jobs["normal"], 1, 2); err != nil {
		t.Fatal(err)
	}
	var left []string
	for seq := uint64(1); seq <= 5; seq++ {
		if m, err := q.jobs["normal"].GetMsg(t.Context(), seq); err == nil {
			left = append(left, fmt.Sprint(seq, " ", strings.TrimPrefix(m.Subject, jobsPrefix+"normal.")))
		}
	}
	if want := []string{"3 " + waits.ID, "4 " + again.ID}; !cmp.Equal(left, want) {
		t.Errorf("left %q, expected %q", left, want)
	}
	work(t, q, newDoer(), 1)
	wait(t, q, again.ID, waits.ID)
}

// A large input comes by one request. What is no object is none.
func TestInputsAreReadAtOnce(t *testing.T) {
	dir := t.TempDir()
	embedded(t, dir)
	q := connect(t, dir)
	text := strings.Repeat("0123456789abcdef", maxInline/8)
	sum, _, err := digest(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.keep(t.Context(), q.inputs, sum, sum, strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	list := q.chunks(t.Context(), inputsBucket, q.inputs, sum)
	if got := string(slices.Concat(list...)); got != text || len(list) < 2 || sumOfAll(list) != sum {
		t.Errorf("%d bytes in %d chunks, expected the %d bytes of the input in several", len(got), len(list), len(text))
	}
	if list := q.chunks(t.Context(), inputsBucket, q.inputs, "another"); list != nil {
		t.Errorf("%d chunks of an object that is not there", len(list))
	}
	for _, bad := range []string{sum, strings.Repeat("ab", 32)} {
		var b strings.Builder
		err := q.input(t.Context(), &job{Input: bad, Size: int64(len(text))}, &b)
		if isThere := bad == sum; isThere != (err == nil) || b.String() != map[bool]string{true: text}[isThere] {
			t.Errorf("the input %s: %d bytes, %v", bad, b.Len(), err)
		}
	}
}
