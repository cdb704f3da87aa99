// Package amdgpu teaches the engine AMD's graphics processors from gfx9 on, as
// the LLVM project's "User Guide for AMDGPU Backend" describes them; section
// names in this package are that guide's.
//
// A thread is a wave of 32 or 64 lanes. Its vector registers are as wide as it
// is, so DWARF has a number of its own for each of them at each wave size
// ("Register Identifier").
package amdgpu

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

// architecture is sdk.Architecture for AMDGPU. It keeps no state.
type architecture struct{ sdk.Base }

// New returns the architecture.
func New() sdk.Architecture { return architecture{} }

// Describe returns Description.
func (architecture) Describe(context.Context) (*sdk.Description, error) { return Description(), nil }

// BindThreads gives each wave its PC, its lanes, the mask of those that EXEC
// says are active, and the maps of its address spaces.
func (architecture) BindThreads(_ context.Context, _ sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	a := &sdk.BindThreadsAnswer{Threads: make([]sdk.ThreadBinding, len(req.Threads))}
	for i := range req.Threads {
		a.Threads[i] = bind(&req.Threads[i])
	}
	return a, nil
}

// OpenObject names the processor of an object, which its ELF flags tell, and
// the default rules of those whose stack pointer is not the CFA.
func (architecture) OpenObject(_ context.Context, _ sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	a := &sdk.OpenObjectAnswer{}
	if req.Machine != machine {
		return a, nil
	}
	if p := processorOf(req.Flags); p != nil {
		a.Processor = p.name
		if p.scratch == architectedScratch {
			a.DefaultRules = defaultRules(p)
		}
	}
	return a, nil
}
