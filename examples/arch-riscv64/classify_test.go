// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"testing"

	"github.com/unwindd/unwindd/sdk"
)

func TestCallBefore(t *testing.T) {
	const at = 0x10000
	for _, c := range []struct {
		name   string
		code   []byte
		class  sdk.ReturnClass
		target uint64
	}{
		{"jal ra,.+0x84", []byte{0xef, 0x00, 0x40, 0x08}, sdk.AfterDirectCall, at - 4 + 0x84},
		{"jal ra,.-0x10", []byte{0xef, 0xf0, 0x1f, 0xff}, sdk.AfterDirectCall, at - 4 - 0x10},
		{"j .-0x10", []byte{0x6f, 0xf0, 0x1f, 0xff}, sdk.NotAfterCall, 0},
		{"auipc ra,1; jalr -16(ra)", []byte{0x97, 0x10, 0x00, 0x00, 0xe7, 0x80, 0x00, 0xff}, sdk.AfterDirectCall, at - 8 + 0x1000 - 16},
		{"auipc t1,1; jalr -16(ra)", []byte{0x17, 0x13, 0x00, 0x00, 0xe7, 0x80, 0x00, 0xff}, sdk.AfterIndirectCall, 0},
		{"jalr 8(a5)", []byte{0xe7, 0x80, 0x87, 0x00}, sdk.AfterIndirectCall, 0},
		{"jr 8(a5)", []byte{0x67, 0x80, 0x87, 0x00}, sdk.NotAfterCall, 0},
		{"c.jalr a5", []byte{0x82, 0x97}, sdk.AfterIndirectCall, 0},
		{"c.jr a5", []byte{0x01, 0x00, 0x82, 0x87}, sdk.NotAfterCall, 0},
		{"c.ebreak", []byte{0x01, 0x00, 0x02, 0x90}, sdk.NotAfterCall, 0},
		{"a byte", []byte{0x01}, sdk.UnknownReturn, 0},
		{"nothing", nil, sdk.UnknownReturn, 0},
	} {
		if class, target := callBefore(at, c.code); class != c.class || target != c.target {
			t.Errorf("%s: class %d to %#x, want %d to %#x", c.name, class, target, c.class, c.target)
		}
	}
	if class, _ := callBefore(at+1, []byte{0x82, 0x97}); class != sdk.NotAfterCall {
		t.Errorf("an odd address: class %d", class)
	}
}

// TestTrampoline asks for the row of a signal trampoline at all of its bytes, the one
// before it and the one behind it.
func TestTrampoline(t *testing.T) {
	const start = 0x20000
	code := append([]byte{1, 0}, trampoline...)
	code = append(code, 1, 0)
	for at := range code {
		for _, exact := range []bool{false, true} {
			rules := frameRules(&sdk.CodeRange{PC: start + uint64(at), Start: start, Code: code, Exact: exact})
			want := at >= 2 && at < 10 || exact && at == 10 || !exact && at == 1
			if rules.Trampoline != want {
				t.Fatalf("byte %d, exact %v: trampoline %v, %q", at, exact, rules.Trampoline, rules.Reason)
			}
			if !want {
				continue
			}
			row := rules.Rows[0]
			if pc := start + uint64(at); pc < row.Start || pc >= row.End || !row.SignalFrame || row.ReturnAddress != uint64(pcColumn) {
				t.Errorf("byte %d, exact %v: row %#x to %#x, return address column %d", at, exact, row.Start, row.End, row.ReturnAddress)
			}
		}
	}
}

const pcColumn = pc
