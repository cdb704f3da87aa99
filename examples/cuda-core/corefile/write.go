// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"bufio"
	"bytes"
	"io"
)

const (
	headerSize = 64 // of the file and of a section
	reserved   = 0xff00
	extended   = 0xffff
)

// WriteTo writes the file.
func (im *Image) WriteTo(w io.Writer) (int64, error) {
	out := bufio.NewWriterSize(w, 1<<20)
	_, _ = out.Write(im.fileHeader())
	at := uint64(headerSize)
	pad := func(offset uint64) {
		for ; at < offset; at++ {
			_ = out.WriteByte(0)
		}
	}
	for _, s := range im.Sections[1:] {
		pad(s.Offset)
		_, _ = out.Write(s.content)
		at += s.Size
	}
	pad(im.Sections[0].HeaderAt)
	for _, s := range im.Sections {
		_, _ = out.Write(im.sectionHeader(s))
	}
	return int64(im.size), out.Flush() //nolint:gosec // the size of a file; Flush returns the first error
}

// Size is the size of the file in bytes.
func (im *Image) Size() uint64 { return im.size }

// Bytes returns the file.
func (im *Image) Bytes() []byte {
	var b bytes.Buffer
	b.Grow(int(im.size))  //nolint:gosec // the size of memory
	_, _ = im.WriteTo(&b) // a Buffer takes everything
	return b.Bytes()
}

// fileHeader returns the header of the file. Counts that do not fit are in the first
// section's header.
func (im *Image) fileHeader() []byte {
	r := row{0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 0, 0, 0, 0, 0, 0, 0, 0}
	const core, cuda = 4, 190
	r.words(core|cuda<<16, 1).quads(0, 0, im.Sections[0].HeaderAt).words(0)
	count, names := uint32(len(im.Sections)), uint32(im.names.Index) //nolint:gosec // fewer
	if count >= reserved {
		count = 0
	}
	if names >= reserved {
		names = extended
	}
	return *r.words(headerSize, headerSize<<16, count|names<<16)
}

func (im *Image) sectionHeader(s *Section) []byte {
	link, size := uint32(0), s.Size
	if s.parent != nil {
		link = uint32(s.parent.Index) //nolint:gosec // small
	}
	if s.Index == 0 && len(im.Sections) >= reserved {
		size, link = uint64(len(im.Sections)), uint32(im.names.Index) //nolint:gosec // small
	}
	r := new(row).words(uint32(s.nameOffset), s.Type).quads(0, s.Address, s.Offset, size).words(link, s.row) //nolint:gosec // small
	return *r.quads(1, s.EntrySize)
}
