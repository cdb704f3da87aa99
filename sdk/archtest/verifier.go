// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/internal/panics"
	"github.com/unwindd/unwindd/sdk"
)

// verifier is one run of the kit with an architecture.
type verifier struct {
	*session
	arch    sdk.Architecture
	code    []byte
	samples []Object
	targets []Target
	desc    *sdk.Description // nil until it is known to be valid
	opaque  []opaqueThread   // threads that were bound with opaque ranges
	zeros   *zeros           // evaluates expressions of answers; nil until there are some
}

// session makes calls, whatever is called, and keeps the findings.
type session struct {
	ctx      context.Context
	deadline time.Duration

	check    string
	findings []Finding
	refusal  error                // the error that the last call returned instead of an answer
	failures map[string]int       // calls that hung, or that ended the process, by name
	later    map[string][]Finding // of checks that report findings of other checks
}

func newSession(ctx context.Context, deadline time.Duration) *session {
	return &session{ctx: ctx, deadline: deadline, failures: map[string]int{}, later: map[string][]Finding{}}
}

func (v *session) find(severity Severity, fix, format string, args ...any) {
	f := Finding{Check: v.check, Severity: severity, Detail: fmt.Sprintf(format, args...), Fix: fix}
	if !slices.Contains(v.findings, f) {
		v.findings = append(v.findings, f)
	}
}

// maxLater is how many findings of one kind are kept for a check that comes later.
const maxLater = 4

// findLater keeps an error for a check that reports findings of other checks.
func (v *session) findLater(check, fix, format string, args ...any) {
	f := Finding{Check: check, Severity: Error, Detail: fmt.Sprintf(format, args...), Fix: fix}
	if list := v.later[check]; len(list) < maxLater && !slices.Contains(list, f) {
		v.later[check] = append(list, f)
	}
}

// report reports the findings of other checks that were kept for the check.
func (v *session) report() { v.findings = append(v.findings, v.later[v.check]...) }

// The outcomes of a call that are wrong for every request.
type panicked struct {
	value any
	place string
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

var errLate = errors.New("the call did not return")

// ProcessError is the reason why a call has no answer, for an architecture in a
// process of its own that its caller watches.
type ProcessError struct {
	// How is how the process ended, as "exited with status 2: panic: boom, at isa.decode
	// (decode.go:12)", or the resources that it had used when the call was ended.
	How string
	// IsLate is true where the process was ended because its answer did not come.
	IsLate bool
}

func (e *ProcessError) Error() string { return "its process " + e.How }

// guarded makes a call in a goroutine of its own. A panic is an error; so is a
// call that goes on long after its context has ended, which is then abandoned.
func guarded[A any](ctx context.Context, limit time.Duration, f func(context.Context) (A, error)) (A, error) {
	type outcome struct {
		answer A
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o.err = &panicked{r, panics.Place()}
			}
			done <- o
		}()
		o.answer, o.err = f(ctx)
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.answer, o.err
	case <-timer.C:
		var none A
		return none, errLate
	}
}

// ask makes one call with the kit's deadline, and checks its answer against its
// request. A panic, a call that hangs and an invalid answer are findings. ok is true for
// a valid answer; an error is no finding, since an architecture may refuse anything.
//
// A call that costs its deadline, or the process, again and again is not made any
// more: the rest of the checks would find the same, and take minutes.
func ask[A any](v *session, name, what string, f func(context.Context) (*A, error), validate func(*A) error) (answer *A, ok bool) {
	v.refusal = nil
	if v.failures[name] >= maxFailures || v.ctx.Err() != nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(v.ctx, v.deadline)
	defer cancel()
	answer, err := guarded(ctx, v.deadline+grace, f)
	if err != nil {
		if !v.wrong(name, what, err) {
			v.refusal = err
			v.confined(name, what, err)
		}
		return nil, false
	}
	if answer == nil {
		v.find(Error, "Answer an error where there is no answer.", "%s of %s: neither an answer nor an error", name, what)
		return nil, false
	}
	if err := validate(answer); err != nil {
		v.find(Error, "The engine refuses such an answer and restarts the plugin. Mend the field that the detail names.",
			"%s of %s: %v", name, what, err)
		return nil, false
	}
	return answer, true
}

// maxFailures is how often a call may hang or end the process.
const maxFailures = 2

// unanswered adds a finding for a sensible call that was answered by an error.
func (v *session) unanswered(severity Severity, name, what string) {
	if v.refusal == nil || errors.Is(v.refusal, sdk.ErrNotImplemented) {
		return
	}
	fix := "Answer what is known, and say in a reason or a problem what is not: an error ends everything that needed the answer."
	if strings.Contains(v.refusal.Error(), name+"Answer.") { // package sdk refused to send it
		fix = "Mend the field of the answer that the detail names: it cannot be sent."
	}
	v.find(severity, fix, "%s of %s: an error: %v", name, what, v.refusal)
}

// confined adds a finding for an error about an action that a plugin is not allowed.
func (v *session) confined(name, what string, err error) {
	text := strings.ToLower(err.Error())
	for _, denied := range []string{"operation not permitted", "permission denied"} {
		if strings.Contains(text, denied) {
			v.find(Error, "A plugin runs confined: it starts no process and opens no files or connections. Put what it needs into the executable.",
				"%s of %s: %v", name, what, err)
		}
	}
}

// offer returns the engine for a call: none where the architecture needs none.
func (v *verifier) offer(e sdk.Engine) sdk.Engine {
	if v.desc.NoEngine {
		return nil
	}
	return e
}

// grace is how long after its context has ended a call may still return.
const grace = time.Second

// wrong adds the findings of an error, and reports whether there are any.
func (v *session) wrong(name, what string, err error) bool {
	const (
		mend = "Check lengths and numbers of the request before using them; answer an error instead."
		slow = "Answer in time: the engine gives up and restarts the plugin."
	)
	var p *panicked
	var remote *sdk.RemoteError
	var process *ProcessError
	switch {
	case v.ctx.Err() != nil:
		return false
	case errors.As(err, &process) && process.IsLate:
		v.failures[name]++
		v.find(Error, slow, "%s of %s: no answer within %s", name, what, process.How)
	case errors.As(err, &process):
		v.failures[name]++
		v.find(Error, "Mend what ends the process. A call that cannot be answered answers an error, and a panic is best recovered in the call: both cost one answer, not all that are under way.",
			"%s of %s: its process %s", name, what, process.How)
	case errors.As(err, &p):
		v.find(Error, mend, "%s of %s: panic: %s", name, what, panics.Line(fmt.Sprint(p.value), p.place))
	case errors.As(err, &remote) && remote.Panicked:
		v.find(Error, mend, "%s of %s: panic: %s", name, what, panics.Line(remote.Message, remote.Place))
	case errors.As(err, &remote):
		return false
	case errors.Is(err, errLate):
		v.failures[name]++
		v.find(Error, "Return when the context of the call ends; pass it on to every read from the engine.",
			"%s of %s: no return %v after its deadline of %v", name, what, grace, v.deadline)
	case errors.Is(err, context.DeadlineExceeded):
		v.failures[name]++
		v.find(Error, slow,
			"%s of %s: no answer within %v", name, what, v.deadline)
	case errors.Is(err, sdk.ErrMalformed):
		v.find(Error, "Write messages as arch.proto says; package sdk does so.", "%s of %s: %v", name, what, err)
	default:
		return false
	}
	return true
}
