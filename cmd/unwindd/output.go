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
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unwindd/unwindd/internal/host"
)

// outputFile is a file that a command writes. A regular one has no name until it is whole,
// or a temporary one where the file system needs a name, so that a reader finds all of it
// or the old file. A file of another type is written to directly.
type outputFile struct {
	*os.File
	path      string      // the final name
	isPending bool        // it does not have the final name yet
	temporary string      // its name so far; "": none
	old       fs.FileInfo // of the existing file; nil: there is none
	isPrivate bool        // only its owner may read it
	isInPlace bool        // it cannot be renamed to path: the existing file is overwritten
}

// temporaries are unfinished files with names.
type temporaries struct {
	sync.Mutex
	names map[string]bool
}

var unfinished = temporaries{names: map[string]bool{}}

// abandon removes unfinished files for good: afterwards none can be begun or finished.
func (t *temporaries) abandon() {
	t.Lock()
	for name := range t.names {
		_ = os.Remove(name)
	}
}

// create creates a file with a free name in a folder.
func (t *temporaries) create(dir string, mode fs.FileMode) (f *os.File, err error) {
	t.Lock()
	defer t.Unlock()
	name, err := atFreeName(dir, func(name string) error {
		f, err = os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode)
		return err
	})
	if err == nil {
		t.names[name] = true
	}
	return f, err
}

// atFreeName calls create with a free name in a folder.
func atFreeName(dir string, create func(name string) error) (name string, err error) {
	for {
		name = filepath.Join(dir, fmt.Sprintf(".unwindd-%d", rand.Uint32()))
		if err = create(name); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
}

// stdoutName names standard output as a file.
const stdoutName = "-"

// createOutput begins a file. A symbolic link at the path stays, and leads to the file.
func createOutput(path string, private bool) (*outputFile, error) {
	info, err := os.Stat(path)
	if stdout, outErr := os.Stdout.Stat(); path == stdoutName || err == nil && outErr == nil && os.SameFile(info, stdout) {
		return &outputFile{File: os.Stdout, path: path}, nil
	}
	if isStream(path) {
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
	err = o.begin(filepath.Dir(o.path), mode)
	if o.old != nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)) {
		o.isInPlace = true
		err = o.begin(os.TempDir(), 0o600)
	}
	if err != nil {
		return nil, outputError(path, filepath.Dir(o.path), err)
	}
	return o, nil
}

// isStream reports whether a path takes bytes as they are written: it is standard output, or not a
// regular file, as /dev/null. No other file is made beside it.
func isStream(path string) bool {
	info, err := os.Stat(path)
	return path == stdoutName || err == nil && (!info.Mode().IsRegular() || isDescriptor(path))
}

// outputError names the file that cannot be begun, and not the temporary one.
func outputError(path, dir string, err error) error {
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist) && !isThere(dir):
		return fmt.Errorf("-o %s: the folder %s does not exist", path, dir)
	case errors.As(err, &failed):
		return fmt.Errorf("-o %s: %w", path, failed.Err)
	}
	return fmt.Errorf("-o %s: %w", path, err)
}

// begin creates the file in a folder. Without a name it is gone however this process ends.
func (o *outputFile) begin(dir string, mode fs.FileMode) error {
	o.isPending = true
	var err error
	if o.File, err = host.Nameless(dir, o.path, mode); err == nil {
		return nil
	}
	if o.File, err = unfinished.create(dir, mode); err != nil {
		return err
	}
	o.temporary = o.Name()
	return nil
}

// isDescriptor reports whether a path names an open file of a process.
func isDescriptor(path string) bool {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return path == "/dev/stdout" || path == "/dev/stderr" || strings.HasPrefix(path, "/dev/fd/") || strings.HasPrefix(path, "/proc/")
}

// linkTarget returns the path that a symbolic link leads to, whether a file is there or
// not. It returns a path that is no link unchanged.
func linkTarget(path string) string {
	for range 40 { // as many as the kernel follows
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) {
			// Where another link leads to the link's folder, ".." counts from its target.
			dir, err := filepath.EvalSymlinks(filepath.Dir(path))
			if err != nil {
				return path
			}
			target = filepath.Join(dir, target)
		}
		path = target
	}
	return path
}

