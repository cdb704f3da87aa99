// SPDX-License-Identifier: Apache-2.0

package gopclntab

import (
	"debug/elf"

	"github.com/unwindd/unwindd/engine/object"
)

// Words of runtime.moduledata, which begins with the address of the table and
// the parts that the table has. The layout is the same from Go 1.20 on as far
// as these, and from 1.18 on as far as the text.
const (
	wordHeader = 0
	wordNames  = 1
	wordText   = 22
	wordGofunc = 40
)

// dataSections are those that hold runtime.moduledata, the likely ones first.
var dataSections = []string{".go.module", ".noptrdata", ".data", ".data.rel.ro"}

// maxRelocations bounds the relocations that are looked at for moduledata.
const maxRelocations = 1 << 24

// place finds the address that starts of functions count from and the bytes
// that trees of inlined calls are in. Both are in runtime.moduledata. Without
// that the first is in the header, or it is where .text begins, and the second
// is not known.
func (t *Table) place(o *object.Object, address uint64, table []byte) {
	t.textStart = t.pointer(table[8+2*t.ptrSize:])
	if t.textStart == 0 || o.Type() == elf.ET_DYN {
		if s := o.Section(".text"); s != nil {
			t.textStart = s.Address
		}
	}
	names := address + t.pointer(table[8+3*t.ptrSize:])
	size := uint64(t.ptrSize)
	take := func(at uint64) bool {
		relocated := t.relocated(o, func(place, _ uint64) bool { return place-at < (wordGofunc+1)*size })
		var words [wordGofunc + 1]uint64
		b := make([]byte, size)
		for i := range words {
			place := at + uint64(i)*size
			if n, err := o.ReadAddress(b, place); err != nil || n != len(b) {
				return false
			}
			words[i] = t.pointer(b)
			for _, r := range relocated {
				if r.place == place {
					words[i] = r.value
				}
			}
		}
		if words[wordHeader] != address || words[wordNames] != names || words[wordText] == 0 {
			return false
		}
		t.textStart = words[wordText]
		if t.magic == magic120 {
			t.gofunc = fileFrom(o, words[wordGofunc])
		}
		return true
	}
	for _, r := range t.relocated(o, func(_, value uint64) bool { return value == address }) {
		if take(r.place) {
			return
		}
	}
	for _, name := range dataSections {
		s := o.Section(name)
		if s == nil {
			continue
		}
		b, err := s.Data()
		if err != nil {
			continue
		}
		for i := 0; i+2*t.ptrSize <= len(b); i += t.ptrSize {
			if t.pointer(b[i:]) == address && t.pointer(b[i+t.ptrSize:]) == names && take(s.Address+uint64(i)) {
				return
			}
		}
	}
}

// fileFrom is what the section that holds an address has from there on.
func fileFrom(o *object.Object, address uint64) []byte {
	for _, s := range o.Sections() {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Type != elf.SHT_NOBITS && address >= s.Address && address-s.Address < s.Size {
			b, err := s.Data()
			if err != nil || address-s.Address > uint64(len(b)) {
				return nil
			}
			return b[address-s.Address:]
		}
	}
	return nil
}

// A relocation writes an address, to which the load address is added.
type relocation struct{ place, value uint64 }

// maxWanted bounds the relocations that relocated gives.
const maxWanted = 1 << 8

// relocated gives the relocations with addends of a position-independent
// executable that are wanted.
func (t *Table) relocated(o *object.Object, wanted func(place, value uint64) bool) []relocation {
	s := o.Section(".rela.dyn")
	if s == nil {
		s = o.Section(".rela")
	}
	if o.Type() != elf.ET_DYN || s == nil || t.ptrSize != 8 {
		return nil
	}
	b, err := s.Data()
	if err != nil || len(b)/24 > maxRelocations {
		return nil
	}
	var list []relocation
	for ; len(b) >= 24 && len(list) < maxWanted; b = b[24:] {
		symbol := t.order.Uint64(b[8:]) >> 32 // relative ones have none
		place, value := t.order.Uint64(b), t.order.Uint64(b[16:])
		if symbol == 0 && wanted(place, value) {
			list = append(list, relocation{place, value})
		}
	}
	return list
}
