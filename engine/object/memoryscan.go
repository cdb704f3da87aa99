// SPDX-License-Identifier: Apache-2.0

package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"iter"
)

// A MemoryRange is a range of a process's memory.
type MemoryRange struct{ Start, Size uint64 }

// Bounds of a search in memory.
const (
	scanChunk    = 1 << 20   // bytes that are read at once
	maxScanned   = 4 << 30   // bytes that are searched
	maxInMemory  = 256 << 20 // bytes of a code object
	cubinTable   = 1 << 22   // bytes of the tables of a cubin
	scanOverhead = 64 << 20  // bytes of tables of candidates that turn out to be no cubins
)

// cubinMagic begins ELF files of 64 bits and of the little-endian order.
const cubinMagic = "\x7fELF\x02\x01\x01"

// NestedInMemory yields the code objects of NVIDIA's accelerators in memory, where programs make them
// and load them from: cubins and fat binaries. read copies memory at an address, and returns how many
// bytes it could. Places are addresses. The name is used in messages only. After an error the next one
// follows.
func NestedInMemory(name string, ranges []MemoryRange, read func(address uint64, buf []byte) int) iter.Seq2[Nested, error] {
	return func(yield func(Nested, error) bool) {
		s := &memoryScan{bundleWalk: newBundleWalk(name, 0, yield), read: read, left: maxScanned, tables: scanOverhead}
		s.all(ranges)
	}
}

// A memoryScan searches memory.
type memoryScan struct {
	*bundleWalk
	read   func(address uint64, buf []byte) int
	offset func(address uint64) uint64 // in the file; nil: there is none, and places are addresses
	left   uint64                      // bytes that may still be searched
	tables uint64                      // and read of candidates that are none
	// skipped counts candidates that were not looked at, because too many had been none.
	skipped int
}

// all searches ranges, and yields an error where candidates were left out.
func (s *memoryScan) all(ranges []MemoryRange) {
	s.search(ranges)
	if s.skipped > 0 && !s.stopped {
		s.stopped = !s.yield(Nested{}, fmt.Errorf("%s: %d headers of cubins were not looked at: the tables of others before them had %d bytes, and were of none", s.name, s.skipped, scanOverhead))
		s.skipped = 0
	}
}

func (s *memoryScan) search(ranges []MemoryRange) {
	for _, r := range ranges {
		if s.stopped || s.scan(r) {
			continue
		}
		s.stopped = !s.yield(Nested{}, fmt.Errorf("%s: memory at %#x and what follows was not searched for code: the bound is %d bytes", s.name, r.Start, maxScanned))
		return
	}
}

// scan searches a range; false where it may not be read to its end.
func (s *memoryScan) scan(r MemoryRange) bool {
	buf := make([]byte, min(scanChunk, r.Size))
	for offset := uint64(0); offset < r.Size && !s.stopped; {
		n := s.read(r.Start+offset, buf[:min(uint64(len(buf)), r.Size-offset)])
		if n < len(cubinMagic) {
			return true // the rest is not there
		}
		if uint64(n) > s.left {
			return false
		}
		s.left -= uint64(n)
		if next, ok := s.inChunk(buf[:n], r, offset); ok {
			offset = next
			continue
		}
		// A magic may begin in the last bytes.
		if offset += uint64(n); offset < r.Size {
			offset -= uint64(len(cubinMagic) - 1)
		}
		if n < len(buf) {
			return true
		}
	}
	return true
}

// inChunk looks for code objects in bytes that begin at an offset in a range. After the first one it
// returns where that ends; ok is false where there is none.
func (s *memoryScan) inChunk(data []byte, r MemoryRange, offset uint64) (next uint64, ok bool) {
	for position := 0; !s.stopped; {
		index := firstMagic(data[position:])
		if index < 0 {
			return 0, false
		}
		position += index
		place := offset + uint64(position)
		if size := s.take(r.Start+place, r.Size-place); size > 0 {
			return place + size, true
		}
		position += len(fatMagic)
	}
	return 0, false
}