// finish gives the file its name, or removes it after an error; then the existing file
// stays.
func (o *outputFile) finish(err error) error {
	if !o.isPending {
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
	if !o.isPending {
		return nil
	}
	return o.end(o.Close)
}

// end calls f, which may give the file its name, and removes the temporary name. Signals
// wait for it.
func (o *outputFile) end(f func() error) error {
	unfinished.Lock()
	defer unfinished.Unlock()
	err := f()
	if o.temporary != "" {
		_ = os.Remove(o.temporary) // fails where f has renamed it
		delete(unfinished.names, o.temporary)
	}
	o.isPending, o.temporary = false, ""
	return err
}

func (o *outputFile) commit() error {
	err := o.Sync()
	if err == nil && !o.isInPlace {
		err = o.rename()
		if errors.Is(err, syscall.EBUSY) && o.old != nil { // something is mounted there
			o.isInPlace, err = true, nil
		}
	}
	if err == nil && o.isInPlace {
		err = o.writeOver()
	}
	closing := o.Close()
	if errors.Is(closing, fs.ErrClosed) { // by rename
		closing = nil
	}
	return errors.Join(err, closing)
}

// rename gives the file its name, and replaces a file that has it.
func (o *outputFile) rename() error {
	if err := o.resemble(o.File); err != nil {
		return err
	}
	if o.temporary == "" {
		// A link replaces nothing.
		err := host.Link(o.File, o.path)
		if err == nil {
			return nil
		}
		isTaken := errors.Is(err, fs.ErrExist)
		o.temporary, err = atFreeName(filepath.Dir(o.path), func(name string) error {
			if isTaken && host.Link(o.File, name) == nil {
				return nil
			}
			return o.copyAs(name) // without /proc nothing can be linked
		})
		if err != nil {
			return err
		}
	}
	if runtime.GOOS == "windows" { // which renames no open file
		if err := o.Close(); err != nil {
			return err
		}
	}
	return os.Rename(o.temporary, o.path)
}

// resemble gives a file the owner and the mode of the file that it replaces.
func (o *outputFile) resemble(f *os.File) error {
	if o.old == nil || o.isPrivate {
		return nil
	}
	if user, group, ok := host.Owner(o.old); ok {
		_ = f.Chown(user, group) // as far as that is allowed
	}
	return f.Chmod(o.old.Mode().Perm())
}

// copyAs copies the file to a free name.
func (o *outputFile) copyAs(name string) error {
	info, err := o.Stat()
	if err != nil {
		return err
	}
	duplicate, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	if err = o.copyTo(duplicate); err == nil {
		err = o.resemble(duplicate)
	}
	if err == nil {
		err = duplicate.Sync()
	}
	if err = errors.Join(err, duplicate.Close()); err != nil {
		_ = os.Remove(name)
	}
	return err
}

// writeOver copies the whole file over the existing one.
func (o *outputFile) writeOver() error {
	existing, err := os.OpenFile(o.path, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	return errors.Join(o.copyTo(existing), existing.Close())
}

func (o *outputFile) copyTo(file *os.File) error {
	if _, err := o.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(file, o.File)
	return err
}

// prepare takes the settings of the configuration file, records the files that the command
// line names, and refuses to overwrite one of them.
func (g *globals) prepare(cmd *cobra.Command, args []string) error {
	g.findConfig(cmd.Flags().Changed("config"))
	if err := g.applySettings(cmd); err != nil {
		return err
	}
	g.reads(args...)
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "output" {
			return
		}
		value := f.Value
		if other, ok := value.(*otherName); ok {
			value = other.Value
		}
		if list, ok := value.(pflag.SliceValue); ok {
			g.reads(list.GetSlice()...)
			return
		}
		g.reads(value.String())
	})
	if g.server != "" && !slices.Contains(serverCommands, cmd.Name()) {
		return usageError{fmt.Errorf("--server %s: expected one of the commands %s: %s is done here", g.server, strings.Join(serverCommands, ", "), cmd.Name())}
	}
	return g.notOverInput(g.output)
}

// reads records paths of files that are read. FILE#NAME is in FILE.
func (g *globals) reads(paths ...string) {
	for _, path := range paths {
		g.inputs = append(g.inputs, path)
		if file, _, ok := strings.Cut(path, "#"); ok {
			g.inputs = append(g.inputs, file)
		}
	}
}

// regularFile returns the regular file at a path; nil: there is none.
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
	if file, err := os.Stdin.Stat(); err == nil && os.SameFile(info, file) {
		return usageError{fmt.Errorf("-o %s: it is what standard input comes from, and would be written over", path)}
	}
	for _, input := range g.inputs {
		if file := regularFile(input); file != nil && os.SameFile(info, file) {
			return usageError{fmt.Errorf("-o %s: it is the file %s, which is read and would be written over", path, input)}
		}
	}
	return nil
}
