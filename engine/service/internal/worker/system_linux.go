// SPDX-License-Identifier: Apache-2.0

package worker

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/plugin"
)

// cutFlags are the flags of a message that is longer than the buffer.
const cutFlags = unix.MSG_TRUNC | unix.MSG_CTRUNC

// rightsSize is the size of the descriptors of a message.
var rightsSize = unix.CmsgSpace(4 * maxFiles)

// rightsOf returns files as the descriptors of a message.
func rightsOf(files []*os.File) []byte {
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	return unix.UnixRights(fds...)
}

// received returns the descriptors that came with a message.
func received(rights []byte) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "request")) //nolint:gosec // a descriptor
		}
	}
	return files
}

// socketPair makes the two ends of a worker's socket.
func socketPair() (ours *conn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	theirs = os.NewFile(uintptr(fds[1]), "worker")                              //nolint:gosec // a descriptor
	if ours, err = newConn(os.NewFile(uintptr(fds[0]), "worker")); err != nil { //nolint:gosec // a descriptor
		_ = theirs.Close()
	}
	return ours, theirs, err
}

// ownSession gives a worker no terminal: no keys reach it.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killAll ends a worker, and the processes that it has started. It stops it first, so that no number of theirs is another
// process's by then.
func killAll(worker *os.Process) {
	_ = worker.Signal(unix.SIGSTOP)
	for _, pid := range plugin.DescendantsOf(worker.Pid) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	_ = worker.Kill()
}

// ignoreLargeFiles makes a file that is too large an error of a write.
func ignoreLargeFiles() { signal.Ignore(unix.SIGXFSZ) }
