// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// A Linux is what dumps of Linux and Android have of /proc. Texts that nobody
// copies are bytes of the mapped file.
type Linux struct {
	CPUInfo     []byte   // /proc/cpuinfo
	Status      []byte   // /proc/PID/status
	LSBRelease  []byte   // /etc/lsb-release
	CommandLine []string // /proc/PID/cmdline
	Environ     []string // /proc/PID/environ
	Maps        []Mapping
	MapsText    []byte // /proc/PID/maps
	Limits      []byte // /proc/PID/limits
	DSODebug    *DSODebug

	auxv []byte
}

// A Mapping is a line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64
	Rights     string // "r-xp"
	Offset     uint64 // in the file
	Device     string // "08:01"
	Inode      uint64
	Path       string // "" for memory of no file
}

// IsExecutable says whether code may be executed there.
func (m *Mapping) IsExecutable() bool { return strings.Contains(m.Rights, "x") }

// An AuxEntry is an entry of the auxiliary vector (AT_*).
type AuxEntry struct{ Type, Value uint64 }

// A DSODebug is MDRawDebug: the list of the dynamic linker.
type DSODebug struct {
	Version, Count             uint32
	Break, LinkerBase, Dynamic uint64
	Libraries                  []LinkMap
	DynamicSection             []byte // behind the structure, in the mapped file
}

// A LinkMap is MDRawLinkMap: a library and by how much it was moved.
type LinkMap struct {
	Bias    uint64
	Name    string
	Dynamic uint64
}

// Auxv is the auxiliary vector, up to its AT_NULL.
func (d *Dump) Auxv() []AuxEntry {
	var list []AuxEntry
	_ = object.Guard(func() error { // a file that was cut has none
		r, word := record{d.Linux.auxv, d.Order}, d.word()
		for i := 0; r.has(i, 2*word); i += 2 * word {
			e := AuxEntry{r.word(i, word), r.word(i+word, word)}
			if e.Type == 0 {
				break
			}
			list = append(list, e)
		}
		return nil
	})
	return list
}

// word is the size of an address of the process, in bytes.
func (d *Dump) word() int {
	if slices.Contains(narrowArchitectures, d.arch()) {
		return 4
	}
	return 8
}

var narrowArchitectures = []string{ArchX86, ArchARM, "mips", "ppc", "sparc", "riscv", "shx"}

func (r record) word(offset, size int) uint64 {
	if size == 4 {
		return uint64(r.u32(offset))
	}
	return r.u64(offset)
}

// readMaps reads lines of Linux (Documentation/filesystems/proc.rst, 1.1):
// "START-END RIGHTS OFFSET DEVICE INODE PATH", numbers in hexadecimal but for the
// inode.
func (d *Dump) readMaps(s *Stream) {
	text := d.stream(s).b
	d.Linux.MapsText = text
	bad, paths := 0, map[string]string{}
	for at := 0; at < len(text); {
		end := bytes.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text) - at
		}
		line := bytes.TrimRight(text[at:at+end], "\x00\r")
		m, ok := parseMapping(line, paths)
		switch {
		case ok && len(d.Linux.Maps) < maxRanges && d.textSize < maxAllText:
			d.textSize += len(m.Path)
			d.Linux.Maps = append(d.Linux.Maps, m)
		case len(line) > 0:
			if bad++; bad == 1 {
				d.problem(s, s.Offset+uint64(at), "the line %.60q is no mapping, expected START-END RIGHTS OFFSET DEVICE INODE PATH", line)
			}
		}
		at += end + 1
	}
	if bad > 1 {
		d.problem(s, 0, "%d lines of %d are no mappings or too many", bad, bad+len(d.Linux.Maps))
	}
}

// maxLine bounds a line of maps. Paths of Linux have 4096 bytes at most, which the
// kernel may write as four each.
const maxLine = 1 << 15

