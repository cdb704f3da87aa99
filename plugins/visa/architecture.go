// SPDX-License-Identifier: Apache-2.0

// Package visa teaches the engine Intel's graphics processors (Gen), whose
// compiler goes through the virtual ISA that gives it its name.
//
// A thread is a hardware thread that runs 8, 16 or 32 work items (channels) of a
// kernel, one a lane. Its general register file (GRF) holds the lanes of a
// variable side by side, in one register or several; a register is not as wide
// as the thread, and has one number whatever the SIMD width is.
//
// # Frames
//
// A function that is called through the stack has its frame in the thread's scratch
// space. One register, the frame descriptor (r125 or r127, see abi), has the frame
// pointer (BE_FP), the stack pointer (BE_SP), and after a call the return address.
// On entry a function saves the descriptor where the stack pointer points to, and
// makes that its frame pointer. So the CFA of a row is the address in the frame
// pointer: the caller's stack pointer, as newer compilers have it. It is in the
// address space scratch. Pointers count OWORDs (16 bytes) on processors before DG2,
// and bytes since.
//
// A subroutine is called without a frame, with its return address in a register
// of its own. A kernel has no caller.
//
// # Program counters
//
// The register IP has 32 bits, and so have return addresses: both count from where
// the thread's instructions begin (the instruction base address), which no register
// has. A thread's PC counts so, and segments of modules begin at such addresses.
//
// # Sources
//
// The compiler's debug stream (package stream) describes all of this, and which
// registers a function saves before it calls. Its DWARF call frame information
// describes part of it, in one of three dialects (see frameDialect). Of the code
// itself only the instructions are read that set a frame up and take it down, and
// calls and returns: the stream does not tell exactly when a frame has been taken
// down and where a subroutine is. Facts from none of these sources are unknown.
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
