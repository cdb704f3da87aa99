// SPDX-License-Identifier: Apache-2.0

package damage

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
)

// field is a number in a file: of so many bytes, at an offset.
type field struct {
	offset, size int
	order        binary.ByteOrder
}

func (f field) get(b []byte) uint64 {
	switch f.size {
	case 2:
		return uint64(f.order.Uint16(b[f.offset:]))
	case 4:
		return uint64(f.order.Uint32(b[f.offset:]))
	case 8:
		return f.order.Uint64(b[f.offset:])
	}
	return uint64(b[f.offset])
}

func (f field) put(b []byte, v uint64) {
	switch f.size {
	case 1:
		b[f.offset] = byte(v)
	case 2:
		f.order.PutUint16(b[f.offset:], uint16(v))
	case 4:
		f.order.PutUint32(b[f.offset:], uint32(v))
	case 8:
		f.order.PutUint64(b[f.offset:], v)
	}
}

// header has the sizes of the fields of a format's header, in order.
type header []int

// fields returns the fields of count consecutive headers from an offset on, as far as they
// are in the file.
func (h header) fields(b []byte, offset uint64, count int, order binary.ByteOrder) (list []field) {
	size := uint64(0)
	for _, n := range h {
		size += uint64(n)
	}
	for range min(count, mostRecords) {
		if offset > uint64(len(b)) || size > uint64(len(b))-offset {
			return list
		}
		for _, n := range h {
			list = append(list, field{int(offset), n, order})
			offset += uint64(n)
		}
	}
	return list
}

// Headers of the formats, by their documents.
var (
	elf64Header      = header{2, 2, 4, 8, 8, 8, 4, 2, 2, 2, 2, 2, 2} // behind e_ident
	elf32Header      = header{2, 2, 4, 4, 4, 4, 4, 2, 2, 2, 2, 2, 2}
	elf64Segment     = header{4, 4, 8, 8, 8, 8, 8, 8}
	elf32Segment     = header{4, 4, 4, 4, 4, 4, 4, 4}
	elf64Section     = header{4, 4, 8, 8, 8, 8, 4, 4, 8, 8}
	elf32Section     = header{4, 4, 4, 4, 4, 4, 4, 4, 4, 4}
	elfNote          = header{4, 4, 4}
	dumpHeader       = header{4, 4, 4, 4, 4, 4, 8}
	dumpStream       = header{4, 4, 4}
	dumpStreamHeader = header{4, 4, 4, 4, 8, 8} // the fields that most streams begin with
	perfHeader       = header{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}
	perfRecord       = header{4, 2, 2}
	peHeader         = header{4, 2, 2, 4, 4, 4, 2, 2, 2, 1, 1, 4, 4, 4, 4, 4, 8, 4, 4}
	peSection        = header{8, 4, 4, 4, 4, 4, 4, 2, 2, 4}
	zipLocal         = header{4, 2, 2, 2, 2, 2, 4, 4, 4, 2, 2}
	zipCentral       = header{4, 2, 2, 2, 2, 2, 2, 4, 4, 4, 2, 2, 2, 2, 2, 4, 4}
	zipEnd           = header{4, 2, 2, 2, 2, 4, 4, 2}
	unitHeader       = header{4, 2, 1, 1, 4}
	spirvHeader      = header{4, 4, 4, 4, 4, 2, 2}
	bundleEntry      = header{8, 8, 8}
	machoHeader      = header{4, 4, 4, 4, 4, 4, 4, 4}
	machoSegment     = header{8, 8, 8, 8, 4, 4, 4, 4} // behind its name
	machoSection     = header{8, 8, 4, 4, 4, 4, 4, 4, 4, 4}
	universalHeader  = header{4, 4, 4, 4, 4, 4, 4} // and the first entry
)

// mostRecords bounds the headers of one kind.
const mostRecords = 200

