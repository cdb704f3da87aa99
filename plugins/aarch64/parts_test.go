// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// code is the bytes of instructions.
func code(words ...uint32) (b []byte) {
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

// A part of a function has the frame that the function has made where it jumps there.
func TestPartsAreReadWithTheirFunction(t *testing.T) {
	const start, part = 0x2000, 0x1000
	got := ask(t, sdk.CodeRange{PC: part + 7, Start: start, Bounded: true, Name: "f",
		Code:  code(0xa9be7bfd, 0x910003fd, 0x35ff7fc0, 0xa8c27bfd, 0xd65f03c0),   // stp x29, x30, [sp, #-32]!; mov x29, sp; cbnz w0, part; ldp x29, x30, [sp], #32; ret
		Parts: []sdk.CodePart{{Start: part, Code: code(0x52800000, 0x94000100)}}}) // mov w0, #0; bl, which does not return
	if len(got.Rows) != 2 || rowText(part, &got.Rows[1]) != "4-8 x31+32 29=c-32 30=c-24" {
		t.Errorf("%+v", got)
	}
}

// LLVM keeps the return address in a register that calls do not preserve where it calls code
// that it outlined.
func TestReturnAddressThatIsKeptInAnyRegister(t *testing.T) {
	got := ask(t, sdk.CodeRange{PC: testBase + 7, Start: testBase, Bounded: true, Name: "f",
		Code: code(0xaa1e03e4, 0x94000032, 0xaa0403fe, 0x1104d100, 0xd65f03c0)}) // mov x4, x30; bl; mov x30, x4; add w0, w8, #0x134; ret
	for offset, want := range map[uint64]cfi.Rule{
		4: {Kind: cfi.Register, Register: 4}, 8: {Kind: cfi.Register, Register: 4}, 12: {}, 16: {},
	} {
		found := false
		for i := range got.Rows {
			if r := &got.Rows[i]; testBase+offset >= r.Start && testBase+offset < r.End {
				rule, _ := r.Rule(uint64(x30))
				found = rule.Kind == want.Kind && rule.Register == want.Register
			}
		}
		if !found {
			t.Errorf("offset %d: expected the return address by %+v; rows %+v", offset, want, got.Rows)
		}
	}
}
