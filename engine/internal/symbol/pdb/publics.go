// SPDX-License-Identifier: Apache-2.0

package pdb

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"unsafe"

	"github.com/unwindd/unwindd/engine/internal/pe"
	"github.com/unwindd/unwindd/engine/internal/symbol/msf"
)

// publics are the public symbols: an array of the offsets of their records, by address.
type publics struct {
	f       *File
	records *msf.Stream
	stream  *msf.Stream // of the array
	first   uint32      // its offset
	count   uint32
	table   uint32 // offset of the table of thunks of incremental linking, in its section
}

// public is a public symbol.
type public struct {
	rva    uint32 // in the space of symbols
	name   string
	isCode bool
}

const publicsHeader = 28

func (f *File) readPublics() *publics {
	p := &publics{f: f}
	s, records := f.container.Stream(int(f.dbi.publicStream)), f.container.Stream(int(f.dbi.recordStream))
	if f.dbi.publicStream == noStream || s == nil || records == nil || s.Size() == 0 {
		return p
	}
	r, err := readAt(s, 0, min(publicsHeader, s.Size()))
	hash, size := r.U32(), r.U32()
	r.Take(12) // thunks: their number and size, and the section of their table
	p.table = r.U32()
	if err == nil && (r.IsCut || uint64(publicsHeader)+uint64(hash)+uint64(size) > uint64(s.Size())) {
		err = s.Errorf(0, "public symbols with %d bytes of a hash table and %d of addresses, expected them in the %d bytes of the stream: public symbols are not read", hash, size, s.Size())
	}
	if err != nil {
		f.note(err)
		return p
	}
	p.stream, p.records, p.first, p.count = s, records, publicsHeader+hash, size/4
	return p
}

// place returns the place of a symbol, by its number by address, and its record.
func (p *publics) place(i uint32) (where place, r record, ok bool) {
	a, err := readAt(p.stream, p.first+4*i, 4)
	if err != nil {
		return where, r, false
	}
	at := a.U32()
	if r, ok = recordAt(p.records, at, p.records.Size()); !ok || r.kind != kindPublic || len(r.Rest) < 10 {
		p.f.note(p.records.Errorf(at, "no public symbol, expected that of number %d by address", i))
		return where, r, false
	}
	x := r.fields
	x.U32()
	where.offset = x.U32()
	where.section = x.U16()
	return where, r, true
}

// Flags of public symbols: any of these is set for functions.
const (
	publicIsCode     = 1
	publicIsFunction = 2
)

// number returns a symbol by its number by address.
func (p *publics) number(i uint32) (s public, ok bool) {
	where, r, ok := p.place(i)
	if !ok {
		return s, false
	}
	if s.rva, ok = p.f.dbi.rva(where.section, where.offset); !ok {
		return s, false
	}
	s.isCode = r.U32()&(publicIsCode|publicIsFunction) != 0
	r.Take(6)
	s.name = r.Text()
	return s, s.name != ""
}

// search returns the number of the first symbol behind an RVA in the sections from its own on;
// -1 where no section has the RVA.
func (p *publics) search(rva uint32) int {
	for number := range p.f.dbi.sections {
		x := &p.f.dbi.sections[number]
		if rva < x.start || rva >= x.end {
			continue
		}
		where := place{uint16(number + 1), rva - x.start} //nolint:gosec // at most 0xffff sections
		return sort.Search(int(p.count), func(i int) bool {
			at, _, ok := p.place(uint32(i)) //nolint:gosec // less than count
			return !ok || at.compare(where) > 0
		})
	}
	return -1
}

// before returns the last symbol that lies at an RVA, or before it.
func (p *publics) before(rva uint32) (s public, ok bool) {
	i := p.search(rva)
	if i <= 0 {
		return s, false
	}
	s, ok = p.number(uint32(i - 1)) //nolint:gosec // not negative
	return s, ok && s.rva <= rva
}

// maxSame bounds the symbols at one address that are looked at.
const maxSame = 64

// named returns the symbol at an RVA: of several, the one with a procedure's own name, else the
// last.
func (p *publics) named(rva uint32, own string) (s public, ok bool) {
	last := p.search(rva) - 1
	for i := last; i >= 0 && last-i < maxSame; i-- {
		next, isThere := p.number(uint32(i)) //nolint:gosec // not negative
		if !isThere || next.rva != rva {
			break
		}
		if !ok {
			s, ok = next, true
		}
		if next.name == own || p.f.identity.Machine == pe.MachineX86 && pe.WithoutConvention(next.name) == own {
			return next, true
		}
	}
	return s, ok
}

// trampolineName is the name of a jump to a function: of the table that incremental linking makes,
// or of an island within reach of a branch. Debuggers of Windows write @ILT+OFFSET(NAME).
func (f *File) trampolineName(r record) string {
	const isIsland = 1
	kind := r.U16()
	r.U16()
	offset, target := r.U32(), r.U32()
	r.U16()
	rva, ok := f.dbi.rva(r.U16(), target)
	if !ok {
		return ""
	}
	name := ""
	if to, ok := f.at(rva); ok && to.isNamed {
		if r, ok := recordAt(to.index.stream, to.procedure.record, to.index.end); ok {
			name = r.name() // none of another jump, which might lead back here
		}
	} else if p, ok := f.publics().before(rva); ok && p.rva == rva {
		name = p.name
	}
	if kind == isIsland {
		return "@island(" + name + ")"
	}
	return fmt.Sprintf("@ILT+%d(%s)", offset-min(offset, f.publics().table), name)
}

// omap translates between the addresses of symbols and the addresses in an image whose parts were
// moved after it was linked. nil: they are the same.
type omap struct{ from, to []omapEntry } // by addresses in the image; by addresses of symbols

// omapEntry is where the addresses from one on, up to the next entry's, lie; 0: nowhere.
type omapEntry struct{ start, to uint32 }

// readOmap reads both tables; nil where they cannot be read.
func (f *File) readOmap(to, from uint16) *omap {
	m := &omap{}
	for _, t := range []struct {
		number uint16
		list   *[]omapEntry
	}{{to, &m.to}, {from, &m.from}} {
		s := f.container.Stream(int(t.number))
		if s == nil {
			f.note(fmt.Errorf("%s: stream %d, which has the addresses of moved code, is missing: addresses are unknown", f.Name(), t.number))
			return &omap{}
		}
		r, err := readAt(s, 0, s.Size()/8*8)
		f.note(err)
		*t.list = make([]omapEntry, 0, len(r.Rest)/8)
		for len(r.Rest) >= 8 {
			*t.list = append(*t.list, omapEntry{r.U32(), r.U32()})
		}
		slices.SortStableFunc(*t.list, func(a, b omapEntry) int { return cmp.Compare(a.start, b.start) })
		f.kept.Add(int64(cap(*t.list)) * int64(unsafe.Sizeof(omapEntry{})))
	}
	return m
}

func (m *omap) toSymbols(rva uint32) (uint32, bool) {
	if m == nil {
		return rva, true
	}
	return translate(m.to, rva)
}

func (m *omap) toImage(rva uint32) (uint32, bool) {
	if m == nil {
		return rva, true
	}
	return translate(m.from, rva)
}

func translate(list []omapEntry, rva uint32) (uint32, bool) {
	i := sort.Search(len(list), func(i int) bool { return list[i].start > rva })
	if i == 0 || list[i-1].to == 0 {
		return 0, false
	}
	return list[i-1].to + (rva - list[i-1].start), true
}
