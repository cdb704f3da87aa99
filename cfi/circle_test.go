// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"slices"
	"testing"
)

func TestRegisterRulesThatLeadToThemselves(t *testing.T) {
	in := func(column, register uint64) RegisterRule {
		return RegisterRule{Column: column, Rule: Rule{Kind: Register, Register: register}}
	}
	for name, c := range map[string]struct {
		rules []RegisterRule
		want  []uint64
	}{
		"none":             {[]RegisterRule{{Column: 1, Rule: Rule{Kind: Offset}}}, nil},
		"another register": {[]RegisterRule{in(1, 9)}, nil},
		"a chain":          {[]RegisterRule{in(1, 2), in(2, 3), {Column: 3, Rule: Rule{Kind: SameValue}}}, nil},
		"itself":           {[]RegisterRule{in(1, 1)}, []uint64{1}},
		"two":              {[]RegisterRule{in(1, 2), in(2, 1)}, []uint64{1, 2}},
		"three and a tail": {[]RegisterRule{in(1, 3), in(2, 1), in(3, 5), in(5, 1), in(7, 2)}, []uint64{1, 3, 5}},
		"two circles":      {[]RegisterRule{in(1, 2), in(2, 1), in(4, 4)}, []uint64{1, 2, 4}},
	} {
		row := Row{Rules: c.rules}
		if got := row.Circle(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, expected %d", name, got, c.want)
		}
	}
	long := Row{Rules: make([]RegisterRule, 1<<18)} // linear in the rules
	for i := range long.Rules {
		long.Rules[i] = in(uint64(i), uint64(i+1))
	}
	if got := long.Circle(); got != nil {
		t.Errorf("%d columns of a chain", len(got))
	}
}
