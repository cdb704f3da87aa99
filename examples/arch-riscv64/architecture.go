// SPDX-License-Identifier: Apache-2.0

// Package riscv64 describes 64-bit RISC-V under Linux to unwindd, as the RISC-V ELF psABI
// 1.0 defines it.
//
// It is written as a vendor's plugin would be: a module of its own that imports only the
// packages sdk and cfi of unwindd. Begin with description.go, which is all that code with
// call frame information needs. The other files find frames without it: signal
// trampolines, calls, and functions by their code.
package riscv64

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// architecture is sdk.Architecture for RV64. It keeps no state.
type architecture struct{ sdk.Base }

// New returns the architecture.
func New() sdk.Architecture { return architecture{} }

// Describe returns the constant facts of the architecture.
func (architecture) Describe(context.Context) (*sdk.Description, error) { return describe(), nil }

// OpenObject finds the functions that differ from their call frame information.
func (architecture) OpenObject(_ context.Context, _ sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return &sdk.OpenObjectAnswer{Functions: functionKinds.Functions(req)}, nil
}

// functionKinds has functions by their symbols. The vDSO's call frame information marks
// the trampoline as a signal frame, but lacks the places of the registers.
var functionKinds = codeflow.FunctionKinds{
	"__vdso_rt_sigreturn": sdk.TrampolineFunction,
	"_start":              sdk.OutermostFunction,
}
