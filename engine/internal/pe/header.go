// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bytes"
	"errors"
	"fmt"
)

// A header has the members that are read of the MS-DOS stub, the COFF file header and the optional
// header ("PE Format", MS-DOS Stub to Optional Header Data Directories).
type header struct {
	machine         uint16
	sectionCount    int
	timeDateStamp   uint32
	symbolTable     uint32 // offset in the file
	symbolCount     uint32
	characteristics uint16

	isPlus        bool
	entry         uint32 // RVA
	imageBase     uint64
	sizeOfImage   uint32
	sizeOfHeaders uint32
	directories   []byte // 8 bytes each: RVA, size
	sectionTable  int    // offset in the file
}

// Offsets and sizes, by the document's tables.
const (
	offsetOfPE      = 0x3c // the offset of the signature
	fileHeaderSize  = 20
	sectionSize     = 40
	magicPE32       = 0x10b
	magicPE32Plus   = 0x20b
	fixedPE32       = 96  // bytes of the optional header before the directories
	fixedPE32Plus   = 112 // likewise
	maxDirectories  = 16
	symbolSize      = 18
	isDLL           = 0x2000
	executableCode  = 0x20000000 // IMAGE_SCN_MEM_EXECUTE
	discardable     = 0x02000000 // IMAGE_SCN_MEM_DISCARDABLE
	writable        = 0x80000000 // IMAGE_SCN_MEM_WRITE
	directoryExport = 0
	directoryExcept = 3
	directoryDebug  = 6
	directoryTLS    = 9
	directoryIAT    = 12
)

var errHeaderEnds = errors.New("the file ends in its headers")

// IsPE reports whether bytes begin as a PE file does: with "MZ", and with "PE\0\0" where
// that leads, if the bytes go that far.
func IsPE(data []byte) bool {
	if len(data) < offsetOfPE+4 || data[0] != 'M' || data[1] != 'Z' {
		return false
	}
	offset := uint64(u32(data, offsetOfPE))
	return offset >= uint64(len(data)) || bytes.HasPrefix([]byte("PE\x00\x00"), prefix(data, offset, 4))
}

func readHeader(data []byte) (h header, err error) {
	if len(data) < offsetOfPE+4 || data[0] != 'M' || data[1] != 'Z' {
		return h, ErrNotPE
	}
	start := uint64(u32(data, offsetOfPE))
	file := prefix(data, start, 4+fileHeaderSize)
	switch {
	case !bytes.HasPrefix(file, []byte("PE\x00\x00")):
		return h, fmt.Errorf("%w: no signature at offset %#x", ErrNotPE, start)
	case len(file) < 4+fileHeaderSize:
		return h, fmt.Errorf("file header at offset %#x: %w", start+4, errHeaderEnds)
	}
	file = file[4:]
	h.machine = u16(file, 0)
	h.sectionCount = int(u16(file, 2))
	h.timeDateStamp = u32(file, 4)
	h.symbolTable, h.symbolCount = u32(file, 8), u32(file, 12)
	h.characteristics = u16(file, 18)
	size := uint64(u16(file, 16))
	offset := start + 4 + fileHeaderSize
	optional := prefix(data, offset, size)
	if err := h.readOptional(optional); err != nil {
		return h, fmt.Errorf("optional header at offset %#x: %w", offset, err)
	}
	h.sectionTable = int(offset + size)
	return h, nil
}

func (h *header) readOptional(b []byte) error {
	if len(b) < 2 {
		return errHeaderEnds
	}
	fixed := fixedPE32
	switch magic := u16(b, 0); magic {
	case magicPE32:
	case magicPE32Plus:
		h.isPlus, fixed = true, fixedPE32Plus
	default:
		return fmt.Errorf("magic number %#x, expected %#x (PE32) or %#x (PE32+)", magic, magicPE32, magicPE32Plus)
	}
	if len(b) < fixed {
		return fmt.Errorf("%d bytes, expected at least %d: %w", len(b), fixed, errHeaderEnds)
	}
	h.entry = u32(b, 16)
	if h.isPlus {
		h.imageBase = u64(b, 24)
	} else {
		h.imageBase = uint64(u32(b, 28))
	}
	h.sizeOfImage, h.sizeOfHeaders = u32(b, 56), u32(b, 60)
	if h.imageBase+uint64(h.sizeOfImage) < h.imageBase {
		return fmt.Errorf("image base %#x and size %#x go beyond the last address", h.imageBase, h.sizeOfImage)
	}
	count := min(u32(b, fixed-4), maxDirectories)
	h.directories = b[fixed:]
	h.directories = h.directories[:min(len(h.directories), 8*int(count))]
	return nil
}

// directory returns an entry of the optional header's data directories; 0, 0 where the file
// has none.
func (h *header) directory(i int) (rva, size uint32) {
	if len(h.directories) < 8*(i+1) {
		return 0, 0
	}
	return u32(h.directories, 8*i), u32(h.directories, 8*i+4)
}
