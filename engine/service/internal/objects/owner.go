// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
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

// The files of an owner are in a folder that is called by a digest of his name. Files of versions
// that knew no owners are not in one.
//
//	01/092ed6fb.../5c2e3a.../executable.SHA256
//
// The name has the SHA-256 that the file had when it was put.

// folderOf returns the name of an owner's folder.
func folderOf(owner string) string {
	sum := sha256.Sum256([]byte(owner))
	return hex.EncodeToString(sum[:16])
}

// View is a store as a caller sees it: his own files before the others. It is an
// object.Remote.
type View struct {
	store *Store
	owner string
}

// Of returns the store as a caller sees it; "": he owns nothing.
func (s *Store) Of(owner string) View { return View{s, owner} }

// Find returns the path of the caller's file of a build ID, or else of the one that was put first;
// "" where there is none.
func (v View) Find(id []byte, kind string) string {
	if path := v.Own(id, kind); path != "" {
		return path
	}
	folder := v.store.folder(id)
	if folder == "" {
		return ""
	}
	return v.store.firstSound(func() []string { return putInOrder(folder, kind) })
}

// maxLooks is how often a file is looked for while others take the places of the ones that were found.
const maxLooks = 100

// firstSound returns the first of the files that list finds whose content is the one that was put; "": there is none.
func (s *Store) firstSound(list func() []string) string {
	for range maxLooks {
		found := list()
		for _, path := range found {
			if s.isSound(path) {
				return s.use(path)
			}
		}
		if len(found) == 0 {
			break
		}
	}
	return ""
}

// Own returns the path of the caller's own file of a build ID; "": he has none.
func (v View) Own(id []byte, kind string) string {
	folder := v.store.folder(id)
	if folder == "" || v.owner == "" {
		return ""
	}
	own := filepath.Join(folder, folderOf(v.owner))
	return v.store.firstSound(func() []string {
		if path, _ := latest(own, kind); path != "" {
			return []string{path}
		}
		return nil
	})
}

// latest returns the path of a file of a kind in the folder of an owner, and when it was put; "": there is none. There are
// two while one replaces the other.
func latest(folder, kind string) (path string, put time.Time) {
	for range maxLooks {
		entries, _ := os.ReadDir(folder) // it may be absent
		found := false
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), kind+".") {
				continue
			}
			found = true
			if info, err := e.Info(); err == nil && (path == "" || info.ModTime().After(put)) {
				path, put = filepath.Join(folder, e.Name()), info.ModTime()
			}
		}
		if path != "" || !found {
			break
		}
	}
	return path, put
}

// Fetch implements object.Remote.
func (v View) Fetch(f object.RemoteFile) (path string, tried []object.Attempt) {
	switch f.Kind {
	case object.RemoteDebuginfo, object.RemotePDB:
		return v.Find(f.BuildID, DebugInfo), nil
	case object.RemoteExecutable, object.RemoteCode:
		return v.Find(f.BuildID, Executable), nil
	}
	return "", nil
}

// Differs reports whether the caller has a file of his own that is not the one that others get.
func (v View) Differs() (bool, error) {
	folders, err := filepath.Glob(filepath.Join(v.store.dir, "*", "*", folderOf(v.owner)))
	if err != nil {
		return false, err
	}
	for _, own := range folders {
		for _, kind := range []string{Executable, DebugInfo} {
			path, _ := latest(own, kind)
			if list := putInOrder(filepath.Dir(own), kind); path != "" && len(list) > 0 && sumOf(list[0]) != sumOf(path) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Remove removes the caller's files of a build ID. ok is false where he has none.
func (v View) Remove(id []byte) (ok bool, err error) {
	folder := v.store.folder(id)
	if folder == "" || v.owner == "" {
		return false, nil
	}
	return v.store.removeFrom(filepath.Join(folder, folderOf(v.owner)))
}

// Remove removes the files of a build ID of all owners. ok is false where there are none.
func (s *Store) Remove(id []byte) (ok bool, err error) {
	folder := s.folder(id)
	if folder == "" {
		return false, nil
	}
	return s.removeFrom(folder)
}

// removeFrom removes a folder with files of a build ID.
func (s *Store) removeFrom(folder string) (ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Lstat(folder); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err := os.RemoveAll(folder); err != nil {
		return false, err
	}
	s.tidy(folder)
	s.has.Bytes = 0 // so that it is counted again
	return true, s.evict(0)
}

// putInOrder lists the files of a kind in the folder of a build ID, the one that was put first
// first.
func putInOrder(folder, kind string) (paths []string) {
	type file struct {
		path string
		put  time.Time
	}
	var list []file
	old := filepath.Join(folder, kind) // of an older version
	if info, err := os.Lstat(old); err == nil {
		list = append(list, file{old, info.ModTime()})
	}
	owners, _ := os.ReadDir(folder) // it may be absent
	for _, d := range owners {
		if d.IsDir() {
			if path, put := latest(filepath.Join(folder, d.Name()), kind); path != "" {
				list = append(list, file{path, put})
			}
		}
	}
	slices.SortFunc(list, func(a, b file) int { return cmp.Or(a.put.Compare(b.put), strings.Compare(a.path, b.path)) })
	for _, f := range list {
		paths = append(paths, f.path)
	}
	return paths
}

// same returns the path of a file of a build ID, of any owner, that has a SHA-256, where each of
// kinds is there; "": there is none.
func (s *Store) same(folder, sum string, size int64, kinds []string) (path string) {
	for _, kind := range kinds {
		path = ""
		for _, other := range putInOrder(folder, kind) {
			if info, err := os.Lstat(other); err == nil && info.Size() == size && sumOf(other) == sum && s.isSound(other) {
				path = other
				break
			}
		}
		if path == "" {
			return ""
		}
	}
	return path
}

// sumOf returns the SHA-256 that a file had when it was put; "": it is of an older version.
func sumOf(path string) string {
	_, sum, _ := strings.Cut(filepath.Base(path), ".")
	return sum
}

// soundFiles are the files whose content is the one that was put.
type soundFiles struct {
	mu    sync.Mutex
	files map[uint64]state // by inode
}

// state is the state of a file when it was read.
type state struct {
	size     int64
	modified time.Time
	sum      string
}

// maxSound bounds the files whose states are remembered.
const maxSound = 1 << 16

// isSound reports whether a file is there and has the content that was put. One whose content has
// changed is removed.
func (s *Store) isSound(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	want := sumOf(path)
	inode, ok := host.Inode(info)
	if want == "" || !ok {
		return ok // it is of an older version
	}
	is := state{info.Size(), info.ModTime(), want}
	s.sound.mu.Lock()
	known := s.sound.files[inode] == is
	s.sound.mu.Unlock()
	if known {
		return true
	}
	if sum, err := sumOfFile(path); err != nil || sum != want {
		if err == nil {
			_ = os.Remove(path)
			s.tidy(path)
		}
		return false
	}
	s.sound.mu.Lock()
	defer s.sound.mu.Unlock()
	if s.sound.files == nil || len(s.sound.files) >= maxSound {
		s.sound.files = map[uint64]state{}
	}
	s.sound.files[inode] = is
	return true
}

func sumOfFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// use records that a file is used, in its folder. The file's own times stay: a worker recognizes an
// open file by them.
func (s *Store) use(path string) string {
	now := time.Now()
	_ = os.Chtimes(filepath.Dir(path), now, now)
	return path
}
