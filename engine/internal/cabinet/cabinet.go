// SPDX-License-Identifier: Apache-2.0

// Package cabinet unpacks cabinet files (.cab), in which stores of symbols keep files, as
// Microsoft describes them in "Microsoft Cabinet Format", "Microsoft MSZIP Compression Format"
// and "Microsoft LZX Data Compression Format".
package cabinet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Magic is the beginning of a cabinet.
const Magic = "MSCF"

// Is reports whether bytes begin as a cabinet.
func Is(data []byte) bool { return bytes.HasPrefix(data, []byte(Magic)) }

// ErrTooLarge is the error of a file that would unpack to more bytes than the caller allows.
var ErrTooLarge = errors.New("it unpacks to more than is allowed")

const (
	headerSize = 36
	folderSize = 8
	fileSize   = 16
	dataSize   = 8

	hasPrevious = 1 // flags of the header
	hasNext     = 2
	hasReserve  = 4

	// blockSize is the number of bytes that a block unpacks to, at most.
	blockSize = 1 << 15
	maxText   = 256
)

// Unpack writes the file of a name, in whatever case of its letters, to w: the only file of a
// cabinet has any name. most bounds its size in bytes. The bytes of the cabinet do not change.
func Unpack(w io.Writer, data []byte, name string, most int64) error {
	c := &reader{data: data}
	f, err := c.find(name)
	if err != nil {
		return fmt.Errorf("the cabinet cannot be read: %w", err)
	}
	if int64(f.size) > most {
		return fmt.Errorf("the cabinet has a file of %d bytes, expected at most %d: %w", f.size, most, ErrTooLarge)
	}
	if err := c.unpack(w, f); err != nil {
		return fmt.Errorf("the cabinet cannot be unpacked: %w", err)
	}
	return nil
}

// reader reads a cabinet.
type reader struct {
	data      []byte
	folders   []folder
	dataExtra int // reserved bytes in each block's header
}

// folder is a run of blocks that are compressed together.
type folder struct {
	offset      uint32
	blocks      uint16
	compression uint16
}

// file is a file of the cabinet.
type file struct {
	size, offset uint32 // of its bytes in the folder
	folder       uint16
}

// at returns n bytes at an offset.
func (c *reader) at(offset, n int, what string) ([]byte, error) {
	if offset < 0 || n < 0 || offset > len(c.data) || n > len(c.data)-offset {
		return nil, fmt.Errorf("offset %#x: %s of %d bytes, expected it in the %d bytes of the cabinet", offset, what, n, len(c.data))
	}
	return c.data[offset : offset+n], nil
}

// find reads the headers, and returns the file of a name.
func (c *reader) find(name string) (found file, err error) {
	h, err := c.at(0, headerSize, "header")
	if err != nil {
		return found, err
	}
	if !Is(h) {
		return found, fmt.Errorf("offset 0: %.4q, expected %q", h, Magic)
	}
	le := binary.LittleEndian
	flags := le.Uint16(h[30:])
	if flags&(hasPrevious|hasNext) != 0 {
		return found, errors.New("it is one of several that belong together, expected a whole one")
	}
	next, folderExtra := headerSize, 0
	if flags&hasReserve != 0 {
		b, err := c.at(next, 4, "sizes of reserved parts")
		if err != nil {
			return found, err
		}
		next += 4 + int(le.Uint16(b))
		folderExtra, c.dataExtra = int(b[2]), int(b[3])
	}
	for range le.Uint16(h[26:]) {
		b, err := c.at(next, folderSize+folderExtra, "folder")
		if err != nil {
			return found, err
		}
		c.folders = append(c.folders, folder{le.Uint32(b), le.Uint16(b[4:]), le.Uint16(b[6:])})
		next += len(b)
	}
	return c.findFile(int(le.Uint32(h[16:])), int(le.Uint16(h[28:])), name)
}

