// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"slices"
	"testing"
)

func TestRegisterRulesThatLeadToThemselves(t *testing.T) {
	inRegister := func(column, register uint64) RegisterRule {
		return RegisterRule{Column: column, Rule: Rule{Kind: Register, Register: register}}
	}
	for name, c := range map[string]struct {
		rules []RegisterRule
		want  []uint64
	}{
		"none":             {[]RegisterRule{{Column: 1, Rule: Rule{Kind: Offset}}}, nil},
		"another register": {[]RegisterRule{inRegister(1, 9)}, nil},
		"a chain":          {[]RegisterRule{inRegister(1, 2), inRegister(2, 3), {Column: 3, Rule: Rule{Kind: SameValue}}}, nil},
		"itself":           {[]RegisterRule{inRegister(1, 1)}, []uint64{1}},
		"two":              {[]RegisterRule{inRegister(1, 2), inRegister(2, 1)}, []uint64{1, 2}},
		"three and a tail": {[]RegisterRule{inRegister(1, 3), inRegister(2, 1), inRegister(3, 5), inRegister(5, 1), inRegister(7, 2)}, []uint64{1, 3, 5}},
		"two circles":      {[]RegisterRule{inRegister(1, 2), inRegister(2, 1), inRegister(4, 4)}, []uint64{1, 2, 4}},
	} {
		row := Row{Rules: c.rules}
		if got := row.Circle(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, expected %d", name, got, c.want)
		}
	}
	long := Row{Rules: make([]RegisterRule, 1<<18)} // linear in the rules
	for i := range long.Rules {
		long.Rules[i] = inRegister(uint64(i), uint64(i+1))
	}
	if got := long.Circle(); got != nil {
		t.Errorf("%d columns of a chain", len(got))
	}
}
