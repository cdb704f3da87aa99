// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// startServer starts testdata/profile/server.c by a command before it, and returns the IDs of its
// master and of its worker.
func startServer(t *testing.T, before ...string) (master, worker int) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "server")
	oracle.Run(t, "cc", "-O1", "-g", "-fno-omit-frame-pointer", "-o", program, "testdata/profile/server.c")
	words := []string{program}
	if before != nil {
		words = append(before, filepath.Dir(program))
	}
	cmd := exec.Command(words[0], words[1:]...)
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
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		t.Skipf("%v said %q, %v", words, line, err)
	}
	// In a namespace of its own it does not know its number here.
	child := func(pid int) int {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Skipf("the children of %d are %q", pid, text)
		}
		return n
	}
	master = cmd.Process.Pid
	if before != nil {
		master = child(master)
	}
	return master, child(master)
}

// The code of a living process is named by the map that its runtime wrote: with the ID that it has
// in its own PID namespace, in its own /tmp, or by the process that forked it.
func TestMapsOfLivingProcesses(t *testing.T) {
	oracle.Tools(t, "cc", "unshare", "mount")
	for name, before := range map[string][]string{
		"a fork":      nil,
		"a container": {"unshare", "--fork", "--kill-child", "--pid", "--mount", "--mount-proc", "sh", "-c", `mount --bind "$0" /tmp && exec /tmp/server`},
	} {
		t.Run(name, func(t *testing.T) {
			if before != nil && os.Geteuid() != 0 {
				t.Skip("makes namespaces")
			}
			master, worker := startServer(t, before...)
			t.Cleanup(func() { _ = os.Remove(fmt.Sprintf("/tmp/perf-%d.map", master)) })
			e := newX86Engine(t, Options{})
			isNamed := false
			for tries := 0; !isNamed && tries < 100; tries++ { // until the worker is in the code
				time.Sleep(10 * time.Millisecond)
				living, err := e.OpenProcess(worker)
				if err != nil {
					t.Fatal(err)
				}
				for s := range living.Stacks(t.Context()) {
					isNamed = len(s.Frames) > 0 && len(s.Frames[0].Symbols) > 0 && s.Frames[0].Symbols[0].Function == "loop(made)"
				}
				if err := living.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if !isNamed {
				t.Error("no stack begins with loop(made)")
			}
			path := filepath.Join(t.TempDir(), "perf.data")
			file, err := os.Create(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			done, err := e.RecordProcess(t.Context(), worker, file, trace.RecordOptions{Repeat: 3, Every: time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			p, err := e.Profile(t.Context(), path, trace.ProfileOptions{Roots: map[int]string{worker: done.Root}})
			if done.Root == "" {
				p, err = e.Profile(t.Context(), path, trace.ProfileOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, got := range innermostNames(p) {
				if want := fmt.Sprintf("%d loop(made)", worker); got != want {
					t.Errorf("%q, expected %q; %q", got, want, p.Problems)
				}
			}
		})
	}
}
