// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Section is a section of a file ("PE Format", Section Table).
type Section struct {
	Index           int
	Name            string // the long one where the file has one
	RVA             uint32
	VirtualSize     uint32 // bytes in memory; some linkers write 0 for the size in the file
	Offset          uint64 // in the file, or of an image in the bytes that have it
	RawSize         uint32 // bytes in the file, rounded up; of an image those that are there
	Characteristics uint32

	file *File
	raw  []byte // the bytes of the file, or those that have the image
}

// Address returns the virtual address of the section.
func (s *Section) Address() uint64 { return s.file.address(s.RVA) }

// IsCode reports whether the section may be executed.
func (s *Section) IsCode() bool { return s.Characteristics&executableCode != 0 }

// IsWritable reports whether the section may be written.
func (s *Section) IsWritable() bool { return s.Characteristics&writable != 0 }

// IsDiscardable reports whether the section may be left out of memory once the image is
// loaded: relocations are, and debug information.
func (s *Section) IsDiscardable() bool { return s.Characteristics&discardable != 0 }

// IsMapped reports whether the image has the section. One that lies in another is in no image.
func (s *Section) IsMapped() bool { return s.span() != 0 && s.file.sectionAt(s.RVA) == s }

// span returns how many bytes of the image the section takes.
func (s *Section) span() uint32 {
	if s.VirtualSize == 0 {
		return s.RawSize
	}
	return s.VirtualSize
}

// MemSize returns how many bytes of the image the section takes.
func (s *Section) MemSize() uint32 { return s.span() }

// FileSize returns how many bytes of it the file has; behind them memory is zero. A section that
// `objcopy --only-keep-debug` writes has a size without an offset.
func (s *Section) FileSize() uint32 {
	if s.Offset == 0 {
		return 0
	}
	return min(s.RawSize, s.span())
}

// inFile returns the bytes of the section that are in the file.
func (s *Section) inFile(data []byte) []byte {
	return prefix(data, s.Offset, uint64(s.FileSize()))
}

// Data returns the section's bytes that the file has, without the zeros that memory has
// behind them. An error where some are missing.
func (s *Section) Data() ([]byte, error) {
	b := s.inFile(s.raw)
	if want := min(s.RawSize, s.span()); uint32(len(b)) < want && s.Offset != 0 {
		return nil, s.file.errorf(s.RVA, "%d bytes at offset %#x, the file has %d: %w", want, s.Offset, len(s.raw), ErrNoBytes)
	}
	return b, nil
}

// checkBounds adds a problem for a section that is not in the file.
func (s *Section) checkBounds() {
	if _, err := s.Data(); err != nil {
		s.file.problem(err)
	}
}

// readSections reads the section table, which is in head; the bytes of sections are in data.
func (f *File) readSections(head, data []byte) {
	f.byName = make(map[string]*Section)
	for i := range f.header.sectionCount {
		offset := f.header.sectionTable + i*sectionSize
		b := prefix(head, uint64(offset), sectionSize)
		if len(b) < sectionSize {
			f.problem(fmt.Errorf("%s: section table: the file ends at offset %#x in section %d of %d", f.name, len(head), i, f.header.sectionCount))
			break
		}
		s := &Section{
			Index: i, Name: string(bytes.TrimRight(b[:8], "\x00")),
			VirtualSize: u32(b, 8), RVA: u32(b, 12), RawSize: u32(b, 16), Offset: uint64(u32(b, 20)), Characteristics: u32(b, 36),
			file: f, raw: data,
		}
		if long, err := f.names.find(s.Name); err != nil {
			f.problem(fmt.Errorf("%s: section %d at offset %#x: name %q: %w", f.name, i, offset, s.Name, err))
		} else if long != "" {
			s.Name = long
		}
		f.sections = append(f.sections, s)
		if f.byName[s.Name] == nil {
			f.byName[s.Name] = s
		}
	}
	f.mapSections()
}

// mapSections finds the places of sections in the image. Of two that overlap the second is left out,
// which no loader would load.
func (f *File) mapSections() {
	var sorted []*Section
	for _, s := range f.sections {
		if s.span() != 0 && uint64(s.RVA)+uint64(s.span()) <= 1<<32 {
			sorted = append(sorted, s)
		} else if s.span() != 0 {
			f.problem(fmt.Errorf("%s: section %s: RVA %#x and size %#x go beyond 4 GiB", f.name, s.Name, s.RVA, s.span()))
		}
	}
	slices.SortStableFunc(sorted, func(a, b *Section) int { return cmp.Compare(a.RVA, b.RVA) })
	end := uint64(0)
	for _, s := range sorted {
		if uint64(s.RVA) < end {
			f.problem(fmt.Errorf("%s: section %s at RVA %#x lies in the one before it, which ends at %#x", f.name, s.Name, s.RVA, end))
			continue
		}
		f.mapped = append(f.mapped, s)
		end = uint64(s.RVA) + uint64(s.span())
	}
}

// A stringTable has the names of sections and symbols that are longer than eight bytes ("PE
// Format", COFF String Table). MinGW's linker writes one for the sections of DWARF.
type stringTable struct{ data []byte }

// newStringTable finds the table, which lies behind the symbols; nil where there is none.
func newStringTable(data []byte, h *header) *stringTable {
	if h.symbolTable == 0 {
		return nil
	}
	b := prefix(data, uint64(h.symbolTable)+symbolSize*uint64(h.symbolCount), 1<<32)
	if len(b) < 4 {
		return nil
	}
	return &stringTable{b[:min(uint64(len(b)), uint64(u32(b, 0)))]}
}

// find returns the long name for a short one: "/" and a decimal number, or "//" and a number in base
// 64, is an offset in the table. It is "" where the name is no such offset.
func (t *stringTable) find(name string) (string, error) {
	digits, isLong := strings.CutPrefix(name, "/")
	if !isLong || t == nil {
		return "", nil
	}
	var offset uint64
	var err error
	if in64, ok := strings.CutPrefix(digits, "/"); ok {
		offset, err = base64Number(in64)
	} else {
		offset, err = strconv.ParseUint(digits, 10, 32)
	}
	if err != nil {
		return "", fmt.Errorf("expected an offset in the string table: %w", err)
	}
	long, ok := t.at(offset)
	if !ok {
		return "", fmt.Errorf("no string at offset %#x of the string table of %#x bytes", offset, len(t.data))
	}
	return long, nil
}

// at returns the string at an offset of the table; false where none is.
func (t *stringTable) at(offset uint64) (string, bool) {
	if t == nil || offset < 4 {
		return "", false
	}
	b := prefix(t.data, offset, maxText)
	end := bytes.IndexByte(b, 0)
	if end < 0 {
		return "", false
	}
	return string(b[:end]), true
}

func (t *stringTable) size() int {
	if t == nil {
		return 0
	}
	return len(t.data)
}

// base64Number reads the digits that GNU and LLVM write where seven decimal ones do not
// suffice: the alphabet of RFC 4648, the highest digit first.
func base64Number(s string) (n uint64, err error) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for _, c := range []byte(s) {
		digit := strings.IndexByte(alphabet, c)
		if digit < 0 {
			return 0, fmt.Errorf("%q is no digit of base 64", c)
		}
		n = n<<6 | uint64(digit)
	}
	return n, nil
}
