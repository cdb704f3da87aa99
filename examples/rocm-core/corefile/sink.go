// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"bufio"
	"encoding/binary"
	"io"
	"os"
)

// sparseFrom is the number of zeros in a row from which a file gets a hole.
const sparseFrom = 64 << 10

// sink writes the bytes of a file in their order. It keeps the first error.
type sink struct {
	w    *bufio.Writer
	file *os.File // nil: holes are written as zeros
	n    int64
	err  error
	word [4096]byte
}

func newSink(w io.Writer, file *os.File) *sink {
	return &sink{w: bufio.NewWriterSize(w, 256<<10), file: file}
}

func (s *sink) bytes(b []byte) {
	if s.err != nil {
		return
	}
	n, err := s.w.Write(b)
	s.n += int64(n)
	s.err = err
}

var zeroPage [4096]byte

func (s *sink) zeros(n uint64) {
	if s.file != nil && n >= sparseFrom && s.err == nil {
		if s.err = s.w.Flush(); s.err == nil {
			_, s.err = s.file.Seek(int64(n), io.SeekCurrent)
			s.n += int64(n)
		}
		return
	}
	for n > 0 && s.err == nil {
		k := min(n, uint64(len(zeroPage)))
		s.bytes(zeroPage[:k])
		n -= k
	}
}

func (s *sink) words(list []uint32) {
	for len(list) > 0 {
		k := min(len(list), len(s.word)/4)
		for i, v := range list[:k] {
			binary.LittleEndian.PutUint32(s.word[4*i:], v)
		}
		s.bytes(s.word[:4*k])
		list = list[k:]
	}
}

// padded writes the words and zeros up to n words.
func (s *sink) padded(list []uint32, n int) {
	s.words(list)
	s.zeros(4 * uint64(n-len(list)))
}

func (s *sink) close() error {
	if s.err == nil {
		s.err = s.w.Flush()
	}
	return s.err
}

// content is the bytes of a segment, generated when they are written.
type content interface {
	size() uint64
	emit(s *sink)
}

// data is content in memory, followed by zeros.
type data struct {
	bytes []byte
	n     uint64
}

func whole(b []byte) data { return data{b, uint64(len(b))} }

func (d data) size() uint64 { return d.n }

func (d data) emit(s *sink) {
	s.bytes(d.bytes)
	s.zeros(d.n - uint64(len(d.bytes)))
}

// pieces are runs of bytes in zeros, sorted by offset.
type pieces struct {
	n    uint64
	list []piece
}

type piece struct {
	offset uint64
	bytes  []byte
}

func (p *pieces) size() uint64 { return p.n }

func (p *pieces) emit(s *sink) {
	at := uint64(0)
	for _, x := range p.list {
		s.zeros(x.offset - at)
		s.bytes(x.bytes)
		at = x.offset + uint64(len(x.bytes))
	}
	s.zeros(p.n - at)
}
