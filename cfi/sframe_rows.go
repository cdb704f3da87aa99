// SPDX-License-Identifier: Apache-2.0

package cfi

// maxRepeatedRows bounds how many rows Rows makes of repeated blocks, and how
// many it makes of all FDEs of one listing: an FDE can claim 4 GiB of blocks of
// a byte.
const maxRepeatedRows = 1 << 20

// sframeFRE is a frame row entry (The SFrame Format, 2.4).
type sframeFRE struct {
	pos     int    // offset in the section
	start   uint64 // bytes from the start of the function or block
	info    byte
	count   int
	offsets [maxFREWords]int64
}

// maxFREWords is how many data words an FRE can have: three pairs of a flexible FDE.
const maxFREWords = 6

// sframeCursor goes through the FREs of an FDE. FREs that begin at one address count as one,
// the last of them.
type sframeCursor struct {
	fde   *SFrameFDE
	r     reader
	left  uint32
	limit uint64 // where the function or block ends
	fre   sframeFRE
	end   uint64 // of fre
	next  sframeFRE
	more  bool // next is there
}

func (f *SFrameFDE) cursor() (c sframeCursor, err error) {
	c = sframeCursor{fde: f, left: f.rows, limit: f.End - f.Start, r: f.table.reader(f.pos)}
	c.r.data = c.r.data[:f.table.fresEnd:f.table.fresEnd]
	if f.Repeats {
		if f.Block == 0 {
			return c, f.table.errorf(f.Offset, ErrSFrame, "version 1 does not say how long a repeated block is")
		}
		c.limit = f.Block
	}
	err = c.read()
	return c, err
}

// The info word of an FRE.
const (
	freFromSP     = 0x01 // the CFA counts from the stack pointer, else from the frame pointer
	freCountShift = 1    // how many offsets there are
	freCountMask  = 0xf
	freSizeShift  = 5 // size of offsets: 1, 2 or 4 bytes
	freSizeMask   = 0x3
	freSigned     = 0x80 // the return address is signed
)

// read makes next the following FRE.
func (c *sframeCursor) read() error {
	c.more = c.left > 0
	if !c.more {
		return nil
	}
	c.left--
	t, e, r := c.fde.table, &c.next, &c.r
	e.pos = r.pos
	e.start = r.word(c.fde.wide)
	e.info = r.u8()
	e.count = int(e.info >> freCountShift & freCountMask)
	size := e.info >> freSizeShift & freSizeMask
	most := maxFREWords
	if !c.fde.isFlexible {
		most /= 2
	}
	if r.err == nil && (size > 2 || e.count > most) {
		return t.errorf(uint64(e.pos), ErrSFrame, "info word %#x of an FRE", e.info)
	}
	for i := range min(e.count, len(e.offsets)) {
		e.offsets[i] = int64(extend(r.word(1<<size), 1<<size))
	}
	if r.err != nil {
		return t.readError(r, "an FRE")
	}
	return nil
}

// step makes fre the next FRE that has an address; false when there is none.
func (c *sframeCursor) step() (bool, error) {
	if !c.more {
		return false, nil
	}
	for {
		c.fre = c.next
		if err := c.read(); err != nil {
			return false, err
		}
		switch {
		case !c.more:
			c.end = c.limit
		case c.next.start < c.fre.start:
			return false, c.fde.table.errorf(uint64(c.next.pos), ErrBackwards, "%#x after %#x", c.next.start, c.fre.start)
		case c.next.start == c.fre.start:
			continue
		default:
			c.end = min(c.next.start, c.limit)
		}
		return c.fre.start < c.limit, nil
	}
}

// Rows calls yield with every row of the FDE, in order of address, until yield returns false.
// Code before the first FRE has no row; rows at or behind End, or the end of a repeated
// block, are left out. The row and its slices are reused between calls (Clone keeps one).
//
// A row whose CFA is NoCFA and whose return address is Undefined is an FRE without data
// words, or in version 3 an FDE without FREs: code that nothing called, from version 2 on.
// ErrLimit when repeated blocks make more than 1,048,576 rows, including the rows of other
// FDEs from the same range over FDEs.
func (f *SFrameFDE) Rows(yield func(*Row) bool) error {
	if f.Start >= f.End {
		return nil
	}
	row := new(Row)
	if f.isOutermost() {
		f.fillOutermost(row)
		yield(row)
		return nil
	}
	first, err := f.cursor()
	if err != nil {
		return err
	}
	if blocks := (f.End-f.Start-1)/first.limit + 1; f.Repeats && f.tooMany(blocks*uint64(f.rows)) {
		return f.table.errorf(f.Offset, ErrLimit, "%d blocks of %d rows", blocks, f.rows)
	}
	for base := f.Start; ; base += first.limit {
		c := first
		for {
			more, err := c.step()
			if err != nil {
				return err
			}
			if !more || c.fre.start >= f.End-base {
				break
			}
			if err := c.fill(row, base); err != nil {
				return err
			}
			if !yield(row) {
				return nil
			}
		}
		if f.End-base <= first.limit {
			return nil
		}
	}
}

// tooMany reports whether repeated blocks have more rows than the limit of Rows.
func (f *SFrameFDE) tooMany(rows uint64) bool {
	return rows > maxRepeatedRows || f.listed != nil && f.listed.Add(int64(rows)) > maxRepeatedRows
}

