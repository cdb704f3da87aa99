// SPDX-License-Identifier: Apache-2.0

// Package service answers requests about stacks for many callers: it keeps symbols warm and
// plugins up, and what strangers send is read by processes of their own (package worker).
// One listener takes gRPC (servicepb) and HTTP with JSON.
//
// No file of the server's machine is opened because a request names it: what a target needs
// is found beneath the roots that the server was given, in the store of objects that were
// put, or at servers that it was told to ask, by build ID.
package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/service/objects"
	"github.com/unwindd/unwindd/engine/service/reports"
	"github.com/unwindd/unwindd/engine/service/worker"
)

// Limits bound what requests may take: each, and all together.
type Limits struct {
	Body    int64         // bytes that a request may send
	Answer  int64         // bytes that a report may have
	Unpack  uint64        // bytes that a packed target may unpack to
	Memory  uint64        // bytes of memory that a request may need
	Time    time.Duration // that a request may take, once a worker has it
	Idle    time.Duration // that a caller may send, or take, nothing
	Frames  int           // physical frames of a stack that may be asked for
	Spool   int64         // bytes of all requests and reports on disk
	Objects int64         // bytes of all objects
	Reports int64         // bytes of all reports that are kept; 0: none are
	Workers int           // requests that are worked on at a time
	Handed  int           // requests that a fleet has at a time
	Waiting int           // requests that wait
	PerUser int           // requests of one caller that wait
}

// DefaultLimits are those of a server that is told none, but for Workers: one for each
// processor.
var DefaultLimits = Limits{
	Body: 4 << 30, Answer: 1 << 30, Unpack: 16 << 30, Memory: 4 << 30, Time: 2 * time.Minute, Idle: time.Minute, Frames: 1 << 20,
	Spool: 32 << 30, Objects: 16 << 30, Reports: 1 << 30, Handed: 64, Waiting: 1000, PerUser: 200,
}

// maxReports is how many reports are kept.
const maxReports = 10_000

// Options say what a server answers with.
type Options struct {
	Limits
	Self string // this executable, which is started as workers
	// Starter is the executable that workers start plugins with; "": Self.
	Starter string
	// State is a folder for objects and reports, which stay, and for what is sent, and Run one
	// for what workers need while they run. Servers may share both.
	State, Run string
	Sysroot    string   // beneath which the files of targets are looked up; "": nowhere
	DebugDirs  []string // searched for separate debug files
	PluginDirs []string // of vendors' plugins
	Pins       map[string]string
	InProcess  bool     // the bundled architectures are no processes of their own
	Hosts      []string // names of the server that requests may have, beside those of this machine
	Tokens     Tokens   // who may ask; nil: whoever reaches the listener
	// Remote and Symbols are asked for files that are not here; nil: nobody is. Caches are
	// the folders that they keep them in.
	Remote, Symbols object.Remote
	Caches          []string
	Log             hclog.Logger
	// Queue is that of a fleet, which does the stacks, profiles and snapshots that there is no
	// place for; nil: their callers are told to come again. It need not answer yet.
	Queue     *fleet.Options
	queueLost time.Duration // for which a queue is waited for that does not answer any more; 0: the usual one
	// Traces, where it is not nil, takes spans of requests.
	Traces trace.TracerProvider
}

// A Server answers requests.
type Server struct {
	Options
	queue    *queue
	budget   *budget
	store    *objects.Store
	reports  *reports.Store // nil: none are kept
	pool     *worker.Pool
	handover *handover // nil: there is no fleet
	metrics  *metrics
	grpc     *grpc.Server
	tracer   trace.Tracer
	tokens   atomic.Pointer[Tokens]
	limits   atomic.Pointer[Limits]

	giveUpRun func() // removes the folder of what is under way

	unconfined sync.Once // what workers are not confined by is said

	mu       sync.Mutex
	ending   bool
	servers  []*http.Server
	underWay sync.WaitGroup
}

