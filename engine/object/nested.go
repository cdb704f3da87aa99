// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"cmp"
	"crypto/md5"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
)

// A Nested is a code object inside another file: an entry of an offload bundle
// (Clang Offload Bundler, "Bundled Binary File Layout"), an image of an offload
// binary, an entry of a fat binary, a member of an archive, or a range that one of Formats
// lists. Bundles, offload binaries and fat binaries are files of their own, or are embedded in a
// host's executable or object file.
type Nested struct {
	Index int // in the file's list of them
	// Format is its container: "offload bundle", "offload binary", "fat binary", "universal file",
	// "archive", "container", "section" or "memory".
	Format string
	// Name is the entry's ID: the kind of offloading, the target triple, and the
	// processor with its features: "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack-".
	Name    string
	Image   string // "" for a code object; else "bitcode", "spirv" and the like, or "metadata" without bytes
	Source  string // the name that the compiler wrote down for what it compiled, in a fat binary
	Member  string // of the archive that contains it
	File    string // of a member of a thin archive, which is a file of its own
	Section string // of the host file that contains the bundle; "" in a bundle file
	Bundle  uint64 // offset of the bundle, or of another container, in the file
	Packing string // how the bundle, or the entry of a fat binary, is compressed: "", "zlib", "zstd" or "lz4"
	// Offset of Data in the file, or in the unpacked bundle where there is a
	// Packing.
	Offset uint64
	Data   []byte // read inside Guard; empty for the host's own entry
}

// The magic bytes of bundles.
const (
	bundleMagic = "__CLANG_OFFLOAD_BUNDLE__"
	packedMagic = "CCOB"
)

// Bounds on bundles. A library for every processor of a vendor has some thirty
// entries in each of its bundles, and as many bundles as it has source files.
const (
	maxNested     = 1 << 18
	maxNestedName = 1 << 12
)

// ErrNoNested is the error of a path that leads to no code object inside a file.
var ErrNoNested = errors.New("no such code object in the file")

// IsBundle reports whether the bytes of a file begin as an offload bundle, an offload
// binary or a fat binary does.
func IsBundle(data []byte) (is bool) {
	err := Guard(func() error {
		is = isBundleMagic(data) || bytes.HasPrefix(data, []byte(offloadMagic)) || isFatBinary(data)
		return nil
	})
	return is && err == nil
}

func isBundleMagic(data []byte) bool {
	return bytes.HasPrefix(data, []byte(bundleMagic)) || bytes.HasPrefix(data, []byte(packedMagic))
}

// BundleEntries yields the code objects of a bundle file, or a file of offload binaries or of
// fat binaries, which may be several one after the other. The name is used in messages only. After an
// error the next one follows.
func BundleEntries(name string, data []byte) iter.Seq2[Nested, error] {
	return func(yield func(Nested, error) bool) {
		w := newBundleWalk(name, uint64(len(data)), yield)
		w.container(data, 0, "")
	}
}

// Nested yields the code objects inside the object: in the offload bundles, offload binaries and
// fat binaries of its sections, in the sections that an unlinked object has for them, in the memory
// of a core, and in a program of Intel's OpenCL, whose debug information has one of the formats,
// which may be nil. A section with code objects that are not read is an error. After an error the next one follows.
func (o *Object) Nested(formats Formats) iter.Seq2[Nested, error] {
	return func(yield func(Nested, error) bool) {
		w := newBundleWalk(o.name, uint64(len(o.data)), yield)
		w.formats = formats
		w.sections(o)
		if o.Type() == elf.ET_CORE && !w.stopped {
			w.coreMemory(o)
		}
	}
}

// A deviceSection is a kind of section with code of accelerators, by its name.
type deviceSection struct {
	name     string
	isPrefix bool // of the name
	unread   string
	read     func(w *bundleWalk, data []byte, s *Section)
}

