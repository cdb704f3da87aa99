// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// upload is a bounded file that receives a caller's bytes.
type upload struct {
	*os.File
	share  share
	most   int64
	size   int64
	spares *spares // that the file goes to; nil: none
	worker string  // whose requests the workers do that read it
	before int64   // bytes that the file had
}

// newUpload begins a file of at most a number of bytes.
func newUpload(dir string, s share, most int64) (*upload, error) {
	f, err := s.file(dir)
	if err != nil {
		return nil, err
	}
	return &upload{File: f, share: s, most: s.atMost(most)}, nil
}

// newInput is newUpload for the target of a job, which workers of a caller read.
func (s *Server) newInput(own share, worker string, most int64) (*upload, error) {
	f, before := s.spares.take(worker)
	if f == nil {
		u, err := newUpload(s.spoolDir(), own, most)
		if err == nil {
			u.spares, u.worker = s.spares, worker
		}
		return u, err
	}
	if err := own.open(); err != nil {
		_ = f.Close()
		return nil, err
	}
	return &upload{File: f, share: own, most: own.atMost(most), spares: s.spares, worker: worker, before: before}, nil
}

// whole returns the file once all of it is written.
func (u *upload) whole() (*os.File, error) {
	if u.before <= u.size {
		return u.File, nil
	}
	return u.File, u.Truncate(u.size)
}

// closeAfter is Close when an answer about the file was given. Once all is done that reads the file, it
// is kept for the next one.
func (u *upload) closeAfter(a *answer) {
	select {
	case <-a.done:
		if u.spares == nil {
			break
		}
		u.share.give(u.size)
		u.share.shut()
		u.spares.keep(u.File, u.worker, u.size)
		u.File, u.size = nil, 0
		return
	default:
	}
	_ = u.Close() // it was only read
}

// tooLargeError is the error of a caller that sent too much.
type tooLargeError struct{ most int64 }

func (e *tooLargeError) Error() string {
	return fmt.Sprintf("more than %d bytes were sent", e.most)
}

// Write implements io.Writer.
func (u *upload) Write(p []byte) (int, error) {
	if u.size+int64(len(p)) > u.most {
		return 0, &tooLargeError{u.most}
	}
	if err := u.share.take(int64(len(p))); err != nil {
		return 0, err
	}
	u.size += int64(len(p))
	return u.File.Write(p)
}

// WriteString implements io.StringWriter: the file's own has no bounds.
func (u *upload) WriteString(text string) (int, error) { return u.Write([]byte(text)) }

// ReadFrom implements io.ReaderFrom: likewise.
func (u *upload) ReadFrom(r io.Reader) (int64, error) {
	b := copyBuffers.Get().(*[copyBuffer]byte)
	defer copyBuffers.Put(b)
	return io.CopyBuffer(struct{ io.Writer }{u}, r, b[:])
}

// copyBuffer is the size of the buffers in which bytes go from a caller into a file, and from a report to
// a caller.
const copyBuffer = 64 << 10

var copyBuffers = sync.Pool{New: func() any { return new([copyBuffer]byte) }}

// Close closes the file, and returns its bytes to the budget.
func (u *upload) Close() error {
	if u.File == nil { // closeAfter has kept it
		return nil
	}
	u.share.give(u.size)
	u.size = 0
	return u.share.closed(u.File)
}

// spool buffers a report between a worker and a reader, which may be slower. It is in
// memory, and beyond inMemory in a file.
type spool struct {
	dir   string
	share share

	mu     sync.Mutex
	more   *sync.Cond
	memory []byte   // the beginning
	file   *os.File // the rest; nil: there is none
	size   int64
	read   int64
	ended  bool
	err    error // why no more comes; io.EOF: it is whole
}

// inMemory is the number of bytes of a report in memory, and before a reader gets the
// first: until then, a request whose worker is killed is done anew.
const inMemory = 256 << 10

func newSpool(dir string, own share) *spool {
	s := &spool{dir: dir, share: own}
	s.more = sync.NewCond(&s.mu)
	return s
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.more.Broadcast()
	if s.ended {
		return 0, os.ErrClosed
	}
	n := min(len(p), inMemory-len(s.memory))
	s.memory = append(s.memory, p[:n]...)
	s.size += int64(n)
	if n == len(p) {
		return n, nil
	}
	if err := s.share.take(int64(len(p) - n)); err != nil {
		return n, err
	}
	if s.file == nil {
		var err error
		if s.file, err = s.share.file(s.dir); err != nil {
			s.share.give(int64(len(p) - n))
			return n, err
		}
	}
	m, err := s.file.WriteAt(p[n:], s.size-int64(len(s.memory)))
	s.share.give(int64(len(p) - n - m))
	s.size += int64(m)
	return n + m, err
}

// length returns the number of bytes that were written.
func (s *spool) length() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// Restart implements worker.Output.
func (s *spool) Restart() (ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read > 0 || s.size > int64(len(s.memory)) {
		return false
	}
	s.memory, s.size = s.memory[:0], 0
	return true
}

// finish ends the report, which is whole if err is nil.
func (s *spool) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		err = io.EOF
	case errors.Is(err, io.EOF):
		err = errors.New(err.Error()) // it is not whole
	}
	s.err = err
	s.more.Broadcast()
}

// begun waits for the first inMemory bytes, or the end. The error is the reason why there
// will be no report.
func (s *spool) begun() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.err == nil && s.size < inMemory {
		s.more.Wait()
	}
	if s.err != nil && !errors.Is(s.err, io.EOF) && s.size < inMemory {
		return s.err
	}
	return nil
}

// Read implements io.Reader, for one reader. It waits for bytes that are still to come.
func (s *spool) Read(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.read == s.size {
		if s.err != nil {
			return 0, s.err
		}
		s.more.Wait()
	}
	if s.read < int64(len(s.memory)) {
		n = copy(p, s.memory[s.read:])
	} else {
		offset, most := s.read-int64(len(s.memory)), s.size-s.read
		n, err = s.file.ReadAt(p[:min(int64(len(p)), most)], offset)
		if n > 0 {
			err = nil
		}
	}
	s.read += int64(n)
	return n, err
}

// Close frees the resources of the report. Later writes fail.
func (s *spool) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.file == nil {
		return nil
	}
	s.share.give(s.size - int64(len(s.memory)))
	err := s.share.closed(s.file)
	s.file = nil
	return err
}
