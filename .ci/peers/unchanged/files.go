// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// checkout has the files that tests and commands may read, as they were when this program began.
type checkout struct {
	root   string            // the folder with .ci
	shared string            // the folder of that name above root; "" if there is none
	hashes map[string]string // of contents and permissions, by absolute path
	names  []string          // its keys in order
	inputs map[string]string // hashes of inputs that were asked for: packages share most
}

// readCheckout reads the checkout that has a folder, and the inputs beside it.
func readCheckout(dir string) (*checkout, error) {
	c := &checkout{hashes: map[string]string{}, inputs: map[string]string{}}
	for ; c.root == ""; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, ".ci", "run")); err == nil {
			c.root = dir
		} else if dir == filepath.Dir(dir) {
			return nil, errors.New("this folder is in no checkout")
		}
	}
	paths, err := sources(c.root)
	if err != nil {
		return nil, err
	}
	for above := filepath.Dir(c.root); c.shared == "" && above != filepath.Dir(above); above = filepath.Dir(above) {
		if info, err := os.Stat(filepath.Join(above, "shared")); err == nil && info.IsDir() {
			c.shared = filepath.Join(above, "shared")
		}
	}
	if c.shared != "" {
		more, err := walk(c.shared)
		if err != nil {
			return nil, err
		}
		paths = append(paths, more...)
	}
	for _, path := range paths {
		sum, err := hashFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // git still lists it
		} else if err != nil {
			return nil, err
		}
		c.hashes[path] = sum
		c.names = append(c.names, path)
	}
	slices.Sort(c.names)
	return c, nil
}

// sources lists the files of a checkout without those that git ignores, which tests make. An
// archive of the sources, which has no git, has none of these.
func sources(root string) ([]string, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return walk(root)
	}
	var paths []string
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		paths = append(paths, filepath.Join(root, name))
	}
	return paths, nil
}

// walk lists the files below a folder without git's own.
func walk(root string) (paths []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() && d.Name() != ".git" {
			paths = append(paths, path)
		}
		return err
	})
	return paths, err
}

// hashFile returns the hash of a file's content, permissions and, of a link, destination.
func hashFile(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, info.Mode())
	if info.Mode()&fs.ModeSymlink != 0 {
		destination, err := os.Readlink(path)
		fmt.Fprintln(h, destination, err)
	}
	if info, err = os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return fmt.Sprintf("%x", h.Sum(nil)), nil // a link to nothing or to a folder, a FIFO
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// has reports whether a path is in the checkout or beside it.
func (c *checkout) has(path string) bool {
	return isBelow(path, c.root) || c.shared != "" && isBelow(path, c.shared)
}

func isBelow(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

// sum returns the hash of a file, or of the files below a folder of which choose picks some;
// nil picks all.
func (c *checkout) sum(path string, choose func(name string) bool) string {
	if own, ok := c.hashes[path]; ok {
		return own
	}
	h := sha256.New()
	first, _ := slices.BinarySearch(c.names, path+"/")
	for _, name := range c.names[first:] {
		if !isBelow(name, path) {
			break
		}
		if choose == nil || choose(strings.TrimPrefix(name, c.root+"/")) {
			fmt.Fprintf(h, "%q %s\n", name[len(path):], c.hashes[name])
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// isDocument reports whether a file of the checkout is for people alone, by its name. A test
// that reads one opens it.
func isDocument(name string) bool { return strings.HasSuffix(name, ".md") }

// The files that an input of a set's name has.
var sets = map[string]func(name string) bool{
	"data": func(name string) bool {
		return !isDocument(name) && !strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, ".ci/")
	},
	"sources":  func(name string) bool { return !isDocument(name) },
	"programs": func(name string) bool { return !isDocument(name) && !strings.HasSuffix(name, "_test.go") },
	"all":      nil,
}

// input returns the hash of an input: "set NAME", "getenv NAME", "shared", "plain FOLDER", which
// is its own files but Go's, or "path PATH", both by their paths from the root.
func (c *checkout) input(name string) string {
	sum, ok := c.inputs[name]
	if !ok {
		sum = c.sumOf(name)
		c.inputs[name] = sum
	}
	return sum
}

// sumOf is input for an input that was not asked for before.
func (c *checkout) sumOf(name string) string {
	kind, name, _ := strings.Cut(name, " ")
	path := filepath.Join(c.root, name)
	switch kind {
	case "set":
		return c.sum(c.root, sets[name])
	case "getenv":
		return variable(name)
	case "shared":
		if c.shared == "" {
			return "missing"
		}
		return c.sum(c.shared, nil)
	case "plain":
		return c.sum(path, func(name string) bool {
			return filepath.Join(c.root, filepath.Dir(name)) == path && !strings.HasSuffix(name, ".go")
		})
	}
	return c.sum(path, nil)
}

// variable returns a variable of the environment, as unlike others where it is not set.
func variable(name string) string {
	value, isSet := os.LookupEnv(name)
	return fmt.Sprintf("%t %s", isSet, value)
}
