// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestConcurrentWalksAgree is for the race detector.
func TestConcurrentWalksAgree(t *testing.T) {
	core := openCrash(t)
	var wg sync.WaitGroup
	stacks := make([][][]uint64, 4)
	for i := range stacks {
		wg.Go(func() {
			for stack := range core.Stacks(context.Background()) {
				stacks[i] = append(stacks[i], pcs(stack))
			}
		})
	}
	wg.Wait()
	for _, s := range stacks[1:] {
		if diff := cmp.Diff(stacks[0], s); diff != "" {
			t.Error(diff)
		}
	}
}
