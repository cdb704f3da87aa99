// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/internal/oracle"
)

// llvm returns a tool of LLVM 22: older ones do not read the heterogeneous
// extension.
func llvm(t *testing.T, tool string) string {
	t.Helper()
	return oracle.Tool(t, "llvm-"+tool+"-22")
}

// long leaves a test that starts the command many times, each much alike, out of -short,
// which is how the race detector runs: there it takes many times as long, and the race
// detector sees nothing in it that it does not see elsewhere.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: run without -short")
	}
}

// lanes32 is a vector register of 32 lanes that hold their numbers.
var lanes32 = func() string {
	var b strings.Builder
	for i := range 32 {
		b.WriteString(string("0123456789abcdef"[i/16]) + string("0123456789abcdef"[i%16]) + "000000")
	}
	return b.String()
}()