// deviceSections are the sections that compilers put code of accelerators into. The names of
// sections of PE files have eight bytes.
var deviceSections = []deviceSection{
	{name: bundleMagic, isPrefix: true, read: (*bundleWalk).own},
	{name: ".hip_fatbin", read: (*bundleWalk).bundles},
	{name: ".hip_fatbin.", isPrefix: true, read: (*bundleWalk).bundles},
	{name: ".hip_fat", read: (*bundleWalk).bundles},
	{name: ".llvm.offloading", isPrefix: true, read: (*bundleWalk).offloads},
	{name: ".llvm.of", read: (*bundleWalk).offloads},
	{name: "Intel(R) OpenCL Device Debug", read: (*bundleWalk).format},
	{name: "SPIRV Object", read: (*bundleWalk).spirv},
	{name: "Intel(R) OpenCL Device Binary", unread: "the machine code of Intel's kernels in patch tokens"},
	{name: "Intel(R) OpenCL LLVM Object", unread: "bitcode of Intel's kernels"},
	{name: "Intel(R) OpenCL LLVM Archive", unread: "bitcode of Intel's kernels"},
	{name: ".nv_fatbin", read: (*bundleWalk).fatSection},
	{name: ".nv_fatb", read: (*bundleWalk).fatSection},
	{name: "__nv_relfatbin", read: (*bundleWalk).fatSection},
	{name: "__nv_rel", read: (*bundleWalk).fatSection},
	{name: ".cudbg.elfimg.", isPrefix: true, read: (*bundleWalk).cudaImage},
	{name: ".cudbg.relfimg.", isPrefix: true, read: (*bundleWalk).cudaImage},
	{name: ".gnu.offload_lto_.opts", unread: "GCC's intermediate code for accelerators"},
}

// deviceSectionOf returns the kind of a section; nil where it has no code of accelerators.
func deviceSectionOf(s *Section) *deviceSection {
	for i := range deviceSections {
		d := &deviceSections[i]
		if s.Name == d.name || d.isPrefix && strings.HasPrefix(s.Name, d.name) || s.Type == offloadType && d.name == ".llvm.offloading" {
			return d
		}
	}
	return nil
}

// sections yields the code objects in the sections of an object.
func (w *bundleWalk) sections(o *Object) {
	for _, s := range o.sections {
		d := deviceSectionOf(s)
		if d == nil || w.stopped {
			continue
		}
		b, err := s.raw()
		switch {
		case errors.Is(err, ErrNoData):
			continue // a separate debug file
		case err == nil && d.read == nil:
			err = fmt.Errorf("%d bytes at offset %#x, %s, are not read", len(b), s.Offset, d.unread)
		case err == nil:
			d.read(w, b, s)
		}
		if err != nil {
			w.stopped = !w.yield(Nested{}, fmt.Errorf("%s: section %s (%d): %w", o.name, s.Name, s.Index, err))
		}
	}
}

func (w *bundleWalk) own(data []byte, s *Section) {
	offset := w.base + s.Offset
	w.emit(Nested{Name: strings.TrimPrefix(s.Name, bundleMagic), Format: "offload bundle", Section: s.Name, Bundle: offset, Offset: offset, Data: data})
}

func (w *bundleWalk) bundles(data []byte, s *Section) { w.all(data, w.base+s.Offset, s.Name) }

func (w *bundleWalk) offloads(data []byte, s *Section) { w.offload(data, w.base+s.Offset, s.Name) }

// cudaImage yields a cubin in a section of a core of CUDA's.
func (w *bundleWalk) cudaImage(data []byte, s *Section) {
	offset := w.base + s.Offset
	w.emit(Nested{Name: strings.TrimPrefix(s.Name, "."), Format: "section", Section: s.Name, Bundle: offset, Offset: offset, Data: data})
}

func (w *bundleWalk) spirv(data []byte, s *Section) {
	offset := w.base + s.Offset
	w.emit(Nested{Name: "spirv", Image: "spirv", Format: "section", Section: s.Name, Bundle: offset, Offset: offset, Data: data})
}

