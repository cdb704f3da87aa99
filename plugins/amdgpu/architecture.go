// SPDX-License-Identifier: Apache-2.0

// Package amdgpu teaches the engine AMD's graphics processors from gfx9 on, as
// the LLVM project's "User Guide for AMDGPU Backend" describes them; section
// names in this package are that guide's.
//
// A thread is a wave of 32 or 64 lanes. Its vector registers are as wide as it
// is, so DWARF has a number of its own for each of them at each wave size
// ("Register Identifier").
//
// The package is large because it reads code: masks, values and states describe what a
// place in the code is known to hold, and the flow, the effects of operations and the
// rows share this one model.
package amdgpu

import (
	"context"

	"github.com/unwindd/unwindd/plugins/amdgpu/rocm"
	"github.com/unwindd/unwindd/sdk"
)

// architecture is sdk.Architecture for AMDGPU. It remembers the code objects that
// were opened, and the effects of their functions.
type architecture struct {
	sdk.Base
	objects *objects
}

// New returns the architecture.
func New() sdk.Architecture {
	return architecture{objects: &objects{byHandle: map[uint64]*objectCode{}}}
}

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

// OpenTarget reads the waves of a core that ROCm wrote.
func (architecture) OpenTarget(ctx context.Context, e sdk.Engine, req *sdk.OpenTargetRequest) (*sdk.OpenTargetAnswer, error) {
	return rocm.Read(ctx, e, req.Notes, &rocm.Machine{
		Numbers: rocm.Numbers{
			PC: pc64, Status: status, Exec: [2]uint32{exec32, exec64}, VCC: [2]uint32{vcc32, vcc64},
			SGPR0: sgpr0, SGPR64: sgpr64, VGPR0: [2]uint32{vgpr0w32, vgpr0w64}, VGPR512: vgpr512,
			AGPR0: [2]uint32{agpr0w32, agpr0w64},
		},
		Local: local, PrivateLane: privateLane, PrivateWave: privateWave,
		IsKnown: func(processor string) bool { return processorNamed(processor) != nil },
	})
}

// OpenObject describes an object of amdhsa: its processor, its kernels with
// their wave sizes, the encoding of its expressions, and whether its call
// frame information can be relied on for what functions leave alone.
func (a architecture) OpenObject(ctx context.Context, e sdk.Engine, req *sdk.OpenObjectRequest) (*sdk.OpenObjectAnswer, error) {
	o := codeObject{ctx: ctx, engine: e, req: req, answer: &sdk.OpenObjectAnswer{}}
	if req.Machine == machine {
		o.describe()
	}
	a.objects.remember(req.Object, req, o.answer, o.functions, o.check)
	return o.answer, nil
}
