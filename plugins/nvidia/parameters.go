// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/sdk"
)

// Of sections .nv.info.KERNEL: records of a format, an attribute and two bytes, behind which
// a record of attributeSized has as many bytes as these say.
const (
	infoPrefix      = ".nv.info."
	attributeSized  = 4
	attributeBank   = 0x0a // EIATTR_PARAM_CBANK: symbol (4), offset (2) and size (2) of parameters in the constant bank
	attributeParam  = 0x17 // EIATTR_KPARAM_INFO: index (4), ordinal (2), offset (2), and a word with the size above bit 18
	attributeParam2 = 0x45 // EIATTR_KPARAM_INFO_V2, of large ones: as the other, with the size as its last word
	maxParameters   = 1 << 12
)

// sizeShifts are the bits below the size in the last word of the records of parameters.
var sizeShifts = map[byte]uint{attributeParam: 18, attributeParam2: 0}

// parameter is a parameter of a kernel, by its place among the bytes of all of them.
type parameter struct {
	ordinal      uint16
	offset, size uint32
}

// describeParameters adds the parameters of kernels without debug information: they have
// no names, and are called by their ordinals.
func (o *codeObject) describeParameters() {
	if o.section(".debug_info") != nil {
		return
	}
	for i, s := range o.functions {
		if !s.isKernel() {
			continue
		}
		data := o.section(infoPrefix + s.name)
		base, list, err := kernelParameters(data)
		if err != nil {
			o.problem("%s%s: %v", infoPrefix, s.name, err)
		}
		slices.SortStableFunc(list, func(a, b parameter) int { return cmp.Compare(a.ordinal, b.ordinal) })
		section, start := o.place(uint32(s.section), s.value)
		for _, p := range list {
			location := expression(nil).constant(uint64(base) + uint64(p.offset)).in(param)
			o.answer.Variables = append(o.answer.Variables, sdk.Variable{
				Name: fmt.Sprintf("parameter %d", p.ordinal), Section: section,
				Start: []uint64{start}, End: []uint64{o.kernelEnd(i)}, Locations: [][]byte{location.pieceOf(p.size)},
			})
		}
	}
}

// pieceOf ends a place after some bytes.
func (e expression) pieceOf(size uint32) expression {
	return binary.AppendUvarint(append(e, dw.OpPiece), uint64(size))
}

// kernelParameters reads the parameters of a kernel, and where they begin in the constant
// bank.
func kernelParameters(data []byte) (base uint16, list []parameter, err error) {
	for at := 0; at < len(data); {
		if len(data)-at < 4 {
			return base, list, fmt.Errorf("offset %#x: %d bytes of a record, expected 4", at, len(data)-at)
		}
		format, attribute := data[at], data[at+1]
		size := 0
		if format == attributeSized {
			size = int(binary.LittleEndian.Uint16(data[at+2:]))
		}
		at += 4
		if size > len(data)-at {
			return base, list, fmt.Errorf("offset %#x: attribute %#x has %d bytes, expected at most %d", at-4, attribute, size, len(data)-at)
		}
		b := data[at : at+size]
		at += size
		shift, isParameter := sizeShifts[attribute]
		switch {
		case attribute == attributeBank && size >= 8:
			base = binary.LittleEndian.Uint16(b[4:])
		case isParameter && size >= 12 && len(list) < maxParameters:
			list = append(list, parameter{
				ordinal: binary.LittleEndian.Uint16(b[4:]), offset: uint32(binary.LittleEndian.Uint16(b[6:])),
				size: binary.LittleEndian.Uint32(b[8:]) >> shift,
			})
		}
	}
	return base, list, nil
}
