// SPDX-License-Identifier: Apache-2.0

// Package garbage chooses when processes that answer many requests collect it.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// least is the size up to which the heap grows before each collection.
const least = 32 << 20

// smallest is the heap from whose size the runtime counts where less is in use.
const smallest = 4 << 20

// CollectSeldom lets the heap of this process grow to 32 MiB before each collection, where GOGC is not
// set: the few MiB that a process keeps from one small request to the next would be marked again
// after every few of them. A heap of which more is in use is collected when it has doubled, as
// usual.
func CollectSeldom() {
	if os.Getenv("GOGC") == "" {
		choose(0)
	}
}

// choose sets by how much the heap grows until the next collection, when it is chosen again.
func choose(live uint64) {
	debug.SetGCPercent(percent(live))
	runtime.AddCleanup(new([16]byte), func(struct{}) { // a collection frees an object without references
		used := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(used)
		choose(used[0].Value.Uint64())
	}, struct{}{})
}

// percent returns the growth of a heap of which so many bytes are in use, in percent.
func percent(live uint64) int {
	const usual = 100
	if live >= least {
		return usual
	}
	return int(max(usual, (least-live)*100/max(live, smallest))) //nolint:gosec // at most least by smallest
}
