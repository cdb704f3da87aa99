// SPDX-License-Identifier: Apache-2.0

package iaprof

import (
	"testing"

	"github.com/unwindd/unwindd/engine/internal/target/gpusamples"
	"github.com/unwindd/unwindd/engine/internal/target/gpusamples/inteltest"
)

// BenchmarkText opens a text of a million stall lines and takes its samples.
func BenchmarkText(b *testing.B) {
	const stalls = 1_000_000
	path := write(b, string(inteltest.Large(stalls).Iaprof()))
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(path)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		if err := f.Samples(func(*gpusamples.Sample) error { n++; return nil }); err != nil || n != 3*stalls || len(f.Problems()) > 0 {
			b.Fatal(err, n, f.Problems())
		}
		f.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/stalls, "ns/line")
}
