// SPDX-License-Identifier: Apache-2.0

package garbage

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 1 << 20: 775, 4 << 20: 700, 8 << 20: 300, 16 << 20: 100, 31 << 20: 100, 1 << 30: 100} {
		if got := percent(live); got != want {
			t.Errorf("percent(%d MiB) = %d, expected %d", live>>20, got, want)
		}
	}
}

// kept is in use until the test ends.
var kept [][]byte

func TestCollectionsFollowWhatIsInUse(t *testing.T) {
	t.Setenv("GOGC", "")
	defer func() { kept = nil }()
	CollectSeldom()
	if got := debug.SetGCPercent(800); got != 800 {
		t.Errorf("the heap grows by %d percent at first, expected 800", got)
	}
	kept = append(kept, make([]byte, 64<<20))
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		got := debug.SetGCPercent(100)
		debug.SetGCPercent(got)
		if got == 100 {
			break
		}
		if time.Now().After(late) {
			t.Fatalf("the heap grows by %d percent with 64 MiB in use, expected 100", got)
		}
	}
	kept = nil
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		runtime.GC()
		got := debug.SetGCPercent(100)
		debug.SetGCPercent(got)
		if got > 600 {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("the heap grows by %d percent with little in use, expected more than 600", got)
		}
	}
}