// fieldsOf returns the fields of a file's headers, by its format; none where it is not
// known.
func fieldsOf(b []byte) []field {
	le := binary.LittleEndian
	switch {
	case bytes.HasPrefix(b, []byte("\x7fELF")) && len(b) > 64:
		return elfFields(b)
	case bytes.HasPrefix(b, []byte("MDMP")) && len(b) > 32:
		list := dumpHeader.fields(b, 0, 1, le)
		count, offset := int(le.Uint32(b[8:])), le.Uint32(b[12:])
		streams := dumpStream.fields(b, uint64(offset), count, le)
		for i := 2; i < len(streams); i += len(dumpStream) {
			list = append(list, dumpStreamHeader.fields(b, streams[i].get(b), 3, le)...)
		}
		return append(list, streams...)
	case bytes.HasPrefix(b, []byte("PERFILE2")):
		list := perfHeader.fields(b, 0, 1, le)
		for _, r := range recordsOf(b) {
			list = append(list, perfRecord.fields(b, uint64(r.from), 1, le)...)
			list = append(list, header{8, 8, 8, 8}.fields(b, uint64(r.from)+8, 1, le)...)
		}
		return list
	case bytes.HasPrefix(b, []byte("MZ")) && len(b) > 64:
		offset := uint64(le.Uint32(b[60:]))
		list := append([]field{{60, 4, le}}, peHeader.fields(b, offset, 1, le)...)
		list = append(list, header{4, 4}.fields(b, offset+136, 16, le)...)
		if len(list) > 8 {
			list = append(list, peSection.fields(b, offset+24+uint64(le.Uint16(b[min(offset+20, uint64(len(b)-2)):])), 40, le)...)
		}
		return list
	case bytes.HasPrefix(b, []byte(machoMagic)) && len(b) > machoCommands:
		return machoFields(b)
	case bytes.HasPrefix(b, []byte("\xca\xfe\xba\xbe")):
		return append(universalHeader.fields(b, 0, 1, binary.BigEndian), header{4, 4, 4, 4, 4}.fields(b, 28, 1, binary.BigEndian)...)
	case bytes.HasPrefix(b, []byte("PK\x03\x04")):
		list := everywhere(b, "PK\x03\x04", zipLocal)
		return append(append(list, everywhere(b, "PK\x01\x02", zipCentral)...), everywhere(b, "PK\x05\x06", zipEnd)...)
	case bytes.HasPrefix(b, []byte("\x03\x02\x23\x07")):
		list := spirvHeader.fields(b, 0, 1, le)
		for _, r := range recordsOf(b) {
			list = append(list, header{2, 2, 4, 4}.fields(b, uint64(r.from), 1, le)...)
		}
		return list
	case bytes.HasPrefix(b, []byte("__CLANG_OFFLOAD_BUNDLE__")):
		return append([]field{{24, 8, le}}, bundleEntry.fields(b, 32, 3, le)...)
	}
	return nil
}

const (
	machoMagic    = "\xcf\xfa\xed\xfe"
	machoCommands = 32 // the offset of the first load command
	segmentKind   = 0x19
)

// machoRecords are the load commands of a Mach-O file.
func machoRecords(b []byte) []record {
	le := binary.LittleEndian
	return sized(b, machoCommands, uint64(le.Uint32(b[20:])), func(offset int) int { return int(le.Uint32(b[offset+4:])) })
}

// machoFields returns the fields of the header and of the load commands: of segments and their sections, and of
// the others all numbers of 4 bytes.
func machoFields(b []byte) []field {
	le := binary.LittleEndian
	list := machoHeader.fields(b, 0, 1, le)
	for _, r := range machoRecords(b) {
		list = append(list, header{4, 4}.fields(b, uint64(r.from), 1, le)...)
		if le.Uint32(b[r.from:]) == segmentKind {
			list = append(list, machoSegment.fields(b, uint64(r.from)+24, 1, le)...)
			for at := r.from + 72; at+80 <= r.to; at += 80 {
				list = append(list, machoSection.fields(b, uint64(at)+32, 1, le)...)
			}
			continue
		}
		list = append(list, header{4}.fields(b, uint64(r.from)+8, (r.to-r.from-8)/4, le)...)
	}
	return list
}

