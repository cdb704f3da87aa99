// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/unwindd/unwindd/sdk"
)

// Bounds of restarts of a plugin.
const (
	firstBackOff = 50 * time.Millisecond
	maxBackOff   = 5 * time.Second
	// healthyTime is the time that a process has to live, and answer, for earlier
	// failures to be forgotten.
	healthyTime = time.Second
	// maxInARow is the number of failed starts and failed calls in a row after which a
	// plugin is disabled. A call has failed when the process died of it twice, or hung.
	// All calls that fail with the same process count once.
	maxInARow = 5
	// hangCounts is the number of failures that a call counts for that hung until the
	// deadline on the clock: two of them cost the user more time than five other
	// failures.
	hangCounts = 3
	// maxUnhealthy is the number of failures after which a plugin is disabled where calls
	// succeed in between, but no process lives for healthyTime: a plugin must not cost
	// its deadline again and again.
	maxUnhealthy = 12
	// minStart is the least time that a start has.
	minStart = 100 * time.Millisecond
	// deathGrace is the time to wait for the death of a process whose connection broke.
	deathGrace = time.Second
	// deadlineSkew is the time by which a process may see a deadline earlier than this
	// one.
	deadlineSkew = 250 * time.Millisecond
)

// errClosed is the reason of calls after, or cut short by, Close.
var errClosed = errors.New("the plugins were closed")

// supervisor keeps the process of one plugin running, on demand. Calls may be
// concurrent: they share the process.
type supervisor struct {
	launch    launch
	callLimit deadline
	// check asks a process that just started for its description and refuses an
	// unexpected one.
	check func(context.Context, peer) error

	ctx    context.Context // done when the supervisor is closed
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	events eventLog

	mu         sync.Mutex
	current    *process
	starting   *starting
	startedAt  time.Time // of current
	notBefore  time.Time // of the next start
	inARow     int
	unhealthy  int
	history    []string // the failures that inARow and unhealthy count
	disabled   *Failure
	startTime  time.Duration // that starts in a row have failed after
	generation uint64
	failures   uint64
	calls      map[string]int // under way in current
	killing    string         // why this process is killing current; "": it is not
}

// starting is one start that calls wait for.
type starting struct {
	done    chan struct{}
	process *process
	failure *Failure
}

