// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/pierrec/lz4/v4"
)

// A fat binary is NVIDIA's container of code for several processors: a header (magic, version,
// size of the header, size of the rest) and entries, each a header and its contents, padded to 8
// bytes. The layout is not documented; it was learned from files that fatbinary of CUDA 13 made.
const (
	fatMagic  = "\x50\xed\x55\xba"
	fatHeader = 16
	fatEntry  = 64
	fatGroup  = 256 // the kind of an entry that stands for several, compressed as one
)

// fatKinds are the kinds of entries that are no cubins, which are kind 2.
var fatKinds = map[uint16]string{1: "ptx", 8: "nvvm"}

// The flags of an entry.
const (
	fatLZ4      = 1 << 13
	fatZSTD     = 1 << 15
	fatHidden   = 1 << 16 // the contents are encrypted; as nvcc does with code that nvlink compiles further
	fatSpecific = 1 << 20 // sm_90a: for this processor alone
	fatFamily   = 1 << 21 // sm_100f: for the processors of this family
)

// isFatBinary reports whether bytes begin as a fat binary does.
func isFatBinary(data []byte) bool { return bytes.HasPrefix(data, []byte(fatMagic)) }

func (w *bundleWalk) fatSection(data []byte, s *Section) { w.fat(data, w.base+s.Offset, s.Name) }

// fat yields the entries of the fat binaries in data, which is at an offset of the file. There may be
// padding between them.
func (w *bundleWalk) fat(data []byte, offset uint64, section string) {
	for position := uint64(0); !w.stopped; {
		b := fatBinary{walk: w}
		found := false
		err := Guard(func() error {
			i := bytes.Index(data[position:], []byte(fatMagic))
			if i < 0 {
				return nil
			}
			found, position = true, position+uint64(i)
			return b.read(data[position:])
		})
		if !found && err == nil {
			return
		}
		for _, n := range b.images {
			n.Format, n.Section, n.Bundle = "fat binary", section, offset+position
			if n.Packing == "" {
				n.Offset += offset + position
			}
			w.emit(n)
		}
		if err != nil {
			w.failIn("fat binary", offset+position, section, err)
		}
		if !found {
			return
		}
		position += max(b.size, uint64(len(fatMagic)))
	}
}

// A fatBinary is a fat binary that was read; with an error, it has the entries that could be read.
type fatBinary struct {
	walk   *bundleWalk
	images []Nested
	size   uint64 // in the file; 0 where that is not known
}

// read reads the fat binary that data begins with. An entry that cannot be unpacked is left out, and
// its error returned.
func (b *fatBinary) read(data []byte) error {
	le := binary.LittleEndian
	if len(data) < fatHeader {
		return fmt.Errorf("%d bytes, expected a header of %d", len(data), fatHeader)
	}
	version, header, size := le.Uint16(data[4:]), uint64(le.Uint16(data[6:])), le.Uint64(data[8:])
	switch {
	case version != 1:
		return fmt.Errorf("version %d, expected 1", version)
	case header < fatHeader || header > uint64(len(data)):
		return fmt.Errorf("a header of %d bytes, expected %d to %d", header, fatHeader, len(data))
	case size > uint64(len(data))-header:
		return fmt.Errorf("a size of %d bytes, expected at most %d", size, uint64(len(data))-header)
	}
	b.size = header + size
	var problems []error
	for position := header; position < b.size && len(b.images)+b.walk.count <= maxNested; {
		e, err := readFatEntry(data[:b.size], position)
		if err != nil {
			return errors.Join(append(problems, fmt.Errorf("entry at %#x: %w", position, err))...)
		}
		if err := b.entry(&e); err != nil && len(problems) < maxFatProblems {
			problems = append(problems, fmt.Errorf("entry at %#x, %s: %w", position, e.name(), err))
		}
		position = e.next
	}
	return errors.Join(problems...)
}

// maxFatProblems bounds the entries of a fat binary that are reported.
const maxFatProblems = 8

// A fatHead has the members of the header of an entry.
type fatHead struct {
	kind      uint16
	processor uint32
	flags     uint64
	packed    uint64 // bytes of the contents where they are compressed
	unpacked  uint64
	source    string // what the compiler was told that it compiles: a file's name
	options   uint32 // where the header has options of the compiler; 0: it has none
}

// A fatEntryBytes is an entry of a fat binary.
type fatEntryBytes struct {
	fatHead
	header, contents []byte
	offset           uint64 // of the contents
	next             uint64 // offset of the entry behind it
}