// parseMapping reads a line. paths has those of the lines before it.
func parseMapping(line []byte, paths map[string]string) (m Mapping, ok bool) {
	if len(line) > maxLine {
		return m, false
	}
	rest := line
	next := func() string {
		word, after, _ := bytes.Cut(rest, []byte(" "))
		rest = after
		return string(word)
	}
	start, end, found := strings.Cut(next(), "-")
	m.Rights = next()
	offset := next()
	m.Device = next()
	inode := next()
	var errs [4]error
	m.Start, errs[0] = strconv.ParseUint(start, 16, 64)
	m.End, errs[1] = strconv.ParseUint(end, 16, 64)
	m.Offset, errs[2] = strconv.ParseUint(offset, 16, 64)
	m.Inode, errs[3] = strconv.ParseUint(inode, 10, 64)
	path := bytes.TrimLeft(rest, " ")
	if kept, ok := paths[string(path)]; ok {
		m.Path = kept
	} else {
		m.Path = strings.ToValidUTF8(string(path), "\ufffd")
		paths[string(path)] = m.Path
	}
	return m, found && errs == [4]error{} && m.End > m.Start && len(m.Rights) == 4
}

// A debugForm is how the structures of the dynamic linker's list lie: where the first
// address of MDRawDebug is, how long an entry of MDRawLinkMap is, and where its last
// address is.
type debugForm struct{ addresses, entry, dynamic int }

// debugForms are the forms for addresses of a size, that of today first. It is
// packed. Older Breakpads aligned addresses of 64 bits.
func debugForms(word int) []debugForm {
	packed := debugForm{addresses: 12, entry: 4 + 2*word, dynamic: 4 + word}
	if word == 4 {
		return []debugForm{packed}
	}
	return []debugForm{packed, {addresses: 16, entry: 24, dynamic: 16}}
}

// readDSODebug reads the list of the dynamic linker, in the form in which all names
// of libraries are strings.
func (d *Dump) readDSODebug(s *Stream) {
	word := d.word()
	forms := debugForms(word)
	r, ok := d.fixed(s, forms[0].addresses+3*word)
	if !ok {
		return
	}
	list := location{0, uint64(r.u32(4))}
	count := uint64(r.u32(8))
	form := forms[0]
	for _, f := range forms {
		if d.isLinkMap(f, word, list.offset, count) {
			form = f
			break
		}
	}
	g := &DSODebug{Version: r.u32(0), Count: uint32(count)}
	g.Break, g.LinkerBase, g.Dynamic = r.word(form.addresses, word), r.word(form.addresses+word, word), r.word(form.addresses+2*word, word)
	g.DynamicSection = r.from(form.addresses + 3*word).b
	d.Linux.DSODebug = g
	if count == 0 {
		return
	}
	at := &Stream{Type: s.Type, Offset: list.offset, Size: count * uint64(form.entry)}
	e := d.list(at, d.stream(at), 0, uint64(form.entry), count, form.entry, maxModules)
	for i := range e.count {
		l := e.at(i)
		g.Libraries = append(g.Libraries, LinkMap{
			Bias: l.word(0, word), Dynamic: l.word(form.dynamic, word), Name: d.text(s, uint64(l.u32(word)), true, "library", i),
		})
	}
}

// isLinkMap says whether the names of a list of libraries are strings that the file
// has.
func (d *Dump) isLinkMap(f debugForm, word int, offset, count uint64) bool {
	r, problem := d.at(location{min(count, maxModules) * uint64(f.entry), offset})
	if problem != "" {
		return false
	}
	for i := 0; i < len(r.b); i += f.entry {
		name := uint64(r.u32(i + word))
		head, problem := d.at(location{4, name})
		size := uint64(head.u32(0))
		if problem != "" || size%2 != 0 || size > maxText {
			return false
		}
		if _, problem := d.at(location{size, name + 4}); problem != "" {
			return false
		}
	}
	return true
}
