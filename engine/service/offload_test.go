// SPDX-License-Identifier: Apache-2.0

//go:build linux

package service

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/fleet/queueserver"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
)

// A testFleet is a queue, and the workers that it has.
type testFleet struct {
	*fleet.Queue
	dir    string
	listen string
	server fleet.Server
}

// startFleet starts a queue without workers.
func startFleet(t *testing.T) *testFleet {
	t.Helper()
	f := &testFleet{dir: t.TempDir(), listen: "localhost:0"}
	f.serve(t)
	var err error
	if f.Queue, err = fleet.Connect(t.Context(), *f.options()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Queue.Close)
	return f
}

// serve starts the queue's server, at the address that it had before.
func (f *testFleet) serve(t *testing.T) {
	t.Helper()
	var err error
	if f.server, err = queueserver.Start(fleet.ServerOptions{Dir: f.dir, Listen: f.listen}); err != nil {
		t.Fatal(err)
	}
	f.listen = f.server.Address()
	t.Cleanup(f.server.Close)
}

// options are of a connection to the queue.
func (f *testFleet) options() *fleet.Options {
	return &fleet.Options{URL: fleet.ReadAddress(f.dir), Name: "test", Keep: fleet.Keep{Bytes: 1 << 30}}
}

// work starts a worker of the fleet, which is a server with processes of its own.
func (f *testFleet) work(t *testing.T, o Options) *testServer {
	t.Helper()
	var err error
	if o.Remote, err = fleet.OpenObjects(f.Queue, t.TempDir(), 1<<30, nil); err != nil {
		t.Fatal(err)
	}
	s := start(t, o)
	w, err := fleet.NewWorker(t.Context(), f.Queue, s.Doer(), fleet.WorkOptions{
		Name: "w", Jobs: o.Workers, Pace: fleetPace,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx, ctx) }()
	t.Cleanup(func() {
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// results counts the results of the fleet, by their states.
func (f *testFleet) results(t *testing.T) map[fleet.State]int {
	t.Helper()
	counts := map[fleet.State]int{}
	if err := f.Results(t.Context(), func(r *fleet.Result) error {
		counts[r.State]++
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return counts
}

// until waits until something holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: it does not come", what)
		}
	}
}

// startBusy starts a server with a fleet that has one place, which is taken, and in which nobody
// waits. free gives the place back.
func startBusy(t *testing.T, f *testFleet, set func(*Options)) (s *testServer, free func()) {
	t.Helper()
	o := testOptions(t)
	o.Workers, o.Waiting, o.Queue = 1, 0, f.options()
	if set != nil {
		set(&o)
	}
	s = start(t, o)
	until(t, "the queue", s.offload.connection.ready)
	return s, s.fill(t)
}

// fill takes the places of all workers, the spare ones too. free gives them back.
func (s *testServer) fill(t *testing.T) (free func()) {
	t.Helper()
	var callers []string
	for i := range s.Workers + spareWorkers {
		callers = append(callers, fmt.Sprintf("(caller %d)", i))
	}
	for _, c := range callers {
		if err := s.queue.enter(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	free = sync.OnceFunc(func() {
		for _, c := range callers {
			s.queue.leave(c)
		}
	})
	t.Cleanup(free)
	return free
}

// handed is how often a request was handed over, and ended in a way.
func (s *testServer) handed(t *testing.T, outcome string) int {
	t.Helper()
	_, text := s.ask(t, http.MethodGet, "/metrics", nil)
	n := 0
	if found := regexp.MustCompile(`(?m)^unwindd_handed_over_total\{outcome="` + outcome + `"\} (\d+)$`).FindStringSubmatch(text); found != nil {
		_, _ = fmt.Sscan(found[1], &n) // digits
	}
	return n
}

// TestAFleetDoesWhatIsOverTheLimits asks a server without a place, whose answers are those of the
// same server with one: bodies, content types, trailers, what is kept, and what gRPC says of a
// report.
func TestAFleetDoesWhatIsOverTheLimits(t *testing.T) {
	f := startFleet(t)
	f.work(t, testOptions(t))
	s, free := startBusy(t, f, nil)
	requests := []struct{ path, file string }{
		{"/v1/stack?format=text&name=core.7", crashCore},
		{"/v1/stack?crashed&locals&max-frames=0", crashCore},
		{"/v1/stack?format=html", mixed},
		{"/v1/stack?format=text&lanes&lane=20&thread=w0", mixed},
		{"/v1/stack", ""},
		{"/v1/profile?format=text", wordsData},
		{"/v1/profile?format=pprof&max-stack=3", wordsData},
		{"/v1/snapshot", crashCore},
		{"/v1/snapshot?files", crashCore},
	}
	free()
	s.putCrash(t)
	large := bytes.Repeat([]byte("no target "), 100_000)
	type answer struct {
		Text, Type, Status, Detail string
		Code                       int
	}
	ids := regexp.MustCompile(`"request":"[^"]*"`)
	ask := func(path, name string) answer {
		body := large
		if name != "" {
			body = file(t, name)
		}
		a, text := s.ask(t, http.MethodPost, path, bytes.NewReader(body))
		return answer{ids.ReplaceAllString(text, ""), a.Header.Get("Content-Type"), a.Trailer.Get(trailerStatus), a.Trailer.Get(trailerDetail), a.StatusCode}
	}
	calls := pb.NewUnwinddClient(s.dial(t))
	call := func() (string, *pb.ReportEnd) {
		text, end, err := stackByGRPC(t, calls, &pb.StackOptions{Format: "text"}, file(t, mixed))
		if err != nil {
			t.Fatal(err)
		}
		return text, end
	}
	want := map[string]answer{}
	for _, r := range requests {
		want[r.path] = ask(r.path, r.file)
	}
	wantText, wantEnd := call()
	s.fill(t)
	for range 2 { // the second time there is a result
		for _, r := range requests {
			if diff := cmp.Diff(want[r.path], ask(r.path, r.file)); diff != "" {
				t.Errorf("%s: the server (-), and the fleet (+), say\n%s", r.path, diff)
			}
		}
	}
	gotText, gotEnd := call()
	if diff := cmp.Diff(wantText, gotText) + cmp.Diff(wantEnd, gotEnd, protocmp.Transform()); diff != "" || gotEnd.Frames == 0 {
		t.Errorf("by gRPC the server (-), and the fleet (+), say\n%s", diff)
	}
	kept := s.keepMixed(t)
	if _, text := s.ask(t, http.MethodGet, kept, nil); !strings.Contains(text, "wait_for_all") {
		t.Error(text)
	}
	if n := s.handed(t, "done"); n != 2*(len(requests)-1)+2 {
		t.Errorf("%d requests were handed over", n)
	}
	if n := f.results(t); n[fleet.Done] != len(requests)+1 || n[fleet.Failed] != 1 {
		t.Errorf("the fleet has results %v", n)
	}
	until(t, "all bytes are given back", func() bool { return s.budget.inUse() == 0 })
}

// TestWhatAFleetDoesNotTake has requests for which there is no place, and that are none of a
// fleet.
func TestWhatAFleetDoesNotTake(t *testing.T) {
	s, _ := startBusy(t, startFleet(t), nil)
	answer, text := s.ask(t, http.MethodPost, "/v1/eval?arch=x86_64&expr=lit1", nil)
	wantProblem(t, answer, text, busy, "too many requests wait")
	answer, text = s.ask(t, http.MethodPost, "/v1/symbolize?build-id="+crashID, strings.NewReader(`{"addresses":[1]}`))
	wantProblem(t, answer, text, busy, "too many requests wait")
}

// TestManyCallersOfAFleet has 32 callers at once at a server with one worker, and a queue of none
// and of one: nobody is told to come again, and each gets what a server without others says.
func TestManyCallersOfAFleet(t *testing.T) {
	// The object store of nats.go ends a publisher at the end of each Put. Where its goroutine
	// has not run by then, it waits for ever on the channel that was taken away.
	ofObjectStore := goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), ofObjectStore)
	t.Run("callers", func(t *testing.T) {
		f := startFleet(t)
		f.work(t, testOptions(t))
		for _, waiting := range []int{0, 1} {
			s, free := startBusy(t, f, func(o *Options) { o.Waiting = waiting })
			free()
			s.putCrash(t)
			core := file(t, crashCore)
			want := s.post(t, "/v1/stack?format=text&name=CORE", core)
			var callers sync.WaitGroup
			for i := range 32 {
				callers.Go(func() {
					name := fmt.Sprintf("core.%d.%d", waiting, i)
					answer, err := s.client.Post(s.url+"/v1/stack?format=text&name="+name, "", bytes.NewReader(core)) //nolint:noctx // it ends
					if err != nil {
						t.Error(err)
						return
					}
					defer answer.Body.Close()
					got, err := io.ReadAll(answer.Body)
					if err != nil || string(got) != strings.ReplaceAll(want, "CORE", name) {
						t.Errorf("%v: %s: %s\nexpected\n%s", err, answer.Status, got, want)
					}
				})
			}
			callers.Wait()
			if n := s.handed(t, "done"); n == 0 || n >= 32 {
				t.Errorf("%d of 32 requests were handed over", n)
			}
		}
	})
}

// TestAQueueThatDoesNotAnswer has a queue that is not there when a server starts, that comes, and
// goes. Without one callers are told to come again.
func TestAQueueThatDoesNotAnswer(t *testing.T) {
	f := startFleet(t)
	f.work(t, testOptions(t))
	body := file(t, mixed)
	o := testOptions(t)
	o.Workers, o.Waiting, o.Queue = 1, 0, &fleet.Options{URL: "nats://127.0.0.1:1"}
	absent := start(t, o)
	absent.fill(t)
	answer, text := absent.ask(t, http.MethodPost, "/v1/stack", bytes.NewReader(body))
	wantProblem(t, answer, text, busy, "too many requests wait")
	if n := absent.handed(t, outcomeNoQueue); n != 1 || absent.gauge(t, "unwindd_handed_over_ready") != 0 {
		t.Errorf("%d requests are counted", n)
	}
	until(t, "the log", func() bool { return strings.Contains(absent.log.String(), "the queue of the fleet does not answer") })

	s, _ := startBusy(t, f, func(o *Options) { o.queueLost = 100 * time.Millisecond })
	want := s.post(t, "/v1/stack", body)
	if s.gauge(t, "unwindd_handed_over_ready") != 1 {
		t.Error("it is not said that the queue answers")
	}
	f.server.Close()
	until(t, "that nothing is handed over", func() bool { return !s.offload.connection.ready() })
	answer, text = s.ask(t, http.MethodPost, "/v1/stack", bytes.NewReader(body))
	wantProblem(t, answer, text, busy, "too many requests wait")
	if answer.Header.Get("Retry-After") == "" {
		t.Error("it is not said when to come again")
	}
	f.serve(t)
	until(t, "the queue", s.offload.connection.ready)
	if got := s.post(t, "/v1/stack", body); got != want {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
	if n := strings.Count(s.log.String(), "the queue of the fleet does not answer"); n != 1 {
		t.Errorf("it is logged %d times that the queue does not answer", n)
	}
}

// TestAQueueThatIsLost has somebody wait for a queue that goes away.
func TestAQueueThatIsLost(t *testing.T) {
	f := startFleet(t) // without workers
	s, _ := startBusy(t, f, func(o *Options) { o.queueLost = 100 * time.Millisecond })
	told := s.asked(t, t.Context(), "/v1/stack")
	until(t, "a job", func() bool { return s.gauge(t, "unwindd_handed_over") == 1 })
	f.server.Close()
	if got := <-told; got != http.StatusTooManyRequests {
		t.Errorf("status %d", got)
	}
}

// asked posts the example in the background. The status comes; 0: no answer.
func (s *testServer) asked(t *testing.T, ctx context.Context, path string) <-chan int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(file(t, mixed)))
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan int, 1)
	go func() {
		answer, err := s.client.Do(r)
		if err != nil {
			told <- 0
			return
		}
		defer answer.Body.Close()
		_, _ = io.Copy(io.Discard, answer.Body) // the status is what counts
		told <- answer.StatusCode
	}()
	return told
}

