// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file reads archives of many targets: tar, which may be packed, and ZIP.

const (
	// tarBlock is the size of a block of tar, whose first one is a header.
	tarBlock = 512
	// maxMemberName bounds the name of a member, of which the rest is left out.
	maxMemberName = 4096
)

// SnapshotMember is the member by which a ZIP file is a snapshot, and no archive of many targets.
const SnapshotMember = "snapshot.json"

// archive is a format of archives.
type archive struct {
	is   func(data []byte) bool
	read func(m *members, data []byte) error
}

var archives = []archive{
	{isTar, (*members).readTar},
	{isZIP, (*members).readZIP},
}

func archiveOf(data []byte) *archive {
	for i := range archives {
		if archives[i].is(data) {
			return &archives[i]
		}
	}
	return nil
}

// IsArchive reports whether the bytes of a file, which is not packed, are an archive of many files.
func IsArchive(data []byte) bool { return archiveOf(data) != nil }

// IsArchiveFile reports whether the regular file at a path is an archive, which may be packed.
func IsArchiveFile(path string) bool {
	f, err := open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !isPacked(f) {
		head := make([]byte, tarBlock)
		n, _ := f.ReadAt(head, 0)
		return isTar(head[:n]) || begins("PK")(head[:n]) && isZIPOf(f, info.Size())
	}
	r, err := (&peeler{}).peel(bufio.NewReaderSize(f, headSize))
	if err != nil {
		return false
	}
	head, _ := r.Peek(tarBlock)
	return isTar(head) // a packed ZIP would have to be unpacked first
}

// isTar reports whether data begin with a header of tar: its checksum is right.
func isTar(data []byte) bool {
	if len(data) < tarBlock || data[0] == 0 {
		return false
	}
	text := strings.Trim(string(data[148:156]), " \x00")
	want, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return false
	}
	sum := uint64(8 * ' ') // the checksum counts as blanks
	for i, b := range data[:tarBlock] {
		if i < 148 || i >= 156 {
			sum += uint64(b)
		}
	}
	return sum == want
}

func isZIP(data []byte) bool {
	return begins("PK")(data) && isZIPOf(bytes.NewReader(data), int64(len(data)))
}

// isZIPOf reports whether a file is a ZIP file that is no snapshot. Most snapshots are told by their first member.
func isZIPOf(r io.ReaderAt, size int64) bool {
	if firstMember(r) == SnapshotMember {
		return false
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return false
	}
	for _, f := range z.File {
		if f.Name == SnapshotMember {
			return false
		}
	}
	return true
}

// firstMember is the name in the first local header of a ZIP file; "" where there is none.
func firstMember(r io.ReaderAt) string {
	var header [30]byte
	if _, err := r.ReadAt(header[:], 0); err != nil || !begins("PK\x03\x04")(header[:]) {
		return ""
	}
	name := make([]byte, binary.LittleEndian.Uint16(header[26:]))
	if _, err := r.ReadAt(name, int64(len(header))); err != nil {
		return ""
	}
	return string(name)
}

// Member is a regular file of an archive.
type Member struct {
	// Name is its path in the archive, without anything that leads out of it.
	Name string
	// File has its bytes, in a file without a name that the receiver closes; nil: they cannot be read.
	File *os.File
	Err  error // why
	// Drop gives up the bytes of File. The receiver calls it when File and its mappings are closed.
	Drop func()
}

// Members calls each with the regular files of an archive, one after the other. Links, devices and folders
// are left out. The error is each's, or that of an archive that is damaged or unpacks to more than is allowed:
// what follows there is missing.
func Members(data []byte, o Options, each func(Member) error) error {
	a := archiveOf(data)
	if a == nil {
		return errors.New("not an archive: expected tar or ZIP")
	}
	m := &members{options: o, each: each, left: DefaultMaxBytes, size: int64(len(data))}
	switch plausible := spare + ratio*m.size; {
	case o.MaxBytes > 0:
		m.left = int64(min(o.MaxBytes, 1<<62)) //nolint:gosec // bounded
	case plausible < m.left:
		m.left = plausible
	}
	return a.read(m, data)
}

// members reads the members of an archive.
type members struct {
	options Options
	each    func(Member) error
	size    int64 // of the archive
	left    int64 // bytes that all further members together may have
}

func (m *members) readTar(data []byte) error {
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return fmt.Errorf("the archive is damaged: %w", err)
		case h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeGNUSparse:
			continue
		}
		if err := m.add(h.Name, r, m.size); err != nil {
			return err
		}
	}
}

func (m *members) readZIP(data []byte) error {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return fmt.Errorf("the archive is damaged: %w", err)
	}
	for _, f := range z.File {
		if !f.Mode().IsRegular() || strings.HasSuffix(f.Name, "/") {
			continue
		}
		if err := m.addZipped(f); err != nil {
			return err
		}
	}
	return nil
}

func (m *members) addZipped(f *zip.File) error {
	r, err := f.Open()
	if err != nil {
		return m.each(Member{Name: memberName(f.Name), Err: err})
	}
	defer r.Close()
	return m.add(f.Name, r, int64(min(f.CompressedSize64, uint64(m.size)))) //nolint:gosec // bounded by a size
}

// errAllTooLarge is the error of an archive whose members together unpack to more than is allowed.
var errAllTooLarge = errors.New("its members unpack to more than is allowed (--max-unpacked)")

// add copies a member, which has a number of packed bytes, into a temporary file. The error ends the archive:
// a member that cannot be read is none.
func (m *members) add(name string, r io.Reader, packed int64) error {
	one := Member{Name: memberName(name)}
	s, err := newSpool(m.options)
	if err != nil {
		return fmt.Errorf("a temporary file to unpack it into: %w", err)
	}
	isLast := m.left < s.maxSize
	s.maxSize = min(s.maxSize, m.left)
	err = s.fill(&layer{name: "the member", r: r}, &counter{n: packed}) // a member that is cut has an error
	m.left -= s.size
	if err == nil {
		one.File, err = s.finish()
	}
	if err == nil {
		one.Drop = s.sink.Drop
		return m.each(one)
	}
	s.sink.Drop()
	if errors.Is(err, ErrRefused) {
		return err
	}
	one.Err = err
	if err := m.each(one); err != nil {
		return err
	}
	if isLast && errors.Is(one.Err, errTooLarge) {
		return fmt.Errorf("%w: those behind %s are not read", errAllTooLarge, one.Name)
	}
	return nil
}

// memberName makes the name of a member a path that does not lead out of the archive.
func memberName(name string) string {
	name = strings.ToValidUTF8(strings.ReplaceAll(name, "\\", "/"), "?")
	if len(name) > maxMemberName {
		cut := maxMemberName
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut]
	}
	name = strings.ReplaceAll(name, "\x00", "?")
	if name = path.Clean("/" + name)[1:]; name == "" {
		return "?"
	}
	return name
}
