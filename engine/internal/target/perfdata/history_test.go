// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
)

func TestHistoryHasWhatWasMappedAtATime(t *testing.T) {
	b := newBuilder(false, simple())
	b.comm(1, 1, 10, "shell", 0)
	b.mmap2(1, 10, 0x1000, 0x1000, 0, 5, "/bin/shell", 0)
	b.mmap2(2, 11, 0x1000, 0x1000, 0, 5, "/bin/other", 0)
	b.sample(1, 1, 15)
	b.mmap2(1, 20, 0x2000, 0x1000, 0, 5, "/lib/one", 0)
	b.mmap2(1, 25, 0x8000, 0x1000, 0, 3, "/data", 0) // no code
	b.mmap2(1, 30, 0x2000, 0x1000, 0, 5, "/lib/two", 0)
	b.fork(1, 1, 5, 1, 35, 0) // a thread
	b.comm(1, 5, 36, "worker", 0)
	b.comm(1, 1, 40, "program", miscCommExec)
	b.mmap2(1, 41, 0x1000, 0x1000, 0, 5, "/bin/program", 0)
	b.exit(1, 1, 50)
	f := parse(t, b.bytes())
	h, err := f.History([]int{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		pid     int
		time    uint64
		address uint64
		want    string
	}{
		{1, 9, 0x1000, ""}, {1, 10, 0x1000, "/bin/shell"}, {1, 19, 0x2000, ""}, {1, 20, 0x2000, "/lib/one"}, {1, 29, 0x2fff, "/lib/one"},
		{1, 30, 0x2000, "/lib/two"}, {1, 39, 0x1000, "/bin/shell"}, {1, 40, 0x1000, ""}, {1, 41, 0x1000, "/bin/program"}, {1, 41, 0x2000, ""},
		{1, ^uint64(0), 0x1000, "/bin/program"}, {2, 30, 0x1000, ""}, {3, 30, 0x1000, ""},
	} {
		got := ""
		if m := h.Space(tt.pid, tt.time).Find(tt.address); m != nil {
			got = m.Path
		}
		if got != tt.want {
			t.Errorf("process %d at %d: %#x is in %q, expected %q", tt.pid, tt.time, tt.address, got, tt.want)
		}
	}
	// One for each change of its code, and none for another process'.
	if n := len(h.Spaces(1)); n != 6 || len(h.Spaces(2)) != 0 || len(h.Spaces(3)) != 0 {
		t.Errorf("%d, %d and %d spaces, expected 6 and none", n, len(h.Spaces(2)), len(h.Spaces(3)))
	}
	for _, tt := range []struct {
		tid  int
		time uint64
		want string
	}{{1, 9, ""}, {1, 10, "shell"}, {1, 39, "shell"}, {1, 40, "program"}, {5, 34, ""}, {5, 35, "shell"}, {5, 36, "worker"}, {5, 90, "worker"}, {6, 90, ""}} {
		if got := h.Comm(1, tt.tid, tt.time); got != tt.want {
			t.Errorf("thread %d at %d is %q, expected %q", tt.tid, tt.time, got, tt.want)
		}
	}
	// What keeps both a Reader's and a History's spaces tells them apart.
	r := f.Reader()
	batch, err := r.Next()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range h.Spaces(1) {
		if s.ID <= batch.Samples[0].Space.ID || s.Code < historyVersions {
			t.Errorf("a space has ID %#x and code %#x, a reader's %#x", s.ID, s.Code, batch.Samples[0].Space.ID)
		}
	}
}

func TestHistoryOfAFileThatShrinksIsAnError(t *testing.T) {
	b := newBuilder(false, simple())
	b.comm(1, 1, 10, "shell", 0)
	for i := range 4096 {
		b.mmap2(1, uint64(i), 0x1000, 0x1000, 0, 5, "/bin/shell", 0)
	}
	path := filepath.Join(t.TempDir(), "perf.data")
	if err := os.WriteFile(path, b.bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if _, err := f.History([]int{1}); !errors.Is(err, object.ErrFileShrank) || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}