// TestWhoGoesAwayCancelsHisJob has two callers of one job, who go away one after the other: the
// second one cancels it. Who asks for the same then gets it.
func TestWhoGoesAwayCancelsHisJob(t *testing.T) {
	f := startFleet(t) // without workers
	s, _ := startBusy(t, f, nil)
	var told [2]<-chan int
	var leave [2]context.CancelFunc
	for i := range told {
		var ctx context.Context
		ctx, leave[i] = context.WithCancel(t.Context())
		defer leave[i]()
		told[i] = s.asked(t, ctx, "/v1/stack?format=text")
		until(t, "a caller who waits", func() bool {
			s.offload.mu.Lock()
			defer s.offload.mu.Unlock()
			for _, a := range s.offload.jobs {
				return a.callers == i+1
			}
			return false
		})
	}
	leave[0]()
	<-told[0]
	until(t, "the first caller's end", func() bool { return s.handed(t, outcomeGone) == 1 })
	if n := f.results(t); len(n) != 0 {
		t.Fatalf("results %v while somebody waits", n)
	}
	leave[1]()
	<-told[1]
	until(t, "the cancellation", func() bool { return f.results(t)[fleet.Canceled] == 1 })
	until(t, "the removal of the job", func() bool { // which comes after its result
		n, err := f.Figures(t.Context())
		return err == nil && n.Oldest == 0
	})
	f.work(t, testOptions(t))
	if text := s.post(t, "/v1/stack?format=text", file(t, mixed)); !strings.HasPrefix(text, "snapshot target") {
		t.Error(text)
	}
}