// findFile returns the file of a name among those whose records begin at an offset.
func (c *reader) findFile(next, count int, name string) (found file, err error) {
	var names []string
	for range count {
		b, err := c.at(next, fileSize, "file")
		if err != nil {
			return found, err
		}
		le := binary.LittleEndian
		f := file{le.Uint32(b), le.Uint32(b[4:]), le.Uint16(b[8:])}
		next += fileSize
		rest := c.data[next:]
		end := bytes.IndexByte(rest[:min(len(rest), maxText)], 0)
		if end < 0 {
			return found, fmt.Errorf("offset %#x: a name that does not end within %d bytes", next, maxText)
		}
		text := string(rest[:end])
		next += end + 1
		if strings.EqualFold(text, name) || count == 1 {
			return f, nil
		}
		names = append(names, text)
	}
	return found, fmt.Errorf("it has %d files, expected one, or one that is called %.80q: %.200q", len(names), name, names)
}

// The kinds of compression.
const (
	stored = iota
	msZIP
	quantum
	lzx
)

// decoder unpacks the blocks of a folder, one after the other.
type decoder interface {
	// block unpacks a block to n bytes, which are valid until the next call.
	block(packed []byte, n int) ([]byte, error)
}

// newDecoder returns the decoder of a folder.
func (f *folder) newDecoder() (decoder, error) {
	switch kind := f.compression & 15; kind {
	case stored:
		return storedDecoder{}, nil
	case msZIP:
		return &zipDecoder{}, nil
	case lzx:
		return newLZX(int(f.compression >> 8 & 31))
	case quantum:
		return nil, errors.New("it is compressed by Quantum, expected MSZIP or LZX: expand it with cabextract")
	default:
		return nil, fmt.Errorf("it is compressed in the way %d, expected 0, 1 or 3", kind)
	}
}

// unpack writes a file.
func (c *reader) unpack(w io.Writer, f file) error {
	if int(f.folder) >= len(c.folders) {
		return fmt.Errorf("a file in folder %d, expected one of %d", f.folder, len(c.folders))
	}
	folder := &c.folders[f.folder]
	d, err := folder.newDecoder()
	if err != nil {
		return err
	}
	next, done := int(folder.offset), uint64(0) // done: bytes of the folder
	start, end := uint64(f.offset), uint64(f.offset)+uint64(f.size)
	for i := 0; done < end; i++ {
		if i == int(folder.blocks) {
			return fmt.Errorf("the blocks end after %d bytes, expected %d", done, end)
		}
		b, size, err := c.block(d, next)
		if err != nil {
			return fmt.Errorf("block %d of %d: %w", i, folder.blocks, err)
		}
		next += size
		from, to := min(max(start, done)-done, uint64(len(b))), min(end-done, uint64(len(b)))
		done += uint64(len(b))
		if from < to {
			if _, err := w.Write(b[from:to]); err != nil {
				return err
			}
		}
	}
	return nil
}

// block unpacks the block at an offset, and returns how many bytes it has in the cabinet.
func (c *reader) block(d decoder, offset int) (b []byte, size int, err error) {
	h, err := c.at(offset, dataSize+c.dataExtra, "header of a block")
	if err != nil {
		return nil, 0, err
	}
	le := binary.LittleEndian
	n, unpacked := int(le.Uint16(h[4:])), int(le.Uint16(h[6:]))
	if unpacked > blockSize || unpacked == 0 {
		return nil, 0, fmt.Errorf("offset %#x: it unpacks to %d bytes, expected 1 to %d", offset, unpacked, blockSize)
	}
	packed, err := c.at(offset+len(h), n, "block")
	if err != nil {
		return nil, 0, err
	}
	if sum := le.Uint32(h); sum != 0 {
		if got := checksum(h[4:], checksum(packed, 0)); got != sum {
			return nil, 0, fmt.Errorf("offset %#x: its checksum is %08x, expected %08x", offset, got, sum)
		}
	}
	b, err = d.block(packed, unpacked)
	return b, len(h) + n, err
}

// checksum adds bytes to a sum.
func checksum(b []byte, sum uint32) uint32 {
	for ; len(b) >= 4; b = b[4:] {
		sum ^= binary.LittleEndian.Uint32(b)
	}
	rest := uint32(0)
	for _, v := range b {
		rest = rest<<8 | uint32(v)
	}
	return sum ^ rest
}

// storedDecoder is of blocks that are not compressed.
type storedDecoder struct{}

func (storedDecoder) block(packed []byte, n int) ([]byte, error) {
	if len(packed) != n {
		return nil, fmt.Errorf("%d bytes, expected %d", len(packed), n)
	}
	return packed, nil
}
