// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Section is a section of an Image.
type Section struct {
	Name       string
	Type       uint32
	Address    uint64
	EntrySize  uint64
	Index      int
	Offset     uint64
	Size       uint64
	HeaderAt   uint64 // the offset of its header
	parent     *Section
	row        uint32
	content    []byte
	nameOffset uint64
}

// Image is a Core laid out.
type Image struct {
	Sections []*Section // by index; the first is the one that means none
	size     uint64
	names    *Section // has the names of sections
}

// The types of sections of any ELF file.
const (
	stringTable = 3
	custom      = 0x80000000
)

// builder lays a core out.
type builder struct {
	core     *Core
	sections []*Section
	strings  texts
}

// Build lays the core out.
func (c *Core) Build() *Image {
	b := &builder{core: c, strings: newTexts()}
	for i := range c.Global {
		m := &c.Global[i]
		kind := global
		if m.IsManaged {
			kind = managed
		}
		b.add(kind, fmt.Sprintf(".cudbg.global.%d", i), nil, 0, m.Data).Address = m.Address
	}
	b.table(meta, ".cudbg.meta", nil, 0, 1, func(int) *row { return c.Meta.row(&b.strings) })
	t := b.table(devices, ".cudbg.devtbl", nil, 0, len(c.Devices), func(i int) *row { return c.Devices[i].row(&b.strings) })
	for i := range c.Devices {
		b.device(t, i, &c.Devices[i])
	}
	return b.place()
}

// add adds a section, unless the driver has none of its kind.
func (b *builder) add(kind int, name string, parent *Section, row int, content []byte) *Section {
	s := &Section{Name: name, Type: custom + uint32(kind), parent: parent, row: uint32(row), content: content} //nolint:gosec // small
	if b.core.Driver >= since[kind] {
		b.sections = append(b.sections, s)
	}
	return s
}

// bytes adds a section of bytes, unless there are none.
func (b *builder) bytes(kind int, name string, parent *Section, row int, content []byte) *Section {
	if len(content) == 0 {
		return &Section{}
	}
	return b.add(kind, name, parent, row, content)
}

// words adds a section of words, unless there are none.
func (b *builder) words(kind int, name string, parent *Section, row int, content []uint32) {
	b.bytes(kind, name, parent, row, *new(rowBytes).words(content...)).EntrySize = 4
}

type rowBytes = row

// table adds a table.
func (b *builder) table(kind int, name string, parent *Section, row, count int, one func(int) *rowBytes) *Section {
	size := rowSize(kind, b.core.Driver)
	var content []byte
	for i := range count {
		if size > 0 {
			content = append(content, one(i).cut(kind, b.core.Driver)...)
		}
	}
	s := b.add(kind, name, parent, row, content)
	s.EntrySize = uint64(size) //nolint:gosec // small
	return s
}

func (b *builder) device(t *Section, i int, d *Device) {
	suffix := fmt.Sprintf(".dev%d", i)
	table := b.table(contexts, ".cudbg.ctxtbl"+suffix, t, i, len(d.Contexts), func(j int) *row { return d.Contexts[j].row() })
	for j := range d.Contexts {
		list := d.Contexts[j].Modules
		name := fmt.Sprintf("%s.ctx%d", suffix, j)
		loaded := b.table(modules, ".cudbg.modtbl"+name, table, j, len(list), func(k int) *row { return new(row).quads(list[k].Handle) })
		for k := range list {
			b.bytes(relocated, ".cudbg.relfimg"+name, loaded, k, list[k].Relocated)
			b.bytes(original, ".cudbg.elfimg"+name, loaded, k, list[k].Original)
		}
	}
	table = b.table(grids, ".cudbg.gridtbl"+suffix, t, i, len(d.Grids), func(j int) *row { return d.Grids[j].row() })
	for j := range d.Grids {
		g := &d.Grids[j]
		name := fmt.Sprintf("%s.grid%d", suffix, j)
		b.bytes(parameters, ".cudbg.param"+name, table, j, g.Parameters)
		if len(g.Banks) > 0 {
			b.table(banks, ".cudbg.cbankstbl"+name, table, j, len(g.Banks), func(k int) *row {
				return new(row).quads(g.Banks[k].Address).words(g.Banks[k].Size, g.Banks[k].Bank)
			})
		}
	}
	table = b.table(sms, ".cudbg.smtbl"+suffix, t, i, len(d.SMs), func(j int) *row { return d.SMs[j].row(&b.strings) })
	for j := range d.SMs {
		b.multiprocessor(table, j, fmt.Sprintf("%s.sm%d", suffix, j), &d.SMs[j])
	}
}

