// SPDX-License-Identifier: Apache-2.0

// Package cost has what the programs share that run unwindd and its peers in turn and
// compare what they cost.
package cost

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Rounds is how often everything is run: the number in PEERS_ROUNDS, else the usual one.
func Rounds(usual int) (int, error) {
	text := os.Getenv("PEERS_ROUNDS")
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("PEERS_ROUNDS %q: expected a number from 1", text)
	}
	return n, nil
}

// Run runs a command in a folder. Its output is part of the error where it fails.
func Run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// Build builds the command in a folder, and returns its path. The programs run in
// the folder of this module.
func Build(dir string) (unwindd string, err error) {
	unwindd = filepath.Join(dir, "unwindd")
	return unwindd, Run("../..", "go", "build", "-trimpath", "-o", unwindd, "./cmd/unwindd")
}

// Folder is the folder that somebody keeps, else one that remove removes.
func Folder(kept, pattern string) (dir string, remove func(), err error) {
	if kept != "" {
		dir, err = filepath.Abs(kept)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		return dir, func() {}, err
	}
	dir, err = os.MkdirTemp("", pattern)
	return dir, func() { _ = os.RemoveAll(dir) }, err
}

// Unwindd is the executable that a variable names, else one that is built in a folder.
func Unwindd(variable, dir string) (path string, err error) {
	if path = os.Getenv(variable); path != "" {
		return path, nil
	}
	return Build(dir)
}

// A Cost is what a run took.
type Cost struct {
	Wall, CPU time.Duration // CPU: of the children that ended, too
	Own, All  int64         // KiB of memory: without and with the pages of mapped files
}

// Of runs a command without its output. Memory is the largest that the kernel says
// while it runs (RssAnon, and VmHWM in /proc/PID/status), its children's apart.
func Of(argv []string) (*Cost, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &Cost{}
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
			text, _ := os.ReadFile(status) // it may have ended
			c.Own, c.All = max(c.Own, kib(text, "RssAnon:")), max(c.All, kib(text, "VmHWM:"))
		}
	}()
	err := cmd.Wait()
	c.Wall = time.Since(began)
	close(done)
	<-watched
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	c.CPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return c, nil
}

// Best is the least time and the most memory of two runs, of which the other may be nil.
func (c *Cost) Best(other *Cost) *Cost {
	if other == nil {
		return c
	}
	return &Cost{min(c.Wall, other.Wall), min(c.CPU, other.CPU), max(c.Own, other.Own), max(c.All, other.All)}
}

// kib is a number of /proc/PID/status; 0 where it has none.
func kib(status []byte, name string) (n int64) {
	if _, rest, ok := strings.Cut(string(status), "\n"+name); ok {
		// What is no number is 0.
		_, _ = fmt.Sscan(rest, &n)
	}
	return n
}
