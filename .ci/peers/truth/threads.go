// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// This file steps programs with threads, one instruction of each thread in turn. One that waits
// for another is left alone until the kernel says that it goes on.

// errBlocked says that an instruction, a system call, has not ended yet.
var errBlocked = errors.New("its system call waits")

// patience is how long a system call is waited for, before other threads go on.
const patience = 2 * time.Millisecond

// group is the threads of a process, the first one first.
type group struct{ list []*stepping }

// waitShort waits for a thread as long as that; status is 0 where nothing came of it.
func (t *tracee) waitShort(most time.Duration) (status unix.WaitStatus, err error) {
	for start := time.Now(); ; {
		var s unix.WaitStatus
		pid, err := unix.Wait4(t.pid, &s, unix.WALL|unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case pid == t.pid:
			return s, nil
		case time.Since(start) >= most:
			return 0, errBlocked
		}
		time.Sleep(most / 100) // it needs the processor
	}
}

// adopt takes a thread that this one has started, which stands at its first instruction.
func (t *tracee) adopt() error {
	id, err := unix.PtraceGetEventMsg(t.pid)
	if err != nil {
		return err
	}
	child := &tracee{pid: int(id), mem: t.mem, cmd: t.cmd, hasThreads: true} //nolint:gosec // an ID
	if _, err := child.wait(); err != nil {
		return err
	}
	if err := child.readRegisters(); err != nil {
		return err
	}
	t.born = append(t.born, child)
	return nil
}

// stepThreads executes a program with threads.
func (w *work) stepThreads(s *stepping, walks int) error {
	g := s.group
	for waited := 0; s.tally.walked < walks && s.tally.steps < walks*w.stepsPerWalk; {
		isIdle := true
		for _, s := range slices.Clone(g.list) {
			err := s.goOn()
			isIdle = isIdle && errors.Is(err, errBlocked)
			switch {
			case errors.Is(err, errEnded) && s != g.list[0]:
				g.list = slices.DeleteFunc(g.list, func(o *stepping) bool { return o == s })
				_ = s.point.loaded.Close()
			case err != nil && !errors.Is(err, errBlocked):
				return err
			}
			for _, child := range s.tracee.born {
				if err := s.addThread(child); err != nil {
					return err
				}
			}
			s.tracee.born = nil
		}
		if waited++; !isIdle {
			waited = 0
		} else if time.Sleep(patience); waited > 5000 {
			return errors.New("every thread waits")
		}
	}
	return nil
}

// goOn executes an instruction, or takes that one has ended that waited.
func (s *stepping) goOn() error {
	var err error
	if s.isBlocked {
		var signal int
		if signal, err = s.tracee.arrive(0); err == nil {
			err = s.finish(signal)
		}
	} else {
		err = s.step()
	}
	s.isBlocked = errors.Is(err, errBlocked)
	return err
}

// addThread begins to step another thread.
func (s *stepping) addThread(t *tracee) error {
	n := &stepping{work: s.work, program: s.program, process: t, tracee: t, sites: map[uint64]*site{}, tally: s.tally, most: s.most, group: s.group}
	n.point = newPoint(t, s.engine)
	s.group.list = append(s.group.list, n)
	n.shadow = newShadow(t, t.regs.Rsp, s.program.isGo)
	s.tally.threads++
	return n.point.load()
}
