// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// WithoutWaiting are no flags: no file is a FIFO.
const WithoutWaiting = 0

// Owner is not known.
func Owner(fs.FileInfo) (user, group int, ok bool) { return 0, 0, false }

// Inode is not known.
func Inode(fs.FileInfo) (n uint64, ok bool) { return 0, false }

// CloseOnExec does nothing: programs get no files that they are not started with.
func CloseOnExec(int) {}

// FreeBytes returns the bytes that are free on the disk of a file; ok is false where they are not
// known.
func FreeBytes(f *os.File) (n uint64, ok bool) {
	dir, err := windows.UTF16PtrFromString(filepath.Dir(f.Name()))
	return n, err == nil && windows.GetDiskFreeSpaceEx(dir, &n, nil, nil) == nil
}

// Lock is an error: servers, which lock files, are not run here.
func Lock(*os.File, bool) error { return errors.ErrUnsupported }

// Raise ends this process with the exit status that shells have for a signal. It does not return.
func Raise(s syscall.Signal) { os.Exit(128 + int(s)) }

// Accessed returns the time when a file was read last.
func Accessed(info fs.FileInfo) time.Time {
	if data, ok := info.Sys().(*syscall.Win32FileAttributeData); ok {
		return time.Unix(0, data.LastAccessTime.Nanoseconds())
	}
	return info.ModTime()
}

// RemovedAtEnd is a flag of os.OpenFile for a file that RemoveName is called for: it goes when it
// is closed, however this process ends.
const RemovedAtEnd = windows.O_FILE_FLAG_DELETE_ON_CLOSE

// RemoveName has the parts of the file that are never written take no room: a name stays until
// the end.
func RemoveName(f *os.File) error {
	var n uint32
	_ = windows.DeviceIoControl(windows.Handle(f.Fd()), windows.FSCTL_SET_SPARSE, nil, 0, nil, 0, &n, nil) // as far as the disk can
	return nil
}

// Attributes are of no use: systemd-coredump does not write here.
func Attributes(*os.File, []byte) int { return 0 }

// Attribute finds nothing, as Attributes.
func Attribute(*os.File, string, []byte) (n int, ok bool) { return 0, false }
