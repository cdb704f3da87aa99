// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
)

var (
	// ErrNotPE is the error of bytes that do not begin as a PE file.
	ErrNotPE = errors.New("not a PE file")
	// ErrNoBytes is the error of an address without bytes: it is in no section, or in the
	// part of a section that is in memory only.
	ErrNoBytes = errors.New("no bytes at the address")
)

// A fileSource has the bytes of a file by their RVA: sections lie elsewhere in it than in
// memory.
type fileSource struct {
	data   []byte
	head   []byte     // bytes at the start of the image that are in no section
	mapped []*Section // sorted by RVA
}

// upTo returns at most n bytes at an RVA: fewer where the section or the headers end earlier, none
// where the RVA is in neither.
func (s *fileSource) upTo(rva uint32, n uint64) []byte {
	i := sort.Search(len(s.mapped), func(i int) bool { return s.mapped[i].RVA > rva }) - 1
	if i >= 0 {
		if section := s.mapped[i]; rva-section.RVA < section.span() {
			return prefix(section.inFile(s.data), uint64(rva-section.RVA), n)
		}
	}
	return prefix(s.head, uint64(rva), n)
}

// prefix returns at most n bytes of b at an offset.
func prefix(b []byte, offset, n uint64) []byte {
	if offset >= uint64(len(b)) {
		return nil
	}
	b = b[offset:]
	return b[:min(uint64(len(b)), n)]
}

// at returns the n bytes at an RVA. The error has a name for them.
func (f *File) at(rva uint32, n uint64, what string) ([]byte, error) {
	b := f.source.upTo(rva, n)
	if uint64(len(b)) < n {
		return nil, f.errorf(rva, "%s of %d bytes, expected no more than %d: %w", what, n, len(b), ErrNoBytes)
	}
	return b, nil
}

// text returns the string at an RVA, which ends with a zero.
func (f *File) text(rva uint32, what string) (string, error) {
	b := f.source.upTo(rva, maxText+1)
	if end := bytes.IndexByte(b, 0); end >= 0 {
		return string(b[:end]), nil
	}
	return "", f.errorf(rva, "%s: no end within %d bytes", what, len(b))
}

// maxText is the length of the longest string that is read; names of C++ functions
// are cut by their compilers at 4096.
const maxText = 1 << 14

// errorf makes an error that names the file, the section and the RVA.
func (f *File) errorf(rva uint32, format string, args ...any) error {
	where := "headers"
	if s := f.sectionAt(rva); s != nil {
		where = fmt.Sprintf("section %s, offset %#x", s.Name, rva-s.RVA)
	}
	return fmt.Errorf("%s: %s (RVA %#x): %w", f.name, where, rva, fmt.Errorf(format, args...))
}

func u16(b []byte, offset int) uint16 { return binary.LittleEndian.Uint16(b[offset:]) }
func u32(b []byte, offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
func u64(b []byte, offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
