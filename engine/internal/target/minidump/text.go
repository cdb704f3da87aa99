// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of text, in bytes of the file: of one string, and of all of them. maxName bounds the name of a module, a
// thread and the like, in bytes of UTF-8: as many records as a file has room for may share one string, each
// makes texts of it, and no path of Linux is longer.
const (
	maxText    = 1 << 20
	maxAllText = 32 << 20
	maxName    = 4096
)

// textKey is the offset of a string, and its encoding.
type textKey struct {
	offset uint64
	wide   bool
}

// text reads a MINIDUMP_STRING (UTF-16, wide) or Crashpad's MinidumpUTF8String: a
// length in bytes and as many bytes. An offset of 0 is no string. what names
// the string in a problem.
func (d *Dump) text(s *Stream, offset uint64, wide bool, what string, index int) string {
	if offset == 0 {
		return ""
	}
	key := textKey{offset, wide}
	if t, ok := d.texts[key]; ok {
		return t
	}
	b := d.countedBytes(s, offset, what, index)
	t := strings.ToValidUTF8(string(b), string(utf8.RuneError))
	if wide {
		t = record{b, d.Order}.wide()
	}
	d.texts[key] = t
	return t
}

// name reads a string as text does, at most maxName bytes of it. Records that share strings get as many bytes of
// names in all as the file has: each makes texts of its name.
func (d *Dump) name(s *Stream, offset uint64, wide bool, what string, index int) string {
	t := d.text(s, offset, wide, what, index)
	if len(t) > maxName {
		d.problem(s, 0, "%s %d: the string at %#x has %d bytes as a name, %d are kept", what, index, offset, len(t), maxName)
		end := maxName
		for end > 0 && !utf8.RuneStart(t[end]) {
			end--
		}
		t = t[:end]
	}
	if d.nameSize+len(t) > len(d.data) {
		d.problem(s, 0, "%s %d: it has no name here: names that share strings have more bytes than the file, %d", what, index, len(d.data))
		return ""
	}
	d.nameSize += len(t)
	return t
}

// countedBytes reads a length of 32 bits and as many bytes, within the bounds of text.
func (d *Dump) countedBytes(s *Stream, offset uint64, what string, index int) []byte {
	header, problem := d.bytesOf(location{4, offset})
	if problem != "" {
		d.problem(s, 0, "%s %d: the length of a string: %s", what, index, problem)
		return nil
	}
	l := location{uint64(header.u32(0)), offset + 4}
	if l.size > maxText {
		d.problem(s, 0, "%s %d: the string at %#x has %d bytes, %d are read", what, index, offset, l.size, maxText)
		l.size = maxText
	}
	r, problem := d.bytesOf(l)
	if problem != "" {
		d.problem(s, 0, "%s %d: a string: %s", what, index, problem)
	}
	if d.textSize+len(r.b) > maxAllText {
		d.problem(s, 0, "the text of the dump has more than %d bytes, what follows is left out", maxAllText)
		return nil
	}
	d.textSize += len(r.b)
	return r.b
}

// wide decodes UTF-16 up to the first NUL.
func (r record) wide() string {
	var out strings.Builder
	for i := 0; i+2 <= len(r.b); i += 2 {
		u := rune(r.u16(i))
		if u == 0 {
			break
		}
		if utf16.IsSurrogate(u) {
			u = utf16.DecodeRune(u, rune(r.u16(i+2)))
			if u != utf8.RuneError {
				i += 2
			}
		}
		out.WriteRune(u)
	}
	return out.String()
}

// narrow returns the bytes before the first NUL, or all.
func narrow(b []byte) string {
	if end := bytes.IndexByte(b, 0); end >= 0 {
		b = b[:end]
	}
	return strings.ToValidUTF8(string(b), string(utf8.RuneError))
}

// split splits strings that end with NULs, such as /proc's command line and environment.
func split(b []byte) []string {
	b = b[:min(len(b), maxText)]
	var all []string
	for len(b) > 0 {
		end := bytes.IndexByte(b, 0)
		if end < 0 {
			end = len(b)
		}
		all = append(all, narrow(b[:end]))
		b = b[min(end+1, len(b)):]
	}
	return all
}
