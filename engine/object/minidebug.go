// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/ulikunitz/xz"
)

// MiniDebug returns the object in .gnu_debugdata, which has the function symbols that .dynsym
// lacks (MiniDebugInfo). It is made once and lives as
// long as the memory does. An object that has none gives ErrNoSection.
func (o *Object) MiniDebug() (*Object, error) { return o.mini() }

const miniDebugSection = ".gnu_debugdata"

func (o *Object) openMiniDebug() (mini *Object, err error) {
	s := o.Section(miniDebugSection)
	if s == nil {
		return nil, fmt.Errorf("%s: %s: %w", o.name, miniDebugSection, ErrNoSection)
	}
	var b []byte
	err = Guard(func() error {
		packed, err := s.raw()
		if err != nil {
			return err
		}
		if len(packed) > maxPackedMiniDebug {
			return fmt.Errorf("offset %#x: %w: %d bytes, expected at most %d", s.Offset, ErrTooLarge, len(packed), maxPackedMiniDebug)
		}
		// The sizes are read before the library does, so they must not change.
		packed = bytes.Clone(packed)
		size, err := xzSize(packed)
		if err != nil {
			return fmt.Errorf("offset %#x: %w", s.Offset, err)
		}
		if err = o.grow(size); err == nil {
			b, err = unpack(bytes.NewReader(packed), size, newXZ)
		}
		if err != nil {
			return fmt.Errorf("offset %#x: %w", s.Offset, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: section %s (%d): %w", o.name, s.Name, s.Index, err)
	}
	if mini, err = New(o.name+"("+miniDebugSection+")", b); err == nil {
		o.keptBytes.Add(int64(len(b)) + int64(mini.MemorySize()))
	}
	return mini, err
}

func newXZ(r io.Reader, _ uint64) (io.ReadCloser, error) {
	x, err := xz.ReaderConfig{SingleStream: true}.NewReader(r)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(x), nil
}

// xzSize walks the first stream of an .xz file without unpacking it, and
// returns the unpacked size. A dictionary larger than maxDictionary is an error (the library
// would allocate as much as the stream asks for, up to 4 GiB). The formats are "The .xz File
// Format" 1.1.0 and LZMA2's chunks.
func xzSize(b []byte) (size uint64, err error) {
	const streamHeader = 12
	if len(b) < streamHeader || string(b[:6]) != "\xfd7zXZ\x00" {
		return 0, errors.New("expected an xz stream")
	}
	// 2.1.1.2: the check's size is by its type.
	check := [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}[b[7]&0xf]
	offset := streamHeader
	for {
		if offset >= len(b) {
			return 0, errors.New("xz stream cut before its index")
		}
		if b[offset] == 0 { // 4.1: the index indicator
			return size, nil
		}
		headerSize := 4 * (int(b[offset]) + 1) // 3.1.1
		if headerSize > len(b)-offset {
			return 0, errors.New("xz block header cut")
		}
		if err := xzBlockHeader(b[offset : offset+headerSize]); err != nil {
			return 0, err
		}
		offset += headerSize
		start := offset
		n, end, err := lzma2Size(b, offset)
		if err != nil {
			return 0, err
		}
		size += n
		offset = start + (end-start+3)&^3 + check // 3.3: block padding
	}
}

// xzBlockHeader checks that a block has the LZMA2 filter alone, with a
// dictionary within bounds (3.1, 5.3.1).
func xzBlockHeader(b []byte) error {
	flags := b[1]
	if flags&0x03 != 0 {
		return fmt.Errorf("xz block has %d filters, expected 1", flags&3+1)
	}
	rest := b[2:]
	for _, present := range []bool{flags&0x40 != 0, flags&0x80 != 0} {
		if !present {
			continue
		}
		_, n := binary.Uvarint(rest)
		if n <= 0 {
			return errors.New("xz block header: bad size")
		}
		rest = rest[n:]
	}
	if len(rest) < 3 || rest[0] != 0x21 || rest[1] != 1 {
		return errors.New("xz block: expected the LZMA2 filter")
	}
	bits := rest[2]
	if bits > 40 {
		return fmt.Errorf("xz block: dictionary size %d, expected at most 40", bits)
	}
	dictionary := uint64(1)<<32 - 1
	if bits < 40 {
		dictionary = (2 | uint64(bits&1)) << (bits/2 + 11)
	}
	if dictionary > maxDictionary {
		return fmt.Errorf("%w: xz dictionary of %d bytes, expected at most %d", ErrTooLarge, dictionary, maxDictionary)
	}
	return nil
}

// lzma2Size adds up the chunks of LZMA2 data at an offset of b, and returns where they end.
func lzma2Size(b []byte, offset int) (size uint64, end int, err error) {
	for {
		if offset >= len(b) {
			return 0, 0, errors.New("LZMA2 data cut")
		}
		control := b[offset]
		var headerSize, packed int
		switch {
		case control == 0:
			return size, offset + 1, nil
		case control <= 2: // stored
			headerSize = 3
		case control < 0x80:
			return 0, 0, fmt.Errorf("LZMA2 control byte %#x", control)
		case control < 0xc0:
			headerSize = 5
		default: // with a properties byte
			headerSize = 6
		}
		if headerSize > len(b)-offset {
			return 0, 0, errors.New("LZMA2 data cut")
		}
		n := int(binary.BigEndian.Uint16(b[offset+1:])) + 1
		if control >= 0x80 {
			n += int(control&0x1f) << 16
			packed = int(binary.BigEndian.Uint16(b[offset+3:])) + 1
		} else {
			packed = n
		}
		size += uint64(n)
		offset += headerSize
		if packed > len(b)-offset {
			return 0, 0, errors.New("LZMA2 data cut")
		}
		offset += packed
	}
}
