// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	// readyLimit is how long a program may take until it stops, on a machine that others use, too.
	readyLimit = 60 * time.Second
	// toolLimit is how long a tool may take for a process.
	toolLimit = 120 * time.Second
)

// process is a program that an interpreter executes.
type process struct {
	cmd   *exec.Cmd
	dir   string
	pid   int // the one that stopped; 0: it ended by itself
	input io.Closer
	ended chan struct{}
	log   *os.File
}

// start executes a program until it stops in its line, or ends.
func start(argv, env []string, dir string) (*process, error) {
	log, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	limited := append([]string{"-c", "ulimit -c unlimited -S -s 65536; exec \"$@\"", "bash"}, argv...)
	p := &process{cmd: exec.Command("bash", limited...), dir: dir, ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = dir, env, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.input = input
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	ready := make(chan int, 1)
	go func() {
		defer close(p.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if text, isReady := strings.CutPrefix(lines.Text(), "ready "); isReady {
				pid, _ := strconv.Atoi(text)
				select {
				case ready <- pid:
				default:
				}
			}
		}
		_ = p.cmd.Wait()
	}()
	select {
	case p.pid = <-ready:
		p.settle()
	case <-p.ended:
		select {
		case p.pid = <-ready:
		default:
		}
	case <-time.After(readyLimit):
		p.stop()
		return nil, errors.New("it did not stop in time")
	}
	return p, nil
}

// settle waits until the process is in a system call: it writes that it is ready before it stops.
func (p *process) settle() {
	for range 200 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", p.pid))
		if err != nil || strings.HasPrefix(string(text), "0 0x0 ") {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// abort ends the process that stopped with a core.
func (p *process) abort() {
	if p.pid != 0 {
		_ = syscall.Kill(p.pid, syscall.SIGABRT)
		for range 400 {
			if syscall.Kill(p.pid, 0) != nil || state(p.pid) == 'Z' {
				break
			}
			time.Sleep(25 * time.Millisecond)
		}
	}
	p.stop()
}

// state is the state of a process, as /proc has it.
func state(pid int) byte {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if end := strings.LastIndex(string(text), ") "); err == nil && end >= 0 {
		return text[end+2]
	}
	return 'Z'
}

// stop ends the rest of a program.
func (p *process) stop() {
	p.input.Close()
	select {
	case <-p.ended:
	case <-time.After(300 * time.Millisecond):
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.ended
}

// core is the path of the core with which the process ended.
func (p *process) core() (string, error) {
	paths, _ := filepath.Glob(filepath.Join(p.dir, "core*"))
	if len(paths) == 0 {
		log, _ := os.ReadFile(filepath.Join(p.dir, "stderr"))
		return "", fmt.Errorf("it left no core: %s", lastLine(string(log)))
	}
	return paths[0], nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

// output executes a tool in a bounded time.
func output(name string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s: %w: %s", filepath.Base(name), err, lastLine(string(exit.Stderr)))
	}
	return out, err
}

// one executes a program, and compares its own words with the frames that are found.
func (w *work) one(i *interpreter, program string) {
	name := i.name + " " + program
	dir, err := w.folder(i, program)
	if err != nil {
		w.fail("%s: %v", name, err)
		return
	}
	argv, env, reason := w.command(i, program, dir)
	if reason != "" {
		w.leave("%s: %s", name, reason)
		return
	}
	p, err := start(argv, env, dir)
	if err != nil {
		w.leave("%s: %v", name, err)
		return
	}
	looks := map[string]looked{}
	if p.pid != 0 {
		w.living(p, looks)
	}
	p.abort()
	os.Remove(fmt.Sprintf("/tmp/perf-%d.map", p.pid))
	core, err := p.core()
	if err != nil {
		w.leave("%s: %v", name, err)
		return
	}
	looks["core"] = w.look(core)
	w.checkRaised(name, dir, looks["core"])
	if *peers {
		looks["pystack core"] = pystackCore(i, core)
	}
	truth, err := readTruth(dir, core)
	if err != nil {
		w.fail("%s: %v", name, err)
		return
	}
	w.judge(i, program, truth, looks)
	if *keep == "" {
		os.RemoveAll(dir)
	}
}

// living looks at a process that stopped: as it lives, and by a snapshot.
func (w *work) living(p *process, looks map[string]looked) {
	looks["living"] = w.look(strconv.Itoa(p.pid))
	snapshot := filepath.Join(p.dir, "process.snapshot")
	if _, err := output(w.unwindd, "snapshot", strconv.Itoa(p.pid), "-o", snapshot); err != nil {
		looks["snapshot"] = looked{err: err}
	} else {
		looks["snapshot"] = w.look(snapshot)
	}
	if *peers {
		looks["py-spy"] = pySpy(p.pid)
		looks["pystack"] = pystackProcess(p.pid)
	}
}
