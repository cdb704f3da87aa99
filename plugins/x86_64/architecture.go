// SPDX-License-Identifier: Apache-2.0

// Package x86_64 describes the x86-64 architecture to the engine as the System V psABI
// (AMD64 Architecture Processor Supplement 1.0) defines it.
//
// Where a function has no call frame information, its frame is found by reading its code:
// every instruction that can be reached from the function's start is followed with the
// stack pointer, the frame pointer and the preserved registers as symbolic values, over
// all branches. A value that differs between two paths to an instruction is unknown
// there.
//
// The package is large because the disassembler lacks most of that: the tables of
// encodings, the effect of each operation on the state, and its memory accesses are here.
package x86_64

import (
	"context"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// architecture is sdk.Architecture for x86-64. It keeps no state.
type architecture struct{ sdk.Base }

// New returns the architecture.
func New() sdk.Architecture { return architecture{} }

// Describe returns Description.
func (architecture) Describe(context.Context) (*sdk.Description, error) { return Description(), nil }

// BindThreads gives each thread its rip and one lane. A thread without rip gets a
// problem.
func (architecture) BindThreads(_ context.Context, _ sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	return sdk.DefaultBindThreads(bindDescription(), req), nil
}

// bindDescription is read only.
var bindDescription = sync.OnceValue(Description)
