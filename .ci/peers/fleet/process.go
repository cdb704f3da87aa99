// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is one of the fleet's, which may be killed and started again.
type process struct {
	argv []string
	dir  string // that everything of it is in; its log is beside it
	says string // begins the line by which it says that it is ready; "": it says nothing

	// isClocked says that it has a wall clock of its own, which jumps.
	isClocked bool
	// anyStatus says that its exit status after SIGTERM says nothing.
	anyStatus bool

	mu      sync.Mutex
	command *exec.Cmd
	ended   chan struct{}
	err     error // once it ended
}

// startPatience is how long a process may take to be ready.
const startPatience = 90 * time.Second

// start starts the process, and waits until it is ready.
func (p *process) start() error {
	for _, d := range []string{"r", "tmp"} {
		if err := os.MkdirAll(filepath.Join(p.dir, d), 0o700); err != nil {
			return err
		}
	}
	log, err := os.OpenFile(p.dir+".log", os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.argv[0], p.argv[1:]...)
	var clocked *os.File
	if p.isClocked {
		if cmd, clocked, err = clockedCommand(p.argv); err != nil {
			return err
		}
	}
	cmd.Stderr = log
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "TMPDIR=" + filepath.Join(p.dir, "tmp"), "XDG_RUNTIME_DIR=" + filepath.Join(p.dir, "r"),
		"XDG_CACHE_HOME=" + filepath.Join(p.dir, "cache"), "XDG_STATE_HOME=" + filepath.Join(p.dir, "state"),
	}
	if p.isClocked {
		cmd.Env = append(cmd.Env, clockedVariable+"=1")
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return err
	}
	if p.isClocked {
		_ = cmd.ExtraFiles[0].Close()
		c := &clock{jumps: &clockJumps, requests: &clockQuestions}
		go func() { _ = c.serve(clocked) }() // without it the process does not go on
	}
	ended, ready := make(chan struct{}), make(chan struct{})
	p.mu.Lock()
	p.command, p.ended = cmd, ended
	p.mu.Unlock()
	go func() {
		lines := bufio.NewScanner(out)
		for isReady := false; lines.Scan(); {
			if !isReady && strings.HasPrefix(lines.Text(), p.says) {
				isReady = true
				close(ready)
			}
		}
		_, _ = io.Copy(io.Discard, out)
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		close(ended)
	}()
	if p.says == "" {
		return nil
	}
	select {
	case <-ready:
		return nil
	case <-ended:
		return fmt.Errorf("%s has ended: %w", p.argv, p.err)
	case <-time.After(startPatience):
		return fmt.Errorf("%s is not ready after %v", p.argv, startPatience)
	}
}

// pid is the process' ID; 0: it has never been started.
func (p *process) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.command == nil {
		return 0
	}
	return p.command.Process.Pid
}

// kill kills the process. It returns whether there was one.
func (p *process) kill() bool {
	p.mu.Lock()
	cmd, ended := p.command, p.ended
	p.mu.Unlock()
	if cmd == nil || cmd.Process.Kill() != nil {
		return false
	}
	<-ended
	return true
}

// endGrace is how long a process may take to end.
const endGrace = 40 * time.Second

// end ends the process, as it is meant to be ended.
func (p *process) end() error {
	p.mu.Lock()
	cmd, ended := p.command, p.ended
	p.mu.Unlock()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s: %w", p.argv, err)
	}
	select {
	case <-ended:
	case <-time.After(endGrace):
		p.kill()
		return fmt.Errorf("%s has not ended %v after SIGTERM", p.argv, endGrace)
	}
	if p.err != nil && !p.anyStatus {
		return fmt.Errorf("%s was to end by SIGTERM, with exit status 0: %w", p.argv, p.err)
	}
	return nil
}

// keepAlive starts the process again whenever it has ended, until stop is closed.
func (p *process) keepAlive(stop <-chan struct{}) {
	for {
		p.mu.Lock()
		ended := p.ended
		p.mu.Unlock()
		select {
		case <-stop:
			return
		case <-ended:
		}
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Millisecond):
			_ = p.start() // it is tried again
		}
	}
}

// ensure starts the process if it has ended.
func (p *process) ensure() error {
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	select {
	case <-ended:
		return p.start()
	default:
		return nil
	}
}

// left says which files a process has left.
func (p *process) left(mayBe ...string) error {
	var errs []error
	err := filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(p.dir, path)
		for _, prefix := range mayBe {
			if strings.HasPrefix(name, prefix) && !strings.HasPrefix(d.Name(), "part-") {
				return nil
			}
		}
		errs = append(errs, fmt.Errorf("file %s is left", path))
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// freePort is an unused port of this machine.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
