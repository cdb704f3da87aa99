// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"errors"
	"slices"
)

// Rows calls yield with every row of the FDE, in order of address, until yield returns false.
// Rows that begin at one address are one row, the last of them; rows at or behind End are
// left out. The row and its slices are reused between calls (Clone keeps one); the bytes of
// expressions alias the section. An FDE that defines nothing has rows whose CFA is NoCFA. An
// error is about the first instruction that cannot be executed, behind the rows before it.
func (f *FDE) Rows(yield func(*Row) bool) error {
	if f.Start >= f.End {
		return nil
	}
	m := machines.Get().(*machine)
	m.row, m.listing = &m.own, f.listing
	_, err := m.stream(f, yield)
	m.free()
	return err
}

// stream yields the rows of an FDE; more is false when yield wants no more.
func (m *machine) stream(f *FDE, yield func(*Row) bool) (more bool, err error) {
	if err := m.start(f); err != nil {
		return true, err
	}
	row := m.row
	for {
		next, err := m.run()
		if err != nil {
			return true, err
		}
		row.End = f.End
		if next && m.location < f.End {
			row.End = m.location
		}
		if m.listing != nil && m.listed(len(row.Rules)) != nil {
			return true, f.errListing()
		}
		if !yield(row) {
			return false, nil
		}
		if row.End == f.End {
			return true, nil
		}
		row.Start = row.End
	}
}

// Rows calls yield with every row of every FDE, in the order of the section, until yield
// returns false. It gives the same as FDEs and FDE.Rows together, within the same bounds, but
// reuses both f and row between calls: nothing is allocated, which halves the time. Errors
// come with a nil row: an error of FDEs with a nil f, an error of FDE.Rows with the FDE,
// behind the rows that could be read.
func (t *Table) Rows(yield func(f *FDE, row *Row, err error) bool) {
	work := t.listWork()
	m := machines.Get().(*machine)
	m.row, m.listing = &m.own, &work
	var f FDE
	one := func(row *Row) bool { return yield(&f, row, nil) }
	t.scan(func(e entry, err error) bool {
		if err == nil && !e.cie {
			err = t.parseFDE(e, &f)
		}
		switch {
		case err != nil:
			return yield(nil, nil, err)
		case e.cie || f.Start >= f.End:
			return true
		}
		f.listing = &work
		more, err := m.stream(&f, one)
		if err != nil {
			return yield(&f, nil, err)
		}
		return more
	})
	m.free()
}

// RowAt fills row with the row that covers pc, reusing its slices; ErrNoRow when the FDE does
// not cover pc. After an error the row has no meaning.
func (f *FDE) RowAt(pc uint64, row *Row) error {
	if pc < f.Start || pc >= f.End {
		row.reset()
		return f.errNoRow(pc)
	}
	m := machines.Get().(*machine)
	m.row = row
	err := m.rowAt(f, pc)
	m.free()
	if err != nil {
		row.reset()
	}
	return err
}

func (m *machine) rowAt(f *FDE, pc uint64) error {
	if err := m.start(f); err != nil {
		return err
	}
	row := m.row
	for {
		more, err := m.run()
		if err != nil {
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

func (f *FDE) errListing() error {
	return f.CIE.table.errorf(f.Offset, ErrLimit, "the rows of the FDEs listed so far have too many rules for a section of %#x bytes", len(f.CIE.table.section.Data))
}

// start readies m for the instructions of an FDE, its row with the initial rules
// of the CIE.
func (m *machine) start(f *FDE) error {
	c := f.CIE
	if m.listing != nil && !c.executed.Load() && m.listed(min(c.end-c.pos, maxInitial)) != nil {
		// Many CIEs are forgotten and executed again.
		return f.errListing()
	}
	initial, err := c.initialState()
	if err != nil {
		return err
	}
	if m.listing != nil && m.listed(len(initial.rules)) != nil {
		return f.errListing()
	}
	m.prepare(c, f.pos, f.end)
	row := m.row
	row.Start, row.End, row.CFA, row.CallSite = f.Start, f.End, initial.cfa, row.CallSite[:0]
	row.ReturnAddress, row.SignalFrame, row.WindowSave = c.ReturnAddress, c.SignalFrame, initial.windowSave
	row.Rules = append(row.Rules[:0], initial.rules...)
	m.initial, m.location, m.fn = initial, f.Start, f.Start
	m.low = initial.low
	m.blocks = m.blocks || initial.blocks
	return nil
}

var errUnread = errors.New("the initial instructions of the CIE could not be read")

// initialState returns the state that the initial instructions of the CIE define.
func (c *CIE) initialState() (*state, error) {
	c.initialOnce.Do(func() {
		t := c.table
		if c.unexpected {
			c.initialErr = t.errorf(c.Offset, ErrAugmentation, "%q", c.Augmentation)
			return
		}
		// The error stays when the file is cut while it is read, which ends this here.
		c.initialErr = errUnread
		if c.end-c.pos > maxInitial {
			c.initialErr = t.errorf(c.Offset, ErrLimit, "%#x bytes of initial instructions, at most %#x are read", c.end-c.pos, maxInitial)
			return
		}
		var row Row
		m := machines.Get().(*machine)
		m.row, m.low = &row, 0
		m.prepare(c, c.pos, c.end)
		_, err := m.run()
		if err == nil {
			c.initial = state{row.CFA, slices.Clip(row.Rules), row.WindowSave, m.low, m.blocks}
		}
		c.initialErr = err
		c.executed.Store(true)
		m.free()
	})
	return &c.initial, c.initialErr
}

func (r *Row) reset() {
	*r = Row{Rules: r.Rules[:0], CallSite: r.CallSite[:0]}
}

// Clone returns a copy that shares only the bytes of expressions with r.
func (r *Row) Clone() *Row {
	c := *r
	c.Rules = slices.Clone(r.Rules)
	c.CallSite = slices.Clone(r.CallSite)
	return &c
}

// Rule returns the rule of a column; false when the row does not mention it.
func (r *Row) Rule(column uint64) (Rule, bool) {
	if i, found := find(r.Rules, column); found {
		return r.Rules[i].Rule, true
	}
	return Rule{}, false
}
