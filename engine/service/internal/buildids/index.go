// SPDX-License-Identifier: Apache-2.0

// Package buildids knows the code objects beneath folders by their build IDs. It reads the headers
// of all files, which an administrator has put there.
package buildids

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/host"
)

// File is a file of a build ID.
type File struct {
	Path string
	id   string
	kind object.RemoteKind
	stat stat
}

// stat tells a file from a later one at the same path.
type stat struct {
	size     int64
	modified time.Time
	inode    uint64
}

func statOf(info fs.FileInfo) stat {
	inode, _ := host.Inode(info)
	return stat{info.Size(), info.ModTime(), inode}
}

// Index is the code objects beneath folders. It may be used concurrently.
type Index struct {
	roots []string
	fresh time.Duration // after which folders are read again, where something is not found

	mu      sync.Mutex
	read    chan struct{} // closed when the folders were read once; nil: that has not begun
	isBusy  bool
	began   time.Time // the last reading
	files   map[string][]File
	known   map[string]known // by path, so that a file is read once
	omitted int              // files beyond MaxFiles
}

// known are the files of a path, as it was read.
type known struct {
	stat  stat
	files []File
}

// MaxFiles bounds the regular files that an Index looks at.
const MaxFiles = 1 << 20

// Fresh is how long an Index believes that folders have nothing new.
const Fresh = 5 * time.Minute

// New makes an Index of folders, which are read when somebody looks for a file.
func New(roots ...string) *Index {
	return &Index{roots: slices.DeleteFunc(slices.Clone(roots), func(dir string) bool { return dir == "" }), fresh: Fresh}
}

// Find returns a file of a build ID; "" where the folders have none. Who comes first waits until
// they were read, or ctx ends. A file that has come since is found some minutes later.
func (x *Index) Find(ctx context.Context, id []byte, kind object.RemoteKind) (path string, err error) {
	if len(x.roots) == 0 || len(id) == 0 {
		return "", nil
	}
	select {
	case <-x.begin():
	case <-ctx.Done():
		return "", ctx.Err()
	}
	x.mu.Lock()
	list := x.files[string(id)]
	isOld := time.Since(x.began) > x.fresh
	x.mu.Unlock()
	for i := range list {
		if f := &list[i]; f.kind == kind && f.isSame() {
			return f.Path, nil
		}
	}
	if isOld {
		x.readAgain()
	}
	return "", nil
}

// isSame reports whether a file is as it was read.
func (f *File) isSame() bool {
	info, err := os.Lstat(f.Path)
	return err == nil && info.Mode().IsRegular() && statOf(info) == f.stat
}

// Omitted returns how many files were not looked at, because there are too many.
func (x *Index) Omitted() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.omitted
}

// begin has the folders read, unless they were. The channel is closed when they were.
func (x *Index) begin() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.read == nil {
		x.read, x.isBusy, x.began = make(chan struct{}), true, time.Now()
		go func() {
			x.scan()
			close(x.read)
		}()
	}
	return x.read
}

// readAgain has the folders read again, unless that is under way.
func (x *Index) readAgain() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.isBusy {
		x.isBusy, x.began = true, time.Now()
		go x.scan()
	}
}

// scan reads the folders.
func (x *Index) scan() {
	s := scan{before: x.known, known: map[string]known{}, left: MaxFiles}
	for _, root := range x.roots {
		s.root(root)
	}
	files := map[string][]File{}
	for _, k := range s.known {
		for _, f := range k.files {
			files[f.id] = append(files[f.id], f)
		}
	}
	for _, list := range files {
		slices.SortFunc(list, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.files, x.known, x.omitted, x.isBusy = files, s.known, s.omitted, false
}

// scan is one reading of folders.
type scan struct {
	before, known map[string]known
	left, omitted int
}

// notOfDisk are the folders of a root that are no files on a disk.
var notOfDisk = []string{"dev", "proc", "run", "sys"}

// root reads the files beneath a folder. Those that cannot be read are left out, and links are not followed.
func (s *scan) root(root string) {
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error { // the function returns no other error
		switch {
		case err != nil:
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() && filepath.Dir(path) == filepath.Clean(root) && slices.Contains(notOfDisk, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular():
			s.file(path, d)
		}
		return nil
	})
}

// leastObject is the size of the smallest header of ELF, in bytes.
const leastObject = 52

// file reads a file, unless it is as it was.
func (s *scan) file(path string, d fs.DirEntry) {
	info, err := d.Info()
	if err != nil || info.Size() < leastObject {
		return
	}
	if s.left--; s.left < 0 {
		s.omitted++
		return
	}
	now := statOf(info)
	if k, ok := s.before[path]; ok && k.stat == now {
		s.known[path] = k
		return
	}
	if !isCode(path) {
		return
	}
	s.known[path] = known{now, filesOf(path, now)}
}

// magics begin the files that may be given: ELF files and PDB files.
var magics = []string{"\x7fELF", "Microsoft C/C++ MSF 7.00"}

// isCode reports whether a regular file begins as a code object, or its debug information, does.
func isCode(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|host.WithoutWaiting, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	var head [24]byte
	n, _ := f.ReadAt(head[:], 0)
	return slices.ContainsFunc(magics, func(magic string) bool { return strings.HasPrefix(string(head[:n]), magic) })
}

// filesOf returns what a code object is, one with debug information twice.
func filesOf(path string, now stat) (list []File) {
	_ = object.Guard(func() error { // what cannot be read is no code object
		o, err := object.Open(path)
		if err != nil {
			return err
		}
		defer o.Close()
		id := string(o.BuildID())
		if id == "" {
			return errors.New("it has no build ID")
		}
		if !o.DebugOnly() {
			list = append(list, File{path, id, object.RemoteExecutable, now})
		}
		switch {
		case o.IsPDB():
			list = append(list, File{path, id, object.RemotePDB, now})
		case o.HasDebugInfo():
			list = append(list, File{path, id, object.RemoteDebuginfo, now})
		}
		return nil
	})
	return list
}
