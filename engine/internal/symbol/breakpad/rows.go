// SPDX-License-Identifier: Apache-2.0

package breakpad

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/symbol/postfix"
)

// Registers returns the DWARF number of a register by its name in STACK CFI records.
type Registers = postfix.Registers

// The document's names that are no registers of a machine.
const (
	cfaName    = postfix.CFAName
	returnName = ".ra"
	undefined  = ".undef"
	// noCaller is the rule for .ra in an outermost frame: an address at which walks end.
	// Where .ra cannot be computed Breakpad's walker continues by guessing.
	noCaller = "0"
)

// The reasons why a STACK CFI record has no row.
var (
	ErrNoCFA     = errors.New("no rule for .cfa")
	ErrNoReturn  = errors.New("no rule for .ra")
	ErrDamaged   = errors.New("a record that cannot be read says how the rules change")
	ErrNoColumn  = errors.New("the registers have no .ra")
	errUnordered = errors.New("address outside of the STACK CFI INIT record above")
)

// Row fills row with the rules that apply at an address of the module, and reuses its
// slices. found is false when no STACK CFI record covers the address; then the row is
// empty, as it is with an error, which names the record.
//
// A rule of the form ".cfa N + ^" is an Offset, one of the form "$rbx" is a
// Register; the CFA is a register and an offset where it can be. Every other rule
// becomes a DWARF expression of the dialect that all architectures share.
//
// A register whose rule cannot be read, or names an unknown register, is Undefined. Unknown
// columns are left out.
func (f *File) Row(row *cfi.Row, address uint64, registers Registers) (found bool, err error) {
	*row = cfi.Row{Rules: row.Rules[:0], CallSite: row.CallSite[:0]}
	err = f.guard(func() error {
		r := find(f.rules, address)
		if r == nil {
			return nil
		}
		found = true
		var c changes
		c.read(f, r)
		return c.row(row, c.index(address), registers)
	})
	if err != nil {
		*row = cfi.Row{Rules: row.Rules[:0], CallSite: row.CallSite[:0]}
	}
	return found, err
}

// Rows calls yield with every row, by address, until it returns false. The row is reused. A
// record without a row is an error.
func (f *File) Rows(registers Registers, yield func(*cfi.Row, error) bool) {
	_ = f.guard(func() error {
		var row cfi.Row
		var c changes
		for i := range f.rules {
			r := &f.rules[i]
			c.read(f, r)
			for index := c.index(r.start); index < len(c.list) && c.list[index].address < r.end; index++ {
				if index+1 < len(c.list) && c.list[index+1].address == c.list[index].address {
					continue // the two make one row
				}
				row = cfi.Row{Rules: row.Rules[:0]}
				if err := c.row(&row, index, registers); !yield(&row, err) {
					return nil
				}
			}
		}
		return nil
	})
}

// change is a STACK CFI record: rules that apply from an address on.
type change struct {
	address uint64
	offset  uint64
	rules   fields
	damaged bool // it cannot be read
}

// changes are the records of one range of code, by address. Of several at one address the
// last of the file comes last.
type changes struct {
	f    *File
	init *record // the part of the INIT record that is not covered by others
	list []change

	applied int // how many of them are in rules
	rules   []rule
	err     error // why later ones are invalid
}

// read reads a STACK CFI INIT record and the records that belong to it.
func (c *changes) read(f *File, r *record) {
	*c = changes{f: f, init: r, list: c.list[:0], rules: c.rules[:0]}
	l := f.lineAt(r.offset())
	l.next()
	l.next()
	l.next()
	start, end, _ := l.span()
	c.list = append(c.list, change{address: start, offset: r.offset(), rules: l})
	before := start
	for offset, limit := r.offset(), r.offset()+r.length(); ; {
		i := bytes.IndexByte(f.data[offset:limit], '\n')
		if i < 0 || offset+uint64(i)+1 >= limit {
			break
		}
		offset += uint64(i) + 1
		rest := f.lineAt(offset)
		if string(rest.next()) != "STACK" || string(rest.next()) != "CFI" {
			continue
		}
		address, ok := rest.hex()
		if !ok || address < start || address >= end {
			f.problem(offset, "STACK CFI record: %w", errUnordered)
			// It may be about any address after the record before it.
			c.list = append(c.list, change{address: before, offset: offset, damaged: true})
			continue
		}
		before = address
		c.list = append(c.list, change{address: address, offset: offset, rules: rest})
	}
	if r.length() == maxLength {
		c.list = append(c.list, change{address: start, offset: r.offset(), damaged: true})
	}
	if byAddress := func(a, b change) int { return cmp.Compare(a.address, b.address) }; !slices.IsSortedFunc(c.list, byAddress) {
		slices.SortStableFunc(c.list, byAddress)
	}
}

// index is the index of the last change at or below an address.
func (c *changes) index(address uint64) int {
	i, _ := slices.BinarySearchFunc(c.list, address, func(x change, a uint64) int {
		if x.address <= a {
			return -1
		}
		return 1
	})
	return i - 1
}

// rule is the rule of a column: the text after its name.
type rule struct {
	name, text []byte
	offset     uint64 // of the record
}

