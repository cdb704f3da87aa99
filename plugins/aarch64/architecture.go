// SPDX-License-Identifier: Apache-2.0

// Package aarch64 describes the 64-bit state of the Arm architecture to the engine, as
// the Procedure Call Standard (AAPCS64) and DWARF for the Arm 64-bit Architecture
// (AADWARF64) define it for ELF.
package aarch64

import (
	"context"
	"sync"

	"github.com/unwindd/unwindd/sdk"
)

// architecture is sdk.Architecture for AArch64. It keeps no state.
type architecture struct{ sdk.Base }

// New returns the architecture.
func New() sdk.Architecture { return architecture{} }

// Describe returns Description.
func (architecture) Describe(context.Context) (*sdk.Description, error) { return Description(), nil }

// bindDescription is read only.
var bindDescription = sync.OnceValue(Description)
