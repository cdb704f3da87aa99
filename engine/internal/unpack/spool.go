// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"

	"github.com/unwindd/unwindd/internal/host"
)

// blockSize is the size of the blocks of zeros that become holes: the size of pages, and of
// the blocks of most file systems.
const blockSize = 4096

var zeros [blockSize]byte

// spool writes the bytes of a target that is unpacked.
type spool struct {
	sink   Sink
	size   int64 // with holes
	stored int64 // without

	maxSize     int64
	maxStored   int64
	limit       string // explains maxStored where the disk bounds it; else ""
	isRequested bool   // the user set the bound
}

// errTooLarge is the error of a target that unpacks to more than is allowed.
var errTooLarge = errors.New("it unpacks to more than is allowed (--max-unpacked)")

func newSpool(o Options) (*spool, error) {
	s := &spool{maxSize: DefaultMaxBytes, isRequested: o.MaxBytes > 0 && o.Create == nil}
	if o.MaxBytes > 0 {
		s.maxSize = int64(min(o.MaxBytes, 1<<62)) //nolint:gosec // bounded
	}
	s.maxStored = s.maxSize
	var err error
	if s.sink, err = Create(o); err != nil {
		return nil, err
	}
	if free, where := s.sink.Free(); where != "" && !s.isRequested {
		s.bound(where, free)
	}
	return s, nil
}

// bound limits the bytes written to half of the free bytes of a place.
func (s *spool) bound(where string, free int64) {
	if free/2 < s.maxStored {
		s.maxStored, s.limit = free/2, fmt.Sprintf("half of the %d that are free %s", free, where)
	}
}

// finish ends the writing, and returns the file for reading.
func (s *spool) finish() (*os.File, error) { return s.sink.Finish(s.size) }

// naming is locked while a temporary file has a name.
var naming sync.Mutex

// Abandon waits until no temporary file has a name, and blocks the making of more: for a
// process that is about to end by a signal.
func Abandon() { naming.Lock() }

// Nameless makes a file without a name, which is gone once no process has it open or
// mapped, however this one ends.
func Nameless(dir string) (*os.File, error) {
	if f, err := host.Nameless(dir, filepath.Join(dir, "(unpacked)"), 0o600); err == nil {
		return f, nil
	}
	return unlinked(dir)
}

// unlinked is Nameless for file systems that do not have O_TMPFILE.
func unlinked(dir string) (*os.File, error) {
	naming.Lock()
	defer naming.Unlock()
	for {
		name := filepath.Join(dir, fmt.Sprintf(".unwindd-%d", rand.Uint32()))
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL|host.RemovedAtEnd, 0o600)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err := host.RemoveName(f); err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	}
}

// fill copies r into the file. After an error, the size counts the bytes before it.
func (s *spool) fill(r io.Reader, packed *counter) error {
	buf := make([]byte, 64*blockSize)
	for {
		n, readErr := io.ReadFull(r, buf)
		isOver := int64(n) > s.maxSize-s.size
		if err := s.add(buf[:min(int64(n), s.maxSize-s.size)], packed.n); err != nil {
			return err
		}
		switch {
		case isOver:
			return s.tooLarge(fmt.Sprintf("%d bytes", s.maxSize))
		case errors.Is(readErr, io.EOF), isShort(readErr):
			return nil
		case readErr != nil:
			return readErr
		}
	}
}

// isShort reports whether ReadFull met the end of the stream. A cut stream is a layerError,
// which is not short.
func isShort(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, new(*layerError))
}

// add appends bytes. Blocks of zeros become holes.
func (s *spool) add(b []byte, packed int64) error {
	for len(b) > 0 {
		zero := run(b, true)
		b, s.size = b[zero:], s.size+int64(zero)
		n := run(b, false)
		if n == 0 {
			continue
		}
		if err := s.check(s.stored+int64(n), packed); err != nil {
			return err
		}
		if _, err := s.sink.WriteAt(b[:n], s.size); err != nil {
			return fmt.Errorf("writing to the temporary file: %w", err)
		}
		b, s.size, s.stored = b[n:], s.size+int64(n), s.stored+int64(n)
	}
	return nil
}

// check refuses more bytes than allowed: stored ones that are not zero, from a number of
// packed ones.
func (s *spool) check(stored, packed int64) error {
	allowed, limit := s.maxStored, s.limit
	if plausible := spare + ratio*packed; !s.isRequested && plausible < allowed {
		allowed, limit = plausible, ""
	}
	if stored <= allowed {
		return nil
	}
	amount := fmt.Sprintf("%d bytes that are not zero, of %d packed bytes", allowed, packed)
	if limit != "" {
		amount += ", are " + limit
	}
	return s.tooLarge(amount)
}

func (s *spool) tooLarge(amount string) error { return fmt.Errorf("%w: %s", errTooLarge, amount) }

// run counts the bytes at the start of b that are whole blocks of zeros, or whole blocks of
// other bytes. The last block may be short.
func run(b []byte, isZero bool) (n int) {
	for n < len(b) {
		size := min(blockSize, len(b)-n)
		if bytes.Equal(b[n:n+size], zeros[:size]) != isZero {
			break
		}
		n += size
	}
	return n
}