// format yields the code objects that one of the formats lists in a section.
func (w *bundleWalk) format(data []byte, s *Section) {
	offset := w.base + s.Offset
	list, isFormat := formatEntries(w.name, data, w.formats)
	if !isFormat {
		w.failIn("debug information of kernels", offset, s.Name, errors.New("no format that is known here"))
		return
	}
	for n, err := range list {
		if err != nil {
			w.failIn("debug information of kernels", offset, s.Name, err)
			continue
		}
		n.Section, n.Bundle, n.Offset = s.Name, offset, offset+n.Offset
		w.emit(n)
	}
}

// A bundleWalk yields the entries of bundles of one file.
type bundleWalk struct {
	name    string
	yield   func(Nested, error) bool
	stopped bool
	count   int
	// left is how many bytes may still be unpacked. Bundles for many processors
	// are alike, and shrink to a fiftieth.
	left uint64
	// inner is how many bytes of images may still be looked into, and isInner that one is
	// looked into now: images in it are not.
	inner   uint64
	isInner bool
	formats Formats // nil: there are none
	packing string  // of the offload binary that contains the bundles
	// For a member of an archive: its bytes begin at base of the file, or are another
	// file's.
	member, file string
	base         uint64
}

func newBundleWalk(name string, size uint64, yield func(Nested, error) bool) *bundleWalk {
	return &bundleWalk{name: name, yield: yield, inner: 2 * size, left: min(unpackedFloor+unpackedRatio*size, maxUnpacked)}
}

func (w *bundleWalk) emit(n Nested) {
	if w.stopped {
		return
	}
	if w.count == maxNested {
		w.stopped = true
		w.yield(Nested{}, fmt.Errorf("%s: offset %#x: more than %d nested code objects", w.name, n.Bundle, maxNested))
		return
	}
	n.Index, n.Member, n.File, n.Packing = w.count, w.member, w.file, cmp.Or(n.Packing, w.packing)
	if n.Image == "" && len(n.Data) > 0 {
		n.Image = imageOf(n.Data)
	}
	if w.file != "" { // which is mapped only now
		if uint64(len(n.Data)) > w.left {
			w.failIn("code object", n.Offset, n.Section, ErrTooLarge)
			return
		}
		w.left -= uint64(len(n.Data))
		if err := Guard(func() error { n.Data = bytes.Clone(n.Data); return nil }); err != nil {
			w.failIn("code object", n.Offset, n.Section, err)
			return
		}
	}
	w.count++
	w.stopped = !w.yield(n, nil)
}

func (w *bundleWalk) fail(offset uint64, section string, err error) {
	w.failIn("offload bundle", offset, section, err)
}

// failIn yields an error of something in the file.
func (w *bundleWalk) failIn(what string, offset uint64, section string, err error) {
	where := w.name
	if w.member != "" {
		where += "(" + w.member + ")"
	}
	if section != "" {
		where += ": section " + section
	}
	w.stopped = !w.yield(Nested{}, fmt.Errorf("%s: %s at offset %#x: %w", where, what, offset, err))
}

// imageOf returns the kind of an image that is no code object, by its first bytes.
func imageOf(data []byte) (what string) {
	_ = Guard(func() error {
		for _, m := range []struct{ magic, what string }{
			{"BC\xc0\xde", "bitcode"}, {"\xde\xc0\x17\x0b", "bitcode"}, {"\x03\x02\x23\x07", "spirv"}, {"\x50\xed\x55\xba", "fatbinary"},
		} {
			if bytes.HasPrefix(data, []byte(m.magic)) {
				what = m.what
			}
		}
		return nil
	})
	return what
}

// container yields the entries of a file, or of an image, by its first bytes. It is false where
// these are of no container.
func (w *bundleWalk) container(data []byte, offset uint64, section string) bool {
	var read func(data []byte, offset uint64, section string)
	_ = Guard(func() error {
		switch {
		case isBundleMagic(data):
			read = w.all
		case bytes.HasPrefix(data, []byte(offloadMagic)):
			read = w.offload
		case isFatBinary(data):
			read = w.fat
		}
		return nil
	})
	if read == nil {
		return false
	}
	read(data, offset, section)
	return true
}

