// SPDX-License-Identifier: Apache-2.0

package unitrace

import (
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/inteltest"
)

// BenchmarkTables opens tables of 64000 lines and takes their samples.
func BenchmarkTables(b *testing.B) {
	table := string(inteltest.Large(64_000).Unitrace(0, inteltest.Xe2))
	path := write(b, table)
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Samples(func(*gpusamples.Sample) error { return nil }); err != nil || len(f.Problems()) > 0 {
			b.Fatal(err, f.Problems())
		}
		f.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64_000, "ns/line")
}
