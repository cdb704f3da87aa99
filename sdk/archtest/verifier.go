// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"github.com/unwindd/unwindd/sdk"
)

// A verifier is one run of the kit.
type verifier struct {
	ctx      context.Context
	arch     sdk.Architecture
	code     []byte
	deadline time.Duration

	check    string
	desc     *sdk.Description // nil until it is known to be valid
	findings []Finding
}

func (v *verifier) find(severity Severity, fix, format string, args ...any) {
	f := Finding{Check: v.check, Severity: severity, Detail: fmt.Sprintf(format, args...), Fix: fix}
	for _, old := range v.findings {
		if old == f {
			return
		}
	}
	v.findings = append(v.findings, f)
}

// The outcomes of a call that are wrong whatever was asked.
type panicked struct {
	value any
	stack string
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

var errLate = errors.New("the call did not return")

// guarded makes a call in a goroutine of its own. A panic is an error; so is a
// call that goes on long after its context has ended, which is then left behind.
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
				o.err = &panicked{r, string(debug.Stack())}
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

// ask makes one call with the kit's deadline, and checks its answer against
// its request. It finds what is wrong in any case: a panic, a call that hangs,
// an answer that does not stand. ok says that there is an answer that does;
// an error is no finding, since an architecture may refuse anything.
func ask[A any](v *verifier, name, what string, f func(context.Context) (*A, error), validate func(*A) error) (answer *A, ok bool) {
	ctx, cancel := context.WithTimeout(v.ctx, v.deadline)
	defer cancel()
	answer, err := guarded(ctx, v.deadline+grace, f)
	if err != nil {
		v.wrong(name, what, err)
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

// grace is how long after its context has ended a call may still return.
const grace = time.Second

// wrong finds what an error shows, and says whether it shows anything.
func (v *verifier) wrong(name, what string, err error) bool {
	var p *panicked
	var remote *sdk.RemoteError
	switch {
	case v.ctx.Err() != nil:
		return false
	case errors.As(err, &p):
		v.find(Error, "Check lengths and numbers of the request before using them; answer an error instead.",
			"%s of %s: panic: %v, at %s", name, what, p.value, where(p.stack))
	case errors.As(err, &remote) && remote.Panicked:
		v.find(Error, "Check lengths and numbers of the request before using them; answer an error instead.",
			"%s of %s: panic: %s (the plugin's log has the stack)", name, what, remote.Message)
	case errors.As(err, &remote):
		return false
	case errors.Is(err, errLate):
		v.find(Error, "Return when the context of the call ends; pass it on to every read from the engine.",
			"%s of %s: no return %v after its deadline of %v", name, what, grace, v.deadline)
	case errors.Is(err, context.DeadlineExceeded):
		v.find(Error, "Answer in time: the engine gives up and restarts the plugin.",
			"%s of %s: no answer within %v", name, what, v.deadline)
	case errors.Is(err, sdk.ErrMalformed):
		v.find(Error, "Write messages as arch.proto says; package sdk does so.", "%s of %s: %v", name, what, err)
	default:
		return false
	}
	return true
}

// where is the innermost line of a stack that is not the runtime's or the kit's.
func where(stack string) string {
	_, after, _ := strings.Cut(stack, "panic(")
	lines := strings.Split(after, "\n")
	for i := 2; i+1 < len(lines); i += 2 {
		if !strings.HasPrefix(lines[i], "runtime.") && !strings.HasPrefix(lines[i], "panic(") {
			place := strings.TrimSpace(lines[i+1])
			place, _, _ = strings.Cut(place, " +0x")
			return place
		}
	}
	return "an unknown place"
}
