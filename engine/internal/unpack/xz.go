// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// This file reads the container of "The .xz File Format" 1.2.0. The library has a reader of
// its own, which allocates whatever dictionary each block asks for, up to 4 GiB; here that
// is bounded, and the library reads LZMA2 data alone.

const (
	xzMagic       = "\xfd7zXZ\x00"
	xzFooterMagic = "YZ"
	xzLZMA2       = 0x21 // 5.3.1
)

// Dictionaries are cleared for each block. A dictionary much larger than its unpacked block
// is plausible only a few times: the sum of their sizes is bounded.
const (
	spareDictionaries = 4 << 30
	dictionaryRatio   = 64
)

// xzChecks has the size of a check for each of its types (2.1.1.2), and the function that
// computes it.
var xzChecks = [16]struct {
	size int
	hash func() hash.Hash // nil: it is not checked
}{
	{0, nil},
	{4, func() hash.Hash { return crc32.NewIEEE() }},
	{4, nil},
	{4, nil},
	{8, func() hash.Hash { return crc64.New(crc64.MakeTable(crc64.ECMA)) }},
	{8, nil},
	{8, nil},
	{16, nil},
	{16, nil},
	{16, nil},
	{32, sha256.New},
	{32, nil},
	{32, nil},
	{64, nil},
	{64, nil},
	{64, nil},
}

// xzReader unpacks streams that follow one another.
type xzReader struct {
	input        *byteCounter
	isBegun      bool // a stream has begun
	check        int  // the type of the stream's checks
	sum          hash.Hash
	block        io.Reader // nil: between blocks
	blockStart   int64
	blocks       uint64 // of the stream
	unpacked     uint64
	dictionaries uint64
	hadStream    bool
}

// byteCounter counts the bytes that are read.
type byteCounter struct {
	r *bufio.Reader
	n int64
}

