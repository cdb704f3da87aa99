// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

// openRoots checks that the roots of processes are directories.
func openRoots(roots map[int]string) error {
	for pid, dir := range roots {
		st, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("the root of process %d: %w", pid, err)
		}
		if !st.IsDir() {
			return fmt.Errorf("the root of process %d: %s is no directory", pid, dir)
		}
	}
	return nil
}

// checkRoots reports roots that were not used.
func (r *recording) checkRoots(roots map[int]string) {
	for pid, dir := range roots {
		used := false
		for _, d := range r.roots {
			used = used || d == dir
		}
		if !used {
			r.problem("nothing was looked up under %s: no sample is of the process %d or of one that it forked", dir, pid)
		}
	}
}

// finderOf returns the finder of files under a root; "" is the engine's.
func (r *recording) finderOf(root string) *object.Finder {
	if root == "" {
		return &r.finder
	}
	if f := r.finders[root]; f != nil {
		return f
	}
	f := r.finder
	f.Sysroot = root
	r.finders[root] = &f
	return &f
}

// locate returns the path on this machine of a file that a runtime wrote, under the root of its
// process. No symbolic link leads out of it.
func (r *recording) locate(root, name string) (string, error) {
	if root = cmp.Or(root, r.maker.Sysroot); root == "" && !host.IsLinux {
		return "", &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	if root = cmp.Or(root, "/"); root == "/" {
		return name, nil
	}
	path, _, err := object.Locate(root, name)
	return path, err
}
