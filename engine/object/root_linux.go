// SPDX-License-Identifier: Apache-2.0

package object

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// rootDir is an open directory that is the root of a target's files.
type rootDir = int

// resolvedPath returns the path of an open file without symbolic links; "" where it is not known.
func resolvedPath(fd int, _ string) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	return path
}

// mapUnder maps a file of a target, as if root were the root directory:
// neither ".." nor symbolic links lead out of it. The root is a clean path.
func mapUnder(root, name string) (*Mapping, error) {
	if root == "/" {
		return mapPath(absolute(name), true)
	}
	dir, err := openRoot(root)
	if err != nil {
		return nil, err
	}
	defer closeFD(dir)

	// A path is looked at before it is opened, as Map does.
	shown := root + absolute(name)
	fd, _, err := lookIn(dir, name, shown)
	if err != nil {
		return nil, err
	}
	closeFD(fd)
	if fd, err = openIn(dir, name, openFlags); err != nil {
		return nil, &fs.PathError{Op: "open", Path: shown, Err: err}
	}
	defer closeFD(fd)
	return mapFD(fd, shown, true)
}

// identifyUnder returns the identity of the regular file that mapUnder maps, without
// opening it.
func identifyUnder(root, name, shown string) (identity, error) {
	dir, err := openRoot(root)
	if err != nil {
		return identity{}, err
	}
	defer closeFD(dir)
	fd, st, err := lookIn(dir, name, shown)
	if err != nil {
		return identity{}, err
	}
	closeFD(fd)
	return identityOf(&st), nil
}

// Locate returns the path on this machine, and the size, of a regular file of a
// target that is not empty, as if root were the root directory: neither ".." nor
// symbolic links lead out of it. It does not open the file. "" is the root "/".
func Locate(root, name string) (path string, size int64, err error) {
	root = filepath.Clean(cmp.Or(root, "/"))
	dir, err := openRoot(root)
	if err != nil {
		return "", 0, err
	}
	defer closeFD(dir)
	shown := strings.TrimSuffix(root, "/") + absolute(name)
	fd, st, err := lookIn(dir, name, shown)
	if err != nil {
		return "", 0, err
	}
	defer closeFD(fd)
	if st.Size == 0 {
		return "", 0, fmt.Errorf("%s: %w", shown, ErrEmpty)
	}
	// Without the links that led to it. The path of a file in another mount namespace is one of
	// that namespace.
	if path, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err != nil {
		return "", 0, err
	}
	for _, path = range []string{path, shown} {
		if id, err := identify(path); err == nil && id == identityOf(&st) {
			return path, st.Size, nil
		}
	}
	return "", 0, fmt.Errorf("%s: links lead to it, which this process cannot follow", shown)
}

// closeRoot closes a directory that openRoot opened.
func closeRoot(dir rootDir) { closeFD(dir) }

func openRoot(root string) (dir rootDir, err error) {
	err = retry(func() (err error) {
		dir, err = unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return 0, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	return dir, nil
}

// lookIn opens a path beneath the directory dir, without opening the file, which
// must be a regular one. shown is its name in messages.
func lookIn(dir int, name, shown string) (fd int, st unix.Stat_t, err error) {
	fd, err = openIn(dir, name, unix.O_PATH|unix.O_CLOEXEC)
	if err != nil {
		return 0, st, &fs.PathError{Op: "open", Path: shown, Err: err}
	}
	if err = retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
		err = &fs.PathError{Op: "stat", Path: shown, Err: err}
	} else {
		err = checkRegular(shown, &st)
	}
	if err != nil {
		closeFD(fd)
	}
	return fd, st, err
}

// openIn opens a path beneath the directory dir as if that were the root.
func openIn(dir int, name string, flags int) (int, error) {
	fd, err := openat2In(dir, name, flags)
	for _, absent := range []error{unix.ENOSYS, unix.EPERM, unix.EINVAL, unix.E2BIG} {
		if errors.Is(err, absent) {
			// The kernel has no openat2, or a filter forbids it.
			return walkIn(dir, name, flags)
		}
	}
	return fd, err
}

func openat2In(dir int, name string, flags int) (fd int, err error) {
	how := unix.OpenHow{
		Flags:   uint64(flags),
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	// EAGAIN: a directory of the path was renamed meanwhile.
	for range 8 {
		err = retry(func() (err error) { fd, err = unix.Openat2(dir, absolute(name), &how); return err })
		if !errors.Is(err, unix.EAGAIN) {
			break
		}
	}
	return fd, err
}

// A rootWalk walks through directories beneath a root. It has those from the root down to its place
// open, and goes up only by closing the last one.
type rootWalk struct {
	root  int
	below []int // directories entered, beneath the root
}

// here returns the directory that the walk is in.
func (w *rootWalk) here() int {
	if len(w.below) == 0 {
		return w.root
	}
	return w.below[len(w.below)-1]
}

// leave goes up to where n directories are entered.
func (w *rootWalk) leave(n int) {
	for _, fd := range w.below[n:] {
		closeFD(fd)
	}
	w.below = w.below[:n]
}

// walkIn does the work of openat2In one component at a time, and has the kernel follow no link.
func walkIn(dir int, name string, flags int) (int, error) {
	w := rootWalk{root: dir}
	defer w.leave(0)
	todo := strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		component := todo[0]
		todo = todo[1:]
		switch component {
		case "", ".":
			continue
		case "..":
			w.leave(max(0, len(w.below)-1))
			continue
		}
		fd, err := openAt(w.here(), component, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC)
		if err != nil {
			return -1, err
		}
		var st unix.Stat_t
		if err := retry(func() error { return unix.Fstat(fd, &st) }); err != nil {
			closeFD(fd)
			return -1, err
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			target, err := readLink(fd)
			closeFD(fd)
			if err != nil {
				return -1, err
			}
			if links++; links > maxLinks {
				return -1, unix.ELOOP
			}
			if strings.HasPrefix(target, "/") {
				w.leave(0)
			}
			todo = append(strings.Split(target, "/"), todo...)
			if len(todo) > unix.PathMax {
				return -1, unix.ENAMETOOLONG
			}
		case unix.S_IFDIR:
			w.below = append(w.below, fd)
		default:
			closeFD(fd)
			if len(todo) > 0 {
				return -1, unix.ENOTDIR
			}
			return openAt(w.here(), component, flags|unix.O_NOFOLLOW)
		}
	}
	// The path leads to a directory.
	return openAt(w.here(), ".", flags)
}

func openAt(dir int, name string, flags int) (fd int, err error) {
	err = retry(func() (err error) { fd, err = unix.Openat(dir, name, flags, 0); return err })
	return fd, err
}

// readLink reads the link that fd (O_PATH) is open on.
func readLink(fd int) (string, error) {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, "", buf)
	if err != nil {
		return "", err
	}
	if n == 0 || n == len(buf) {
		return "", fmt.Errorf("link of %d bytes", n)
	}
	return string(buf[:n]), nil
}

// listIn returns the names in a directory beneath the directory root, in order; nil where it
// cannot be read.
func listIn(root rootDir, dir string) []string {
	fd, err := openIn(root, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|unix.O_NONBLOCK)
	if err != nil {
		return nil
	}
	d := os.NewFile(uintptr(fd), dir)
	defer d.Close()
	list, _ := d.Readdirnames(maxDirectoryNames)
	slices.Sort(list)
	return list
}