func (c *byteCounter) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// ReadByte implements io.ByteReader, so that the library reads no byte too many.
func (c *byteCounter) ReadByte() (byte, error) {
	b, err := c.r.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

func newXZ(r *bufio.Reader) *xzReader { return &xzReader{input: &byteCounter{r: r}} }

// Read implements io.Reader.
func (x *xzReader) Read(b []byte) (int, error) {
	for {
		if x.block == nil {
			if err := x.next(); err != nil {
				return 0, err
			}
			continue
		}
		n, err := x.block.Read(b)
		x.unpacked += uint64(n) //nolint:gosec // not negative
		if x.sum != nil {
			x.sum.Write(b[:n])
		}
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			err = x.endBlock()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// next goes on to the next block; io.EOF: there is none.
func (x *xzReader) next() error {
	if !x.isBegun {
		return x.beginStream()
	}
	size, err := x.input.ReadByte()
	switch {
	case err != nil:
		return cut(err)
	case size == 0:
		return x.endStream()
	}
	return x.beginBlock(size)
}

// full reads all of b. An end is an error even before the first byte.
func (x *xzReader) full(b []byte) error {
	_, err := io.ReadFull(x.input, b)
	return cut(err)
}

// cut turns the end of a stream into an unexpected end.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// beginStream reads a Stream Header (2.1.1), and the Stream Padding (2.2) before it.
func (x *xzReader) beginStream() error {
	b := make([]byte, 12)
	for {
		n, err := io.ReadFull(x.input, b[:4])
		if n == 0 && errors.Is(err, io.EOF) && x.hadStream {
			return io.EOF
		}
		if err != nil {
			return cut(err)
		}
		if !x.hadStream || binary.LittleEndian.Uint32(b) != 0 {
			break
		}

	}
	if err := x.full(b[4:]); err != nil {
		return err
	}
	offset := x.input.n - int64(len(b))
	switch {
	case string(b[:6]) != xzMagic:
		return fmt.Errorf("offset %#x: expected another stream, or the end of the file", offset)
	case b[6] != 0 || b[7] > 15 || crc32.ChecksumIEEE(b[6:8]) != binary.LittleEndian.Uint32(b[8:]):
		return fmt.Errorf("offset %#x: the stream's header is damaged", offset)
	}
	x.isBegun, x.hadStream, x.blocks, x.check = true, true, 0, int(b[7])
	return nil
}

// beginBlock reads a Block Header (3.1), whose first byte was read.
func (x *xzReader) beginBlock(size byte) error {
	offset := x.input.n - 1
	b := make([]byte, 4*(int(size)+1))
	b[0] = size
	if err := x.full(b[1:]); err != nil {
		return err
	}
	end := len(b) - 4
	if crc32.ChecksumIEEE(b[:end]) != binary.LittleEndian.Uint32(b[end:]) {
		return fmt.Errorf("offset %#x: the block's header is damaged", offset)
	}
	dictionary, err := xzDictionary(b[1:end])
	if err != nil {
		return fmt.Errorf("offset %#x: %w", offset, err)
	}
	if dictionary > maxWindow {
		return fmt.Errorf("offset %#x: a dictionary of %d bytes, expected at most %d", offset, dictionary, maxWindow)
	}
	if x.dictionaries += dictionary; x.dictionaries > spareDictionaries+dictionaryRatio*x.unpacked {
		return fmt.Errorf("offset %#x: dictionaries of %d bytes in %d blocks, which unpack to %d bytes so far", offset, x.dictionaries, x.blocks+1, x.unpacked)
	}
	x.blocks++
	x.blockStart, x.sum = x.input.n, nil
	if h := xzChecks[x.check].hash; h != nil {
		x.sum = h()
	}
	x.block, err = lzma.Reader2Config{DictCap: int(max(dictionary, lzma.MinDictCap))}.NewReader2(x.input) //nolint:gosec // bounded
	return err
}

// xzDictionary returns the size of the dictionary that a block header asks for. Its filter
// has to be LZMA2 alone (5.3.1).
func xzDictionary(b []byte) (uint64, error) {
	flags := b[0]
	if flags&0x03 != 0 {
		return 0, fmt.Errorf("the block has %d filters, expected LZMA2 alone", flags&3+1)
	}
	rest := b[1:]
	for _, isPresent := range []bool{flags&0x40 != 0, flags&0x80 != 0} { // the sizes of the block
		if !isPresent {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return 0, errors.New("the block's header has a size that is no number")
		}
		rest = rest[n:]
	}
	if len(rest) < 3 || rest[0] != xzLZMA2 || rest[1] != 1 || rest[2] > 40 {
		return 0, errors.New("expected the filter LZMA2")
	}
	if rest[2] == 40 {
		return 1<<32 - 1, nil
	}
	return uint64(2|rest[2]&1) << (rest[2]/2 + 11), nil
}

// endBlock reads the Block Padding (3.3) and the Check (3.4).
func (x *xzReader) endBlock() error {
	offset := x.input.n
	padding := int(-(offset - x.blockStart) & 3)
	b := make([]byte, padding+xzChecks[x.check].size)
	if err := x.full(b); err != nil {
		return err
	}
	x.block = nil
	if x.sum == nil {
		return nil
	}
	want := x.sum.Sum(nil)
	if x.check != 10 { // 3.4: CRCs are little-endian; Go's sums are big-endian
		for i, j := 0, len(want)-1; i < j; i, j = i+1, j-1 {
			want[i], want[j] = want[j], want[i]
		}
	}
	if !bytes.Equal(b[padding:], want) {
		return fmt.Errorf("offset %#x: the block that ends here is damaged: its check is wrong", offset)
	}
	return nil
}

// endStream reads the Index (4) and the Stream Footer (2.1.2).
func (x *xzReader) endStream() error {
	start := x.input.n - 1
	count, err := binary.ReadUvarint(x.input)
	if err != nil {
		return cut(err)
	}
	if count != x.blocks {
		return fmt.Errorf("offset %#x: the index is of %d blocks, expected %d", start, count, x.blocks)
	}
	for range 2 * count {
		if _, err := binary.ReadUvarint(x.input); err != nil {
			return cut(err)
		}
	}
	b := make([]byte, (-(x.input.n-start)&3)+4+12) // padding, the index's CRC, the footer
	if err := x.full(b); err != nil {
		return err
	}
	if string(b[len(b)-2:]) != xzFooterMagic {
		return fmt.Errorf("offset %#x: expected the end of a stream", x.input.n-2)
	}
	x.isBegun = false
	return nil
}