// all yields the entries of the bundles in data, which is at an offset of the
// file. There may be padding between bundles.
func (w *bundleWalk) all(data []byte, offset uint64, section string) {
	for position := uint64(0); !w.stopped; {
		var b bundle
		found := false
		err := Guard(func() error {
			skip, ok := nextBundle(data[position:])
			if !ok {
				return nil
			}
			found, position = true, position+skip
			return w.read(&b, data[position:])
		})
		if !found {
			if err != nil {
				w.fail(offset+position, section, err)
			}
			return
		}
		start := position
		if err != nil {
			w.fail(offset+position, section, err)
		}
		position += max(b.size, uint64(len(packedMagic)))
		for _, e := range b.entries {
			n := Nested{Name: e.name, Format: "offload bundle", Section: section, Bundle: offset + start, Packing: b.packing, Offset: e.offset, Data: e.data}
			if b.packing == "" {
				n.Offset += offset + start
			}
			w.emit(n)
		}
	}
}

// nextBundle finds the next magic bytes.
func nextBundle(data []byte) (skip uint64, ok bool) {
	plain, packed := bytes.Index(data, []byte(bundleMagic)), -1
	if plain != 0 {
		before := data
		if plain > 0 {
			before = data[:plain]
		}
		packed = bytes.Index(before, []byte(packedMagic))
	}
	switch {
	case packed >= 0:
		return uint64(packed), true
	case plain >= 0:
		return uint64(plain), true
	}
	return 0, false
}

// A bundle is a bundle that was read; with an error, it has the entries before that.
type bundle struct {
	entries []bundleEntry
	size    uint64 // in the file; 0 where that is not known
	packing string
}

type bundleEntry struct {
	name   string
	offset uint64 // in the bundle
	data   []byte
}

// read reads the bundle that data begins with.
func (w *bundleWalk) read(b *bundle, data []byte) error {
	if !bytes.HasPrefix(data, []byte(packedMagic)) {
		return w.readEntries(b, data)
	}
	unpacked, err := w.unpack(b, data)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(unpacked, []byte(bundleMagic)) {
		return fmt.Errorf("what is compressed begins with %q, expected %q", unpacked[:min(len(unpacked), len(bundleMagic))], bundleMagic)
	}
	size := b.size
	err = w.readEntries(b, unpacked)
	b.size = size
	return err
}

// readEntries reads a bundle that is not compressed: the magic, the number of
// entries, for each its offset, its size and the length of its ID, each number
// of 8 bytes, then the ID.
func (w *bundleWalk) readEntries(b *bundle, data []byte) error {
	const head, fixed = len(bundleMagic) + 8, 24
	if len(data) < head {
		return fmt.Errorf("%d bytes, expected the number of entries behind the magic", len(data))
	}
	count := binary.LittleEndian.Uint64(data[len(bundleMagic):])
	if most := uint64(len(data)-head) / fixed; count > most {
		return fmt.Errorf("%d entries, expected at most %d in %d bytes", count, most, len(data))
	}
	next, end := uint64(head), uint64(head)
	for i := range count {
		if uint64(len(b.entries)+w.count) > maxNested {
			break // emit reports it
		}
		header, ok := slice(data, next, fixed)
		if !ok {
			return fmt.Errorf("entry %d at %#x is not in its %d bytes", i, next, len(data))
		}
		offset, size, length := binary.LittleEndian.Uint64(header), binary.LittleEndian.Uint64(header[8:]), binary.LittleEndian.Uint64(header[16:])
		id, ok := slice(data, next+fixed, length)
		if !ok || length > maxNestedName || !utf8.Valid(id) {
			return fmt.Errorf("entry %d: an ID of %d bytes at %#x, expected at most %d of UTF-8 in the bundle", i, length, next+fixed, maxNestedName)
		}
		next += fixed + length
		end = max(end, next)
		e := bundleEntry{name: string(id), offset: offset}
		if size > 0 {
			if e.data, ok = slice(data, offset, size); !ok {
				return fmt.Errorf("entry %d, %s: offset %#x, size %#x is not in its %d bytes", i, e.name, offset, size, len(data))
			}
			end = max(end, offset+size)
		}
		b.entries = append(b.entries, e)
	}
	b.size = end
	return nil
}

