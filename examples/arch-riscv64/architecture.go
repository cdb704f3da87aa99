// SPDX-License-Identifier: Apache-2.0

// Package riscv64 teaches unwindd 64-bit RISC-V under Linux, as the RISC-V
// ELF psABI 1.0 defines it.
//
// It is what a vendor would write: a module of its own that knows nothing of
// unwindd but the packages sdk and cfi. Begin with description.go, which is all
// that code with call frame information needs. The other files find frames
// where there is none: signal trampolines, calls, and functions by their code.
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

// Describe returns what is constant about the architecture.
func (architecture) Describe(context.Context) (*sdk.Description, error) { return describe(), nil }

// OpenObject finds the functions that are not what their call frame information says.
func (architecture) OpenObject(_ context.Context, _ sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	return &sdk.OpenObjectAnswer{Functions: functionKinds.Functions(req)}, nil
}

// functionKinds are functions by their symbols. The vDSO's call frame information of
// the trampoline says that it is a signal frame, but not where the registers are.
var functionKinds = codeflow.FunctionKinds{
	"__vdso_rt_sigreturn": sdk.TrampolineFunction,
	"_start":              sdk.OutermostFunction,
}
