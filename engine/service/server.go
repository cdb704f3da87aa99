// SPDX-License-Identifier: Apache-2.0

// Package service answers requests about stacks for many callers: it keeps symbols and
// plugins loaded, and separate processes read the files of strangers (package worker). One
// listener takes gRPC (servicepb) and HTTP with JSON.
//
// No file of the server's machine is opened because a request names it: the files of a
// target are found beneath configured roots, in the store of objects that were put, or at
// configured servers, by build ID.
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
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/fleet"
	"github.com/unwindd/unwindd/engine/service/internal/buildids"
	"github.com/unwindd/unwindd/engine/service/internal/objects"
	"github.com/unwindd/unwindd/engine/service/internal/reports"
	"github.com/unwindd/unwindd/engine/service/internal/worker"
	"github.com/unwindd/unwindd/engine/service/job"
)

// Limits bound the resources of requests: of each, and of all together.
type Limits struct {
	Body    int64         // bytes that a request may send
	Answer  int64         // bytes that a report may have
	Unpack  uint64        // bytes that a packed target may unpack to
	Memory  uint64        // bytes of memory that a request may need
	Time    time.Duration // of a request, once a worker has it
	Idle    time.Duration // in which a caller may send, or take, nothing
	Frames  int           // physical frames of a stack at most
	Spool   int64         // bytes of all requests and reports on disk
	Objects int64         // bytes of all objects
	Reports int64         // bytes of all reports that are kept; 0: none are
	Workers int           // requests that run at a time; two more may, of callers of whom no other does
	Handed  int           // requests that a fleet has at a time
	Waiting int           // requests that wait
	PerUser int           // requests of one caller that wait
	// Connections bounds those that are open, and the requests that are under way; 0: as many
	// as this process may have descriptors for.
	Connections int
}

// DefaultLimits are the limits of a server without settings. Workers is missing: it is one
// for each processor.
var DefaultLimits = Limits{
	Body: 4 << 30, Answer: 1 << 30, Unpack: 16 << 30, Memory: 4 << 30, Time: 2 * time.Minute, Idle: time.Minute, Frames: 1 << 20,
	Spool: 32 << 30, Objects: 16 << 30, Reports: 1 << 30, Handed: 64, Waiting: 1000, PerUser: 200,
}

// maxReports bounds the number of stored reports.
const maxReports = 10_000

// Options are the settings of a server.
type Options struct {
	Limits
	Self string // this executable, which is started as workers
	// Starter is the executable that workers start plugins with; "": Self.
	Starter string
	// State is a folder for objects and reports, which stay, and for files that are being
	// sent; Run is one for files of running workers. Servers may share both.
	State, Run string
	Sysroot    string   // beneath which the files of targets are looked up; "": nowhere
	DebugDirs  []string // searched for separate debug files
	PluginDirs []string // of vendors' plugins
	Pins       map[string]string
	Choice     plugin.Choice // of plugins
	InProcess  bool          // the bundled architectures run in the workers
	Hosts      []string      // names of the server in requests, besides this machine's own
	Tokens     Tokens        // of callers; nil: every caller is let in
	// Remote and Symbols are asked for files that are not here; nil: none is asked. Caches
	// are the folders of their files.
	Remote, Symbols object.Remote
	Caches          []string
	Log             hclog.Logger
	// Queue is the queue of a fleet, which does the stacks, profiles and snapshots for which
	// there is no place; nil: their callers are told to come again. It need not answer yet.
	Queue *fleet.Options
	// Collector gets the profiles of ServeProfiles; it is connected. nil: there are none.
	Collector *report.Collector
	queueLost time.Duration // how long to wait for a queue that has stopped answering; 0: usualLost
	// Traces, where it is not nil, gets spans of requests.
	Traces trace.TracerProvider
}

