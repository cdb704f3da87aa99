// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
)

// sections are the parts of a file that are read. They are in memory that may fault: they
// are read inside Reader.protect only.
type sections struct {
	info, abbrev, str, lineStr, line, debugRanges, rnglists, addr, strOffsets, aranges []byte

	isBigEndian bool
	// code are the address ranges of code, sorted; ranges outside are of code that the
	// linker removed. Empty where they are unknown.
	code []span
}

// rests unpack the parts of sections that are missing; nil for complete sections. Need must
// be called before a part of a section is read.
type rests struct {
	info, abbrev, str, lineStr, line, debugRanges, rnglists, addr, strOffsets, aranges *object.Contents
}

// file has debug information: the object itself, its split file or package (DWARF 5, 7.3.2
// and 7.3.5), or a supplementary file (7.3.6).
type file struct {
	sections
	rest     rests
	name     string
	suffix   string // of the names of sections: ".dwo" or ""
	lineName string // of the section of line tables; "": .debug_line with the suffix
	object   *object.Object
	layout   *layout // of a relocatable object; else nil

	reader  *Reader
	isPart  bool          // an object file of the program
	moves   []Moved       // what the program has of it, by start
	origins lazy[[]Moved] // the same, by its places in the program

	units     unitList // of .debug_info; none in a package
	early     lazy[*unitMap]
	quick     lazy[*unitMap]
	whole     lazy[*unitMap]
	variables lazy[[]placedVariable]
	indexes   [2]*packageIndex  // of a package: .debug_cu_index, .debug_tu_index
	types     lazy[typeSection] // .debug_types
	loc       lazy[[]byte]      // .debug_loc
	loclists  lazy[[]byte]      // .debug_loclists
	sup       lazy[*file]

	debugNames lazy[[]*nameIndex]

	bySignature lazy[map[uint64]*unit] // type units
	abbrevCache abbrevCache
	lineTables  lineTables
	sources     sources
	kept        atomic.Int64 // range entries in indexes
}

// sectionData reads a section of an object. One that is absent or has no bytes is empty.
func sectionData(o *object.Object, name string) ([]byte, error) {
	s := o.Section(name)
	if s == nil {
		return nil, nil
	}
	data, err := s.Data()
	if errors.Is(err, object.ErrNoData) {
		return nil, nil
	}
	return data, err
}

// unitData reads the section of a name that has units. A relocatable file or a split file
// with type units has several sections of that name: they are joined, so that offsets are
// not those in the file.
func (f *file) unitData(name string) ([]byte, error) {
	o := f.object
	var all []byte
	count := 0
	for _, s := range o.Sections() {
		if s.Name != name || s.Type == elf.SHT_NOBITS {
			continue
		}
		data, err := f.layout.data(s)
		if err != nil {
			return nil, err
		}
		if count++; count == 1 {
			all = data
			continue
		}
		if len(all)+len(data) > len(o.Data()) {
			return nil, fmt.Errorf("%s: %s: sections of that name are larger than the file", o.Name(), name)
		}
		if count == 2 {
			all = slices.Clone(all)
		}
		all = append(all, data...)
	}
	if count == 0 {
		return sectionData(o, name) // the old compressed form
	}
	return all, nil
}

// openFile reads the sections of an object that every query needs.
func openFile(o *object.Object, suffix string) (*file, error) {
	f := &file{name: o.Name(), suffix: suffix, object: o, layout: newLayout(o)}
	f.isBigEndian, f.code = isBigEndian(o), codeSpans(o)
	s, r := &f.sections, &f.rest
	for _, x := range []struct {
		name string
		data *[]byte
		rest **object.Contents
	}{
		{".debug_info", &s.info, &r.info}, {".debug_abbrev", &s.abbrev, &r.abbrev}, {".debug_str", &s.str, &r.str},
		{".debug_line_str", &s.lineStr, &r.lineStr}, {".debug_line", &s.line, &r.line},
		{".debug_ranges", &s.debugRanges, &r.debugRanges}, {".debug_rnglists", &s.rnglists, &r.rnglists},
		{".debug_addr", &s.addr, &r.addr}, {".debug_str_offsets", &s.strOffsets, &r.strOffsets},
		{".debug_aranges", &s.aranges, &r.aranges},
	} {
		var err error
		if *x.rest, err = f.contents(x.name); err == nil && *x.rest != nil {
			*x.data = (*x.rest).Bytes()
			continue
		}
		if err == nil {
			*x.data, err = f.read(x.name)
		}
		if err != nil {
			return nil, err
		}
	}
	return f, nil
}

