// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/service/job"
)

// Options are the settings of a pool.
type Options struct {
	Self    string   // this executable
	Dir     string   // the pool's folder, in which each worker has one
	Spool   string   // the folder of files that workers unpack into
	Read    []string // files and folder trees that workers may read
	Open    []string // folder trees of which they may read files, and not list them
	Execute []string // vendors' plugins
	Setup   Setup
	Count   int           // of workers at most, and so of requests that run at once
	Spare   int           // more of them, while so many requests run; fewer stay idle
	Time    time.Duration // of a request at most
	// MaxAnswer bounds the bytes of an answer.
	MaxAnswer int64
	// Recycle bounds the bytes of memory of a worker after a request; a larger worker is
	// replaced. 0: half of Setup.Memory.
	Recycle uint64
	// Remote and Symbols are asked for files by the server, for its workers; nil: none is
	// asked.
	Remote, Symbols object.Remote
	// Watch, where it is not nil, gets the events of workers.
	Watch func(Event)
	// RequestOf returns the ID of a context's request, for Watch; nil: there are no IDs.
	RequestOf func(context.Context) string
}

// Event is the start or the end of a worker.
type Event struct {
	Kind    EventKind
	Process int      // its ID
	Request string   // for which it was started, or that it had when it ended; "": none
	Missing []string // of a started worker: the confinement that this system lacks
	Reason  string   // why it ended
}

// EventKind is the kind of an Event.
type EventKind int

// The kinds.
const (
	Started  EventKind = iota
	Died               // it ended by itself, or was killed from outside
	Stopped            // a request took too long, or was canceled and did not end
	Replaced           // it had too much memory after a request, or a plugin of it was given up
)

// Pool has workers. It starts one when there is something to do, and none is idle.
type Pool struct {
	Options

	slots  chan struct{} // one for each worker
	groups *groups       // nil: there are none
	lacks  error         // why there are none
	keeps  atomic.Bool   // the priorities of workers: one that was lowered could not be raised
	time   atomic.Int64  // of a request at most, in nanoseconds
	answer atomic.Int64  // bytes of an answer at most

	mu     sync.Mutex
	live   map[*process]bool
	idle   []*process // of callers, the last one was used last
	closed bool
}

// Output takes the report of a job.
type Output interface {
	io.Writer
	// Restart discards the written bytes. ok is false where a reader has got some of them.
	Restart() (ok bool)
}

// NewPool makes a pool, and starts nothing.
func NewPool(o Options) *Pool {
	if o.Recycle == 0 {
		o.Recycle = o.Setup.Memory / 2
	}
	p := &Pool{Options: o, slots: make(chan struct{}, o.Count+o.Spare), live: map[*process]bool{}}
	p.SetBounds(o.Time, o.MaxAnswer)
	p.groups, p.lacks = delegated()
	return p
}

// Memory describes what bounds the memory of a worker and its plugins together.
func (p *Pool) Memory() string {
	if p.lacks != nil {
		return "a look at it every " + memoryInterval.String() + ", because " + p.lacks.Error()
	}
	return "a control group for each worker, and a look at it every " + memoryInterval.String()
}

// SetBounds replaces the bounds of time and of answers, for requests that begin later.
func (p *Pool) SetBounds(time time.Duration, maxAnswer int64) {
	p.time.Store(int64(time))
	p.answer.Store(maxAnswer)
}

// Asker asks the caller of a job: a servicepb.Question, which gets a servicepb.Answer and
// the path of the file that it asks for. It may be called concurrently.
type Asker func(question []byte) (answer []byte, path string, err error)

// maxTries bounds how often a worker is started, and a job begun, when workers are killed
// from outside.
const maxTries = 3

// Request is a job for a worker.
type Request struct {
	Job    *job.Job
	Input  *os.File // a regular file, which is read from its beginning
	Name   string   // of the input, in reports and errors
	Output Output
	Asker  Asker  // answers the job's questions; nil: it may ask none
	Caller string // whose request it is: no other one's is done by the same worker
	// Address is where the caller is. Idle workers of the address that has the most end first.
	Address string
	// Remote is asked for files, instead of that of the pool; nil: that is.
	Remote object.Remote
	Space  Space // for what the input unpacks to
}

// Do has a worker do a job. It waits for a worker as long as ctx allows. The error is a
// *Failure, or the reason why there was no worker.
func (p *Pool) Do(ctx context.Context, r *Request) (job.Outcome, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return job.Outcome{}, &Failure{Canceled, ctx.Err().Error()}
	}
	for try := 1; ; try++ {
		w, err := p.take(ctx, r)
		if err != nil {
			return job.Outcome{}, err
		}
		o, f, err := p.unpacking(ctx, w, r)
		if f == nil || err != nil {
			return o, err
		}
		if f.Kind != Crashed || !isEnded(w) || !w.isKilled() || try == maxTries || ctx.Err() != nil || !r.Output.Restart() {
			return o, f
		}
	}
}

