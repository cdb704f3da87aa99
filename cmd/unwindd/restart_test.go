// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/subject"
)

// children are the live child processes of a process.
func children(pid int) []int {
	var out []int
	tasks, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "children"))
	for _, task := range tasks {
		b, _ := os.ReadFile(task)
		for _, f := range strings.Fields(string(b)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

// start runs the command and returns it with its standard output.
func start(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := command(args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &out
}

// TestPluginIsAProcessOfItsOwn: the plugin is a child process, confined, that
// dies with its parent even when the parent is killed.
func TestPluginIsAProcessOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	oddPlugin(t, dir, "hang")
	cmd, _ := start(t, "stack", oddCore(t), "--plugin-dir", dir)
	defer cmd.Wait()
	defer cmd.Process.Kill()
	plugin := 0
	for deadline := time.Now().Add(20 * time.Second); plugin == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for _, pid := range children(cmd.Process.Pid) {
			if line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); strings.Contains(string(line), "unwindd-arch-hang") &&
				!strings.Contains(string(line), "exec") {
				plugin = pid
			}
		}
	}
	if plugin == 0 {
		t.Fatal("no plugin process was seen")
	}
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(plugin), "status"))
	if err != nil {
		t.Fatal(err)
	}
	mustSay(t, string(status), "NoNewPrivs:\t1", "Seccomp:\t2")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if hasEnded(plugin) {
			return
		}
	}
	t.Errorf("the plugin, %d, is alive 10 s after its parent was killed", plugin)
}

// TestKilledPluginCostsAtMostTheStackInProgress kills the plugin as often as it
// shows up, for a while.
func TestKilledPluginCostsAtMostTheStackInProgress(t *testing.T) {
	core := subject.Core(t, subject.Build(t, "mtcore"), "segv", "40")
	want := stackJSON(t, core)
	for _, kills := range []int{1, 4} {
		cmd, out := start(t, "stack", "--format", "json", core)
		killed := map[int]bool{}
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		for running := true; running; {
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
				running = false
			default:
				for _, pid := range children(cmd.Process.Pid) {
					line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
					serving := strings.Contains(string(line), "serve") && !strings.Contains(string(line), "\x00exec\x00")
					if serving && !killed[pid] && len(killed) < kills {
						time.Sleep(20 * time.Millisecond)
						if syscall.Kill(pid, syscall.SIGKILL) == nil {
							killed[pid] = true
						}
					}
				}
				time.Sleep(time.Millisecond)
			}
		}
		var got report.Report
		if err := json.Unmarshal(out.Bytes(), &got); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if len(killed) == 0 {
			t.Fatal("no plugin process was seen")
		}
		failed := 0
		for i := range got.Threads {
			if got.Threads[i].Stopped.Reason == "plugin-failed" {
				failed++
				continue
			}
			if g, w := physicalPCs(&got.Threads[i]), physicalPCs(&want.Threads[i]); strings.Join(g, " ") != strings.Join(w, " ") {
				t.Errorf("thread %s: %v, expected %v", got.Threads[i].ID, g, w)
			}
		}
		if failed > len(killed) {
			t.Errorf("%d kills cost %d stacks", len(killed), failed)
		}
		if len(got.Target.Problems) == 0 {
			t.Errorf("%d kills are not told of", len(killed))
		}
		t.Logf("%d kills, %d of %d stacks lost; %q", len(killed), failed, len(got.Threads), got.Target.Problems)
	}
}