// readFatEntry reads the entry at an offset.
func readFatEntry(data []byte, offset uint64) (e fatEntryBytes, err error) {
	head, ok := slice(data, offset, fatEntry)
	if !ok {
		return e, fmt.Errorf("%d bytes are left, expected a header of %d", uint64(len(data))-min(offset, uint64(len(data))), fatEntry)
	}
	le := binary.LittleEndian
	size, padded := uint64(le.Uint32(head[4:])), le.Uint64(head[8:])
	if e.header, ok = slice(data, offset, size); !ok || size < fatEntry {
		return e, fmt.Errorf("a header of %d bytes, expected %d to %d", size, fatEntry, uint64(len(data))-offset)
	}
	if e.contents, ok = slice(data, offset+size, padded); !ok {
		return e, fmt.Errorf("contents of %d bytes, expected at most %d", padded, uint64(len(data))-offset-size)
	}
	e.offset, e.next = offset+size, offset+size+padded
	e.fatHead, err = readFatHead(e.header)
	return e, err
}

// readFatHead reads the members of a header that an entry and a part of a group have in common. The
// source's name is in the header, at an offset from its start.
func readFatHead(b []byte) (h fatHead, err error) {
	le := binary.LittleEndian
	h = fatHead{
		kind: le.Uint16(b), processor: le.Uint32(b[28:]), flags: le.Uint64(b[40:]),
		packed: uint64(le.Uint32(b[16:])), unpacked: le.Uint64(b[56:]), options: le.Uint32(b[20:]),
	}
	start, length := uint64(le.Uint32(b[32:])), uint64(le.Uint32(b[36:]))
	source, ok := slice(b, start, length)
	if !ok || length > maxNestedName {
		return h, fmt.Errorf("a source's name of %d bytes at %#x, expected at most %d in the header of %d", length, start, maxNestedName, len(b))
	}
	h.source = strings.ToValidUTF8(strings.TrimRight(string(source), "\x00"), string(utf8.RuneError))
	return h, nil
}

// name returns the ID of an entry as that of offload bundles: the kind of offloading, the triple and
// the processor, which nvcc calls compute_90 where it compiles for it later.
func (h *fatHead) name() string {
	processor := "sm"
	if fatKinds[h.kind] != "" {
		processor = "compute"
	}
	suffix := ""
	switch {
	case h.flags&fatSpecific != 0:
		suffix = "a"
	case h.flags&fatFamily != 0:
		suffix = "f"
	}
	return fmt.Sprintf("cuda-nvptx64-nvidia-cuda--%s_%d%s", processor, h.processor, suffix)
}

// image returns the kind of an entry's contents; "" for a cubin.
func (h *fatHead) image() string {
	if h.kind == 2 {
		return ""
	}
	return cmp.Or(fatKinds[h.kind], fmt.Sprintf("kind %d", h.kind))
}

// entry adds the code objects of an entry.
func (b *fatBinary) entry(e *fatEntryBytes) error {
	contents, packing, err := b.walk.unpackFat(&e.fatHead, e.contents)
	if err != nil {
		return err
	}
	if e.kind != fatGroup {
		contents = withoutPadding(contents, e.image())
	}
	offset := e.offset
	if packing != "" {
		offset = 0
	}
	if e.kind == fatGroup {
		return b.group(e.header, contents, packing, offset)
	}
	b.images = append(b.images, Nested{Name: e.name(), Image: e.image(), Source: e.source, Packing: packing, Offset: offset, Data: contents})
	return nil
}

// withoutPadding drops the padding of contents, which the header counts where they are not
// compressed, and the zero bytes behind a text: a cubin is known by its bytes to the last one (see
// CubinID).
func withoutPadding(data []byte, image string) []byte {
	switch image {
	case "ptx":
		return bytes.TrimRight(data, "\x00")
	case "":
		if end := cubinEnd(data); end <= uint64(len(data)) && uint64(len(data))-end < 8 {
			return data[:end]
		}
	}
	return data
}

// cubinEnd returns where the last table or section of a cubin ends, which is an ELF file of 64 bits
// and of the little-endian order; 0 where it is none.
func cubinEnd(data []byte) (end uint64) {
	le := binary.LittleEndian
	if len(data) < 64 || string(data[:6]) != "\x7fELF\x02\x01" {
		return 0
	}
	programs, sections := le.Uint64(data[32:]), le.Uint64(data[40:])
	count, size := uint64(le.Uint16(data[60:])), uint64(le.Uint16(data[58:]))
	end = max(64, programs+uint64(le.Uint16(data[54:]))*uint64(le.Uint16(data[56:])), sections+count*size)
	for i := range count {
		header, ok := slice(data, sections+i*size, 64)
		if !ok {
			return 0
		}
		if le.Uint32(header[4:]) != uint32(elf.SHT_NOBITS) {
			end = max(end, le.Uint64(header[24:])+le.Uint64(header[32:]))
		}
	}
	return end
}

