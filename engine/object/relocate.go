package object

import (
	"debug/elf"
	"fmt"
	"math"
)

// SetRelocations gives the relocation types of the machine, which sections of a
// relocatable object are relocated by. It forgets what Data has made so far,
// and must not run beside other methods.
func (o *Object) SetRelocations(table []Relocation) {
	o.relocations = make(map[uint32]Relocation, len(table))
	for _, r := range table {
		o.relocations[r.Type] = r
	}
	for _, s := range o.sections {
		s.reset()
	}
	o.unpacked.Store(0)
}

// relocate applies the relocations of a section of a relocatable object to its
// contents. Owned says that b may be written to.
func (s *Section) relocate(b []byte, owned bool) ([]byte, error) {
	o := s.object
	if o.header.typ != elf.ET_REL || s.Flags&elf.SHF_EXECINSTR != 0 || !relocatable(s.Type) {
		return b, nil
	}
	var total uint64
	for _, from := range o.relocated[uint32(s.Index)] {
		// Many sections of relocations could be the same bytes.
		limit := min(uint64(len(o.data)), maxRelocations)
		if total += min(from.Size, limit+1); total > limit {
			return nil, fmt.Errorf("relocations of section %s (%d): offset %#x: all of them are more than %d bytes", from.Name, from.Index, from.Offset, limit)
		}
		if !owned {
			if err := o.grow(uint64(len(b))); err != nil {
				return nil, err
			}
			b = append([]byte(nil), b...)
			owned = true
		}
		if err := s.applyAll(from, b); err != nil {
			return nil, fmt.Errorf("relocations of section %s (%d): %w", from.Name, from.Index, err)
		}
	}
	return b, nil
}

// relocatable says whether contents of a type hold addresses. Tables of the
// link editor itself refer by index.
func relocatable(t elf.SectionType) bool {
	switch t {
	case elf.SHT_SYMTAB, elf.SHT_STRTAB, elf.SHT_RELA, elf.SHT_REL, elf.SHT_GROUP, elf.SHT_SYMTAB_SHNDX:
		return false
	}
	return true
}

// applyAll applies the relocations in section from to b, the contents of s.
func (s *Section) applyAll(from *Section, b []byte) error {
	o := s.object
	h := &o.header
	table, err := from.raw()
	if err != nil {
		return err
	}
	addend := from.Type == elf.SHT_RELA
	size := 8
	switch {
	case h.wide && addend:
		size = 24
	case h.wide:
		size = 16
	case addend:
		size = 12
	}
	if from.EntrySize != 0 && from.EntrySize != uint64(size) {
		return fmt.Errorf("entries of %d bytes, expected %d", from.EntrySize, size)
	}
	if len(table)%size != 0 {
		return fmt.Errorf("%d bytes, expected a multiple of %d", len(table), size)
	}
	symbols, err := o.symbolValues(from.Link)
	if err != nil {
		return err
	}
	for i := 0; i < len(table); i += size {
		f := fields{table[i : i+size], h.order, h.wide}
		offset, info := f.word(0, 0), f.word(4, 8)
		typ, symbol := uint32(info), info>>32
		if !h.wide {
			typ, symbol = uint32(info&0xff), info>>8
		}
		r, ok := o.relocations[typ]
		if !ok {
			return fmt.Errorf("offset %#x: relocation type %d of machine %d is not known", from.Offset+uint64(i), typ, h.machine)
		}
		if r.Kind == RelocationNone {
			continue
		}
		place, ok := slice(b, offset, uint64(r.Size))
		if !ok {
			return fmt.Errorf("offset %#x: place %#x is not in the %d bytes of the section", from.Offset+uint64(i), offset, len(b))
		}
		f.b = place
		value, err := symbols.at(symbol)
		if err != nil {
			return fmt.Errorf("offset %#x: %w", from.Offset+uint64(i), err)
		}
		switch {
		case addend && h.wide:
			value += h.order.Uint64(table[i+16:])
		case addend:
			value += uint64(int64(int32(h.order.Uint32(table[i+8:]))))
		default:
			in, err := f.signed(r.Size)
			if err != nil {
				return fmt.Errorf("relocation type %d: %w", typ, err)
			}
			value += in
		}
		switch r.Kind {
		case RelocationAbsolute:
		case RelocationRelative:
			value -= s.Address + offset
		default:
			return fmt.Errorf("relocation type %d: kind %d is not known", typ, r.Kind)
		}
		if err := f.put(r.Size, value); err != nil {
			return fmt.Errorf("relocation type %d: %w", typ, err)
		}
	}
	return nil
}

// signed reads the field, sign-extended.
func (f fields) signed(size uint8) (uint64, error) {
	switch size {
	case 1:
		return uint64(int64(int8(f.b[0]))), nil
	case 2:
		return uint64(int64(int16(f.u16(0)))), nil
	case 4:
		return uint64(int64(int32(f.u32(0)))), nil
	case 8:
		return f.u64(0), nil
	}
	return 0, fmt.Errorf("size %d, expected 1, 2, 4 or 8", size)
}

// put writes the low bytes of value. A value that fits neither as a signed nor
// as an unsigned number is an error, unless the field has the size of an
// address: those wrap.
func (f fields) put(size uint8, value uint64) error {
	bits := uint(size) * 8
	if address := bits == 64 || (bits == 32 && !f.wide); !address {
		unsigned := value <= math.MaxUint64>>(64-bits)
		negative := int64(value) < 0 && int64(value) >= -1<<(bits-1)
		if !unsigned && !negative {
			return fmt.Errorf("value %#x does not fit %d bytes", value, size)
		}
	}
	switch size {
	case 1:
		f.b[0] = byte(value)
	case 2:
		f.order.PutUint16(f.b, uint16(value))
	case 4:
		f.order.PutUint32(f.b, uint32(value))
	case 8:
		f.order.PutUint64(f.b, value)
	default:
		return fmt.Errorf("size %d, expected 1, 2, 4 or 8", size)
	}
	return nil
}
