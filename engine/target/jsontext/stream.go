// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"errors"
	"io"
)

// chunkBytes is how much of a stream is read at once.
const chunkBytes = 128 << 10

// A stream is where the text comes from that is not in memory yet.
type stream struct {
	from io.Reader
	most int   // bytes of the text that are in memory at once
	held int   // offset in Data of what is still needed, where isHeld
	err  error // why nothing comes any more

	isHeld bool
}

// NewStream makes a Reader of a text that is read as it is needed. What is in memory at
// once are the longest strings and numbers, and what Raw returns; that they have more
// than most bytes is an error. What was read stays as it is: the bytes that the Reader
// gave are not written over.
func NewStream(from io.Reader, most int) *Reader {
	return &Reader{stream: &stream{from: from, most: most}}
}

// more reads on, and says whether there was something. What is before At, or before what
// is held, is given up: At changes.
func (r *Reader) more() bool {
	s := r.stream
	if s == nil || s.err != nil {
		return false
	}
	from := r.At
	if s.isHeld {
		from = min(from, s.held)
	}
	kept := r.Data[from:]
	if len(kept) > s.most {
		s.err = r.Fail(r.start+from, "a value has more than %d bytes", s.most)
		return false
	}
	if room := cap(kept) - len(kept); room == 0 || from > 0 && room < chunkBytes/16 {
		// What others have of the bytes before is theirs.
		kept = append(make([]byte, 0, max(chunkBytes, 2*len(kept))), kept...)
	}
	for range maxEmptyReads {
		n, err := s.from.Read(kept[len(kept):cap(kept)])
		s.err = err
		if n > 0 || err != nil {
			r.Data, r.At, r.start, s.held = kept[:len(kept)+n], r.At-from, r.start+from, s.held-from
			return n > 0
		}
	}
	s.err = io.ErrNoProgress
	return false
}

// maxEmptyReads is how often a stream may give nothing.
const maxEmptyReads = 100

// Err is why reading the stream failed; nil: it did not.
func (r *Reader) Err() error {
	if r.stream == nil || errors.Is(r.stream.err, io.EOF) {
		return nil
	}
	return r.stream.err
}

// A Raw is a value as it stands in the text.
type Raw struct {
	Data   []byte
	Offset int // in the text
}

// Raw reads a value of any kind, and returns its bytes.
func (r *Reader) Raw() (Raw, error) {
	r.Next()
	start := r.Offset()
	if s := r.stream; s != nil {
		s.held, s.isHeld = r.At, true
		defer func() { s.isHeld = false }()
	}
	if err := r.Skip(); err != nil {
		return Raw{}, err
	}
	return Raw{r.Data[start-r.start : r.At : r.At], start}, nil
}

// Reader reads the value again.
func (v Raw) Reader() *Reader { return &Reader{Data: v.Data, start: v.Offset} }
