// SPDX-License-Identifier: Apache-2.0

// Package msf reads the containers of PDB files (multi-stream format): a file of pages, and
// streams whose pages lie anywhere in it. It is described in LLVM's "The MSF File Format" and in
// Microsoft's sources of its PDB library.
package msf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrNotMSF is the error for bytes that do not begin as a container of the format 7.00.
var ErrNotMSF = errors.New("not a PDB file")

const (
	magic    = "Microsoft C/C++ MSF 7.00\r\n\x1aDS\x00\x00\x00"
	oldMagic = "Microsoft C/C++ program database 2.00\r\n\x1aJG\x00\x00"
	portable = "BSJB"

	superBlockSize = len(magic) + 6*4
	minPage        = 512
	maxPage        = 1 << 16
	noStream       = 0xffffffff // the size of a stream that was deleted
)

// File is a container. It does not change, and its bytes are read where they are.
type File struct {
	name     string
	data     []byte
	pageSize uint32
	pages    uint32 // in the file, as it says; the last one may be cut
	streams  []stream
	table    []byte // the directory: page numbers of all streams, 4 bytes each
}

// stream is a stream's place in the directory.
type stream struct {
	size  uint32
	first uint32 // offset of its first page number in table
}

// Is reports whether the bytes begin as a container, or as one of Visual C++ 6 or of a portable
// PDB, for which New has an error that names what it is.
func Is(data []byte) bool {
	return bytes.HasPrefix(data, []byte(magic)) || bytes.HasPrefix(data, []byte(oldMagic)) || bytes.HasPrefix(data, []byte(portable))
}

// New reads the directory of a container, whose bytes must stay as they are. Errors begin with
// the name.
func New(name string, data []byte) (*File, error) {
	switch {
	case bytes.HasPrefix(data, []byte(portable)):
		return nil, fmt.Errorf("%s: a portable PDB: metadata of .NET, which has no native code; expected a PDB of native code, which begins with \"Microsoft C/C++ MSF 7.00\"", name)
	case bytes.HasPrefix(data, []byte(oldMagic)):
		return nil, fmt.Errorf("%s: a PDB of the format 2.00, which Visual C++ 6 and older wrote: expected the format 7.00", name)
	case !bytes.HasPrefix(data, []byte(magic)):
		return nil, fmt.Errorf("%s: %w: it begins with %.16q, expected \"Microsoft C/C++ MSF 7.00\"", name, ErrNotMSF, data[:min(len(data), 16)])
	case len(data) < superBlockSize:
		return nil, fmt.Errorf("%s: the superblock ends after %d bytes, expected %d", name, len(data), superBlockSize)
	}
	head := data[len(magic):]
	f := &File{name: name, data: data, pageSize: u32(head, 0), pages: u32(head, 8)}
	if f.pageSize < minPage || f.pageSize > maxPage || f.pageSize&(f.pageSize-1) != 0 {
		return nil, fmt.Errorf("%s: superblock, offset %#x: pages of %d bytes, expected a power of two from %d to %d", name, len(magic), f.pageSize, minPage, maxPage)
	}
	if have := (uint64(len(data)) + uint64(f.pageSize) - 1) / uint64(f.pageSize); uint64(f.pages) > have {
		// The file was cut. What lies in the pages that are there can be read.
		f.pages = uint32(have) //nolint:gosec // less than pages
	}
	if err := f.readDirectory(u32(head, 12), u32(head, 20)); err != nil {
		return nil, err
	}
	return f, nil
}

// readDirectory reads the directory, whose own page numbers begin in a page of their own.
func (f *File) readDirectory(size, place uint32) error {
	count := f.pagesOf(size)
	list, err := f.bytesAt(place, 4*uint64(count))
	if err != nil {
		return fmt.Errorf("%s: superblock, offset %#x: the map of the directory of %d bytes: %w", f.name, len(magic)+20, size, err)
	}
	directory := &Stream{file: f, number: -1, size: size, pages: list}
	if f.table, err = directory.Bytes(0, size); err != nil {
		return err
	}
	if size < 4 {
		return fmt.Errorf("%s: a directory of %d bytes, expected at least 4", f.name, size)
	}
	n := u32(f.table, 0)
	if uint64(n)*4+4 > uint64(size) {
		return fmt.Errorf("%s: directory, offset 0: %d streams, expected at most %d", f.name, n, (size-4)/4)
	}
	f.streams = make([]stream, n)
	next := uint64(4) + 4*uint64(n)
	for i := range f.streams {
		s := u32(f.table, 4+4*i)
		if s == noStream {
			s = 0
		}
		f.streams[i] = stream{size: s, first: uint32(next)} //nolint:gosec // checked below
		next += 4 * uint64(f.pagesOf(s))
		if next > uint64(size) {
			return fmt.Errorf("%s: directory, offset %#x: stream %d of %d bytes has more pages than the directory of %d bytes has", f.name, 4+4*i, i, s, size)
		}
	}
	return nil
}

