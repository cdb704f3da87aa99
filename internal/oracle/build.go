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

// Build describes how tools build the files that a test reads, from sources.
type Build struct {
	Sources  []string   // files and folders that the commands read, as absolute paths
	Commands [][]string // run in turn in the new folder, which is empty at first
	Env      []string   // variables ("NAME=value") beside the test's own
}

// keptFor is how long an unused folder is kept.
const keptFor = 14 * 24 * time.Hour

// locks has a lock for each folder of this process.
var locks sync.Map // from the path of its name to a *sync.Mutex

// Make returns the folder that the commands fill. It is filled once, and kept in
// the user's cache directory for every test of every run with the same sources,
// commands and tools: a change of a file there is a change for all.
func (b Build) Make(t testing.TB) string {
	t.Helper()
	for _, c := range b.Commands {
		command(t, c[0], c[1:])
	}
	root, err := cacheFolder()
	if err != nil {
		root = t.TempDir() // without a home, as where packages are built: each test builds its own
	}
	sum, err := b.sum()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(root, sum)
	lock, _ := locks.LoadOrStore(name, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	if dir, err := filepath.EvalSymlinks(name); err == nil {
		now := time.Now()
		_ = os.Chtimes(dir, now, now)
		return dir
	}
	return b.fill(t, root, name)
}

// cacheFolder returns the folder where builds are kept.
func cacheFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, "unwindd-tests")
	return root, os.MkdirAll(root, 0o700)
}

// fill runs the commands in a new folder. Debug information names the folder that
// a compiler ran in, so the folder keeps its path, and a link gets the name; of
// two processes with the same build, one gets the link.
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

// removeOld removes the folders that were not used for keptFor.
func removeOld(root string) {
	made, _ := filepath.Glob(filepath.Join(root, "made-*"))
	for _, dir := range made {
		if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > keptFor {
			os.RemoveAll(dir)
		}
	}
}

// sum returns a hash of all inputs of the build.
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

var versions sync.Map // from the name of a tool to its versionOf

// versionOf identifies a tool among others of its name. Its own tools, such as
// a compiler's linker, and the libraries that it links belong to packages,
// whose list changes with them.
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

// state returns the size of a file and when it was written.
func state(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return path
	}
	return fmt.Sprint(path, " ", info.Size(), " ", info.ModTime())
}
