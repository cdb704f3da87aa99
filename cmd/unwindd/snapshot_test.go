// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
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

// sameStacks compares stacks frame by frame, with all that is said of them.
func sameStacks(t *testing.T, what string, want, got *report.Report) {
	t.Helper()
	if d := cmp.Diff(want.Threads, got.Threads); d != "" {
		t.Errorf("%s (-target +snapshot):\n%s", what, d)
	}
	if want.Target.Signal != got.Target.Signal {
		t.Errorf("%s: signal %d, the target has %d", what, got.Target.Signal, want.Target.Signal)
	}
}

func TestStacksOfASnapshotAreThoseOfItsTarget(t *testing.T) {
	long(t)
	t.Parallel()
	for _, c := range []struct {
		subject, mode, threads string
		live                   bool
	}{
		{"mtcore", "sigh", "8", false},
		{"mtcore", "segv", "64", false},
		{"mtcore", "cxx", "8", false},
		{"mtcore", "rip0", "8", false},
		{"mtcore", "wait", "8", true},
		{"frames", "crash", "", false},
		{"rustsubject", "panic", "", false},
		{"gosubject", "panic", "", false},
		{"gosubject", "wait", "", true},
		{"nocfi", "crash", "", false},
	} {
		t.Run(strings.Join([]string{c.subject, c.mode, c.threads}, "-"), func(t *testing.T) {
			if c.mode == "cxx" || c.mode == "rip0" || c.mode == "panic" || c.threads == "64" {
				proof.Only(t)
			}
			exe := subject.Build(t, c.subject)
			args := strings.Fields(c.mode + " " + c.threads)
			var core string
			if c.live {
				core = subject.LiveCore(t, exe, args...)
			} else {
				core = subject.Core(t, exe, args...)
			}
			want := stackJSON(t, core)
			first, sum := takeSnapshot(t, core)
			sameStacks(t, "snapshot", want, stackJSON(t, first))
			second, _ := takeSnapshot(t, first)
			sameStacks(t, "snapshot of a snapshot", want, stackJSON(t, second))

			info, err := os.Stat(core)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("core %d bytes, snapshot %d: %d threads, %d frames, %d bytes of memory", info.Size(), sum.Bytes, sum.Threads, sum.Frames, sum.Memory)
			if sum.Threads != len(want.Threads) || sum.Bytes > 16<<10+int64(sum.Threads)*16<<10+int64(sum.Frames)*512 {
				t.Errorf("%+v of %d threads", sum, len(want.Threads))
			}
			again, _ := takeSnapshot(t, core)
			a, _ := os.ReadFile(first)
			b, _ := os.ReadFile(again)
			if string(a) != string(b) {
				t.Error("two snapshots of one core differ")
			}
		})
	}
}

// A snapshot with the files is all that its stacks need. Debug files are not among them.
func TestSnapshotsWithFilesNeedNoOthers(t *testing.T) {
	exe := filepath.Join(t.TempDir(), "mtcore")
	b, err := os.ReadFile(subject.Build(t, "mtcore"))
	if err == nil {
		err = os.WriteFile(exe, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	core := subject.Core(t, exe, "segv", "4")
	want := stackJSON(t, core)
	kept, _ := takeSnapshot(t, core, "--files")
	named, _ := takeSnapshot(t, core)
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	got := stackJSON(t, kept, "--sysroot", empty)
	for i := range want.Threads {
		if d := cmp.Diff(walkedPCs(&want.Threads[i]), walkedPCs(&got.Threads[i])); d != "" {
			t.Errorf("thread %s (-target +snapshot with files):\n%s", want.Threads[i].ID, d)
		}
	}
	if without := stackJSON(t, named, "--sysroot", empty); len(without.Threads[0].Frames) >= len(want.Threads[0].Frames) {
		t.Errorf("a snapshot without files has %d frames where there are no files", len(without.Threads[0].Frames))
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
	if _, stderr, status := unwindd(t, "snapshot", core, "-o", filepath.Join(dir, "no", "folder")); status != 1 || !strings.Contains(stderr, "no such file") {
		t.Errorf("without its folder: status %d, %s", status, stderr)
	}
}
