// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// TestProgressOfAProfile: what is done grows to the number of all samples, those of
// accelerators included, whoever walks.
func TestProgressOfAProfile(t *testing.T) {
	for _, jobs := range []int{1, 4} {
		var done, total uint64
		calls := 0
		p, err := gpuEngine(t, Options{}).Profile(t.Context(), gpuExample+"cpu.data", trace.ProfileOptions{
			Jobs: jobs, GPU: []string{gpuExample + "gpu.jsonl"},
			Progress: func(d, all uint64) {
				if d < done || calls > 0 && all != total {
					t.Errorf("%d jobs: %d of %d after %d of %d", jobs, d, all, done, total)
				}
				done, total = d, all
				calls++
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		n := uint64(len(p.Samples))
		if n == 0 || done != n || total != n || calls < 2 {
			t.Errorf("%d jobs: %d of %d samples in %d calls, expected %d", jobs, done, total, calls, n)
		}
	}
}
