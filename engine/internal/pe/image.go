// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"encoding/binary"
	"fmt"
	"sort"
)

// A Piece is a part of an image in memory: a number of bytes from an RVA on, which are at an offset of
// the bytes that have it.
type Piece struct {
	RVA          uint32
	Size, Offset uint64
}

// NewImage reads the headers of an image in memory, where a loader has laid it out, of which data has
// pieces, sorted and apart. Of each section as much is there as one piece has from its start on. The
// loader writes into headers where it has put the image: ImageBase may be that. Symbols are in files
// only, and so are sections' names of more than 8 bytes. ErrNotPE where no piece begins as an image.
func NewImage(name string, data []byte, pieces []Piece) (*File, error) {
	f := newFile(name)
	f.isImage = true
	head, at := pieceAt(data, pieces, 0)
	header, err := readHeader(head)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	f.header, f.base, f.headersAt = header, header.imageBase, at
	f.readSections(head, data)
	for _, s := range f.sections {
		b, offset := pieceAt(data, pieces, s.RVA)
		s.Offset, s.RawSize = offset, uint32(min(uint64(len(b)), uint64(s.span())))
	}
	end := max(uint64(header.sizeOfHeaders), uint64(header.sectionTable+sectionSize*header.sectionCount)) // in hostile ones headers do not have them
	f.source = fileSource{data: data, head: prefix(head, 0, end), mapped: f.mapped}
	return f, nil
}

// pieceAt returns the bytes from an RVA on, to the end of the piece that has it, and their offset; none
// where no piece does.
func pieceAt(data []byte, pieces []Piece, rva uint32) (b []byte, offset uint64) {
	i := sort.Search(len(pieces), func(i int) bool { return pieces[i].RVA > rva }) - 1
	if i < 0 || uint64(rva-pieces[i].RVA) >= pieces[i].Size {
		return nil, 0
	}
	skip := uint64(rva - pieces[i].RVA)
	offset = pieces[i].Offset + skip
	return prefix(data, offset, pieces[i].Size-skip), offset
}

// AsFile returns an image as a file, with the bytes that are there: New reads of it what NewImage reads
// of the image.
func (f *File) AsFile() []byte {
	le := binary.LittleEndian
	b := append([]byte(nil), f.source.head...)
	if symbols := prefix(b, uint64(u32(b, offsetOfPE))+4+8, 8); len(symbols) == 8 {
		clear(symbols)
	}
	for i, s := range f.sections {
		entry := f.header.sectionTable + i*sectionSize
		if entry+sectionSize > len(f.source.head) {
			break
		}
		var data []byte
		if s.IsMapped() && uint64(len(b))+uint64(s.FileSize()) < 1<<32 {
			data = s.inFile(s.raw)
		}
		le.PutUint32(b[entry+8:], s.span())
		le.PutUint32(b[entry+16:], uint32(len(data)))
		le.PutUint32(b[entry+20:], uint32(len(b)))
		b = append(b, data...)
	}
	return b
}
