// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// frameAt is how far the CFA is above the stack pointer at an offset of a function of 32
// bits; 0 where it is not known.
func frameAt(t *testing.T, code string, offset uint64) int64 {
	t.Helper()
	m := NewMode(Convention32())
	rules := m.Rules(&sdk.CodeRange{PC: offset, Code: []byte(code), Bounded: true, Exact: true})
	for _, row := range rules.Rows {
		if row.Start <= offset && offset < row.End {
			return row.CFA.Offset
		}
	}
	return 0
}

// Where callees together removed one word, it is not known which did; where all or none
// did, each row is known.
func TestADepthIsKnownWhereOneIsPossible(t *testing.T) {
	const (
		begin = "\x83\xec\x0c"         // sub $12,%esp
		push  = "\x6a\x01"             // push $1
		call  = "\xe8\x00\x10\x00\x00" // each calls another function
		nop   = "\x90"
	)
	body := begin + push + call + nop + push + call + nop
	between, behind := uint64(len(begin+push+call)), uint64(len(body)-1)
	for _, c := range []struct {
		name            string
		drop            string
		between, behind int64
	}{
		{"no callee removes a word", "\x83\xc4\x14\xc3", 20, 24},
		{"one of two callees removes a word", "\x83\xc4\x10\xc3", 0, 20},
		{"both callees remove a word", "\x83\xc4\x0c\xc3", 16, 16},
	} {
		if got := frameAt(t, body+c.drop, between); got != c.between {
			t.Errorf("%s: CFA esp%+d between the calls, expected %+d", c.name, got, c.between)
		}
		if got := frameAt(t, body+c.drop, behind); got != c.behind {
			t.Errorf("%s: CFA esp%+d behind the calls, expected %+d", c.name, got, c.behind)
		}
	}
}
