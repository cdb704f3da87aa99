// SPDX-License-Identifier: Apache-2.0

package dwarf

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"sync"

	"github.com/unwindd/unwindd/internal/dw"
)

// row is a row of a line table (DWARF 5, 6.2.2), without the registers that do not affect
// the position.
type row struct {
	address       uint64
	line          uint32
	file          uint32
	column        uint32
	discriminator uint32
	inlining
}

// checkpointRows is the number of rows per checkpoint, and so the most rows that are run to
// find one.
const checkpointRows = 32

// checkpoint is the state of a line number program after a row was appended.
type checkpoint struct {
	address uint64
	next    uint32 // the offset of the next opcode in the table
	line    uint32
	file    uint32
	column  uint32
	discr   uint32
	opIndex uint32
	inlining
}

// sequence has the rows of one run of code (DWARF 5, 6.2.5).
type sequence struct {
	span
	moved        uint64   // added to the addresses of its rows, in object files of a program
	first, count uint32   // its checkpoints; 0: sorted has all rows
	rows         uint32   // how many it has
	sorted       []row    // of a sequence whose rows are not by address
	order        []uint32 // index in sorted of each row of the program; nil where no row is of an inlined call
}

// lineTable is one line number program, run once.
type lineTable struct {
	lineHeader
	sequences   []sequence // by end
	checkpoints []checkpoint
	sorted      int // rows stored because they are not in the order of addresses
	names       inlinedNames
}

// sortedSlack bounds the rows out of order that a table may have, besides one for every 4
// bytes: they are all stored.
const sortedSlack = 1 << 14

// lineHeader is the header of a line number program (DWARF 5, 6.2.4).
type lineHeader struct {
	file           *file
	offset, end    uint64 // in .debug_line
	program        uint64 // offset of its opcodes
	version        uint16
	offsetSize     uint8
	addrSize       uint8
	minInstruction uint64
	maxOps         uint64
	lineBase       int64
	lineRange      uint64
	opcodeBase     uint64
	lengths        []byte // of the standard opcodes
	nameBase       uint64 // in .debug_str: of the names of inlined calls
	dirs           []lineFile
	files          []lineFile // by the number that rows and DW_AT_call_file use
	// special has the address and line advance of each special opcode, where each
	// instruction has one operation.
	special *[256]specialOpcode
}

// leastSpecial is the size of a program, in bytes, from which a table of its special opcodes is made:
// many small programs would take more memory than the file.
const leastSpecial = 256

type specialOpcode struct {
	address uint32
	line    int32
}

// lineFile is a file or a directory of a header.
type lineFile struct {
	path   value
	dir    uint64
	source value // DW_LNCT_LLVM_source
	md5    []byte
}

// lineTables are the tables of a file that were read so far, by offset. Units may share
// one.
type lineTables struct {
	mu     sync.Mutex
	tables map[uint64]*lazy[*lineTable]
	left   uint64 // bytes of .debug_line that may still be read: sound tables do not overlap
}

// lineTableAt returns the line table at an offset of .debug_line.
func (f *file) lineTableAt(off uint64, addrSize uint8) (*lineTable, error) {
	c := &f.lineTables
	c.mu.Lock()
	if c.tables == nil {
		c.tables = make(map[uint64]*lazy[*lineTable])
		c.left = uint64(len(f.line))*4 + 1<<16
	}
	l := c.tables[off]
	if l == nil {
		l = &lazy[*lineTable]{}
		c.tables[off] = l
	}
	c.mu.Unlock()
	return l.get(func() (*lineTable, error) {
		h, err := f.readLineHeader(off, addrSize)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		enough := h.end-h.offset <= c.left
		if enough {
			c.left -= h.end - h.offset
		}
		c.mu.Unlock()
		if !enough {
			return nil, h.wrong("the tables of different units overlap")
		}
		t := &lineTable{lineHeader: *h}
		if err := t.index(); err != nil {
			return nil, err
		}
		f.addKept(t.memorySize())
		return t, nil
	})
}

func (f *file) lineSection() string { return cmp.Or(f.lineName, ".debug_line"+f.suffix) }

// lineTable returns the unit's line table; nil where it has none.
func (b *body) lineTable() (*lineTable, error) {
	return b.lines.get(func() (*lineTable, error) {
		if !b.hasLine {
			return nil, nil
		}
		t, err := b.main().lineTableAt(b.lineOff, b.format.addrSize)
		if err == nil && b.file.isPart {
			return b.movedLines(t)
		}
		return t, err
	})
}

