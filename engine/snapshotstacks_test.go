// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/proof"
	"github.com/unwindd/unwindd/internal/subject"
)

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
			want := enginetest.Report(t, core)
			first, s := enginetest.Snapshot(t, core, engine.SnapshotOptions{})
			enginetest.SameStacks(t, "snapshot", want, enginetest.Report(t, first))
			second, _ := enginetest.Snapshot(t, first, engine.SnapshotOptions{})
			enginetest.SameStacks(t, "snapshot of a snapshot", want, enginetest.Report(t, second))

			info, err := os.Stat(first)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("snapshot of %d bytes: %d threads, %d frames", info.Size(), len(s.Contents().Threads), s.Frames)
			if len(s.Contents().Threads) != len(want.Threads) || info.Size() > 16<<10+int64(len(s.Contents().Threads))*16<<10+int64(s.Frames)*512 {
				t.Errorf("%d bytes: %d threads with %d frames, of %d", info.Size(), len(s.Contents().Threads), s.Frames, len(want.Threads))
			}
			again, _ := enginetest.Snapshot(t, core, engine.SnapshotOptions{})
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
	t.Parallel()
	exe := copied(t, subject.Build(t, "mtcore"), "mtcore")
	core := subject.Core(t, exe, "segv", "4")
	want := enginetest.Report(t, core)
	kept, _ := enginetest.Snapshot(t, core, engine.SnapshotOptions{Files: true})
	named, _ := enginetest.Snapshot(t, core, engine.SnapshotOptions{})
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	got := enginetest.Report(t, kept, under(empty))
	for i := range want.Threads {
		if d := cmp.Diff(walkedPCs(&want.Threads[i]), walkedPCs(&got.Threads[i])); d != "" {
			t.Errorf("thread %s (-target +snapshot with files):\n%s", want.Threads[i].ID, d)
		}
	}
	if without := enginetest.Report(t, named, under(empty)); len(without.Threads[0].Frames) >= len(want.Threads[0].Frames) {
		t.Errorf("a snapshot without files has %d frames where there are no files", len(without.Threads[0].Frames))
	}
}

// TestSnapshotOfALivingProcess has threads that wait.
func TestSnapshotOfALivingProcess(t *testing.T) {
	t.Parallel()
	pid, err := strconv.Atoi(subject.Start(t, subject.Build(t, "mtcore"), "wait", "8"))
	if err != nil {
		t.Fatal(err)
	}
	living, err := enginetest.Engine(t, engine.Options{}).OpenProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	s, err := living.Snapshot(t.Context(), engine.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "living.snapshot")
	put(t, file, b.Bytes())
	kept, err := enginetest.Open(t, file)
	if err != nil {
		t.Fatal(err)
	}
	pcs := func(t *engine.Target, th *trace.Thread) (list []uint64) {
		for _, f := range t.Walk(context.Background(), th).Frames {
			list = append(list, f.PC)
		}
		return list
	}
	for i, th := range living.Threads() {
		want, got := pcs(living, th), pcs(kept, kept.Threads()[i])
		if len(want) < 4 || !slices.Equal(want, got) {
			t.Errorf("thread %s: %#x, its snapshot has %#x", th.ID, want, got)
		}
	}
	if len(living.Threads()) != 9 || len(kept.Threads()) != 9 {
		t.Errorf("%d threads, its snapshot has %d", len(living.Threads()), len(kept.Threads()))
	}
}
