// SPDX-License-Identifier: Apache-2.0

package main

import "testing"

// long leaves a test that starts the command many times, each much alike, out of -short,
// which is how the race detector runs: there it takes many times as long, and the race
// detector sees nothing in it that it does not see elsewhere.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: run without -short")
	}
}