// everywhere returns the fields of the headers that begin with a mark.
func everywhere(b []byte, mark string, h header) (list []field) {
	for offset := 0; ; offset++ {
		next := bytes.Index(b[offset:], []byte(mark))
		if next < 0 || len(list) > mostRecords*len(h) {
			return list
		}
		offset += next
		list = append(list, h.fields(b, uint64(offset), 1, binary.LittleEndian)...)
	}
}

// elfFields returns the fields of the header, of program and section headers, of notes,
// and at the start of debugging sections.
func elfFields(b []byte) []field {
	list, segments, sections := elfTables(b)
	for i := 0; i+5 < len(segments); i += 8 {
		offset := segments[i+2].get(b)
		if segments[i].size == 4 && segments[i+1].size == 4 && segments[i+2].size == 4 {
			offset = segments[i+1].get(b)
		}
		if segments[i].get(b) == 4 { // PT_NOTE
			list = append(list, notesFrom(b, offset, segments[i].order)...)
		}
	}
	for i := 0; i+9 < len(sections); i += 10 {
		list = append(list, unitHeader.fields(b, sections[i+4].get(b), 1, sections[i].order)...)
	}
	return append(append(list, segments...), sections...)
}

// elfTables returns the fields of the header, of the program headers and of the section
// headers.
func elfTables(b []byte) (list, segments, sections []field) {
	var order binary.ByteOrder = binary.LittleEndian
	if b[5] == 2 {
		order = binary.BigEndian
	}
	h, segment, section := elf64Header, elf64Segment, elf64Section
	if b[4] == 1 {
		h, segment, section = elf32Header, elf32Segment, elf32Section
	}
	list = h.fields(b, 16, 1, order)
	if len(list) == 0 {
		return nil, nil, nil
	}
	segments = segment.fields(b, list[4].get(b), int(list[9].get(b)), order)
	sections = section.fields(b, list[5].get(b), int(list[11].get(b)), order)
	return list, segments, sections
}

// notesFrom returns the fields of consecutive headers of notes.
func notesFrom(b []byte, offset uint64, order binary.ByteOrder) (list []field) {
	for range mostRecords {
		note := elfNote.fields(b, offset, 1, order)
		if note == nil {
			break
		}
		list = append(list, note...)
		offset += 12 + (note[0].get(b)+3)&^3 + (note[1].get(b)+3)&^3
	}
	return list
}

// aField returns a number of a header, or any number that may be a length, a count or an
// offset.
func aField(random *rand.Rand, b []byte, known []field) field {
	if len(known) > 0 && random.IntN(3) > 0 {
		return known[random.IntN(len(known))]
	}
	f := field{size: 1 << random.IntN(4), order: binary.LittleEndian}
	if len(b) < f.size {
		return field{0, 1, f.order}
	}
	for range 50 {
		f.offset = random.IntN(len(b) - f.size + 1)
		if v := f.get(b); v > 0 && v <= uint64(len(b)) {
			break
		}
	}
	return f
}

// edge returns an extreme value for a length, a count or an offset.
func edge(random *rand.Rand, was uint64, size, length int) uint64 {
	bits := uint(size * 8)
	edges := []uint64{
		0, 1, 2, 3, 7, 8, was - 1, was + 1, was * 2, was / 2, was + 4, was - 4, -was, ^uint64(0), ^uint64(0) - 1, ^uint64(0) >> (65 - bits), 1 << (bits - 1),
		uint64(length), uint64(length) - 1, uint64(length) + 1, 0xffff, 0x10000, 0x7fffffff, 0xfffffff0, 1 << 28, 1 << 40, uint64(random.IntN(length + 1)),
	}
	return edges[random.IntN(len(edges))]
}
