// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// directoryPrefix begins the names of the directories of plugins' sockets; a number
// follows.
const directoryPrefix = "unwindd-p"

// directory is a private directory for sockets. It is locked as long as its owner lives,
// so that others can tell when its owner was killed.
type directory struct {
	path string
	lock *os.File // nil in a file system without locks
}

// directoryBases lists the folders in which directories are made, in order of preference.
func directoryBases() []string {
	var bases []string
	for _, base := range []string{os.TempDir(), os.Getenv("XDG_RUNTIME_DIR"), "/tmp", "/dev/shm"} {
		if base != "" && !slices.Contains(bases, base) {
			bases = append(bases, base)
		}
	}
	return bases
}

var sweepOnce sync.Once

// newDirectory makes a directory. Where the folder for temporary files has too long a
// path for sockets, or cannot be written to, others are tried. The first call removes
// directories whose owners are dead.
func newDirectory() (*directory, error) {
	sweepOnce.Do(func() {
		for _, base := range directoryBases() {
			sweep(base)
		}
	})
	var errs []error
	for _, base := range directoryBases() {
		if len(base) > MaxSocketBase {
			errs = append(errs, fmt.Errorf("%s: longer than %d bytes, too long for Unix sockets inside", base, MaxSocketBase))
			continue
		}
		d, err := newDirectoryIn(base)
		if err == nil {
			return d, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no private directory for the socket: %w", several(errs))
}

func newDirectoryIn(base string) (*directory, error) {
	for {
		path, err := os.MkdirTemp(base, directoryPrefix)
		if err != nil {
			return nil, err
		}
		held, err := lockDirectory(path)
		switch {
		case err == nil, errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EINVAL):
			return &directory{path, held}, nil
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.EWOULDBLOCK):
			// Another process removed it before it was locked, as if its owner were dead.
		default:
			os.Remove(path)
			return nil, err
		}
	}
}

// lockDirectory locks a directory of this user that is at path. The error is
// EWOULDBLOCK where its owner lives, ENOENT where another is at path by now.
func lockDirectory(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !isOwnedByUs(info) {
		err = fmt.Errorf("%s belongs to another user", path)
	}
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != nil {
			err = &fs.PathError{Op: "flock", Path: path, Err: err}
		}
	}
	if err == nil {
		if now, statErr := os.Lstat(path); statErr != nil || !os.SameFile(info, now) {
			err = unix.ENOENT
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// remaining has directories that could not be removed: to remove the files inside, a file
// has to be opened, and there was no descriptor for it.
var remaining struct {
	sync.Mutex
	paths []string
}

// remove removes the directory with its contents. Symbolic links inside are removed, not
// followed.
func (d *directory) remove() {
	err := os.RemoveAll(d.path)
	if d.lock != nil {
		d.lock.Close()
	}
	if err != nil {
		remaining.Lock()
		remaining.paths = append(remaining.paths, d.path)
		remaining.Unlock()
	}
	removeRemaining()
}

// removeRemaining tries again to remove the remaining directories.
func removeRemaining() {
	remaining.Lock()
	defer remaining.Unlock()
	remaining.paths = slices.DeleteFunc(remaining.paths, func(path string) bool { return os.RemoveAll(path) == nil })
}

// sweep removes directories of this user whose owners are dead. It takes only directories
// of newDirectory: anybody may write to a folder for temporary files.
func sweep(base string) {
	f, err := os.Open(base)
	if err != nil {
		return
	}
	defer f.Close()
	names, _ := f.Readdirnames(-1) // names before an error count
	for _, name := range names {
		number, ok := strings.CutPrefix(name, directoryPrefix)
		if !ok || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		path := filepath.Join(base, name)
		if held, err := lockDirectory(path); err == nil {
			(&directory{path, held}).remove()
		}
	}
}
