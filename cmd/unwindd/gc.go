// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// firstCollection is the growth of the heap, in percent of the runtime's 4 MiB, before the
// first garbage collection: to 32 MiB.
const firstCollection = 800

// collectLate lets small commands end without collecting garbage. The runtime begins at a
// heap of 4 MiB, and would mark nearly the same objects again and again while the sections
// of a code object are read. From the first collection on, GOGC counts.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(firstCollection)
	// The first collection frees an object without references.
	runtime.AddCleanup(new([16]byte), func(percent int) {
		if often.Load() {
			percent = oftenPercent
		}
		debug.SetGCPercent(percent)
	}, usual)
}

// oftenPercent is the growth of the heap between collections after collectOften.
const oftenPercent = 25

var often atomic.Bool

// collectOften bounds the garbage beside large debug information: most of that has no
// pointers, and costs a collection nothing.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		often.Store(true)
		debug.SetGCPercent(oftenPercent)
	}
}
