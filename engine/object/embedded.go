// SPDX-License-Identifier: Apache-2.0

package object

import (
	"archive/zip"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// This file opens ELF files inside other files that are loaded from there: libraries in the APKs of
// Android, bundles that programs map themselves. The path of such a part is FILE!MEMBER, with
// the name of a member of a zip archive that is not compressed, or FILE+0xOFFSET.

const (
	maxPartSteps = 1 << 16 // pages that are searched for the start of a part
	maxMembers   = 1 << 16 // of an archive that are read
)

// isPart reports whether an entry is a part.
func isPart(entry string) bool {
	return strings.HasPrefix(entry, "!") || strings.HasPrefix(entry, "+0x")
}

// archiveSuffixes end the names of archives that Breakpad writes as directories of their members:
// "base.apk/libe.so".
var archiveSuffixes = []string{".apk/", ".zip/", ".jar/", ".aar/"}

// cutEmbedded splits the path of a part: "/data/base.apk!/lib/libe.so", as Android's linker
// and others print it, "/data/base.apk/libe.so", "/data/base.apk+0x2000".
func cutEmbedded(name string) (file, part string, ok bool) {
	if i := strings.LastIndex(name, "+0x"); i > 0 {
		if _, err := strconv.ParseUint(name[i+3:], 16, 64); err == nil {
			return name[:i], name[i:], true
		}
	}
	if i := strings.LastIndexByte(name, '!'); i > 0 && strings.Trim(name[i+1:], "/") != "" {
		return name[:i], "!" + strings.TrimLeft(name[i+1:], "/"), true
	}
	for _, suffix := range archiveSuffixes {
		if i := strings.LastIndex(name, suffix); i > 0 && i+len(suffix) < len(name) {
			return name[:i+len(suffix)-1], "!" + name[i+len(suffix):], true
		}
	}
	return "", "", false
}

// openPart makes an object of a part of a file. It keeps the mapping, and closes it on error.
func openPart(m *Mapping, name, part string) (*Object, error) {
	var data []byte
	err := Guard(func() (err error) { data, err = partOf(m.data, part); return err })
	if err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	o, err := New(name, data)
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	o.mapping = m
	return o, nil
}

// partOf returns the bytes of a part.
func partOf(data []byte, part string) ([]byte, error) {
	if text, ok := strings.CutPrefix(part, "+0x"); ok {
		offset, err := strconv.ParseUint(text, 16, 64)
		if err != nil || offset >= uint64(len(data)) {
			return nil, fmt.Errorf("offset 0x%s: %w: the file has %#x bytes", text, fs.ErrNotExist, len(data))
		}
		for m := range members(data) {
			if m.offset == offset {
				return m.data, nil
			}
		}
		return data[offset:], nil
	}
	name, found := part[1:], [][]byte(nil)
	for m := range members(data) {
		if m.name == name {
			return m.data, nil
		}
		if path.Base(m.name) == name {
			found = append(found, m.data)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no ELF file that is a member without compression has the name %s: %w", name, fs.ErrNotExist)
	case 1:
		return found[0], nil
	}
	return nil, fmt.Errorf("%d members have the name %s", len(found), name)
}

// A storedMember is a code object in a zip archive that can be mapped from there.
type storedMember struct {
	name   string
	offset uint64
	data   []byte
}

// members yields the code objects in an archive (APPNOTE.TXT, 4.3); none in another file. It is
// called inside Guard.
func members(data []byte) func(yield func(storedMember) bool) {
	return func(yield func(storedMember) bool) {
		if !bytes.HasPrefix(data, []byte("PK\x03\x04")) {
			return
		}
		r, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
			return
		}
		for _, f := range r.File[:min(len(r.File), maxMembers)] {
			if f.Method != zip.Store || f.UncompressedSize64 != f.CompressedSize64 || f.UncompressedSize64 < uint64(len(elf.ELFMAG)) {
				continue
			}
			offset, err := f.DataOffset()
			if err != nil || offset < 0 {
				continue
			}
			b, ok := slice(data, uint64(offset), f.UncompressedSize64)
			if ok && bytes.HasPrefix(b, []byte(elf.ELFMAG)) && !yield(storedMember{f.Name, uint64(offset), b}) {
				return
			}
		}
	}
}

// FindPart finds the code object inside a file of the target to which an executable mapping from
// offset on, of size bytes, belongs. name is its path for Find, and start its offset in the file.
// ok is false where the file is not there or is a code object itself, or none in it is executable
// there.
func (f *Finder) FindPart(file string, offset, size uint64) (name string, start uint64, ok bool) {
	for m, err := range f.Mapped(file) {
		if err != nil {
			return "", 0, false
		}
		_ = Guard(func() error { // a file that is cut has no part
			if part, partStart, found := partAt(m.data, offset, size); found {
				name, start, ok = strings.TrimSuffix(file, deleted)+part, partStart, true
			}
			return nil
		})
		_ = m.Close()
		if ok {
			return name, start, true
		}
	}
	return "", 0, false
}

// partAt finds the part of a file to which an executable mapping belongs: the member of an archive,
// or the ELF file at the nearest header before that has such a segment.
func partAt(data []byte, offset, size uint64) (part string, start uint64, ok bool) {
	if offset == 0 && bytes.HasPrefix(data, []byte(elf.ELFMAG)) || offset >= uint64(len(data)) {
		return "", 0, false
	}
	for m := range members(data) {
		if offset >= m.offset && offset-m.offset < uint64(len(m.data)) {
			return "!" + m.name, m.offset, true
		}
	}
	begin := offset &^ (basePage - 1)
	for range maxPartSteps {
		if begin == 0 {
			break
		}
		if bytes.HasPrefix(data[begin:], []byte(elf.ELFMAG)) && hasCodeAt(data[begin:], offset-begin, size) {
			return fmt.Sprintf("+%#x", begin), begin, true
		}
		begin -= basePage
	}
	return "", 0, false
}

// hasCodeAt reports whether bytes begin with an ELF file and a mapping overlaps its executable
// segment, or begins with the ELF header itself.
func hasCodeAt(data []byte, offset, size uint64) bool {
	o, err := New("", data)
	if err != nil || o.Type() != elf.ET_DYN && o.Type() != elf.ET_EXEC {
		return false
	}
	if offset == 0 {
		return len(o.segments) > 0
	}
	segment, ok := o.SegmentForMapping(offset, size, true)
	return ok && segment.Executable()
}