func (h *lineHeader) wrong(format string, args ...any) error {
	return &FormatError{h.file.lineSection(), h.offset, fmt.Sprintf("table at %#x", h.offset), fmt.Sprintf(format, args...)}
}

// maxFormats bounds the content types of a file in a header.
const maxFormats = 64

// readLineHeader reads the header of a table. addrSize is the unit's, which versions before
// 5 do not repeat.
func (f *file) readLineHeader(off uint64, addrSize uint8) (*lineHeader, error) {
	h := &lineHeader{file: f, offset: off, addrSize: addrSize, maxOps: 1}
	if err := f.rest.line.Need(off + maxInitialLength); err != nil {
		return nil, err
	}
	c := newCursor(f.line, f.isBigEndian, off, uint64(len(f.line)))
	length, offsetSize := c.initialLength()
	if c.failed || length > c.left() {
		return nil, h.wrong("length %#x, expected at most the %#x bytes that follow", length, c.left())
	}
	if length >= 1<<32 {
		return nil, h.wrong("length %#x, expected less than 4 GiB", length)
	}
	c.end = c.off + length
	h.end, h.offsetSize = c.end, uint8(offsetSize)
	if err := f.rest.line.Need(h.end); err != nil {
		return nil, err
	}
	h.version = uint16(c.uint(2))
	if h.version < 2 || h.version > 5 {
		return nil, h.wrong("version %d, expected 2 to 5", h.version)
	}
	if h.version >= 5 {
		h.addrSize = uint8(c.uint(1))
		c.uint(1) // segment_selector_size
	}
	headerLength := c.uint(offsetSize)
	if c.failed || headerLength > c.left() {
		return nil, h.wrong("header length %#x, expected at most %#x", headerLength, c.left())
	}
	h.program = c.off + headerLength
	c.end = h.program
	h.minInstruction = c.uint(1)
	if h.version >= 4 {
		h.maxOps = c.uint(1)
	}
	c.uint(1) // default_is_stmt
	h.lineBase = int64(int8(c.uint(1)))
	h.lineRange = c.uint(1)
	h.opcodeBase = c.uint(1)
	h.lengths = c.bytes(max(h.opcodeBase, 1) - 1)
	if c.failed {
		return nil, h.wrong("header of %#x bytes is cut short", headerLength)
	}
	if h.maxOps == 0 || h.opcodeBase == 0 {
		return nil, h.wrong("maximum_operations_per_instruction %d, opcode_base %d, expected more than 0", h.maxOps, h.opcodeBase)
	}
	if h.maxOps == 1 && h.lineRange > 0 && h.end-h.program >= leastSpecial {
		h.special = new([256]specialOpcode)
		for opcode := h.opcodeBase; opcode < 256; opcode++ {
			n := opcode - h.opcodeBase
			h.special[opcode] = specialOpcode{uint32(h.minInstruction * (n / h.lineRange)), int32(h.lineBase + int64(n%h.lineRange))}
		}
	}
	if h.version >= 5 {
		return h, h.readFiles5(&c)
	}
	return h, h.readFiles(&c)
}

// readFiles reads the directories and files of versions 2 to 4.
func (h *lineHeader) readFiles(c *cursor) error {
	for {
		dir := c.text()
		if len(dir) == 0 {
			break
		}
		h.dirs = append(h.dirs, lineFile{path: value{form: dw.FormString, b: dir}})
	}
	h.files = append(h.files, lineFile{}) // files count from 1
	for {
		name := c.text()
		if len(name) == 0 {
			break
		}
		f := lineFile{path: value{form: dw.FormString, b: name}, dir: c.uleb()}
		c.uleb() // time
		c.uleb() // length
		h.files = append(h.files, f)
	}
	h.readNameBase(c)
	if c.failed {
		return h.wrong("its file names are cut short")
	}
	return nil
}

// Content types of the tables in a version 5 header (DWARF 5, 6.2.4.1, and the
// heterogeneous extension, A.6.2.4.1).
const (
	lnctPath           = 1
	lnctDirectoryIndex = 2
	lnctMD5            = 5
	lnctLLVMSource     = 0x2001
	lnctLLVMIsMD5      = 0x2002
)

