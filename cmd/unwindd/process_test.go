// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// waiting starts a program of four threads that wait in C.
func waiting(t *testing.T) (pid string) {
	t.Helper()
	return victim(t, "threads", "3")
}

// victim starts the program whose threads do what its first argument says.
func victim(t *testing.T, args ...string) (pid string) {
	t.Helper()
	source := oracle.Checkout(t, "engine/internal/target/process/testdata/victim.c")
	program := filepath.Join(oracle.Build{Sources: []string{source}, Commands: [][]string{
		{"gcc", "-g", "-O1", "-fno-optimize-sibling-calls", "-pthread", "-o", "waiting", source},
	}}.Make(t), "waiting")
	cmd := exec.Command(program, args...)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ready := make([]byte, 6)
	if _, err := out.Read(ready); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // for the threads
	return fmt.Sprint(cmd.Process.Pid)
}

func TestStackOfALivingProcess(t *testing.T) {
	pid := waiting(t)
	out, stderr, status := unwindd(t, "stack", "-v", pid)
	for _, want := range []string{"__libc_pause", "wait_inner", "wait_middle", "waiter", "main", "3 threads"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if status != 0 || !strings.Contains(stderr, "4 threads were stopped for") {
		t.Errorf("status %d, %s", status, stderr)
	}
	out, _, _ = unwindd(t, "stack", "--format", "json", pid)
	var report struct {
		Target  struct{ Kind, Path string }
		Threads []struct{ Frames []struct{ Function string } }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	if got := report.Target; got.Kind != "process" || got.Path != "/proc/"+pid || len(report.Threads) != 4 {
		t.Errorf("target %+v, %d threads", got, len(report.Threads))
	}
	page, _, status := unwindd(t, "stack", "--format", "html", pid)
	if !strings.Contains(page, "waiting threads 3") || status != 0 {
		t.Errorf("the page does not say the command line, status %d", status)
	}
}

func TestProfileOfALivingProcess(t *testing.T) {
	pid := waiting(t)
	t.Setenv("TMPDIR", t.TempDir())
	out, stderr, status := unwindd(t, "profile", pid, "-v", "--idle", "--repeat", "20", "--every", "5ms", "--format", "folded")
	if status != 0 || !strings.Contains(stderr, "80 samples at 20 moments") || !strings.Contains(stderr, "process "+pid+" (waiting): 80 samples of 4 threads") {
		t.Errorf("status %d: %s", status, stderr)
	}
	for _, want := range []string{";main;wait_middle;wait_inner;", ";start_thread;waiter;wait_middle;wait_inner;"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if left, _ := os.ReadDir(os.Getenv("TMPDIR")); len(left) > 0 {
		t.Errorf("%s was left behind", left[0].Name())
	}
	if _, stderr, status := unwindd(t, "profile", "--repeat", "3", "perf.data"); status != 2 || !strings.Contains(stderr, "living") {
		t.Errorf("--repeat of a recording: status %d, %s", status, stderr)
	}
}

func TestProcessesThatCannotBeRead(t *testing.T) {
	for _, args := range [][]string{{"stack", "4194309"}, {"profile", "4194309"}, {"snapshot", "4194309", "-o", filepath.Join(t.TempDir(), "x")}} {
		if _, stderr, status := unwindd(t, args...); status != 1 || !strings.Contains(stderr, "process 4194309: no such process") {
			t.Errorf("%q: status %d, %s", args, status, stderr)
		}
	}
	// A file of that name is what is meant.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "4194309"), []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command("stack", "4194309")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "not") || strings.Contains(string(out), "process") {
		t.Errorf("%s, %v", out, err)
	}
}
