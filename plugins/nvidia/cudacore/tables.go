// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"context"
	"fmt"
	"strings"
)

// The limits of tables: how many rows all tables of a kind may have.
var maxRows = [kinds]int{
	kindDevices: 1 << 8, kindContexts: 1 << 12, kindModules: 1 << 16, kindGrids: 1 << 16, kindBanks: 1 << 18,
	kindSMs: 1 << 16, kindBlocks: 1 << 18, kindWarps: maxWarps, kindLanes: 1 << 21, kindMeta: 1,
}

const (
	maxWarps   = 1 << 17
	maxRowSize = 1 << 12 // bytes: the largest row has 136
	maxTable   = 8 << 20 // bytes of one table
)

// rows are the rows of a section in the core's list of its kind.
type rows struct{ first, count uint32 }

// readTables reads the tables from the devices down to the lanes, and gives each row
// the sections that belong to it.
func (r *reader) readTables(ctx context.Context) error {
	r.rows = map[uint32]rows{}
	for _, err := range []error{
		readRows(ctx, r, kindMeta, &r.meta, func(b record, _ uint32) record { return append(record(nil), b...) }),
		readRows(ctx, r, kindDevices, &r.devices, func(b record, _ uint32) device { return r.device(b) }),
		readRows(ctx, r, kindContexts, &r.contexts, func(b record, _ uint32) contextRow { return contextOf(b) }),
		readRows(ctx, r, kindModules, &r.modules, func(b record, p uint32) module { return module{handle: b.quad(0), context: p} }),
		readRows(ctx, r, kindGrids, &r.grids, func(b record, p uint32) grid { g := gridOf(b); g.device = p; return g }),
		readRows(ctx, r, kindBanks, &r.banks, func(b record, p uint32) bank { return bank{b.quad(0), b.word(8), b.word(12), p} }),
		readRows(ctx, r, kindSMs, &r.sms, func(b record, p uint32) sm { m := smOf(b); m.device = p; return m }),
		readRows(ctx, r, kindBlocks, &r.blocks, func(b record, p uint32) block { k := blockOf(b); k.sm = p; return k }),
		readRows(ctx, r, kindWarps, &r.warps, func(b record, p uint32) warp { w := warpOf(b); w.block = p; return w }),
		readRows(ctx, r, kindLanes, &r.lanes, func(b record, _ uint32) lane { return laneOf(b) }),
	} {
		if err != nil {
			return err
		}
	}
	for k := range kinds {
		if attach := attachments[k]; attach != nil {
			r.attach(k, attach)
		}
	}
	return nil
}

// attachments give the row of a parent the member in which a section's index is kept.
var attachments = [kinds]func(r *reader, row uint32) *uint32{
	kindContexts:          func(r *reader, i uint32) *uint32 { return &r.devices[i].contexts },
	kindGrids:             func(r *reader, i uint32) *uint32 { return &r.devices[i].grids },
	kindSMs:               func(r *reader, i uint32) *uint32 { return &r.devices[i].sms },
	kindModules:           func(r *reader, i uint32) *uint32 { return &r.contexts[i].modules },
	kindRelocated:         func(r *reader, i uint32) *uint32 { return &r.modules[i].relocated },
	kindOriginal:          func(r *reader, i uint32) *uint32 { return &r.modules[i].original },
	kindParameters:        func(r *reader, i uint32) *uint32 { return &r.grids[i].parameters },
	kindBanks:             func(r *reader, i uint32) *uint32 { return &r.grids[i].banks },
	kindBlocks:            func(r *reader, i uint32) *uint32 { return &r.sms[i].blocks },
	kindShared:            func(r *reader, i uint32) *uint32 { return &r.blocks[i].shared },
	kindWarps:             func(r *reader, i uint32) *uint32 { return &r.blocks[i].warps },
	kindUniform:           func(r *reader, i uint32) *uint32 { return &r.warps[i].uniform },
	kindUniformPredicates: func(r *reader, i uint32) *uint32 { return &r.warps[i].uniformPredicates },
	kindBarriers:          func(r *reader, i uint32) *uint32 { return &r.warps[i].bars },
	kindLanes:             func(r *reader, i uint32) *uint32 { return &r.warps[i].lanes },
	kindLocal:             func(r *reader, i uint32) *uint32 { return &r.lanes[i].local },
	kindRegisters:         func(r *reader, i uint32) *uint32 { return &r.lanes[i].registers },
	kindPredicates:        func(r *reader, i uint32) *uint32 { return &r.lanes[i].predicates },
	kindFrames:            func(r *reader, i uint32) *uint32 { return &r.lanes[i].frames },
}

