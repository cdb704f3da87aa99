// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The first bytes of archives of object files (ar.h). The members of a thin one are files of
// their own.
const (
	archiveMagic = "!<arch>\n"
	thinMagic    = "!<thin>\n"
	memberHeader = 60
)

// IsArchive reports whether the bytes of a file begin as an archive of object files does.
func IsArchive(data []byte) (is bool) {
	err := Guard(func() error {
		is = bytes.HasPrefix(data, []byte(archiveMagic)) || bytes.HasPrefix(data, []byte(thinMagic))
		return nil
	})
	return is && err == nil
}

// deviceMachines are the machines of accelerators.
var deviceMachines = []elf.Machine{elf.EM_AMDGPU, elf.EM_CUDA, 205} // 205: EM_INTELGT

// archive yields the code objects of accelerators in the members of an archive: members that are
// such objects, and objects inside members; and members for macOS, which programs without DWARF name. dir is the folder that the names of a thin archive
// start from; "" where its files are not opened.
func (w *bundleWalk) archive(data []byte, dir string) {
	isThin := false
	_ = Guard(func() error { isThin = bytes.HasPrefix(data, []byte(thinMagic)); return nil })
	var long []byte // names that are too long for the header
	for offset := uint64(len(archiveMagic)); offset < uint64(len(data)) && !w.stopped; {
		var m member
		err := Guard(func() (err error) {
			m, err = readMember(data, offset, long, isThin)
			return err
		})
		if err != nil {
			w.stopped = !w.yield(Nested{}, fmt.Errorf("%s: archive: offset %#x: %w", w.name, offset, err))
			return
		}
		offset = m.next
		switch {
		case m.name == "//":
			long = m.data
		case m.isIndex:
		case isThin && dir == "":
			w.stopped = !w.yield(Nested{}, fmt.Errorf("%s: member %s of the thin archive is a file of its own, which is not looked for", w.name, m.name))
			return
		case isThin:
			w.thinMember(m.name, dir)
		default:
			w.member, w.base = m.name, m.offset
			w.memberData(m.data)
		}
	}
	w.member, w.base = "", 0
}

// thinMember opens the file of a member of a thin archive. The objects found in it are copied.
func (w *bundleWalk) thinMember(name, dir string) {
	file := name
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	m, err := Map(file)
	if err != nil {
		w.stopped = !w.yield(Nested{}, fmt.Errorf("%s: a member of the thin archive: %w", w.name, err))
		return
	}
	w.member, w.file = name, file
	w.memberData(m.Data())
	w.file = ""
	_ = m.Close()
}

// memberData yields the code objects in the bytes of a member.
func (w *bundleWalk) memberData(data []byte) {
	var magic []byte
	_ = Guard(func() error { magic = bytes.Clone(data[:min(len(data), len(bundleMagic))]); return nil })
	switch {
	case w.container(data, w.base, ""):
	case bytes.HasPrefix(magic, []byte(elf.ELFMAG)):
		o, err := New(w.name+"("+w.member+")", data)
		if err != nil {
			w.stopped = !w.yield(Nested{}, err)
			return
		}
		if slices.Contains(deviceMachines, elf.Machine(o.Machine())) {
			w.emit(Nested{Name: w.member, Format: "archive", Offset: w.base, Data: data})
			return
		}
		w.sections(o)
	case isMachO(data):
		w.emit(Nested{Name: w.member, Format: "archive", Offset: w.base, Data: data})
	}
}

// A member is a member of an archive.
type member struct {
	name    string
	isIndex bool // of the archive itself: symbols or names
	offset  uint64
	data    []byte
	next    uint64 // offset of the next one
}

var errMember = errors.New("the header of a member is cut or damaged")

// readMember reads the member at an offset.
func readMember(data []byte, offset uint64, long []byte, isThin bool) (m member, err error) {
	header, ok := slice(data, offset, memberHeader)
	if !ok || string(header[58:60]) != "`\n" {
		return m, errMember
	}
	size, err := strconv.ParseUint(strings.TrimRight(string(header[48:58]), " "), 10, 64)
	if err != nil {
		return m, fmt.Errorf("%w: a size of %q", errMember, header[48:58])
	}
	m.name, m.offset = strings.TrimRight(string(header[:16]), " "), offset+memberHeader
	m.isIndex = m.name == "/" || m.name == "//" || m.name == "/SYM64/" || strings.HasPrefix(m.name, "__.SYMDEF")
	if isThin && !m.isIndex {
		m.next = m.offset
	} else {
		if m.data, ok = slice(data, m.offset, size); !ok {
			return m, fmt.Errorf("member %q of %d bytes is not in the %d bytes of the file", m.name, size, len(data))
		}
		m.next = m.offset + size + size%2
	}
	if m.isIndex {
		return m, nil
	}
	return m, m.setName(long)
}

// setName finds the name of a member that is not in its header: behind it (BSD), or in the list of
// long names (GNU). Names end in a slash there.
func (m *member) setName(long []byte) error {
	if text, isBSD := strings.CutPrefix(m.name, "#1/"); isBSD {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n > uint64(len(m.data)) || n > maxNestedName {
			return fmt.Errorf("%w: the name %q", errMember, m.name)
		}
		m.name = strings.TrimRight(string(m.data[:n]), "\x00")
		m.data, m.offset = m.data[n:], m.offset+n
		m.isIndex = strings.HasPrefix(m.name, "__.SYMDEF")
	} else if text, isLong := strings.CutPrefix(m.name, "/"); isLong {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n >= uint64(len(long)) {
			return fmt.Errorf("%w: the name %q, expected an offset in the %d bytes of long names", errMember, m.name, len(long))
		}
		name, _, _ := bytes.Cut(long[n:min(uint64(len(long)), n+maxNestedName)], []byte("\n"))
		m.name = strings.TrimSuffix(string(name), "/")
	} else {
		m.name = strings.TrimSuffix(m.name, "/")
	}
	if m.name == "" || !utf8.ValidString(m.name) {
		return fmt.Errorf("%w: the name %q", errMember, m.name)
	}
	return nil
}