// RowAt fills row with the row that covers pc, reusing its slices; ErrNoRow when none does.
// After an error the row has no meaning.
func (f *SFrameFDE) RowAt(pc uint64, row *Row) error {
	err := f.rowAt(pc, row)
	if err != nil {
		row.reset()
	}
	return err
}

func (f *SFrameFDE) rowAt(pc uint64, row *Row) error {
	if pc < f.Start || pc >= f.End {
		if f.table == nil {
			return &Error{Err: ErrNoRow}
		}
		return f.table.errorf(f.Offset, ErrNoRow, "%#x, the FDE is %#x to %#x", pc, f.Start, f.End)
	}
	if f.isOutermost() {
		f.fillOutermost(row)
		return nil
	}
	c, err := f.cursor()
	if err != nil {
		return err
	}
	base := f.Start
	if f.Repeats {
		// "PC % REP_BLOCK_SIZE" (2.3.2) counts from the first block, which is
		// aligned wherever the difference would show.
		base = pc - (pc-f.Start)%f.Block
	}
	for {
		more, err := c.step()
		if err != nil {
			return err
		}
		if !more || c.fre.start > pc-base {
			return f.table.errorf(f.Offset, ErrNoRow, "%#x, no FRE of the FDE %#x to %#x covers it", pc, f.Start, f.End)
		}
		if pc-base < c.end {
			return c.fill(row, base)
		}
	}
}

// isOutermost reports whether nothing called the code: it has no FREs in version 3
// (1.2).
func (f *SFrameFDE) isOutermost() bool {
	return f.rows == 0 && f.table.version.attribute && !f.isFlexible
}

// fillOutermost makes row the row of code that nothing called.
func (f *SFrameFDE) fillOutermost(row *Row) {
	row.reset()
	row.Start, row.End, row.SignalFrame = f.Start, f.End, f.SignalFrame
	row.ReturnAddress = f.table.abi.ra
	row.Rules = append(row.Rules, RegisterRule{row.ReturnAddress, Rule{Kind: Undefined}})
}

// fill makes row the row of the FRE, of a function or block at base.
func (c *sframeCursor) fill(row *Row, base uint64) error {
	t, e := c.fde.table, &c.fre
	a := t.abi
	c.fde.fillOutermost(row)
	row.Start = base + e.start
	if c.end < c.fde.End-base {
		row.End = base + c.end
	}
	if e.count == 0 {
		if !t.version.end || e.info != 0 && !t.version.attribute {
			return t.errorf(uint64(e.pos), ErrSFrame, "info word %#x: an FRE without offsets", e.info)
		}
		return nil
	}
	row.WindowSave = e.info&freSigned != 0
	if row.WindowSave && !a.signed {
		return t.errorf(uint64(e.pos), ErrSFrame, "info word %#x: a signed return address on %s", e.info, a.name)
	}
	row.Rules = append(row.Rules[:0], a.rules...)
	ra, fp := &row.Rules[a.raAt].Rule, &row.Rules[a.fpAt].Rule
	ra.Kind, fp.Kind = SameValue, SameValue
	if t.fixedRA != 0 {
		*ra = Rule{Kind: Offset, Offset: t.fixedRA}
	}
	if t.fixedFP != 0 {
		*fp = Rule{Kind: Offset, Offset: t.fixedFP}
	}
	if c.fde.isFlexible {
		return c.fillFlexible(row, ra, fp)
	}
	return c.fillDefault(row, ra, fp)
}

// fillDefault takes the data words of an FRE that are offsets, as the ABI has them
// (3.1).
func (c *sframeCursor) fillDefault(row *Row, ra, fp *Rule) error {
	t, e := c.fde.table, &c.fre
	a := t.abi
	row.CFA = CFARule{Kind: CFARegister, Register: a.fp, Offset: e.offsets[0]*a.scale + a.bias}
	if e.info&freFromSP != 0 {
		row.CFA.Register = a.sp
	}
	registers := a.registers && t.version.registers
	used := 1
	if t.fixedRA == 0 && used < e.count {
		// An offset of 0 keeps the place of a return address that was not
		// saved (SFRAME_FRE_RA_OFFSET_INVALID, 3.1.3).
		if e.offsets[used] != 0 || !a.registers {
			*ra = saved(e.offsets[used], registers)
		}
		used++
	}
	if t.fixedFP == 0 && used < e.count {
		*fp = saved(e.offsets[used], registers)
		used++
	}
	if used < e.count || a.both && e.count > 1 && fp.Kind == SameValue || ra.Kind == Unspecified || fp.Kind == Unspecified {
		offsets := e.offsets // a copy, so that c need not be on the heap
		return t.errorf(uint64(e.pos), ErrSFrame, "offsets %d: not the CFA's, return address's and frame pointer's on %s", offsets[:e.count], a.name)
	}
	return nil
}

// saved returns the rule of a register that an FRE has an offset for; Unspecified when the
// offset has no meaning. With registers an odd one is a register number.
func saved(offset int64, registers bool) Rule {
	switch {
	case !registers || offset&1 == 0 && offset != 0:
		return Rule{Kind: Offset, Offset: offset}
	case offset > 0:
		return Rule{Kind: Register, Register: uint64(offset >> 1)}
	}
	return Rule{}
}