// executables are the files, and folders of files, that a worker may execute besides Self.
func (o *Options) executables() []string {
	if o.Starter == "" {
		return o.PluginDirs
	}
	return append([]string{o.Starter}, o.PluginDirs...)
}

// New makes a server. It makes the folders that are not there, and starts no process.
func New(o Options) (*Server, error) {
	s := &Server{Options: o, queue: newQueue(o.Workers, o.Waiting, o.PerUser), budget: newBudget(o.Spool), tracer: newTracer(o.Traces)}
	s.limits.Store(&o.Limits)
	var err error
	if s.Run, s.giveUpRun, err = claimRun(o.Run); err != nil {
		return nil, err
	}
	empty, workers := filepath.Join(s.Run, "nothing"), filepath.Join(s.Run, "w") // its path is short: those of sockets are bounded
	if n := len(workers) + 1 + worker.NameLength; n > plugin.MaxSocketBase {
		s.giveUpRun()
		return nil, fmt.Errorf("%s: its path has %d bytes too many for the sockets of plugins", o.Run, n-plugin.MaxSocketBase)
	}
	for _, dir := range []string{s.spoolDir(), empty, workers} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	if s.store, err = objects.Open(filepath.Join(o.State, "objects"), o.Objects); err != nil {
		return nil, err
	}
	if o.Reports > 0 {
		if s.reports, err = reports.Open(filepath.Join(o.State, "reports"), o.Reports, maxReports); err != nil {
			return nil, err
		}
	}
	sysroot := o.Sysroot
	if sysroot == "" {
		sysroot = empty
	}
	s.SetTokens(o.Tokens)
	s.handover = newHandover(s)
	s.metrics = newMetrics(s)
	s.pool = worker.NewPool(worker.Options{
		Self: o.Self, Dir: workers, Count: o.Workers, Time: o.Time, MaxFile: o.Unpack, MaxAnswer: o.Answer,
		Read: append([]string{sysroot, s.store.Dir(), s.spoolDir()}, append(append([]string{}, o.DebugDirs...), o.Caches...)...), Execute: o.executables(),
		Setup: worker.Setup{
			Sysroot: sysroot, DebugDirs: o.DebugDirs, PluginDirs: o.PluginDirs, Pins: o.Pins, InProcess: o.InProcess,
			MaxUnpacked: o.Unpack, Memory: o.Memory,
		},
		Remote: remotes{s.store, o.Remote, s.metrics}, Symbols: o.Symbols, Watch: s.watch, RequestOf: requestID,
	})
	s.grpc = s.newGRPC()
	if s.handover != nil {
		go s.handover.link.run()
	}
	return s, nil
}

// spoolDir is where requests and reports are while they are under way.
// They may be larger than memory, in which a folder of what is under way often is.
func (s *Server) spoolDir() string { return filepath.Join(s.State, "spool") }

// remotes asks the store of objects, and then others.
type remotes struct {
	store   *objects.Store
	more    object.Remote
	metrics *metrics
}

// Fetch implements object.Remote.
func (r remotes) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	path, tried = r.store.Fetch(f)
	r.metrics.looked("objects", path != "")
	if path != "" || r.more == nil {
		return path, tried
	}
	return r.more.Fetch(f)
}

// watch logs what becomes of workers.
func (s *Server) watch(e worker.Event) {
	s.metrics.worker(e.Kind)
	about := []any{"pid", e.Process}
	if e.Request != "" {
		about = append(about, "request", e.Request)
	}
	if e.Reason != "" {
		about = append(about, "reason", foreign(e.Reason))
	}
	switch e.Kind {
	case worker.Started:
		s.Log.Info("worker started", about...)
		s.unconfined.Do(func() { // the system lacks the same for each
			for _, m := range e.Missing {
				s.Log.Warn("workers are not confined as they could be", "missing", m)
			}
		})
	case worker.Died:
		s.Log.Warn("worker died", about...)
	case worker.Stopped:
		s.Log.Warn("worker stopped", about...)
	case worker.Replaced:
		s.Log.Info("worker replaced", about...)
	}
}

