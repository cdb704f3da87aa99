// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/locexpr"
)

// MaxColumns is the largest number of registers that a CompiledRow answers for: more than any
// CPU here keeps across calls in general registers (AArch64: x19 to x30, SP and PC).
const MaxColumns = 16

// Column is a register that compiled rows have a rule for.
type Column struct {
	Number uint64 // DWARF register number
	Bits   uint32 // 1 to 64
}

// Compiler makes compiled rows for one architecture.
type Compiler struct {
	columns []Column
	bits    uint32
}

// NewCompiler returns a Compiler for rows whose CFA is an address of addressBits
// bits (1 to 64), and that answer for columns, at most MaxColumns. The index of
// a column in it is the column's index in compiled rows. The error names the bound
// that is exceeded.
func NewCompiler(addressBits uint32, columns []Column) (*Compiler, error) {
	if addressBits == 0 || addressBits > 64 {
		return nil, fmt.Errorf("addresses of %d bits, expected 1 to 64", addressBits)
	}
	if len(columns) > MaxColumns {
		return nil, fmt.Errorf("%d columns, expected at most %d", len(columns), MaxColumns)
	}
	for i, c := range columns {
		if c.Bits == 0 || c.Bits > 64 {
			return nil, fmt.Errorf("column %d has %d bits, expected 1 to 64", c.Number, c.Bits)
		}
		if slices.IndexFunc(columns[:i], func(o Column) bool { return o.Number == c.Number }) >= 0 {
			return nil, fmt.Errorf("column %d is there twice", c.Number)
		}
	}
	return &Compiler{slices.Clone(columns), addressBits}, nil
}

// Columns returns the columns of compiled rows, by index. They are not to be
// changed.
func (c *Compiler) Columns() []Column { return c.columns }

// Index returns the index of a column.
func (c *Compiler) Index(number uint64) (i int, ok bool) {
	for i := range c.columns {
		if c.columns[i].Number == number {
			return i, true
		}
	}
	return 0, false
}

// CompiledRow is a row of the most common kind in a few words: its CFA is a register plus an
// offset in the default address space, and each column of its Compiler is at CFA+N, is CFA+N,
// has the value of a column of the same size, or is undefined. Default rules are filled in.
// It agrees with the Row for the columns of the Compiler.
type CompiledRow struct {
	// Register is the index of the CFA's column.
	Register uint8
	// Return is the index of the return address's column.
	Return uint8
	// SignalFrame is the SignalFrame of the Row.
	SignalFrame bool
	// Offset is added to the register for the CFA, in bytes.
	Offset int32
	// Same has a bit for each column, index 0 lowest, whose value is the same in
	// the caller, in no other register and not in memory.
	Same  uint16
	rules [MaxColumns]CompiledRule
}

// Rule returns the rule of the column with an index below MaxColumns.
func (r *CompiledRow) Rule(index int) CompiledRule { return r.rules[index] }

// CompiledRule is a rule in one word. The zero value is Undefined.
type CompiledRule uint32

// compiledKinds are the kinds of rule that can be compiled, by the low bits of
// a CompiledRule. SameValue is a Register rule that names its own column.
var compiledKinds = [4]RuleKind{Undefined, Register, Offset, ValOffset}

const (
	compiledUndefined CompiledRule = iota
	compiledRegister
	compiledOffset
	compiledValOffset
)

// Kind is Undefined, Register, Offset or ValOffset.
func (r CompiledRule) Kind() RuleKind { return compiledKinds[r&3] }

// Value is the byte offset from the CFA of an Offset and a ValOffset rule, and
// the index of the column of a Register rule.
func (r CompiledRule) Value() int64 { return int64(int32(r) >> 2) }

// The reasons why a row cannot be compiled. Such a row is evaluated by the
// methods Location of its rules.
var (
	ErrCompileCFA    = errors.New("the CFA is no register and offset in the default address space")
	ErrCompileRule   = errors.New("a rule is an expression, or the architecture's")
	ErrCompileColumn = errors.New("a register is none that compiled rows answer for")
	ErrCompileSize   = errors.New("registers or addresses differ in size")
	ErrCompileOffset = errors.New("an offset has more than 30 bits")
	ErrCompileCall   = errors.New("there are call-site rules")
)

// Compile makes a CompiledRow of a row. A column that the row does not mention has the rule
// that defaults returns; Unspecified is Undefined. The error is one of the reasons above.
func (c *Compiler) Compile(row *Row, defaults func(column uint64) Rule) (CompiledRow, error) {
	if len(row.CallSite) > 0 {
		return CompiledRow{}, ErrCompileCall
	}
	if row.CFA.Kind != CFARegister || row.CFA.Space != locexpr.DefaultSpace {
		return CompiledRow{}, ErrCompileCFA
	}
	register, ok := c.Index(row.CFA.Register)
	if !ok {
		return CompiledRow{}, ErrCompileColumn
	}
	if c.columns[register].Bits < c.bits {
		return CompiledRow{}, ErrCompileSize
	}
	back, ok := c.Index(row.ReturnAddress)
	if !ok {
		return CompiledRow{}, ErrCompileColumn
	}
	if row.CFA.Offset != int64(int32(row.CFA.Offset)) {
		return CompiledRow{}, ErrCompileOffset
	}
	out := CompiledRow{
		Register: uint8(register), Return: uint8(back),
		SignalFrame: row.SignalFrame, Offset: int32(row.CFA.Offset),
	}
	for i := range c.columns {
		rule, ok := row.Rule(c.columns[i].Number)
		if !ok || rule.Kind == Unspecified {
			rule = defaults(c.columns[i].Number)
		}
		var err error
		if out.rules[i], err = c.rule(i, &rule); err != nil {
			return CompiledRow{}, err
		}
		if r := out.rules[i]; r.Kind() == Register && r.Value() == int64(i) {
			out.Same |= 1 << i
		}
	}
	return out, nil
}

// rule returns the compiled rule of the column with an index.
func (c *Compiler) rule(index int, rule *Rule) (CompiledRule, error) {
	kind, value := compiledUndefined, int64(0)
	switch rule.Kind {
	case Undefined, Unspecified:
	case SameValue:
		kind, value = compiledRegister, int64(index)
	case Register:
		start, ok := c.Index(rule.Register)
		if !ok {
			return 0, ErrCompileColumn
		}
		if c.columns[start].Bits != c.columns[index].Bits {
			return 0, ErrCompileSize
		}
		kind, value = compiledRegister, int64(start)
	case Offset:
		kind, value = compiledOffset, rule.Offset
	case ValOffset:
		if c.columns[index].Bits != c.bits {
			return 0, ErrCompileSize
		}
		kind, value = compiledValOffset, rule.Offset
	default:
		return 0, ErrCompileRule
	}
	if value < -1<<29 || value >= 1<<29 {
		return 0, ErrCompileOffset
	}
	return CompiledRule(uint32(value)<<2) | kind, nil
}
