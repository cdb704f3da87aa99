// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/plugin"
)

// lowerPriority lowers the priority of a worker, and of all processes that it has started: each of
// them leads a session of its own, or is in that of one.
func lowerPriority(worker int) error {
	own, _ := ownPriority()
	err := setPriority(worker, max(own, low), low)
	if errors.Is(err, unix.EAGAIN) { // a user may do it ten times a second
		return nil
	}
	return err
}

// raisePriority gives them that of this process.
func raisePriority(worker int) (err error) {
	const tries, pause = 10, 100 * time.Millisecond
	own, err := ownPriority()
	if err != nil {
		return err
	}
	for range tries {
		if err = setPriority(worker, own, 0); !errors.Is(err, unix.EAGAIN) {
			return err
		}
		time.Sleep(pause)
	}
	return err
}

func ownPriority() (nice int, err error) {
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return 20 - n, err // as the kernel counts
}

// setPriority sets the priorities of a worker's processes and of their sessions. Where the kernel
// divides the processors among sessions, a process's counts within its session alone.
func setPriority(worker, process, session int) error {
	raisable := mayRaise()
	text := []byte(strconv.Itoa(session))
	var errs []error
	for _, pid := range append(plugin.DescendantsOf(worker), worker) {
		var nice error
		if raisable {
			nice = unix.Setpriority(unix.PRIO_PGRP, pid, process)
		}
		name := fmt.Sprintf("/proc/%d/autogroup", pid)
		if is, err := os.ReadFile(name); err == nil && !bytes.HasSuffix(bytes.TrimSpace(is), append([]byte("nice "), text...)) {
			nice = errors.Join(unlessGone(nice), os.WriteFile(name, text, 0))
		}
		errs = append(errs, unlessGone(nice))
	}
	return errors.Join(errs...)
}

// unlessGone is an error other than that of a process that leads nothing, or has ended.
func unlessGone(err error) error {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// mayRaise reports whether this process may raise priorities that it has lowered.
func mayRaise() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_NICE) != 0
}
