// SPDX-License-Identifier: Apache-2.0

package cost

import "testing"

// TestWeigh weighs a command that ends at once, one that grows when a signal comes, and one
// that is killed.
func TestWeigh(t *testing.T) {
	for script, least := range map[string]int64{
		"exit 0": 50,
		"trap 'a=$(head -c 3000000 /dev/zero | tr \"\\0\" a)' USR1; kill -USR1 $$; exit 3": 2500,
		"kill -TERM $$": 50,
	} {
		own, all, err := (&Command{Argv: []string{"/bin/sh", "-c", script}}).Weigh()
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		if own < least || own > 16384 || all < own || all > 32768 {
			t.Errorf("%s: %d KiB, with files %d KiB", script, own, all)
		}
	}
	if _, _, err := (&Command{Argv: []string{"/nowhere"}}).Weigh(); err == nil {
		t.Error("a command that is not there was weighed")
	}
}
