// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// headBytes is what is read of a large sample: the fields that say when it was
	// taken and of which event stand before them.
	headBytes = 64
	// largeSample is from what size on a sample's head is read, and its pages are not
	// touched: to map them and to give them back costs more than a system call.
	largeSample = 4096
)

// A scanner goes over the records of an area. Of a large sample it reads the head.
type scanner struct {
	area    *area
	held    pages
	file    *os.File // the area's; nil: samples are mapped like other records
	fd      int
	isLarge bool // the last sample was large
	head    [headBytes]byte
}

func newScanner(a *area) *scanner {
	s := &scanner{area: a, held: pages{mapping: a.mapping}}
	if a.mapping == nil {
		return s
	}
	if file, err := a.mapping.Reopen(); err == nil { // else it does without
		s.file, s.fd = file, int(file.Fd())
	}
	return s
}

func (s *scanner) close() {
	if s.file != nil {
		s.file.Close() // which was only read
	}
}

// next is area.next, but that of a large sample the record has the first bytes.
func (s *scanner) next(at uint64, r *record) (next uint64, done bool, err error) {
	if s.isLarge && s.file != nil {
		if next, ok := s.sample(at, r); ok {
			s.held.pass(next - at)
			return next, false, nil
		}
	}
	if next, done, err = s.area.next(at, r); done {
		return next, done, err
	}
	s.held.pass(next - at)
	if r.kind == recordSample {
		s.isLarge = len(r.data) >= largeSample
	}
	return next, false, err
}

// sample reads the head of a large sample; ok is false where anything else is there.
func (s *scanner) sample(at uint64, r *record) (next uint64, ok bool) {
	if n, err := unix.Pread(s.fd, s.head[:], int64(at)); err != nil || n < headBytes {
		return 0, false
	}
	order := s.area.order
	size := uint64(order.u16(s.head[6:]))
	if RecordType(order.u32(s.head[:])) != recordSample || size < largeSample || size > uint64(len(s.area.data))-at {
		return 0, false
	}
	*r = record{kind: recordSample, misc: order.u16(s.head[4:]), at: at, data: s.head[:]}
	return at + size, true
}
