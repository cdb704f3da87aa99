// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/unwindd/unwindd/internal/host"
)

// maxPath bounds the bytes of a path in a request.
const maxPath = 4096

// root is a folder beneath which files are opened.
type root struct {
	path   string // absolute, without symbolic links
	folder *os.Root
}

// roots are the folders beneath which files are opened. Neither ".." nor symbolic links lead out
// of them.
type roots []root

// openRoots opens folders. Close closes them.
func openRoots(paths []string) (list roots, err error) {
	defer func() {
		if err != nil {
			list.Close()
		}
	}()
	for _, path := range paths {
		whole, err := filepath.Abs(path)
		if err != nil {
			return list, err
		}
		if whole, err = filepath.EvalSymlinks(whole); err != nil {
			return list, fmt.Errorf("--root %s: %w", path, err)
		}
		folder, err := os.OpenRoot(whole)
		if err != nil {
			return list, fmt.Errorf("--root %s: %w", path, err)
		}
		list = append(list, root{whole, folder})
	}
	return list, nil
}

// Close closes the folders.
func (r roots) Close() {
	for i := range r {
		_ = r[i].folder.Close()
	}
}

// String names the folders.
func (r roots) String() string {
	var names []string
	for i := range r {
		names = append(names, r[i].path)
	}
	return strings.Join(names, ", ")
}

// file is an open file beneath a root.
type file struct {
	*os.File
	path string // absolute
	info fs.FileInfo
}

// errOutside is wrapped by the errors of paths that lead out of the roots.
var errOutside = errors.New("is not beneath a root")

// open opens a regular file: an absolute path beneath a root, or one that is relative to the
// first root that has it.
func (r roots) open(path string) (*file, error) {
	switch {
	case path == "":
		return nil, errors.New(`path is missing: give the file's path, such as "core" or "crash/server.core"`)
	case len(path) > maxPath || strings.ContainsRune(path, 0):
		return nil, fmt.Errorf("path has %d bytes, or a zero byte: expected the path of a file", len(path))
	}
	var first error
	for i := range r {
		name, ok := r[i].relative(path)
		if !ok {
			continue
		}
		f, err := r[i].open(name)
		if err == nil {
			return f, nil
		}
		if first == nil || errors.Is(first, fs.ErrNotExist) {
			first = err
		}
	}
	switch {
	case first == nil:
		return nil, fmt.Errorf("%s %w: give a path beneath %s, or have the user start the server with --root", path, errOutside, r)
	case errors.Is(first, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file beneath %s: give a path that is relative to a root, or an absolute one%s", path, r, r.near(path))
	}
	return nil, first
}

// relative returns a path as it is seen from the root; false for one that is not beneath it.
func (r *root) relative(path string) (string, bool) {
	if !filepath.IsAbs(path) {
		return path, true
	}
	name, err := filepath.Rel(r.path, filepath.Clean(path))
	if err != nil || name == ".." || strings.HasPrefix(name, ".."+string(filepath.Separator)) {
		return "", false
	}
	return name, true
}

// open opens a regular file. Its kind is looked at before it is opened, because the opening of
// others may wait, or do something.
func (r *root) open(name string) (*file, error) {
	shown := filepath.Join(r.path, name)
	info, err := r.folder.Stat(name)
	if err != nil {
		return nil, r.explain(name, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file: give the path of a core, a minidump, a snapshot or a recording", shown)
	}
	f, err := r.folder.OpenFile(name, os.O_RDONLY|host.WithoutWaiting, 0)
	if err != nil {
		return nil, r.explain(name, err)
	}
	if info, err = f.Stat(); err == nil && (!info.Mode().IsRegular() || isOfKernel(f)) {
		err = fmt.Errorf("%s is no file of a disk: give the path of a core, a minidump, a snapshot or a recording", shown)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return &file{f, shown, info}, nil
}

// explain returns an error of opening a file, with its reason for a path that leads out.
func (r *root) explain(name string, err error) error {
	var in *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return err
	case errors.As(err, &in) && strings.Contains(in.Err.Error(), "escapes"):
		return fmt.Errorf("%s %w: it, or a symbolic link in it, leads out of %s", name, errOutside, r.path)
	}
	return err
}

// maxNear bounds the files that an error names.
const maxNear = 10

// near names files of the folder in which a file was looked for; "" where there are none.
func (r roots) near(path string) string {
	for i := range r {
		name, ok := r[i].relative(path)
		if !ok {
			continue
		}
		dir, err := r[i].folder.Open(filepath.Dir(name))
		if err != nil {
			continue
		}
		entries, _ := dir.ReadDir(200)
		_ = dir.Close()
		var names []string
		for _, e := range entries {
			if e.Type().IsRegular() && len(names) < maxNear {
				names = append(names, e.Name())
			}
		}
		if len(names) > 0 {
			return "; that folder has " + strings.Join(names, ", ")
		}
	}
	return ""
}

// find opens a source file by the path that debug information has: that path where it is beneath
// a root, else the longest end of it that is beneath a root, or in the folder of the file beside;
// "": there is none. exact is false for an end.
func (r roots) find(recorded, beside string) (f *file, exact bool, err error) {
	if len(recorded) > maxPath || strings.ContainsRune(recorded, 0) {
		return nil, false, errors.New("the debug information has no usable path of the file")
	}
	recorded = strings.ReplaceAll(recorded, `\`, "/")
	for i := range r {
		if name, ok := r[i].relative(recorded); ok && filepath.IsAbs(recorded) {
			if f, err := r[i].open(name); err == nil {
				return f, true, nil
			}
		}
	}
	parts := strings.FieldsFunc(recorded, func(c rune) bool { return c == '/' })
	if len(parts) > 64 {
		parts = parts[len(parts)-64:]
	}
	for n := range parts {
		name := filepath.FromSlash(strings.Join(parts[n:], "/"))
		for i := range r {
			if f, err := r[i].open(name); err == nil {
				return f, false, nil
			}
			folder, ok := r[i].relative(filepath.Dir(beside))
			if beside == "" || !ok {
				continue
			}
			if f, err := r[i].open(filepath.Join(folder, name)); err == nil {
				return f, false, nil
			}
		}
	}
	return nil, false, fmt.Errorf("%s: neither this path nor an end of it is beneath %s: have the user start the server with --root at the sources", recorded, r)
}
