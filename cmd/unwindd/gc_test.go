// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// percent is GOGC as it is now.
func percent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestOnlyTheFirstCollectionIsLate: what a long command has is collected as ever.
func TestOnlyTheFirstCollectionIsLate(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(70)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	collectLate()
	if p := percent(); p != firstCollection {
		t.Errorf("%d percent, expected %d", p, firstCollection)
	}
	for range 100 {
		runtime.GC()
		if percent() == 70 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d percent after collections, expected 70", percent())
}

// TestCollectionIsTheUsersToSet: with GOGC nothing is changed.
func TestCollectionIsTheUsersToSet(t *testing.T) {
	t.Setenv("GOGC", "50")
	before := percent()
	collectLate()
	if p := percent(); p != before {
		t.Errorf("%d percent, expected %d", p, before)
	}
}

// TestCollectionsStayOften: the first collection does not end it.
func TestCollectionsStayOften(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(70)
	t.Cleanup(func() { often.Store(false); debug.SetGCPercent(before) })
	collectLate()
	collectOften()
	for range 20 {
		runtime.GC()
		time.Sleep(5 * time.Millisecond)
		if p := percent(); p != oftenPercent {
			t.Fatalf("%d percent, expected %d", p, oftenPercent)
		}
	}
}
