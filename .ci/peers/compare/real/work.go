// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/processes"
)

//go:embed testdata
var sources embed.FS

// rig has what all jobs use.
type rig struct {
	unwindd, dir   string
	quick, verbose bool
	seed           int64
	notes          []string
}

// note keeps a line that is printed behind the table.
func (r *rig) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}

// choose chooses one of so many, another one for each job.
func (w *work) choose(count int) int {
	var salt uint64
	for _, c := range w.name {
		salt = salt*31 + uint64(c)
	}
	return rand.New(rand.NewPCG(uint64(w.seed), salt)).IntN(count) //nolint:gosec // no secret
}

// size is how many processes or threads a job has.
func (r *rig) size(quick, whole int) int {
	if r.quick {
		return quick
	}
	return whole
}

// absent are the commands that are not installed.
func absent(commands []string) (list []string) {
	for _, c := range commands {
		if _, err := exec.LookPath(c); err != nil {
			list = append(list, c)
		}
	}
	return list
}

// work is a job that runs.
type work struct {
	*rig
	name, dir string
	started   []*exec.Cmd
	ready     []int // process IDs
	moments   int   // at which processes are collected; 0: one
}

// build compiles a source of testdata by a command, whose last arguments become the executable and the source.
func (w *work) build(source string, compiler ...string) (string, error) {
	folder := filepath.Join(w.dir, "sources")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	for _, name := range []string{"state.h", source} {
		text, err := fs.ReadFile(sources, "testdata/"+name)
		if err != nil {
			return "", err
		}
		path := filepath.Join(folder, filepath.Base(name))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return "", err
		}
	}
	executable := filepath.Join(w.dir, strings.TrimSuffix(filepath.Base(source), filepath.Ext(source)))
	if len(compiler) == 0 {
		return filepath.Join(folder, filepath.Base(source)), nil
	}
	return executable, cost.Run(folder, compiler[0], append(compiler[1:], "-o", executable, filepath.Base(source))...)
}

// start starts a program in the folder of the job, in a group of its own. Ranks that spin are to leave the
// processors to others.
func (w *work) start(argv ...string) (*exec.Cmd, error) {
	cmd := exec.Command("nice", append([]string{"-n", "19"}, argv...)...)
	cmd.Dir = w.dir
	cmd.Stdout, cmd.Stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w.started = append(w.started, cmd)
	return cmd, nil
}

// end kills the programs that were started and have not ended.
func (w *work) end() {
	var left []*exec.Cmd
	for _, cmd := range w.started {
		if cmd.ProcessState == nil {
			left = append(left, cmd)
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		}
	}
	if len(left) > 0 {
		for _, pid := range w.ready { // ranks are in groups of their own
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for _, cmd := range left {
		_ = cmd.Wait()
	}
}

// patience is how long a job may take to its next state.
const patience = 2 * time.Minute

// await waits until the folder of the job has a file for each of so many processes, and returns the
// process IDs that are in them.
func (w *work) await(state string, count int) (pids []int, err error) {
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(50 * time.Millisecond) {
		pids = pids[:0]
		for i := range count {
			text, err := os.ReadFile(filepath.Join(w.dir, fmt.Sprintf("%s.%d", state, i)))
			if err != nil {
				break
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
		if state == "ready" {
			w.ready = pids
		}
		if len(pids) == count {
			return pids, nil
		}
	}
	return nil, fmt.Errorf("only %d of %d processes are %s after %v:%s", len(pids), count, state, patience, w.said())
}

// said returns the output of the programs.
func (w *work) said() (text string) {
	for _, cmd := range w.started {
		text += fmt.Sprint("\n", cmd.Stdout, cmd.Stderr)
	}
	return text
}

// release lets all processes go on, and waits until each came to its end.
func (w *work) release(count int) error {
	if err := os.WriteFile(filepath.Join(w.dir, "go"), nil, 0o600); err != nil {
		return err
	}
	if _, err := w.await("done", count); err != nil {
		return fmt.Errorf("after it was collected: %w", err)
	}
	var failed []error
	for _, cmd := range w.started {
		if err := cmd.Wait(); err != nil {
			failed = append(failed, fmt.Errorf("after it was collected: %s: %w%s", cmd.Path, err, w.said()))
		}
	}
	return errors.Join(failed...)
}

// unstopped says which of some processes is stopped or has ended.
func unstopped(pids []int) error {
	for _, pid := range pids {
		s, err := processes.StatOf(pid)
		if err != nil {
			return fmt.Errorf("process %d was collected, and has ended: %w", pid, err)
		}
		if strings.ContainsAny(s.State, "tTZX") {
			return fmt.Errorf("process %d was collected, and is left in state %s", pid, s.State)
		}
	}
	return nil
}
