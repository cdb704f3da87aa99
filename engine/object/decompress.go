package object

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// The values of ch_type.
const (
	compressZLIB = 1
	compressZSTD = 2
)

// decompress unpacks the contents of a section with SHF_COMPRESSED, which
// begin with an Elf32_Chdr or Elf64_Chdr.
func (s *Section) decompress(b []byte) ([]byte, error) {
	h := &s.object.header
	headerSize := 12
	if h.wide {
		headerSize = 24
	}
	if len(b) < headerSize {
		return nil, fmt.Errorf("offset %#x: compression header cut: %d bytes, expected %d", s.Offset, len(b), headerSize)
	}
	f := fields{b[:headerSize], h.order, h.wide}
	kind, size := f.u32(0), f.word(4, 8)
	switch kind {
	case compressZLIB:
		return s.unpack(b[headerSize:], size, newZLIB)
	case compressZSTD:
		return s.unpack(b[headerSize:], size, newZSTD)
	}
	return nil, fmt.Errorf("offset %#x: compression type %d, expected 1 (zlib) or 2 (zstd)", s.Offset, kind)
}

// decompressGNU unpacks a .zdebug_ section: "ZLIB", the size in 8 bytes (big
// endian in every file), and a zlib stream.
func (s *Section) decompressGNU(b []byte) ([]byte, error) {
	const headerSize = 12
	if len(b) < headerSize || string(b[:4]) != "ZLIB" {
		return nil, fmt.Errorf("offset %#x: expected \"ZLIB\" and a size", s.Offset)
	}
	return s.unpack(b[headerSize:], binary.BigEndian.Uint64(b[4:]), newZLIB)
}

// An unpacker makes a reader of the unpacked form of r. It runs on the
// goroutine that reads, so that Guard covers it.
type unpacker func(r io.Reader, size uint64) (io.ReadCloser, error)

func newZLIB(r io.Reader, _ uint64) (io.ReadCloser, error) { return zlib.NewReader(r) }

func newZSTD(r io.Reader, size uint64) (io.ReadCloser, error) {
	// A window larger than the contents is never needed, but writers that do
	// not know the size take what their level says; 8 MiB is what RFC 8878,
	// 3.1.1.1.2 asks every reader to accept.
	window := max(size, 8<<20)
	d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecoderMaxMemory(window))
	if err != nil {
		return nil, err
	}
	return d.IOReadCloser(), nil
}

// unpack makes exactly size bytes of packed.
func (s *Section) unpack(packed []byte, size uint64, open unpacker) ([]byte, error) {
	err := s.object.grow(size)
	var b []byte
	if err == nil {
		b, err = unpack(bytes.NewReader(packed), size, open)
	}
	if err != nil {
		return nil, fmt.Errorf("offset %#x: %w", s.Offset, err)
	}
	return b, nil
}

// unpack makes exactly size bytes of what r has. The caller has bounded size.
// Of a zlib stream no byte behind its end is read.
func unpack(packed *bytes.Reader, size uint64, open unpacker) ([]byte, error) {
	// The claimed size is taken at once where the packed bytes make it
	// plausible, else as far as they turn out to go.
	out := make([]byte, 0, min(size, 64<<10+16*uint64(packed.Len())))
	r, err := open(packed, size)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	defer r.Close()
	for uint64(len(out)) < size {
		if len(out) == cap(out) {
			grown := make([]byte, len(out), min(2*uint64(cap(out)), size))
			copy(grown, out)
			out = grown
		}
		n, err := r.Read(out[len(out):cap(out)])
		out = out[:len(out)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("decompressing: %w", err)
		}
	}
	if uint64(len(out)) < size {
		return nil, fmt.Errorf("decompressed to %d bytes, expected %d", len(out), size)
	}
	// The checksum is looked at when the end of the stream is read.
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n != 0:
		return nil, fmt.Errorf("decompressed to more than the %d bytes that were expected", size)
	case err != io.EOF:
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	return out, nil
}
