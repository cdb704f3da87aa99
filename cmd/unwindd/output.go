// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// An outputFile is a file that a command writes. A regular one has another name
// until it is whole, so that whoever opens it finds all of it or what was there
// before. What is not a regular file is written to as it is.
type outputFile struct {
	*os.File
	path      string      // what the file is to be called
	temporary string      // what it is called so far; "": it is written as it is
	old       fs.FileInfo // of what is there; nil: nothing
	isPrivate bool        // only its owner may read it
	isInPlace bool        // it cannot be renamed to path: what is there is written over
}

// temporaries are files that are not whole.
type temporaries struct {
	sync.Mutex
	names map[string]bool
}

var unfinished = temporaries{names: map[string]bool{}}

// abandon removes what is not whole, for good: no file can be begun or finished
// any more.
func (t *temporaries) abandon() {
	t.Lock()
	for name := range t.names {
		_ = os.Remove(name)
	}
}

// create creates a file with a name of its own in a folder.
func (t *temporaries) create(dir string, mode fs.FileMode) (*os.File, error) {
	t.Lock()
	defer t.Unlock()
	for {
		name := filepath.Join(dir, fmt.Sprintf(".unwindd-%d", rand.Uint32()))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			t.names[name] = true
		}
		return f, err
	}
}

// end calls f, which may rename the temporary file of a name, removes what is
// left of it, and forgets the name. A signal waits for it.
func (t *temporaries) end(name string, f func() error) error {
	t.Lock()
	defer t.Unlock()
	err := f()
	_ = os.Remove(name) // this fails where f has renamed it
	delete(t.names, name)
	return err
}

// stdoutName is the name of standard output as a file.
const stdoutName = "-"

// createOutput begins a file. Where a symbolic link has its name, that stays and
// leads to the file.
func createOutput(path string, private bool) (*outputFile, error) {
	info, err := os.Stat(path)
	if stdout, outErr := os.Stdout.Stat(); path == stdoutName || err == nil && outErr == nil && os.SameFile(info, stdout) {
		return &outputFile{File: os.Stdout, path: path}, nil
	}
	if err == nil && (!info.Mode().IsRegular() || isDescriptor(path)) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		return &outputFile{File: f, path: path}, err
	}
	o := &outputFile{path: linkTarget(path), isPrivate: private}
	mode := fs.FileMode(0o666)
	if err == nil {
		o.old = info
		mode = info.Mode().Perm()
		// A file that may not be written is not replaced either.
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		f.Close()
	}
	if private {
		mode = 0o600
	}
	o.File, err = unfinished.create(filepath.Dir(o.path), mode)
	if o.old != nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) {
		o.isInPlace = true
		o.File, err = unfinished.create(os.TempDir(), 0o600)
	}
	if err != nil {
		return nil, err
	}
	o.temporary = o.Name()
	return o, nil
}

// isDescriptor says that a path names what this process, or another, has open.
func isDescriptor(path string) bool {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path == "/dev/stdout" || path == "/dev/stderr" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/")
}

// linkTarget is the path that a symbolic link leads to, whether a file is there
// or not. A path that is no link is returned as it is.
func linkTarget(path string) string {
	for range 40 { // as many as the kernel follows
		to, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			// The link's own folder may be reached by another link. Then ".."
			// counts from where that one leads.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return path
			}
			to = filepath.Join(dir, to)
		}
		path = to
	}
	return path
}

// finish gives the file its name, or removes it where err says that what should
// have been written was not. What was there before stays then.
func (o *outputFile) finish(err error) error {
	if o.temporary == "" {
		if o.File == os.Stdout {
			return err
		}
		return errors.Join(err, o.Close())
	}
	if err != nil {
		return errors.Join(err, o.abandon())
	}
	return o.end(o.commit)
}

// abandon removes the file if it is not finished.
func (o *outputFile) abandon() error {
	if o.temporary == "" {
		return nil
	}
	return o.end(o.Close)
}

func (o *outputFile) end(f func() error) error {
	err := unfinished.end(o.temporary, f)
	o.temporary = ""
	return err
}

func (o *outputFile) commit() error {
	err := o.Sync()
	if o.old != nil && !o.isPrivate && !o.isInPlace && err == nil {
		if st, ok := o.old.Sys().(*syscall.Stat_t); ok {
			_ = o.Chown(int(st.Uid), int(st.Gid)) // as far as that is allowed
		}
		err = o.Chmod(o.old.Mode().Perm())
	}
	if err == nil && !o.isInPlace {
		err = os.Rename(o.temporary, o.path)
		if errors.Is(err, syscall.EBUSY) && o.old != nil { // something is mounted there
			o.isInPlace, err = true, nil
		}
	}
	if err == nil && o.isInPlace {
		err = o.writeOver()
	}
	return errors.Join(err, o.Close())
}

// writeOver copies the temporary file, which is whole by now, over the file that
// is there.
func (o *outputFile) writeOver() error {
	if _, err := o.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, err := os.OpenFile(o.path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, o.File)
	return errors.Join(err, to.Close())
}

// noteInputs remembers the files that the command line names, and refuses to
// write over one of them.
func (g *globals) noteInputs(cmd *cobra.Command, args []string) error {
	g.reads(args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "output" {
			return
		}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			g.reads(list.GetSlice()...)
			return
		}
		g.reads(f.Value.String())
	})
	if f := cmd.Flags().Lookup("server"); f.Changed && g.server != "" && cmd.Name() != "stack" {
		return usageError{fmt.Errorf("--server %s: expected the command stack: %s is done here", g.server, cmd.Name())}
	}
	return g.notOverInput(g.output)
}

// reads remembers paths of files that are read. FILE#NAME is of FILE.
func (g *globals) reads(paths ...string) {
	for _, path := range paths {
		g.inputs = append(g.inputs, path)
		if file, _, ok := strings.Cut(path, "#"); ok {
			g.inputs = append(g.inputs, file)
		}
	}
}

// regularFile is the regular file at a path; nil: there is none.
func regularFile(path string) fs.FileInfo {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return info
	}
	return nil
}

// notOverInput refuses a path of a file that is read, by whatever name.
func (g *globals) notOverInput(path string) error {
	info := regularFile(path)
	if path == stdoutName || info == nil {
		return nil // nothing is lost by writing to it
	}
	if in, err := os.Stdin.Stat(); err == nil && os.SameFile(info, in) {
		return usageError{fmt.Errorf("-o %s: it is what standard input comes from, and would be written over", path)}
	}
	for _, input := range g.inputs {
		if in := regularFile(input); in != nil && os.SameFile(info, in) {
			return usageError{fmt.Errorf("-o %s: it is the file %s, which is read and would be written over", path, input)}
		}
	}
	return nil
}
