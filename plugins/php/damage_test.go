// SPDX-License-Identifier: Apache-2.0

package php_test

import (
	"testing"

	"github.com/unwindd/unwindd/internal/damage/managed"
	"github.com/unwindd/unwindd/plugins/php"
	"github.com/unwindd/unwindd/sdk"
)

// TestDamagedFrames damages the memory of recordings: no frame is another without a problem.
func TestDamagedFrames(t *testing.T) {
	var list []*managed.Process
	names, recordings := all(t)
	for i, r := range recordings {
		list = append(list, &managed.Process{
			Name: names[i], New: php.New, Engine: r, Open: &r.Open, Frames: []*sdk.ManagedFramesRequest{&r.Frames}, Threads: true,
		})
	}
	managed.Test(t, list, managed.Times())
}
