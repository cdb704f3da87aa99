// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file gives processes wall clocks that jump, each its own, and leaves the machine's alone.
//
// The executable is a copy whose run time does not find the kernel's code for clocks in its
// memory, since the name that it looks for is another one: it asks by system calls. A filter
// of system calls has the kernel ask this program for the answer to clock_gettime of
// CLOCK_REALTIME.

const (
	clockedVariable = "FLEET_CLOCKED"
	jumpEvery       = 2 * time.Second
	// maxJump is how far a clock is from the right time at most. JetStream counts by the wall
	// clock how long a worker has been silent: a job of a dead one waits as much longer as
	// the server's clock was set back, which is longer than this command may take for hours.
	maxJump = 15 * time.Second
)

// withClocks is the material with an executable whose clock may be another one.
func (m *material) withClocks() (*material, error) {
	b, err := os.ReadFile(m.unwindd)
	if err != nil {
		return nil, err
	}
	name := []byte("__vdso_clock_gettime")
	if !bytes.Contains(b, name) {
		return nil, fmt.Errorf("%s has no name %s", m.unwindd, name)
	}
	c := *m
	c.unwindd, c.isClocked = filepath.Join(m.dir, "unwindd-clocked"), true
	return &c, os.WriteFile(c.unwindd, bytes.ReplaceAll(b, name, []byte("__none_clock_gettime")), 0o700) //nolint:gosec // an executable
}

// clockedCommand is the command of a process with a clock of its own, and where the descriptor
// comes by which it is asked for.
func clockedCommand(argv []string) (cmd *exec.Cmd, listener *os.File, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	cmd = exec.Command(self, argv...)
	cmd.ExtraFiles = []*os.File{os.NewFile(uintptr(pair[1]), "theirs")}
	return cmd, os.NewFile(uintptr(pair[0]), "ours"), nil
}

// becomeClocked executes a program whose questions for the wall clock are answered by who has
// the other end of descriptor 3.
func becomeClocked(argv []string) error {
	runtime.LockOSThread()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 3, K: unix.SYS_CLOCK_GETTIME},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 16}, // the first argument
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.CLOCK_REALTIME},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_USER_NOTIF},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(fd)), nil, 0); err != nil {
		return err
	}
	_ = unix.Close(3)
	return unix.Exec(argv[0], argv, withoutVariable(os.Environ(), clockedVariable))
}

func withoutVariable(environment []string, name string) (list []string) {
	for _, v := range environment {
		if !strings.HasPrefix(v, name+"=") {
			list = append(list, v)
		}
	}
	return list
}

// Requests of ioctl, of linux/seccomp.h.
const (
	notifyReceive = 0xc0502100
	notifySend    = 0xc0182101
)

// notification is struct seccomp_notif of x86-64, and an answer struct seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	number     int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type notificationAnswer struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// clock answers the questions of a process for the time.
type clock struct {
	offset          atomic.Int64 // nanoseconds
	jumps, requests *atomic.Int64
}

// serve answers requests until there are no more.
func (c *clock) serve(from *os.File) error {
	defer from.Close()
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(from.Fd()), make([]byte, 1), rights, 0)
	if err != nil || n == 0 {
		return errors.Join(errors.New("a process with a clock of its own has not begun"), err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return err
	}
	defer unix.Close(fds[0])
	stop := make(chan struct{})
	defer close(stop)
	go c.jump(stop)
	for {
		poll := []unix.PollFd{{Fd: int32(fds[0]), Events: unix.POLLIN}} //nolint:gosec // a descriptor
		if _, err := unix.Poll(poll, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if poll[0].Revents&unix.POLLHUP != 0 {
			return nil // all of them have ended
		}
		var q notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fds[0]), notifyReceive, uintptr(unsafe.Pointer(&q))); errno != 0 {
			continue // it was killed meanwhile
		}
		c.answer(fds[0], &q)
	}
}

func (c *clock) answer(fd int, q *notification) {
	c.requests.Add(1)
	t := unix.NsecToTimespec(time.Now().UnixNano() + c.offset.Load())
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], uint64(t.Sec))  //nolint:gosec // since 1970
	binary.LittleEndian.PutUint64(b[8:], uint64(t.Nsec)) //nolint:gosec // positive
	a := notificationAnswer{id: q.id}
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	if _, err := unix.ProcessVMWritev(int(q.pid), local, []unix.RemoteIovec{{Base: uintptr(q.args[1]), Len: len(b)}}, 0); err != nil {
		a.err = -int32(unix.EFAULT)
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(fd), notifySend, uintptr(unsafe.Pointer(&a)))
}

// jump has the clock jump, by up to maxJump to either side of the right time.
func (c *clock) jump(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(jumpEvery/2 + time.Duration(rand.Int64N(int64(jumpEvery)))): //nolint:gosec // no secret
			c.offset.Store(rand.Int64N(int64(2*maxJump)) - int64(maxJump)) //nolint:gosec // likewise
			c.jumps.Add(1)
		}
	}
}

// jumps and questions are counted for all clocks.
var clockJumps, clockQuestions atomic.Int64

// tormentClocks has jobs done by processes whose clocks jump, while they die.
func (m *material) tormentClocks(n int) error {
	c, err := m.withClocks()
	if err != nil {
		return err
	}
	err = c.torment(&embeddedServer{m: c}, n, 0)
	fmt.Printf("the clocks of these processes jumped %d times, by up to %v; they were asked %d times\n", clockJumps.Load(), 2*maxJump, clockQuestions.Load())
	if err == nil && (clockJumps.Load() == 0 || clockQuestions.Load() == 0) {
		err = errors.New("no clock was asked")
	}
	return err
}
