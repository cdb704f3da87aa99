// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/examples/rocm-core/corefile"
	"github.com/unwindd/unwindd/internal/oracle"
)

// BenchmarkCoreOfManyWaves opens the core of a process with waves on four queues, and walks
// them all. The plugin is a process of its own.
func BenchmarkCoreOfManyWaves(b *testing.B) {
	oracle.Tools(b, "llvm-objdump-22", "llvm-readelf-22")
	w := corpusWaves(b, "amdgpu/O0/amd_k.gfx90a.co", 50)
	for _, times := range []int{12, 50, 100} {
		m := coreMaker{layout: corefile.Split, version: 12, times: times, queues: 4}
		waves := 4 * times * len(w.waves)
		b.Run(fmt.Sprintf("waves=%d", waves), func(b *testing.B) {
			path := filepath.Join(b.TempDir(), "core")
			writeROCmTo(b, path, withHost(b, m.core(w)))
			e := rocmChildren(b)
			for b.Loop() {
				of, err := e.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for s := range of.Stacks(context.Background()) {
					n += len(s.Frames)
				}
				if n < 2*waves {
					b.Fatalf("%d frames", n)
				}
				of.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*waves), "ns/wave")
		})
	}
}
