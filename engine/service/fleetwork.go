// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	oteltrace "go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
)

// This file does jobs of a fleet, as if they were requests.

// Doer does jobs of a fleet by a server's workers, within its limits.
type Doer struct{ server *Server }

// Doer returns a Doer of the server.
func (s *Server) Doer() Doer { return Doer{s} }

// fleetCaller is the caller's name of a fleet's jobs.
const fleetCaller = "(fleet)"

// Begin implements fleet.Doer.
func (d Doer) Begin(ctx context.Context, t *fleet.Task, receive func(io.Writer) error) (fleet.Report, error) {
	s := d.server
	leave, err := s.enter()
	if err != nil {
		return nil, err
	}
	req := &request{id: rand.Text()[:16], caller: fleetCaller, address: fleetCaller, kind: byFleet, began: time.Now(), span: oteltrace.SpanFromContext(ctx)}
	r := &fleetReport{server: s, req: req, kind: t.Kind, leave: leave}
	if err := r.begin(context.WithValue(ctx, requestKey, req), t, receive); err != nil {
		r.err = err
		return nil, errors.Join(r.fault(), r.Close())
	}
	return r, nil
}

// fleetReport is the report of a fleet's job, while it comes.
type fleetReport struct {
	server *Server
	req    *request
	kind   string
	leave  func()
	upload *upload
	answer *answer
	about  fleet.About
	err    error // why there is none, or why it broke off
}

// begin receives the input, and starts a worker on it.
func (r *fleetReport) begin(ctx context.Context, t *fleet.Task, receive func(io.Writer) error) error {
	work, err := r.server.taskWork(t)
	if err != nil {
		return err
	}
	work.Caller, work.Remote = fleetCaller+" "+t.User, r.server.Remote
	if files := r.server.files; files != nil {
		work.Remote = checked{r.server, files.Of(t.User)}
	}
	work.Remote = inTurn{work.Remote, r.server.store.Of(fleetCaller)}
	r.about = fleet.About{Type: contentType(work.Job), Name: work.Name}
	most := r.server.now().Body
	for _, size := range t.Joined {
		most += size
	}
	if r.upload, err = r.server.newInput(r.server.budget.of(r.req.caller), work.Caller, most); err != nil {
		return err
	}
	if err := receive(r.upload); err != nil {
		return err
	}
	r.server.metrics.received(r.upload.size)
	r.answer, err = r.server.beginOn(ctx, r.req, work, r.upload)
	return err
}

// inTurn asks one source of files after the other. One may be nil.
type inTurn []object.Remote

// Fetch implements object.Remote.
func (list inTurn) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	for _, r := range list {
		if r == nil {
			continue
		}
		found, more := r.Fetch(f)
		if tried = append(tried, more...); found != "" {
			return found, tried
		}
	}
	return "", tried
}

// taskOptions are the empty options of tasks, by their kinds.
var taskOptions = map[string]proto.Message{"stack": &pb.StackOptions{}, "profile": &pb.ProfileOptions{}, "snapshot": &pb.SnapshotOptions{}, "compare": &pb.CompareOptions{}}

// taskWork makes the request to a worker for a task. Its input is missing.
func (s *Server) taskWork(t *fleet.Task) (*worker.Request, error) {
	if taskOptions[t.Kind] == nil {
		return nil, badRequest.new(fmt.Sprintf("a job of the kind %.100q, expected stack, profile, snapshot or compare", t.Kind))
	}
	options := proto.Clone(taskOptions[t.Kind])
	if err := t.ReadOptions(options); err != nil {
		return nil, badRequest.new("options that cannot be read: " + err.Error())
	}
	work, err := s.work(options)
	if err != nil {
		return nil, err
	}
	if p := work.Job.Profile; p != nil {
		p.Joined, p.Size = t.Joined, t.Size
		if t.Part != nil {
			p.Part = &trace.ProfilePart{Index: t.Part.Index, Count: t.Part.Count}
		}
	}
	return work, nil
}

// Read implements io.Reader.
func (r *fleetReport) Read(p []byte) (int, error) {
	n, err := r.answer.Read(p)
	r.req.sent.Add(int64(n))
	r.server.metrics.sent(n)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
		err = r.fault()
	}
	return n, err
}

// othersFaults are the problems that may not be the job's fault: it is tried again.
var othersFaults = map[string]bool{died.name: true}

