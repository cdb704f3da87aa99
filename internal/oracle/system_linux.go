// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// SetAttribute sets an extended attribute of a file.
func SetAttribute(path, name, value string) error {
	return syscall.Setxattr(path, name, []byte(value), 0)
}

// Memory makes a file that is in no folder.
func Memory(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate("in no folder", 0)
	return os.NewFile(uintptr(fd), name), err
}

// Terminal opens both ends of a terminal.
func Terminal(t testing.TB) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close() })
	n, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}
