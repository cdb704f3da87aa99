// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
)

// architecture implements sdk.Architecture by a function that makes calls of a plugin.
type architecture func(ctx context.Context, call func(context.Context, sdk.Architecture) error) error

// Architecture returns the architecture of a plugin's process. Each of its calls has the
// deadline of calls; the error of one that the process did not survive is a *plugin.Gone.
func Architecture(p *plugin.Probe) sdk.Architecture { return architecture(p.Call) }

// answerOf makes a call that has an answer, of a plugin of either kind.
func answerOf[S, A any](ctx context.Context, calls func(context.Context, func(context.Context, S) error) error, f func(context.Context, S) (*A, error)) (answer *A, err error) {
	err = calls(ctx, func(ctx context.Context, with S) (err error) {
		answer, err = f(ctx, with)
		return err
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// Describe implements sdk.Architecture.
func (c architecture) Describe(ctx context.Context) (*sdk.Description, error) {
	return answerOf(ctx, c, func(ctx context.Context, arch sdk.Architecture) (*sdk.Description, error) { return arch.Describe(ctx) })
}

// OpenTarget implements sdk.Architecture.
func (c architecture) OpenTarget(ctx context.Context, engine sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	return answerOf(ctx, c, func(ctx context.Context, arch sdk.Architecture) (*sdk.OpenTargetAnswer, error) {
		return arch.OpenTarget(ctx, engine, req)
	})
}

// OpenObject implements sdk.Architecture.
func (c architecture) OpenObject(ctx context.Context, engine sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return answerOf(ctx, c, func(ctx context.Context, arch sdk.Architecture) (*sdk.OpenObjectAnswer, error) {
		return arch.OpenObject(ctx, engine, req)
	})
}

// FrameRules implements sdk.Architecture.
func (c architecture) FrameRules(ctx context.Context, engine sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return answerOf(ctx, c, func(ctx context.Context, arch sdk.Architecture) (*sdk.FrameRulesAnswer, error) {
		return arch.FrameRules(ctx, engine, req)
	})
}

// BindThreads implements sdk.Architecture.
func (c architecture) BindThreads(ctx context.Context, engine sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	return answerOf(ctx, c, func(ctx context.Context, arch sdk.Architecture) (*sdk.BindThreadsAnswer, error) {
		return arch.BindThreads(ctx, engine, req)
	})
}

// Translate implements sdk.Architecture.
func (c architecture) Translate(ctx context.Context, engine sdk.Engine, req *sdk.TranslateRequest) (*sdk.TranslateAnswer, error) {
	return answerOf(ctx, c, func(ctx context.Context, arch sdk.Architecture) (*sdk.TranslateAnswer, error) {
		return arch.Translate(ctx, engine, req)
	})
}

// ClassifyReturn implements sdk.Architecture.
func (c architecture) ClassifyReturn(ctx context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return answerOf(ctx, c, func(ctx context.Context, arch sdk.Architecture) (*sdk.ClassifyReturnAnswer, error) {
		return arch.ClassifyReturn(ctx, req)
	})
}

// Disassemble implements sdk.Architecture.
func (c architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	return answerOf(ctx, c, func(ctx context.Context, arch sdk.Architecture) (*sdk.DisassembleAnswer, error) {
		return arch.Disassemble(ctx, req)
	})
}
