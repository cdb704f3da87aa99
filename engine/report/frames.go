// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/hex"
	"fmt"
	"iter"
	"strconv"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/listing"
	"github.com/unwindd/unwindd/internal/problems"
	"github.com/unwindd/unwindd/locexpr"
)

// CallFrames writes the call frame information of a code object as a stream: its memory does
// not grow with the object.
type CallFrames struct {
	File    string // the object, named in problems
	Entries iter.Seq2[listing.CallFrameEntry, error]
	// SFrame is the entries of .sframe, which have rows and no instructions; nil: none.
	SFrame iter.Seq2[*cfi.SFrameFDE, error]
	// Unwind is the unwind information of a PE file; nil: none.
	Unwind iter.Seq2[*listing.UnwindEntry, error]
	// Compact is the compact unwind information of a Mach-O file; nil: none.
	Compact iter.Seq2[*listing.CompactEntry, error]
	// Register and Space name registers and address spaces.
	Register func(number uint64) string
	Space    func(space locexpr.AddressSpace) string
	// Expression is the text of an expression.
	Expression func(expr []byte) string
	// Forbidden returns an error for an expression with an operation that call frame
	// information must not use, and HasSpace reports whether the architecture has an address
	// space; nil: nothing is known.
	Forbidden func(expr []byte) error
	HasSpace  func(space locexpr.AddressSpace) bool
	// Problem receives problems of entries that are not part of the output.
	Problem func(error)
	Color   bool
}

// function is an entry that has rows.
type function struct {
	section, code string // code: see listing.CallFrameEntry
	offset        uint64 // of the entry in its section
	start, end    uint64
	isSignalFrame bool
	rows          func(yield func(*cfi.Row) bool) error
}

// functions calls one for every entry that has rows.
func (c *CallFrames) functions(one func(*function) error, problem func(error)) error {
	for e, err := range c.Entries {
		switch {
		case err != nil:
			problem(err)
		case e.FDE != nil:
			f := function{
				section: e.Section, code: e.Code, offset: e.Offset, start: e.FDE.Start, end: e.FDE.End,
				isSignalFrame: e.FDE.CIE.SignalFrame, rows: e.FDE.Advances,
			}
			if err := one(&f); err != nil {
				return err
			}
		}
	}
	if err := c.unwindFunctions(one, problem); err != nil {
		return err
	}
	if err := c.compactFunctions(one, problem); err != nil || c.SFrame == nil {
		return err
	}
	for e, err := range c.SFrame {
		if err != nil {
			problem(err)
			continue
		}
		f := function{section: ".sframe", offset: e.Offset, start: e.Start, end: e.End, rows: e.Rows}
		if err := one(&f); err != nil {
			return err
		}
	}
	return nil
}

// rows goes over the functions: for each it calls begin, then row for each of its rows, then
// end. A function whose one row has no rule at all counts as one without rows.
func (c *CallFrames) rows(row func(*cfi.Row) error, begin, end func(*function) error, problem func(error)) error {
	return c.functions(func(f *function) error {
		if err := begin(f); err != nil {
			return err
		}
		var stop, wrong error
		err := f.rows(func(r *cfi.Row) bool {
			if wrong == nil {
				wrong = c.wrongRow(r)
			}
			if r.Start == f.start && r.End == f.end && saysNothing(r) {
				return true
			}
			stop = row(r)
			return stop == nil
		})
		if stop != nil {
			return stop
		}
		if err != nil {
			problem(fmt.Errorf("%s: %w", c.File, err))
		}
		if wrong != nil {
			problem(fmt.Errorf("%s: %s: offset %#x: %w", c.File, f.section, f.offset, wrong))
		}
		return end(f)
	}, problem)
}

