// SPDX-License-Identifier: Apache-2.0

package proof

import "testing"

func TestOnlyOneAsksForAProof(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "no": false, "1": true} {
		t.Setenv("UNWINDD_PROOF", value)
		if IsRequested() != want {
			t.Errorf("UNWINDD_PROOF=%q: %v, expected %v", value, IsRequested(), want)
		}
		skipped := true
		t.Run("what only a proof runs", func(t *testing.T) {
			Only(t)
			skipped = false
		})
		if skipped == want {
			t.Errorf("UNWINDD_PROOF=%q: skipped %v, expected %v", value, skipped, !want)
		}
	}
}