func (h *lineHeader) readFiles5(c *cursor) error {
	format := format{version: 5, addrSize: h.addrSize, offsetSize: h.offsetSize, isBigEndian: h.file.isBigEndian}
	for _, target := range []*[]lineFile{&h.dirs, &h.files} {
		type entryFormat struct {
			content uint64
			form    dw.Form
		}
		n := c.uint(1)
		if n > maxFormats {
			return h.wrong("%d content types at %#x, expected at most %d", n, c.off, maxFormats)
		}
		formats := make([]entryFormat, n)
		for i := range formats {
			content, encoding := c.uleb(), c.uleb()
			if _, _, ok := format.skipOf(dw.Form(encoding)); !ok || encoding > 0xffff || encoding == uint64(dw.FormImplicitConst) {
				return h.wrong("form %#x at %#x, expected one that a line table may use", encoding, c.off)
			}
			formats[i] = entryFormat{content, dw.Form(encoding)}
		}
		count := c.uleb()
		// Every entry takes a byte at least.
		if c.failed || count > c.left() || count > 0 && n == 0 {
			return h.wrong("%d file or directory entries at %#x, expected at most the %#x bytes that follow", count, c.off, c.left())
		}
		list := make([]lineFile, 0, min(count, 1<<10))
		for range count {
			var f lineFile
			valid := true
			before := c.off
			for _, e := range formats {
				v := format.read(c, e.form)
				switch e.content {
				case lnctPath:
					f.path = v
				case lnctDirectoryIndex:
					f.dir = v.n
				case lnctMD5:
					f.md5 = v.b
				case lnctLLVMSource:
					f.source = v
				case lnctLLVMIsMD5:
					valid = v.n != 0
				}
			}
			if c.failed || c.off == before {
				return h.wrong("its file names are cut short")
			}
			if len(f.md5) != 16 || !valid {
				f.md5 = nil
			}
			list = append(list, f)
		}
		*target = list
	}
	return nil
}

// lineText returns a string of the header.
func (h *lineHeader) lineText(v *value) ([]byte, error) {
	f := h.file
	switch v.form {
	case 0:
		return nil, nil
	case dw.FormString:
		return v.b, nil
	case dw.FormLineStrp:
		return stringAt(".debug_line_str"+f.suffix, f.lineStr, f.rest.lineStr, v.n)
	case dw.FormStrp:
		return stringAt(".debug_str"+f.suffix, f.str, f.rest.str, v.n)
	case dw.FormStrpSup, dw.FormGNUStrpAlt:
		s, err := f.supplement()
		if err != nil {
			return nil, err
		}
		return stringAt(".debug_str", s.str, s.rest.str, v.n)
	}
	return nil, h.wrong("form %#x of a file name", uint16(v.form))
}

// Standard and extended opcodes (DWARF 5, tables 7.25 and 7.26).
const (
	lnsCopy             = 0x01
	lnsAdvancePC        = 0x02
	lnsAdvanceLine      = 0x03
	lnsSetFile          = 0x04
	lnsSetColumn        = 0x05
	lnsNegateStmt       = 0x06
	lnsSetBasicBlock    = 0x07
	lnsConstAddPC       = 0x08
	lnsFixedAdvancePC   = 0x09
	lnsSetPrologueEnd   = 0x0a
	lnsSetEpilogueBegin = 0x0b
	lnsSetISA           = 0x0c

	lneEndSequence      = 0x01
	lneSetAddress       = 0x02
	lneDefineFile       = 0x03
	lneSetDiscriminator = 0x04
)

// lineMachine runs a line number program (DWARF 5, 6.2.5).
type lineMachine struct {
	*lineHeader
	row
	opIndex uint64
	c       cursor
	defined []lineFile // by DW_LNE_define_file
}

func (h *lineHeader) machine() lineMachine {
	m := lineMachine{lineHeader: h}
	m.c = cursor{data: h.file.line, off: h.program, end: h.end, isBigEndian: h.file.isBigEndian}
	m.reset()
	return m
}

func (m *lineMachine) reset() { m.row, m.opIndex = row{line: 1, file: 1}, 0 }

func (m *lineMachine) advance(ops uint64) {
	if m.maxOps == 1 {
		m.address += m.minInstruction * ops
		return
	}
	ops += m.opIndex
	m.address += m.minInstruction * (ops / m.maxOps)
	m.opIndex = ops % m.maxOps
}

type lineEvent uint8

const (
	lineEnd         lineEvent = iota // the program has ended
	lineRow                          // a row was appended
	lineEndSequence                  // the sequence ends at the address
)