// bytesAt returns bytes that begin at a page and go on in the pages behind it.
func (f *File) bytesAt(page uint32, n uint64) ([]byte, error) {
	start := uint64(page) * uint64(f.pageSize)
	if page >= f.pages || start+n > uint64(len(f.data)) {
		return nil, fmt.Errorf("page %d with %d bytes, expected them among %d pages and %d bytes of the file", page, n, f.pages, len(f.data))
	}
	return f.data[start : start+n], nil
}

func (f *File) pagesOf(size uint32) uint32 {
	return uint32((uint64(size) + uint64(f.pageSize) - 1) / uint64(f.pageSize)) //nolint:gosec // less than size
}

// Name returns the file's name, with which errors begin.
func (f *File) Name() string { return f.name }

// Size returns the number of bytes of the file.
func (f *File) Size() int64 { return int64(len(f.data)) }

// Streams returns the number of streams.
func (f *File) Streams() int { return len(f.streams) }

// Stream returns a stream by its number; nil where there is none.
func (f *File) Stream(number int) *Stream {
	if number < 0 || number >= len(f.streams) {
		return nil
	}
	s := f.streams[number]
	return &Stream{file: f, number: number, size: s.size, pages: f.table[s.first:][:4*uint64(f.pagesOf(s.size))]}
}

// Stream is a stream of a container.
type Stream struct {
	file   *File
	number int    // -1: the directory
	size   uint32 // in bytes
	pages  []byte // their numbers, 4 bytes each
}

// Size returns the number of bytes.
func (s *Stream) Size() uint32 { return s.size }

// Number returns the number of the stream.
func (s *Stream) Number() int { return s.number }

// page returns the number of a page of the stream.
func (s *Stream) page(i uint32) uint32 { return u32(s.pages, int(4*i)) }

// Bytes returns n bytes from an offset. Where their pages follow one another in the file they are
// the file's own; else they are copied.
func (s *Stream) Bytes(offset, n uint32) ([]byte, error) {
	if uint64(offset)+uint64(n) > uint64(s.size) {
		return nil, s.errorf(offset, "%d bytes, expected at most %d", n, s.size-min(offset, s.size))
	}
	if n == 0 {
		return nil, nil
	}
	if uint64(n) > uint64(len(s.file.data)) { // pages that are there twice
		return nil, s.errorf(offset, "%d bytes, expected at most the %d of the file", n, len(s.file.data))
	}
	b, err := s.run(offset, n)
	if err != nil || uint32(len(b)) == n { //nolint:gosec // at most n
		return b, err
	}
	all := make([]byte, 0, n)
	for {
		all = append(all, b...)
		done := uint32(len(all)) //nolint:gosec // at most n
		if done == n {
			return all, nil
		}
		if b, err = s.run(offset+done, n-done); err != nil {
			return nil, err
		}
	}
}

// run returns at most n bytes from an offset: as many as follow one another in the file.
func (s *Stream) run(offset, n uint32) ([]byte, error) {
	size := s.file.pageSize
	first, last := offset/size, (offset+n-1)/size
	page := s.page(first)
	count := uint32(0) // pages behind the first one
	for first+count < last && s.page(first+count+1) == page+count+1 {
		count++
	}
	inside := offset % size
	have := uint64(count+1)*uint64(size) - uint64(inside)
	have = min(have, uint64(n))
	start := uint64(page)*uint64(size) + uint64(inside)
	if page >= s.file.pages || start+have > uint64(len(s.file.data)) {
		return nil, s.errorf(offset, "page %d with %d bytes, expected them among %d pages and %d bytes of the file", page, have, s.file.pages, len(s.file.data))
	}
	return s.file.data[start : start+have], nil
}

func (s *Stream) errorf(offset uint32, format string, args ...any) error {
	name := fmt.Sprintf("stream %d", s.number)
	if s.number < 0 {
		name = "directory"
	}
	return fmt.Errorf("%s: %s, offset %#x: %w", s.file.name, name, offset, fmt.Errorf(format, args...))
}

// Errorf makes an error that names the file, the stream and the offset.
func (s *Stream) Errorf(offset uint32, format string, args ...any) error {
	return s.errorf(offset, format, args...)
}

func u32(b []byte, offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
