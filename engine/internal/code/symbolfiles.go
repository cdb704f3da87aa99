// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/unwindd/unwindd/engine/internal/symbol/breakpad"
)

// symbolFiles are Breakpad's symbol files that objects of a library use. One that many
// objects use is open once: of modules without a file each target has an object of its
// own.
type symbolFiles struct {
	library *Library
	lookups atomic.Int64

	mu   sync.Mutex
	open map[symbolFileKey]*symbolFile
}

// symbolFileKey tells files apart, and a file from an earlier one at its path.
type symbolFileKey struct {
	path     string
	size     int64
	modified time.Time
}

// A symbolFile is a symbol file that objects use.
type symbolFile struct {
	*breakpad.File // nil where it cannot be read, as err says
	err            error
	once           sync.Once
	key            symbolFileKey
	users          int          // under mu
	used           uint64       // when it was used last; likewise
	bytes          atomic.Int64 // that it keeps; 0 until it is open
}

// use opens the file at a path, or takes it where it is open, until release. The error is
// breakpad.Open's.
func (s *symbolFiles) use(path string) (*symbolFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	key := symbolFileKey{path, info.Size(), info.ModTime()}
	s.mu.Lock()
	f := s.open[key]
	if f == nil {
		f = &symbolFile{key: key}
		if s.open == nil {
			s.open = map[symbolFileKey]*symbolFile{}
		}
		s.open[key] = f
	}
	f.users++
	f.used = s.library.uses.Add(1)
	s.mu.Unlock()
	f.once.Do(func() {
		if f.File, f.err = breakpad.Open(path); f.err == nil {
			f.bytes.Store(int64(f.MemorySize())) //nolint:gosec // of memory
			s.library.bytes.Add(f.bytes.Load())
		}
	})
	if f.err != nil {
		s.release(f)
		return nil, f.err
	}
	// Objects are not trimmed: the caller may hold the lock of one.
	s.trim(int64(s.library.most)) //nolint:gosec // of memory
	return f, nil
}

// release ends a use. A file without users stays open while the library has not too much.
func (s *symbolFiles) release(f *symbolFile) {
	s.mu.Lock()
	f.users--
	if f.users == 0 && f.err != nil {
		delete(s.open, f.key)
	}
	s.mu.Unlock()
}

// trim closes files without users, the least recently used first, until the library keeps no more
// than most bytes.
func (s *symbolFiles) trim(most int64) {
	s.mu.Lock()
	var idle, closed []*symbolFile
	for _, f := range s.open {
		if f.users == 0 {
			idle = append(idle, f)
		}
	}
	slices.SortFunc(idle, func(a, b *symbolFile) int { return cmp.Compare(a.used, b.used) })
	left := s.library.bytes.Load()
	for _, f := range idle {
		if left <= most {
			break
		}
		left -= f.bytes.Load()
		delete(s.open, f.key)
		closed = append(closed, f)
	}
	s.mu.Unlock()
	for _, f := range closed {
		s.library.bytes.Add(-f.bytes.Load())
		_ = f.Close()
	}
}

// releaseEvery is after how many look-ups the pages of all files are released, of which each may
// have brought in a few: the kernel reads up to 64 KiB around an address.
const releaseEvery = 512

// lookedUp counts a look-up in one of the files.
func (s *symbolFiles) lookedUp() {
	if s.lookups.Add(1)%releaseEvery != 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.open {
		if f.users > 0 && f.bytes.Load() > 0 {
			f.ReleasePages()
		}
	}
}
