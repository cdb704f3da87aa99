// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// Identity tells one build of a program from all others, as the CodeView record of its image does.
type Identity struct {
	GUID    [16]byte // as the file has it, the first three fields in little-endian order
	Age     uint32   // of the DBI stream, which the image has
	Machine uint16   // of the image: a constant of package pe; 0: unknown
}

// DebugID returns the name of the file on symbol servers, Breakpad's debug identifier: the GUID's
// 32 hexadecimal digits and the age.
func (id *Identity) DebugID() string {
	g := id.GUID
	return fmt.Sprintf("%08X%04X%04X%X%X", binary.LittleEndian.Uint32(g[:]), binary.LittleEndian.Uint16(g[4:]), binary.LittleEndian.Uint16(g[6:]), g[8:], id.Age)
}

// Versions of the PDB stream from which on it has a GUID.
const firstWithGUID = 20000404

// maxNamedStreams bounds the streams with names: compilers and linkers write a dozen, and one
// for each injected source file.
const maxNamedStreams = 1 << 16

// readInfo reads the PDB stream: the identity, without its age, the names of streams, and the
// features, numbers of 4 bytes.
func readInfo(c *msf.File) (id Identity, named map[string]int, features []byte, err error) {
	s := c.Stream(infoStream)
	if s == nil || s.Size() < 28 {
		return id, nil, nil, fmt.Errorf("%s: stream %d, which has the identity, is missing or cut: expected at least 28 bytes", c.Name(), infoStream)
	}
	r, err := readAt(s, 0, s.Size())
	if err != nil {
		return id, nil, nil, err
	}
	version := r.U32()
	r.U32() // a time
	r.U32() // the age of the file, which is not the image's
	if version < firstWithGUID {
		return id, nil, nil, s.Errorf(0, "version %d, expected at least %d, from which on files have a GUID", version, firstWithGUID)
	}
	copy(id.GUID[:], r.Take(16))
	named = namedStreams(&r)
	return id, named, r.Rest, nil
}

// isMinimal is the feature of files that the linker's /DEBUG:FASTLINK makes.
const isMinimal = 0x494e494d

// readFeatures notes a file that leaves functions and lines in the object files.
func (f *File) readFeatures(b []byte) {
	for r := fieldsOf(b); len(r.Rest) >= 4; {
		if r.U32() == isMinimal {
			f.note(fmt.Errorf("%s: made by the linker's /DEBUG:FASTLINK: functions and lines are in the object files of the build, and not in this file; link with /DEBUG:FULL, or make a whole PDB of it by mspdbcmf.exe", f.Name()))
		}
	}
}

// namedStreams reads the hash table of names: the texts, its size and capacity, a bit for each
// entry that is there, a bit for each that was deleted, and the entries. Files without names
// can be read, too: names that are cut are left out.
func namedStreams(r *fields) map[string]int {
	named := map[string]int{}
	texts := r.Take(int(min(r.U32(), uint32(len(r.Rest)))))
	count := min(r.U32(), maxNamedStreams)
	r.U32() // capacity
	present := 0
	for range r.words() {
		present += bits.OnesCount32(r.U32())
	}
	for range r.words() {
		r.U32()
	}
	for range min(uint32(present), count) { //nolint:gosec // bits of the stream
		key, number := r.U32(), r.U32()
		if r.IsCut || key >= uint32(len(texts)) { //nolint:gosec // a part of a stream
			break
		}
		name, _, _ := strings.Cut(string(texts[key:]), "\x00")
		named[name] = int(number)
	}
	return named
}

// words reads a number of words, at most as many as there are.
func (r *fields) words() uint32 { return min(r.U32(), uint32(len(r.Rest)/4)) } //nolint:gosec // a part of a stream

// names are the texts of the stream /names, by their offsets.
type names struct {
	stream *msf.Stream // nil: there are none
	size   uint32
}

const (
	namesHeader = 12
	namesMagic  = 0xeffeeffe
	maxName     = 1 << 16 // bytes of a name that are read
)

func (f *File) readNames() *names {
	n := &names{}
	number, ok := f.named["/names"]
	if !ok {
		return n
	}
	s := f.container.Stream(number)
	if s == nil || s.Size() < namesHeader {
		f.note(fmt.Errorf("%s: stream %d, /names, is missing or cut: files are unknown", f.Name(), number))
		return n
	}
	r, err := readAt(s, 0, namesHeader)
	if magic := r.U32(); err == nil && magic != namesMagic {
		err = s.Errorf(0, "%#x, expected %#x: files are unknown", magic, namesMagic)
	}
	if err != nil {
		f.note(err)
		return n
	}
	r.U32() // version of the hash
	n.stream, n.size = s, min(r.U32(), s.Size()-namesHeader)
	return n
}

// text returns the text at an offset; "" where there is none.
func (n *names) text(offset uint32) string {
	if n.stream == nil || offset >= n.size {
		return ""
	}
	return textAt(n.stream, namesHeader+offset, namesHeader+n.size)
}

// textAt reads a text that a zero byte ends, between two offsets of a stream.
func textAt(s *msf.Stream, offset, end uint32) string {
	for n := uint32(256); ; n *= 16 {
		have := min(n, maxName, end-offset)
		r, err := readAt(s, offset, have)
		if err != nil {
			return ""
		}
		if text := r.Text(); len(text) < int(have) || have < n {
			return text
		}
	}
}
