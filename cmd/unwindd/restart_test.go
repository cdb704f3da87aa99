// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
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

// TestPluginIsAProcessOfItsOwn: the plugin is a child process, confined, that
// dies with its parent even when the parent is killed.
func TestPluginIsAProcessOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	oddPlugin(t, dir, "hang")
	cmd := command("stack", oddCore(t), "--plugin-dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	plugin := 0
	eventually(t, "the plugin's process", func() bool {
		for _, pid := range children(cmd.Process.Pid) {
			if line, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline")); strings.Contains(string(line), "unwindd-arch-hang") &&
				!strings.Contains(string(line), "exec") {
				plugin = pid
			}
		}
		return plugin != 0
	})
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(plugin), "status"))
	if err != nil {
		t.Fatal(err)
	}
	mustSay(t, string(status), "NoNewPrivs:\t1", "Seccomp:\t2")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the end of the plugin", func() bool { return hasEnded(plugin) })
}