// unpacking is do, with files that the worker unpacks into. err is why bytes of them were refused.
func (p *Pool) unpacking(ctx context.Context, w *process, r *Request) (o job.Outcome, f *Failure, err error) {
	files := &runFiles{dir: p.Spool, most: int64(min(p.Setup.MaxUnpacked, math.MaxInt64)), space: r.Space} //nolint:gosec // bounded
	w.files.Store(files)
	if r.Asker != nil {
		w.asker.Store(&r.Asker)
	}
	if r.Remote != nil {
		w.remote.Store(&r.Remote)
	}
	o, f = p.do(ctx, w, r)
	return o, f, files.end()
}

func isEnded(w *process) bool {
	select {
	case <-w.ended:
		return true
	default:
		return false
	}
}

// take takes a worker that is idle and has done requests of the caller alone, or starts one.
func (p *Pool) take(ctx context.Context, r *Request) (*process, error) {
	request := ""
	if p.RequestOf != nil {
		request = p.RequestOf(ctx)
	}
	w, err := p.takeIdle(r.Caller)
	if err != nil {
		return nil, err
	}
	if w != nil {
		w.request, w.address = request, r.Address
		return w, nil
	}
	w, missing, err := p.start()
	for try := 1; errors.Is(err, errKilled) && try < maxTries; try++ {
		w, missing, err = p.start()
	}
	if err != nil {
		return nil, err
	}
	w.request, w.caller, w.address = request, r.Caller, r.Address
	if p.Watch != nil {
		p.Watch(Event{Kind: Started, Process: w.command.Process.Pid, Request: request, Missing: missing})
	}
	return w, nil
}

// takeIdle takes the caller's idle worker that was used last; nil: it has none.
func (p *Pool) takeIdle(caller string) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errors.New("the server ends")
	}
	p.idle = slices.DeleteFunc(p.idle, func(w *process) bool {
		if isEnded(w) {
			p.tell(w, Died, w.died().Error())
		}
		return isEnded(w)
	})
	for n, w := range slices.Backward(p.idle) {
		if w.caller == caller {
			p.idle = slices.Delete(p.idle, n, n+1)
			w.isIdle.Store(false)
			return w, nil
		}
	}
	return nil, nil
}

// tell reports the end of a worker to Watch.
func (p *Pool) tell(w *process, kind EventKind, reason string) {
	if p.Watch != nil {
		p.Watch(Event{Kind: kind, Process: w.command.Process.Pid, Request: w.request, Reason: reason})
	}
}

// release keeps a worker for the next request of its caller, unless it has become too large.
func (p *Pool) release(w *process) {
	w.endRun()
	w.memory = plugin.ResidentMemory(w.command.Process.Pid)
	if w.memory > p.Recycle {
		w.kill()
		p.tell(w, Replaced, fmt.Sprintf("it has %d MiB after a request, expected at most %d MiB", w.memory>>20, p.Recycle>>20))
		return
	}
	if err := p.raise(w); err != nil {
		w.kill()
		p.tell(w, Replaced, fmt.Sprintf("its priority cannot be raised again: %v", err))
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		w.kill()
		return
	}
	w.request = ""
	w.isIdle.Store(true)
	p.idle = append(p.idle, w)
	p.trim()
}

// idlePerPlace is how many idle workers a pool keeps for each request that runs at once, so that
// callers who ask in turns find theirs warm.
const idlePerPlace = 8

// trim ends idle workers, until the others are few and small enough. The caller holds mu.
func (p *Pool) trim() {
	used := uint64(0)
	for _, w := range p.idle {
		used += w.memory
	}
	for len(p.idle) > idlePerPlace*p.Count || used > p.Recycle*uint64(p.Count) { //nolint:gosec // positive
		n := dispensable(p.idle)
		w := p.idle[n]
		used -= w.memory
		w.kill()
		p.tell(w, Replaced, "others are idle, too, and were used later, or have fewer beside them of their address")
		p.idle = slices.Delete(p.idle, n, n+1)
	}
}

// dispensable returns the index of the idle worker that was used longest ago, of the address that
// has the most: many callers of one address do not end the worker of a caller elsewhere.
func dispensable(idle []*process) int {
	of, most := map[string]int{}, 0
	for _, w := range idle {
		of[w.address]++
		most = max(most, of[w.address])
	}
	return slices.IndexFunc(idle, func(w *process) bool { return of[w.address] == most })
}

// cancelGrace is the time for a worker to end a canceled request, before the worker is
// ended.
const cancelGrace = time.Second

