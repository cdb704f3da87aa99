// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"testing"

	"github.com/unwindd/unwindd/cfi"
)

// aheadComparison counts what reading ahead says behind calls, and at instructions.
type aheadComparison struct {
	right, unknown, wrong int
	calls, others         int // that were offered
}

// isNext says whether an instruction is one of the sample.
func (c *aheadComparison) isNext(isAfterCall bool) bool {
	if isAfterCall {
		c.calls++
		return c.calls%5 == 0
	}
	c.others++
	return c.others%31 == 0
}

// compareAhead holds the row of code that lies ahead against the state that is read from the function's
// beginning, which has been compared with call frame information. Registers may be in their
// places in memory before that says so.
func (c *comparison) compareAhead(at uint64, isAfterCall bool, st *state) {
	offset := int(at - c.address)
	row, err := aheadRow(c.code[max(0, offset-64):], min(offset, 64))
	if _, isSaved := row.Rule(uint64(ra)); err != nil || isAfterCall && !isSaved {
		c.ahead.unknown++
		return
	}
	isRight := st.registers[row.CFA.Register].plus(row.CFA.Offset) == value{kind: atEntry, base: sp}
	for r := range uint32(len(st.registers)) {
		if r != ra && (!isPreserved(r) || r == zero || r == gp || r == tp) {
			continue
		}
		switch rule, isSaid := row.Rule(uint64(r)); {
		case !isSaid:
			isRight = isRight && st.registers[r] == value{kind: atEntry, base: r}
		case rule.Kind == cfi.Offset:
			isRight = isRight && st.slot(rule.Offset) == value{kind: atEntry, base: r}
		}
	}
	if isRight {
		c.ahead.right++
		return
	}
	if c.ahead.wrong++; c.ahead.wrong < 20 {
		c.t.Errorf("%#x: read ahead: %s%+d with %+v; from the beginning: %+v", at, integerNames[row.CFA.Register], row.CFA.Offset, row.Rules, st.slots)
	}
}

func (c *comparison) report() {
	c.t.Logf("read ahead, at every 5th call and every 31st instruction: %d right, %d unknown, %d wrong", c.ahead.right, c.ahead.unknown, c.ahead.wrong)
	if c.ahead.right < c.ahead.unknown/2 {
		c.t.Error("expected that a third is known at least")
	}
}

// FuzzAheadRow reads bytes that may be no code.
func FuzzAheadRow(f *testing.F) {
	f.Add([]byte{0x41, 0x11, 0x06, 0xe4, 0xef, 0x00, 0x40, 0x00, 0xa2, 0x60, 0x41, 0x01, 0x82, 0x80}, 8)
	f.Fuzz(func(t *testing.T, code []byte, at int) {
		if at < 0 {
			return
		}
		row, err := aheadRow(code, at)
		if err == nil && (row.CFA.Kind != cfi.CFARegister || len(row.Rules) > 64) {
			t.Fatalf("%+v", row)
		}
	})
}