// unpackFat returns the contents of an entry, unpacked.
func (w *bundleWalk) unpackFat(h *fatHead, contents []byte) (unpacked []byte, packing string, err error) {
	isLZ4, isZSTD := h.flags&fatLZ4 != 0, h.flags&fatZSTD != 0
	if h.flags&fatHidden != 0 {
		return contents, "", nil
	}
	if !isLZ4 && !isZSTD {
		if h.packed != 0 {
			return nil, "", fmt.Errorf("compressed to %d bytes, and flags %#x, expected one for lz4 (%#x) or zstd (%#x)", h.packed, h.flags, fatLZ4, fatZSTD)
		}
		return contents, "", nil
	}
	if h.packed > uint64(len(contents)) {
		return nil, "", fmt.Errorf("compressed to %d bytes, expected at most %d", h.packed, len(contents))
	}
	contents = contents[:h.packed]
	if h.unpacked > w.left {
		return nil, "", fmt.Errorf("%w: %d bytes more, expected at most %d", ErrTooLarge, h.unpacked, w.left)
	}
	w.left -= h.unpacked
	if isZSTD {
		unpacked, err = unpack(bytes.NewReader(contents), h.unpacked, newZSTD)
		return unpacked, "zstd", err
	}
	unpacked, err = unpackLZ4(contents, h.unpacked)
	return unpacked, "lz4", err
}

// lz4Ratio is the most bytes that one byte of a block of lz4 makes.
const lz4Ratio = 255

// unpackLZ4 makes exactly size bytes of a block of lz4, which has no header.
func unpackLZ4(packed []byte, size uint64) ([]byte, error) {
	if most := lz4Ratio * uint64(len(packed)); size > most {
		return nil, fmt.Errorf("decompressing: %d bytes, expected at most %d of %d", size, most, len(packed))
	}
	b := make([]byte, size)
	switch n, err := lz4.UncompressBlock(packed, b); {
	case err != nil:
		return nil, fmt.Errorf("decompressing: %w", err)
	case uint64(n) != size:
		return nil, fmt.Errorf("decompressing: %d bytes, expected %d", n, size)
	}
	return b, nil
}

// group adds the code objects of an entry that stands for several. Its header goes on with how many
// there are, the size of their headers, and these, each with the offset of its contents in place of
// a size of its own.
func (b *fatBinary) group(header, contents []byte, packing string, offset uint64) error {
	le := binary.LittleEndian
	if len(header) < fatEntry+8 {
		return fmt.Errorf("a header of %d bytes, expected the number of its parts at %#x", len(header), fatEntry)
	}
	count, parts := uint64(le.Uint32(header[fatEntry:])), header[fatEntry+8:]
	if most := uint64(len(parts)) / fatEntry; count > most {
		return fmt.Errorf("%d parts, expected at most %d in a header of %d bytes", count, most, len(header))
	}
	for i := range count {
		if len(parts) < fatEntry {
			return fmt.Errorf("part %d: %d bytes are left of the header, expected %d", i, len(parts), fatEntry)
		}
		start, size := uint64(le.Uint32(parts[4:])), le.Uint64(parts[8:])
		h, err := readFatHead(parts)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		data, ok := slice(contents, start, size)
		if !ok {
			return fmt.Errorf("part %d: %d bytes at %#x are not in its %d", i, size, start, len(contents))
		}
		data = withoutPadding(data, h.image())
		b.images = append(b.images, Nested{Name: h.name(), Image: h.image(), Source: h.source, Packing: packing, Offset: offset + start, Data: data})
		length, err := h.length(parts)
		if err != nil {
			return fmt.Errorf("part %d: %w", i, err)
		}
		parts = parts[length:]
	}
	return nil
}

// length returns the size of a header in a group: it ends with the source's name or the options, and
// the zero byte of each, padded to 8 bytes.
func (h *fatHead) length(b []byte) (uint64, error) {
	le := binary.LittleEndian
	end := uint64(fatEntry)
	if n := le.Uint32(b[36:]); n > 0 {
		end = uint64(le.Uint32(b[32:])) + uint64(n) + 1
	}
	if h.options > 0 {
		pair, ok := slice(b, uint64(h.options), 8)
		if !ok {
			return 0, fmt.Errorf("options at %#x, expected them in %d bytes", h.options, len(b))
		}
		end = max(end, uint64(le.Uint32(pair))+uint64(le.Uint32(pair[4:]))+1)
	}
	end = max((end+7)&^7, fatEntry)
	if end > uint64(len(b)) {
		return 0, fmt.Errorf("a header of %d bytes, expected at most %d", end, len(b))
	}
	return end, nil
}
