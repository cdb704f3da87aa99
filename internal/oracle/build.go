// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// A Build is how tools make the files that a test reads, from sources.
type Build struct {
	Sources  []string   // files and folders that the commands read, as absolute paths
	Commands [][]string // run in turn in the folder that is made, which is empty at first
	Env      []string   // variables ("NAME=value") beside the test's own
}

// keptFor is how long a folder is kept that no test asks for.
const keptFor = 14 * 24 * time.Hour

// makings has a lock for each folder that this process asked for.
var makings sync.Map // from the path of its name to a *sync.Mutex

// Make returns the folder that the commands fill. It is made once, and kept in
// the user's cache directory for every test of every run in which sources,
// commands and tools are the same: who changes a file there changes it for others.
func (b Build) Make(t testing.TB) string {
	t.Helper()
	for _, c := range b.Commands {
		command(t, c[0], c[1:])
	}
	root, err := cacheFolder()
	if err != nil {
		root = t.TempDir() // as where packages are built, without a home: each test makes its own
	}
	sum, err := b.sum()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, sum)
	lock, _ := makings.LoadOrStore(name, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	if dir, err := filepath.EvalSymlinks(name); err == nil {
		now := time.Now()
		_ = os.Chtimes(dir, now, now)
		return dir
	}
	return b.fill(t, root, name)
}

// cacheFolder is where builds are kept.
func cacheFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "unwindd-tests")
	return root, os.MkdirAll(root, 0o700)
}

// fill runs the commands in a new folder. Debug information names the folder that
// a compiler ran in, so that it keeps its path, and a link gets the name; of two
// processes that make the same, one gets the link.
func (b Build) fill(t testing.TB, root, name string) string {
	t.Helper()
	removeOld(root)
	dir, err := os.MkdirTemp(root, "made-")
	if err != nil {
		t.Fatal(err)
	}
	whole := false
	defer func() {
		if !whole {
			os.RemoveAll(dir)
		}
	}()
	for _, c := range b.Commands {
		With{Dir: dir, Env: b.Env}.Run(t, c[0], c[1:]...)
	}
	_ = os.Remove(name) // a link to a folder that was removed
	if err := os.Symlink(dir, name); errors.Is(err, fs.ErrExist) {
		if theirs, err := filepath.EvalSymlinks(name); err == nil {
			return theirs
		}
	} else if err != nil {
		t.Fatal(err)
	}
	whole = true
	return dir
}

// removeOld removes the folders that no test asked for in a while.
func removeOld(root string) {
	made, _ := filepath.Glob(filepath.Join(root, "made-*"))
	for _, dir := range made {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > keptFor {
			os.RemoveAll(dir)
		}
	}
}

// sum is a hash of all that the files depend on.
func (b Build) sum() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %s\n", b.Commands, b.Env, runtime.Version())
	for _, c := range b.Commands {
		fmt.Fprintln(h, versionOf(c[0]))
	}
	for _, source := range b.Sources {
		if err := addFiles(h, source); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// addFiles adds the names and contents of a file, or of the files in a folder.
func addFiles(h hash.Hash, source string) error {
	return filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintf(h, "%q\n", path)
		_, err = io.Copy(h, f)
		return err
	})
}

var versions sync.Map // from the name of a tool to what versionOf says

// versionOf tells a tool from others of its name. What it calls, as a compiler
// does a linker, and the libraries that it links are of packages, whose list
// changes with them.
func versionOf(tool string) string {
	if v, ok := versions.Load(tool); ok {
		return v.(string)
	}
	path, _ := exec.LookPath(tool)
	path, _ = filepath.EvalSymlinks(path)
	said, _ := exec.Command(tool, "--version").CombinedOutput()
	v := fmt.Sprintf("%s %s %s", state(path), state("/var/lib/dpkg/status"), said)
	versions.Store(tool, v)
	return v
}

// state is the size of a file and when it was written.
func state(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprint(path, " ", info.Size(), " ", info.ModTime())
}
