// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/internal/problems"
)

// ErrNotMinidump is the error for a file that is no minidump.
var ErrNotMinidump = errors.New("not a minidump")

// Bounds of the parts of a dump that are read.
const (
	maxProblems = 100
	maxStreams  = 4096
	maxThreads  = 1 << 17
	maxModules  = 1 << 17
	maxRanges   = 1 << 21
	maxHandles  = 1 << 20
)

// Sizes of MINIDUMP_HEADER and MINIDUMP_DIRECTORY, and the format's version, which
// is the lower half of a number whose upper half is the writer's own.
const (
	headerSize    = 32
	directorySize = 12
	formatVersion = 0xa793
)

// Dump is the contents of a minidump. It may be used concurrently, except for Close.
type Dump struct {
	Path   string
	Header Header
	// Order is the byte order of the machine that wrote the dump.
	Order   binary.ByteOrder
	Streams []Stream

	System          *System          // nil where the dump has no such stream
	Misc            *Misc            // likewise
	Breakpad        *Breakpad        // likewise
	Assertion       *Assertion       // likewise
	Crashpad        *Crashpad        // likewise
	Linux           Linux            // empty in a dump of another system
	Exceptions      []Exception      // one for each thread that stopped at one; LLDB writes several
	Threads         []Thread         // in the dump's order
	Modules         []Module         // in the dump's order
	UnloadedModules []UnloadedModule // in the dump's order
	MemoryInfo      []MemoryInfo     // in the dump's order
	Handles         []Handle         // in the dump's order
	CommentA        string           // of the writer of the dump
	CommentW        string           // likewise

	data     []byte
	mapping  *object.Mapping // nil for bytes in memory
	problems problems.List[string]
	texts    map[textKey]string
	textSize int
	nameSize int
	memory   []block // disjoint, by address
	added    []block // in the order of the streams

	threadNames []threadName
	threadInfos []ThreadInfo
	annotations int // entries of Crashpad's lists up to now
}

// Header is MINIDUMP_HEADER.
type Header struct {
	Version   uint32 // its lower half is the format's version, 0xa793
	Checksum  uint32
	Time      uint32 // when the dump was written, in seconds since 1970
	Flags     uint64 // MINIDUMP_TYPE
	Streams   uint32 // how many the directory has
	Directory uint32 // its offset
}

// Open maps a dump and reads it. The error for a file that is no minidump wraps
// ErrNotMinidump. A truncated or damaged dump is read as far as possible, and Problems
// lists the missing parts.
func Open(path string) (*Dump, error) {
	m, err := object.Map(path)
	if errors.Is(err, object.ErrEmpty) {
		return nil, fmt.Errorf("%s: %w: the file is empty", path, ErrNotMinidump)
	}
	if err != nil {
		return nil, err
	}
	return openMapped(m)
}

// openMapped is Open for a dump that is mapped already.
func openMapped(m *object.Mapping) (*Dump, error) {
	d := &Dump{Path: m.Path(), mapping: m}
	if err := d.open(m.Data()); err != nil {
		m.Close()
		return nil, err
	}
	return d, nil
}

// Read reads a dump in memory. path is for messages. The dump refers to data, which
// must not change.
func Read(path string, data []byte) (*Dump, error) {
	d := &Dump{Path: path}
	if err := d.open(data); err != nil {
		return nil, err
	}
	return d, nil
}

// Is reports whether a file that begins with these bytes is a minidump.
func Is(begin []byte) bool {
	return len(begin) >= 4 && (string(begin[:4]) == "MDMP" || string(begin[:4]) == "PMDM")
}

// Close unmaps the file. Nothing that refers to it may be used after it.
func (d *Dump) Close() error { return d.mapping.Close() }

// Problems returns the problems of the dump, each a sentence that begins with the
// path. Of more than 100 the last one has their number.
func (d *Dump) Problems() []string {
	var all []string
	for _, s := range d.problems.Kept() {
		all = append(all, d.Path+": "+s)
	}
	if n := d.problems.Dropped(); n > 0 {
		all = append(all, fmt.Sprintf("%s: %d more problems", d.Path, n))
	}
	return all
}

// problem adds a sentence about a stream. The offset is in the file; 0 stands for the
// stream's own.
func (d *Dump) problem(s *Stream, offset uint64, format string, args ...any) {
	if !d.problems.HasRoom(maxProblems) {
		return
	}
	if offset == 0 {
		offset = s.Offset
	}
	d.problems.Keep(fmt.Sprintf("stream %s, offset %#x: ", s.Type, offset) + fmt.Sprintf(format, args...))
}

func (d *Dump) open(data []byte) error {
	d.data, d.texts = data, map[textKey]string{}
	err := object.Guard(d.read)
	d.texts, d.added = nil, nil
	if err != nil {
		return fmt.Errorf("%s: %w", d.Path, err)
	}
	return nil
}

