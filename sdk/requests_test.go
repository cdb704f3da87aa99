// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

// TestAnswerOfClassifyReturn: each PC is classed by the bytes before it, and a request
// whose offsets do not stand is refused.
func TestAnswerOfClassifyReturn(t *testing.T) {
	classify := func(pc uint64, code []byte) (sdk.ReturnClass, uint64) {
		if string(code) == "call" {
			return sdk.AfterDirectCall, pc + 1
		}
		return sdk.NotAfterCall, 0
	}
	a, err := (&sdk.ClassifyReturnRequest{PCs: []uint64{16, 32}, Offsets: []uint32{0, 4, 7}, Code: []byte("callnop")}).Answer(classify)
	if err != nil || !slices.Equal(a.Classes, []sdk.ReturnClass{sdk.AfterDirectCall, sdk.NotAfterCall}) || !slices.Equal(a.Targets, []uint64{17, 0}) {
		t.Errorf("answer %+v, %v", a, err)
	}
	for _, c := range []struct {
		offsets []uint32
		want    string
	}{
		{[]uint32{0, 4}, "2 offsets for 2 PCs"},
		{[]uint32{0, 4, 8}, "bytes 4 to 8 of PC 1, expected a range of 7 bytes"},
		{[]uint32{4, 2, 7}, "bytes 4 to 2 of PC 0"},
	} {
		_, err := (&sdk.ClassifyReturnRequest{PCs: []uint64{16, 32}, Offsets: c.offsets, Code: []byte("callnop")}).Answer(classify)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("offsets %v: %v, expected %q", c.offsets, err, c.want)
		}
	}
}

// TestSymbolEnd: a size says it, else the next symbol, else the section.
func TestSymbolEnd(t *testing.T) {
	r := &sdk.OpenObjectRequest{
		Sections: []sdk.SectionInfo{{}, {Name: ".text", Address: 0x1000, Size: 0x100}, {Name: ".last", Address: ^uint64(0) - 0xf, Size: 0x100}},
		Symbols: []sdk.SymbolInfo{
			{Name: "sized", Address: 0x1000, Size: 8}, {Name: "next", Address: 0x1010}, {Name: "last", Address: 0x1020},
			{Name: "outside", Address: 0x2000}, {Name: "wraps", Address: ^uint64(0) - 7, Size: 16},
		},
	}
	for i, want := range []uint64{0x1008, 0x1020, 0x1100, 0x2000, ^uint64(0) - 7} {
		if s := &r.Symbols[i]; r.SymbolEnd(s) != want {
			t.Errorf("%s: ends at %#x, expected %#x", s.Name, r.SymbolEnd(s), want)
		}
	}
}