// row fills row with the rules that apply from the change with an index on. The indexes of
// one range must be passed in their order.
func (c *changes) row(row *cfi.Row, last int, registers Registers) error {
	row.Start, row.End = max(c.list[last].address, c.init.start), c.init.end
	if last+1 < len(c.list) {
		row.End = min(row.End, c.list[last+1].address)
	}
	for ; c.applied <= last && c.err == nil; c.applied++ {
		c.err = c.apply(&c.list[c.applied])
	}
	if c.err != nil {
		return c.err
	}
	return c.f.fill(row, c.rules, registers, c.list[last].offset)
}

// apply replaces rules by the rules of a change for the same names.
func (c *changes) apply(x *change) error {
	ok := !x.damaged
	if ok {
		c.rules, ok = addRules(c.rules, x.rules, x.offset)
	}
	if !ok {
		return c.f.errorf(x.offset, "STACK CFI record: %w", ErrDamaged)
	}
	return nil
}

// maxColumns bounds the registers that a row may have rules for. The machines with the most
// have about a hundred that a call keeps or loses.
const maxColumns = 256

// addRules replaces rules by the rules of a record for the same names.
func addRules(rules []rule, l fields, offset uint64) ([]rule, bool) {
	name := l.next()
	for len(name) > 0 {
		if len(name) < 2 || name[len(name)-1] != ':' {
			return rules, false
		}
		name = name[:len(name)-1]
		start := l
		var length int
		var next []byte
		for {
			length = len(start) - len(l)
			if next = l.next(); len(next) == 0 || next[len(next)-1] == ':' {
				break
			}
		}
		i := slices.IndexFunc(rules, func(r rule) bool { return bytes.Equal(r.name, name) })
		if i < 0 {
			if len(rules) == maxColumns {
				return rules, false
			}
			i = len(rules)
			rules = append(rules, rule{name: name})
		}
		rules[i].text, rules[i].offset = start[:length], offset
		name = next
	}
	return rules, true
}

// fill fills the row from rules.
func (f *File) fill(row *cfi.Row, rules []rule, registers Registers, offset uint64) error {
	column, ok := registers(returnName)
	if !ok {
		return ErrNoColumn
	}
	row.ReturnAddress = column
	hasReturn := false
	// .ra comes last, so that it counts where its column has another name too.
	slices.SortStableFunc(rules, func(a, b rule) int {
		return boolToInt(string(a.name) == returnName) - boolToInt(string(b.name) == returnName)
	})
	for i := range rules {
		r := &rules[i]
		if string(r.name) == cfaName {
			if row.CFA, ok = cfaRule(r.text, registers); !ok {
				return f.errorf(r.offset, "STACK CFI: %.80q: expected a postfix expression of registers for .cfa", r.text)
			}
			continue
		}
		number, known := registers(string(r.name))
		if !known {
			continue
		}
		compiled, ok := registerRule(r.text, number, registers)
		if !ok {
			f.problem(r.offset, "STACK CFI: %.80q: expected a postfix expression of registers for %.40q", r.text, r.name)
		}
		if string(r.name) == returnName {
			hasReturn = true
			if string(bytes.TrimSpace(r.text)) == noCaller {
				compiled = cfi.Rule{Kind: cfi.Undefined}
			}
		}
		row.Rules = setRule(row.Rules, cfi.RegisterRule{Column: number, Rule: compiled})
	}
	switch {
	case row.CFA.Kind == cfi.NoCFA:
		return f.errorf(offset, "STACK CFI: %w", ErrNoCFA)
	case !hasReturn:
		return f.errorf(offset, "STACK CFI: %w", ErrNoReturn)
	}
	return nil
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// setRule sets a rule; rules are sorted by column.
func setRule(rules []cfi.RegisterRule, r cfi.RegisterRule) []cfi.RegisterRule {
	i, found := slices.BinarySearchFunc(rules, r.Column, func(x cfi.RegisterRule, c uint64) int { return cmp.Compare(x.Column, c) })
	if found {
		rules[i] = r
		return rules
	}
	return slices.Insert(rules, i, r)
}

// expression reads an expression; false when it is none, or names an unknown register.
func expression(text fields, registers Registers) (postfix.Expression, bool) {
	e := postfix.New(registers)
	for {
		token := text.next()
		if len(token) == 0 {
			return e, true
		}
		if !e.Add(token) {
			return e, false
		}
	}
}

// cfaRule reads the rule for .cfa.
func cfaRule(text fields, registers Registers) (cfi.CFARule, bool) {
	e, ok := expression(text, registers)
	if !ok {
		return cfi.CFARule{}, false
	}
	return e.CFA()
}

// registerRule reads the rule for a column. A rule that cannot be read is Undefined.
func registerRule(text fields, column uint64, registers Registers) (cfi.Rule, bool) {
	if string(bytes.TrimSpace(text)) == undefined {
		return cfi.Rule{Kind: cfi.Undefined}, true
	}
	e, ok := expression(text, registers)
	if !ok {
		return cfi.Rule{Kind: cfi.Undefined}, false
	}
	return e.Rule(column, &cfi.CFARule{})
}
