package dwarf

import (
	"fmt"
	"sync"
)

// Bounds on abbreviations.
const (
	maxAttributes = 128 // of one abbreviation
	// abbrevSlack bounds how often the bytes of .debug_abbrev may be read for
	// different tables: producers write tables that do not overlap.
	abbrevSlack = 4
)

// A spec is an attribute of an abbreviation.
type spec struct {
	attr     Attr
	form     form
	kind     skipKind
	size     uint8 // of a value of fixed size
	implicit int64 // of DW_FORM_implicit_const
}

// An abbrev is an abbreviation declaration (DWARF 5, 7.5.3), with what is needed
// to pass over an entry that has it.
type abbrev struct {
	specs []spec // nil where the code is not declared
	skips []skip // how to pass over the values
	tag   Tag
	// sibling is where the value of DW_AT_sibling is, counted from the first
	// attribute's, in an abbreviation that has it as a reference of 4 bytes
	// behind values of fixed sizes; -1 else.
	sibling  int16
	declared bool
	children bool
	code     bool // has DW_AT_low_pc or DW_AT_ranges
	decl     bool // has DW_AT_declaration
}

// A skip passes over one value of variable size, or over several of fixed size.
type skip struct {
	kind skipKind
	size uint16 // of skipFixed
}

type skipKind uint8

const (
	skipFixed skipKind = iota
	skipLEB
	skipString
	skipBlock1
	skipBlock2
	skipBlock4
	skipBlock    // a length in LEB128, and so many bytes
	skipAddrxOff // a number in LEB128, and 4 bytes
	skipIndirect
)

// An abbrevTable is the abbreviations of a unit, by code.
type abbrevTable struct {
	dense  []abbrev // by code, where codes count from 1 as they do as a rule
	sparse map[uint64]*abbrev
}

// find returns the declaration of a code; nil where there is none.
func (t *abbrevTable) find(code uint64) *abbrev {
	if code < uint64(len(t.dense)) {
		if a := &t.dense[code]; a.declared {
			return a
		}
		return nil
	}
	return t.sparse[code]
}

// abbrevKey is all that the skips of a table depend on.
type abbrevKey struct {
	offset uint64
	format format
}

// A format is what the sizes of forms depend on.
type format struct {
	version, addrSize, offsetSize uint8
	big                           bool
}

// An abbrevCache has the tables of a file that were read so far.
type abbrevCache struct {
	mu     sync.Mutex
	tables map[abbrevKey]abbrevResult
	budget uint64 // bytes of .debug_abbrev that may still be read
}

type abbrevResult struct {
	table *abbrevTable
	err   error
}

// abbrevs returns the table of a unit, read once.
func (f *file) abbrevs(off, end uint64, format format) (*abbrevTable, error) {
	c := &f.abbrevCache
	c.mu.Lock()
	defer c.mu.Unlock()
	format.version = min(format.version, 3) // only DWARF 2 differs
	key := abbrevKey{off, format}
	if r, ok := c.tables[key]; ok {
		return r.table, r.err
	}
	if c.tables == nil {
		c.tables = make(map[abbrevKey]abbrevResult)
		c.budget = uint64(len(f.abbrev))*abbrevSlack + 1<<16
	}
	var r abbrevResult
	r.table, r.err = f.readAbbrevs(off, end, format)
	c.tables[key] = r
	return r.table, r.err
}

func wrongTable(off uint64, problem string) error {
	return &FormatError{".debug_abbrev", off, fmt.Sprintf("table at %#x", off), problem}
}

func (f *file) readAbbrevs(off, end uint64, format format) (*abbrevTable, error) {
	c := at(f.abbrev, f.big, off, end)
	t := &abbrevTable{dense: make([]abbrev, 1, 128)}
	var specs []spec
	var skips []skip
	for {
		entry := c.off
		code := c.uleb()
		if code == 0 {
			break
		}
		tag := c.uleb()
		a := abbrev{tag: Tag(tag), declared: true, sibling: -1}
		a.children = c.uint(1) != 0
		firstSpec, firstSkip := len(specs), len(skips)
		fixed := 0
		for {
			name, encoding := c.uleb(), c.uleb()
			s := spec{attr: Attr(name), form: form(encoding)}
			if s.form == formImplicit && encoding == uint64(formImplicit) {
				s.implicit = c.sleb()
			}
			if name == 0 && encoding == 0 || c.failed {
				break
			}
			if len(specs)-firstSpec == maxAttributes {
				return nil, bad(".debug_abbrev", entry, "more than %d attributes", maxAttributes)
			}
			if name > 0xffff || encoding > 0xffff || tag > 0xffff {
				return nil, bad(".debug_abbrev", entry, "tag %#x, attribute %#x, form %#x, expected less than 0x10000", tag, name, encoding)
			}
			kind, size, ok := format.skipOf(s.form)
			if !ok {
				return nil, bad(".debug_abbrev", entry, "form %#x of attribute %#x is not known", encoding, name)
			}
			s.kind, s.size = kind, size
			if first, ok := secondNumbers[s.attr]; ok {
				s.attr = first
			}
			switch s.attr {
			case AttrSibling:
				if s.form == formRef4 && len(skips) == firstSkip {
					a.sibling = int16(fixed)
				}
			case AttrLowPC, AttrRanges:
				a.code = true
			case AttrDeclaration:
				a.decl = true
			}
			specs = append(specs, s)
			if kind == skipFixed {
				fixed += int(size)
				continue
			}
			if fixed > 0 {
				skips = append(skips, skip{skipFixed, uint16(fixed)})
				fixed = 0
			}
			skips = append(skips, skip{kind, 0})
		}
		if fixed > 0 {
			skips = append(skips, skip{skipFixed, uint16(fixed)})
		}
		if c.failed {
			break
		}
		a.specs = specs[firstSpec:len(specs):len(specs)]
		a.skips = skips[firstSkip:len(skips):len(skips)]
		// Growing moves specs and skips on; what earlier entries hold stays.
		t.add(code, a)
		if used := c.off - off; used > f.abbrevCache.budget {
			return nil, wrongTable(off, "the tables of different units overlap")
		}
	}
	if c.failed {
		return nil, wrongTable(off, "it does not end in the section")
	}
	f.abbrevCache.budget -= min(c.off-off, f.abbrevCache.budget)
	return t, nil
}

// add declares a code; of several declarations the first counts.
func (t *abbrevTable) add(code uint64, a abbrev) {
	if t.find(code) != nil {
		return
	}
	if code == uint64(len(t.dense)) {
		t.dense = append(t.dense, a)
		return
	}
	if code < uint64(len(t.dense)) {
		t.dense[code] = a
		return
	}
	if t.sparse == nil {
		t.sparse = make(map[uint64]*abbrev)
	}
	t.sparse[code] = &a
}
