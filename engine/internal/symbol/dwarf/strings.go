// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"bytes"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/dw"
)

// maxString bounds one string of a string section.
const maxString = 1 << 20

// stringAt returns the string at an offset of a string section.
func stringAt(section string, data []byte, rest *object.Contents, off uint64) ([]byte, error) {
	if off >= uint64(len(data)) {
		return nil, bad(section, off, "a string is expected, the section has %#x bytes", len(data))
	}
	limit := min(uint64(len(data)), off+maxString)
	for window := uint64(leastString); ; window *= 16 {
		end := limit
		if rest != nil {
			if err := rest.Need(off + window); err != nil {
				return nil, err
			}
			end = min(limit, rest.Ready())
		}
		if n := bytes.IndexByte(data[off:end], 0); n >= 0 {
			return data[off : off+uint64(n)], nil
		}
		if end == limit {
			return nil, bad(section, off, "the string does not end within %#x bytes", limit-off)
		}
	}
}

// leastString is the size of the first read of a string.
const leastString = 256

// text returns a value of class string, which is part of a section.
func (b *body) text(v *value) ([]byte, error) {
	f := b.file
	switch v.form {
	case dw.FormString:
		return v.b, nil
	case dw.FormStrp:
		return stringAt(".debug_str"+f.suffix, f.str, f.rest.str, v.n)
	case dw.FormLineStrp:
		return stringAt(".debug_line_str"+f.suffix, f.lineStr, f.rest.lineStr, v.n)
	case dw.FormStrx, dw.FormStrx1, dw.FormStrx2, dw.FormStrx3, dw.FormStrx4, dw.FormGNUStrIndex:
		return b.strx(v.n)
	case dw.FormStrpSup, dw.FormGNUStrpAlt:
		s, err := f.supplement()
		if err != nil {
			return nil, err
		}
		return stringAt(".debug_str", s.str, s.rest.str, v.n)
	}
	return nil, bad(b.section(), b.offset, "form %#x of a string", uint16(v.form))
}

// strx returns a string by its index (DWARF 5, 7.26).
func (b *body) strx(index uint64) ([]byte, error) {
	f, size := b.file, uint64(b.format.offsetSize)
	if n := uint64(len(f.strOffsets)); index <= n && b.strOffsetsBase <= n {
		if off := b.strOffsetsBase + index*size; off+size <= n {
			if err := f.rest.strOffsets.Need(off + size); err != nil {
				return nil, err
			}
			return stringAt(".debug_str"+f.suffix, f.str, f.rest.str, uintAt(f.strOffsets[off:off+size], f.isBigEndian))
		}
	}
	return nil, bad(".debug_str_offsets"+f.suffix, b.strOffsetsBase, "no string of index %d in a section of %#x bytes", index, len(f.strOffsets))
}
