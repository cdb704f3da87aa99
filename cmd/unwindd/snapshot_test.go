// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// takeSnapshot runs `unwindd snapshot` and returns the file that it wrote.
func takeSnapshot(t *testing.T, target string, args ...string) (string, snapshotSummary) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "taken.snapshot")
	stdout, stderr, status := unwindd(t, append([]string{"snapshot", target, "-o", path, "--format", "json"}, args...)...)
	var sum snapshotSummary
	if err := json.Unmarshal([]byte(stdout), &sum); status != 0 || err != nil {
		t.Fatalf("unwindd snapshot %s: status %d, %v\n%s", target, status, err, stderr)
	}
	return path, sum
}

// TestSnapshotsAreSummedUp has what is said of a snapshot, with the files of the code and
// without.
func TestSnapshotsAreSummedUp(t *testing.T) {
	sizes := map[string]int64{}
	for _, flag := range []string{"--files=false", "--files", "--any-file"} {
		path, sum := takeSnapshot(t, serverCore, flag)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes[flag] = sum.Bytes
		if sum.Path != path || sum.Bytes != info.Size() || sum.Threads != 4 || sum.Frames != 26 || sum.Modules == 0 || sum.Memory == 0 || sum.Problems == nil {
			t.Errorf("%s: %+v, the file has %d bytes", flag, sum, info.Size())
		}
	}
	if sizes["--files"] < 100<<10 || sizes["--files=false"] > 100<<10 || sizes["--any-file"] != sizes["--files=false"] {
		t.Errorf("bytes: %v", sizes)
	}
}

func TestSnapshotsAreWrittenWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "kept.snapshot")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stderr, status := unwindd(t, "snapshot", filepath.Join(dir, "none"), "-o", path)
	if b, _ := os.ReadFile(path); status != 1 || string(b) != "before" {
		t.Errorf("status %d, file %q\n%s", status, b, stderr)
	}
	core := filepath.Join("..", "..", "examples", "crash", "server.core")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, status := unwindd(t, "snapshot", core, "-o", link)
	if status != 0 || !strings.Contains(stdout, "4 threads, 26 frames") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if b, _ := os.ReadFile(path); !strings.HasPrefix(string(b), "PK\x03\x04") {
		t.Errorf("the file that a link leads to begins with %.10q", b)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read it", info.Mode(), err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("%v is left", list)
	}
	if _, _, status := unwindd(t, "snapshot", core, "-o", "/dev/null"); status != 0 {
		t.Errorf("/dev/null: status %d", status)
	}
	if info, err := os.Stat("/dev/null"); err != nil || info.Mode().IsRegular() {
		t.Fatalf("/dev/null is replaced: %v", err)
	}
	if _, stderr, status := unwindd(t, "snapshot", core); status != 2 || !strings.Contains(stderr, "-o FILE") {
		t.Errorf("without -o: status %d, %s", status, stderr)
	}
	if _, stderr, status := unwindd(t, "snapshot", core, "-o", filepath.Join(dir, "no", "folder")); status != 1 || !strings.Contains(stderr, "does not exist") {
		t.Errorf("without its folder: status %d, %s", status, stderr)
	}
}