// wrongRow finds the ill-formed part of a row that can be read.
func (c *CallFrames) wrongRow(r *cfi.Row) error {
	if circle := r.Circle(); circle != nil {
		return cfi.CircleError(circle)
	}
	if r.CFA.Kind == cfi.CFARegister && c.isNoSpace(r.CFA.Space) {
		return &cfi.Error{Err: cfi.ErrAddressSpace, Detail: fmt.Sprintf("the CFA is in space %d", r.CFA.Space)}
	}
	if c.Forbidden == nil {
		return nil
	}
	if err := c.Forbidden(r.CFA.Expr); err != nil {
		return fmt.Errorf("the CFA: %w", err)
	}
	for i := range r.Rules {
		if err := c.Forbidden(r.Rules[i].Rule.Expr); err != nil {
			return fmt.Errorf("column %d: %w", r.Rules[i].Column, err)
		}
	}
	return nil
}

// wrongInstruction finds the ill-formed part of an instruction that can be read.
func (c *CallFrames) wrongInstruction(instruction *cfi.Instruction) error {
	for _, o := range instruction.Operands {
		switch {
		case o.Kind == cfi.SpaceOperand && c.isNoSpace(locexpr.AddressSpace(o.Value)):
			return fmt.Errorf("%s: %w", instruction.Name, &cfi.Error{Err: cfi.ErrAddressSpace, Detail: fmt.Sprint(o.Value)})
		case o.Kind == cfi.ExpressionOperand && c.Forbidden != nil:
			if err := c.Forbidden(o.Expr); err != nil {
				return fmt.Errorf("%s: %w", instruction.Name, err)
			}
		}
	}
	return nil
}

// isNoSpace reports whether the architecture is known not to have an address space.
func (c *CallFrames) isNoSpace(space locexpr.AddressSpace) bool {
	return space != locexpr.DefaultSpace && c.HasSpace != nil && !c.HasSpace(space)
}

func saysNothing(r *cfi.Row) bool {
	return r.CFA.Kind == cfi.NoCFA && len(r.Rules) == 0 && !r.WindowSave
}

// cfa is the text of a CFA rule; "" where there is none.
func (c *CallFrames) cfa(r *cfi.CFARule, expr func([]byte) string) string {
	switch r.Kind {
	case cfi.CFARegister:
		s := c.Register(r.Register) + signed(r.Offset)
		if r.Space != locexpr.DefaultSpace {
			s += "@" + c.Space(r.Space)
		}
		return s
	case cfi.CFAExpression:
		return "expr" + expr(r.Expr)
	}
	return ""
}

// rule is the text of a register rule.
func (c *CallFrames) rule(r *cfi.Rule, expr func([]byte) string) string {
	switch r.Kind {
	case cfi.Undefined:
		return "undefined"
	case cfi.SameValue:
		return "same"
	case cfi.Offset:
		return "cfa" + signed(r.Offset)
	case cfi.ValOffset:
		return "valcfa" + signed(r.Offset)
	case cfi.ValOffsetPerLane:
		return "valcfa" + signed(r.Offset) + "/lanes"
	case cfi.Register:
		return c.Register(r.Register)
	case cfi.Expression:
		return "expr" + expr(r.Expr)
	case cfi.ValExpression:
		return "valexpr" + expr(r.Expr)
	}
	return "architectural"
}

// RowText is a row on one line: its CFA, then the rules of its columns.
func (c *CallFrames) RowText(r *cfi.Row) string {
	s := "CFA=" + c.cfa(&r.CFA, hexExpr)
	for i := range r.Rules {
		s += " " + c.Register(r.Rules[i].Column) + "=" + c.rule(&r.Rules[i].Rule, hexExpr)
	}
	return s
}

// signed writes +0 too.
func signed(n int64) string { return string(appendSigned(nil, n)) }

func appendSigned(b []byte, n int64) []byte {
	if n >= 0 {
		b = append(b, '+')
	}
	return strconv.AppendInt(b, n, 10)
}

func hexExpr(b []byte) string { return ":" + hex.EncodeToString(b) }

// maxListedProblems bounds the problems at the end of a list of entries.
const maxListedProblems = 1000

// problemList is the end of a list of entries.
type problemList struct{ problems.List[string] }

func (p *problemList) add(err error) {
	if p.HasRoom(maxListedProblems) {
		p.Keep(err.Error())
	}
}

func (p *problemList) list() []string {
	list := append([]string{}, p.Kept()...)
	if n := p.Dropped(); n > 0 {
		list = append(list, fmt.Sprintf("and %d more problems", n))
	}
	return list
}
