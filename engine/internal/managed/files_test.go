// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"os"
	"testing"

	"github.com/unwindd/unwindd/engine"
)

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkStacks walks the stacks of a target without a runtime, without and with a plugin for
// one that no module has.
func BenchmarkStacks(b *testing.B) {
	run := func(target *engine.Target) func(b *testing.B) {
		return func(b *testing.B) {
			for b.Loop() {
				for s := range target.Stacks(b.Context()) {
					_ = s
				}
			}
		}
	}
	absent := newFake()
	absent.about.Recognises[0].Symbol = "no such symbol"
	b.Run("none", run(open(b, serverCore, engine.Options{})))
	b.Run("absent", run(open(b, serverCore, engine.Options{}, absent)))
}
