// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Reasons why the stacks of a process cannot be read. Errors wrap them.
var (
	// ErrEnded means that there is no such process, or that it ended meanwhile.
	ErrEnded = errors.New("no such process")
	// ErrNoStacks means that a process has no stacks: a zombie, or a thread of the kernel.
	ErrNoStacks = errors.New("it has no stacks")
	// ErrDenied means that this process may not stop the other one.
	ErrDenied = errors.New("not permitted")
)

// errZombie is the ErrNoStacks of a zombie.
var errZombie = fmt.Errorf("%w: it is a zombie, which has ended and whose parent has not asked for its exit status", ErrNoStacks)

// ended returns the error for a process that does not exist.
func ended(pid int) error { return fmt.Errorf("process %d: %w", pid, ErrEnded) }

// refuse returns why the stacks of the process pid, which has this status, cannot be read; nil
// if they may be.
func (s *status) refuse(pid int, threads []int) error {
	switch {
	case s.isKernel:
		return fmt.Errorf("process %d (%s): %w: it is a thread of the kernel", pid, s.name, ErrNoStacks)
	case (s.state == 'Z' || s.state == 'X') && len(threads) <= 1:
		return fmt.Errorf("process %d (%s): %w", pid, s.name, errZombie)
	case pid == os.Getpid():
		return fmt.Errorf("process %d (%s): %w: it is this process, which cannot stop itself", pid, s.name, ErrDenied)
	case s.tracer == os.Getpid():
		return errChanged // by another goroutine, or by a thread that is about to end
	case s.tracer != 0:
		tracer, _ := readStatus(fmt.Sprintf("/proc/%d", s.tracer))
		return fmt.Errorf("process %d (%s): %w: process %d (%s) traces it already, and a process has one tracer: detach that one, or end it",
			pid, s.name, ErrDenied, s.tracer, tracer.name)
	}
	return nil
}

// deny explains why ptrace refused a thread of the process pid (ptrace(2), Ptrace access
// mode checking; the kernel's Documentation/admin-guide/LSM/Yama.rst).
func (s *status) deny(pid int, err error) error {
	if !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return fmt.Errorf("process %d (%s): %w", pid, s.name, err)
	}
	// The tracer may have attached meanwhile, or trace one thread only.
	if now, e := readStatus(fmt.Sprintf("/proc/%d", pid)); e == nil {
		if e := now.refuse(pid, nil); now.tracer != 0 {
			return e
		}
	}
	what := []string{}
	if own := os.Geteuid(); own != int(s.uid) {
		what = append(what, fmt.Sprintf("it is of user %d, and this process of user %d: run as that user, or with CAP_SYS_PTRACE", s.uid, own))
	}
	if scope, e := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope"); e == nil {
		if text, ok := scopes[strings.TrimSpace(string(scope))]; ok {
			what = append(what, text)
		}
	}
	if len(what) == 0 {
		what = append(what, "a process that changed its user or its capabilities, or that is in another user namespace, takes CAP_SYS_PTRACE; "+
			"a filter of system calls, as containers have, may forbid ptrace too")
	}
	return fmt.Errorf("process %d (%s): %w: %w: %s", pid, s.name, ErrDenied, err, strings.Join(what, "; "))
}

// scopes describes the values of /proc/sys/kernel/yama/ptrace_scope that forbid something.
var scopes = map[string]string{
	"1": "/proc/sys/kernel/yama/ptrace_scope is 1, which lets a process stop its descendants only: run with CAP_SYS_PTRACE (sudo), or write 0 to it",
	"2": "/proc/sys/kernel/yama/ptrace_scope is 2, which takes CAP_SYS_PTRACE: run with it (sudo), or write 0 to it",
	"3": "/proc/sys/kernel/yama/ptrace_scope is 3, which lets nobody stop another process until the machine starts again",
}
