// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// HotSpot has its code in heaps of segments. A map with a byte for each segment leads to the
// first one of a block, which has a header and a CodeBlob.

const (
	maxHeaps = 16
	// maxHeapSize bounds the size of a heap: compiled code reaches all of it by 32 bits.
	maxHeapSize = 4 << 30
	// maxHops bounds the steps from a segment to the first one of its block.
	maxHops = 1 << 16
	// freeSegment stands in the map for a segment of no block.
	freeSegment = 0xff
	// maxBlobSize bounds a blob, in bytes.
	maxBlobSize = 64 << 20
	// maxBlobName bounds the names of blobs, in bytes.
	maxBlobName = 256
)

// codeHeap is a heap of code.
type codeHeap struct {
	low, high    uint64 // its segments
	segmap       uint64 // address of the map
	segmentShift uint64
}

// get reads a member of a structure.
func get(r *sdk.MemoryReader, base uint64, f field) (uint64, error) {
	if !f.isKnown || f.size == 0 {
		return 0, errors.New("a member that this version does not have")
	}
	n, err := r.Uint(base+f.offset, f.size)
	if err == nil && f.isSigned {
		n = uint64(signed(n, f.size)) //nolint:gosec // the bits of a number
	}
	return n, err
}

// getAll reads members of a structure.
func getAll(r *sdk.MemoryReader, base uint64, list []memberInto) error {
	for _, m := range list {
		var err error
		if *m.to, err = get(r, base, m.field); err != nil {
			return err
		}
	}
	return nil
}

// memberInto is a member to read.
type memberInto struct {
	field field
	to    *uint64
}

// readHeaps reads the list of code heaps.
func (m *machine) readHeaps(r *sdk.MemoryReader) ([]codeHeap, error) {
	var addresses []uint64
	switch {
	case m.heaps != 0:
		array, err := r.Pointer(m.heaps)
		if err != nil {
			return nil, fmt.Errorf("its code heaps: %w", err)
		}
		var count, data uint64
		err = getAll(r, array, []memberInto{{m.arrayLength, &count}, {m.arrayData, &data}})
		if err != nil || count == 0 || count > maxHeaps {
			return nil, fmt.Errorf("%d code heaps at %#x, expected 1 to %d: %w", count, array, maxHeaps, cmp.Or(err, errRange))
		}
		for i := range count {
			heap, err := r.Pointer(data + 8*i)
			if err != nil {
				return nil, fmt.Errorf("code heap %d: %w", i, err)
			}
			addresses = append(addresses, heap)
		}
	case m.heap != 0:
		heap, err := r.Pointer(m.heap)
		if err != nil {
			return nil, fmt.Errorf("its code heap: %w", err)
		}
		addresses = append(addresses, heap)
	default:
		return nil, errors.New("its tables have no code heap")
	}
	list := make([]codeHeap, len(addresses))
	for i, a := range addresses {
		h := &list[i]
		err := getAll(r, a, []memberInto{
			{m.spaceLow.in(m.heapMemory), &h.low}, {m.spaceHigh.in(m.heapMemory), &h.high},
			{m.spaceLow.in(m.heapSegmap), &h.segmap}, {m.heapLog2, &h.segmentShift},
		})
		if err != nil {
			return nil, fmt.Errorf("the code heap at %#x: %w", a, err)
		}
		if h.low >= h.high || h.high-h.low > maxHeapSize || h.segmentShift < 3 || h.segmentShift > 16 {
			return nil, fmt.Errorf("the code heap at %#x is from %#x to %#x, in segments of 2^%d bytes", a, h.low, h.high, h.segmentShift)
		}
	}
	slices.SortFunc(list, func(a, b codeHeap) int { return cmp.Compare(a.low, b.low) })
	for i := 1; i < len(list); i++ {
		if list[i].low < list[i-1].high {
			return nil, fmt.Errorf("code heaps at %#x and %#x overlap", list[i-1].low, list[i].low)
		}
	}
	return list, nil
}

// errRange is the reason where a number is out of its range.
var errRange = errors.New("out of range")

// in returns the field in a structure that another has as a member.
func (f field) in(outer field) field {
	f.offset += outer.offset
	f.isKnown = f.isKnown && outer.isKnown
	return f
}

