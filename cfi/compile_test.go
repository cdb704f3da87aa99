// SPDX-License-Identifier: Apache-2.0

package cfi

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// columns: 0 and 7 of 64 bits, 3 of 32, 16 of 64.
var compileColumns = []Column{{7, 64}, {16, 64}, {0, 64}, {3, 32}}

func compileRow(cfa CFARule, rules ...RegisterRule) *Row {
	return &Row{Start: 0x10, End: 0x20, CFA: cfa, Rules: rules, ReturnAddress: 16}
}

func TestCompile(t *testing.T) {
	c, err := NewCompiler(64, compileColumns)
	if err != nil {
		t.Fatal(err)
	}
	sp8 := CFARule{Kind: CFARegister, Register: 7, Offset: 8}
	atMinus8 := RegisterRule{16, Rule{Kind: Offset, Offset: -8}}
	defaults := func(column uint64) Rule {
		switch column {
		case 7:
			return Rule{Kind: ValOffset}
		case 0:
			return Rule{Kind: SameValue}
		}
		return Rule{}
	}
	type rule struct {
		Kind  RuleKind
		Value int64
	}
	for _, tt := range []struct {
		name string
		row  *Row
		want []rule // of the columns by index
		err  error
	}{
		{"what the row does not mention has the default rule", compileRow(sp8, atMinus8),
			[]rule{{ValOffset, 0}, {Offset, -8}, {Register, 2}, {Undefined, 0}}, nil},
		{"what the row says comes before the default", compileRow(sp8, RegisterRule{0, Rule{Kind: Undefined}}, RegisterRule{3, Rule{Kind: SameValue}},
			RegisterRule{7, Rule{Kind: Register, Register: 0}}, RegisterRule{16, Rule{Kind: ValOffset, Offset: 24}}),
			[]rule{{Register, 2}, {ValOffset, 24}, {Undefined, 0}, {Register, 3}}, nil},
		{"an unspecified rule is the default", compileRow(sp8, RegisterRule{0, Rule{}}),
			[]rule{{ValOffset, 0}, {Undefined, 0}, {Register, 2}, {Undefined, 0}}, nil},
		{"a rule of a column that is not compiled does not matter", compileRow(sp8, atMinus8, RegisterRule{99, Rule{Kind: Expression}}),
			[]rule{{ValOffset, 0}, {Offset, -8}, {Register, 2}, {Undefined, 0}}, nil},
		{"the largest offsets", compileRow(CFARule{Kind: CFARegister, Register: 7, Offset: 1<<31 - 1},
			RegisterRule{0, Rule{Kind: Offset, Offset: 1<<29 - 1}}, RegisterRule{16, Rule{Kind: Offset, Offset: -1 << 29}}),
			[]rule{{ValOffset, 0}, {Offset, -1 << 29}, {Offset, 1<<29 - 1}, {Undefined, 0}}, nil},

		{"no CFA", compileRow(CFARule{}), nil, ErrCompileCFA},
		{"a CFA by expression", compileRow(CFARule{Kind: CFAExpression, Expr: []byte{0x77, 8}}), nil, ErrCompileCFA},
		{"a CFA in another address space", compileRow(CFARule{Kind: CFARegister, Register: 7, Space: 5}), nil, ErrCompileCFA},
		{"a CFA from a register that is not compiled", compileRow(CFARule{Kind: CFARegister, Register: 6}), nil, ErrCompileColumn},
		{"a CFA from a register smaller than an address", compileRow(CFARule{Kind: CFARegister, Register: 3}), nil, ErrCompileSize},
		{"a CFA far away", compileRow(CFARule{Kind: CFARegister, Register: 7, Offset: 1 << 31}), nil, ErrCompileOffset},
		{"an expression", compileRow(sp8, RegisterRule{0, Rule{Kind: Expression}}), nil, ErrCompileRule},
		{"a value by expression", compileRow(sp8, RegisterRule{0, Rule{Kind: ValExpression}}), nil, ErrCompileRule},
		{"a rule of the architecture", compileRow(sp8, RegisterRule{0, Rule{Kind: Architectural}}), nil, ErrCompileRule},
		{"a register that is not compiled", compileRow(sp8, RegisterRule{0, Rule{Kind: Register, Register: 6}}), nil, ErrCompileColumn},
		{"a register of another size", compileRow(sp8, RegisterRule{0, Rule{Kind: Register, Register: 3}}), nil, ErrCompileSize},
		{"an address in a smaller register", compileRow(sp8, RegisterRule{3, Rule{Kind: ValOffset}}), nil, ErrCompileSize},
		{"an offset too large", compileRow(sp8, RegisterRule{0, Rule{Kind: Offset, Offset: 1 << 29}}), nil, ErrCompileOffset},
		{"an offset too small", compileRow(sp8, RegisterRule{0, Rule{Kind: ValOffset, Offset: -1<<29 - 1}}), nil, ErrCompileOffset},
		{"call-site rules", func() *Row { r := compileRow(sp8); r.CallSite = []RegisterRule{atMinus8}; return r }(), nil, ErrCompileCall},
		{"a return address that is not compiled", func() *Row { r := compileRow(sp8); r.ReturnAddress = 17; return r }(), nil, ErrCompileColumn},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := c.Compile(tt.row, defaults)
			if !errors.Is(err, tt.err) {
				t.Fatalf("%v, expected %v", err, tt.err)
			}
			if err != nil {
				return
			}
			var rules []rule
			same := uint16(0)
			for i := range c.Columns() {
				rules = append(rules, rule{got.Rule(i).Kind(), got.Rule(i).Value()})
				if rules[i] == (rule{Register, int64(i)}) {
					same |= 1 << i
				}
			}
			if diff := cmp.Diff(tt.want, rules); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if got.Same != same || got.Register != 0 || got.Return != 1 || int64(got.Offset) != tt.row.CFA.Offset {
				t.Errorf("%+v, expected the CFA from column 0, the return address in 1, same %#b", got, same)
			}
		})
	}
}

func TestNewCompiler(t *testing.T) {
	for name, tt := range map[string]struct {
		bits    uint32
		columns []Column
	}{
		"no address":          {0, nil},
		"addresses too large": {65, nil},
		"a column twice":      {64, []Column{{1, 64}, {2, 64}, {1, 32}}},
		"a column of nothing": {64, []Column{{1, 0}}},
		"a large column":      {64, []Column{{1, 128}}},
		"too many columns":    {64, make([]Column, MaxColumns+1)},
	} {
		if _, err := NewCompiler(tt.bits, tt.columns); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