// step runs the program up to the next row, whose registers are then in m. Each call
// continues.
func (m *lineMachine) step() (lineEvent, error) {
	c := &m.c
	data := c.data[:c.end]
	m.discriminator = 0
	for c.off < c.end {
		opcode := uint64(data[c.off])
		c.off++
		if opcode >= m.opcodeBase && m.special != nil {
			s := &m.special[opcode&0xff]
			m.address += uint64(s.address)
			m.line += uint32(s.line)
			return lineRow, nil
		}
		switch {
		case opcode >= m.opcodeBase:
			if m.lineRange == 0 {
				return 0, m.wrong("line_range 0 at special opcode %#x", opcode)
			}
			n := opcode - m.opcodeBase
			m.advance(n / m.lineRange)
			m.line += uint32(m.lineBase + int64(n%m.lineRange))
			return lineRow, nil
		case opcode == 0:
			event, err := m.extended()
			if event != lineEnd || err != nil {
				return event, err
			}
		case m.lengths[opcode-1] != standardLengths[min(opcode, lnsSetISA+1)]:
			// Not the opcode that the standard has under that number.
			m.skipOperands(opcode)
		case opcode == lnsCopy:
			return lineRow, nil
		case opcode == lnsAdvancePC:
			m.advance(c.uleb())
		case opcode == lnsAdvanceLine:
			m.line += uint32(c.sleb())
		case opcode == lnsSetFile:
			m.row.file = uint32(min(c.uleb(), 1<<32-1))
		case opcode == lnsSetColumn:
			m.column = uint32(min(c.uleb(), 1<<32-1))
		case opcode == lnsNegateStmt, opcode == lnsSetBasicBlock, opcode == lnsSetPrologueEnd, opcode == lnsSetEpilogueBegin:
		case opcode == lnsConstAddPC:
			if m.lineRange == 0 {
				return 0, m.wrong("line_range 0 at DW_LNS_const_add_pc")
			}
			m.advance((255 - m.opcodeBase) / m.lineRange)
		case opcode == lnsFixedAdvancePC:
			m.address += c.uint(2)
			m.opIndex = 0
		case opcode == lnsSetISA:
			c.uleb()
		default:
			m.skipOperands(opcode)
		}
		if c.failed {
			return 0, m.wrong("the program is cut short at %#x", c.off)
		}
	}
	return lineEnd, nil
}

// skipOperands skips the operands of an unknown standard opcode.
func (m *lineMachine) skipOperands(opcode uint64) {
	for range m.lengths[opcode-1] {
		m.c.uleb()
	}
}

// standardLengths has the number of operands of each standard opcode. The last element is
// for unknown opcodes: no length equals it.
var standardLengths = [...]byte{lnsCopy: 0, lnsAdvancePC: 1, lnsAdvanceLine: 1, lnsSetFile: 1, lnsSetColumn: 1, lnsNegateStmt: 0,
	lnsSetBasicBlock: 0, lnsConstAddPC: 0, lnsFixedAdvancePC: 1, lnsSetPrologueEnd: 0, lnsSetEpilogueBegin: 0, lnsSetISA: 1, lnsSetISA + 1: 255}

// extended runs an extended opcode.
func (m *lineMachine) extended() (lineEvent, error) {
	c := &m.c
	length := c.uleb()
	if c.failed || length == 0 || length > c.left() {
		return 0, m.wrong("extended opcode at %#x: length %#x, expected 1 to %#x", c.off, length, c.left())
	}
	ext := *c
	ext.end = c.off + length
	c.off = ext.end
	switch ext.uint(1) {
	case lneEndSequence:
		return lineEndSequence, nil
	case lneSetAddress:
		size := ext.left()
		if size > 8 || size == 0 {
			return 0, m.wrong("DW_LNE_set_address at %#x: address of %d bytes, expected %d", ext.off, size, m.addrSize)
		}
		m.address, m.opIndex = ext.uint(int(size)), 0
	case lneDefineFile:
		m.defined = append(m.defined, lineFile{path: value{form: dw.FormString, b: ext.text()}, dir: ext.uleb()})
	case lneSetDiscriminator:
		m.discriminator = uint32(min(ext.uleb(), 1<<32-1))
	case lneInlinedCall:
		m.setInlinedCall(&ext)
	case lneSetFunctionName:
		m.setFunctionName(&ext)
	}
	if ext.failed {
		return 0, m.wrong("extended opcode at %#x is cut short", ext.off)
	}
	return lineEnd, nil
}