func (d *Dump) read() error {
	if err := d.readHeader(); err != nil {
		return err
	}
	// The format of a context depends on the system, whose stream may come behind it.
	for i := range d.Streams {
		if s := &d.Streams[i]; s.Type == StreamSystemInfo {
			d.readSystem(s)
			break
		}
	}
	var crashpad *Stream // names modules, whose list may come behind it
	seen := map[StreamType]bool{}
	for i := range d.Streams {
		s := &d.Streams[i]
		if s.Type == StreamUnused {
			continue
		}
		if seen[s.Type] && s.Type != StreamException {
			d.problem(s, 0, "there is one of its type before it, this one is not read")
			continue
		}
		seen[s.Type] = true
		if s.Type == StreamCrashpadInfo {
			crashpad = s
			continue
		}
		if f := readers[s.Type]; f != nil && (s.Size > 0 || s.Offset > 0) {
			f(d, s)
		}
	}
	if crashpad != nil {
		d.readCrashpad(crashpad)
	}
	d.join()
	return nil
}

// readHeader reads the header and the directory.
func (d *Dump) readHeader() error {
	if !Is(d.data) {
		return fmt.Errorf("%w: it begins with % x, expected MDMP", ErrNotMinidump, d.data[:min(4, len(d.data))])
	}
	d.Order = binary.LittleEndian
	if d.data[0] == 'P' {
		d.Order = binary.BigEndian
	}
	if len(d.data) < headerSize {
		return fmt.Errorf("the header has %d bytes, the file has %d", headerSize, len(d.data))
	}
	r := record{d.data, d.Order}
	d.Header = Header{
		Version: r.u32(4), Streams: r.u32(8), Directory: r.u32(12),
		Checksum: r.u32(16), Time: r.u32(20), Flags: r.u64(24),
	}
	h := &d.Header
	if h.Version&0xffff != formatVersion && d.problems.HasRoom(maxProblems) {
		d.problems.Keep(fmt.Sprintf("offset 0x4: the version is %#x, expected %#x; it is read as that", h.Version&0xffff, formatVersion))
	}
	rest := d.toEnd(uint64(h.Directory)).size
	if rest < directorySize && h.Streams > 0 {
		return fmt.Errorf("the directory of %d streams is expected at offset %#x, the file ends at %#x", h.Streams, h.Directory, len(d.data))
	}
	count := min(uint64(h.Streams), rest/directorySize, maxStreams)
	if count < uint64(h.Streams) {
		d.problems.Keep(fmt.Sprintf("offset 0x8: the directory at %#x has %d streams, there is room for %d and %d are read at most; the first %d are read",
			h.Directory, h.Streams, rest/directorySize, maxStreams, count))
	}
	for i := range count {
		e := r.skip(int(uint64(h.Directory) + i*directorySize))
		d.Streams = append(d.Streams, Stream{Type: StreamType(e.u32(0)), Size: uint64(e.u32(4)), Offset: uint64(e.u32(8))})
	}
	d.findOverlaps()
	return nil
}

// findOverlaps adds problems for streams that share bytes. They are read all the same.
func (d *Dump) findOverlaps() {
	var list []*Stream
	for i := range d.Streams {
		if s := &d.Streams[i]; s.Type != StreamUnused && s.Size > 0 {
			list = append(list, s)
		}
	}
	slices.SortStableFunc(list, func(a, b *Stream) int { return cmp.Compare(a.Offset, b.Offset) })
	var last *Stream
	for _, s := range list {
		if last != nil && s.Offset < last.Offset+last.Size {
			d.problem(s, 0, "its %d bytes overlap those of stream %s, which has %d bytes at %#x", s.Size, last.Type, last.Size, last.Offset)
		}
		if last == nil || s.Offset+s.Size > last.Offset+last.Size {
			last = s
		}
	}
}

// stream returns a stream's bytes, as far as the file has them.
func (d *Dump) stream(s *Stream) record {
	r, problem := d.bytesOf(location{s.Size, s.Offset})
	if problem != "" {
		d.problem(s, 0, "%s", problem)
	}
	return r
}

// fixed returns the bytes of a stream that consists of one structure. ok is false where
// it has fewer than least.
func (d *Dump) fixed(s *Stream, least int) (r record, ok bool) {
	r = d.stream(s)
	if len(r.b) < least {
		d.problem(s, 0, "it has %d bytes, expected %d at least; it is not read", len(r.b), least)
		return r, false
	}
	return r, true
}

// Data returns the bytes of the first stream of a type, as far as the file has
// them; nil where there is none.
func (d *Dump) Data(t StreamType) []byte {
	for i := range d.Streams {
		if s := &d.Streams[i]; s.Type == t {
			r, _ := d.bytesOf(location{s.Size, s.Offset})
			return r.b
		}
	}
	return nil
}
