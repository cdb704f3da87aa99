// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
)

// checker is an index of a description, against which answers are checked: an answer
// may have millions of rows, and a hostile description a thousand ranges.
type checker struct {
	d         *Description
	registers []registerSpan // sorted, by number
	spaces    []AddressSpace // sorted, by number
}

// registerSpan is one range of a description, with the end of its run of ranges
// without a gap.
type registerSpan struct {
	first, end uint64
	runEnd     uint64
	bits       uint32
}

func newChecker(d *Description) *checker {
	c := &checker{d: d, registers: make([]registerSpan, len(d.Registers)), spaces: slices.Clone(d.AddressSpaces)}
	for i := range d.Registers {
		r := &d.Registers[i]
		c.registers[i] = registerSpan{first: uint64(r.First), end: uint64(r.First) + uint64(r.Count), bits: r.Bits}
	}
	slices.SortFunc(c.registers, func(a, b registerSpan) int { return cmp.Compare(a.first, b.first) })
	for i := len(c.registers) - 1; i >= 0; i-- {
		s := &c.registers[i]
		s.runEnd = s.end
		if i+1 < len(c.registers) && c.registers[i+1].first <= s.end {
			s.runEnd = max(s.end, c.registers[i+1].runEnd)
		}
	}
	slices.SortFunc(c.spaces, func(a, b AddressSpace) int { return cmp.Compare(a.Number, b.Number) })
	return c
}

// span returns the range that a register number is in.
func (c *checker) span(number uint64) (registerSpan, bool) {
	i, found := slices.BinarySearchFunc(c.registers, number, func(s registerSpan, n uint64) int { return cmp.Compare(s.first, n) })
	if !found {
		i--
	}
	if i < 0 || number >= c.registers[i].end {
		return registerSpan{}, false
	}
	return c.registers[i], true
}

// register checks the number of a register.
func (c *checker) register(field string, number uint64) error {
	if _, ok := c.span(number); !ok {
		return fmt.Errorf("%s: %d is the number of no register", field, number)
	}
	return nil
}

// space returns the address bits of a space.
func (c *checker) space(field string, number locexpr.AddressSpace) (bits uint32, err error) {
	i, found := slices.BinarySearchFunc(c.spaces, number, func(s AddressSpace, n locexpr.AddressSpace) int { return cmp.Compare(s.Number, n) })
	if found {
		return c.spaces[i].Bits, nil
	}
	if number == locexpr.DefaultSpace {
		return c.d.AddressBits, nil
	}
	return 0, fmt.Errorf("%s: %d is the number of no address space", field, number)
}

// lastAddress returns the highest address of a space.
func lastAddress(bits uint32) uint64 {
	if bits >= 64 {
		return math.MaxUint64
	}
	return 1<<bits - 1
}

// row checks the rules of a row, not its range.
func (c *checker) row(r *cfi.Row) error {
	if err := c.cfa(&r.CFA); err != nil {
		return fmt.Errorf("CFA.%w", err)
	}
	if err := c.rules("Rules", r.Rules); err != nil {
		return err
	}
	if err := c.rules("CallSite", r.CallSite); err != nil {
		return err
	}
	return c.register("ReturnAddress", r.ReturnAddress)
}

func (c *checker) cfa(r *cfi.CFARule) error {
	switch r.Kind {
	case cfi.NoCFA:
		return fmt.Errorf("Kind: a row without a CFA holds no information")
	case cfi.CFARegister:
		if _, err := c.space("Space", r.Space); err != nil {
			return err
		}
		return c.register("Register", r.Register)
	case cfi.CFAExpression:
		return c.expression("Expr", r.Expr)
	}
	return fmt.Errorf("Kind: %d is not a kind", r.Kind)
}

// rules checks a list of rules: sorted by column, each of known registers.
func (c *checker) rules(field string, rules []cfi.RegisterRule) error {
	if len(rules) > MaxRules {
		return fmt.Errorf("%s: %d rules, expected at most %d", field, len(rules), MaxRules)
	}
	for i := range rules {
		r := &rules[i]
		err := c.register("Column", r.Column)
		switch {
		case err != nil:
		case i > 0 && r.Column <= rules[i-1].Column:
			err = fmt.Errorf("Column: %d after %d, expected ascending columns", r.Column, rules[i-1].Column)
		default:
			err = c.rule(&r.Rule)
		}
		if err != nil {
			return fmt.Errorf("%s[%d].%w", field, i, err)
		}
	}
	return nil
}

func (c *checker) rule(r *cfi.Rule) error {
	switch r.Kind {
	case cfi.Undefined, cfi.SameValue, cfi.Offset, cfi.ValOffset, cfi.ValOffsetPerLane, cfi.Architectural:
		return nil
	case cfi.Register:
		return c.register("Rule.Register", r.Register)
	case cfi.Expression, cfi.ValExpression:
		return c.expression("Rule.Expr", r.Expr)
	case cfi.Unspecified:
		return fmt.Errorf("Rule.Kind: a rule that says nothing, expected none")
	}
	return fmt.Errorf("Rule.Kind: %d is not a kind", r.Kind)
}

// maxNesting is how deep expressions may be nested.
const maxNesting = 8

// expression checks an expression in the canonical dialect: of bounded length,
// and each of its operations and of those inside them can be decoded.
func (c *checker) expression(field string, expr []byte) error {
	if len(expr) > MaxExpression {
		return fmt.Errorf("%s: %d bytes, expected at most %d", field, len(expr), MaxExpression)
	}
	if err := c.operations(expr, maxNesting); err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

func (c *checker) operations(expr []byte, depth int) error {
	if depth == 0 {
		return fmt.Errorf("expressions nested more than %d deep", maxNesting)
	}
	decoder := locexpr.Decoder{
		Expr: expr, Dialect: locexpr.Canonical,
		AddressSize: int(c.d.AddressBits+7) / 8,
		Order:       locexpr.ByteOrder(c.d.ByteOrder),
	}
	for decoder.More() {
		var instruction locexpr.Instruction
		if err := decoder.Next(&instruction); err != nil {
			return err
		}
		for _, kind := range instruction.Op.Operands {
			if kind != locexpr.Expression {
				continue
			}
			if err := c.operations(instruction.Block, depth-1); err != nil {
				return fmt.Errorf("offset %d: in %s: %w", instruction.Offset, instruction.Op.Name, err)
			}
		}
	}
	return nil
}

// rows checks a list of rows: not empty, sorted, not overlapping, in
// [start, start+size).
func (c *checker) rows(field string, rows []cfi.Row, start, size uint64) error {
	for i := range rows {
		r := &rows[i]
		var err error
		switch {
		case r.Start >= r.End:
			err = fmt.Errorf("End: %#x, expected above Start, %#x", r.End, r.Start)
		case r.Start < start || r.Start-start >= size:
			err = fmt.Errorf("Start: %#x, expected in [%#x, %#x)", r.Start, start, start+size)
		case r.End-start > size:
			err = fmt.Errorf("End: %#x, expected at most %#x", r.End, start+size)
		case i > 0 && r.Start < rows[i-1].End:
			err = fmt.Errorf("Start: %#x, expected at least %#x, where the row before ends", r.Start, rows[i-1].End)
		default:
			err = c.row(r)
		}
		if err != nil {
			return fmt.Errorf("%s[%d].%w", field, i, err)
		}
	}
	return nil
}
