// SPDX-License-Identifier: Apache-2.0

package code

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/oracle"
	"github.com/unwindd/unwindd/plugins/aarch64"
)

// TestATrampolineBehindAFunction returns to where a function ends, and a signal's trampoline begins whose
// symbol has no size, as musl's. The function has been read before.
func TestATrampolineBehindAFunction(t *testing.T) {
	dir := t.TempDir()
	source, program := filepath.Join(dir, "p.s"), filepath.Join(dir, "p")
	const code = `
	.globl first, restore, last
	.type first, %function
first: stp x29, x30, [sp, #-16]!
	bl last
	ldp x29, x30, [sp], #16
	ret
	.size first, .-first
	.type restore, %function
restore: mov x8, #139
	svc #0
	.type last, %function
last:	ret
	.size last, .-last
`
	if err := os.WriteFile(source, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	oracle.Run(t, oracle.Tool(t, "aarch64-linux-gnu-gcc"), "-nostdlib", "-static", "-Wl,-e,first", "-o", program, source)
	loaded := moduleOf(t, object.NewStore(), program)
	loaded.Arch = "aarch64"
	m := newLibrary(t, 0, aarch64.New()).Load(loaded, Loading{})
	t.Cleanup(m.Close)
	at := middlesOf(t, program)
	for _, c := range []struct {
		name    string
		address uint64
		isFrame bool
	}{
		{"behind the call", at["first"], false},
		{"behind the function", at["restore"], true},
	} {
		row, err := m.Row(t.Context(), c.address, false)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if row.IsSignalFrame() != c.isFrame {
			t.Errorf("%s, %#x: the row %+v, expected a signal's frame: %v", c.name, c.address, row.Rules, c.isFrame)
		}
	}
}
