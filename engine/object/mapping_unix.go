// SPDX-License-Identifier: Apache-2.0

//go:build unix

package object

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openFlags never block on a FIFO, never take a terminal, and are not inherited.
const openFlags = unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC | unix.O_NOCTTY

// openDirFlags open nothing except a directory.
const openDirFlags = openFlags | unix.O_DIRECTORY

// openFile is the file that a mapping has open: none, because pages do not need it.
type openFile struct{}

func identityOf(st *unix.Stat_t) identity {
	//nolint:unconvert // the type of Dev depends on the machine
	return identity{fileID{uint64(st.Dev), st.Ino}, st.Size, st.Mtim.Nano(), st.Ctim.Nano()}
}

// identityOfFile returns the identity of an open file.
func identityOfFile(f *os.File) (identity, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(int(f.Fd()), &st) })
	return identityOf(&st), err
}

// Map maps a regular file. Anything else (a directory, FIFO, device or socket)
// gives ErrNotRegular without being opened for reading, an empty file ErrEmpty.
func Map(path string) (*Mapping, error) { return mapPath(path, false) }

// mapPath is Map. Where resolve is set the mapping knows its path without links.
func mapPath(path string, resolve bool) (*Mapping, error) {
	// Opening a device may act on it, so the file's type is checked before, and
	// again when it is open.
	if _, err := identify(path); err != nil {
		return nil, err
	}
	fd, err := openPath(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer closeFD(fd)
	return mapFD(fd, path, resolve)
}

// descriptors is the folder of the open files of this process.
const descriptors = "/proc/self/fd/"

// openPath opens a path for reading. A confined process may have files that it was handed open, and be refused their paths:
// one of descriptors is read by the descriptor itself, then.
func openPath(path string) (fd int, err error) {
	err = retry(func() (err error) { fd, err = unix.Open(path, openFlags, 0); return })
	name, isDescriptor := strings.CutPrefix(path, descriptors)
	if n, bad := strconv.Atoi(name); isDescriptor && bad == nil && errors.Is(err, unix.EACCES) {
		return unix.FcntlInt(uintptr(n), unix.F_DUPFD_CLOEXEC, 0) //nolint:gosec // a descriptor
	}
	return fd, err
}

// MapFile maps the regular file that f is open on; path is its name in messages. The
// mapping outlives f.
func MapFile(f *os.File, path string) (*Mapping, error) { return mapFD(int(f.Fd()), path, false) }

// identify gives the identity of the regular file at a path, without opening it.
func identify(path string) (identity, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Stat(path, &st) }); err != nil {
		return identity{}, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return identityOf(&st), checkRegular(path, &st)
}

// mapFD maps the file that fd is open on; path is its name in messages.
func mapFD(fd int, path string, resolve bool) (*Mapping, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := checkRegular(path, &st); err != nil {
		return nil, err
	}
	if st.Size == 0 {
		return nil, fmt.Errorf("%s: %w", path, ErrEmpty)
	}
	size := int(st.Size)
	if st.Size < 0 || int64(size) != st.Size {
		return nil, fmt.Errorf("%s: %d bytes cannot be mapped", path, st.Size)
	}
	data, err := unix.Mmap(fd, 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, &fs.PathError{Op: "mmap", Path: path, Err: err}
	}
	m := &Mapping{path: path, data: data, id: identityOf(&st), open: openFile{}}
	if resolve {
		// Debug files lie beside the file itself, not beside links to it.
		m.resolved = resolvedPath(fd, path)
	}
	addLive(m)
	return m, nil
}

func checkRegular(path string, st *unix.Stat_t) error {
	kind := "file of an unknown type"
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return nil
	case unix.S_IFDIR:
		kind = "directory"
	case unix.S_IFIFO:
		kind = "FIFO"
	case unix.S_IFCHR, unix.S_IFBLK:
		kind = "device"
	case unix.S_IFSOCK:
		kind = "socket"
	case unix.S_IFLNK:
		kind = "symbolic link"
	}
	return fmt.Errorf("%s: %w (a %s)", path, ErrNotRegular, kind)
}

// closeFD closes a file that was only read: an error does not matter.
func closeFD(fd int) { _ = unix.Close(fd) }

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// unmap unmaps the file.
func (m *Mapping) unmap() error {
	if err := unix.Munmap(m.data); err != nil {
		return &fs.PathError{Op: "munmap", Path: m.path, Err: err}
	}
	return nil
}

// removePages removes pages of a mapping from this process. The kernel may keep them.
func removePages(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
