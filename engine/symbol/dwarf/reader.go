// Package dwarf reads functions, inlined calls and source positions from DWARF,
// versions 2 to 5.
//
// The entries of .debug_info are decoded by the standard library; this package
// finds the unit of an address, indexes one unit at a time, and reads ranges
// and line tables itself. Split units (DWARF 5, 7.3.2) and supplementary files
// (DWARF 5, 7.3.6; .gnu_debugaltlink) are not read: what they hold is missing
// from the frames, and Problems says so.
package dwarf

import (
	godwarf "debug/dwarf"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/symbol"
)

// ErrNoDebugInfo says that an object has no .debug_info.
var ErrNoDebugInfo = errors.New("no debug information")

// maxProblems bounds the list of problems: a file may have one in every unit.
const maxProblems = 16

// A Reader gives the frames that an object's DWARF describes. It implements
// symbol.Source and may be used concurrently.
type Reader struct {
	sections
	name string

	// debug/dwarf is not safe for concurrent use, and units are indexed when
	// they are first needed: mu guards all that follows.
	mu         sync.Mutex
	data       *godwarf.Data
	units      []unit      // by offset
	byAddress  []unitRange // by start
	lineTables map[uint64]lineResult
	lineBudget uint64
	names      map[godwarf.Offset]functionName
	problems   []string
}

// A unitRange says that a unit describes some addresses.
type unitRange struct {
	span
	unit   int
	maxEnd uint64 // the largest end up to here
}

// New reads the unit headers of an object's DWARF; the rest is read when an
// address needs it. It returns ErrNoDebugInfo where the object has none.
func New(o *object.Object) (*Reader, error) {
	s := sections{order: o.ByteOrder(), code: codeSpans(o)}
	for name, to := range map[string]*[]byte{
		".debug_info": &s.info, ".debug_abbrev": &s.abbrev, ".debug_str": &s.str, ".debug_line_str": &s.lineStr,
		".debug_line": &s.line, ".debug_ranges": &s.debugRanges, ".debug_rnglists": &s.rnglists,
		".debug_addr": &s.addr, ".debug_str_offsets": &s.strOffsets, ".debug_aranges": &s.aranges,
	} {
		section := o.Section(name)
		if section == nil {
			continue
		}
		data, err := section.Data()
		if errors.Is(err, object.ErrNoData) {
			continue
		}
		if err != nil {
			return nil, err
		}
		*to = data
	}
	if len(s.info) == 0 {
		return nil, fmt.Errorf("%s: %w", o.Name(), ErrNoDebugInfo)
	}
	return newReader(o.Name(), s)
}

// codeSpans returns where an object has code, or nothing where that is not
// known: a relocatable object's code has no addresses yet.
func codeSpans(o *object.Object) []span {
	if o.Type() == elf.ET_REL {
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

// mergeSpans sorts spans and joins those that touch.
func mergeSpans(list []span) []span {
	slices.SortFunc(list, func(a, b span) int { return compareUint(a.start, b.start) })
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

func newReader(name string, s sections) (r *Reader, err error) {
	r = &Reader{
		name:       name,
		sections:   s,
		lineTables: make(map[uint64]lineResult),
		lineBudget: uint64(len(s.line))*4 + 1<<16,
		names:      make(map[godwarf.Offset]functionName),
	}
	if err := r.protect(r.open); err != nil {
		return nil, err
	}
	return r, nil
}

// protect runs f. It is the one place where a fault on a mapped page, and a
// panic of debug/dwarf on a hostile file, become errors.
func (r *Reader) protect(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("damaged: %v", p)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", r.name, err)
		}
	}()
	return object.Guard(f)
}

func (r *Reader) open() (err error) {
	if r.units, err = r.vet(); err != nil {
		return err
	}
	if r.data, err = godwarf.New(r.abbrev, nil, nil, r.info, r.line, nil, r.debugRanges, r.str); err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		".debug_addr": r.addr, ".debug_line_str": r.lineStr, ".debug_str_offsets": r.strOffsets, ".debug_rnglists": r.rnglists,
	} {
		if err := r.data.AddSection(name, data); err != nil {
			return err
		}
	}
	return r.findRanges()
}

// findRanges fills byAddress from the units' own ranges and .debug_aranges, else
// from their functions.
func (r *Reader) findRanges() error {
	aranges := r.readAranges()
	reader := r.data.Reader()
	budget := len(r.debugRanges) + len(r.rnglists) + 1<<16
	work := int64(len(r.info))*workPerByte + workSlack
	for i := range r.units {
		u := &r.units[i]
		if u.typeUnit {
			continue
		}
		list, err := r.root(u, reader, &budget, &work)
		if err != nil {
			u.err = fmt.Errorf(".debug_info: unit at %#x: %w", u.offset, err)
			r.problem(u.err.Error())
			continue
		}
		// A unit of DWARF 2 has no DW_AT_ranges, and its one range may leave
		// code out that .debug_aranges has.
		list = mergeSpans(append(list, aranges[u.offset]...))
		if len(list) == 0 && u.hasCode {
			x, err := r.indexOf(u)
			if err != nil {
				continue
			}
			for _, s := range x.segments {
				list = append(list, s.span)
			}
		}
		for _, s := range list {
			r.byAddress = append(r.byAddress, unitRange{span: s, unit: i})
		}
	}
	slices.SortStableFunc(r.byAddress, func(a, b unitRange) int { return compareUint(a.start, b.start) })
	var end uint64
	for i := range r.byAddress {
		end = max(end, r.byAddress[i].end)
		r.byAddress[i].maxEnd = end
	}
	return nil
}

