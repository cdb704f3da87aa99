// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"errors"
	"io"
)

// chunkBytes is the number of bytes of a stream that are read at once.
const chunkBytes = 128 << 10

// stream is the source of the text that is not in memory yet.
type stream struct {
	source io.Reader
	most   int   // bound of the bytes of the text in memory
	pinned int   // offset in Data of the first byte to keep, if isPinned
	err    error // the error that ended the stream

	isPinned bool
}

// NewStream makes a Reader of a text that is read as it is needed. Only single strings, numbers
// and results of Raw are in memory as a whole; more than most bytes of one are an error. The
// bytes that the Reader returned are never overwritten.
func NewStream(source io.Reader, most int) *Reader {
	return &Reader{stream: &stream{source: source, most: most}}
}

// more reads on, and reports whether it read anything. It drops the bytes before At, or before
// the pinned byte if that is less, so that At changes.
func (r *Reader) more() bool {
	s := r.stream
	if s == nil || s.err != nil {
		return false
	}
	first := r.At
	if s.isPinned {
		first = min(first, s.pinned)
	}
	kept := r.Data[first:]
	if len(kept) > s.most {
		s.err = r.Fail(r.start+first, "a value has more than %d bytes", s.most)
		return false
	}
	if free := cap(kept) - len(kept); free == 0 || first > 0 && free < chunkBytes/16 {
		// Callers may still have the bytes in the old buffer.
		kept = append(make([]byte, 0, max(chunkBytes, 2*len(kept))), kept...)
	}
	for range maxEmptyReads {
		n, err := s.source.Read(kept[len(kept):cap(kept)])
		s.err = err
		if n > 0 || err != nil {
			r.Data, r.At, r.start, s.pinned = kept[:len(kept)+n], r.At-first, r.start+first, s.pinned-first
			return n > 0
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// maxEmptyReads bounds how often in a row a stream may return no bytes.
const maxEmptyReads = 100

// Err returns the error of reading the stream, if any.
func (r *Reader) Err() error {
	if r.stream == nil || errors.Is(r.stream.err, io.EOF) {
		return nil
	}
	return r.stream.err
}

// Raw is the text of a value.
type Raw struct {
	Data   []byte
	Offset int // in the text
}

// Raw reads a value of any kind, and returns its bytes.
func (r *Reader) Raw() (Raw, error) {
	r.Next()
	start := r.Offset()
	if s := r.stream; s != nil {
		s.pinned, s.isPinned = r.At, true
		defer func() { s.isPinned = false }()
	}
	if err := r.Skip(); err != nil {
		return Raw{}, err
	}
	return Raw{r.Data[start-r.start : r.At : r.At], start}, nil
}

// Reader reads the value again.
func (v Raw) Reader() *Reader { return &Reader{Data: v.Data, start: v.Offset} }
