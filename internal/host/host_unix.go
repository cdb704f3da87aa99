// SPDX-License-Identifier: Apache-2.0

//go:build unix

package host

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// WithoutWaiting are flags of os.OpenFile that do not wait for the writer of a FIFO, and take no
// terminal.
const WithoutWaiting = unix.O_NONBLOCK | unix.O_NOCTTY

// Owner returns the user and the group of a file; ok is false where it is not known.
func Owner(info fs.FileInfo) (user, group int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// Inode returns the number of a file on its disk; ok is false where it has none.
func Inode(info fs.FileInfo) (n uint64, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return st.Ino, true
}

// CloseOnExec keeps a descriptor from programs that this process starts.
func CloseOnExec(fd int) { syscall.CloseOnExec(fd) }

// FreeBytes returns the bytes that are free on the disk of a file; ok is false where they are not
// known.
func FreeBytes(f *os.File) (n uint64, ok bool) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return 0, false
	}
	return min(st.Bavail, 1<<40) * uint64(st.Bsize), true //nolint:gosec // a size
}

// Lock locks an open file or folder until it is closed, and waits for the lock if it is to.
func Lock(f *os.File, waits bool) error {
	how := unix.LOCK_EX
	if !waits {
		how |= unix.LOCK_NB
	}
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Raise ends this process by a signal. It does not return.
func Raise(s syscall.Signal) {
	_ = syscall.Kill(os.Getpid(), s)
	select {}
}

// RemovedAtEnd is a flag of os.OpenFile for a file that RemoveName is called for.
const RemovedAtEnd = 0

// RemoveName takes the name from an open file, which is gone when it is not used any more.
func RemoveName(f *os.File) error { return os.Remove(f.Name()) }

// Attributes reads the names of a file's extended attributes, each ended by a zero byte, into b.
func Attributes(f *os.File, b []byte) int {
	n, err := unix.Flistxattr(int(f.Fd()), b)
	if err != nil {
		return 0
	}
	return n
}

// Attribute reads an extended attribute of a file into b.
func Attribute(f *os.File, name string, b []byte) (n int, ok bool) {
	n, err := unix.Fgetxattr(int(f.Fd()), name, b)
	return n, err == nil
}
