// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// pluginProcesses are the processes of plugins that this one has started.
func pluginProcesses() (pids []int) {
	tasks, _ := filepath.Glob("/proc/self/task/*/children")
	for _, task := range tasks {
		list, _ := os.ReadFile(task) // it may be gone
		for _, text := range strings.Fields(string(list)) {
			line, _ := os.ReadFile(filepath.Join("/proc", text, "cmdline"))
			if pid, err := strconv.Atoi(text); err == nil && strings.Contains(string(line), "plugin\x00serve\x00") {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// killPlugins kills plugins as they come, at most so many, until stop is closed. The number
// of those that were killed comes.
func killPlugins(most int, stop <-chan struct{}) <-chan int {
	killed := make(chan int, 1)
	go func() {
		var dead []int
		for {
			select {
			case <-stop:
				killed <- len(dead)
				return
			default:
			}
			time.Sleep(100 * time.Microsecond)
			for _, pid := range pluginProcesses() {
				if len(dead) < most && !slices.Contains(dead, pid) && oracle.Kill(pid, syscall.SIGKILL) == nil {
					dead = append(dead, pid)
				}
			}
		}
	}()
	return killed
}

// stacksByThread are the PCs of all stacks, and how many were lost to a plugin that failed.
func stacksByThread(t *testing.T, own *Target) (pcs map[string]string, lost int) {
	t.Helper()
	pcs = map[string]string{}
	for s := range own.Stacks(t.Context()) {
		if s.Stopped.Reason == trace.StopPluginFailed {
			lost++
			continue
		}
		for _, f := range s.Frames {
			pcs[s.Thread.ID] += fmt.Sprintf("%#x ", f.PC)
		}
	}
	return pcs, lost
}

// TestAKilledPluginCostsAtMostTheStackInProgress kills the plugin as often as it shows up,
// for a while.
func TestAKilledPluginCostsAtMostTheStackInProgress(t *testing.T) {
	opened := func() *Target {
		own, err := rocmChildren(t).Open("../examples/rocm-core/crash.core")
		if err != nil {
			t.Fatal(err)
		}
		return own
	}
	want, lost := stacksByThread(t, opened())
	if lost > 0 || len(want) < 4 {
		t.Fatalf("%d stacks, %d are lost of a plugin that lives", len(want), lost)
	}
	for _, most := range []int{1, 4} {
		for killed := 0; killed == 0; { // a walk may be done before its plugin is seen
			own, stop := opened(), make(chan struct{})
			told := killPlugins(most, stop)
			got, lost := stacksByThread(t, own)
			close(stop)
			if killed = <-told; lost > killed {
				t.Errorf("%d kills cost %d stacks", killed, lost)
			}
			for thread, pcs := range got {
				if pcs != want[thread] {
					t.Errorf("thread %s: %s, expected %s", thread, pcs, want[thread])
				}
			}
			if len(got)+lost != len(want) {
				t.Errorf("%d stacks and %d lost ones, expected %d", len(got), lost, len(want))
			}
			t.Logf("%d kills, %d of %d stacks lost; %q", killed, lost, len(want), own.Problems())
		}
	}
}
