// SPDX-License-Identifier: Apache-2.0

// Package x86 describes 32-bit x86 (i386) to the engine as the System V psABI (Intel386
// Architecture Processor Supplement 1.1) defines it, and as Windows has it.
package x86

import (
	"context"
	"sync"

	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
)

// architecture is sdk.Architecture for i386. It keeps no state.
type architecture struct{ sdk.Base }

// New returns the architecture.
func New() sdk.Architecture { return architecture{} }

// Describe returns Description.
func (architecture) Describe(context.Context) (*sdk.Description, error) { return Description(), nil }

// BindThreads gives each thread its eip and one lane. A thread without eip gets a
// problem.
func (architecture) BindThreads(_ context.Context, _ sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	return sdk.DefaultBindThreads(bindDescription(), req), nil
}

// bindDescription is read only.
var bindDescription = sync.OnceValue(Description)

// OpenObject finds the functions of a code object that differ from their call frame
// information.
func (architecture) OpenObject(_ context.Context, _ sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	answer := &sdk.OpenObjectAnswer{}
	if req.Machine == machine {
		answer.Functions = functionKinds.Functions(req)
	}
	return answer, nil
}

// mode reads the code of i386.
var mode = x86code.NewMode(convention())

// FrameRules finds the rows of functions by reading their code.
func (architecture) FrameRules(ctx context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	return mode.FrameRules(ctx, req)
}

// ClassifyReturn finds for each PC the call that ends right before it, if any.
func (architecture) ClassifyReturn(_ context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return mode.ClassifyReturn(req)
}

// Disassemble writes instructions as GNU tools do (AT&T syntax).
func (architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	return mode.Disassemble(ctx, req)
}
