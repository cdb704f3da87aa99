// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"bytes"
	"encoding/binary"

	"github.com/unwindd/unwindd/internal/dw"
)

// findLanes finds how many lanes the kernel of each section has: the debugging
// information of a Gen ELF file tells it for its only kernel.
func (o *codeObject) findLanes() {
	if o.isRelocatable() {
		o.takeZeInfo()
		return
	}
	if len(o.codes) != 1 {
		return
	}
	c := &o.codes[0]
	lanes, ok := simdWidth(o.section(".debug_info"), o.section(".debug_abbrev"))
	switch {
	case !ok:
	case lanes == 1 || lanes == 8 || lanes == 16 || lanes == 32:
		c.lanes = uint32(lanes)
	default:
		o.problem(".debug_info: DW_AT_INTEL_simd_width is %d, expected 1, 8, 16 or 32", lanes)
	}
}

// The parts of DWARF for reading the first debugging information entry.
const (
	dwarfHeader   = 11 // bytes of a unit's header in 32-bit DWARF 4
	maxAttributes = 64
)

// formSizes has how many bytes attributes have in 32-bit DWARF with addresses of 8
// bytes (DWARF 4, 7.5.4), of the forms that units have.
var formSizes = map[dw.Form]int{
	dw.FormAddr: 8, dw.FormData2: 2, dw.FormData4: 4, dw.FormData8: 8, dw.FormData1: 1, dw.FormFlag: 1, dw.FormStrp: 4,
	dw.FormSecOffset: 4, dw.FormFlagPresent: 0,
}

// simdWidth reads DW_AT_INTEL_simd_width of the first unit.
func simdWidth(info, abbrev []byte) (width uint64, ok bool) {
	if len(info) < dwarfHeader || binary.LittleEndian.Uint16(info[4:]) != 4 || info[10] != 8 {
		return 0, false
	}
	from := uint64(binary.LittleEndian.Uint32(info[6:]))
	if from > uint64(len(abbrev)) {
		return 0, false
	}
	a, rest := reader{abbrev[from:], true}, reader{info[dwarfHeader:], true}
	if code := rest.uleb(); code == 0 || a.uleb() != code {
		return 0, false
	}
	a.uleb()  // the tag
	a.skip(1) // whether there are children
	for range maxAttributes {
		attribute, number := a.uleb(), a.uleb()
		form := dw.Form(min(number, 0xffff))
		switch size, known := formSizes[form]; {
		case !a.ok || attribute == 0:
			return 0, false
		case attribute == uint64(dw.AttrINTELSimdWidth) && form == dw.FormData2 && len(rest.b) >= 2:
			return uint64(binary.LittleEndian.Uint16(rest.b)), rest.ok
		case form == dw.FormString:
			end := bytes.IndexByte(rest.b, 0)
			if end < 0 {
				return 0, false
			}
			rest.skip(end + 1)
		case known:
			rest.skip(size)
		default:
			return 0, false
		}
	}
	return 0, false
}

// reader goes through bytes. ok becomes false at their end.
type reader struct {
	b  []byte
	ok bool
}

func (r *reader) skip(n int) {
	if n > len(r.b) {
		r.b, r.ok = nil, false
		return
	}
	r.b = r.b[n:]
}

func (r *reader) uleb() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.b, r.ok = nil, false
		return 0
	}
	r.b = r.b[size:]
	return n
}