// attach gives the sections of a kind to the rows that they belong to.
func (r *reader) attach(k kind, member func(*reader, uint32) *uint32) {
	for _, i := range r.byKind[k] {
		if k != kindFrames && kindInfos[k].row > 0 && r.rows[i].count == 0 {
			continue // it is empty, or was left out
		}
		row, ok := r.parent(i)
		if !ok {
			continue
		}
		if m := member(r, row); *m == 0 {
			*m = i
		} else {
			r.problems.add("section %d ("+kindInfos[k].name+") belongs to a row that section %d belongs to as well: it is left out", i, *m)
		}
	}
}

// parent returns the row that a section belongs to.
func (r *reader) parent(i uint32) (row uint32, ok bool) {
	s := &r.sections[i]
	name, parent := kindInfos[s.kind].name, kindInfos[s.kind].parent
	switch {
	case uint64(s.link) >= uint64(len(r.sections)):
		r.problems.add("section %d ("+name+") has sh_link %d, expected a section below %d: it is left out", i, s.link, len(r.sections))
	case r.sections[s.link].kind != parent:
		r.problems.add("section %d ("+name+") has sh_link %d, expected a section "+kindInfos[parent].name+": it is left out", i, s.link)
	case s.info >= r.rows[s.link].count:
		r.problems.add("section %d ("+name+") has sh_info %d, expected one of the %d rows of section %d: it is left out", i, s.info, r.rows[s.link].count, s.link)
	default:
		return r.rows[s.link].first + s.info, true
	}
	return 0, false
}

// readRows appends the rows of all tables of a kind, with the row that each table
// belongs to.
func readRows[T any](ctx context.Context, r *reader, k kind, list *[]T, decode func(b record, parent uint32) T) error {
	if r.failed != nil {
		return r.failed
	}
	var parts []part
	var tables []uint32
	total := 0
	for _, i := range r.byKind[k] {
		count, ok := r.countRows(i, maxRows[k]-total)
		if !ok {
			continue
		}
		total += count
		tables = append(tables, i)
		parts = append(parts, part{r.sections[i].offset, uint64(count) * uint64(r.sections[i].entry)}) //nolint:gosec // at most maxRows
	}
	*list = make([]T, 0, total)
	r.failed = r.file.readAll(ctx, parts, func(j int, data []byte, err error) {
		i := tables[j]
		parent := uint32(0)
		ok := kindInfos[k].parent == 0
		if err != nil {
			r.problems.add("section %d ("+kindInfos[k].name+"): %v", i, err)
		} else if !ok {
			parent, ok = r.parent(i)
		}
		if !ok {
			return
		}
		first := uint32(len(*list)) //nolint:gosec // at most maxRows
		for size := int(r.sections[i].entry); len(data) >= size; data = data[size:] {
			*list = append(*list, decode(record(data[:size:size]), parent))
		}
		r.rows[i] = rows{first, uint32(len(*list)) - first} //nolint:gosec // at most maxRows
	})
	return r.failed
}

// countRows returns how many rows of a table are read: at most most.
func (r *reader) countRows(i uint32, most int) (count int, ok bool) {
	s := &r.sections[i]
	name, least := kindInfos[s.kind].name, kindInfos[s.kind].row
	if s.size == 0 {
		return 0, false
	}
	if s.entry < least || s.entry > maxRowSize || s.entry%4 != 0 {
		r.problems.add("section %d ("+name+") has rows of %d bytes (sh_entsize), expected at least %d: it is left out", i, s.entry, least)
		return 0, false
	}
	n := s.size / uint64(s.entry)
	if left := s.size % uint64(s.entry); left > 0 {
		r.problems.add("section %d ("+name+") has %d bytes, expected a multiple of its rows' %d: the last %d are left out", i, s.size, s.entry, left)
	}
	limit := min(uint64(max(most, 0)), maxTable/uint64(s.entry))
	if n > limit {
		r.problems.add("section %d ("+name+") has %d rows, of which %d are read: one table may have %#x bytes, all of a kind %d rows", i, n, limit, maxTable, most)
		n = limit
	}
	return int(n), n > 0 //nolint:gosec // at most limit
}

// text returns the string of the core's string table at an offset. 0 is none.
func (r *reader) text(offset uint64, meaning string) string {
	if offset == 0 {
		return ""
	}
	text, err := textAt(r.strings, offset)
	if err != nil {
		r.problems.add("%s: .strtab: %v", meaning, err)
	}
	return strings.TrimSpace(text)
}

// processorOf returns the name of a processor by its version.
func processorOf(major, minor uint32) string {
	if major == 0 || major > 1000 || minor > 9 {
		return ""
	}
	return fmt.Sprintf("sm_%d%d", major, minor)
}