// firstMagic returns where the first magic bytes are; -1: there are none. It looks piece by piece, so
// that a near one costs little, however far the next of the other kind is.
func firstMagic(data []byte) int {
	const piece = 4 << 10
	for start := 0; start < len(data); start += piece {
		b := data[start:min(len(data), start+piece+len(cubinMagic)-1)]
		fat, cubin := bytes.Index(b, []byte(fatMagic)), bytes.Index(b, []byte(cubinMagic))
		switch {
		case fat >= 0 && (cubin < 0 || fat < cubin):
			return start + fat
		case cubin >= 0:
			return start + cubin
		}
	}
	return -1
}

// take yields the code objects that begin at an address, and returns how many bytes they have; 0 where
// none begins there.
func (s *memoryScan) take(address, most uint64) uint64 {
	most = min(most, maxInMemory)
	head := make([]byte, min(fatEntry, most))
	if head = head[:s.read(address, head)]; len(head) < fatHeader {
		return 0
	}
	le := binary.LittleEndian
	var size uint64
	switch isFat := isFatBinary(head); {
	case isFat && le.Uint16(head[4:]) == 1:
		size = uint64(le.Uint16(head[6:])) + le.Uint64(head[8:])
	case !isFat && len(head) == fatEntry && elf.Machine(le.Uint16(head[18:])) == elf.EM_CUDA:
		size = s.cubinSize(address, head, most)
	}
	if size == 0 || size > most {
		return 0
	}
	data := make([]byte, size)
	if s.read(address, data) < len(data) {
		return 0
	}
	offset := address
	if s.offset != nil {
		offset = s.offset(address)
	} else {
		s.bundleWalk.left = min(s.bundleWalk.left+unpackedRatio*size, maxUnpacked)
	}
	if isFatBinary(data) {
		s.fat(data, offset, "")
		return size
	}
	s.emit(Nested{Name: fmt.Sprintf("cubin@%#x", address), Format: "memory", Bundle: offset, Offset: offset, Data: data})
	return size
}

// cubinSize returns where the last table or section of a cubin at an address ends, as its own tables
// say; 0 where they are not there.
func (s *memoryScan) cubinSize(address uint64, head []byte, most uint64) uint64 {
	le := binary.LittleEndian
	end := max(le.Uint64(head[32:]), le.Uint64(head[40:]))
	table := uint64(le.Uint16(head[60:])) * uint64(le.Uint16(head[58:]))
	if end > most || table > cubinTable {
		return 0
	}
	if table > s.tables {
		s.skipped++
		return 0
	}
	s.tables -= table
	start := le.Uint64(head[40:])
	sections := make([]byte, table)
	if start > most-min(most, table) || s.read(address+start, sections) < len(sections) {
		return 0
	}
	// The headers are put behind the ELF header: the bytes between are not needed.
	moved := append(bytes.Clone(head), sections...)
	le.PutUint64(moved[40:], uint64(len(head)))
	size := max(cubinEnd(moved), start+table)
	if s.tables += table; size > most || size < minCubin {
		return 0
	}
	return size
}

// coreMemory yields the code objects in the memory of a core.
func (w *bundleWalk) coreMemory(o *Object) {
	s := &memoryScan{bundleWalk: w, left: maxScanned, tables: scanOverhead}
	for _, segment := range o.segments {
		data, ok := slice(o.data, segment.Offset, segment.FileSize)
		if !ok || w.stopped {
			continue
		}
		s.offset = func(address uint64) uint64 { return address - segment.Address + segment.Offset }
		s.read = func(address uint64, buf []byte) (n int) {
			_ = Guard(func() error {
				if at := address - segment.Address; at < uint64(len(data)) {
					n = copy(buf, data[at:])
				}
				return nil
			})
			return n
		}
		s.all([]MemoryRange{{segment.Address, segment.FileSize}})
	}
}
