// SPDX-License-Identifier: Apache-2.0

package code

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/cfi"
)

// A RuleSet is a set of default rules, for the columns that a row does not mention.
type RuleSet struct {
	rules []cfi.RegisterRule // sorted by column
	// other is the rule of columns that are not in rules; undefined where none is stated (DWARF 5, 6.4.1; A.6.4.1: "the default rule for all columns
	// ... is the undefined rule").
	other cfi.RuleKind
}

// NewRuleSet makes a set of rules, sorted by column. All other columns are
// undefined.
func NewRuleSet(rules []cfi.RegisterRule) *RuleSet {
	return &RuleSet{rules: rules, other: cfi.Undefined}
}

// AllColumns returns a set in which every column has a rule of one kind, which needs no operand.
func AllColumns(kind cfi.RuleKind) *RuleSet { return &RuleSet{other: kind} }

// Column returns the default rule of a column.
func (s *RuleSet) Column(column uint64) cfi.Rule {
	i, found := slices.BinarySearchFunc(s.rules, column, func(r cfi.RegisterRule, c uint64) int { return cmp.Compare(r.Column, c) })
	if found && s.rules[i].Rule.Kind != cfi.Unspecified {
		return s.rules[i].Rule
	}
	return cfi.Rule{Kind: s.other}
}

// Rule returns the rule of a column in a row, or the default rule.
func (s *RuleSet) Rule(row *cfi.Row, column uint64) cfi.Rule {
	if r, ok := row.Rule(column); ok && r.Kind != cfi.Unspecified {
		return r
	}
	return s.Column(column)
}
