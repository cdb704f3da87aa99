// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Root is the directory beneath which the paths of targets are, if no other is named.
const Root = "/"

// Nameless makes a file without a name in a folder; name is for messages. A file system may not
// have such files.
func Nameless(dir, name string, mode fs.FileMode) (*os.File, error) {
	fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, uint32(mode))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil //nolint:gosec // a descriptor
}

// Memory makes a file without a name that is in memory alone, whose bytes are the data and which is
// at its start; name is for messages.
func Memory(name string, data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name) //nolint:gosec // a descriptor
	if _, err := f.WriteAt(data, 0); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Link gives a file without a name a free name.
func Link(f *os.File, name string) error {
	self := fmt.Sprintf("/proc/self/fd/%d", f.Fd())
	if err := unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "link", Old: self, New: name, Err: err}
	}
	return nil
}

// Accessed returns the time when a file was read last.
func Accessed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Atim.Unix())
	}
	return info.ModTime()
}

// Uptime returns the time of CLOCK_MONOTONIC.
func Uptime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // there is always one
	return time.Duration(now.Nano())
}

// OnlyOwner has new files open to their owner alone until the function that it returns is called.
func OnlyOwner() (end func()) {
	old := unix.Umask(0o077)
	return func() { unix.Umask(old) }
}

// Machine returns the output of uname -m.
func Machine() string { return uname(func(u *unix.Utsname) []byte { return u.Machine[:] }) }

// Release returns the output of uname -r.
func Release() string { return uname(func(u *unix.Utsname) []byte { return u.Release[:] }) }

func uname(member func(u *unix.Utsname) []byte) string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(member(&u))
}