func newSupervisor(l launch, callLimit deadline, check func(context.Context, peer) error) *supervisor {
	s := &supervisor{launch: l, callLimit: callLimit, check: check, calls: map[string]int{}}
	s.events.plugin = l.name
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// do makes a call: f with the peer in the running process, under the call
// deadline. No call changes anything, so a call during which the process died is made
// once more. f returns a *nonsense for an invalid answer.
func (s *supervisor) do(ctx context.Context, call string, f func(context.Context, peer) error) error {
	for attempt := 1; ; attempt++ {
		p, err := s.acquire(ctx, call)
		if err != nil {
			return err
		}
		died, err := s.try(ctx, p, call, f)
		if died == "" {
			return err
		}
		if attempt == 1 && ctx.Err() == nil && s.ctx.Err() == nil {
			continue
		}
		f := &Failure{Plugin: s.launch.name, Call: call, Reason: died, Err: err}
		switch {
		case s.ctx.Err() != nil:
			f.Reason, f.Err = errClosed.Error(), errClosed
		case attempt > 1:
			f.Reason = "its process " + died + ", and when asked once more again"
			s.failed(p, fmt.Sprintf("%s during %s, twice", died, call), 1)
		default:
			f.Reason = "its process " + died
		}
		return f
	}
}

// try makes a call once. died describes the end of the process during it, "" if it did
// not end; then err is the call's.
func (s *supervisor) try(ctx context.Context, p *process, call string, f func(context.Context, peer) error) (died string, err error) {
	began := time.Now()
	limited, release := s.callLimit.limit(ctx, p.clock.begin())
	defer p.clock.end()
	defer release()
	s.begin(p, call)
	err = f(limited, p.peer)
	if err != nil && status.Code(err) == codes.Unavailable && limited.Err() == nil && !p.child.waitExit(deathGrace) {
		s.kill(p, "closed its connection and was killed")
	}
	dead := p.hasExited()
	if dead || p.child.isKilledByUs() {
		<-p.child.exited
		dead = true
		s.retire(p) // while the call still counts as under way
	}
	s.end(p, call)

	var bad *nonsense
	switch {
	case err == nil:
		s.succeeded(p)
		s.logIgnored(p)
		return "", nil
	case errors.As(err, &bad):
		return "", nonsenseFailure(s.launch.name, call, bad)
	case errors.Is(ctx.Err(), context.Canceled):
		return "", fmt.Errorf("plugin %s: %s: %w", s.launch.name, call, ctx.Err())
	case isLate(limited, err) && !dead:
		took := s.callLimit.passed(limited)
		if ctx.Err() != nil {
			took = time.Since(began).Round(time.Millisecond).String() // the caller had less time left
		}
		reason := fmt.Sprintf("no answer within %s", took)
		s.kill(p, fmt.Sprintf("gave no answer to %s within %s and was killed", call, took))
		<-p.child.exited
		s.retire(p)
		counts := 1
		if time.Since(began) >= s.callLimit.wall {
			counts = hangCounts
		}
		s.failed(p, reason+" to "+call, counts)
		return "", &Failure{Plugin: s.launch.name, Call: call, Reason: reason, Err: context.DeadlineExceeded}
	case dead:
		return p.died(), err
	}
	return "", &Failure{Plugin: s.launch.name, Call: call, Reason: clip(printable(err.Error())), Err: err, isAnswered: true}
}

// logIgnored logs the members of a newer plugin's answers that were ignored, once for each that
// is new.
func (s *supervisor) logIgnored(p *process) {
	var list []string
	for _, side := range []any{p.peer.arch, p.peer.runtime} { // a process is one of them
		if newer, ok := side.(interface{ Ignored() []string }); ok {
			list = append(list, newer.Ignored()...)
		}
	}
	if n := int32(len(list)); n > 0 && p.ignored.Swap(n) != n { //nolint:gosec // at most 128
		s.launch.logger.Debug("members of its answers are ignored: the plugin knows more of the protocol", "members", strings.Join(list, ", "), "feature", sdk.Feature)
	}
}

// isLate reports whether a call ended because its time was over. The process knows the
// deadline too, and may return that error a moment before.
func isLate(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < deadlineSkew && errors.Is(err, context.DeadlineExceeded)
}

// acquire returns the running process, started now where there is none. It waits for a
// start that is under way or delayed, as long as ctx lasts.
func (s *supervisor) acquire(ctx context.Context, call string) (*process, error) {
	for {
		s.mu.Lock()
		p := s.current
		switch {
		case s.ctx.Err() != nil:
			s.mu.Unlock()
			return nil, &Failure{Plugin: s.launch.name, Call: call, Reason: errClosed.Error(), Err: errClosed}
		case s.disabled != nil:
			f := *s.disabled
			s.mu.Unlock()
			f.Call = call
			return nil, &f
		case p != nil && !p.hasExited():
			s.mu.Unlock()
			return p, nil
		case p != nil:
			s.mu.Unlock()
			s.retire(p)
			continue
		}
		st := s.begun()
		s.mu.Unlock()
		select {
		case <-st.done:
			if st.failure != nil {
				f := *st.failure
				return nil, &f
			}
		case <-ctx.Done():
			return nil, fmt.Errorf("plugin %s: %s: waiting for its start: %w", s.launch.name, call, ctx.Err())
		}
	}
}

// begun is the start that is under way, begun now where there is none. The mutex is
// locked.
func (s *supervisor) begun() *starting {
	if s.starting == nil {
		s.starting = &starting{done: make(chan struct{})}
		s.tasks.Add(1)
		go s.start(s.starting)
	}
	return s.starting
}

// prepare begins a start where a call would.
func (s *supervisor) prepare() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() == nil && s.disabled == nil && s.current == nil {
		s.begun()
	}
}

// start makes one start. It belongs to no call, so it survives a caller that gives up,
// and serves the next one.
func (s *supervisor) start(st *starting) {
	defer s.tasks.Done()
	defer close(st.done)
	s.mu.Lock()
	wait := time.Until(s.notBefore)
	s.mu.Unlock()
	if wait > 0 {
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-s.ctx.Done():
			t.Stop()
		}
	}
	began := time.Now()
	p, err := s.launchChecked()

	s.mu.Lock()
	s.starting = nil
	if err == nil && s.ctx.Err() != nil {
		err = errClosed
	}
	if err == nil {
		s.current, s.startedAt, s.killing = p, time.Now(), ""
		s.calls = map[string]int{}
		s.startTime = 0
		s.generation++
		s.tasks.Add(1)
		go s.watch(p)
		st.process = p
		s.mu.Unlock()
		s.events.restarted()
		for _, m := range p.child.sandbox().Missing {
			s.events.once("runs with less of a sandbox: " + clip(printable(m)))
		}
		return
	}
	s.mu.Unlock()
	if p != nil {
		p.stop()
	}
	st.failure = &Failure{Plugin: s.launch.name, Call: startCall, Reason: err.Error(), Err: err}
	if !errors.Is(err, errClosed) {
		s.events.add(notStarted + strings.TrimPrefix(err.Error(), notStarted))
		s.failed(nil, "start: "+err.Error(), s.countStart(time.Since(began)))
	}
}

// countStart counts a start that failed after some time, and returns the number of failures that
// it counts for: all starts in a row have the time of one.
func (s *supervisor) countStart(took time.Duration) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.startTime += took; s.startTime >= s.launch.limit.wall {
		return maxInARow
	}
	return 1
}

// startLimit is the deadline of the next start.
func (s *supervisor) startLimit() deadline {
	s.mu.Lock()
	defer s.mu.Unlock()
	limit := s.launch.limit
	limit.wall = max(limit.wall-s.startTime, minStart)
	return limit
}