// index runs the program and records its sequences and checkpoints.
func (t *lineTable) index() error {
	m := t.machine()
	highest := ^uint64(0)
	if t.addrSize < 8 && t.addrSize > 0 {
		highest >>= 64 - 8*t.addrSize
	}
	var s sequence
	first := uint64(0)
	rows, last, unsorted := 0, uint64(0), false
	begin := func() {
		s = sequence{first: uint32(len(t.checkpoints))}
		rows, last, unsorted, first = 0, 0, false, m.c.off
	}
	begin()
	for {
		event, err := m.step()
		if err != nil {
			return err
		}
		if event == lineEnd {
			break
		}
		if event == lineRow {
			t.names.add(&m.inlining)
			if rows == 0 {
				s.start = m.address
			}
			if rows%checkpointRows == 0 {
				t.checkpoints = append(t.checkpoints, checkpoint{
					address: m.address, next: uint32(m.c.off - t.offset), line: m.line, file: m.row.file, column: m.column,
					discr: m.discriminator, opIndex: uint32(m.opIndex), inlining: m.inlining,
				})
			}
			unsorted = unsorted || m.address < last
			last = m.address
			rows++
			continue
		}
		s.end = m.address
		s.count, s.rows = uint32(len(t.checkpoints))-s.first, uint32(rows)
		if unsorted || rows > 0 && s.end < last {
			t.checkpoints = t.checkpoints[:s.first]
			s.count = 0
			if err := t.sortRows(&s, first, rows); err != nil {
				return err
			}
		}
		if rows > 0 && s.start != highest && t.file.isLive(s.span) {
			t.sequences = append(t.sequences, s)
		} else {
			t.checkpoints = t.checkpoints[:s.first]
		}
		m.reset()
		begin()
	}
	t.checkpoints = slices.Clip(t.checkpoints)
	t.files = append(t.files, m.defined...)
	slices.SortStableFunc(t.sequences, func(a, b sequence) int { return cmp.Compare(a.start, b.start) })
	return nil
}

// sortRows stores the rows of a sequence, by address, whose program is at an offset.
func (t *lineTable) sortRows(s *sequence, program uint64, count int) error {
	if t.sorted += count; uint64(t.sorted) > (t.end-t.offset)/4+sortedSlack {
		return t.wrong("%d rows are not in the order of their addresses", t.sorted)
	}
	m := t.machine()
	m.c.off = program
	for range count {
		if _, err := m.step(); err != nil {
			return err
		}
		s.sorted = append(s.sorted, m.row)
	}
	s.keepOrder()
	slices.SortStableFunc(s.sorted, func(a, b row) int { return cmp.Compare(a.address, b.address) })
	s.start = s.sorted[0].address
	return nil
}

// maxSequences bounds the sequences that are tried for an address where they overlap.
const maxSequences = 8

// position returns the row of an address: the last one that begins at or before it. Of
// sequences that begin at one address it takes the last, or with isFirst the first.
func (t *lineTable) position(address uint64, isFirst bool) (r row, ok bool) {
	if s := t.sequenceAt(address, isFirst); s != nil {
		return t.rowIn(s, address)
	}
	return row{}, false
}

// sequenceAt returns the sequence of position; nil where none has the address.
func (t *lineTable) sequenceAt(address uint64, isFirst bool) *sequence {
	i := sort.Search(len(t.sequences), func(i int) bool { return t.sequences[i].start > address })
	// Sequences do not overlap in a sound table; a few are tried in one that does.
	for tries := 0; i > 0 && tries < maxSequences; tries++ {
		i--
		if !t.sequences[i].holds(address) {
			continue
		}
		for isFirst && i > 0 && t.sequences[i-1].span == t.sequences[i].span {
			i--
		}
		return &t.sequences[i]
	}
	return nil
}

func (t *lineTable) rowIn(s *sequence, address uint64) (r row, ok bool) {
	r, ok = t.ownRowIn(s, address-s.moved)
	r.address += s.moved
	return r, ok
}

// ownRowIn is rowIn by the addresses of the program of the table.
func (t *lineTable) ownRowIn(s *sequence, address uint64) (r row, ok bool) {
	if s.count == 0 {
		n := sort.Search(len(s.sorted), func(i int) bool { return s.sorted[i].address > address })
		if n == 0 {
			return row{}, false
		}
		return s.sorted[n-1], true
	}
	list := t.checkpoints[s.first : s.first+s.count]
	n := sort.Search(len(list), func(i int) bool { return list[i].address > address })
	if n == 0 {
		return row{}, false
	}
	m := t.machineAt(&list[n-1])
	for r = m.row; ; r = m.row {
		event, err := m.step()
		if err != nil || event != lineRow || m.address > address {
			return r, true
		}
	}
}

// machineAt returns a machine after the row of a checkpoint.
func (t *lineTable) machineAt(p *checkpoint) lineMachine {
	m := t.machine()
	m.row = row{address: p.address, line: p.line, file: p.file, column: p.column, discriminator: p.discr, inlining: p.inlining}
	m.opIndex, m.c.off = uint64(p.opIndex), t.offset+uint64(p.next)
	return m
}
