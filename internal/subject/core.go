// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/internal/oracle"
)

// limited returns the command of a program with stacks of a megabyte and one heap,
// which keeps cores small, and with cores allowed.
func limited(exe string, args []string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", `ulimit -c unlimited -s 1024; exec "$0" "$@"`, exe)
	cmd.Args = append(cmd.Args, args...)
	cmd.Env = append(os.Environ(), "MALLOC_ARENA_MAX=1", "GOTRACEBACK=crash")
	return cmd
}

// Core runs a program until it dies and returns the core that the kernel wrote.
func Core(t testing.TB, exe string, args ...string) string {
	t.Helper()
	core, _ := Crash(t, exe, args...)
	return core
}

// Crash runs a program as Core does, and returns what it printed too.
func Crash(t testing.TB, exe string, args ...string) (core, printed string) {
	t.Helper()
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	if err != nil || strings.ContainsAny(string(pattern), "|/%") {
		if len(pattern) > 0 {
			oracle.Missing(t, "kernel.core_pattern is %q, expected a plain name", pattern)
		}
		t.Skipf("kernel.core_pattern is %q, expected a plain name", pattern)
	}
	dir := t.TempDir()
	cmd := limited(exe, args)
	cmd.Dir = dir
	var exit *exec.ExitError
	out, err := cmd.CombinedOutput()
	if !errors.As(err, &exit) {
		t.Fatalf("%s %v did not die: %v\n%s", exe, args, err, out)
	}
	cores, _ := filepath.Glob(filepath.Join(dir, "core*"))
	if len(cores) != 1 {
		t.Fatalf("%s %v left %d cores, expected 1", exe, args, len(cores))
	}
	return cores[0], string(out)
}

// LiveCore starts a program, waits until all of its threads have waited, and takes its core with
// gdb's gcore.
func LiveCore(t testing.TB, exe string, args ...string) string {
	t.Helper()
	oracle.Tools(t, "gcore")
	core := filepath.Join(t.TempDir(), "core")
	pid := Start(t, exe, args...)
	oracle.With{Env: []string{"DEBUGINFOD_URLS="}}.Run(t, "gcore", "-o", core, pid)
	return core + "." + pid
}

// Start starts a program that prints when it is ready, and returns the ID of its process
// when all of its threads have waited. It is killed when the test ends.
func Start(t testing.TB, exe string, args ...string) (pid string) {
	t.Helper()
	cmd := limited(exe, args)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready") {
		t.Fatalf("%s said %q, %v", exe, line, err)
	}
	pid = fmt.Sprint(cmd.Process.Pid)
	waited := map[string]bool{}
	for end := time.Now().Add(time.Minute); !threadsWaited(t, pid, waited); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a thread of %s %v never waits", exe, args)
		}
	}
	return pid
}

// threadsWaited reports whether every thread of a process waits now, or did at an earlier
// look: on a busy machine threads that wake now and then may never all wait at once.
func threadsWaited(t testing.TB, pid string, waited map[string]bool) bool {
	t.Helper()
	stats, err := filepath.Glob(filepath.Join("/proc", pid, "task", "*", "stat"))
	if err != nil || len(stats) == 0 {
		t.Fatalf("process %s has no threads: %v", pid, err)
	}
	all := true
	for _, path := range stats {
		stat, _ := os.ReadFile(path)
		_, fields, _ := strings.Cut(string(stat), ") ") // behind the name
		waited[path] = waited[path] || strings.HasPrefix(fields, "S")
		all = all && waited[path]
	}
	return all
}

// GDBPCs asks gdb for the PCs of every thread of a core, by thread.
func GDBPCs(t testing.TB, exe, core string) map[string][]string {
	t.Helper()
	out := oracle.Run(t, "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", "-ex", "source "+Source(t, "gdb_pcs.py"), exe, core)
	pcs := PrintedPCs(out)
	if len(pcs) == 0 {
		t.Fatalf("gdb printed no stacks:\n%s", out)
	}
	return pcs
}

// PrintedPCs returns the PCs that gdb_pcs.py printed, by thread.
func PrintedPCs(out string) map[string][]string {
	pcs := map[string][]string{}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "PCS" {
			pcs[f[1]] = f[2:]
		}
	}
	return pcs
}