// TestAJobOfOthersIsNotCanceled has a caller go away who waits for what somebody has submitted.
func TestAJobOfOthersIsNotCanceled(t *testing.T) {
	f := startFleet(t) // without workers
	s, _ := startBusy(t, f, nil)
	task, err := fleet.NewTask("snapshot", &pb.SnapshotOptions{Name: "target"})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := f.Submit(t.Context(), task, bytes.NewReader(file(t, mixed)), fleet.How{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	told := s.asked(t, ctx, "/v1/snapshot")
	until(t, "a caller who waits", func() bool {
		s.offload.mu.Lock()
		defer s.offload.mu.Unlock()
		return s.offload.jobs[theirs.ID] != nil
	})
	leave()
	<-told
	until(t, "his end", func() bool { return s.handed(t, outcomeGone) == 1 })
	if n := f.results(t); len(n) != 0 {
		t.Errorf("results %v", n)
	}
	// Somebody who cancels it again and again does not want it.
	told = s.asked(t, t.Context(), "/v1/snapshot")
	got := 0
	until(t, "an answer", func() bool {
		select {
		case got = <-told:
			return true
		default:
			_, err := f.Cancel(t.Context(), theirs.ID)
			return err != nil
		}
	})
	if got != canceled.status {
		t.Errorf("status %d", got)
	}
}

// TestDeadlinesArePassedOn has a caller whose deadline passes while no worker is there.
func TestDeadlinesArePassedOn(t *testing.T) {
	f := startFleet(t)
	s, _ := startBusy(t, f, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	st, err := pb.NewUnwinddClient(s.dial(t)).Snapshot(ctx)
	if err == nil {
		err = st.Send(&pb.SnapshotRequest{Part: &pb.SnapshotRequest_Options{Options: &pb.SnapshotOptions{}}})
	}
	if err == nil {
		err = st.Send(&pb.SnapshotRequest{Part: &pb.SnapshotRequest_Data{Data: []byte("no target")}})
	}
	if err == nil {
		err = st.CloseSend()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := readReport(st); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	until(t, "the end of the job", func() bool { n := f.results(t); return n[fleet.Canceled]+n[fleet.Expired] == 1 })
}

// TestFailuresOfAFleet has jobs that fail for what they need: the problems are those of a server
// with the same limits.
func TestFailuresOfAFleet(t *testing.T) {
	hasty := startFleet(t)
	o := testOptions(t)
	o.Time = 200 * time.Millisecond
	hasty.work(t, o)
	s, _ := startBusy(t, hasty, nil)
	answer, text := s.ask(t, http.MethodPost, "/v1/stack", bytes.NewReader(hungry(t)))
	wantProblem(t, answer, text, timedOut, "it took longer than 200ms")
	f := startFleet(t)
	f.work(t, testOptions(t))
	s, _ = startBusy(t, f, func(o *Options) { o.Answer = 2000 })
	answer, text = s.ask(t, http.MethodPost, "/v1/stack", bytes.NewReader(file(t, mixed)))
	wantProblem(t, answer, text, longAnswer, "the answer has more than 2000 bytes")
	for _, c := range []struct {
		result fleet.Result
		kind   *problemKind
	}{
		{fleet.Result{State: fleet.Parked, Problem: &fleet.Problem{Name: "died", Detail: "x"}}, died},
		{fleet.Result{State: fleet.Failed, Problem: &fleet.Problem{Name: "unreadable", Detail: "x"}}, unreadable},
		{fleet.Result{State: fleet.Expired, Problem: &fleet.Problem{Name: "timed-out", Detail: "x"}}, timedOut},
		{fleet.Result{State: fleet.Canceled}, canceled},
		{fleet.Result{State: fleet.Failed, Problem: &fleet.Problem{Name: "of a newer worker"}}, failed},
		{fleet.Result{State: fleet.Failed}, failed},
	} {
		if p := problemOf(resultProblem(&c.result)); p.name() != c.kind.name {
			t.Errorf("%+v is the problem %s, expected %s", c.result, p.name(), c.kind.name)
		}
	}
}

// TestObjectsAreGivenToTheQueue has a server that knows objects from before, and is put more: what
// it hands over has their names, also where there is a result from before.
func TestObjectsAreGivenToTheQueue(t *testing.T) {
	f := startFleet(t)
	f.work(t, testOptions(t))
	s, free := startBusy(t, f, nil)
	core := file(t, crashCore)
	ask := func() string { return s.post(t, "/v1/stack?format=text&crashed", core) }
	if text := ask(); strings.Contains(text, "read_body") {
		t.Fatal(text)
	}
	free()
	s.putCrash(t)
	free = s.fill(t)
	if text := ask(); !strings.Contains(text, "read_body") {
		t.Errorf("the fleet does not know what was put:\n%s", text)
	}
	free()

	// Another queue has nothing of what was put before.
	other := startFleet(t)
	other.work(t, testOptions(t))
	again, _ := startBusy(t, other, func(o *Options) { o.State = s.State })
	if text := again.post(t, "/v1/stack?format=text&crashed", core); !strings.Contains(text, "read_body") {
		t.Errorf("the fleet does not know what was put before:\n%s", text)
	}
	if n := again.gauge(t, `unwindd_handed_over_objects_total\{result="sent"\}`); n != 2 {
		t.Errorf("%d files were sent, expected code and debug information", n)
	}
}

// TestAFleetHasAsManyAsItMay has a server that may hand over one request, and have one wait.
func TestAFleetHasAsManyAsItMay(t *testing.T) {
	f := startFleet(t) // without workers
	s, _ := startBusy(t, f, func(o *Options) { o.Handed = 1 })
	first := s.asked(t, t.Context(), "/v1/stack")
	until(t, "the first", func() bool { return s.gauge(t, "unwindd_handed_over") == 1 })
	answer, text := s.ask(t, http.MethodPost, "/v1/snapshot", bytes.NewReader(file(t, mixed)))
	wantProblem(t, answer, text, busy, "too many requests wait")
	if n := s.handed(t, outcomeRefused); n != 1 {
		t.Errorf("%d were refused", n)
	}
	s.offload.places.resize(1, 1)
	second := s.asked(t, t.Context(), "/v1/snapshot")
	until(t, "the second", func() bool { return s.gauge(t, "unwindd_handed_over_waiting") == 1 })
	f.work(t, testOptions(t))
	if a, b := <-first, <-second; a != http.StatusOK || b != http.StatusOK {
		t.Errorf("status %d and %d", a, b)
	}
}

// TestAServerThatEndsTellsThoseWhoWait drains a server while the fleet has a request of it.
func TestAServerThatEndsTellsThoseWhoWait(t *testing.T) {
	f := startFleet(t) // without workers
	s, _ := startBusy(t, f, nil)
	told := s.asked(t, t.Context(), "/v1/stack")
	until(t, "a job", func() bool { return s.gauge(t, "unwindd_handed_over") == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Error(err)
	}
	if got := <-told; got != ending.status {
		t.Errorf("status %d", got)
	}
	if n := f.results(t); len(n) != 0 {
		t.Errorf("results %v: who comes again is to find the job", n)
	}
}
