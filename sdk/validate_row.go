package sdk

import (
	"fmt"
	"math"

	"github.com/unwindd/unwindd/cfi"
)

// checkRow checks what a row says, not its range.
func checkRow(d *Description, at string, r *cfi.Row) error {
	if err := checkCFA(d, at+".CFA", &r.CFA); err != nil {
		return err
	}
	if err := checkRules(d, at+".Rules", r.Rules); err != nil {
		return err
	}
	if err := checkRules(d, at+".CallSite", r.CallSite); err != nil {
		return err
	}
	return checkColumn(d, at+".ReturnAddress", r.ReturnAddress)
}

func checkCFA(d *Description, at string, c *cfi.CFARule) error {
	switch c.Kind {
	case cfi.NoCFA:
		return fmt.Errorf("%s.Kind: a row without a CFA holds no information", at)
	case cfi.CFARegister:
		if err := checkColumn(d, at+".Register", c.Register); err != nil {
			return err
		}
		if _, ok := d.Space(c.Space); !ok {
			return fmt.Errorf("%s.Space: %d is the number of no address space", at, c.Space)
		}
		return nil
	case cfi.CFAExpression:
		return checkExpression(d, at+".Expr", c.Expr)
	}
	return fmt.Errorf("%s.Kind: %d is not a kind", at, c.Kind)
}

// checkRules checks a list of rules: sorted by column, each of known registers.
func checkRules(d *Description, at string, rules []cfi.RegisterRule) error {
	if len(rules) > MaxRules {
		return fmt.Errorf("%s: %d rules, expected at most %d", at, len(rules), MaxRules)
	}
	for i := range rules {
		r := &rules[i]
		at := fmt.Sprintf("%s[%d]", at, i)
		if err := checkColumn(d, at+".Column", r.Column); err != nil {
			return err
		}
		if i > 0 && r.Column <= rules[i-1].Column {
			return fmt.Errorf("%s.Column: %d after %d, expected ascending columns", at, r.Column, rules[i-1].Column)
		}
		var err error
		switch r.Rule.Kind {
		case cfi.Undefined, cfi.SameValue, cfi.Offset, cfi.ValOffset, cfi.Architectural:
		case cfi.Register:
			err = checkColumn(d, at+".Rule.Register", r.Rule.Register)
		case cfi.Expression, cfi.ValExpression:
			err = checkExpression(d, at+".Rule.Expr", r.Rule.Expr)
		case cfi.Unspecified:
			err = fmt.Errorf("%s.Rule.Kind: a rule that says nothing, expected none", at)
		default:
			err = fmt.Errorf("%s.Rule.Kind: %d is not a kind", at, r.Rule.Kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkColumn(d *Description, at string, number uint64) error {
	if number < math.MaxUint32 {
		if _, ok := d.Register(uint32(number)); ok {
			return nil
		}
	}
	return fmt.Errorf("%s: %d is the number of no register", at, number)
}

// checkExpression checks an expression in the canonical dialect.
func checkExpression(_ *Description, at string, expr []byte) error {
	if len(expr) > MaxExpression {
		return fmt.Errorf("%s: %d bytes, expected at most %d", at, len(expr), MaxExpression)
	}
	return nil
}