// A packedHeader is the header of a compressed bundle: the magic, a version and a method of 2 bytes
// each, the size of all of it (not in version 1), the unpacked size (of 4 bytes each, in version 3
// of 8), and the first 8 bytes of the unpacked bundle's MD5.
type packedHeader struct {
	version, method uint16
	length          int    // of the header, in bytes
	total           uint64 // bytes of the bundle; 0: it goes on to its end (version 1)
	size            uint64 // bytes of the unpacked bundle
	md5             []byte
}

func readPackedHeader(data []byte) (h packedHeader, err error) {
	header, _ := slice(data, 0, min(uint64(len(data)), 32))
	if len(header) < 8 {
		return h, fmt.Errorf("%d bytes, expected a version and a method behind the magic", len(data))
	}
	h.version, h.method = binary.LittleEndian.Uint16(header[4:]), binary.LittleEndian.Uint16(header[6:])
	h.length = map[uint16]int{1: 20, 2: 24, 3: 32}[h.version]
	switch {
	case h.length == 0:
		return h, fmt.Errorf("version %d of compressed bundles, expected 1 to 3", h.version)
	case len(header) < h.length:
		return h, fmt.Errorf("%d bytes, expected a header of %d", len(data), h.length)
	}
	switch h.version {
	case 1:
		h.size = uint64(binary.LittleEndian.Uint32(header[8:]))
	case 2:
		h.total, h.size = uint64(binary.LittleEndian.Uint32(header[8:])), uint64(binary.LittleEndian.Uint32(header[12:]))
	case 3:
		h.total, h.size = binary.LittleEndian.Uint64(header[8:]), binary.LittleEndian.Uint64(header[16:])
	}
	if h.version > 1 && (h.total < uint64(h.length) || h.total > uint64(len(data))) {
		return h, fmt.Errorf("a size of %d bytes, expected %d to %d", h.total, h.length, len(data))
	}
	h.md5 = header[h.length-8 : h.length]
	return h, nil
}

// unpack unpacks a compressed bundle.
func (w *bundleWalk) unpack(b *bundle, data []byte) ([]byte, error) {
	h, err := readPackedHeader(data)
	if err != nil {
		return nil, err
	}
	if h.version > 1 {
		b.size = h.total
		data = data[:h.total]
	}
	var open unpacker
	packed := data[h.length:]
	switch h.method {
	case 0:
		b.packing, open = "zlib", newZLIB
	case 1:
		b.packing, open = "zstd", newZSTD
		if h.version == 1 {
			n, err := zstdFrame(packed)
			if err != nil {
				return nil, err
			}
			packed = packed[:n]
		}
	default:
		return nil, fmt.Errorf("compression method %d, expected 0 (zlib) or 1 (zstd)", h.method)
	}
	if h.size > w.left {
		return nil, fmt.Errorf("%w: %d bytes more, expected at most %d", ErrTooLarge, h.size, w.left)
	}
	w.left -= h.size
	r := bytes.NewReader(packed)
	unpacked, err := unpack(r, h.size, open)
	if err != nil {
		return nil, err
	}
	if h.version == 1 {
		b.size = uint64(h.length + len(packed) - r.Len())
	}
	if sum := md5.Sum(unpacked); !bytes.Equal(sum[:8], h.md5) {
		return nil, fmt.Errorf("unpacked to bytes whose MD5 begins with %x, expected %x", sum[:8], h.md5)
	}
	return unpacked, nil
}

