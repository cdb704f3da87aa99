// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"testing"
)

// BenchmarkOTLP writes a profile of 100,000 stacks, each of its own.
func BenchmarkOTLP(b *testing.B) {
	p := manyStacks(100_000).view(b)
	b.ReportAllocs()
	for b.Loop() {
		if err := p.WriteOTLP(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
}
