// SPDX-License-Identifier: Apache-2.0

package elfcore

import (
	"bytes"
	"debug/elf"
	"fmt"
)

// unpadded corrects the offsets of a core whose writer left out the padding between segments
// that its program headers count, and returns a message about that. ROCm's runtime library
// writes such cores into pipes, in which it cannot seek.
func (h *coreHeader) unpadded(data []byte) string {
	offset := h.pick(data, 28, 32) + uint64(len(h.programs))*h.programSize()
	offsets := make([]uint64, len(h.programs))
	end, size := offset, uint64(len(data))
	isROCm, isFilled := elf.Machine(h.machine) == elf.EM_AMDGPU, false
	first := -1
	for i := range h.programs {
		p := &h.programs[i]
		offsets[i] = offset
		if p.fileSize == 0 {
			continue
		}
		if p.offset < offset || p.offset < end || p.offset-end > maxPadding || p.fileSize > 1<<62-p.offset {
			return ""
		}
		if p.offset != offset && first < 0 {
			first = i
		}
		// That library writes the alignment's exponent.
		isROCm = isROCm && p.align < 12 && p.offset == alignUp(offset, 1<<p.align)
		if hole := data[min(end, size):min(p.offset, size)]; len(bytes.Trim(hole, "\x00")) > 0 {
			isFilled = true
		}
		offset += p.fileSize
		end = p.offset + p.fileSize
	}
	isAll := size == offset
	if first < 0 || size > offset || !isAll && !isROCm || !isFilled && !(isROCm && isAll) {
		return ""
	}
	said := fmt.Sprintf("the bytes of program header %d are read at offset %#x in place of %#x, and the others as much before theirs: "+
		"the file has no padding between segments, as what is written into a pipe", first, offsets[first], h.programs[first].offset)
	for i := range h.programs {
		h.programs[i].offset = offsets[i]
	}
	return said
}

// maxPadding bounds the padding between segments.
const maxPadding = 1 << 21
