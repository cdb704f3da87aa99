// SPDX-License-Identifier: Apache-2.0

package gopclntab

import (
	"debug/elf"

	"github.com/unwindd/unwindd/engine/object"
)

// Indexes of words of runtime.moduledata. It begins with the address of the table and the
// addresses of the table's parts. Later words differ between versions of Go whose tables
// share a magic number: go:func.* is word 38 of Go 1.18, 40 of 1.20 and 43 of 1.27. So
// those words are searched, and the result is verified.
const (
	wordHeader  = 0
	wordNames   = 1
	wordMinPC   = 20 // start of the first function
	wordMaxPC   = 21 // end of the last one
	wordText    = 22
	moduleWords = 64 // words that are searched
)

// dataSections are the sections that may have runtime.moduledata, the likely ones first.
var dataSections = []string{".go.module", ".noptrdata", ".data", ".data.rel.ro"}

// maxRelocations bounds the relocations that are searched for moduledata.
const maxRelocations = 1 << 24

// place finds the base address of the functions' starts and the bytes of the trees of
// inlined calls. Both are in runtime.moduledata. Without it the base is in the header or is
// the start of .text, and the trees are unknown.
func (t *Table) place(o *object.Object, address uint64, table []byte) {
	t.textStart = t.pointer(table[8+2*t.ptrSize:])
	if t.textStart == 0 || o.Type() == elf.ET_DYN {
		if s := o.Section(".text"); s != nil {
			t.textStart = s.Address
		}
	}
	names := address + t.pointer(table[8+3*t.ptrSize:])
	for _, r := range t.relocated(o, func(_, value uint64) bool { return value == address }) {
		if t.takeModule(o, r.place, address, names) {
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
			if t.pointer(b[i:]) == address && t.pointer(b[i+t.ptrSize:]) == names && t.takeModule(o, s.Address+uint64(i), address, names) {
				return
			}
		}
	}
}

// takeModule reads textStart and gofunc from the runtime.moduledata of this table at an
// address; false: it is not there. header is the table's address, names the address of its
// names.
func (t *Table) takeModule(o *object.Object, address, header, names uint64) bool {
	words := t.moduleWords(o, address)
	if len(words) <= wordText || words[wordHeader] != header || words[wordNames] != names {
		return false
	}
	text := words[wordText]
	if text == 0 || t.nfunc == 0 || text+t.entry(0) != words[wordMinPC] || text+t.entry(2*t.nfunc) != words[wordMaxPC] {
		return false
	}
	t.textStart = text
	for _, word := range words[wordText+1:] {
		if b := fileFrom(o, word); b != nil && t.hasTrees(b) {
			t.gofunc = b
			break
		}
	}
	return true
}

// moduleWords are the words at an address, moduleWords at most, with the values that
// relocations write there.
func (t *Table) moduleWords(o *object.Object, address uint64) []uint64 {
	size := uint64(t.ptrSize)
	b := make([]byte, moduleWords*size)
	n, _ := o.ReadAddress(b, address) // a shorter section is fine
	words := make([]uint64, n/t.ptrSize)
	for i := range words {
		words[i] = t.pointer(b[uint64(i)*size:])
	}
	for _, r := range t.relocated(o, func(place, _ uint64) bool { return place-address < moduleWords*size }) {
		if i := (r.place - address) / size; (r.place-address)%size == 0 && i < uint64(len(words)) {
			words[i] = r.value
		}
	}
	return words
}

// fileFrom returns the bytes of a section from an address on.
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

// relocation writes an address, to which the load address is added.
type relocation struct{ place, value uint64 }

// maxWanted bounds the relocations that relocated returns.
const maxWanted = 1 << 8

// relocated returns the wanted relocations with addends of a position-independent
// executable.
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