// do has one worker do a job. It releases or ends the worker.
func (p *Pool) do(ctx context.Context, w *process, r *Request) (job.Outcome, *Failure) {
	number, copied, f := p.begin(w, r)
	if f != nil {
		return job.Outcome{}, f
	}
	work := p.newWork(w)
	defer work.end()
	for f == nil {
		select {
		case d := <-w.done:
			return p.finish(w, &d, copied())
		case <-w.ended:
			_ = copied() // a part of a report is no report
			reason := w.died().Error()
			p.tell(w, Died, reason)
			return job.Outcome{}, &Failure{Crashed, "the process that read it died: " + reason}
		case <-ctx.Done():
			f = &Failure{Canceled, context.Cause(ctx).Error()}
		case <-work.limit.C:
			f = work.over()
		case <-work.slow.C:
			work.slow.Reset(slowAfter)
			p.lower(w, work)
		}
	}
	p.stop(w, number, f.Detail)
	_ = copied() // likewise
	return job.Outcome{}, f
}

// work measures the time that a worker has for a run. Waiting for the caller's answers does
// not count.
type work struct {
	process *process
	most    time.Duration
	began   time.Time
	waited  time.Duration // by the process, in earlier runs
	limit   *time.Timer   // the earliest end of the time
	slow    *time.Timer   // when the priority may become low
}

func (p *Pool) newWork(w *process) *work {
	most := time.Duration(p.time.Load())
	return &work{w, most, time.Now(), w.waits.total(), time.NewTimer(most), time.NewTimer(slowAfter)}
}

func (w *work) end() {
	w.limit.Stop()
	w.slow.Stop()
}

// took returns the time that the process has worked.
func (w *work) took() time.Duration {
	return time.Since(w.began) - w.process.waits.total() + w.waited
}

// over returns the failure of work that took too long; nil: there is time left.
func (w *work) over() *Failure {
	left := w.most - w.took()
	if left <= 0 {
		return &Failure{TimedOut, fmt.Sprintf("it took longer than %v", w.most)}
	}
	w.limit.Reset(left)
	return nil
}

// begin sends a run. The worker's report is copied to the output; copied waits for the end of
// copying, and returns its error.
func (p *Pool) begin(w *process, r *Request) (number uint64, copied func() error, f *Failure) {
	reads, writes, err := os.Pipe()
	if err == nil {
		_, err = r.Input.Seek(0, io.SeekStart)
	}
	if err != nil {
		p.release(w)
		return 0, nil, &Failure{Crashed, err.Error()}
	}
	w.number++
	w.fetches.Store(0)
	err = w.conn.send(toWorker{Run: &run{w.number, r.Name, *r.Job, w.changes.take()}}, r.Input, writes)
	_ = writes.Close()
	if err != nil {
		_ = reads.Close()
		w.kill()
		<-w.ended
		p.tell(w, Died, w.died().Error())
		return 0, nil, &Failure{Crashed, fmt.Sprintf("the process that would read it died: %v", err)}
	}
	ended := make(chan error, 1)
	go func() {
		defer reads.Close()
		most := p.answer.Load()
		n, err := io.Copy(r.Output, io.LimitReader(reads, most+1))
		if err == nil && n > most {
			err = fmt.Errorf("the answer has more than %d bytes", most)
		}
		ended <- err
	}()
	return w.number, func() error { return <-ended }, nil
}

// finish handles the end of a run.
func (p *Pool) finish(w *process, d *done, copied error) (job.Outcome, *Failure) {
	switch {
	case d.Failure != nil && d.Failure.Kind == Crashed:
		w.kill() // state shared between requests may be half changed
		p.tell(w, Died, d.Failure.Detail)
	case d.Outcome.Used.PluginFailed:
		w.kill() // it would not walk anything that needs the plugin
		p.tell(w, Replaced, "a plugin was given up")
	default:
		p.release(w)
	}
	switch {
	case errors.Is(copied, syscall.ENOSPC), errors.Is(copied, syscall.EDQUOT):
		return d.Outcome, &Failure{NoRoom, copied.Error()}
	case copied != nil:
		return d.Outcome, &Failure{TooLarge, copied.Error()}
	}
	return d.Outcome, d.Failure
}

// stop cancels a run, and ends the worker if that does not help.
func (p *Pool) stop(w *process, number uint64, reason string) {
	if w.conn.send(toWorker{Cancel: number}) == nil {
		grace := time.NewTimer(cancelGrace)
		defer grace.Stop()
		select {
		case <-w.done:
			p.release(w)
			return
		case <-w.ended:
		case <-grace.C:
		}
	}
	w.kill()
	<-w.ended
	p.tell(w, Stopped, reason)
}

// Close ends all workers and their jobs, and waits for their end.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed, p.idle = true, nil
	live := slices.Collect(maps.Keys(p.live))
	p.mu.Unlock()
	for _, w := range live {
		w.kill()
	}
	for _, w := range live {
		<-w.ended
	}
}

// add adds a live worker. ok is false where the pool is closed.
func (p *Pool) add(w *process) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.live[w] = true
	return true
}

// Forget has workers look anew for the files of a build ID, from their next requests on: there are
// others by now.
func (p *Pool) Forget(id []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.live {
		w.changes.add(id)
	}
}

// remove removes a dead worker.
func (p *Pool) remove(w *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.live, w)
}
