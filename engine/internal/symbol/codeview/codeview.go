// SPDX-License-Identifier: Apache-2.0

// Package codeview reads the type records of PDB files (the streams TPI and IPI), and names types
// as C++ does. The records are described in LLVM's "CodeView Type Records" and in the header
// cvinfo.h of Microsoft's sources of its PDB library.
package codeview

import (
	"encoding/binary"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// TypeIndex is the number of a type or an identifier; below 0x1000 it is a simple type.
type TypeIndex uint32

// firstIndex is the least index of a record.
const firstIndex = 0x1000

const (
	headerSize = 56
	version70  = 19990903
	version80  = 20040203
)

// Types are the records of TPI or IPI. They may be used concurrently.
type Types struct {
	types  *Types // of which the records of IPI speak; nil: these are TPI's
	stream *msf.Stream

	first, end  TypeIndex // of the records
	start, stop uint32    // their bytes in the stream
	hash        hashPart

	once       sync.Once
	places     []place // of every few records, by index
	fault      error   // why there are none
	placeBytes atomic.Uint64
	recent     [recentChunks]atomic.Pointer[chunk]
	byHash     hashIndex
	nameless   sync.Once
	defined    map[uint64][]TypeIndex // definitions by a hash of their names, where the file has no hashes
}

// hashPart is the part of another stream in which records are found by index and by name.
type hashPart struct {
	stream         *msf.Stream // nil: there is none
	keySize        uint32
	buckets        uint32
	values, places part
}

type part struct{ offset, size uint32 }

// place is where a record lies in the stream.
type place struct {
	index  TypeIndex
	offset uint32
}

// NewTypes reads the header of a stream. types is TPI for the stream IPI, else nil. A stream that
// is nil or empty has no records.
func NewTypes(s *msf.Stream, types *Types) (*Types, error) {
	t := &Types{types: types, stream: s, first: firstIndex, end: firstIndex}
	if s == nil || s.Size() == 0 {
		return t, nil
	}
	h, err := s.Bytes(0, min(s.Size(), headerSize))
	if err != nil {
		return nil, err
	}
	if len(h) < headerSize {
		return nil, s.Errorf(0, "a header of %d bytes, expected %d", len(h), headerSize)
	}
	if v := u32(h); v != version70 && v != version80 {
		return nil, s.Errorf(0, "version %d of type records, expected %d or %d", v, version70, version80)
	}
	t.start, t.first, t.end = u32(h[4:]), TypeIndex(u32(h[8:])), TypeIndex(u32(h[12:]))
	size := u32(h[16:])
	if t.start < headerSize || uint64(t.start)+uint64(size) > uint64(s.Size()) {
		return nil, s.Errorf(4, "%d bytes of records from %#x, expected them in the stream of %d bytes", size, t.start, s.Size())
	}
	t.stop = t.start + size
	if t.first < firstIndex || t.end < t.first || uint64(t.end-t.first)*minRecord > uint64(size) {
		return nil, s.Errorf(8, "records %#x to %#x, expected indexes from %#x on and at least %d bytes for each among %d", t.first, t.end, firstIndex, minRecord, size)
	}
	t.hash = hashPart{
		keySize: u32(h[24:]), buckets: u32(h[28:]),
		values: part{u32(h[32:]), u32(h[36:])}, places: part{u32(h[40:]), u32(h[44:])},
	}
	if number := binary.LittleEndian.Uint16(h[20:]); number != 0xffff {
		t.hash.stream = s.Container().Stream(int(number))
	}
	return t, nil
}

// Bounds returns the least index of a record, and the one behind the last.
func (t *Types) Bounds() (first, end TypeIndex) { return t.first, t.end }

const (
	minRecord = 4 // bytes: its length and its kind
	// chunkBytes is about how many bytes of records are found together, as linkers write it.
	chunkBytes   = 8 << 10
	maxChunk     = chunkBytes + 1<<16 + 2
	recentChunks = 128
)

// chunk is some of the records that follow one another.
type chunk struct {
	first   TypeIndex
	data    []byte
	offsets []uint32 // of the records in data
}

// Record returns a record without its length: its kind, an LF_* constant, and what follows.
func (t *Types) Record(index TypeIndex) (kind uint16, data []byte, err error) {
	if index < t.first || index >= t.end {
		return 0, nil, t.errorf(0, "the record %#x, expected one of %#x to %#x", index, t.first, t.end)
	}
	if t.once.Do(t.findPlaces); t.fault != nil {
		return 0, nil, t.fault
	}
	number := sort.Search(len(t.places), func(i int) bool { return t.places[i].index > index }) - 1
	c, err := t.chunk(number)
	if err != nil {
		return 0, nil, err
	}
	at := uint64(index - c.first)
	if at >= uint64(len(c.offsets)) {
		return 0, nil, t.errorf(t.places[number].offset, "%d records, expected the record %#x among them", len(c.offsets), index)
	}
	record := c.data[c.offsets[at]:]
	size := uint32(binary.LittleEndian.Uint16(record))
	return binary.LittleEndian.Uint16(record[2:]), record[4 : 2+size], nil
}

// errorf makes an error of the stream, which may be missing.
func (t *Types) errorf(offset uint32, format string, args ...any) error {
	if t.stream == nil {
		return errNoStream
	}
	return t.stream.Errorf(offset, format, args...)
}

// chunk reads the records from a place up to the next one.
func (t *Types) chunk(number int) (*chunk, error) {
	slot := &t.recent[number%recentChunks]
	from := t.places[number]
	if c := slot.Load(); c != nil && c.first == from.index {
		return c, nil
	}
	end := t.stop
	if number+1 < len(t.places) {
		end = t.places[number+1].offset
	}
	c := &chunk{first: from.index}
	var err error
	if c.data, err = t.stream.Bytes(from.offset, end-from.offset); err != nil {
		return nil, err
	}
	for at := uint32(0); uint64(at)+minRecord <= uint64(len(c.data)); {
		size := uint32(binary.LittleEndian.Uint16(c.data[at:]))
		if size < 2 || uint64(at)+2+uint64(size) > uint64(len(c.data)) {
			return nil, t.stream.Errorf(from.offset+at, "a record of %d bytes, expected 2 to %d", size, len(c.data)-int(at)-2)
		}
		c.offsets = append(c.offsets, at)
		at += 2 + size
	}
	slot.Store(c)
	return c, nil
}

// findPlaces reads the places of every few records, which linkers write into the hash part; where
// they are missing or make no sense it reads the lengths of all records.
func (t *Types) findPlaces() {
	if t.places = t.hash.readPlaces(t); t.places == nil {
		t.places, t.fault = t.countPlaces()
	}
	t.placeBytes.Store(8 * uint64(len(t.places)))
}

// readPlaces returns nil where the file's own places cannot be used.
func (h *hashPart) readPlaces(t *Types) []place {
	if h.stream == nil || h.places.size%8 != 0 || uint64(h.places.size)/8 > uint64(t.stop-t.start)/minRecord {
		return nil
	}
	data, err := h.stream.Bytes(h.places.offset, h.places.size)
	if err != nil {
		return nil
	}
	list := make([]place, 0, len(data)/8+1)
	last := place{t.first, 0}
	for ; len(data) > 0; data = data[8:] {
		p := place{TypeIndex(u32(data)), u32(data[4:])}
		isNext := p.index > last.index && p.offset > last.offset && p.offset-last.offset <= maxChunk
		if len(list) == 0 {
			isNext = p == last
		}
		if !isNext || p.index >= t.end || p.offset >= t.stop-t.start {
			return nil
		}
		list = append(list, place{p.index, t.start + p.offset})
		last = p
	}
	if len(list) == 0 || t.stop-t.start-last.offset > maxChunk {
		return nil
	}
	return list
}

// countPlaces reads the lengths of all records.
func (t *Types) countPlaces() ([]place, error) {
	var list []place
	index, last := t.first, uint32(0)
	for at := t.start; at < t.stop; {
		window, err := t.stream.Bytes(at, min(t.stop-at, 1<<17))
		if err != nil {
			return nil, err
		}
		begin := at
		for uint64(at-begin)+minRecord <= uint64(len(window)) {
			next := at + 2 + uint32(binary.LittleEndian.Uint16(window[at-begin:]))
			if next < at+minRecord || next > t.stop {
				return nil, t.stream.Errorf(at, "a record of %d bytes, expected 2 to %d", next-at-2, t.stop-at-2)
			}
			if uint64(next-begin) > uint64(len(window)) {
				break
			}
			if len(list) == 0 || next-last > chunkBytes {
				list, last = append(list, place{index, at}), at
			}
			index++
			at = next
		}
		if at == begin {
			return nil, t.stream.Errorf(at, "%d bytes, expected a record", t.stop-at)
		}
	}
	if index != t.end {
		return nil, t.stream.Errorf(t.start, "%d records, expected the %d of the header", index-t.first, t.end-t.first)
	}
	return list, nil
}

// MemorySize is about how many bytes the records read so far take.
func (t *Types) MemorySize() uint64 {
	size := t.placeBytes.Load() + t.byHash.bytes.Load()
	for i := range t.recent {
		if c := t.recent[i].Load(); c != nil {
			size += uint64(len(c.data)) + 4*uint64(len(c.offsets))
		}
	}
	return size
}

func u32(b []byte) uint32 { return binary.LittleEndian.Uint32(b) }
