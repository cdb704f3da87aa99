// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// An offload binary (llvm/Object/OffloadBinary.h) is the container of LLVM's newer drivers for images
// of accelerators: a header, entries, the strings of each as pairs of a key and a value, and
// the images. Offsets are from its start.
const (
	offloadMagic  = "\x10\xff\x10\xad"
	offloadHeader = 32 // magic, version, size, offset of the entries and how many there are
	offloadEntry  = 40 // kinds of the image and of the producer, flags, where strings and image are
	// offloadType is SHT_LLVM_OFFLOADING.
	offloadType     = 0x6fff4c0b
	offloadVersions = 3
)

// offloadImages and offloadKinds are the names of the numbers in an entry. Producers are bits.
var (
	offloadImages = []string{"", "", "bitcode", "cubin", "fatbinary", "ptx", "spirv"}
	offloadKinds  = map[uint16]string{1: "openmp", 2: "cuda", 4: "hip", 8: "sycl"}
)

// offload yields the images of the offload binaries in data, which is at an offset of the file.
func (w *bundleWalk) offload(data []byte, offset uint64, section string) {
	for position := uint64(0); !w.stopped; {
		var b offloadBinary
		found := false
		err := Guard(func() error {
			i := bytes.Index(data[position:], []byte(offloadMagic))
			if i < 0 {
				return nil
			}
			found, position = true, position+uint64(i)
			return w.readOffload(&b, data[position:])
		})
		if !found && err == nil {
			return
		}
		if err != nil {
			w.failIn("offload binary", offset+position, section, err)
		}
		if !found {
			return
		}
		for _, n := range b.images {
			n.Format, n.Section, n.Bundle = "offload binary", section, offset+position
			if n.Packing == "" {
				n.Offset += offset + position
			}
			w.image(n)
		}
		position += max(b.size, uint64(len(offloadMagic)))
	}
}

// image yields an image, or the entries of one that is a bundle.
func (w *bundleWalk) image(n Nested) {
	isBundle := n.Image == "fatbinary" && IsBundle(n.Data)
	if !isBundle || w.isInner || uint64(len(n.Data)) > w.inner {
		w.emit(n)
		return
	}
	w.inner -= uint64(len(n.Data))
	w.packing, w.isInner = n.Packing, true
	w.container(n.Data, n.Offset, n.Section)
	w.packing, w.isInner = "", false
}

// An offloadBinary is a binary that was read; with an error, it has the images before that.
type offloadBinary struct {
	images  []Nested
	size    uint64 // in the file; 0 where that is not known
	strings uint64 // pairs of strings that were read
}

// readOffload reads the binary that data begins with.
func (w *bundleWalk) readOffload(b *offloadBinary, data []byte) error {
	le := binary.LittleEndian
	if len(data) < offloadHeader {
		return fmt.Errorf("%d bytes, expected a header of %d", len(data), offloadHeader)
	}
	version, size, entries, count := le.Uint32(data[4:]), le.Uint64(data[8:]), le.Uint64(data[16:]), le.Uint64(data[24:])
	switch {
	case version == 0 || version > offloadVersions:
		return fmt.Errorf("version %d, expected 1 to %d", version, offloadVersions)
	case size < offloadHeader || size > uint64(len(data)):
		return fmt.Errorf("a size of %d bytes, expected %d to %d", size, offloadHeader, len(data))
	}
	b.size = size
	data = data[:size]
	packing := ""
	if version == 1 {
		count = 1
	}
	if version >= 3 && size >= offloadHeader+8 {
		if whole := le.Uint64(data[offloadHeader:]); whole != 0 {
			var err error
			if data, packing, err = w.unpackOffload(data, entries, whole); err != nil {
				return err
			}
		}
	}
	if most := uint64(len(data)) / offloadEntry; count > most {
		return fmt.Errorf("%d entries, expected at most %d in %d bytes", count, most, len(data))
	}
	for i := range count {
		if uint64(len(b.images)+w.count) > maxNested {
			break // emit reports it
		}
		entry, ok := slice(data, entries, offloadEntry)
		if !ok {
			return fmt.Errorf("entry %d at %#x is not in its %d bytes", i, entries, len(data))
		}
		entries += offloadEntry
		n, err := b.entry(data, entry, version)
		if err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		n.Packing = packing
		b.images = append(b.images, n)
	}
	return nil
}