// Server answers requests.
type Server struct {
	Options
	queue       *queue
	budget      *budget // of bytes on disk
	memory      *budget // of bytes of messages
	requests    *budget
	connections *connections
	store       *objects.Store
	reports     *reports.Store // nil: none are kept
	spares      *spares
	pool        *worker.Pool
	checks      *worker.Pool // which checks files of others while workers wait for them; nil: there are no others
	offload     *offload     // nil: there is no fleet
	differing   differing
	sound       soundPaths
	files       *fleet.Objects // of a fleet for which this server works; nil: there is none
	relay       *relay         // nil: there is no collector
	metrics     *metrics
	grpc        *grpc.Server
	tracer      trace.Tracer
	tokens      atomic.Pointer[Tokens]
	limits      atomic.Pointer[Limits]
	folders     *buildids.Index // the files of the sysroot and of the debug directories
	upstream    *fileServers
	downloads   *queue        // of files that callers have fetched from other servers
	packing     chan struct{} // answers that are packed at this moment

	removeRun func() // removes the folder Run

	unconfined sync.Once // missing confinement of workers is logged

	mu      sync.Mutex
	ending  bool
	servers []*http.Server
	active  sync.WaitGroup
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
	s := &Server{Options: o, queue: newQueue(o.Workers, o.Waiting, o.PerUser), tracer: newTracer(o.Traces), packing: make(chan struct{}, o.Workers)}
	s.queue.spare = spareWorkers
	s.downloads = newQueue(maxDownloads, o.Waiting, o.PerUser)
	s.downloads.spare = spareWorkers
	s.spares = &spares{most: o.Workers + spareWorkers}
	s.setBudgets()
	s.limits.Store(&o.Limits)
	var err error
	if s.Run, s.removeRun, err = claimRun(o.Run); err != nil {
		return nil, err
	}
	empty, workers := filepath.Join(s.Run, "nothing"), filepath.Join(s.Run, "w") // a short path: paths of sockets are bounded
	if n := len(workers) + 1 + worker.NameLength; n > plugin.MaxSocketBase {
		s.removeRun()
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
	s.folders = buildids.New(append([]string{o.Sysroot}, o.DebugDirs...)...)
	s.upstream = &fileServers{debuginfod: o.Remote, symbols: o.Symbols, underway: map[string]int{}}
	if o.Remote != nil {
		s.files, _ = o.Remote.(*fleet.Objects)
		s.Remote = checked{s, o.Remote}
	}
	s.SetTokens(o.Tokens)
	s.offload = newOffload(s)
	if o.Collector != nil {
		s.relay = newRelay(s, o.Collector)
	}
	s.metrics = newMetrics(s)
	workerOptions := worker.Options{
		Self: o.Self, Dir: workers, Count: o.Workers, Spare: spareWorkers, Time: o.Time, MaxAnswer: o.Answer, Spool: s.spoolDir(),
		Read: append([]string{sysroot}, o.DebugDirs...), Open: o.Caches, Execute: o.executables(),
		Setup: worker.Setup{
			Sysroot: sysroot, DebugDirs: o.DebugDirs, PluginDirs: o.PluginDirs, Pins: o.Pins, Choice: o.Choice, InProcess: o.InProcess,
			MaxUnpacked: o.Unpack, Memory: o.Memory,
		},
		Remote: s.remote(""), Symbols: s.upstream.recording(o.Symbols), Watch: s.watch, RequestOf: requestID,
	}
	s.pool = worker.NewPool(workerOptions)
	if o.Remote != nil {
		s.checks = worker.NewPool(workerOptions)
	}
	if s.files != nil {
		s.files.SetCheck(s.checkFile)
	}
	s.grpc = s.newGRPC()
	if s.offload != nil {
		go s.offload.connection.run()
	}
	return s, nil
}

// spoolDir returns the folder of requests and reports while they are under way. It is not
// in Run, which often is in memory: they may be larger.
func (s *Server) spoolDir() string { return filepath.Join(s.State, "spool") }

// remote returns the source of files for a caller.
func (s *Server) remote(caller string) object.Remote {
	return remotes{s.store.Of(caller), s.upstream.recording(s.Remote), s.metrics}
}

// remotes asks the store of objects, as a caller sees it, then another source.
type remotes struct {
	store   objects.View
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

// watch logs the events of workers.
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
		s.unconfined.Do(func() { // the system has, and lacks, the same for each
			s.Log.Info("the memory of a worker with its plugins is bounded", "by", s.pool.Memory())
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

// answer is a report while it comes. Its facts are known when done is closed.
type answer struct {
	*spool
	facts  fleet.Facts
	object *job.Object // the identity of a file
	named  job.Named   // frames of a profile
	// snapshot has the counts of a snapshot, and profile describes a profile; nil: it is none, or was made elsewhere.
	snapshot *job.SnapshotCounts
	profile  *job.ProfileFacts
	done     chan struct{} // closed when no more comes
}

// beginOn is begin for work on a file that was sent.
func (s *Server) beginOn(ctx context.Context, r *request, work *worker.Request, input *upload) (*answer, error) {
	if err := work.Job.CheckInput(input.size > 0); err != nil {
		return nil, err
	}
	var err error
	if work.Input, err = input.whole(); err != nil {
		return nil, err
	}
	return s.begin(ctx, r, work)
}

// begin has a worker do a job, as soon as it is the caller's turn. It returns when the
// report, which the caller closes, can be read, or when there will be none.
func (s *Server) begin(ctx context.Context, r *request, work *worker.Request) (*answer, error) {
	err := s.enqueue(ctx, r)
	if errors.Is(err, errBusy) {
		return s.handOver(ctx, r, work)
	}
	if err != nil {
		return nil, err
	}
	return s.run(ctx, r, work)
}

// run has a worker do a job of a request that has a place, which it gives back.
func (s *Server) run(ctx context.Context, r *request, work *worker.Request) (*answer, error) {
	return s.answer(r, func(a *answer) error {
		defer s.queue.leave(r.caller)
		return s.within(ctx, "run", func(ctx context.Context, span trace.Span) error {
			own := s.budget.of(r.caller)
			work.Output, work.Space = a.spool, worker.Space{Take: own.take, Give: own.give}
			if work.Caller == "" {
				work.Caller, work.Address, work.Remote = r.caller, r.address, s.remote(r.caller)
			}
			began := time.Now()
			o, err := s.pool.Do(ctx, work)
			s.metrics.worked(r, time.Since(began))
			a.facts, a.object, a.named, a.snapshot, a.profile = factsOf(&o), o.Object, o.Named, o.Snapshot, o.Profile
			s.metrics.done(work.Job.Name(), &o)
			recordOutcome(span, &o)
			return err
		})
	})
}

// answer runs do, which makes an answer, and returns when the answer can be read.
func (s *Server) answer(r *request, do func(*answer) error) (*answer, error) {
	a := &answer{spool: newSpool(s.spoolDir(), s.budget.of(r.caller)), done: make(chan struct{})}
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

// factsOf returns the facts of an outcome.
func factsOf(o *job.Outcome) fleet.Facts {
	return fleet.Facts{Unwalked: o.Unwalked, Stacks: o.Counts.Stacks, Frames: o.Counts.AllFrames(), Problems: o.Problems}
}

// enter records that a request is under way, until leave is called. The error is errEnding.
func (s *Server) enter() (leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil, errEnding
	}
	s.active.Add(1)
	return s.active.Done, nil
}

// Refuse has new requests told that the server ends.
func (s *Server) Refuse() {
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
}

// Drain refuses new requests, and waits until the current ones are answered, or ctx ends.
// Then connections and workers are ended, and their files removed.
func (s *Server) Drain(ctx context.Context) error {
	s.Refuse()
	answered := make(chan struct{})
	go func() {
		s.active.Wait()
		close(answered)
	}()
	if s.offload != nil {
		defer s.offload.connection.endBy(ctx)()
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

// hangUp closes connections, as soon as their written bytes are sent.
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

// lastWords bounds the time for sending written answers when a server ends.
const lastWords = 2 * time.Second

// Abandon ends the workers and their jobs at once, and removes their files. It is for a
// program that is about to end.
func (s *Server) Abandon() {
	if s.offload != nil {
		s.offload.connection.close()
	}
	s.pool.Close()
	s.spares.close()
	if s.checks != nil {
		s.checks.Close()
	}
	s.removeRun()
}

// IsLocal reports whether only this machine reaches a listener at an address.
func IsLocal(a net.Addr) bool {
	switch a := a.(type) {
	case *net.UnixAddr:
		return true
	case *net.TCPAddr:
		return a.IP.IsLoopback()
	}
	return false
}
