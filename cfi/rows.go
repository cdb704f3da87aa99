package cfi

import "slices"

// Rows calls yield with every row of the FDE, in order of address, until yield
// returns false. Rows that begin at one address are one row, the last of them;
// what lies at or behind End is left out. The row and its slices are reused
// between calls (Clone keeps one); the bytes of expressions alias the section.
// An FDE that defines nothing has rows whose CFA is NoCFA.
func (f *FDE) Rows(yield func(*Row) bool) error {
	if f.Start >= f.End {
		return nil
	}
	row := new(Row)
	m, err := f.start(row)
	if err != nil {
		return err
	}
	defer m.free()
	for {
		more, err := m.run()
		if err != nil {
			return err
		}
		row.End = f.End
		if more && m.location < f.End {
			row.End = m.location
		}
		if !yield(row) || row.End == f.End {
			return nil
		}
		row.Start = row.End
	}
}

// RowAt fills row with the row that covers pc, reusing its slices; ErrNoRow when
// the FDE does not cover pc. After an error the row says nothing.
func (f *FDE) RowAt(pc uint64, row *Row) error {
	if pc < f.Start || pc >= f.End {
		row.reset()
		return f.errNoRow(pc)
	}
	m, err := f.start(row)
	if err != nil {
		row.reset()
		return err
	}
	defer m.free()
	for {
		more, err := m.run()
		if err != nil {
			row.reset()
			return err
		}
		if !more || m.location > pc {
			row.End = f.End
			if more && m.location < f.End {
				row.End = m.location
			}
			return nil
		}
		row.Start = m.location
	}
}

func (f *FDE) errNoRow(pc uint64) error {
	if f.CIE == nil {
		return &Error{Err: ErrNoRow}
	}
	return f.CIE.table.errorf(f.Offset, ErrNoRow, "%#x, the FDE is %#x to %#x", pc, f.Start, f.End)
}

// start prepares row with the initial rules of the CIE.
func (f *FDE) start(row *Row) (*machine, error) {
	c := f.CIE
	initial, err := c.initialState()
	if err != nil {
		return nil, err
	}
	row.reset()
	row.Start, row.End = f.Start, f.End
	row.ReturnAddress, row.SignalFrame = c.ReturnAddress, c.SignalFrame
	row.CFA, row.WindowSave = initial.cfa, initial.windowSave
	row.Rules = append(row.Rules, initial.rules...)
	m := newMachine(c.table, c, f.pos, f.end, row)
	m.initial, m.location, m.fn = initial, f.Start, f.Start
	return m, nil
}

// initialState returns what the initial instructions of the CIE define.
func (c *CIE) initialState() (*state, error) {
	c.initialOnce.Do(func() {
		t := c.table
		if c.unexpected {
			c.initialErr = t.errorf(c.Offset, ErrAugmentation, "%q", c.Augmentation)
			return
		}
		if c.end-c.pos > maxInitial {
			c.initialErr = t.errorf(c.Offset, ErrLimit, "%#x bytes of initial instructions, at most %#x are read", c.end-c.pos, maxInitial)
			return
		}
		var row Row
		m := newMachine(t, c, c.pos, c.end, &row)
		defer m.free()
		if _, c.initialErr = m.run(); c.initialErr != nil {
			return
		}
		c.initial = state{row.CFA, slices.Clip(row.Rules), row.WindowSave}
	})
	return &c.initial, c.initialErr
}

func (r *Row) reset() {
	*r = Row{Rules: r.Rules[:0], CallSite: r.CallSite[:0]}
}

// Clone returns a copy that shares nothing with r but the bytes of expressions.
func (r *Row) Clone() *Row {
	c := *r
	c.Rules = slices.Clone(r.Rules)
	c.CallSite = slices.Clone(r.CallSite)
	return &c
}

// Rule returns what the row says about a column; false when it says nothing.
func (r *Row) Rule(column uint64) (Rule, bool) {
	if i, found := find(r.Rules, column); found {
		return r.Rules[i].Rule, true
	}
	return Rule{}, false
}
