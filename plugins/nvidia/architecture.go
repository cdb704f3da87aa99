// SPDX-License-Identifier: Apache-2.0

// Package nvidia teaches the engine NVIDIA's graphics processors, as far as the debug
// information of their compilers and the public headers of their debugger describe them.
// No machine code is decoded.
//
// A thread is a group of lanes of a warp that are at one place. Registers and local
// memory are a lane's own: a thread has the state of one of its lanes, so that its stack is
// walked as a processor's is. The stack pointer R1 is an address of local memory.
package nvidia

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

// architecture is sdk.Architecture for NVIDIA's processors. It keeps no state.
type architecture struct{ sdk.Base }

// New returns the architecture.
func New() sdk.Architecture { return architecture{} }

// Describe returns Description.
func (architecture) Describe(context.Context) (*sdk.Description, error) { return Description(), nil }

// BindThreads gives each thread its PC, its lanes, which of the warp are its own, and
// where shared and local memory are among generic addresses.
func (architecture) BindThreads(_ context.Context, _ sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	a := &sdk.BindThreadsAnswer{Threads: make([]sdk.ThreadBinding, len(req.Threads))}
	for i := range req.Threads {
		a.Threads[i] = bind(&req.Threads[i])
	}
	return a, nil
}
