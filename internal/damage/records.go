// SPDX-License-Identifier: Apache-2.0

package damage

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"slices"
)

const (
	mostGrowth  = 1 << 20 // bytes, of records that are repeated
	mostMembers = 64 << 20
)

// record is a part of a file: from, to.
type record struct{ from, to int }

// recordsOf returns the parts that a file consists of: records of a recording,
// instructions of SPIR-V, headers and sections of ELF, members of a directory, or lines.
func recordsOf(b []byte) (list []record) {
	le := binary.LittleEndian
	switch {
	case bytes.HasPrefix(b, []byte("PERFILE2")) && len(b) > 104:
		from, size := le.Uint64(b[40:]), le.Uint64(b[48:])
		if le.Uint64(b[8:]) == 16 { // of a pipe
			from, size = 16, uint64(len(b)-16)
		}
		return sized(b, from, size, func(offset int) int { return int(le.Uint16(b[offset+6:])) })
	case bytes.HasPrefix(b, []byte("\x03\x02\x23\x07")) && len(b) > 20:
		return sized(b, 20, uint64(len(b)), func(offset int) int { return 4 * int(le.Uint16(b[offset+2:])) })
	case bytes.HasPrefix(b, []byte("\x7fELF")) && len(b) > 64:
		_, segments, sections := elfTables(b)
		return append(append(sectionsOf(b), tables(segments, 8)...), tables(sections, 10)...)
	case bytes.HasPrefix(b, []byte(machoMagic)) && len(b) > machoCommands:
		return machoRecords(b)
	case bytes.HasPrefix(b, []byte("MDMP")) && len(b) > 32:
		return tables(dumpStream.fields(b, uint64(le.Uint32(b[12:])), int(le.Uint32(b[8:])), le), len(dumpStream))
	case isText(b):
		for from := 0; from < len(b); {
			to := len(b)
			if i := bytes.IndexAny(b[from:], "\n,}"); i >= 0 {
				to = from + i + 1
			}
			list = append(list, record{from, to})
			from = to
		}
	}
	return list
}

// sized returns records that have their sizes in them, each of 8 bytes at
// least.
func sized(b []byte, from, size uint64, sizeAt func(offset int) int) (list []record) {
	if from > uint64(len(b)) {
		return nil
	}
	end := from + min(size, uint64(len(b))-from)
	for offset := int(from); offset+8 <= int(end); {
		n := sizeAt(offset)
		if n < 4 || n > int(end)-offset {
			break
		}
		list = append(list, record{offset, offset + n})
		offset += n
	}
	return list
}

// tables returns the records of fields, each fields a record.
func tables(fields []field, each int) (list []record) {
	for i := 0; i+each <= len(fields); i += each {
		last := fields[i+each-1]
		list = append(list, record{fields[i].offset, last.offset + last.size})
	}
	return list
}

// sectionsOf returns the contents of an ELF file's sections.
func sectionsOf(b []byte) (list []record) {
	_, _, sections := elfTables(b)
	for i := 0; i+9 < len(sections); i += 10 {
		from, size := sections[i+4].get(b), sections[i+5].get(b)
		if size > 0 && from < uint64(len(b)) && size <= uint64(len(b))-from && sections[i+1].get(b) != 8 {
			list = append(list, record{int(from), int(from + size)})
		}
	}
	return list
}

func isText(b []byte) bool {
	return len(b) > 0 && bytes.IndexByte(b[:min(len(b), 4096)], 0) < 0
}

// damageRecords repeats a record, swaps two, removes one, or puts one of another file there.
func damageRecords(random *rand.Rand, b, other []byte) []byte {
	list := recordsOf(b)
	if len(list) == 0 {
		return once(random, b, random.IntN(len(b)))
	}
	r := list[random.IntN(len(list))]
	content := bytes.Clone(b[r.from:r.to])
	switch random.IntN(5) {
	case 0: // repeated, in place of what follows
		for offset := r.to; offset+len(content) <= len(b) && random.IntN(8) > 0; offset += len(content) {
			copy(b[offset:], content)
		}
	case 1: // repeated, so that the rest moves
		times := min(1<<random.IntN(12), mostGrowth/max(1, len(content)))
		b = slices.Insert(b, r.to, bytes.Repeat(content, times)...)
	case 2: // swapped, at the smaller size
		s := list[random.IntN(len(list))]
		n := min(len(content), s.to-s.from)
		copy(b[r.from:r.from+n], b[s.from:s.from+n])
		copy(b[s.from:], content[:n])
	case 3:
		b = slices.Delete(b, r.from, r.to)
	case 4:
		if theirs := recordsOf(other); len(theirs) > 0 {
			s := theirs[random.IntN(len(theirs))]
			copy(b[r.from:r.to], other[s.from:s.to])
		}
	}
	return b
}

// damageMembers damages one or more members of a ZIP file, or swaps some with another's, and
// writes the file again, so that the rest of it is valid. It returns nil where that fails.
func damageMembers(random *rand.Rand, b, other []byte) []byte {
	ours, theirs := members(b), members(other)
	if len(ours) == 0 {
		return nil
	}
	for range 1 + random.IntN(2) {
		m := &ours[random.IntN(len(ours))]
		switch {
		case len(theirs) > 0 && random.IntN(6) == 0:
			m.content = theirs[random.IntN(len(theirs))].content
		case random.IntN(20) == 0:
			ours = append(ours, *m)
		default:
			m.content = With(random, m.content, nil)
		}
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range ours {
		f, err := w.CreateHeader(&zip.FileHeader{Name: m.name, Method: zip.Store})
		if err == nil {
			_, err = f.Write(m.content)
		}
		if err != nil {
			return nil
		}
	}
	if w.Close() != nil {
		return nil
	}
	return out.Bytes()
}

type member struct {
	name    string
	content []byte
}

// members returns the members of a ZIP file; none where it is not one, or is
// too large.
func members(b []byte) (list []member) {
	r, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return nil
	}
	for _, f := range r.File {
		c, err := f.Open()
		if err != nil {
			return nil
		}
		content, err := io.ReadAll(io.LimitReader(c, mostMembers))
		_ = c.Close()
		if err != nil {
			return nil
		}
		list = append(list, member{f.Name, content})
	}
	return list
}