// heapOf returns the heap with an address; nil: none has it.
func (m *machine) heapOf(pc uint64) *codeHeap {
	for i := range m.heapList {
		if h := &m.heapList[i]; pc >= h.low && pc < h.high {
			return h
		}
	}
	return nil
}

// blob is a CodeBlob: compiled code, or a stub.
type blob struct {
	address      uint64
	size         uint64
	name         string
	frameSize    uint64 // bytes; 0: it has no frame, or several
	complete     uint64 // the address from which on the frame is there
	code         codeRange
	isNmethod    bool // the code of a method of Java
	isNativeCall bool // which calls native code
}

// Names of blobs that have code of methods.
const (
	nameNmethod = "nmethod"
	nameNative  = "native nmethod"
)

// blobAt reads the blob with an address.
func (m *machine) blobAt(r *sdk.MemoryReader, pc uint64) (*blob, error) {
	h := m.heapOf(pc)
	if h == nil {
		return nil, fmt.Errorf("%#x is in no code heap", pc)
	}
	segment := (pc - h.low) >> h.segmentShift
	for hops := 0; ; hops++ {
		back, err := r.Uint(h.segmap+segment, 1)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the map of segments: %w", err)
		case back == freeSegment:
			return nil, fmt.Errorf("there is no block at %#x", pc)
		case back > segment || hops > maxHops:
			return nil, fmt.Errorf("the map of segments at %#x leads to no block", h.segmap+segment)
		}
		if back == 0 {
			break
		}
		segment -= back
	}
	block := h.low + segment<<h.segmentShift
	var length, used uint64
	if err := getAll(r, block, []memberInto{{m.blockLength, &length}, {m.blockUsed, &used}}); err != nil {
		return nil, fmt.Errorf("the block at %#x: %w", block, err)
	}
	length <<= h.segmentShift
	if used != 1 || length > h.high-block || pc-block >= length {
		return nil, fmt.Errorf("the block at %#x has %#x bytes, expected to be used and to have %#x", block, length, pc)
	}
	b, err := m.readBlob(r, block+m.sizes.block)
	if err != nil {
		return nil, fmt.Errorf("the blob at %#x: %w", block+m.sizes.block, err)
	}
	if b.size > length-m.sizes.block {
		return nil, fmt.Errorf("the blob at %#x has %#x bytes, expected at most %#x", b.address, b.size, length)
	}
	return b, nil
}

// readBlob reads the header of a blob.
func (m *machine) readBlob(r *sdk.MemoryReader, address uint64) (*blob, error) {
	b := &blob{address: address}
	var name, frameWords uint64
	err := getAll(r, address, []memberInto{
		{m.blobName, &name}, {m.blobSize, &b.size}, {m.blobFrameSize, &frameWords}, {m.blobComplete, &b.complete},
	})
	if err != nil {
		return nil, err
	}
	if b.name, err = r.Text(name, maxBlobName); err != nil {
		return nil, fmt.Errorf("its name: %w", err)
	}
	if !isPlain(b.name) {
		return nil, fmt.Errorf("its name at %#x is no text", name)
	}
	if m.codeBegin.isKnown {
		err = getAll(r, address, []memberInto{{m.codeBegin, &b.code.start}, {m.codeEnd, &b.code.end}})
	} else {
		err = getAll(r, address, []memberInto{{m.codeOffset, &b.code.start}, {m.dataOffset, &b.code.end}})
		b.code.start, b.code.end = b.code.start+address, b.code.end+address
	}
	switch {
	case err != nil:
		return nil, err
	case b.size > maxBlobSize || b.code.start < address || b.code.start >= b.code.end || b.code.end-address > b.size:
		return nil, fmt.Errorf("%#x bytes with code from %#x to %#x", b.size, b.code.start, b.code.end)
	case frameWords > maxBlobSize/8:
		return nil, fmt.Errorf("a frame of %d words", frameWords)
	}
	b.frameSize = 8 * frameWords
	if int64(b.complete) < 0 { //nolint:gosec // -1 stands for never
		b.complete = b.code.end
	} else {
		b.complete += b.code.start
	}
	b.isNativeCall = b.name == nameNative
	b.isNmethod = b.isNativeCall || b.name == nameNmethod
	return b, nil
}

// isPlain reports whether text has printable characters of ASCII alone.
func isPlain(text string) bool {
	return bytes.IndexFunc([]byte(text), func(c rune) bool { return c < ' ' || c > '~' }) < 0
}
