// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mappedMemory is what this process has in memory of files, in bytes.
func mappedMemory(t *testing.T) (kib int64) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(status), "\nRssFile:")
	if _, err := fmt.Sscan(rest, &kib); !ok || err != nil {
		t.Fatal("/proc/self/status says no RssFile")
	}
	return kib << 10
}

// TestPagesAreGivenBack reads a recording of three times what may be mapped, every page
// of its stacks: no more than that is in memory at a time.
func TestPagesAreGivenBack(t *testing.T) {
	a := simple()
	a.SampleType |= SampleStackUser
	stack := make([]byte, 60_000)
	samples := uint64(3 * mappedBytes / len(stack))
	b := newBuilder(false, a)
	b.records.Grow(3 * mappedBytes)
	for i := range samples {
		b.add(recordSample, uint16(ModeUser), uint64(100), 0x1000+i, uint32(1), uint32(1), 1+i, uint64(len(stack)), stack, uint64(len(stack)))
		if i%2 == 0 { // to read a small record maps pages of what lies around it
			b.add(recordLost, 0, append([]any{uint64(100), uint64(1)}, tail(1, 1, 1+i)...)...)
		}
	}
	path := filepath.Join(t.TempDir(), "perf.data")
	if err := os.WriteFile(path, b.bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	before := mappedMemory(t)
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	most, read, sum := mappedMemory(t), uint64(0), byte(0)
	for r := f.Reader(); ; {
		batch, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch.Samples {
			for at := 0; at < len(batch.Samples[i].Stack); at += 4096 {
				sum |= batch.Samples[i].Stack[at]
			}
		}
		read += uint64(len(batch.Samples))
		most = max(most, mappedMemory(t))
		batch.Release()
	}
	if read != samples || sum != 0 {
		t.Errorf("%d samples, expected %d, and bytes of stacks are %#x, expected 0", read, samples, sum)
	}
	if used := most - before; used > mappedBytes*3/2 {
		t.Errorf("%d MiB are in memory at a time, expected %d MiB at most", used>>20, mappedBytes*3/2>>20)
	}
}