// An answer is a report that comes. What is said of it is there once it was read to its end.
type answer struct {
	*spool
	facts  fleet.Facts
	object *job.Object   // what a file was found to be
	done   chan struct{} // closed when no more comes, and what is said of it is there
}

// begin has a worker do a job, as soon as it is the caller's turn. It returns when there is
// something to read of the report, which is to be closed, or when there will be no
// report.
func (s *Server) begin(ctx context.Context, r *request, j *job.Job, in *os.File, name string) (*answer, error) {
	return s.beginAsking(ctx, r, j, in, name, nil)
}

// beginAsking is begin for a job that asks questions; nil: nobody answers any.
func (s *Server) beginAsking(ctx context.Context, r *request, j *job.Job, in *os.File, name string, asker worker.Asker) (*answer, error) {
	err := s.enqueue(ctx, r)
	if errors.Is(err, errBusy) {
		return s.handOver(ctx, r, j, in, name)
	}
	if err != nil {
		return nil, err
	}
	return s.answer(func(a *answer) error {
		defer s.queue.leave()
		return s.within(ctx, "run", func(ctx context.Context, span trace.Span) error {
			o, err := s.pool.Do(ctx, &worker.Request{Job: j, Input: in, Name: name, Output: a.spool, Asker: asker})
			a.facts, a.object = factsOf(&o), o.Object
			s.metrics.done(j.Name(), &o)
			noteOutcome(span, &o)
			return err
		})
	})
}

// answer has do make an answer, and returns when there is something to read of it.
func (s *Server) answer(do func(*answer) error) (*answer, error) {
	a := &answer{spool: newSpool(s.spoolDir(), s.budget), done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.finish(do(a))
	}()
	if err := a.begun(); err != nil {
		<-a.done
		_ = a.Close()
		return nil, err
	}
	return a, nil
}

// factsOf are the facts of an outcome.
func factsOf(o *job.Outcome) fleet.Facts {
	return fleet.Facts{Unwalked: o.Unwalked, Stacks: o.Counts.Stacks, Frames: o.Counts.AllFrames(), Problems: o.Problems}
}

// enter notes that a request is under way; the error says that the server ends. leave is
// called when it is not any more.
func (s *Server) enter() (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil, errEnding
	}
	s.underWay.Add(1)
	return s.underWay.Done, nil
}

// Drain takes no more requests, and waits until those that are under way are answered, or
// ctx ends. Then connections and workers are ended, and nothing is left of them.
func (s *Server) Drain(ctx context.Context) error {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	answered := make(chan struct{})
	go func() {
		s.underWay.Wait()
		close(answered)
	}()
	if s.handover != nil {
		defer s.handover.link.endBy(ctx)()
	}
	var err error
	select {
	case <-answered:
	case <-ctx.Done():
		err = errors.New("requests were under way when the server ended")
	}
	s.hangUp(ctx)
	s.Abandon()
	return err
}

// hangUp closes connections, as soon as what was written to them is sent.
func (s *Server) hangUp(ctx context.Context) {
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, lastWords)
	defer cancel()
	for _, h := range servers {
		if h.Shutdown(ctx) != nil {
			_ = h.Close()
		}
	}
}

// lastWords is how long an answer that is written may take to be sent when a server ends.
const lastWords = 2 * time.Second

// Abandon ends the workers at once, with what they do, and removes what they have in the
// file system. It is for a program that is about to end.
func (s *Server) Abandon() {
	if s.handover != nil {
		s.handover.link.close()
	}
	s.pool.Close()
	s.giveUpRun()
}

// IsLocal says whether only this machine reaches a listener at an address.
func IsLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}
