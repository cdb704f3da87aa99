// Package visa teaches the engine Intel's graphics processors (Gen), whose
// compiler goes through the virtual ISA that gives it its name.
//
// A thread is a hardware thread that runs 8, 16 or 32 work items (channels) of a
// kernel, one a lane. Its general register file (GRF) holds the lanes of a
// variable side by side, in one register or several; a register is not as wide
// as the thread, and has one number whatever the SIMD width is.
package visa

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

// architecture is sdk.Architecture for Gen. It keeps no state.
type architecture struct{ sdk.Base }

// New returns the architecture.
func New() sdk.Architecture { return architecture{} }

// Describe returns Description.
func (architecture) Describe(context.Context) (*sdk.Description, error) { return Description(), nil }

// BindThreads gives each hardware thread its PC, its lanes, the mask of those
// that are enabled, the size of its registers, and where its scratch space is.
func (architecture) BindThreads(_ context.Context, _ sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	a := &sdk.BindThreadsAnswer{Threads: make([]sdk.ThreadBinding, len(req.Threads))}
	for i := range req.Threads {
		a.Threads[i] = bind(&req.Threads[i])
	}
	return a, nil
}
