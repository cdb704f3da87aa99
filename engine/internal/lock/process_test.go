// SPDX-License-Identifier: Apache-2.0

package lock_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/internal/enginetest"
	"github.com/unwindd/unwindd/internal/oracle"
)

// addresses matches the addresses of locks, which the program does not print.
var addresses = regexp.MustCompile(`0x[0-9a-f]+`)

// start starts the program, and returns its process and its lines, by thread.
func start(t *testing.T, count int, args ...string) (cmd *exec.Cmd, want map[string]string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "locks")
	if out, err := exec.Command(oracle.Tool(t, "gcc"), "-g", "-O1", "-pthread", "-w", "-o", program, "testdata/locks.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd = exec.Command(program, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	want = map[string]string{}
	names := []string{"ADDRESS", "ADDRESS"}
	for lines := bufio.NewScanner(out); len(want) < count && lines.Scan(); {
		id, line, _ := strings.Cut(lines.Text(), " ")
		if want[id] = line; line == "HOLDER" || line == "ENDED" {
			names = append(names, line, "thread "+id)
		}
	}
	for id, line := range want {
		want[id] = strings.NewReplacer(names...).Replace(line)
	}
	for id, line := range want { // two threads of a ring
		for other := range want {
			if other != id {
				want[id] = strings.ReplaceAll(line, "OTHER", "thread "+other)
				break
			}
		}
	}
	return cmd, want
}

// compare compares what the threads of a target wait for with the program's lines.
func compare(t *testing.T, target *engine.Target, want map[string]string) (different int) {
	t.Helper()
	for s := range target.Stacks(t.Context()) {
		line, isWaiter := want[s.Thread.ID]
		got := ""
		if s.Wait != nil {
			got = addresses.ReplaceAllString(s.Wait.Text(s.Thread), "ADDRESS")
		}
		if strings.HasPrefix(line, "thread ") { // it waits for none itself
			line = ""
		}
		if isWaiter && got != line {
			different++
			t.Logf("thread %s: %q, expected %q", s.Thread.ID, got, line)
		}
	}
	return different
}

// deadline is how long the threads may take to wait.
const deadline = 20 * time.Second

// whenWaiting opens the process again until all its threads wait.
func whenWaiting(t *testing.T, e *engine.Engine, pid int, want map[string]string) *engine.Target {
	t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(50 * time.Millisecond) {
		target, err := e.OpenProcess(pid)
		if err != nil {
			t.Fatal(err)
		}
		different := compare(t, target, want)
		if different == 0 {
			t.Cleanup(func() { _ = target.Close() })
			return target
		}
		_ = target.Close()
		if time.Now().After(end) {
			t.Fatalf("%d threads differ", different)
		}
	}
}

// others are the same process as a snapshot, and as gdb writes a core of it.
func others(t *testing.T, e *engine.Engine, target *engine.Target, pid int) map[string]*engine.Target {
	t.Helper()
	paths := map[string]string{"snapshot": filepath.Join(t.TempDir(), "locks.snapshot")}
	snapshot, err := target.Snapshot(t.Context(), engine.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(paths["snapshot"])
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := snapshot.Write(file); err != nil {
		t.Fatal(err)
	}
	if gcore, err := exec.LookPath("gcore"); err == nil {
		begin := filepath.Join(t.TempDir(), "core")
		if out, err := exec.Command(gcore, "-o", begin, fmt.Sprint(pid)).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		paths["core"] = fmt.Sprintf("%s.%d", begin, pid)
	}
	list := map[string]*engine.Target{}
	for kind, path := range paths {
		if list[kind], err = e.Open(path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = list[kind].Close() })
	}
	return list
}

// TestLocksOfAProcess compares the owners with those that a program says it has made.
func TestLocksOfAProcess(t *testing.T) {
	cmd, want := start(t, 15)
	e := enginetest.Engine(t, engine.Options{})
	target := whenWaiting(t, e, cmd.Process.Pid, want)
	for kind, other := range others(t, e, target, cmd.Process.Pid) {
		if n := compare(t, other, want); n > 0 {
			t.Errorf("%s: %d threads differ", kind, n)
		}
		if list := other.Deadlocks(t.Context()); len(list) > 0 {
			t.Errorf("%s: %v", kind, list)
		}
	}
}

func TestDeadlockOfAProcess(t *testing.T) {
	cmd, want := start(t, 2, "ring")
	e := enginetest.Engine(t, engine.Options{})
	target := whenWaiting(t, e, cmd.Process.Pid, want)
	targets := others(t, e, target, cmd.Process.Pid)
	targets["process"] = target
	for kind, other := range targets {
		list := other.Deadlocks(t.Context())
		if len(list) != 1 || len(list[0].Links) != 2 || list[0].Links[0].Wait.Owner != list[0].Links[1].Thread || list[0].Links[1].Wait.Owner != list[0].Links[0].Thread {
			t.Errorf("%s: %v, expected two threads", kind, list)
			continue
		}
		line := addresses.ReplaceAllString(list[0].String(), "ADDRESS")
		first, second := list[0].Links[0].Thread.ID, list[0].Links[1].Thread.ID
		if expected := fmt.Sprintf("thread %s waits for %s, which waits for %s", first, want[first], want[second]); line != expected {
			t.Errorf("%s: %q, expected %q", kind, line, expected)
		}
	}
}