// launchChecked starts a process and asks for its description.
func (s *supervisor) launchChecked() (*process, error) {
	c := newChild(s.launch.memory)
	l := s.launch
	l.limit = s.startLimit()
	ctx, release := l.limit.limit(s.ctx, c.processorTime)
	defer release()
	defer l.announce(c)()
	p, err := l.start(ctx, c)
	if err != nil {
		return nil, err
	}
	c.await("its description")
	err = s.check(ctx, p.peer)
	var bad *nonsense
	switch {
	case err == nil:
		return p, nil
	case errors.As(err, &bad):
		err = fmt.Errorf("its description is nonsense: %s", clip(printable(bad.Error())))
	case s.ctx.Err() != nil:
		err = errClosed
	case isLate(ctx, err):
		err = fmt.Errorf("gave no description within %s of its start%s", l.limit.passed(ctx), p.lastWords())
	case p.child.waitExit(deathGrace):
		err = fmt.Errorf("%s when asked for its description%s", p.child.died(), p.lastWords())
	default:
		err = fmt.Errorf("gave no description: %s", clip(printable(err.Error())))
	}
	return p, err
}

// watch records the death of a process between calls.
func (s *supervisor) watch(p *process) {
	defer s.tasks.Done()
	<-p.child.exited
	s.retire(p)
	p.stop()
}

// retire takes a dead process out of use and records how it died.
func (s *supervisor) retire(p *process) {
	died := p.died()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != p {
		return
	}
	s.current = nil
	s.notBefore = time.Now().Add(s.backOff())
	if s.ctx.Err() != nil {
		return
	}
	how := s.killing
	if how == "" {
		var during []string
		for call, n := range s.calls {
			if n > 0 {
				during = append(during, call)
			}
		}
		slices.Sort(during)
		how = died + " between calls"
		if len(during) > 0 {
			how = died + " during " + strings.Join(during, ", ")
		}
	}
	s.events.died(fmt.Sprintf("(pid %d) %s", p.child.PID(), how))
}

// backOff is the time that the next start has to wait. The mutex is locked.
func (s *supervisor) backOff() time.Duration {
	return min(firstBackOff<<min(s.unhealthy, 16), maxBackOff)
}

// failed adds counts to the failures, and disables the plugin when there were too many. p
// is the process that a call failed with; nil for a failed start. Calls that are under
// way in one process end together, and count once.
func (s *supervisor) failed(p *process, what string, counts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p != nil {
		if p.isBlamed {
			return
		}
		p.isBlamed = true
	}
	s.failures++
	s.inARow += counts
	s.unhealthy += counts
	s.history = append(s.history, what)
	s.notBefore = time.Now().Add(s.backOff())
	if s.disabled != nil || (s.inARow < maxInARow && s.unhealthy < maxUnhealthy) {
		return
	}
	// The history often repeats itself.
	var told []string
	for _, h := range s.history {
		if !slices.Contains(told, h) {
			told = append(told, h)
		}
	}
	reason := fmt.Sprintf("given up after %d failures: %s", len(s.history), clip(strings.Join(told, "; ")))
	if len(s.history) == 1 {
		reason = "given up: " + clip(told[0])
	}
	s.disabled = &Failure{Plugin: s.launch.name, Reason: reason}
	s.events.add("is " + reason)
}

// succeeded ends a row of failures, and forgets all failures when the process is healthy.
func (s *supervisor) succeeded(p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inARow = 0
	if s.current == p && time.Since(s.startedAt) >= healthyTime {
		s.unhealthy, s.history = 0, nil
	}
}

func (s *supervisor) begin(p *process, call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == p {
		s.calls[call]++
	}
}

func (s *supervisor) end(p *process, call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == p {
		s.calls[call]--
	}
}

// kill kills a process for a reason, which becomes the description of its death.
func (s *supervisor) kill(p *process, why string) {
	s.mu.Lock()
	if s.current == p && s.killing == "" {
		s.killing = why
	}
	s.mu.Unlock()
	_ = p.child.Kill(s.ctx)
}

// close ends the process and everything around it.
func (s *supervisor) close() {
	s.cancel()
	s.mu.Lock()
	p := s.current
	s.mu.Unlock()
	if p != nil {
		p.stop()
	}
	s.tasks.Wait()
}

// rest ends the process without closing: the next call starts another one.
func (s *supervisor) rest() {
	s.mu.Lock()
	p := s.current
	s.current = nil
	s.mu.Unlock()
	if p != nil {
		p.stop()
	}
}

func (s *supervisor) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.hasExited() {
		return 0
	}
	return s.current.child.PID()
}

func (s *supervisor) starts() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}

func (s *supervisor) problems() []string { return s.events.list() }

// hasExited reports whether the process is dead.
func (p *process) hasExited() bool {
	select {
	case <-p.child.exited:
		return true
	default:
		return false
	}
}
