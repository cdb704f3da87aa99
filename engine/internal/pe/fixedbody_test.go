// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"slices"
	"testing"
)

// TestBodyByTheStackPointer has the prologue of MinGW: push rbp; mov rbp, rsp; push rbx; sub rsp, 0x28.
func TestBodyByTheStackPointer(t *testing.T) {
	for _, c := range []struct {
		info []byte
		has  bool
		cfa  int64
	}{
		{[]byte{1, 9, 4, 5, 9, 0x42, 5, 0x30, 4, 0x03, 1, 0x50}, true, 0x40},
		{[]byte{1, 5, 2, 0, 5, 0x32, 1, 0x30}, false, 0},
	} {
		m := &maker{code: slices.Repeat([]byte{0x90}, 32)}
		m.functions(madeCode, madeCode+32, m.put(c.info...))
		f := m.open(t)
		fn, _, err := f.FunctionAt(madeBase + madeCode + 20)
		if err != nil {
			t.Fatal(err)
		}
		var row Row
		has, err := f.FixedBody(fn, &row)
		if err != nil || has != c.has || has && (row.CFA.Register != dwarfRSP || row.CFA.Offset != c.cfa) {
			t.Errorf("%x: %v, %v, %v, expected rsp+%#x", c.info, row, has, err, c.cfa)
		}
	}
}
