// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"errors"

	"github.com/unwindd/unwindd/sdk"
)

// Arch is one architecture, wherever it runs. Its calls may be made concurrently; each
// returns a validated answer, or a *Failure, or an error that wraps ctx's. They are the
// calls of sdk.Architecture, and are documented there.
//
// The first call starts the process where there is one. A call waits for a start that is
// delayed; then it has the call deadline. If the process dies during the call, it is made
// once more, by a new process.
type Arch struct {
	plugin    string // the name of the plugin
	origin    string // "bundled", "in-process", or the path of the executable
	replaces  string // the name of the plugin whose place it takes; "": none
	desc      *sdk.Description
	transport transport
	valid     func() error // validates desc; nil where that is done
	refused   refusals
}

// check validates the description.
func (a *Arch) check() error {
	if a.valid == nil {
		return nil
	}
	return a.valid()
}

// Prepare begins to start the process, where there is one and none runs, for calls that
// are about to come. It waits for nothing; the first call returns its error.
func (a *Arch) Prepare() { a.transport.prepare() }

// Name is the architecture's name, the `arch` of the output.
func (a *Arch) Name() string { return a.desc.Name }

// Description has the constant facts of the architecture. It must not be changed.
func (a *Arch) Description() *sdk.Description { return a.desc }

// Origin is where the architecture comes from: "bundled", "in-process", or the
// path of a vendor's executable.
func (a *Arch) Origin() string { return a.origin }

// Generation is the number of processes that have been started for the architecture so
// far. A plugin's answers about handles (code objects) stay valid after its process has
// ended. Its own memory of them does not: see sdk.ErrObjectNotOpen.
func (a *Arch) Generation() uint64 { return a.transport.starts() }

// PID is the id of the running process; 0: none runs, or none is needed.
func (a *Arch) PID() int { return a.transport.pid() }

// Problems lists the events of the plugin so far that the user should know, each a
// sentence: deaths and restarts, starts that failed, parts of the sandbox that this
// system lacks.
func (a *Arch) Problems() []string { return a.transport.problems() }

// answer can be checked against the description and its request.
type answer[A, R any] interface {
	*A
	Validate(*sdk.Description, *R) error
}

// ask makes a call and validates its answer. A request whose answer was refused is not
// made again.
func ask[A, R any, P answer[A, R]](ctx context.Context, a *Arch, call string, req *R,
	f func(context.Context, sdk.Architecture) (*A, error)) (*A, error) {
	if err := a.refused.find(call, req); err != nil {
		return nil, err
	}
	var valid *A
	isRefused := false
	refuse := func(err error) error {
		isRefused = true
		return &nonsense{err}
	}
	err := a.transport.do(ctx, call, func(ctx context.Context, arch sdk.Architecture) error {
		isRefused = false
		got, err := f(ctx, arch)
		switch {
		case errors.Is(err, sdk.ErrMalformed):
			return refuse(err)
		case err != nil:
			return err
		case got == nil:
			return refuse(errors.New("no answer and no error"))
		}
		if err := P(got).Validate(a.desc, req); err != nil {
			return refuse(err)
		}
		valid = got
		return nil
	})
	var failure *Failure
	if isRefused && errors.As(err, &failure) {
		a.refused.add(call, req, failure)
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
	return ask(ctx, a, "OpenTarget", req, func(ctx context.Context, arch sdk.Architecture) (*sdk.OpenTargetAnswer, error) {
		return arch.OpenTarget(ctx, a.engine(e), req)
	})
}

// OpenObject asks for the peculiarities of a code object.
func (a *Arch) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return ask(ctx, a, "OpenObject", req, func(ctx context.Context, arch sdk.Architecture) (*sdk.OpenObjectAnswer, error) {
		return arch.OpenObject(ctx, a.engine(e), req)
	})
}

// FrameRules asks for rows of functions that have none.
func (a *Arch) FrameRules(ctx context.Context, e sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return ask(ctx, a, "FrameRules", req, func(ctx context.Context, arch sdk.Architecture) (*sdk.FrameRulesAnswer, error) {
		return arch.FrameRules(ctx, a.engine(e), req)
	})
}

// BindThreads asks about threads. Where an architecture does not implement it, the answer
// follows from its description.
func (a *Arch) BindThreads(ctx context.Context, e sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	return ask(ctx, a, "BindThreads", req, func(ctx context.Context, arch sdk.Architecture) (*sdk.BindThreadsAnswer, error) {
		return sdk.BindThreads(ctx, arch, a.engine(e), req)
	})
}

// Translate asks for an expression that yields the location of an address in
// an opaque range.
func (a *Arch) Translate(ctx context.Context, e sdk.Engine, req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
	return ask(ctx, a, "Translate", req, func(ctx context.Context, arch sdk.Architecture) (*sdk.TranslateAnswer, error) {
		return arch.Translate(ctx, a.engine(e), req)
	})
}

// ClassifyReturn asks whether addresses are return addresses.
func (a *Arch) ClassifyReturn(ctx context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return ask(ctx, a, "ClassifyReturn", req, func(ctx context.Context, arch sdk.Architecture) (*sdk.ClassifyReturnAnswer, error) {
		return arch.ClassifyReturn(ctx, req)
	})
}

// Disassemble asks for instructions.
func (a *Arch) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	return ask(ctx, a, "Disassemble", req, func(ctx context.Context, arch sdk.Architecture) (*sdk.DisassembleAnswer, error) {
		return arch.Disassemble(ctx, req)
	})
}

// describe asks an architecture for its description and validates it.
func describe(ctx context.Context, arch sdk.Architecture) (*sdk.Description, error) {
	d, err := arch.Describe(ctx)
	switch {
	case errors.Is(err, sdk.ErrMalformed):
		return nil, &nonsense{err}
	case err != nil:
		return nil, err
	case d == nil:
		return nil, &nonsense{errors.New("no description and no error")}
	}
	if err := d.Validate(); err != nil {
		return nil, &nonsense{err}
	}
	return d, nil
}
