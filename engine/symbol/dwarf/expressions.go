package dwarf

import (
	"fmt"
	"iter"
)

// An Expression is an attribute of class exprloc of a debugging information
// entry.
type Expression struct {
	Entry     uint64 // offset of the entry in .debug_info
	Attribute string // "DW_AT_location"
	Bytes     []byte // part of the section
}

// Expressions are the expressions that stand in entries, in the order of
// .debug_info. Those of location lists are not among them. An error is about one
// unit, and what follows it goes on. Iterate inside object.Guard.
func (r *Reader) Expressions() iter.Seq2[Expression, error] {
	return func(yield func(Expression, error) bool) {
		for i := range r.main.units {
			more, err := r.main.units[i].expressions(func(e Expression) bool { return yield(e, nil) })
			if err != nil {
				more = yield(Expression{}, fmt.Errorf("%s: %w", r.main.name, err))
			}
			if !more {
				return
			}
		}
	}
}

// expressions calls f with the expressions of a unit until f returns false.
func (u *unit) expressions(f func(Expression) bool) (more bool, err error) {
	b, err := u.open()
	if err != nil || b.first >= b.end {
		return true, err
	}
	w := b.walk(b.first)
	for w.off < b.end {
		a, entry, err := w.next()
		if err != nil {
			return true, err
		}
		if a == nil {
			continue
		}
		c := w.cursor(w.off)
		for i := range a.specs {
			v := b.format.value(&c, &a.specs[i])
			if c.failed {
				return true, b.wrong(entry, "the values of the entry do not end in the unit")
			}
			if v.isBlock() && !f(Expression{entry, a.specs[i].attr.String(), v.b}) {
				return false, nil
			}
		}
		w.off = c.off
	}
	return true, nil
}

// isBlock says whether a value is of class block or exprloc.
func (v *value) isBlock() bool {
	switch v.form {
	case formExprloc, formBlock, formBlock1, formBlock2, formBlock4:
		return true
	}
	return false
}
