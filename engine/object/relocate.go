package object

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
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

// A relocationEntry is an entry of a relocation table, in the file's terms.
type relocationEntry struct {
	at     uint64 // where it is in the file, for messages
	place  uint64 // offset in the section that it is for
	typ    uint32
	symbol uint64
	addend uint64
}

// A relocationTable reads the entries of an SHT_REL or SHT_RELA section.
type relocationTable struct {
	from    *Section
	h       *header
	b       []byte
	size    int  // of an entry
	addends bool // SHT_RELA
}

func (o *Object) relocationTable(from *Section) (t relocationTable, err error) {
	t = relocationTable{from: from, h: &o.header, addends: from.Type == elf.SHT_RELA}
	if t.b, err = from.raw(); err != nil {
		return t, err
	}
	t.size = 8
	switch {
	case t.h.wide && t.addends:
		t.size = 24
	case t.h.wide:
		t.size = 16
	case t.addends:
		t.size = 12
	}
	if from.EntrySize != 0 && from.EntrySize != uint64(t.size) {
		return t, fmt.Errorf("entries of %d bytes, expected %d", from.EntrySize, t.size)
	}
	if len(t.b)%t.size != 0 {
		return t, fmt.Errorf("%d bytes, expected a multiple of %d", len(t.b), t.size)
	}
	return t, nil
}

func (t *relocationTable) len() int { return len(t.b) / t.size }

func (t *relocationTable) at(i int) relocationEntry {
	b := t.b[i*t.size : (i+1)*t.size]
	f := fields{b, t.h.order, t.h.wide}
	info := f.word(4, 8)
	e := relocationEntry{at: t.from.Offset + uint64(i*t.size), place: f.word(0, 0), typ: uint32(info), symbol: info >> 32}
	switch {
	case !t.h.wide:
		e.typ, e.symbol = uint32(info&0xff), info>>8
	case t.h.machine == uint16(elf.EM_MIPS) && t.h.order == binary.LittleEndian:
		// The symbol comes first, and up to three types follow, the last one's
		// byte first (64-bit ELF Object File Specification of MIPS, 2.9).
		e.typ, e.symbol = uint32(info>>56)|uint32(info>>48&0xff)<<8|uint32(info>>40&0xff)<<16, uint64(uint32(info))
	}
	switch {
	case t.addends && t.h.wide:
		e.addend = t.h.order.Uint64(b[16:])
	case t.addends:
		e.addend = uint64(int64(int32(t.h.order.Uint32(b[8:]))))
	}
	return e
}

// applyAll applies the relocations in section from to b, the contents of s.
func (s *Section) applyAll(from *Section, b []byte) error {
	o := s.object
	h := &o.header
	table, err := o.relocationTable(from)
	if err != nil {
		return err
	}
	symbols, err := o.symbolValues(from.Link)
	if err != nil {
		return err
	}
	for i := range table.len() {
		e := table.at(i)
		r, ok := o.relocations[e.typ]
		if !ok {
			return fmt.Errorf("offset %#x: relocation type %d of machine %d is not known", e.at, e.typ, h.machine)
		}
		if r.Kind == RelocationNone {
			continue
		}
		place, ok := slice(b, e.place, uint64(r.Size))
		if !ok {
			return fmt.Errorf("offset %#x: place %#x is not in the %d bytes of the section", e.at, e.place, len(b))
		}
		f := fields{place, h.order, h.wide}
		value, err := symbols.at(e.symbol)
		if err != nil {
			return fmt.Errorf("offset %#x: %w", e.at, err)
		}
		value += e.addend
		if !table.addends {
			in, err := f.signed(r.Size)
			if err != nil {
				return fmt.Errorf("relocation type %d: %w", e.typ, err)
			}
			value += in
		}
		switch r.Kind {
		case RelocationAbsolute:
		case RelocationRelative:
			value -= s.Address + e.place
		default:
			return fmt.Errorf("relocation type %d: kind %d is not known", e.typ, r.Kind)
		}
		if err := f.put(r.Size, value); err != nil {
			return fmt.Errorf("relocation type %d: %w", e.typ, err)
		}
	}
	return nil
}

// A Reference is a place of a relocatable object's section that is relocated.
type Reference struct {
	Offset  uint64 // in the section that has the place
	Section uint32 // index of the section that the symbol is in
}

// References returns the places of a section that refer to sections of the same
// object, sorted by offset, of several relocations of one place the first. In a
// relocatable object every section may begin at address 0: a relocated number
// alone does not say which section it is an address of. Undefined and absolute
// symbols are in no section, and left out; so is what needs no symbol. There
// are none where the object is not relocatable.
//
// Intel's compilers for their GPUs give the symbol of a section of code the
// name of that section, and the index of the section that refers to it: such a
// symbol is taken to be in the section that it names.
func (s *Section) References() (list []Reference, err error) {
	o := s.object
	err = Guard(func() (err error) {
		list, err = s.references()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: section %s (%d): %w", o.name, s.Name, s.Index, err)
	}
	return list, nil
}

// codeByName returns the indexes of the sections of code by name; -1 where
// several have it.
func (o *Object) codeByName() map[string]int {
	code := make(map[string]int)
	for _, s := range o.sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 {
			continue
		}
		if _, several := code[s.Name]; several {
			code[s.Name] = -1
		} else {
			code[s.Name] = s.Index
		}
	}
	return code
}

func (s *Section) references() (list []Reference, err error) {
	o := s.object
	total := uint64(0)
	for _, from := range o.relocated[uint32(s.Index)] {
		limit := min(uint64(len(o.data)), maxRelocations)
		if total += min(from.Size, limit+1); total > limit {
			return nil, fmt.Errorf("relocations of section %s (%d): offset %#x: all of them are more than %d bytes", from.Name, from.Index, from.Offset, limit)
		}
		table, err := o.relocationTable(from)
		if err != nil {
			return nil, fmt.Errorf("relocations of section %s (%d): %w", from.Name, from.Index, err)
		}
		symbols, err := o.symbolValues(from.Link)
		if err != nil {
			return nil, fmt.Errorf("relocations of section %s (%d): %w", from.Name, from.Index, err)
		}
		for i := range table.len() {
			e := table.at(i)
			section, err := symbols.section(e.symbol)
			if err != nil {
				return nil, fmt.Errorf("relocations of section %s (%d): offset %#x: %w", from.Name, from.Index, e.at, err)
			}
			if section != 0 {
				section = symbols.named(e.symbol, section)
			}
			if r := o.relocations[e.typ]; section != 0 && r.Kind != RelocationNone {
				list = append(list, Reference{e.place, section})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Reference) int { return cmp.Compare(a.Offset, b.Offset) })
	return slices.CompactFunc(list, func(a, b Reference) bool { return a.Offset == b.Offset }), nil
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
