// SPDX-License-Identifier: Apache-2.0

// Package proof decides how much tests do: all that they can, with `make proof`, or a
// sample that is enough for every change.
package proof

import (
	"os"
	"testing"
)

// IsRequested reports whether tests do all that they can. Only UNWINDD_PROOF=1 requests
// it: 0 does not.
func IsRequested() bool { return os.Getenv("UNWINDD_PROOF") == "1" }

// Only skips a test that takes too long, unless IsRequested.
func Only(t testing.TB) {
	t.Helper()
	if !IsRequested() {
		t.Skip("takes too long for every change: UNWINDD_PROOF=1 runs it")
	}
}
