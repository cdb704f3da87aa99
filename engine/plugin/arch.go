// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/sdk"
)

// caller makes the calls of one plugin, wherever it runs. Each returns a validated answer,
// or a *Failure, or an error that wraps ctx's. Calls may be made concurrently.
//
// The first call starts the process where there is one. A call waits for a start that is
// delayed; then it has the call deadline. If the process dies during the call, it is made
// once more, by a new process.
type caller struct {
	plugin    string // the name of the plugin
	origin    string // "bundled", "in-process", or the path of the executable
	transport transport
	valid     func() error // validates the description; nil where that is done
	refused   *refusals
}

// check validates the description.
func (c *caller) check() error {
	if c.valid == nil {
		return nil
	}
	return c.valid()
}

// Arch is one architecture. It has the calls of sdk.Architecture, which are documented
// there; see caller for how they are made.
type Arch struct {
	caller
	desc     *sdk.Description
	replaces string // the name of the plugin whose place it takes; "": none
}

// Prepare begins to start the process, where there is one and none runs, for calls that
// are about to come. It waits for nothing; the first call returns its error.
func (c *caller) Prepare() { c.transport.prepare() }

// Name is the architecture's name, the `arch` of the output.
func (a *Arch) Name() string { return a.desc.Name }

// Description has the constant facts of the architecture. It must not be changed.
func (a *Arch) Description() *sdk.Description { return a.desc }

// Origin is where the architecture comes from: "bundled", "in-process", or the
// path of a vendor's executable.
func (c *caller) Origin() string { return c.origin }

// Generation is the number of processes that have been started for the plugin so
// far. A plugin's answers about handles (code objects) stay valid after its process has
// ended. Its own memory of them does not: see sdk.ErrObjectNotOpen.
func (c *caller) Generation() uint64 { return c.transport.starts() }

// PID is the id of the running process; 0: none runs, or none is needed.
func (c *caller) PID() int { return c.transport.pid() }

// Problems lists the events of the plugin so far that the user should know, each a
// sentence: deaths and restarts, starts that failed, parts of the sandbox that this
// system lacks.
func (c *caller) Problems() []string { return c.transport.problems() }

// answer can be checked against the description and its request.
type answer[A, D, R any] interface {
	*A
	Validate(*D, *R) error
}

// ask makes a call and validates its answer. A request whose answer was refused is not
// made again.
func ask[A, D, R any, P answer[A, D, R]](ctx context.Context, c *caller, d *D, call string, req *R,
	f func(context.Context, peer) (*A, error)) (*A, error) {
	if err := c.refused.find(call, req); err != nil {
		return nil, err
	}
	var valid *A
	isRefused := false
	refuse := func(err error) error {
		isRefused = true
		return &nonsense{err}
	}
	err := c.transport.do(ctx, call, func(ctx context.Context, p peer) error {
		isRefused = false
		got, err := f(ctx, p)
		switch {
		case errors.Is(err, sdk.ErrMalformed):
			return refuse(err)
		case err != nil:
			return err
		case got == nil:
			return refuse(errors.New("no answer and no error"))
		}
		if err := P(got).Validate(d, req); err != nil {
			return refuse(err)
		}
		valid = got
		return nil
	})
	var failure *Failure
	if isRefused && errors.As(err, &failure) {
		c.refused.add(call, req, failure)
	}
	if err != nil {
		return nil, err
	}
	return valid, nil
}

// engine is the engine that calls of the architecture get.
func (a *Arch) engine(e sdk.Engine) sdk.Engine {
	if a.desc.NoEngine {
		return nil
	}
	return e
}

// OpenTarget asks for the contents of a vendor's own dump format.
func (a *Arch) OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	return ask(ctx, &a.caller, a.desc, "OpenTarget", req, func(ctx context.Context, p peer) (*sdk.OpenTargetAnswer, error) {
		return p.withBase(a.desc).OpenTarget(ctx, a.engine(e), req)
	})
}

// OpenObject asks for the peculiarities of a code object.
func (a *Arch) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return ask(ctx, &a.caller, a.desc, "OpenObject", req, func(ctx context.Context, p peer) (*sdk.OpenObjectAnswer, error) {
		return p.withBase(a.desc).OpenObject(ctx, a.engine(e), req)
	})
}

// FrameRules asks for rows of functions that have none.
func (a *Arch) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return ask(ctx, &a.caller, a.desc, "FrameRules", req, func(ctx context.Context, p peer) (*sdk.FrameRulesAnswer, error) {
		return p.withBase(a.desc).FrameRules(ctx, a.engine(e), req)
	})
}

// BindThreads asks about threads. Where an architecture does not implement it, the answer
// follows from its description.
func (a *Arch) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	return ask(ctx, &a.caller, a.desc, "BindThreads", req, func(ctx context.Context, p peer) (*sdk.BindThreadsAnswer, error) {
		return p.withBase(a.desc).BindThreads(ctx, a.engine(e), req)
	})
}

// Translate asks for an expression that yields the location of an address in
// an opaque range.
func (a *Arch) Translate(ctx context.Context, e sdk.Engine, req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
	return ask(ctx, &a.caller, a.desc, "Translate", req, func(ctx context.Context, p peer) (*sdk.TranslateAnswer, error) {
		return p.withBase(a.desc).Translate(ctx, a.engine(e), req)
	})
}

// ClassifyReturn asks whether addresses are return addresses.
func (a *Arch) ClassifyReturn(ctx context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return ask(ctx, &a.caller, a.desc, "ClassifyReturn", req, func(ctx context.Context, p peer) (*sdk.ClassifyReturnAnswer, error) {
		return p.withBase(a.desc).ClassifyReturn(ctx, req)
	})
}

// Disassemble asks for instructions.
func (a *Arch) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	return ask(ctx, &a.caller, a.desc, "Disassemble", req, func(ctx context.Context, p peer) (*sdk.DisassembleAnswer, error) {
		return p.withBase(a.desc).Disassemble(ctx, req)
	})
}