// root reads a unit's first entry.
func (r *Reader) root(u *unit, reader *godwarf.Reader, budget *int, work *int64) ([]span, error) {
	if u.first >= u.end {
		return nil, nil
	}
	reader.Seek(godwarf.Offset(u.first))
	e, err := reader.Next()
	if err != nil {
		return nil, err
	}
	if e == nil || e.Tag == 0 {
		return nil, errors.New("its first entry is null")
	}
	if err := charge(work, e); err != nil {
		return nil, err
	}
	u.language, _ = e.Val(godwarf.AttrLanguage).(int64)
	u.compDir, _ = e.Val(godwarf.AttrCompDir).(string)
	if off, ok := e.Val(godwarf.AttrStmtList).(int64); ok {
		u.lineOff, u.hasLine = uint64(off), true
	}
	u.base, _ = e.Val(godwarf.AttrLowpc).(uint64)
	addrBase, _ := e.Val(godwarf.AttrAddrBase).(int64)
	u.addrBase = uint64(addrBase)
	for _, attr := range []godwarf.Attr{attrDwoName, attrGNUDwoName} {
		if f := e.AttrField(attr); f != nil {
			r.problem(fmt.Sprintf(".debug_info: unit at %#x: its functions are in the split file %v, which is not read", u.offset, f.Val))
		}
	}
	// Partial units hold what others import, not code.
	u.hasCode = e.Children && e.Tag != godwarf.TagPartialUnit
	return firstOf(r.ranges(u, e, budget))
}

func firstOf(list []span, _ uint64, _ bool, err error) ([]span, error) { return list, err }

// problem notes something that is missing from what Frames gives.
func (r *Reader) problem(text string) {
	text = r.name + ": " + text
	if len(r.problems) < maxProblems && !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// Problems are what was found so far that frames lack: sentences that name the
// file and the unit. At most 16 are kept.
func (r *Reader) Problems() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.problems)
}

// Frames appends the functions at an ELF virtual address, innermost first; see
// symbol.Source. Where a unit has only a line table (assembly, split units) the
// one frame has a position and no name. An error names the unit.
func (r *Reader) Frames(dst []symbol.Frame, address uint64) ([]symbol.Frame, error) {
	before := len(dst)
	err := r.protect(func() (err error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		dst, err = r.frames(dst, address)
		return err
	})
	if err != nil {
		return dst[:before], err
	}
	return dst, nil
}

// Bounds on the search for the unit of an address where ranges overlap: how many
// units that claim it are looked at, and how many ranges are passed over.
const (
	maxCandidates = 8
	maxSteps      = 1 << 14
)

func (r *Reader) frames(dst []symbol.Frame, address uint64) ([]symbol.Frame, error) {
	i := sort.Search(len(r.byAddress), func(i int) bool { return r.byAddress[i].start > address })
	var failed error
	seen := 0
	for steps := 0; i > 0 && r.byAddress[i-1].maxEnd > address && seen < maxCandidates && steps < maxSteps; steps++ {
		i--
		if !r.byAddress[i].holds(address) {
			continue
		}
		seen++
		u := &r.units[r.byAddress[i].unit]
		x, err := r.indexOf(u)
		if err != nil {
			failed = err
			continue
		}
		n := len(dst)
		if dst = r.chain(dst, u, x, address); len(dst) > n {
			return dst, nil
		}
	}
	return dst, failed
}

// chain appends the frames of one unit.
func (r *Reader) chain(dst []symbol.Frame, u *unit, x *index, address uint64) []symbol.Frame {
	var place symbol.Frame
	known := false
	if x.lines != nil {
		if row, ok := x.lines.position(address); ok {
			known = true
			place.File, place.Line, place.Column = x.lines.fileName(uint64(row.file), u.compDir), int(row.line), int(row.column)
		}
	}
	n := x.scopeAt(address)
	if n < 0 {
		if !known {
			return dst
		}
		return append(dst, place)
	}
	for ; n >= 0; n = int(x.scopes[n].parent) {
		s := &x.scopes[n]
		f := place
		name := r.functionName(u, s)
		f.Function, f.LinkageName, f.Inlined = name.readable, name.linkage, s.inlined
		if !s.inlined {
			f.Start, f.HasStart = s.entry, s.hasEntry
		}
		dst = append(dst, f)
		place = symbol.Frame{File: x.lines.fileName(uint64(s.callFile), u.compDir), Line: int(s.callLine), Column: int(s.callColumn)}
	}
	return dst
}
