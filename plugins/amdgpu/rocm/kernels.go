// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/unwindd/unwindd/sdk"
)

const (
	descriptorSize = 64
	descriptorEnd  = ".kd" // of the name of a kernel's descriptor
	maxSymbols     = 1 << 18
	maxKernelName  = 1 << 13
)

// kernels finds the names of kernels' descriptors in the code objects' symbols.
type kernels struct {
	byBias  []int // the code objects of the answer in the order of their biases
	objects map[int]*objectSymbols
	names   map[uint64]string
	symbols int // read so far
}

// objectSymbols are the symbols of a code object that may be of descriptors.
type objectSymbols struct {
	image   image
	names   map[uint64]uint32 // by address in the file: offsets in the string table
	strings uint64            // address in the file
	size    uint64
}

// kernelAt returns the name of the kernel whose descriptor is at an address; ""
// where no symbol is there.
func (r *reader) kernelAt(ctx context.Context, descriptor uint64) string {
	k := &r.kernels
	if k.names == nil {
		k.names, k.objects = map[uint64]string{}, map[int]*objectSymbols{}
		for i := range r.answer.Objects {
			k.byBias = append(k.byBias, i)
		}
		slices.SortStableFunc(k.byBias, func(a, b int) int {
			return cmp.Compare(r.answer.Objects[a].Bias, r.answer.Objects[b].Bias)
		})
	}
	name, ok := k.names[descriptor]
	if !ok {
		name = r.findKernel(ctx, descriptor)
		k.names[descriptor] = name
	}
	return name
}

// findKernel looks in the code object that is loaded closest below an address.
func (r *reader) findKernel(ctx context.Context, descriptor uint64) string {
	k := &r.kernels
	last := sort.Search(len(k.byBias), func(i int) bool { return r.answer.Objects[k.byBias[i]].Bias > descriptor }) - 1
	if last < 0 {
		return ""
	}
	o := &r.answer.Objects[k.byBias[last]]
	symbols, ok := k.objects[last]
	if !ok {
		symbols = r.readSymbols(ctx, o)
		k.objects[last] = symbols
	}
	if symbols == nil {
		return ""
	}
	offset, ok := symbols.names[descriptor-o.Bias]
	if !ok || uint64(offset) >= symbols.size {
		return ""
	}
	address, ok := symbols.image.address(symbols.strings + uint64(offset))
	if !ok {
		return ""
	}
	name, err := r.memory.text(ctx, address, maxKernelName)
	name, isDescriptor := strings.CutSuffix(name, descriptorEnd)
	if err != nil || !isDescriptor || !utf8.ValidString(name) {
		return ""
	}
	return name
}

// image is an ELF file in memory: as it is loaded, or as it is on disk.
type image struct {
	start    uint64
	isLoaded bool
	segments []segment
	dynamic  segment
}

type segment struct{ address, offset, size uint64 }

// address returns where an address of the file is in memory.
func (i *image) address(virtual uint64) (uint64, bool) {
	for _, s := range i.segments {
		if virtual-s.address < s.size {
			if i.isLoaded {
				return i.start + virtual, true
			}
			return i.start + s.offset + virtual - s.address, true
		}
	}
	return 0, false
}

// readSymbols reads the dynamic symbols of a code object where it is loaded, or
// where its file is in memory; nil where neither can be read.
func (r *reader) readSymbols(ctx context.Context, o *sdk.TargetObject) *objectSymbols {
	if i, ok := r.readImage(ctx, o.Bias, true); ok {
		if s := r.imageSymbols(ctx, i); s != nil {
			return s
		}
	}
	if o.Path == "" {
		if i, ok := r.readImage(ctx, o.MemoryAddress, false); ok {
			return r.imageSymbols(ctx, i)
		}
	}
	return nil
}

func (r *reader) readImage(ctx context.Context, start uint64, isLoaded bool) (image, bool) {
	const headerSize, entrySize, maxEntries, machine = 64, 56, 64, 224
	le := binary.LittleEndian
	i := image{start: start, isLoaded: isLoaded}
	var h [headerSize]byte
	if r.memory.read(ctx, start, h[:]) != nil || string(h[:6]) != "\x7fELF\x02\x01" || le.Uint16(h[18:]) != machine ||
		le.Uint16(h[54:]) != entrySize || le.Uint16(h[56:]) > maxEntries {
		return i, false
	}
	for n := range uint64(le.Uint16(h[56:])) {
		var p [entrySize]byte
		if r.memory.read(ctx, start+le.Uint64(h[32:])+n*entrySize, p[:]) != nil {
			return i, false
		}
		s := segment{address: le.Uint64(p[16:]), offset: le.Uint64(p[8:]), size: le.Uint64(p[32:])}
		switch le.Uint32(p[:]) {
		case 1: // PT_LOAD
			i.segments = append(i.segments, s)
		case 2: // PT_DYNAMIC
			i.dynamic = s
		}
	}
	return i, i.dynamic.size > 0
}

// imageSymbols reads the dynamic symbols that may be of descriptors.
func (r *reader) imageSymbols(ctx context.Context, i image) *objectSymbols {
	const tagHash, tagStrings, tagSymbols, tagStringsSize, maxTags = 4, 5, 6, 10, 256
	tags := map[uint64]uint64{}
	for n := range min(i.dynamic.size/16, maxTags) {
		address, ok := i.address(i.dynamic.address + n*16)
		var b [16]byte
		if !ok || r.memory.read(ctx, address, b[:]) != nil {
			return nil
		}
		tag := binary.LittleEndian.Uint64(b[:])
		if tag == 0 {
			break
		}
		tags[tag] = binary.LittleEndian.Uint64(b[8:])
	}
	hash, hasHash := i.address(tags[tagHash])
	symbols, hasSymbols := i.address(tags[tagSymbols])
	if !hasHash || !hasSymbols {
		return nil
	}
	count, err := r.memory.uint32(ctx, hash+4)
	if err != nil || int(count) > maxSymbols-r.kernels.symbols {
		return nil
	}
	r.kernels.symbols += int(count)
	s := &objectSymbols{image: i, names: map[uint64]uint32{}, strings: tags[tagStrings], size: tags[tagStringsSize]}
	const symbolSize, object = 24, 1
	for n := range uint64(count) {
		var b [symbolSize]byte
		if r.memory.read(ctx, symbols+n*symbolSize, b[:]) != nil {
			break
		}
		if b[4]&0xf == object && binary.LittleEndian.Uint64(b[16:]) == descriptorSize {
			s.names[binary.LittleEndian.Uint64(b[8:])] = binary.LittleEndian.Uint32(b[:])
		}
	}
	return s
}
