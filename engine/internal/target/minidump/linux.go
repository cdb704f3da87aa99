// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/object"
)

// Linux has the files of /proc in dumps of Linux and Android. Byte slices refer to the
// mapped file.
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

// Mapping is a line of /proc/PID/maps.
type Mapping struct {
	Start, End uint64
	Rights     string // "r-xp"
	Offset     uint64 // in the file
	Device     string // "08:01"
	Inode      uint64
	Path       string // "" for memory without a file
}

// IsExecutable reports whether code may be executed there.
func (m *Mapping) IsExecutable() bool { return strings.Contains(m.Rights, "x") }

// AuxEntry is an entry of the auxiliary vector (AT_*).
type AuxEntry struct{ Type, Value uint64 }

// DSODebug is MDRawDebug: the list of the dynamic linker.
type DSODebug struct {
	Version, Count             uint32
	Break, LinkerBase, Dynamic uint64
	Libraries                  []LinkMap
	DynamicSection             []byte // behind the structure, in the mapped file
}

// LinkMap is MDRawLinkMap: a library and its load bias.
type LinkMap struct {
	Bias    uint64
	Name    string
	Dynamic uint64
}

// Auxv returns the auxiliary vector, up to its AT_NULL.
func (d *Dump) Auxv() []AuxEntry {
	var list []AuxEntry
	_ = object.Guard(func() error { // a truncated file has none
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

// word returns the size of an address of the process, in bytes.
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
// "START-END RIGHTS OFFSET DEVICE INODE PATH", numbers in hexadecimal except the
// inode.
func (d *Dump) readMaps(s *Stream) {
	text := d.stream(s).b
	d.Linux.MapsText = text
	bad, paths := 0, map[string]string{}
	for start := 0; start < len(text); {
		end := bytes.IndexByte(text[start:], '\n')
		if end < 0 {
			end = len(text) - start
		}
		line := bytes.TrimRight(text[start:start+end], "\x00\r")
		m, ok := parseMapping(line, paths)
		switch {
		case ok && len(d.Linux.Maps) < maxRanges && d.textSize < maxAllText:
			d.textSize += len(m.Path)
			d.Linux.Maps = append(d.Linux.Maps, m)
		case len(line) > 0:
			if bad++; bad == 1 {
				d.problem(s, s.Offset+uint64(start), "the line %.60q is no mapping, expected START-END RIGHTS OFFSET DEVICE INODE PATH", line)
			}
		}
		start += end + 1
	}
	if bad > 1 {
		d.problem(s, 0, "%d lines of %d are no mappings or too many", bad, bad+len(d.Linux.Maps))
	}
}

// maxLine bounds a line of maps. Paths of Linux have 4096 bytes at most, each of which
// the kernel may write as four.
const maxLine = 1 << 15

// parseMapping reads a line. paths has the paths of the lines before it.
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

// debugLayout is the layout of the dynamic linker's list: the offset of the first address
// in MDRawDebug, the size of an MDRawLinkMap, and the offset of its last address.
type debugLayout struct{ addresses, entry, dynamic int }

// debugLayouts returns the layouts for addresses of a size. The current one is packed;
// older versions of Breakpad aligned addresses of 64 bits.
func debugLayouts(word int) []debugLayout {
	packed := debugLayout{addresses: 12, entry: 4 + 2*word, dynamic: 4 + word}
	if word == 4 {
		return []debugLayout{packed}
	}
	return []debugLayout{packed, {addresses: 16, entry: 24, dynamic: 16}}
}

// readDSODebug reads the list of the dynamic linker, in the layout in which all names
// of libraries are strings.
func (d *Dump) readDSODebug(s *Stream) {
	word := d.word()
	layouts := debugLayouts(word)
	r, ok := d.fixed(s, layouts[0].addresses+3*word)
	if !ok {
		return
	}
	list := location{0, uint64(r.u32(4))}
	count := uint64(r.u32(8))
	layout := layouts[0]
	for _, f := range layouts {
		if d.isLinkMap(f, word, list.offset, count) {
			layout = f
			break
		}
	}
	g := &DSODebug{Version: r.u32(0), Count: uint32(count)}
	g.Break, g.LinkerBase, g.Dynamic = r.word(layout.addresses, word), r.word(layout.addresses+word, word), r.word(layout.addresses+2*word, word)
	g.DynamicSection = r.skip(layout.addresses + 3*word).b
	d.Linux.DSODebug = g
	if count == 0 {
		return
	}
	inner := &Stream{Type: s.Type, Offset: list.offset, Size: count * uint64(layout.entry)}
	e := d.list(inner, d.stream(inner), 0, uint64(layout.entry), count, layout.entry, maxModules)
	for i := range e.count {
		l := e.entry(i)
		g.Libraries = append(g.Libraries, LinkMap{
			Bias: l.word(0, word), Dynamic: l.word(layout.dynamic, word), Name: d.name(s, uint64(l.u32(word)), true, "library", i),
		})
	}
}

// isLinkMap reports whether the names in a list of libraries are strings within the
// file.
func (d *Dump) isLinkMap(f debugLayout, word int, offset, count uint64) bool {
	r, problem := d.bytesOf(location{min(count, maxModules) * uint64(f.entry), offset})
	if problem != "" {
		return false
	}
	for i := 0; i < len(r.b); i += f.entry {
		name := uint64(r.u32(i + word))
		header, problem := d.bytesOf(location{4, name})
		size := uint64(header.u32(0))
		if problem != "" || size%2 != 0 || size > maxText {
			return false
		}
		if _, problem := d.bytesOf(location{size, name + 4}); problem != "" {
			return false
		}
	}
	return true
}
