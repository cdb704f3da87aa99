// SPDX-License-Identifier: Apache-2.0

package macho

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math"
	"sort"
	"sync"
)

// Parts of __TEXT,__unwind_info (mach-o/compact_unwind_encoding.h).
const (
	unwindVersion      = 1
	unwindHeader       = 28
	unwindIndexEntry   = 12
	regularPage        = 2
	regularHeader      = 8
	regularEntry       = 8
	compressedPage     = 3
	compressedHeader   = 12
	compressedEntry    = 4
	compressedAddress  = 0x00ffffff // of a compressed entry: bytes behind the page's first function
	compressedEncoding = 24         // bits before the index of the encoding
	encodingSize       = 4
	maxUnwindPages     = 1 << 20
)

// UnwindInfo is the compact unwind information of a file: an encoding for each range of code. It may be
// used concurrently.
type UnwindInfo struct {
	file     *File
	data     []byte // of the section
	base     uint64 // address that offsets of functions count from: the header's
	common   []byte // encodings that pages share
	index    []byte // of pages
	pages    int
	personal uint32 // how many personalities there are
	section  string // its name

	isObject bool          // it is of an object file, which has only entries
	entries  []UnwindEntry // of an object file, by address
}

// unwindOnce is the unwind information of a file, read once.
type unwindOnce struct {
	once sync.Once
	info *UnwindInfo
	err  error
}

// UnwindEntry is a range of code with one encoding. Linkers join functions whose encodings are equal, so
// that it may have several.
type UnwindEntry struct {
	Start, End uint64
	Encoding   UnwindEncoding
	Offset     uint64 // of the entry in the section
}

// UnwindInfo returns the compact unwind information; nil where the file has none.
func (f *File) UnwindInfo() (*UnwindInfo, error) {
	f.unwind.once.Do(func() { f.unwind.info, f.unwind.err = f.readUnwindInfo() })
	return f.unwind.info, f.unwind.err
}

func (f *File) readUnwindInfo() (*UnwindInfo, error) {
	if f.header.typ == TypeObject {
		return f.readObjectUnwind()
	}
	s, text := f.Section("__TEXT", "__unwind_info"), f.Text()
	if s == nil || text == nil || !s.HasBytes() || s.Size == 0 || !f.hasEncodings() {
		return nil, nil //nolint:nilnil // there is none
	}
	data, err := f.Data(s)
	if err != nil {
		return nil, err
	}
	u := &UnwindInfo{file: f, data: data, base: text.Address, section: "__TEXT,__unwind_info"}
	if err := u.readHeader(); err != nil {
		return nil, err
	}
	return u, nil
}

// hasEncodings reports whether encodings of the file's machine are known.
func (f *File) hasEncodings() bool {
	return f.header.machine == MachineX86_64 || f.header.machine == MachineARM64
}

// errorf returns an error that names the file, the section and an offset in it.
func (u *UnwindInfo) errorf(offset uint64, format string, args ...any) error {
	return fmt.Errorf("%s: section %s, offset %#x: %w", u.file.name, u.section, offset, fmt.Errorf(format, args...))
}

// errUnwindInfo is the error of unwind information that is none.
var errUnwindInfo = errors.New("not unwind information")

func (u *UnwindInfo) readHeader() error {
	if len(u.data) < unwindHeader {
		return u.errorf(0, "%d bytes, expected a header of %d: %w", len(u.data), unwindHeader, errUnwindInfo)
	}
	if version := u.u32(0); version != unwindVersion {
		return u.errorf(0, "version %d, expected %d: %w", version, unwindVersion, errUnwindInfo)
	}
	var err error
	if u.common, err = u.table(4, encodingSize, "the common encodings"); err != nil {
		return err
	}
	u.personal = u.u32(16)
	if u.index, err = u.table(20, unwindIndexEntry, "the index"); err != nil {
		return err
	}
	count := len(u.index) / unwindIndexEntry
	switch {
	case count > maxUnwindPages:
		return u.errorf(24, "%d pages, expected at most %d: %w", count, maxUnwindPages, errUnwindInfo)
	case count > 0: // the last entry is where the others end
		u.pages = count - 1
	}
	for i := range u.pages {
		if u.first(i) > u.first(i+1) {
			offset := uint64(u.u32(20)) + uint64(i+1)*unwindIndexEntry //nolint:gosec // an index
			return u.errorf(offset, "page %d begins at %#x, before the page before it, at %#x: %w", i+1, u.first(i+1), u.first(i), errUnwindInfo)
		}
	}
	return nil
}

