// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/unwindd/unwindd/internal/panics"
)

// transport makes the calls of one plugin, wherever it runs.
type transport interface {
	// do calls f with the plugin. f returns a *nonsense for an invalid answer.
	// Errors are *Failure, or wrap the context's.
	do(ctx context.Context, call string, f func(context.Context, peer) error) error
	prepare()           // starts the process for do
	pid() int           // of the running process; 0: none
	starts() uint64     // the number of processes started
	problems() []string // so far
	close()
}

// inProcess is the transport of a plugin in this process. It cannot be
// killed, so it is trusted to end with its context; its answers are validated
// like all others.
type inProcess struct {
	name string
	peer peer
}

func (p *inProcess) do(ctx context.Context, call string, f func(context.Context, peer) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &Failure{Plugin: p.name, Call: call, Reason: "panicked: " + printable(panics.Line(fmt.Sprint(r), panics.Place())),
				Err: fmt.Errorf("panic: %v\n%s", r, debug.Stack()), isAnswered: true}
		}
	}()
	return callFailure(ctx, p.name, call, f(ctx, p.peer))
}

// callFailure is the error of a call by a transport without a process of its own. err is
// the call's error.
func callFailure(ctx context.Context, name, call string, err error) error {
	var bad *nonsense
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("plugin %s: %s: %w", name, call, ctx.Err())
	case errors.As(err, &bad):
		return nonsenseFailure(name, call, bad)
	}
	return &Failure{Plugin: name, Call: call, Reason: clip(printable(err.Error())), Err: err, isAnswered: true}
}

func (p *inProcess) prepare()           {}
func (p *inProcess) pid() int           { return 0 }
func (p *inProcess) starts() uint64     { return 0 }
func (p *inProcess) problems() []string { return nil }
func (p *inProcess) close()             {}