// contents returns a section that is unpacked on demand; nil for one that read returns.
func (f *file) contents(name string) (*object.Contents, error) {
	o := f.object
	if o.IsRelocatable() || f.suffix != "" {
		return nil, nil
	}
	s := o.Section(name)
	if s == nil || name == ".debug_info" && slices.ContainsFunc(o.Sections()[s.Index+1:], func(other *object.Section) bool { return other.Name == name }) {
		return nil, nil
	}
	c, err := s.Contents()
	if errors.Is(err, object.ErrNoData) || err == nil && c.Ready() == uint64(len(c.Bytes())) {
		return nil, nil // read returns it
	}
	return c, err
}

func isBigEndian(o *object.Object) bool { return o.ByteOrder().String() == "BigEndian" }

// read reads a section, or the joined sections that have units.
func (f *file) read(name string) ([]byte, error) {
	if f.object == nil {
		return nil, nil
	}
	if name == ".debug_info" || name == ".debug_types" {
		return f.unitData(name + f.suffix)
	}
	s := f.object.Section(name + f.suffix)
	if s == nil {
		return nil, nil
	}
	return f.layout.data(s)
}

// codeSpans returns the address ranges of an object's code; nothing where they are unknown.
func codeSpans(o *object.Object) []span {
	if o.IsRelocatable() {
		return nil
	}
	var code []span
	for _, s := range o.Sections() {
		if s.Flags&elf.SHF_ALLOC != 0 && s.Flags&elf.SHF_EXECINSTR != 0 && s.Size <= ^s.Address {
			code = append(code, span{s.Address, s.Address + s.Size})
		}
	}
	if len(code) == 0 {
		for _, s := range o.Segments() {
			if s.Flags&elf.PF_X != 0 && s.MemSize <= ^s.Address {
				code = append(code, span{s.Address, s.Address + s.MemSize})
			}
		}
	}
	return mergeSpans(code)
}

// span is the addresses from start up to, not including, end.
type span struct{ start, end uint64 }

func (s span) holds(address uint64) bool { return s.start <= address && address < s.end }

// mergeSpans sorts spans and joins those that touch.
func mergeSpans(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return compare(a.start, b.start) })
	merged := list[:0]
	for _, s := range list {
		if n := len(merged); n > 0 && s.start <= merged[n-1].end {
			merged[n-1].end = max(merged[n-1].end, s.end)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

// isLive reports whether a range is of code that is in the object.
func (s *sections) isLive(r span) bool {
	if r.start >= r.end {
		return false
	}
	if len(s.code) == 0 {
		return true
	}
	if len(s.code) <= 8 {
		for i := range s.code {
			if s.code[i].holds(r.start) {
				return true
			}
		}
		return false
	}
	i := sort.Search(len(s.code), func(i int) bool { return s.code[i].start > r.start })
	return i > 0 && s.code[i-1].holds(r.start)
}

// lazy is a value that is computed when it is first needed, once, even where computing it
// fails or faults. The zero value is ready for use.
type lazy[T any] struct {
	done  atomic.Bool
	mu    sync.Mutex
	value T
	err   error
}

var errInterrupted = errors.New("reading was interrupted before, by a fault")

func (l *lazy[T]) get(compute func() (T, error)) (T, error) {
	if !l.done.Load() {
		l.make(compute)
	}
	return l.value, l.err
}

func (l *lazy[T]) make(compute func() (T, error)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.done.Load() {
		return
	}
	l.err = errInterrupted // stays if compute does not return
	defer l.done.Store(true)
	l.value, l.err = compute()
}

// copied returns a string that does not share memory with the file.
func copied(b []byte) string { return string(b) }
