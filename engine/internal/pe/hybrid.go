// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
)

// A hybrid is a file with code of several instruction sets ("Understanding Arm64EC ABI and assembly code",
// "Arm64X PE files"): its load configuration leads to a map of its code.
type hybrid struct {
	name   string      // "" of other files
	ranges []codeRange // sorted by their start
}

type codeRange struct {
	start, end uint32 // RVAs
	kind       string
}

const (
	directoryLoadConfig = 10
	// hybridPointer is where the load configuration has the address of the map; of 32-bit files
	// hybridPointer32.
	hybridPointer, hybridPointer32 = 0xc8, 0x7c
	maxCodeRanges                  = 1 << 16
)

// hybrids are the files with a map, by machine: what they are, and the kinds of code that are not their
// machine's, by the low bits of a range's start.
var hybrids = map[uint16]struct {
	name    string
	foreign map[uint32]string
}{
	MachineX86_64: {"an ARM64EC image: for x86-64, with code for arm64", map[uint32]string{0: "arm64", 1: "ARM64EC, which is arm64 with registers of x86-64"}},
	MachineARM64:  {"an ARM64X image: for arm64, and for processes of x86-64", map[uint32]string{1: "ARM64EC, which is arm64 with registers of x86-64", 2: "x86-64"}},
	MachineX86:    {"a CHPE image: for i386, with code for arm64", map[uint32]string{1: "arm64"}},
}

// Hybrid returns what a file with code of several instruction sets is, in a sentence; "" of other files.
func (f *File) Hybrid() string { return f.hybrid().name }

// ForeignCode returns of which kind the code at a virtual address is where the machine of a hybrid file
// does not execute it, as "arm64"; "" for its own code.
func (f *File) ForeignCode(address uint64) string {
	rva, ok := f.rva(address)
	if !ok {
		return ""
	}
	list := f.hybrid().ranges
	if i := sort.Search(len(list), func(i int) bool { return list[i].start > rva }) - 1; i >= 0 && rva < list[i].end {
		return list[i].kind
	}
	return ""
}

// readHybrid reads the map of a file's code, of which the foreign ranges are kept.
func (f *File) readHybrid() (h hybrid) {
	of, ok := hybrids[f.header.machine]
	rva, _ := f.header.directory(directoryLoadConfig)
	if !ok || rva == 0 {
		return h
	}
	metadata := f.hybridMetadata(rva)
	if metadata == nil || u32(metadata, 0) == 0 {
		return h
	}
	h.name = of.name
	count := min(u32(metadata, 8), maxCodeRanges)
	list := f.source.upTo(u32(metadata, 4), 8*uint64(count))
	if have := uint32(len(list) / 8); have < u32(metadata, 8) {
		f.problem(f.errorf(u32(metadata, 4), "map of code with %d ranges, %d are read", u32(metadata, 8), have))
	}
	for ; len(list) >= 8; list = list[8:] {
		start, length := u32(list, 0), u32(list, 4)
		if kind := of.foreign[start&3]; kind != "" {
			start &^= 3
			h.ranges = append(h.ranges, codeRange{start, uint32(min(uint64(start)+uint64(length), 1<<32-1)), kind})
		}
	}
	slices.SortStableFunc(h.ranges, func(a, b codeRange) int { return cmp.Compare(a.start, b.start) })
	return h
}

// hybridMetadata returns the version of the metadata, and the RVA and the length of the map, of a load
// configuration; nil where it has none.
func (f *File) hybridMetadata(rva uint32) []byte {
	at, size := uint32(hybridPointer), uint32(8)
	if !f.header.isPlus {
		at, size = hybridPointer32, 4
	}
	config := f.source.upTo(rva, uint64(at+size))
	if uint32(len(config)) < at+size || u32(config, 0) < at+size { // older ones are shorter
		return nil
	}
	address := uint64(u32(config, int(at)))
	if size == 8 {
		address = binary.LittleEndian.Uint64(config[at:])
	}
	to, ok := f.rva(address)
	if !ok || address == 0 {
		return nil
	}
	metadata, err := f.at(to, 12, "metadata of hybrid code")
	if err != nil {
		f.problem(err)
	}
	return metadata
}