func (b *builder) multiprocessor(t *Section, i int, suffix string, m *SM) {
	table := b.table(blocks, ".cudbg.ctatbl"+suffix, t, i, len(m.Blocks), func(j int) *row { return m.Blocks[j].row() })
	for j := range m.Blocks {
		block := &m.Blocks[j]
		name := fmt.Sprintf("%s.cta%d", suffix, j)
		b.bytes(shared, ".cudbg.shared"+name, table, j, block.Shared)
		list := b.table(warps, ".cudbg.wptbl"+name, table, j, len(block.Warps), func(k int) *row { return block.Warps[k].row(&b.strings) })
		for k := range block.Warps {
			b.warp(list, k, fmt.Sprintf("%s.wp%d", name, k), &block.Warps[k])
		}
	}
}

func (b *builder) warp(t *Section, i int, suffix string, w *Warp) {
	b.words(uniform, ".cudbg.uregs"+suffix, t, i, w.Uniform)
	b.words(uniformPredicates, ".cudbg.upred"+suffix, t, i, w.UniformPredicates)
	b.words(barriers, ".cudbg.cbu_bar"+suffix, t, i, w.Barriers)
	table := b.table(lanes, ".cudbg.lntbl"+suffix, t, i, len(w.Lanes), func(j int) *row { return w.Lanes[j].row() })
	for j := range w.Lanes {
		l := &w.Lanes[j]
		name := fmt.Sprintf("%s.ln%d", suffix, j)
		b.bytes(local, ".cudbg.local"+name, table, j, l.Local).Address = l.LocalStart
		b.words(registers, ".cudbg.regs"+name, table, j, l.Registers)
		b.words(predicates, ".cudbg.pred"+name, table, j, l.Predicates)
		if len(l.Frames) > 0 {
			b.table(frames, ".cudbg.bt"+name, table, j, len(l.Frames), func(k int) *row { return l.Frames[k].row() })
		}
	}
}

// place puts the sections into their order, and gives each its index and offset.
func (b *builder) place() *Image {
	if b.core.Layout == ByKind {
		slices.SortStableFunc(b.sections, func(a, b *Section) int { return int(a.Type) - int(b.Type) })
	}
	if b.core.Seed != 0 {
		rand.New(rand.NewPCG(b.core.Seed, 0)).Shuffle(len(b.sections), func(i, j int) { //nolint:gosec // an order
			b.sections[i], b.sections[j] = b.sections[j], b.sections[i]
		})
	}
	names := newTexts()
	table := &Section{Name: ".strtab", Type: stringTable, content: b.strings.data}
	im := &Image{names: &Section{Name: ".shstrtab", Type: stringTable}}
	im.Sections = slices.Concat([]*Section{{}, table}, b.sections, []*Section{im.names})
	for _, s := range im.Sections {
		s.nameOffset = names.add(s.Name)
	}
	im.names.content = names.data
	offset := uint64(headerSize)
	for i, s := range im.Sections[1:] {
		offset = (offset + 7) &^ 7
		s.Index, s.Offset, s.Size = i+1, offset, uint64(len(s.content))
		offset += s.Size
	}
	offset = (offset + 7) &^ 7
	for _, s := range im.Sections {
		s.HeaderAt = offset
		offset += headerSize
	}
	im.size = offset
	return im
}

// texts is a string table.
type texts struct {
	data    []byte
	offsets map[string]uint64
}

func newTexts() texts { return texts{[]byte{0}, map[string]uint64{"": 0}} }

func (s *texts) add(text string) uint64 {
	at, ok := s.offsets[text]
	if !ok {
		at = uint64(len(s.data))
		s.data = append(append(s.data, text...), 0)
		s.offsets[text] = at
	}
	return at
}
