// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unicode/utf8"

	"github.com/unwindd/unwindd/sdk"
)

// Intel's compilers for OpenCL write the debug information of a program's kernels
// into one file beside the program. It is a header of seven numbers of 4 bytes,
// little-endian (the magic, a version, a size that is 0, the device, its stepping,
// the size of a pointer, and how many kernels there are), and then for each kernel
// three more (the length of its name, and the sizes of two pieces of debug
// information), the name with its padding to 4 bytes, and the pieces. The first
// piece is an ELF file with the kernel's code and its DWARF, or empty; the second
// was always empty.
//
// Older programs themselves have the same magic and other headers, which do not
// fit.
const (
	containerHeader = 28 // bytes
	containerCount  = 24 // offset of the number of kernels
	kernelHeader    = 12
	containerWord   = 4 // names are padded to it
)

// Bounds on containers, far above what programs have.
const (
	maxContainerKernels = 1 << 16
	maxKernelName       = 1 << 12
)

// readContainer lists the code objects in a container of debug information: one
// for each kernel that has some, by the kernel's name.
func readContainer(data []byte) ([]sdk.NestedObject, error) {
	size := uint64(len(data))
	if size < containerHeader {
		return nil, fmt.Errorf("container of debug information: %d bytes, expected a header of %d", size, containerHeader)
	}
	if magic := binary.LittleEndian.Uint32(data); magic != containerMagic {
		return nil, fmt.Errorf("container of debug information: offset 0x0: magic %#x, expected %#x", magic, uint32(containerMagic))
	}
	count := binary.LittleEndian.Uint32(data[containerCount:])
	if most := min(uint64(maxContainerKernels), (size-containerHeader)/kernelHeader); uint64(count) > most {
		return nil, fmt.Errorf("container of debug information: offset %#x: %d kernels, expected at most %d in %d bytes", containerCount, count, most, size)
	}
	var list []sdk.NestedObject
	offset := uint64(containerHeader)
	for i := range count {
		if size-offset < kernelHeader {
			return nil, fmt.Errorf("container of debug information: offset %#x: the header of kernel %d is not in the %d bytes", offset, i, size)
		}
		length := uint64(binary.LittleEndian.Uint32(data[offset:]))
		first, second := uint64(binary.LittleEndian.Uint32(data[offset+4:])), uint64(binary.LittleEndian.Uint32(data[offset+8:]))
		start := offset + kernelHeader
		padded := (length + containerWord - 1) &^ (containerWord - 1)
		if length > maxKernelName || padded+first+second > size-start {
			return nil, fmt.Errorf("container of debug information: offset %#x: kernel %d has a name of %d bytes and debug information of %d and %d, expected a name of at most %d and %d bytes in all",
				offset, i, length, first, second, maxKernelName, size-start)
		}
		name, _, terminated := bytes.Cut(data[start:start+length], []byte{0})
		if !terminated || len(name) == 0 || !utf8.Valid(name) {
			return nil, fmt.Errorf("container of debug information: offset %#x: the name of kernel %d is %q, expected UTF-8 that ends in a NUL", start, i, name[:min(len(name), 64)])
		}
		pieces := start + padded
		if first > 0 {
			list = append(list, sdk.NestedObject{Name: string(name), Offset: pieces, Size: first})
		}
		if second > 0 {
			list = append(list, sdk.NestedObject{Name: string(name), Offset: pieces + first, Size: second})
		}
		offset = pieces + first + second
	}
	if offset != size {
		return nil, fmt.Errorf("container of debug information: offset %#x: %d bytes after %d kernels, expected the end", offset, size-offset, count)
	}
	return list, nil
}

// Recognises reports whether a file that is no ELF file is of this architecture, by
// its first bytes.
func Recognises(start []byte) bool {
	return hasMagic(start, streamMagic) || hasMagic(start, containerMagic)
}

// Nested lists the code objects inside such a file; none where it is one itself.
func Nested(data []byte) ([]sdk.NestedObject, error) {
	if !hasMagic(data, containerMagic) {
		return nil, nil
	}
	return readContainer(data)
}

func hasMagic(data []byte, magic uint32) bool {
	return len(data) >= 4 && binary.LittleEndian.Uint32(data) == magic
}
