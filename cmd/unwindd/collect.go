// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
)

// firstCollection is how much the heap grows, in percent of the runtime's 4 MiB,
// before garbage is collected for the first time: to 32 MiB.
const firstCollection = 800

// collectLate lets small commands end without collecting garbage. The runtime
// begins when the heap has 4 MiB, and as the sections of a code object are read it
// would mark nearly the same again and again. From the first collection on, all
// is as GOGC has it.
func collectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(firstCollection)
	// What nothing refers to is cleaned up by the first collection.
	runtime.AddCleanup(new([16]byte), func(percent int) {
		if often.Load() {
			percent = oftenPercent
		}
		debug.SetGCPercent(percent)
	}, usual)
}

// oftenPercent is how much the heap grows between collections after collectOften.
const oftenPercent = 25

var often atomic.Bool

// collectOften keeps small what is not used any more, beside what large debug information
// takes: most of that has no pointers, and costs a collection nothing.
func collectOften() {
	if os.Getenv("GOGC") == "" {
		often.Store(true)
		debug.SetGCPercent(oftenPercent)
	}
}
