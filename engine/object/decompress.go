// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/unwindd/unwindd/internal/inflate"
)

// The values of ch_type.
const (
	compressZLIB = 1
	compressZSTD = 2
)

// packing returns how to open the packed contents of a section by its bytes, and the size of the
// unpacked ones; open is nil where they are not packed.
func (s *Section) packing(b []byte) (packed []byte, size uint64, open openPacked, err error) {
	switch {
	case s.Flags&elf.SHF_COMPRESSED != 0:
		return s.compressed(b)
	case strings.HasPrefix(s.Name, ".zdebug_"):
		return s.compressedGNU(b)
	}
	return nil, 0, nil, nil
}

// compressed reads the Elf32_Chdr or Elf64_Chdr that the bytes of a section with
// SHF_COMPRESSED begin with.
func (s *Section) compressed(b []byte) (packed []byte, size uint64, open openPacked, err error) {
	h := &s.object.header
	headerSize := 12
	if h.wide {
		headerSize = 24
	}
	if len(b) < headerSize {
		return nil, 0, nil, fmt.Errorf("offset %#x: compression header cut: %d bytes, expected %d", s.Offset, len(b), headerSize)
	}
	f := fields{b[:headerSize], h.order, h.wide}
	kind, size := f.u32(0), f.word(4, 8)
	switch kind {
	case compressZLIB:
		return b[headerSize:], size, openZLIB, nil
	case compressZSTD:
		return b[headerSize:], size, openZSTD, nil
	}
	return nil, 0, nil, fmt.Errorf("offset %#x: compression type %d, expected 1 (zlib) or 2 (zstd)", s.Offset, kind)
}

// compressedGNU reads the header of a .zdebug_ section: "ZLIB", and the size in 8
// bytes (big endian in every file). A zlib stream follows.
func (s *Section) compressedGNU(b []byte) (packed []byte, size uint64, open openPacked, err error) {
	const headerSize = 12
	if len(b) < headerSize || string(b[:4]) != "ZLIB" {
		return nil, 0, nil, fmt.Errorf("offset %#x: expected \"ZLIB\" and a size", s.Offset)
	}
	return b[headerSize:], binary.BigEndian.Uint64(b[4:]), openZLIB, nil
}

// A stream unpacks bytes, as far as they are needed.
type stream interface {
	// Extend makes at least want bytes of out, of which it has made n before, and
	// returns how many there are: fewer where the stream has ended. want is at most
	// the length of out.
	Extend(out []byte, n, want int) (int, error)
	// Finish checks that the stream ends with out, and its checksum.
	Finish(out []byte) error
}

// An openPacked opens a stream of size bytes. It runs on the goroutine that reads, so
// that Guard covers it.
type openPacked func(packed []byte, size uint64) (stream, error)

func openZLIB(packed []byte, _ uint64) (stream, error) { return inflate.New(packed) }

func openZSTD(packed []byte, size uint64) (stream, error) {
	r, err := newZSTD(bytes.NewReader(packed), size)
	if err != nil {
		return nil, err
	}
	return &readStream{r}, nil
}

// A readStream is a stream of a reader's bytes.
type readStream struct{ io.ReadCloser }

func (r *readStream) Extend(out []byte, n, want int) (int, error) {
	for n < want {
		more, err := r.Read(out[n:])
		n += more
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

func (r *readStream) Finish([]byte) error {
	defer r.Close()
	// The checksum is checked when the end of the stream is read.
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n != 0:
		return inflate.ErrMore
	case err != io.EOF:
		return err
	}
	return nil
}

// An unpacker makes a reader of the size unpacked bytes of r. It runs on the
// goroutine that reads, so that Guard covers it.
type unpacker func(r io.Reader, size uint64) (io.ReadCloser, error)

func newZLIB(r io.Reader, _ uint64) (io.ReadCloser, error) { return zlib.NewReader(r) }

func newZSTD(r io.Reader, size uint64) (io.ReadCloser, error) {
	// A window larger than the contents is never needed, but writers that do
	// not know the size take their level's window; RFC 8878, 3.1.1.1.2 asks every
	// reader to accept 8 MiB.
	window := max(size, 8<<20)
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(window))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// unpack makes exactly size bytes of r. The caller has bounded size. No byte behind the end of a
// zlib stream is read.
func unpack(packed *bytes.Reader, size uint64, open unpacker) ([]byte, error) {
	plausible := plausibleSize(packed.Len())
	r, err := open(packed, size)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	defer r.Close()
	return unpackStream(&readStream{r}, size, plausible)
}

// unpackStream makes exactly size bytes of a stream. At first it takes memory for the plausible
// ones, and more as far as the stream turns out to go.
func unpackStream(s stream, size, plausible uint64) ([]byte, error) {
	out := make([]byte, min(size, plausible))
	for n := 0; ; {
		var err error
		n, err = s.Extend(out, n, len(out))
		switch {
		case err != nil:
			return nil, unpackError(err, size)
		case n < len(out):
			return nil, fmt.Errorf("decompressed to %d bytes, expected %d", n, size)
		case uint64(n) == size:
			if err := s.Finish(out); err != nil {
				return nil, unpackError(err, size)
			}
			return out, nil
		}
		grown := make([]byte, min(2*uint64(len(out)), size))
		copy(grown, out)
		out = grown
	}
}