// table returns a table whose offset and count are two fields of the header.
func (u *UnwindInfo) table(field, size uint64, part string) ([]byte, error) {
	offset, count := uint64(u.u32(field)), uint64(u.u32(field+4))
	if offset > uint64(len(u.data)) || count > (uint64(len(u.data))-offset)/size {
		return nil, u.errorf(field, "%s: %d entries at offset %#x, the section has %#x bytes: %w", part, count, offset, len(u.data), errUnwindInfo)
	}
	return u.data[offset : offset+count*size], nil
}

// u32 returns a number of the section, which is there.
func (u *UnwindInfo) u32(offset uint64) uint32 { return binary.LittleEndian.Uint32(u.data[offset:]) }

// first returns where the code of a page begins.
func (u *UnwindInfo) first(page int) uint32 {
	return binary.LittleEndian.Uint32(u.index[page*unwindIndexEntry:])
}

// unwindPage is a page of the second level.
type unwindPage struct {
	info       *UnwindInfo
	start, end uint32 // its code
	entries    []byte // of the entries' size
	encodings  []byte // of a compressed page
	offset     uint64 // of the entries in the section
	regular    bool
}

// page returns a page of the second level. One without entries is nowhere.
func (u *UnwindInfo) page(i int) (p unwindPage, err error) {
	p = unwindPage{info: u, start: u.first(i), end: u.first(i + 1)}
	offset := uint64(binary.LittleEndian.Uint32(u.index[i*unwindIndexEntry+4:]))
	if offset == 0 {
		return p, nil
	}
	size := uint64(len(u.data))
	if offset > size || size-offset < regularHeader {
		return p, u.errorf(offset, "page %d is behind the end of the section, which has %#x bytes", i, size)
	}
	entries, count, entry := uint64(u.u16(offset+4)), uint64(u.u16(offset+6)), uint64(regularEntry)
	switch kind := u.u32(offset); kind {
	case regularPage:
		p.regular = true
	case compressedPage:
		if size-offset < compressedHeader {
			return p, u.errorf(offset, "page %d is behind the end of the section, which has %#x bytes", i, size)
		}
		entry = compressedEntry
		own, n := offset+uint64(u.u16(offset+8)), uint64(u.u16(offset+10))
		if own > size || n > (size-own)/encodingSize {
			return p, u.errorf(offset, "page %d: %d encodings at %#x, the section has %#x bytes", i, n, own, size)
		}
		p.encodings = u.data[own : own+n*encodingSize]
	default:
		return p, u.errorf(offset, "page %d is of kind %d, expected %d or %d", i, kind, regularPage, compressedPage)
	}
	p.offset = offset + entries
	if p.offset > size || count > (size-p.offset)/entry {
		return p, u.errorf(offset, "page %d: %d entries at %#x, the section has %#x bytes", i, count, p.offset, size)
	}
	p.entries = u.data[p.offset : p.offset+count*entry]
	return p, nil
}

func (u *UnwindInfo) u16(offset uint64) uint16 { return binary.LittleEndian.Uint16(u.data[offset:]) }

// count returns how many entries the page has.
func (p *unwindPage) count() int { return len(p.entries) / p.entrySize() }

func (p *unwindPage) entrySize() int {
	if p.regular {
		return regularEntry
	}
	return compressedEntry
}

// at returns where the code of an entry begins; behind the last entry: where the page's code ends.
func (p *unwindPage) at(i int) uint64 {
	if i == p.count() {
		return uint64(p.end)
	}
	v := binary.LittleEndian.Uint32(p.entries[i*p.entrySize():])
	if p.regular {
		return uint64(v)
	}
	return uint64(p.start) + uint64(v&compressedAddress)
}

