// SPDX-License-Identifier: Apache-2.0

package object

import (
	"debug/elf"
	"encoding/binary"
	"math/bits"
)

// The prime and the start of FNV-1a of 32 bits.
const (
	fnvStart = 0x811c9dc5
	fnvPrime = 0x01000193
)

// minCubin is the least size of a file that is taken for a cubin: of an ELF header.
const minCubin = 64

// CubinID returns the number by which CUPTI knows a cubin, which its header calls a CRC: PC samples
// name their cubin by it. ok is false for an object of another machine.
//
// It is no CRC, but the hash FNV-1a of 32 bits of the size of the file, in 8 bytes, and of 2n bytes of
// the file at equal distances from its first one on, where n is the logarithm of the size to the base
// of two, rounded up. This was found out by asking cuptiGetCubinCrc of CUDA 11.8 to 13.0 about bytes
// of 3,000 sizes. Two cubins that were compiled of similar sources may have the same number.
func (o *Object) CubinID() (id uint64, ok bool) {
	if elf.Machine(o.Machine()) != elf.EM_CUDA || len(o.data) < minCubin {
		return 0, false
	}
	err := Guard(func() error { id = cubinID(o.data); return nil })
	return id, err == nil
}

// cubinID hashes a cubin of at least minCubin bytes.
func cubinID(data []byte) uint64 {
	hash := uint32(fnvStart)
	add := func(b byte) { hash = (hash ^ uint32(b)) * fnvPrime }
	size := uint64(len(data))
	for _, b := range binary.LittleEndian.AppendUint64(nil, size) {
		add(b)
	}
	count := uint64(2 * bits.Len64(size-1))
	for i := range count {
		add(data[i*size/count])
	}
	return uint64(hash)
}