// zstdFrame is the size of the frame that data begins with (RFC 8878, 3.1.1).
func zstdFrame(data []byte) (int, error) {
	var h zstd.Header
	if err := h.Decode(data); err != nil {
		return 0, fmt.Errorf("zstd frame: %w", err)
	}
	offset := h.HeaderSize
	for last := h.Skippable; !last; {
		if len(data)-offset < 3 {
			return 0, fmt.Errorf("zstd block at %#x is not in the %d bytes", offset, len(data))
		}
		block := int(data[offset]) | int(data[offset+1])<<8 | int(data[offset+2])<<16
		last = block&1 != 0
		size := block >> 3
		if block>>1&3 == 1 { // one byte, repeated
			size = 1
		}
		if offset += 3; len(data)-offset < size {
			return 0, fmt.Errorf("zstd block at %#x has %d bytes, which are not in the %d", offset-3, size, len(data))
		}
		offset += size
	}
	if h.HasCheckSum {
		offset += 4
	}
	if offset > len(data) {
		return 0, fmt.Errorf("zstd checksum is not in the %d bytes", len(data))
	}
	return offset, nil
}

// OpenNested opens the code object that a path names: a file, or a code object
// inside one, FILE#NAME, where NAME is an entry's ID, the end of one behind a
// dash ("gfx90a"), or its index. A file that has such a name as it is goes first.
// The file may have one of the formats; nil: there are none. The result is an ELF file; the error
// of another file lists the code objects that can be named in it.
func OpenNested(path string, formats Formats) (*Object, error) {
	path, err := InDSYM(path)
	if err != nil {
		return nil, err
	}
	file, name, ok := cutNested(path)
	m, err := mapPath(path, true)
	if err == nil || !ok || !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return nil, err
		}
		if list, ok := nestedIn(path, m.data, formats, folderOf(m)); ok && !isUniversal(m.data) {
			return nil, errors.Join(notItself(path, m.data, list), m.Close())
		}
		return openMapping(m)
	}
	if file, err = InDSYM(file); err != nil {
		return nil, err
	}
	if m, err = mapPath(file, true); err != nil {
		return nil, err
	}
	return openEntry(m, path, name, formats, folderOf(m))
}

// folderOf returns the folder of a file that the user named, whose contents may name other files of
// this machine to open; "" for another file.
func folderOf(m *Mapping) string {
	if m.isElsewhere {
		return ""
	}
	return filepath.Dir(m.path)
}

// notItself returns the error of a file that is no code object, but may contain some.
func notItself(path string, data []byte, list iter.Seq2[Nested, error]) error {
	what := "a file that holds code objects"
	switch {
	case IsBundle(data):
		what = "an offload bundle"
		if isFatBinary(data) {
			what = "a fat binary"
		}
	default:
		found := false
		for _, err := range list {
			if err != nil {
				return fmt.Errorf("%w: %w", err, ErrNotELF)
			}
			found = true
			break
		}
		switch isArchive := IsArchive(data); {
		case !found && isArchive:
			return fmt.Errorf("%s: %w, but an archive without code of accelerators", path, ErrNotELF)
		case !found:
			return fmt.Errorf("%s: %w", path, ErrNotELF)
		}
	}
	return fmt.Errorf("%s: %w, but %s: name a code object in it, as %s#NAME or %s#INDEX; `dump notes` lists them", path, ErrNotELF, what, path, path)
}