// passing are the temporary problems of this machine, which are not about the job.
var passing = map[string]bool{busy.name: true, ending.name: true, noRoom.name: true, failed.name: true, canceled.name: true}

// fault returns the error for the fleet: a *fleet.Fault where it is about the job.
func (r *fleetReport) fault() error {
	p := problemOf(r.err)
	if passing[p.name()] {
		return r.err
	}
	return &fleet.Fault{Problem: fleet.Problem{Name: p.name(), Detail: p.Detail}, Again: othersFaults[p.name()]}
}

// About implements fleet.Report.
func (r *fleetReport) About() fleet.About {
	<-r.answer.done
	r.about.Facts = r.answer.facts
	return r.about
}

// Close implements fleet.Report.
func (r *fleetReport) Close() error {
	defer r.leave()
	var p *problem
	status := 200
	if r.err != nil {
		p = problemOf(r.err)
		status = p.Status
	}
	s := r.server
	s.end(r.req, "job "+r.kind, p)
	s.logEnd(r.req, status)
	var err error
	if r.answer != nil {
		if r.upload != nil {
			r.upload.closeAfter(r.answer)
		}
		err = r.answer.Close()
	}
	if r.upload != nil {
		err = errors.Join(err, r.upload.Close())
	}
	return err
}

// WatchFleet adds the figures of a queue and of its worker, which may be nil, to /metrics.
// They tell when a fleet needs more workers.
func (s *Server) WatchFleet(q *fleet.Queue, w *fleet.Worker) {
	s.metrics.registry.MustRegister(fleetFigures{q, w})
}

// fleetFigures collects the figures on demand.
type fleetFigures struct {
	queue  *fleet.Queue
	worker *fleet.Worker // nil: there is none
}

var (
	jobsWaiting = prometheus.NewDesc("unwindd_fleet_jobs_waiting", "Jobs of the queue that no worker has.", []string{"priority"}, nil)
	jobsRunning = prometheus.NewDesc("unwindd_fleet_jobs_running", "Jobs of the queue that a worker has, or that wait to be tried again.", []string{"priority"}, nil)
	oldestJob   = prometheus.NewDesc("unwindd_fleet_oldest_job_seconds", "How long ago the oldest job of the queue was asked for.", nil, nil)
	queueBytes  = prometheus.NewDesc("unwindd_fleet_bytes", "Bytes that the queue keeps, and that it may.", []string{"store", "what"}, nil)
	jobsBusy    = prometheus.NewDesc("unwindd_fleet_worker_jobs", "Jobs that this worker does, and that it may do at a time.", []string{"what"}, nil)
	jobsDone    = prometheus.NewDesc("unwindd_fleet_results_total", "Results that this worker has stored.", []string{"state"}, nil)
	jobsAgain   = prometheus.NewDesc("unwindd_fleet_tried_again_total", "Jobs that this worker has begun, and that are tried again.", nil, nil)
)

// Describe implements prometheus.Collector.
func (f fleetFigures) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsWaiting, jobsRunning, oldestJob, queueBytes, jobsBusy, jobsDone, jobsAgain} {
		out <- d
	}
}

// figuresPatience bounds the time of the queue's answer.
const figuresPatience = 2 * time.Second

// Collect implements prometheus.Collector. Figures that the queue does not answer with are
// left out.
func (f fleetFigures) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), figuresPatience)
	defer cancel()
	if n, err := f.queue.Figures(ctx); err == nil {
		for _, p := range fleet.Priorities {
			gauge(jobsWaiting, float64(n.Waiting[p]), p)
			gauge(jobsRunning, float64(n.Running[p]), p)
		}
		gauge(oldestJob, n.Oldest.Seconds())
		for name, b := range n.Bytes {
			gauge(queueBytes, float64(b.Used), name, "used")
			gauge(queueBytes, float64(b.Most), name, "most")
		}
	}
	if f.worker == nil {
		return
	}
	gauge(jobsBusy, float64(f.worker.Busy()), "running")
	gauge(jobsBusy, float64(f.worker.Jobs), "most")
	results, again := f.worker.Counts()
	for state, n := range results {
		out <- prometheus.MustNewConstMetric(jobsDone, prometheus.CounterValue, float64(n), string(state))
	}
	out <- prometheus.MustNewConstMetric(jobsAgain, prometheus.CounterValue, float64(again))
}
