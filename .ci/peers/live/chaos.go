// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// churn takes the stacks of processes that start, execute other programs and end, at any
// moment of their lives, and counts what became of it. None may be left stopped.
func churn(unwindd string, count int) error {
	scripts := []string{
		"exec true", "exec sleep 0.1", "sleep 0.01; exec sleep 0.1", "for i in $(seq 100); do /bin/true; done; exec /bin/cat /dev/null",
		"(sleep 0.1 &); exec sh -c 'exec sh -c \"exec sleep 0.1\"'", "exec perl -e 'exec q(sleep), 0.1 if fork; sleep 1 if rand() < 0.1'",
	}
	outcomes := map[string]int{}
	numbers := regexp.MustCompile(`[0-9]+|\(.*?\)`)
	var stops []time.Duration
	for i := range count {
		cmd := exec.Command("sh", "-c", scripts[i%len(scripts)])
		if err := cmd.Start(); err != nil {
			return err
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) //nolint:gosec // no secret
		out, err := exec.Command(unwindd, "stack", "-v", strconv.Itoa(cmd.Process.Pid)).CombinedOutput()
		switch {
		case err != nil:
			_, text, _ := strings.Cut(string(bytes.TrimSpace(out)), "process")
			outcomes["said: process"+numbers.ReplaceAllString(text, "N")]++
		case bytes.Contains(out, []byte("#0")):
			outcomes["its stack was printed"]++
			stops = append(stops, stopOf(out))
		default:
			return fmt.Errorf("unwindd printed no stack, and no error:\n%s", out)
		}
		if err := nobodyStopped(cmd.Process.Pid); err != nil {
			return err
		}
		_ = cmd.Wait()
	}
	if err := soonNobodyStopped(0, 10*time.Second); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(outcomes)) {
		fmt.Printf("%6d %s\n", outcomes[name], name)
	}
	slices.Sort(stops)
	if n := len(stops); n > 0 {
		fmt.Printf("a process was stopped for %v (median), %v (of 99 in 100), %v (longest)\n", stops[n/2], stops[n*99/100], stops[n-1])
	}
	return nil
}

// stopOf is how long -v says that a process was stopped.
func stopOf(out []byte) time.Duration {
	_, rest, _ := bytes.Cut(out, []byte("threads were stopped for "))
	word, _, _ := bytes.Cut(rest, []byte(","))
	d, _ := time.ParseDuration(string(word))
	return d
}

// nobodyStopped says which thread of a process is stopped; 0: of all processes.
func nobodyStopped(pid int) error {
	pattern := fmt.Sprintf("/proc/%d/task/*/status", pid)
	if pid == 0 {
		pattern = "/proc/[0-9]*/task/*/status"
	}
	list, _ := filepath.Glob(pattern)
	for _, path := range list {
		data, _ := os.ReadFile(path)
		for line := range strings.Lines(string(data)) {
			if rest, ok := strings.CutPrefix(line, "State:\t"); ok && strings.ContainsAny(rest[:1], "tT") {
				return fmt.Errorf("%s: it is left in state %s", path, strings.TrimSpace(rest))
			}
		}
	}
	return nil
}

// soonNobodyStopped is nobodyStopped for what may take a time: the kernel lets threads go one
// after the other, and others stop processes, too.
func soonNobodyStopped(pid int, within time.Duration) (err error) {
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		if err = nobodyStopped(pid); err == nil || time.Since(begun) > within {
			return err
		}
	}
}

const threadsProgram = `
import threading, time
for i in range(99):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print("ready", flush=True)
time.sleep(1000)
`

// kills ends unwindd by SIGKILL while it stops a process of 100 threads again and again. All
// of them have to be waiting a moment later.
func kills(unwindd string, count int) error {
	subject := exec.Command("/usr/bin/python3", "-c", threadsProgram)
	out, err := subject.StdoutPipe()
	if err != nil {
		return err
	}
	if err := subject.Start(); err != nil {
		return err
	}
	defer func() {
		_ = subject.Process.Kill()
		_ = subject.Wait()
	}()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "live-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	pid, stopped := subject.Process.Pid, 0
	for range count {
		cmd := exec.Command(unwindd, "profile", strconv.Itoa(pid), "--every", "0s", "--repeat", "1000000")
		cmd.Env = append(os.Environ(), "TMPDIR="+dir)
		if err := cmd.Start(); err != nil {
			return err
		}
		time.Sleep(30*time.Millisecond + time.Duration(rand.IntN(20_000))*time.Microsecond) //nolint:gosec // no secret
		if nobodyStopped(pid) != nil {
			stopped++ // it is at it
		}
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		if err := soonNobodyStopped(pid, 100*time.Millisecond); err != nil {
			return err
		}
	}
	fmt.Printf("unwindd was killed %d times, %d times a moment after threads of the process were seen stopped; none is left stopped\n", count, stopped)
	return nil
}
