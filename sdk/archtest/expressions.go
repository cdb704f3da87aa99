// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"context"
	"errors"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Expressions of answers are evaluated on a machine whose registers and memory are 0.
// Whatever the state of a real machine is, an expression that pops more than there is, or
// names a register that there is none of, fails there too.

// maxEvaluated bounds the evaluations of one run of the kit.
const maxEvaluated = 20_000

// The state that an architecture does not have.
var (
	errNoRegister = errors.New("the description has no such register")
	errNoSpace    = errors.New("the description has no such address space")
)

// zeros is the frame of a thread whose registers and memory are 0. It evaluates
// expressions of the canonical dialect as the engine does.
type zeros struct {
	locexpr.NoContext
	description *sdk.Description
	rules       *locexpr.Evaluator // of rows, which must not use some operations
	places      *locexpr.Evaluator // of variables
	left        int                // evaluations
}

func newZeros(d *sdk.Description) *zeros {
	z := &zeros{description: d, left: maxEvaluated, rules: &locexpr.Evaluator{
		Dialect: locexpr.Canonical, AddressBits: d.AddressBits, Order: locexpr.ByteOrder(d.ByteOrder), CFI: true,
	}}
	z.places = z.rules.Derive()
	z.places.CFI = false
	return z
}

// frameAddress is the CFA of the frame.
const frameAddress = 0x1000

// ReadMemory implements locexpr.Machine.
func (z *zeros) ReadMemory(_ context.Context, space locexpr.AddressSpace, _ locexpr.Scope, _ uint64, dst []byte) error {
	clear(dst)
	if _, ok := z.SpaceBits(space); !ok {
		return fmt.Errorf("space %d: %w", space, errNoSpace)
	}
	return nil
}

// ReadRegister implements locexpr.Machine.
func (z *zeros) ReadRegister(_ context.Context, reg uint64, _ locexpr.Scope, dst []byte, _, _ uint64) error {
	clear(dst)
	return z.known(reg)
}

// known returns an error for a number that is no register's.
func (z *zeros) known(reg uint64) error {
	if _, ok := z.RegisterBits(reg); !ok {
		return fmt.Errorf("register %d: %w", reg, errNoRegister)
	}
	return nil
}

// RegisterBits implements locexpr.Machine.
func (z *zeros) RegisterBits(reg uint64) (uint32, bool) {
	info, ok := z.description.Register(uint32(reg)) //nolint:gosec // compared below
	return info.Bits, ok && reg == uint64(info.Number)
}

// SpaceBits implements locexpr.Machine.
func (z *zeros) SpaceBits(space locexpr.AddressSpace) (uint32, bool) {
	if info, ok := z.description.Space(space); ok {
		return info.Bits, true
	}
	return z.description.AddressBits, space == locexpr.DefaultSpace
}

// ByteOrder implements locexpr.Machine.
func (z *zeros) ByteOrder() locexpr.ByteOrder { return locexpr.ByteOrder(z.description.ByteOrder) }

// Scope implements locexpr.Context.
func (z *zeros) Scope() locexpr.Scope { return locexpr.Scope{Lane: 0} }

// Register implements locexpr.Context.
func (z *zeros) Register(_ context.Context, reg uint64) (locexpr.Location, error) {
	return locexpr.RegisterLocation(reg, z.Scope()), z.known(reg)
}

// RegisterValue implements locexpr.Context.
func (z *zeros) RegisterValue(_ context.Context, reg uint64) (uint64, error) { return 0, z.known(reg) }

// CFA implements locexpr.CFAContext.
func (z *zeros) CFA() (locexpr.Location, error) {
	return locexpr.MemoryLocation(locexpr.DefaultSpace, frameAddress), nil
}

// Lane implements locexpr.LaneContext.
func (z *zeros) Lane() (lane, lanes uint64, err error) { return 0, 1, nil }

