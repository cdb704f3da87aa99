// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/recorded"
)

// anonymousMemory is the size of memory of this process that is of no file, in KiB.
func anonymousMemory(tb testing.TB) (kib int64) {
	tb.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(status), "\nRssAnon:")
	if _, err := fmt.Sscan(rest, &kib); !ok || err != nil {
		tb.Fatal("/proc/self/status says no RssAnon")
	}
	return kib
}

// TestAGigabyteNeedsLittleMemory makes a profile of a recording of 1 GiB with
// symbols. Beside the mapped file it takes less than 300 MiB.
func TestAGigabyteNeedsLittleMemory(t *testing.T) {
	proof.Only(t)
	path := filepath.Join(t.TempDir(), "perf.data")
	recorded.Perf(t, path, []string{"-F", "4000", "-m", "64M", "-e", "cpu-clock", "--call-graph", "dwarf,65528"}, recorded.Program(t, "deepcpp", 5.4)...)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() < 1<<30 {
		t.Errorf("the recording has %d bytes, expected 1 GiB", info.Size())
	}
	e := newX86Engine(t, Options{})
	debug.FreeOSMemory()
	before := anonymousMemory(t)
	most := make(chan int64)
	stop := make(chan struct{})
	go func() {
		highest := before
		for {
			highest = max(highest, anonymousMemory(t))
			select {
			case <-stop:
				most <- highest
				return
			case <-time.After(2 * time.Millisecond):
			}
		}
	}()
	p, err := e.Profile(context.Background(), path, trace.ProfileOptions{})
	close(stop)
	used := <-most - before
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d samples, %d MiB", info.Size(), len(p.Samples), used>>10)
	if used > 300<<10 {
		t.Errorf("%d MiB, expected less than 300", used>>10)
	}
}
