// SPDX-License-Identifier: Apache-2.0

// Package objects keeps files of code and of debug information on disk, by build ID, so
// that each is sent once. A store has a bounded number of bytes: the least recently used
// files go first. It stays whole however a process that writes to it ends.
//
// A file has an owner, who put it. Each owner may have another one of the same build ID, and gets
// his own; who has none gets the one that was put first. A file whose content has changed since
// it was put is removed.
package objects

import (
	"crypto/sha256"
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
	"time"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/service/internal/bounded"
	"github.com/unwindd/unwindd/internal/host"
)

// The kinds of files of an object. A file with code and debug information is of both kinds.
const (
	Executable = "executable"
	DebugInfo  = "debuginfo"
)

// MaxID and MinID bound the bytes of a build ID: linkers write 8 to 20.
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
	has bounded.Amount // an estimate: other processes write, too

	sound soundFiles
}

// Open opens the store in a folder, which it makes if necessary. maxBytes bounds the store.
func Open(dir string, maxBytes int64) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, maxBytes: maxBytes}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.evict(0)
}

// Resize changes the bound of the store. Files beyond it are removed when the next file
// comes.
func (s *Store) Resize(maxBytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.maxBytes = maxBytes
}

// Dir returns the store's folder.
func (s *Store) Dir() string { return s.dir }

// Amount returns about how many files and bytes the store has.
func (s *Store) Amount() bounded.Amount {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.has
}

// folder returns the folder of a build ID's files; "" where the ID is malformed.
func (s *Store) folder(id []byte) string {
	if len(id) < MinID || len(id) > MaxID {
		return ""
	}
	name := hex.EncodeToString(id)
	return filepath.Join(s.dir, name[:2], name[2:])
}

// Find returns the path of the file of a build ID that was put first; "" where the store does not
// have it.
func (s *Store) Find(id []byte, kind string) string { return s.Of("").Find(id, kind) }

// Fetch implements object.Remote, as Find.
func (s *Store) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	return s.Of("").Fetch(f)
}

// Part is a file that is being sent. Close removes it unless it was kept.
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
		// The lock marks it as being written; it ends with the process.
		if err = host.Lock(f, true); err == nil && isAt(f) {
			return &Part{f, s}, nil
		}
		_ = f.Close()
		if err != nil {
			_ = os.Remove(f.Name())
			return nil, err
		}
		// Another process has removed it before it was locked.
	}
}

// isAt reports whether a file still has its name.
func isAt(f *os.File) bool {
	info, err := f.Stat()
	named, nameErr := os.Lstat(f.Name())
	return err == nil && nameErr == nil && os.SameFile(info, named)
}

// removeLeft removes a part that no process writes any more.
func removeLeft(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if host.Lock(f, false) == nil {
		_ = os.Remove(path)
	}
}

// partPrefix begins the names of parts. Names of objects have no such character.
const partPrefix = "part-"

// Keep stores the file under a build ID, as each of kinds, in the place of the owner's earlier
// ones. wasThere: the store had it already, from whomever.
func (p *Part) Keep(owner string, id []byte, kinds ...string) (wasThere bool, err error) {
	folder := p.store.folder(id)
	if folder == "" {
		return false, fmt.Errorf("a build ID of %d bytes, expected %d to %d", len(id), MinID, MaxID)
	}
	info, err := p.Stat()
	if err != nil {
		return false, err
	}
	sum, err := p.sum(info.Size())
	if err != nil {
		return false, err
	}
	p.store.mu.Lock()
	defer p.store.mu.Unlock()
	source := p.store.same(folder, sum, info.Size(), kinds)
	if wasThere = source != ""; !wasThere {
		if err := errors.Join(p.Sync(), p.store.evict(info.Size())); err != nil {
			return false, err
		}
		source = p.Name()
	}
	own := filepath.Join(folder, folderOf(owner))
	if err := os.MkdirAll(own, 0o700); err != nil {
		return false, err
	}
	for _, kind := range kinds {
		// Names share one file, so it is stored once.
		if err := p.link(source, own, kind, sum); err != nil {
			return false, err
		}
	}
	if !wasThere {
		p.store.has = p.store.has.Plus(bounded.Amount{Files: 1, Bytes: info.Size()})
	}
	return wasThere, nil
}

// sum returns the SHA-256 of the file, in hexadecimal.
func (p *Part) sum(size int64) (string, error) {
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(p.File, 0, size)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// link gives a file another name, in the place of the earlier files of the kind.
func (p *Part) link(source, own, kind, sum string) error {
	name := p.Name() + "." + kind
	if err := os.Link(source, name); err != nil {
		return err
	}
	path := filepath.Join(own, kind+"."+sum)
	if err := os.Rename(name, path); err != nil {
		_ = os.Remove(name)
		return err
	}
	_ = os.Remove(name) // Rename leaves it where both are one file
	earlier, err := filepath.Glob(filepath.Join(own, kind+".*"))
	for _, old := range earlier {
		if old != path {
			_ = os.Remove(old) // the latest one counts
		}
	}
	return err
}

// Close closes the file, and removes its first name.
func (p *Part) Close() error { return errors.Join(p.File.Close(), os.Remove(p.Name())) }

// evict removes the least recently used files, until more bytes fit. It fails where they
// never do.
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
	s.has, _ = bounded.Evict(list, added, most) // files that cannot be removed stay
	for _, f := range list {
		for _, path := range f.Paths {
			s.tidy(path)
		}
	}
	return nil
}

// tidy removes what belongs to a file that is gone.
func (s *Store) tidy(path string) {
	if _, err := os.Lstat(path); err == nil {
		return
	}
	for dir := filepath.Dir(path); dir != s.dir && os.Remove(dir) == nil; { // which fails where it is not empty
		dir = filepath.Dir(dir)
	}
}

// list lists the files, each once, and removes abandoned parts.
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
		inode, ok := host.Inode(info)
		if !ok {
			return nil
		}
		f := known[inode]
		if f == nil {
			f = &bounded.File{Size: info.Size(), Used: usedAt(filepath.Dir(path))}
			known[inode] = f
			list = append(list, f)
		}
		f.Paths = append(f.Paths, path)
		return nil
	})
	return list, err
}

// File is a file of a store.
type File struct {
	ID   []byte
	Kind string
	Path string
	used time.Time
}

// All lists the files of all owners, the most recently used first. Listing does not count as a use.
func (s *Store) All() (files []File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list, err := s.list()
	for _, f := range list {
		for _, path := range f.Paths {
			name, err := filepath.Rel(s.dir, path)
			if err != nil {
				return nil, err
			}
			parts := strings.Split(name, string(filepath.Separator))
			if len(parts) < 3 {
				continue
			}
			if id, err := hex.DecodeString(parts[0] + parts[1]); err == nil && len(id) >= MinID {
				kind, _, _ := strings.Cut(filepath.Base(path), ".")
				files = append(files, File{id, kind, path, f.Used})
			}
		}
	}
	slices.SortStableFunc(files, func(a, b File) int { return b.used.Compare(a.used) })
	return files, err
}

// usedAt returns the time when a file of a build ID's folder was used last, or put.
func usedAt(folder string) time.Time {
	info, err := os.Stat(folder)
	if err != nil {
		return time.Time{} // it is gone
	}
	return info.ModTime()
}

// skipAbsent returns the error, except that of a file that is gone.
func skipAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

var _ io.Writer = (*Part)(nil)