// encoding returns the encoding of an entry.
func (p *unwindPage) encoding(i int) (UnwindEncoding, error) {
	le := binary.LittleEndian
	if p.regular {
		return UnwindEncoding(le.Uint32(p.entries[i*regularEntry+4:])), nil
	}
	number := int(le.Uint32(p.entries[i*compressedEntry:]) >> compressedEncoding)
	shared := len(p.info.common) / encodingSize
	switch own := number - shared; {
	case own < 0:
		return UnwindEncoding(le.Uint32(p.info.common[number*encodingSize:])), nil
	case own < len(p.encodings)/encodingSize:
		return UnwindEncoding(le.Uint32(p.encodings[own*encodingSize:])), nil
	}
	return 0, fmt.Errorf("encoding %d, expected one of %d that pages share and %d of the page", number, shared, len(p.encodings)/encodingSize)
}

// entry returns an entry. Its code lies in the page's, and ends where the next begins.
func (p *unwindPage) entry(i int) (e UnwindEntry, err error) {
	start, end := p.at(i), p.at(i+1)
	e.Offset = p.offset + uint64(i*p.entrySize()) //nolint:gosec // an index
	if start < uint64(p.start) || start > end || end > uint64(p.end) {
		return e, p.info.errorf(e.Offset, "code from %#x to %#x, expected to lie in the page's, from %#x to %#x", start, end, p.start, p.end)
	}
	if e.Encoding, err = p.encoding(i); err != nil {
		return e, p.info.errorf(e.Offset, "%w", err)
	}
	if p.info.base > math.MaxUint64-end {
		return e, p.info.errorf(e.Offset, "code to %#x behind the header at %#x is no range", end, p.info.base)
	}
	e.Start, e.End = p.info.base+start, p.info.base+end
	return e, nil
}

// At returns the entry of an address; false where none has it.
func (u *UnwindInfo) At(address uint64) (e UnwindEntry, ok bool, err error) {
	if u.isObject {
		e, ok = u.objectAt(address)
		return e, ok, nil
	}
	offset := address - u.base
	if address < u.base || offset > math.MaxUint32 || u.pages == 0 || offset < uint64(u.first(0)) || offset >= uint64(u.first(u.pages)) {
		return e, false, nil
	}
	number := sort.Search(u.pages, func(i int) bool { return uint64(u.first(i)) > offset }) - 1
	p, err := u.page(number)
	if err != nil || p.count() == 0 {
		return e, false, err
	}
	i := sort.Search(p.count(), func(i int) bool { return p.at(i) > offset }) - 1
	if i < 0 {
		return e, false, nil
	}
	if e, err = p.entry(i); err != nil || address >= e.End || address < e.Start {
		return UnwindEntry{}, false, err
	}
	return e, true, nil
}

// Entries yields the entries in order of address. An error is about one entry or one page, and those
// behind it follow.
func (u *UnwindInfo) Entries() iter.Seq2[UnwindEntry, error] {
	return func(yield func(UnwindEntry, error) bool) {
		for _, e := range u.entries {
			if !yield(e, nil) {
				return
			}
		}
		left := maxUnwindEntries
		for i := range u.pages {
			p, err := u.page(i)
			if err != nil && !yield(UnwindEntry{}, err) {
				return
			}
			if err != nil {
				continue
			}
			if left -= p.count() + 1; left < 0 {
				yield(UnwindEntry{}, u.errorf(p.offset, "more than %d entries: the others are not read", maxUnwindEntries))
				return
			}
			for k := range p.count() {
				if !yield(p.entry(k)) {
					return
				}
			}
		}
	}
}

// maxUnwindEntries bounds the entries of all pages: pages may lie on each other.
const maxUnwindEntries = 1 << 24

// Section returns the name of the section.
func (u *UnwindInfo) Section() string { return u.section }

// IsObject reports whether the information is of an object file, in which encodings have no places of FDEs.
func (u *UnwindInfo) IsObject() bool { return u.isObject }

// Pages returns how many pages of the second level there are, and the encodings that they share and the personalities.
func (u *UnwindInfo) Pages() (pages, common, personalities int) {
	return u.pages, len(u.common) / encodingSize, int(u.personal)
}
