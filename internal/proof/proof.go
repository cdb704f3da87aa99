// SPDX-License-Identifier: Apache-2.0

// Package proof says how much tests do: all that they can, as `make proof` asks for, or
// a sample that is enough for every change.
package proof

import (
	"os"
	"testing"
)

// IsAsked says that tests do all that they can. UNWINDD_PROOF=1 asks for it, and nothing
// else does: 0 does not.
func IsAsked() bool { return os.Getenv("UNWINDD_PROOF") == "1" }

// Only skips a test that takes too long where IsAsked does not say so.
func Only(t testing.TB) {
	t.Helper()
	if !IsAsked() {
		t.Skip("takes too long for every change: UNWINDD_PROOF=1 runs it")
	}
}
