// SPDX-License-Identifier: Apache-2.0

//go:build linux

package profile

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/object"
)

// TestTheVDSOOfAnotherKernel is in perf's cache, of which the recording has the build ID.
func TestTheVDSOOfAnotherKernel(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe") // any code object with a build ID
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.New("self", self)
	if err != nil {
		t.Fatal(err)
	}
	id := slices.Clone(o.BuildID())
	if len(id) == 0 {
		t.Skip("the test's executable has no build ID")
	}
	cache := t.TempDir()
	file := filepath.Join(cache, fmt.Sprintf(".build-id/%x/%x/vdso", id[:1], id[1:]))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/self/exe", file); err != nil {
		t.Fatal(err)
	}
	r := recordingOf(t, "host", time.Now())
	if found := r.findVDSO(id); found.Object != nil || found.Problem == "" {
		t.Errorf("without a cache: %+v", found)
	}
	r.finder.BuildIDDirs = []string{cache}
	found := r.findVDSO(id)
	if found.Object == nil || !found.Checked || found.Path != file {
		t.Fatalf("in the cache: %+v", found)
	}
	found.Object.Close()
}