// cutNested splits the path of a nested code object.
func cutNested(path string) (file, name string, ok bool) {
	i := strings.LastIndexByte(path, '#')
	if i <= 0 || i == len(path)-1 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

// openEntry makes an object of the entry of a file that a name means. It keeps
// the mapping, and closes it on error. dir is as in entryHost.
func openEntry(m *Mapping, path, name string, formats Formats, dir string) (*Object, error) {
	h := entryHost{m.path, m.data, formats, dir}
	o, err := h.open(path, name)
	if err != nil {
		_ = m.Close()
		return nil, err
	}
	o.mapping = m
	return o, nil
}

// NewNestedWith makes an object of bytes as OpenNested does of a file: path
// is FILE#NAME, and the bytes are FILE's.
func NewNestedWith(path string, data []byte, formats Formats) (*Object, error) {
	file, name, ok := cutNested(path)
	if !ok {
		return nil, fmt.Errorf("%s: %w: expected FILE#NAME", path, ErrNoNested)
	}
	h := entryHost{file: file, data: data, formats: formats}
	return h.open(path, name)
}

// An entryHost is a file with code objects inside.
type entryHost struct {
	file    string
	data    []byte
	formats Formats
	dir     string // of the members of a thin archive; "": these are not opened
}

// open makes an object of the entry that a name means, which may have one of the formats itself.
func (h *entryHost) open(path, name string) (*Object, error) {
	found, err := h.entry(path, name)
	if err != nil {
		return nil, err
	}
	switch {
	case found.Image != "":
		return nil, fmt.Errorf("%s: %w, but %s", path, ErrNotELF, found.Image)
	case found.Packing == "" && found.File == "":
		return NewWith(path, found.Data, h.formats)
	}
	// The other code objects of an unpacked bundle are not kept.
	o, err := NewWith(path, bytes.Clone(found.Data), h.formats)
	if err == nil {
		o.keptBytes.Add(int64(len(found.Data)))
	}
	return o, err
}

// MapNested maps the file of FILE#NAME, and returns the bytes of the entry of that name, which need
// not be a code object. It uses no formats. The caller closes the mapping.
func MapNested(path string) (m *Mapping, data []byte, err error) {
	file, name, ok := cutNested(path)
	if !ok {
		return nil, nil, fmt.Errorf("%s: %w: expected FILE#NAME", path, ErrNoNested)
	}
	if m, err = mapPath(file, true); err != nil {
		return nil, nil, err
	}
	h := entryHost{file: file, data: m.data, dir: folderOf(m)}
	found, err := h.entry(path, name)
	if err != nil {
		return nil, nil, errors.Join(err, m.Close())
	}
	return m, found.Data, nil
}

// isNamed reports whether the entry has a name: its ID or the end of its ID behind a dash, and
// before it the member of the archive, or that alone. A fat binary's may have its source before it.
func (n *Nested) isNamed(name string) bool {
	if n.Member != "" {
		if name == n.Member && n.Name == n.Member {
			return true
		}
		name = strings.TrimPrefix(name, n.Member+":")
	}
	if n.Source != "" {
		name = strings.TrimPrefix(name, n.Source+":")
	}
	return n.Name == name || n.Name != "" && strings.HasSuffix(n.Name, "-"+name) && len(n.Data) > 0
}

// entry returns the entry that a name means; path is its path in messages.
func (h *entryHost) entry(path, name string) (one Nested, err error) {
	list, ok := nestedIn(h.file, h.data, h.formats, h.dir)
	if !ok {
		host, err := New(h.file, h.data)
		if err != nil {
			return one, err
		}
		list = host.Nested(h.formats)
	}
	index, err := strconv.Atoi(name)
	byIndex := err == nil
	var found []Nested
	var problems []error
	for n, err := range list {
		switch {
		case err != nil:
			problems = append(problems, err)
		case byIndex && n.Index != index:
		case !byIndex && !n.isNamed(name):
		default:
			found = append(found, n)
		}
	}
	switch {
	case len(found) == 0:
		return one, errors.Join(append([]error{fmt.Errorf("%s: %w", path, ErrNoNested)}, problems...)...)
	case len(found) > 1:
		text := &strings.Builder{}
		for i, n := range found[:min(len(found), 8)] {
			if i > 0 {
				text.WriteString(", ")
			}
			if n.Source != "" {
				n.Name = n.Source + ":" + n.Name
			}
			if n.Member != "" && n.Member != n.Name {
				n.Name = n.Member + ":" + n.Name
			}
			fmt.Fprintf(text, "%d (%s)", n.Index, n.Name)
		}
		return one, fmt.Errorf("%s: %d code objects have that name; name one by its index: %s", path, len(found), text)
	case len(found[0].Data) == 0 && found[0].Format == "offload binary":
		return one, fmt.Errorf("%s: %s has no bytes", path, found[0].Name)
	case len(found[0].Data) == 0:
		return one, fmt.Errorf("%s: %s has no bytes: it stands for the host's own code", path, found[0].Name)
	}
	return found[0], nil
}
