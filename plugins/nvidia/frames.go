// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// Of .debug_frame, as compilers write it: entries have 64-bit lengths.
const (
	frameSection = ".debug_frame"
	escape64     = 0xffffffff
	idOfCIE      = ^uint64(0)
)

// Bounds of the rows of an object.
const (
	maxRows      = 1 << 20
	maxRules     = 1 << 22
	maxRowsOfFDE = 1 << 14
)

// overrideReason is why rows of the plugin take the place of call frame information where the
// engine does not know that they are made of it.
const overrideReason = "rows made of it: it counts on the callers' registers where it has an expression for the return address, and its addresses are of local memory"

// describeFrames makes rows of .debug_frame. They mean what compilers mean by them: see
// rowMaker.
func (o *codeObject) describeFrames() {
	data := o.section(frameSection)
	if data == nil {
		return
	}
	o.answer.ReadsCFI = true
	references := o.references()
	data = o.repairFrames(slices.Clone(data))
	section := cfi.Section{Name: frameSection, Data: data, Order: binary.LittleEndian, AddressSize: 8}
	if !o.isPlaced {
		for offset, r := range references {
			if r.hasAddend && offset <= uint64(len(data)-8) {
				binary.LittleEndian.PutUint64(data[offset:], r.value)
			}
		}
		section.Code = func(offset uint64) (uint32, bool) {
			r, ok := references[offset]
			return r.section, ok
		}
	}
	t, err := cfi.NewTable(section)
	if err != nil {
		o.problem("%v", err)
		return
	}
	o.addRows(t)
	for _, err := range t.Problems() {
		o.problem("%v", err)
	}
}

// addRows adds the rows of a table, one table of the answer for each section of code.
func (o *codeObject) addRows(t *cfi.Table) {
	bySection := map[uint32][]cfi.Row{}
	rows, rules := 0, 0
	for fde, err := range t.FDEs() {
		if err != nil {
			o.problem("%v", err)
			continue
		}
		if fde.Start >= fde.End {
			continue
		}
		made, err := o.rowsOf(fde)
		if err != nil {
			o.problem("%s: FDE at %#x, of %#x to %#x: %v", frameSection, fde.Offset, fde.Start, fde.End, err)
		}
		for i := range made {
			rows, rules = rows+1, rules+len(made[i].Rules)
		}
		if rows > maxRows || rules > maxRules {
			o.problem("%s: more than %d rows or %d rules: the others are left out", frameSection, maxRows, maxRules)
			break
		}
		bySection[fde.Code] = append(bySection[fde.Code], made...)
	}
	sections := make([]uint32, 0, len(bySection))
	for section := range bySection {
		sections = append(sections, section)
	}
	slices.Sort(sections)
	for _, section := range sections {
		o.answer.Tables = append(o.answer.Tables, sdk.RowTable{
			Priority: sdk.OverridesCFI, Reason: overrideReason, Section: section, Rows: o.disjoint(bySection[section]),
		})
	}
}

// rowsOf makes the rows of an FDE; none where its function has its return address where no
// row can say it.
func (o *codeObject) rowsOf(fde *cfi.FDE) (rows []cfi.Row, err error) {
	function := o.functionAt(fde.Code, fde.Start)
	m := rowMaker{column: fde.CIE.ReturnAddress, isKernel: function != nil && function.isKernel(), code: o.codeOf(fde), end: fde.End}
	if m.column == noColumn && !m.isKernel && function != nil {
		return nil, nil // before sm_70 calls keep return addresses to themselves
	}
	var failed error
	read := 0
	err = fde.Rows(func(r *cfi.Row) bool {
		row, err := m.make(r)
		if err != nil {
			failed = fmt.Errorf("row of %#x to %#x: %w", r.Start, r.End, err)
		} else if n := len(rows); n > 0 && rows[n-1].End == row.Start && isEqualRow(&rows[n-1], &row) {
			rows[n-1].End = row.End
		} else {
			rows = append(rows, row)
		}
		read++
		return read < maxRowsOfFDE
	})
	o.mended += m.mended
	switch {
	case err != nil:
		return rows, err
	case failed != nil:
		return rows, failed
	case read == maxRowsOfFDE:
		return rows, fmt.Errorf("more than %d rows: the others are left out", maxRowsOfFDE)
	}
	return rows, nil
}

