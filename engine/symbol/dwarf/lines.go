package dwarf

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// A row of a line table, without what is the same for its whole sequence.
type row struct {
	address uint64
	line    uint32
	file    uint32
	column  uint32
}

// A sequence is rows of one run of code, by address (DWARF 5, 6.2.5).
type sequence struct {
	span
	rows []row
}

// A lineTable is one line number program, run.
type lineTable struct {
	version   uint64
	dirs      []string
	files     []file // by the number that rows and DW_AT_call_file use
	sequences []sequence
}

type file struct {
	name string
	dir  uint64
}

// position returns the file number, line and column of an address.
func (t *lineTable) position(address uint64) (r row, ok bool) {
	i, _ := slices.BinarySearchFunc(t.sequences, address, func(s sequence, a uint64) int {
		if s.start > a {
			return 1
		}
		return -1
	})
	// Sequences do not overlap in a sound table; a few are tried in one that does.
	for tries := 0; i > 0 && tries < 8; tries++ {
		i--
		s := &t.sequences[i]
		if !s.holds(address) {
			continue
		}
		n, _ := slices.BinarySearchFunc(s.rows, address, func(r row, a uint64) int {
			if r.address > a {
				return 1
			}
			return -1
		})
		if n == 0 {
			return row{}, false
		}
		return s.rows[n-1], true
	}
	return row{}, false
}

// fileName returns a file's path as llvm-symbolizer prints it: relative ones
// below the directory they are relative to and the unit's compilation
// directory, ".." left as it is.
func (t *lineTable) fileName(number uint64, compDir string) string {
	if t == nil || number >= uint64(len(t.files)) {
		return ""
	}
	f := t.files[number]
	if f.name == "" || isAbsolute(f.name) {
		return f.name
	}
	dir := ""
	switch {
	case t.version >= 5:
		if f.dir < uint64(len(t.dirs)) {
			dir = t.dirs[f.dir]
		}
	case f.dir > 0 && f.dir <= uint64(len(t.dirs)): // directory 0 is the compilation directory
		dir = t.dirs[f.dir-1]
	}
	if !isAbsolute(dir) {
		dir = join(compDir, dir)
	}
	return join(dir, f.name)
}