// unpackOffload returns a binary whose entries, strings and images are compressed, unpacked.
func (w *bundleWalk) unpackOffload(data []byte, entries, whole uint64) (unpacked []byte, packing string, err error) {
	switch {
	case entries < offloadHeader+8 || entries > uint64(len(data)) || whole < entries:
		return nil, "", fmt.Errorf("entries at %#x of a binary of %d bytes that unpacks to %d", entries, len(data), whole)
	case whole-entries > w.left:
		return nil, "", fmt.Errorf("%w: %d bytes more, expected at most %d", ErrTooLarge, whole-entries, w.left)
	}
	w.left -= whole - entries
	packing, open := "zlib", unpacker(newZLIB)
	if bytes.HasPrefix(data[entries:], []byte("\x28\xb5\x2f\xfd")) {
		packing, open = "zstd", newZSTD
	}
	body, err := unpack(bytes.NewReader(data[entries:]), whole-entries, open)
	if err != nil {
		return nil, packing, err
	}
	return append(bytes.Clone(data[:entries]), body...), packing, nil
}

// entry reads an entry.
func (b *offloadBinary) entry(data, entry []byte, version uint32) (n Nested, err error) {
	le := binary.LittleEndian
	image, kind, flags := le.Uint16(entry), le.Uint16(entry[2:]), le.Uint32(entry[4:])
	texts, err := b.readStrings(data, le.Uint64(entry[8:]), le.Uint64(entry[16:]), version)
	if err != nil {
		return n, err
	}
	var ok bool
	n.Offset = le.Uint64(entry[24:])
	if n.Data, ok = slice(data, n.Offset, le.Uint64(entry[32:])); !ok {
		return n, fmt.Errorf("offset %#x, size %#x is not in its %d bytes", n.Offset, le.Uint64(entry[32:]), len(data))
	}
	name, ok := offloadKinds[kind]
	if !ok {
		name = fmt.Sprintf("kind%d", kind)
	}
	// The ID of a bundle's entry has a place for the environment of the triple.
	n.Name = name + "-" + texts["triple"] + strings.Repeat("-", max(0, 3-strings.Count(texts["triple"], "-"))) + "-" + texts["arch"]
	if strings.Count(texts["triple"], "-") > 3 {
		return n, fmt.Errorf("triple %q, expected at most four components", texts["triple"])
	}
	switch {
	case flags&1 != 0 && len(n.Data) == 0:
		n.Image = "metadata"
	case int(image) < len(offloadImages):
		n.Image = offloadImages[image]
	default:
		n.Image = fmt.Sprintf("kind %d", image)
	}
	return n, nil
}

// readStrings reads the pairs of strings of an entry. Version 1 has values that end in a zero
// byte, later ones have their sizes.
func (b *offloadBinary) readStrings(data []byte, start, count uint64, version uint32) (map[string]string, error) {
	le := binary.LittleEndian
	width := uint64(24)
	if version == 1 {
		width = 16
	}
	// Entries that all name the same pairs would take a day.
	if b.strings += count; count > uint64(len(data)) || b.strings > uint64(len(data))/16 {
		return nil, fmt.Errorf("%d strings, expected at most %d in %d bytes", count, len(data)/16, len(data))
	}
	texts := map[string]string{}
	for i := range count {
		pair, ok := slice(data, start+i*width, width)
		if !ok || start > uint64(len(data)) {
			return nil, fmt.Errorf("string %d at %#x is not in its %d bytes", i, start+i*width, len(data))
		}
		key, okKey := zeroEnded(data, le.Uint64(pair))
		value, okValue := zeroEnded(data, le.Uint64(pair[8:]))
		if version > 1 {
			var text []byte
			text, okValue = slice(data, le.Uint64(pair[8:]), le.Uint64(pair[16:]))
			value = string(text[:min(len(text), maxNestedName)])
		}
		if !okKey || !okValue || !utf8.ValidString(value) {
			return nil, fmt.Errorf("string %d at %#x: expected a key and a value of UTF-8 within its %d bytes", i, start+i*width, len(data))
		}
		if key == "triple" || key == "arch" {
			texts[key] = value
		}
	}
	return texts, nil
}

// zeroEnded returns the string at an offset that a zero byte ends.
func zeroEnded(data []byte, start uint64) (string, bool) {
	if start >= uint64(len(data)) {
		return "", false
	}
	text := data[start:min(uint64(len(data)), start+maxNestedName)]
	i := bytes.IndexByte(text, 0)
	return string(text[:max(i, 0)]), i >= 0
}
