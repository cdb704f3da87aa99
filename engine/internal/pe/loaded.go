// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"encoding/binary"
	"fmt"
)

// maxHeaderBytes bounds the headers of an image.
const maxHeaderBytes = 64 << 10

// FromMemory returns the bytes of a file that has what memory has of a loaded image: its sections lie in it
// at their RVA. read returns the n bytes at an RVA, or as many of them as there are, which need not stay.
// Sections that memory lacks are empty, and the symbol table, which is not loaded, is left out. The
// error is ErrNotPE where no image is there.
func FromMemory(read func(rva, n uint32) []byte, maxSize uint32) ([]byte, error) {
	data := append([]byte(nil), read(0, maxHeaderBytes)...)
	h, err := readHeader(data)
	if err != nil {
		return nil, err
	}
	data = data[:min(len(data), int(max(h.sizeOfHeaders, uint32(h.sectionTable+h.sectionCount*sectionSize))))]
	if len(data) < h.sectionTable+h.sectionCount*sectionSize {
		return nil, fmt.Errorf("section table at offset %#x: %d sections, and memory ends at offset %#x", h.sectionTable, h.sectionCount, len(data))
	}
	clear(data[u32(data, offsetOfPE)+4+8:][:8]) // the symbol table: offset and count
	left := uint64(min(h.sizeOfImage, maxSize)) // sections do not overlap
	for i := range h.sectionCount {
		at := h.sectionTable + i*sectionSize
		rva, size := u32(data, at+12), u32(data, at+8)
		if size == 0 {
			size = u32(data, at+16)
		}
		if uint64(rva)+uint64(size) > uint64(min(h.sizeOfImage, maxSize)) || uint64(size) > left {
			return nil, fmt.Errorf("section %d has %#x bytes at RVA %#x, the image %#x, of which %#x may be read, each once", i, size, rva, h.sizeOfImage, maxSize)
		}
		left -= uint64(size)
		have := read(rva, size)
		if len(have) > int(size) {
			have = have[:size]
		}
		if end := int(rva) + len(have); len(have) > 0 && end > len(data) {
			data = append(data, make([]byte, end-len(data))...)
		}
		if int(rva) < h.sectionTable+h.sectionCount*sectionSize {
			have = nil // it would lie over the headers
		}
		if len(have) > 0 {
			copy(data[rva:], have)
		}
		binary.LittleEndian.PutUint32(data[at+16:], uint32(len(have)))
		binary.LittleEndian.PutUint32(data[at+20:], rva)
	}
	return data, nil
}
