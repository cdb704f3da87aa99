// SPDX-License-Identifier: Apache-2.0

package service

import (
	"io"
	"os"
	"slices"
	"sync"
	"time"
)

// spares are small files without a name, into which the next targets of the same callers are written: a
// new file for each costs the file system more than its bytes. Only workers of the caller have read
// them, and only his targets are in them.
type spares struct {
	most int // files

	mu     sync.Mutex
	files  []spare     // the oldest first
	expiry *time.Timer // nil: none waits for its end
}

// spare is one of the files.
type spare struct {
	*os.File
	worker string // see upload
	size   int64
	since  time.Time
}

const (
	// maxSpare bounds the bytes of a file. A worker keeps no object that has the bytes of a target in
	// a file, rather than a copy, and fits into so few: see maxSharedImage of package object.
	maxSpare = 1 << 20
	// spareFor is how long a file is kept.
	spareFor = time.Second
)

// take takes a file, which is written from its beginning, and its size; nil: there is none.
func (s *spares) take(worker string) (*os.File, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, f := range slices.Backward(s.files) {
		if f.worker != worker {
			continue
		}
		s.files = slices.Delete(s.files, n, n+1)
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			_ = f.Close()
			return nil, 0
		}
		return f.File, f.size
	}
	return nil, 0
}

// keep keeps a file whose last reader is gone, or closes it.
func (s *spares) keep(f *os.File, worker string, size int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if size > maxSpare || s.most == 0 {
		_ = f.Close()
		return
	}
	if len(s.files) == s.most {
		_ = s.files[0].Close()
		s.files = slices.Delete(s.files, 0, 1)
	}
	s.files = append(s.files, spare{f, worker, size, time.Now()})
	if s.expiry == nil {
		s.expiry = time.AfterFunc(spareFor, s.expire)
	}
}

// expire closes the files that have been kept for long.
func (s *spares) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiry = nil
	for len(s.files) > 0 && time.Since(s.files[0].since) >= spareFor {
		_ = s.files[0].Close()
		s.files = slices.Delete(s.files, 0, 1)
	}
	if len(s.files) > 0 {
		s.expiry = time.AfterFunc(spareFor-time.Since(s.files[0].since), s.expire)
	}
}

// close closes all files.
func (s *spares) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files {
		_ = f.Close()
	}
	s.files, s.most = nil, 0
}
