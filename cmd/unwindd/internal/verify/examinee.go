// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"errors"
	"sync"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// examinee implements sdk.Architecture by a plugin whose process is restarted after it has
// ended. A call that the process did not survive returns an archtest.ProcessError.
type examinee struct {
	options plugin.ProbeOptions

	mu       sync.Mutex
	probe    *plugin.Probe // nil if no process runs
	isFailed bool          // the process could not be restarted
}

var _ sdk.Architecture = (*examinee)(nil)

func newExaminee(o plugin.ProbeOptions) *examinee { return &examinee{options: o} }

// running returns the process, which it starts if there is none.
func (e *examinee) running(ctx context.Context) (*plugin.Probe, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.probe != nil {
		select {
		case <-e.probe.Exited():
			e.probe.Close()
			e.probe = nil
		default:
			return e.probe, nil
		}
	}
	if e.isFailed {
		return nil, &archtest.ProcessError{How: "could not be started again"}
	}
	p, err := plugin.StartProbe(ctx, e.options)
	if err != nil {
		if ctx.Err() == nil {
			e.isFailed = true
		}
		return nil, &archtest.ProcessError{How: err.Error()}
	}
	e.probe = p
	return p, nil
}

// rest ends the process; the next call starts another.
func (e *examinee) rest() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.probe != nil {
		e.probe.Close()
		e.probe = nil
	}
}

func (e *examinee) close() { e.rest() }

// callPlugin makes a call with the process.
func callPlugin[A any](ctx context.Context, e *examinee, f func(context.Context, sdk.Architecture) (*A, error)) (answer *A, err error) {
	p, err := e.running(ctx)
	if err != nil {
		return nil, err
	}
	err = p.Call(ctx, func(ctx context.Context, arch sdk.Architecture) (err error) {
		answer, err = f(ctx, sdk.WithBase(arch, nil))
		return err
	})
	var gone *plugin.Gone
	if errors.As(err, &gone) {
		return nil, &archtest.ProcessError{How: gone.How, IsLate: gone.IsLate}
	}
	return answer, err
}

// Describe implements sdk.Architecture.
func (e *examinee) Describe(ctx context.Context) (*sdk.Description, error) {
	return callPlugin(ctx, e, func(ctx context.Context, arch sdk.Architecture) (*sdk.Description, error) { return arch.Describe(ctx) })
}

// OpenTarget implements sdk.Architecture.
func (e *examinee) OpenTarget(ctx context.Context, engine sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	return callPlugin(ctx, e, func(ctx context.Context, arch sdk.Architecture) (*sdk.OpenTargetAnswer, error) {
		return arch.OpenTarget(ctx, engine, req)
	})
}

// OpenObject implements sdk.Architecture.
func (e *examinee) OpenObject(ctx context.Context, engine sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return callPlugin(ctx, e, func(ctx context.Context, arch sdk.Architecture) (*sdk.OpenObjectAnswer, error) {
		return arch.OpenObject(ctx, engine, req)
	})
}

// FrameRules implements sdk.Architecture.
func (e *examinee) FrameRules(ctx context.Context, engine sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return callPlugin(ctx, e, func(ctx context.Context, arch sdk.Architecture) (*sdk.FrameRulesAnswer, error) {
		return arch.FrameRules(ctx, engine, req)
	})
}

// BindThreads implements sdk.Architecture.
func (e *examinee) BindThreads(ctx context.Context, engine sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	return callPlugin(ctx, e, func(ctx context.Context, arch sdk.Architecture) (*sdk.BindThreadsAnswer, error) {
		return arch.BindThreads(ctx, engine, req)
	})
}

// Translate implements sdk.Architecture.
func (e *examinee) Translate(ctx context.Context, engine sdk.Engine, req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
	return callPlugin(ctx, e, func(ctx context.Context, arch sdk.Architecture) (*sdk.TranslateAnswer, error) {
		return arch.Translate(ctx, engine, req)
	})
}

// ClassifyReturn implements sdk.Architecture.
func (e *examinee) ClassifyReturn(ctx context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return callPlugin(ctx, e, func(ctx context.Context, arch sdk.Architecture) (*sdk.ClassifyReturnAnswer, error) {
		return arch.ClassifyReturn(ctx, req)
	})
}

// Disassemble implements sdk.Architecture.
func (e *examinee) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	return callPlugin(ctx, e, func(ctx context.Context, arch sdk.Architecture) (*sdk.DisassembleAnswer, error) {
		return arch.Disassemble(ctx, req)
	})
}