// location evaluates an expression by one of the evaluators. The error is nil where only the state is to blame.
func (z *zeros) location(ctx context.Context, ev *locexpr.Evaluator, expr []byte, initial ...locexpr.Entry) (locexpr.Location, error) {
	if z.left--; z.left < 0 {
		return locexpr.UndefinedLocation(), nil
	}
	l, err := ev.Location(ctx, expr, z, initial...)
	switch {
	case isWrong(err):
		return l, err
	case err != nil:
		return locexpr.UndefinedLocation(), nil //nolint:nilerr // the state lacks what a target has
	}
	return l, z.placed(l)
}

// value evaluates an expression of a rule, as location does.
func (z *zeros) value(ctx context.Context, expr []byte, initial ...locexpr.Entry) error {
	if z.left--; z.left < 0 {
		return nil
	}
	if _, err := z.rules.Value(ctx, expr, z, initial...); isWrong(err) {
		return err
	}
	return nil
}

// placed returns an error where a location is in a register or in an address space that
// there is none of.
func (z *zeros) placed(l locexpr.Location) error {
	if space, _, ok := l.MemoryAddress(); ok {
		if _, known := z.SpaceBits(space); !known {
			return fmt.Errorf("it leads to space %d: %w", space, errNoSpace)
		}
	}
	return nil
}

// isWrong reports whether an evaluation fails whatever the state of the machine is.
func isWrong(err error) bool {
	return err != nil && (locexpr.IsIllFormed(err) || errors.Is(err, errNoRegister) || errors.Is(err, errNoSpace))
}

// evaluates returns what evaluates expressions.
func (v *verifier) evaluates() *zeros {
	if v.zeros == nil {
		v.zeros = newZeros(v.desc)
	}
	return v.zeros
}

const expressionFix = "Mend the expression: it is evaluated in the canonical dialect, with the CFA on the stack where it is of a register's rule, and with an empty stack elsewhere."

// rowExpressions evaluates the expressions of rows. subject names the rows.
func (v *verifier) rowExpressions(subject string, rows []cfi.Row) {
	for i := range rows {
		row := &rows[i]
		if row.CFA.Kind == cfi.CFAExpression {
			z := v.evaluates()
			if _, err := z.location(v.ctx, z.rules, row.CFA.Expr); err != nil {
				v.findLater("expressions", expressionFix, "%s[%d].CFA.Expr: %v", subject, i, err)
			}
		}
		v.ruleExpressions(fmt.Sprintf("%s[%d].Rules", subject, i), row.Rules)
		v.ruleExpressions(fmt.Sprintf("%s[%d].CallSite", subject, i), row.CallSite)
	}
}

// ruleExpressions evaluates the expressions of rules. subject names the rules.
func (v *verifier) ruleExpressions(subject string, rules []cfi.RegisterRule) {
	for i := range rules {
		z, rule := v.evaluates(), &rules[i].Rule
		cfa, _ := z.CFA()
		var err error
		switch rule.Kind {
		case cfi.Expression:
			_, err = z.location(v.ctx, z.rules, rule.Expr, locexpr.LocationEntry(cfa))
		case cfi.ValExpression:
			err = z.value(v.ctx, rule.Expr, locexpr.LocationEntry(cfa))
		}
		if err != nil {
			v.findLater("expressions", expressionFix, "%s[%d].Rule.Expr: %v", subject, i, err)
		}
	}
}

// describedExpressions evaluates the expressions of the description.
func (v *verifier) describedExpressions() {
	v.ruleExpressions("Description.DefaultRules", v.desc.DefaultRules)
	for _, row := range []struct {
		name string
		row  *cfi.Row
	}{{"Entry", v.desc.Entry}, {"FramePointer", v.desc.FramePointer}} {
		if row.row != nil {
			v.rowExpressions("Description."+row.name, []cfi.Row{*row.row})
		}
	}
}

// expressions reports the faults of the expressions of the description, and of the
// answers to other checks.
func (v *verifier) expressions() {
	v.describedExpressions()
	v.report()
}
