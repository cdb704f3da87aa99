// SPDX-License-Identifier: Apache-2.0

package cost

import "testing"

// TestWeigh weighs a command that ends at once, one that gets signals, and one that is killed.
func TestWeigh(t *testing.T) {
	for _, script := range []string{"exit 0", "trap : USR1; kill -USR1 $$; kill -USR1 $$; exit 3", "kill -TERM $$"} {
		own, all, err := (&Command{Argv: []string{"/bin/sh", "-c", script}}).Weigh()
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		if own < 50 || own > 4096 || all < own || all > 16384 {
			t.Errorf("%s: %d KiB, with files %d KiB", script, own, all)
		}
	}
	if _, _, err := (&Command{Argv: []string{"/nowhere"}}).Weigh(); err == nil {
		t.Error("a command that is not there was weighed")
	}
}