// isAbsolute takes DOS paths for what they are too: where the object was built
// is not known.
func isAbsolute(name string) bool {
	return path.IsAbs(name) || strings.HasPrefix(name, `\`) ||
		len(name) > 2 && name[1] == ':' && (name[2] == '\\' || name[2] == '/')
}

func join(dir, name string) string {
	switch {
	case dir == "":
		return name
	case name == "":
		return dir
	case strings.HasSuffix(dir, "/") || strings.HasSuffix(dir, `\`):
		return dir + name
	}
	return dir + "/" + name
}

// lines returns the line table at an offset of .debug_line, run once. Units
// may share one. Called with r.mu held.
func (r *Reader) lines(u *unit) (*lineTable, error) {
	if !u.hasLine {
		return nil, nil
	}
	if t, ok := r.lineTables[u.lineOff]; ok {
		return t.table, t.err
	}
	t, err := r.runLines(u)
	if err != nil {
		err = fmt.Errorf(".debug_line: table at %#x: %w", u.lineOff, err)
	}
	r.lineTables[u.lineOff] = lineResult{t, err}
	return t, err
}

type lineResult struct {
	table *lineTable
	err   error
}

// Standard and extended opcodes (DWARF 5, tables 7.25 and 7.26).
const (
	lnsCopy           = 0x01
	lnsAdvancePC      = 0x02
	lnsAdvanceLine    = 0x03
	lnsSetFile        = 0x04
	lnsSetColumn      = 0x05
	lnsConstAddPC     = 0x08
	lnsFixedAdvancePC = 0x09

	lneEndSequence = 0x01
	lneSetAddress  = 0x02
	lneDefineFile  = 0x03
)

var errCut = errors.New("cut short")

// runLines reads the header (DWARF 5, 6.2.4) and runs the program (6.2.5).
func (r *Reader) runLines(u *unit) (*lineTable, error) {
	c := at(r.line, r.order, u.lineOff, uint64(len(r.line)))
	length, offsetSize := c.initialLength()
	if c.failed || length > uint64(len(c.data)) {
		return nil, fmt.Errorf("length %#x, expected at most the %#x bytes that follow", length, len(c.data))
	}
	c.data = c.data[:length]
	// Sound tables do not overlap.
	if length > r.lineBudget {
		return nil, errors.New("the tables of different units overlap")
	}
	r.lineBudget -= length
	t := &lineTable{version: c.uint(2)}
	if t.version < 2 || t.version > 5 {
		return nil, fmt.Errorf("version %d, expected 2 to 5", t.version)
	}
	addrSize := u.addrSize
	if t.version >= 5 {
		addrSize = int(c.uint(1))
		c.uint(1) // segment_selector_size
	}
	headerLength := c.uint(offsetSize)
	if c.failed || headerLength > uint64(len(c.data)) {
		return nil, fmt.Errorf("header length %#x, expected at most %#x", headerLength, len(c.data))
	}
	program := c
	program.bytes(headerLength)
	h := c
	h.data = h.data[:headerLength]

	minInstruction := h.uint(1)
	maxOps := uint64(1)
	if t.version >= 4 {
		maxOps = h.uint(1)
	}
	h.uint(1) // default_is_stmt
	lineBase := int64(int8(h.uint(1)))
	lineRange := h.uint(1)
	opcodeBase := h.uint(1)
	lengths := h.bytes(max(opcodeBase, 1) - 1)
	if h.failed {
		return nil, fmt.Errorf("header of %#x bytes: %w", headerLength, errCut)
	}
	if maxOps == 0 || opcodeBase == 0 {
		return nil, fmt.Errorf("maximum_operations_per_instruction %d, opcode_base %d, expected more than 0", maxOps, opcodeBase)
	}
	if err := r.readFiles(t, &h, offsetSize); err != nil {
		return nil, err
	}

	var (
		state   row
		opIndex uint64
		rows    []row
	)
	reset := func() { state, opIndex, rows = row{line: 1, file: 1}, 0, nil }
	reset()
	advance := func(ops uint64) {
		ops += opIndex
		state.address += minInstruction * (ops / maxOps)
		opIndex = ops % maxOps
	}
	for program.more() {
		opcode := program.uint(1)
		switch {
		case opcode >= opcodeBase:
			if lineRange == 0 {
				return nil, fmt.Errorf("line_range 0 at special opcode %#x", opcode)
			}
			n := opcode - opcodeBase
			advance(n / lineRange)
			state.line += uint32(lineBase + int64(n%lineRange))
			rows = append(rows, state)
		case opcode == 0:
			length := program.uleb()
			ext := program
			program.bytes(length)
			if program.failed || length == 0 {
				return nil, fmt.Errorf("extended opcode at %#x: length %#x, expected 1 to %#x", ext.off, length, len(ext.data))
			}
			ext.data = ext.data[:length]
			switch ext.uint(1) {
			case lneEndSequence:
				r.addSequence(t, rows, state.address)
				reset()
			case lneSetAddress:
				size := len(ext.data)
				if size > 8 || size == 0 {
					return nil, fmt.Errorf("DW_LNE_set_address at %#x: address of %d bytes, expected %d", ext.off, size, addrSize)
				}
				state.address, opIndex = ext.uint(size), 0
			case lneDefineFile:
				name := string(ext.text())
				t.files = append(t.files, file{name, ext.uleb()})
			}
		case opcode == lnsCopy:
			rows = append(rows, state)
		case opcode == lnsAdvancePC:
			advance(program.uleb())
		case opcode == lnsAdvanceLine:
			state.line += uint32(program.sleb())
		case opcode == lnsSetFile:
			state.file = uint32(min(program.uleb(), 1<<32-1))
		case opcode == lnsSetColumn:
			state.column = uint32(min(program.uleb(), 1<<32-1))
		case opcode == lnsConstAddPC:
			if lineRange == 0 {
				return nil, errors.New("line_range 0 at DW_LNS_const_add_pc")
			}
			advance((255 - opcodeBase) / lineRange)
		case opcode == lnsFixedAdvancePC:
			state.address += program.uint(2)
			opIndex = 0
		default:
			for range lengths[opcode-1] {
				program.uleb()
			}
		}
	}
	if program.failed {
		return nil, fmt.Errorf("program: %w at %#x", errCut, program.off)
	}
	slices.SortStableFunc(t.sequences, func(a, b sequence) int { return cmp.Compare(a.start, b.start) })
	return t, nil
}

// addSequence takes the rows of a sequence that ends at end, unless it is of
// code that is not in the object.
func (r *Reader) addSequence(t *lineTable, rows []row, end uint64) {
	if len(rows) == 0 {
		return
	}
	byAddress := func(a, b row) int { return cmp.Compare(a.address, b.address) }
	if !slices.IsSortedFunc(rows, byAddress) {
		slices.SortStableFunc(rows, byAddress)
	}
	s := sequence{span{rows[0].address, end}, rows}
	if r.live(s.span) {
		t.sequences = append(t.sequences, s)
	}
}

// Content types and forms of the tables in a version 5 header (DWARF 5, 6.2.4.1).
const (
	lnctPath           = 1
	lnctDirectoryIndex = 2

	formBlock2   = 0x03
	formBlock4   = 0x04
	formData2    = 0x05
	formData4    = 0x06
	formData8    = 0x07
	formString   = 0x08
	formBlock    = 0x09
	formBlock1   = 0x0a
	formData1    = 0x0b
	formSdata    = 0x0d
	formStrp     = 0x0e
	formUdata    = 0x0f
	formStrx     = 0x1a
	formStrpSup  = 0x1d
	formData16   = 0x1e
	formLineStrp = 0x1f
	formStrx1    = 0x25
	formStrx2    = 0x26
	formStrx3    = 0x27
	formStrx4    = 0x28
)

// readFiles reads the directories and files of a header.
func (r *Reader) readFiles(t *lineTable, h *cursor, offsetSize int) error {
	if t.version >= 5 {
		return r.readFiles5(t, h, offsetSize)
	}
	for {
		dir := h.text()
		if len(dir) == 0 {
			break
		}
		t.dirs = append(t.dirs, string(dir))
	}
	t.files = append(t.files, file{}) // files count from 1
	for {
		name := h.text()
		if len(name) == 0 {
			break
		}
		f := file{name: string(name), dir: h.uleb()}
		h.uleb() // time
		h.uleb() // length
		t.files = append(t.files, f)
	}
	if h.failed {
		return fmt.Errorf("file names: %w", errCut)
	}
	return nil
}

func (r *Reader) readFiles5(t *lineTable, h *cursor, offsetSize int) error {
	// Names are copied; what they may add up to is bounded by how much a sound
	// table of this size could name.
	budget := uint64(len(h.data))*64 + 1<<20
	for _, directories := range []bool{true, false} {
		type format struct{ content, form uint64 }
		formats := make([]format, h.uint(1))
		for i := range formats {
			formats[i] = format{h.uleb(), h.uleb()}
		}
		count := h.uleb()
		// Every entry takes a byte at least.
		if h.failed || count > uint64(len(h.data)) || count > 0 && len(formats) == 0 {
			return fmt.Errorf("%d file or directory entries at %#x, expected at most the %#x bytes that follow", count, h.off, len(h.data))
		}
		for range count {
			var f file
			for _, format := range formats {
				text, number, err := r.lineForm(h, format.form, offsetSize)
				if err != nil {
					return err
				}
				switch format.content {
				case lnctPath:
					if uint64(len(text)) > budget {
						return fmt.Errorf("file names at %#x are longer than the header makes believable", h.off)
					}
					budget -= uint64(len(text))
					f.name = string(text)
				case lnctDirectoryIndex:
					f.dir = number
				}
			}
			if directories {
				t.dirs = append(t.dirs, f.name)
			} else {
				t.files = append(t.files, f)
			}
		}
	}
	return nil
}

// lineForm reads a field of a header's table.
func (r *Reader) lineForm(h *cursor, form uint64, offsetSize int) (text []byte, number uint64, err error) {
	from := h.off
	switch form {
	case formString:
		text = h.text()
	case formLineStrp:
		text, err = r.stringAt(".debug_line_str", r.lineStr, h.uint(offsetSize))
	case formStrp:
		text, err = r.stringAt(".debug_str", r.str, h.uint(offsetSize))
	case formStrpSup:
		h.uint(offsetSize)
	case formData1, formStrx1:
		number = h.uint(1)
	case formData2, formStrx2:
		number = h.uint(2)
	case formStrx3:
		h.uint(3)
	case formData4, formStrx4:
		number = h.uint(4)
	case formData8:
		number = h.uint(8)
	case formData16:
		h.bytes(16)
	case formUdata, formStrx:
		number = h.uleb()
	case formSdata:
		number = uint64(h.sleb())
	case formBlock:
		h.bytes(h.uleb())
	case formBlock1:
		h.bytes(h.uint(1))
	case formBlock2:
		h.bytes(h.uint(2))
	case formBlock4:
		h.bytes(h.uint(4))
	default:
		return nil, 0, fmt.Errorf("form %#x at %#x, expected one that a line table may use", form, from)
	}
	if err != nil {
		return nil, 0, err
	}
	if h.failed {
		return nil, 0, fmt.Errorf("file names at %#x: %w", from, errCut)
	}
	return text, number, nil
}

func (r *Reader) stringAt(section string, data []byte, off uint64) ([]byte, error) {
	c := at(data, r.order, off, uint64(len(data)))
	text := c.text()
	if c.failed {
		return nil, fmt.Errorf("%s: no string at %#x", section, off)
	}
	return text, nil
}
