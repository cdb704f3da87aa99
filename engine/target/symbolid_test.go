// SPDX-License-Identifier: Apache-2.0

package target

import (
	"encoding/hex"
	"testing"
)

// The first is what Breakpad's dump_syms gave the file of symbolic's test that has this
// build ID.
func TestELFSymbols(t *testing.T) {
	tests := []struct{ buildID, debugID string }{
		{"f1c3bcc0279865fe3058404b2831d9e64135386c", "C0BCC3F19827FE653058404B2831D9E60"},
		{"0102", "00000201000000000000000000000000" + "0"},
		{"", ""},
	}
	for _, tt := range tests {
		id, err := hex.DecodeString(tt.buildID)
		if err != nil {
			t.Fatal(err)
		}
		if got := ELFSymbols("crash", id); got.DebugID != tt.debugID || got.CodeID != tt.buildID {
			t.Errorf("%s: %+v, want debug ID %s", tt.buildID, got, tt.debugID)
		}
	}
}
