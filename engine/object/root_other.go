// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package object

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// rootDir is an open directory that is the root of a target's files. An os.Root follows no link
// that leads out of it, but refuses absolute ones, which here begin at the root.
type rootDir = *os.Root

func openRoot(root string) (rootDir, error) { return os.OpenRoot(root) }

// closeRoot closes a directory that openRoot opened.
func closeRoot(dir rootDir) { _ = dir.Close() }

// mapUnder maps a file of a target, as if root were the root directory:
// neither ".." nor symbolic links lead out of it. The root is a clean path.
func mapUnder(root, name string) (*Mapping, error) {
	if root == "/" {
		return mapPath(absolute(name), true)
	}
	f, resolved, err := openUnder(root, name, root+absolute(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := MapFile(f, root+absolute(name))
	if err == nil {
		m.resolved = resolved
	}
	return m, err
}

// identifyUnder returns the identity of the regular file that mapUnder maps.
func identifyUnder(root, name, shown string) (identity, error) {
	f, _, err := openUnder(root, name, shown)
	if err != nil {
		return identity{}, err
	}
	defer f.Close()
	return identityOfFile(f)
}

// Locate returns the path on this machine, and the size, of a regular file of a
// target that is not empty, as if root were the root directory: neither ".." nor
// symbolic links lead out of it. "" is the root "/".
func Locate(root, name string) (path string, size int64, err error) {
	root = filepath.Clean(cmp.Or(root, "/"))
	shown := strings.TrimSuffix(root, "/") + absolute(filepath.ToSlash(name))
	f, path, err := openUnder(root, filepath.ToSlash(name), shown)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("%s: %w", shown, ErrEmpty)
	}
	if err != nil {
		return "", 0, err
	}
	return path, info.Size(), nil
}

// openUnder opens a regular file beneath a directory, and returns its path without the links that
// led to it. shown is its name in messages.
func openUnder(root, name, shown string) (f *os.File, resolved string, err error) {
	dir, err := openRoot(root)
	if err != nil {
		return nil, "", &fs.PathError{Op: "open", Path: root, Err: inWords(err)}
	}
	defer closeRoot(dir)
	inside, info, err := resolveIn(dir, name)
	if err == nil && info.Mode().IsRegular() {
		f, err = dir.OpenFile(inside, openFlags, 0)
	}
	if err != nil {
		return nil, "", &fs.PathError{Op: "open", Path: shown, Err: inWords(err)}
	}
	if f == nil {
		return nil, "", fmt.Errorf("%s: %w (%s)", shown, ErrNotRegular, info.Mode().Type())
	}
	return f, filepath.Join(root, inside), nil
}

// resolveIn returns the path beneath a directory, without links, that a path leads to as if the
// directory were the root, and describes the file there.
func resolveIn(dir rootDir, name string) (inside string, info fs.FileInfo, err error) {
	var above []string // directories entered
	todo := strings.Split(name, "/")
	for links := 0; len(todo) > 0; {
		component := todo[0]
		todo = todo[1:]
		switch component {
		case "", ".":
			continue
		case "..":
			above = above[:max(0, len(above)-1)]
			continue
		}
		inside = strings.Join(append(slices.Clone(above), component), "/")
		if info, err = dir.Lstat(inside); err != nil {
			return "", nil, err
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := dir.Readlink(inside)
			if err != nil {
				return "", nil, err
			}
			if links++; links > maxLinks || filepath.VolumeName(target) != "" {
				return "", nil, syscall.ELOOP
			}
			if target = filepath.ToSlash(target); strings.HasPrefix(target, "/") {
				above = nil
			}
			todo = append(strings.Split(target, "/"), todo...)
		case info.IsDir():
			above = append(above, component)
		case len(todo) > 0:
			return "", nil, syscall.ENOTDIR
		default:
			return inside, info, nil
		}
	}
	inside = cmp.Or(strings.Join(above, "/"), ".") // a directory
	info, err = dir.Lstat(inside)
	return inside, info, err
}

// listIn returns the names in a directory beneath the directory root, in order; nil where it
// cannot be read.
func listIn(root rootDir, dir string) []string {
	inside, info, err := resolveIn(root, dir)
	if err != nil || !info.IsDir() {
		return nil
	}
	d, err := root.Open(inside)
	if err != nil {
		return nil
	}
	defer d.Close()
	list, _ := d.Readdirnames(maxDirectoryNames)
	slices.Sort(list)
	return list
}