// disjoint sorts rows, and leaves out each that overlaps the one before.
func (o *codeObject) disjoint(rows []cfi.Row) []cfi.Row {
	slices.SortStableFunc(rows, func(a, b cfi.Row) int {
		if a.Start < b.Start {
			return -1
		} else if a.Start > b.Start {
			return 1
		}
		return 0
	})
	kept := rows[:0]
	for _, r := range rows {
		n := len(kept)
		if n > 0 && r.Start == kept[n-1].Start && r.End == kept[n-1].End && isEqualRow(&r, &kept[n-1]) {
			continue // nvlink repeats functions that several objects have
		}
		if n > 0 && r.Start < kept[n-1].End {
			o.problem("%s: rows of %#x to %#x and of %#x to %#x overlap: the second is left out", frameSection, kept[n-1].Start, kept[n-1].End, r.Start, r.End)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// reference is the target of a relocation of .debug_frame.
type reference struct {
	section   uint32
	value     uint64 // of the field, where hasAddend
	hasAddend bool
}

// references returns the targets of the relocations of .debug_frame, by offset. Entries
// without an addend keep the field as it is: functions that they name begin at 0.
func (o *codeObject) references() map[uint64]reference {
	const relSize, relaSize = 16, 24
	all := map[uint64]reference{}
	for _, form := range [...]struct {
		prefix string
		size   int
	}{{".rel", relSize}, {".rela", relaSize}} {
		for b := o.section(form.prefix + frameSection); len(b) >= form.size; b = b[form.size:] {
			index := binary.LittleEndian.Uint32(b[12:])
			if uint64(index) >= uint64(len(o.symbols)) {
				o.problem("%s%s: symbol %d, expected less than %d", form.prefix, frameSection, index, len(o.symbols))
				continue
			}
			s := &o.symbols[index]
			if int(s.section) >= len(o.req.Sections) || !isCode(&o.req.Sections[s.section]) {
				continue
			}
			r := reference{section: uint32(s.section), hasAddend: form.size == relaSize}
			if r.hasAddend {
				r.value = s.value + binary.LittleEndian.Uint64(b[16:])
			}
			all[binary.LittleEndian.Uint64(b)] = r
		}
	}
	return all
}

// repairFrames leads FDEs whose CIE_pointer is the offset of no CIE to the CIE right before
// them, as compilers order entries: nvlink is wrong by the bytes of alignment that it takes
// away. Bytes are changed in place.
func (o *codeObject) repairFrames(data []byte) []byte {
	isCIE := map[uint64]bool{}
	type fde struct{ offset, before uint64 }
	var fdes []fde
	before, hasBefore := uint64(0), false
	for offset := uint64(0); offset+20 <= uint64(len(data)); {
		length := binary.LittleEndian.Uint64(data[offset+4:])
		if binary.LittleEndian.Uint32(data[offset:]) != escape64 || length < 8 || length > uint64(len(data))-offset-12 {
			break // a problem of the reader of entries
		}
		switch isHead := binary.LittleEndian.Uint64(data[offset+12:]) == idOfCIE; {
		case isHead:
			isCIE[offset], before, hasBefore = true, offset, true
		case hasBefore:
			fdes = append(fdes, fde{offset, before})
		}
		offset += 12 + length
	}
	repaired := 0
	for _, f := range fdes {
		if !isCIE[binary.LittleEndian.Uint64(data[f.offset+12:])] {
			binary.LittleEndian.PutUint64(data[f.offset+12:], f.before)
			repaired++
		}
	}
	if repaired > 0 {
		o.problem("%s: %d FDEs lead to no CIE, as nvlink writes them: each is read with the CIE before it, which is a guess", frameSection, repaired)
	}
	return data
}
