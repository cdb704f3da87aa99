// SPDX-License-Identifier: Apache-2.0

// Package x86_64 describes the x86-64 architecture to the engine as the System V psABI
// (AMD64 Architecture Processor Supplement 1.0) defines it.
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
