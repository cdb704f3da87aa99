// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/subject"
)

// TestGoroutinesOfALivingProcess has goroutines that wait, and some that execute; those that wait have the
// stacks that the program gave them, alive and in a snapshot, whether one process is opened or several.
func TestGoroutinesOfALivingProcess(t *testing.T) {
	const count = 200
	cmd := exec.Command(subject.BuildGoroutines(t, "goroutines", "local"), "wait", "200")
	pid := startReady(t, cmd)
	e := enginetest.Engine(t, engine.Options{Goroutines: true, ForSnapshot: true})
	check := func(what string, own *engine.Target, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		receives, deepest := goroutinesIn(t, own)
		if receives != count || deepest < 1000 {
			t.Errorf("%s: %d goroutines receive, and the longest stack has %d frames of deep, expected %d and 1001; problems %q", what, receives, deepest, count, own.Problems())
		}
	}
	living, err := e.OpenProcess(pid)
	check("living", living, err)
	kept, err := living.Snapshot(t.Context(), engine.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := kept.Write(&b); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "living.snapshot")
	put(t, file, b.Bytes())
	snapshot, err := e.Open(file)
	check("its snapshot", snapshot, err)
	e.OpenProcesses(t.Context(), []int{pid}, engine.OpenProcessesOptions{Each: func(_ int, own *engine.Target, err error) {
		check("with others", own, err)
	}})
	without, err := enginetest.Engine(t, engine.Options{}).OpenProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if receives, _ := goroutinesIn(t, without); receives != 0 {
		t.Errorf("%d goroutines receive in a target without the memory for it", receives)
	}
}

// goroutinesIn counts the goroutines that receive, and the frames of deep in the longest stack.
func goroutinesIn(t *testing.T, own *engine.Target) (receives, deepest int) {
	t.Helper()
	all := own.WithGoroutines(t.Context())
	defer all.Close()
	for s := range all.Stacks(t.Context()) {
		deep := 0
		for i := range s.Frames {
			switch symbols := s.Frames[i].Symbols; {
			case s.Thread.Goroutine == nil || len(symbols) == 0:
			case symbols[len(symbols)-1].Function == "main.receive":
				receives++
			case symbols[len(symbols)-1].Function == "main.deep":
				deep++
			}
		}
		deepest = max(deepest, deep)
	}
	return receives, deepest
}
