// SPDX-License-Identifier: Apache-2.0

package perfdata

import (
	"os"
)

const (
	// prefixBytes is how much of a large sample is read: its time and its event are in
	// these bytes.
	prefixBytes = 64
	// largeSample is the size from which on only a sample's prefix is read, and its pages
	// are not touched: to map and release them costs more than a system call.
	largeSample = 4096
)

// scanner goes over the records of an area. Of a large sample it reads a prefix.
type scanner struct {
	area    *area
	pages   pages
	file    *os.File // the area's; nil: samples are mapped like other records
	fd      int
	isLarge bool // the last sample was large
	prefix  [prefixBytes]byte
}

func newScanner(a *area) *scanner {
	s := &scanner{area: a, pages: pages{mapping: a.mapping}}
	if a.mapping == nil {
		return s
	}
	if file, err := a.mapping.Reopen(); err == nil { // else samples are mapped
		s.file, s.fd = file, int(file.Fd())
	}
	return s
}

func (s *scanner) close() {
	if s.file != nil {
		s.file.Close() // it was only read
	}
}

// next is area.next, except that the record of a large sample has only its first bytes.
func (s *scanner) next(offset uint64, r *record) (next uint64, done bool, err error) {
	if s.isLarge && s.file != nil {
		if next, ok := s.sample(offset, r); ok {
			s.pages.pass(next - offset)
			return next, false, nil
		}
	}
	if next, done, err = s.area.next(offset, r); done {
		return next, done, err
	}
	s.pages.pass(next - offset)
	if r.kind == recordSample {
		s.isLarge = len(r.data) >= largeSample
	}
	return next, false, err
}

// sample reads the prefix of a large sample; ok is false for any other record.
func (s *scanner) sample(offset uint64, r *record) (next uint64, ok bool) {
	if n, err := readAt(s, s.prefix[:], int64(offset)); err != nil || n < prefixBytes {
		return 0, false
	}
	order := s.area.order
	size := uint64(order.u16(s.prefix[6:]))
	if RecordType(order.u32(s.prefix[:])) != recordSample || size < largeSample || size > uint64(len(s.area.data))-offset {
		return 0, false
	}
	*r = record{kind: recordSample, misc: order.u16(s.prefix[4:]), offset: offset, data: s.prefix[:]}
	return offset + size, true
}
