// SPDX-License-Identifier: Apache-2.0

// Package objects keeps files of code and of debug information on disk, by build ID, so
// that each is sent once. A store has a bounded number of bytes: what was not used for the
// longest time goes first. It is whole however a process that writes to it ends.
package objects

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/bounded"
)

// Files of an object. A file has both parts where it has code and debug information.
const (
	Executable = "executable"
	DebugInfo  = "debuginfo"
)

// MaxID is how many bytes a build ID has at most, MinID at least: linkers write 8 to 20.
const (
	MinID = 2
	MaxID = 64
)

// Store is a folder of files, and an object.Remote that has them. It may be used
// concurrently, and by several processes.
type Store struct {
	dir      string
	maxBytes int64

	mu  sync.Mutex
	has bounded.Amount // about
}

// Open opens the store in a folder, which is made where it is not there. maxBytes is how
// many bytes it may have.
func Open(dir string, maxBytes int64) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, maxBytes: maxBytes}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.evict(0)
}

// Resize changes how many bytes the store may have. More than that go when the next file
// comes.
func (s *Store) Resize(maxBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxBytes = maxBytes
}

// Dir is the store's folder.
func (s *Store) Dir() string { return s.dir }

// Amount is about how many files and bytes the store has.
func (s *Store) Amount() bounded.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has
}

// folder is where the files of a build ID are; "" where that is none.
func (s *Store) folder(id []byte) string {
	if len(id) < MinID || len(id) > MaxID {
		return ""
	}
	name := hex.EncodeToString(id)
	return filepath.Join(s.dir, name[:2], name[2:])
}

// Find returns the path of a file of a build ID; "" where the store does not have it.
func (s *Store) Find(id []byte, kind string) string {
	folder := s.folder(id)
	if folder == "" {
		return ""
	}
	path := filepath.Join(folder, kind)
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	// It was used. The file's own times stay: by them a worker knows the file that it has open.
	now := time.Now()
	_ = os.Chtimes(folder, now, now)
	return path
}

// Fetch implements object.Remote.
func (s *Store) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	switch f.Kind {
	case object.RemoteDebuginfo:
		return s.Find(f.BuildID, DebugInfo), nil
	case object.RemoteExecutable, object.RemoteCode:
		return s.Find(f.BuildID, Executable), nil
	}
	return "", nil
}

// Part is a file that is being sent. Close ends it: what was not kept is gone.
type Part struct {
	*os.File
	store *Store
}

// Create begins a file.
func (s *Store) Create() (*Part, error) {
	for {
		f, err := os.CreateTemp(s.dir, partPrefix)
		if err != nil {
			return nil, err
		}
		// The lock says that somebody writes it; no end of a process leaves it.
		err = lock(f, unix.LOCK_EX)
		var info unix.Stat_t
		if err == nil {
			err = unix.Fstat(int(f.Fd()), &info)
		}
		if err == nil && info.Nlink > 0 {
			return &Part{f, s}, nil
		}
		_ = f.Close()
		if err != nil {
			_ = os.Remove(f.Name())
			return nil, err
		}
		// Another process took it for one that was left.
	}
}

// lock locks a file.
func lock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// removeLeft removes a file that is not whole, if nobody writes it any more.
func removeLeft(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if lock(f, unix.LOCK_EX|unix.LOCK_NB) == nil {
		_ = os.Remove(path)
	}
}

// partPrefix begins the names of files that are not whole. Names of objects have no such
// character.
const partPrefix = "part-"

// Keep keeps the file for a build ID, as each of kinds.
func (p *Part) Keep(id []byte, kinds ...string) error {
	folder := p.store.folder(id)
	if folder == "" {
		return fmt.Errorf("a build ID of %d bytes, expected %d to %d", len(id), MinID, MaxID)
	}
	info, err := p.Stat()
	if err != nil {
		return err
	}
	if err := p.Sync(); err != nil {
		return err
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	if err := p.store.evict(info.Size()); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for _, kind := range kinds {
		// Two names are one file: it takes no room twice.
		link := p.Name() + "." + kind
		if err := os.Link(p.Name(), link); err != nil {
			return err
		}
		if err := os.Rename(link, filepath.Join(folder, kind)); err != nil {
			_ = os.Remove(link)
			return err
		}
	}
	p.store.has = p.store.has.Plus(bounded.Amount{Files: 1, Bytes: info.Size()})
	return nil
}

// Close closes the file, and takes its first name from it.
func (p *Part) Close() error { return errors.Join(p.File.Close(), os.Remove(p.Name())) }

// evict removes what was not used for the longest time, until there is room for more
// bytes. An error says that there is none.
func (s *Store) evict(more int64) error {
	if more > s.maxBytes {
		return fmt.Errorf("a file of %d bytes, expected at most %d", more, s.maxBytes)
	}
	added, most := bounded.Amount{Files: 1, Bytes: more}, bounded.Amount{Bytes: s.maxBytes}
	if s.has.Bytes > 0 && s.has.Plus(added).IsIn(most) {
		return nil
	}
	list, err := s.list()
	if err != nil {
		return err
	}
	s.has, _ = bounded.Evict(list, added, most) // what cannot be removed stays
	for _, f := range list {
		_ = os.Remove(filepath.Dir(f.Paths[0])) // which fails where it has anything in it
	}
	return nil
}

// list lists the files, each once, and removes those that are not whole.
func (s *Store) list() (list []*bounded.File, err error) {
	known := map[uint64]*bounded.File{} // by inode
	err = filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return skipAbsent(err)
		}
		info, err := d.Info()
		if err != nil {
			return skipAbsent(err)
		}
		if strings.HasPrefix(d.Name(), partPrefix) {
			removeLeft(path)
			return nil
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return nil
		}
		f := known[st.Ino]
		if f == nil {
			f = &bounded.File{Size: info.Size(), Used: usedAt(filepath.Dir(path))}
			known[st.Ino] = f
			list = append(list, f)
		}
		f.Paths = append(f.Paths, path)
		return nil
	})
	return list, err
}

// File is one that a store has.
type File struct {
	ID   []byte
	Kind string
	Path string
	used time.Time
}

// All lists the files, those that were used last first. It is no use of them.
func (s *Store) All() (files []File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := s.list()
	for _, f := range list {
		for _, path := range f.Paths {
			name, err := filepath.Rel(s.dir, filepath.Dir(path))
			if err != nil {
				return nil, err
			}
			if id, err := hex.DecodeString(strings.ReplaceAll(name, string(filepath.Separator), "")); err == nil && len(id) >= MinID {
				files = append(files, File{id, filepath.Base(path), path, f.Used})
			}
		}
	}
	slices.SortStableFunc(files, func(a, b File) int { return b.used.Compare(a.used) })
	return files, err
}

// usedAt is when a file of a build ID's folder was used last, or put.
func usedAt(folder string) time.Time {
	info, err := os.Stat(folder)
	if err != nil {
		return time.Time{} // it is not there any more
	}
	return info.ModTime()
}

// skipAbsent is an error but for that of a file that is not there any more.
func skipAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

var _ io.Writer = (*Part)(nil)
