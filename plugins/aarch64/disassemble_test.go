// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/unwindd/unwindd/sdk"
)

func disassembleAll(t *testing.T, address uint64, code []byte) []sdk.Instruction {
	t.Helper()
	req := &sdk.DisassembleRequest{Address: address, Code: code}
	answer, err := New().Disassemble(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Validate(bindDescription(), req); err != nil {
		t.Fatal(err)
	}
	return answer.Instructions
}

func codeOf(list ...uint32) (code []byte) {
	for _, w := range list {
		code = binary.LittleEndian.AppendUint32(code, w)
	}
	return code
}

func TestDisassemble(t *testing.T) {
	code := append(codeOf(0xd503233f, 0xa9bf7bfd, 0x94000010, 0x54000040, 0xb0000001, 0xf8200020, 0xffffffff, 0xd65f0bff), 0xfd, 0x7b)
	var got []string
	for _, in := range disassembleAll(t, 0x1000, code) {
		got = append(got, fmt.Sprintf("%d %d %s", in.Address-0x1000, in.Size, in.Text))
	}
	want := []string{"0 4 paciasp", "4 4 stp x29, x30, [sp, #-16]!", "8 4 bl 0x1048", "12 4 b.eq 0x1014", "16 4 adrp x1, 0x2000",
		"20 4 ldadd x0, x0, [x1]", "24 4 .inst 0xffffffff", "28 4 retaa", "32 2 .byte 0xfd,0x7b"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instructions of %x (-want +got):\n%s", code, diff)
	}
}

// TestKindsOfInstructions has what may stop a thread, and the registers that say where it
// goes (Arm Architecture Reference Manual for A-profile, C6.2).
func TestKindsOfInstructions(t *testing.T) {
	for _, c := range []struct {
		word           uint32
		text           string
		kind           sdk.InstructionKind
		register, bits uint32
	}{
		{0x00000000, "udf #0", sdk.UndefinedInstruction, 0, 0},
		{0xd4207d00, "brk #0x3e8", sdk.UndefinedInstruction, 0, 0},
		{0xd4200020, "brk #0x1", sdk.UndefinedInstruction, 0, 0},
		{0xd42aa020, "brk #0x5501", sdk.UndefinedInstruction, 0, 0},
		{0xd4200000, "brk #0x0", sdk.BreakpointInstruction, 0, 0},
		{0xd43e0000, "brk #0xf000", sdk.BreakpointInstruction, 0, 0},
		{0xd4400000, "hlt #0x0", sdk.BreakpointInstruction, 0, 0},
		{0xd4000001, "svc #0x0", sdk.SystemCallInstruction, 0, 0},
		{0xd4000002, "hvc #0x0", sdk.PrivilegedInstruction, 0, 0},
		{0xd69f03e0, "eret", sdk.PrivilegedInstruction, 0, 0},
		{0xd5381000, "mrs x0, s3_0_c1_c0_0", sdk.PrivilegedInstruction, 0, 0},
		{0xd508871f, "tlbi vmalle1", sdk.PrivilegedInstruction, 0, 0},
		{0xd53bd040, "mrs x0, tpidr_el0", sdk.OtherInstruction, 0, 0},
		{0xd50b7420, "dc zva, x0", sdk.OtherInstruction, 0, 0},
		{0xd503201f, "nop", sdk.OtherInstruction, 0, 0},
		{0x9ac00c20, "sdiv x0, x1, x0", sdk.OtherInstruction, 0, 0},
		{0x94000001, "bl 0x1004", sdk.CallInstruction, 0, 0},
		{0x14000001, "b 0x1004", sdk.JumpInstruction, 0, 0},
		{0xd63f0060, "blr x3", sdk.CallInstruction, 3, 64},
		{0xd73f0862, "blraa x3, x2", sdk.CallInstruction, 3, 64},
		{0xd61f0200, "br x16", sdk.JumpInstruction, 16, 64},
		{0xd65f03c0, "ret", sdk.ReturnInstruction, 30, 64},
		{0xd65f0020, "ret x1", sdk.ReturnInstruction, 1, 64},
		{0xd65f0fff, "retab", sdk.ReturnInstruction, 30, 64},
	} {
		in := disassembleAll(t, 0x1000, codeOf(c.word))[0]
		if in.Text != c.text || in.Kind != c.kind || in.Register != c.register || in.RegisterBits != c.bits {
			t.Errorf("%08x: %q, kind %d, register %d of %d bits, expected %q, %d, %d of %d",
				c.word, in.Text, in.Kind, in.Register, in.RegisterBits, c.text, c.kind, c.register, c.bits)
		}
	}
}

// TestAccessesOfInstructions has what the texts of objdump do not tell.
func TestAccessesOfInstructions(t *testing.T) {
	at := func(base uint32, offset int64) sdk.Access {
		return sdk.Access{Base: base, Index: sdk.NoRegister, Segment: sdk.NoRegister, Displacement: offset, AddressBits: 64}
	}
	for _, c := range []struct {
		word uint32
		text string
		want []sdk.Access
	}{
		{0xa9bf7bfd, "stp x29, x30, [sp, #-16]!", write(at(sp, -16), 16)},
		{0xa8c17bfd, "ldp x29, x30, [sp], #16", read(at(sp, 0), 16)},
		{0xf8410c20, "ldr x0, [x1, #16]!", read(at(1, 16), 8)},
		{0xf8410420, "ldr x0, [x1], #16", read(at(1, 0), 8)},
		{0xf9800020, "prfm pldl1keep, [x1]", nil},
		{0xf8627820, "ldr x0, [x1, x2, lsl #3]", read(sdk.Access{Base: 1, Index: 2, Segment: sdk.NoRegister, Scale: 8, AddressBits: 64}, 8)},
		{0xb862d820, "ldr w0, [x1, w2, sxtw #2]", read(sdk.Access{Base: 1, Index: 2, Segment: sdk.NoRegister, Scale: 4, IndexBits: 32, IsIndexSigned: true, AddressBits: 64}, 4)},
		{0x58000040, "ldr x0, 0x1008", read(at(sdk.NoRegister, 0x1008), 8)},
		{0x4cdf2040, "ld1 {v0.16b-v3.16b}, [x2], #64", read(at(2, 0), 64)},
		{0x0c9f8040, "st2 {v0.8b, v1.8b}, [x2], #16", write(at(2, 0), 16)},
		{0x4d408440, "ld1 {v0.d}[1], [x2]", read(at(2, 0), 8)},
		{0x4d60e040, "ld4r {v0.16b-v3.16b}, [x2]", read(at(2, 0), 4)},
		{0xc87f0440, "ldxp x0, x1, [x2]", read(at(2, 0), 16)},
		{0x48227c80, "casp x2, x3, x0, x1, [x4]", both(at(4, 0), 16)},
		{0xd50b7423, "dc zva, x3", write(at(3, 0), 0)},
		{0xd50b7523, "ic ivau, x3", read(at(3, 0), 0)},
		{0xd9a00800, "st2g x0, [x0]", write(at(0, 0), 32)},
		{0xd9601020, "ldg x0, [x1, #16]", read(at(1, 16), 16)},
		{0x19010440, "cpyfp [x0]!, [x1]!, x2!", append(write(at(0, 0), 0), read(at(1, 0), 0)...)},
		{0x19c20420, "setp [x0]!, x1!, x2", write(at(0, 0), 0)},
		{0xf83fd020, ".inst 0xf83fd020", read(at(1, 0), 64)}, // ld64b
		{0x91000420, "add x0, x1, #0x1", nil},
	} {
		in := disassembleAll(t, 0x1000, codeOf(c.word))[0]
		if diff := cmp.Diff(c.want, in.Accesses); diff != "" || in.Text != c.text {
			t.Errorf("%08x: %q, expected %q (-want +got):\n%s", c.word, in.Text, c.text, diff)
		}
	}
}

func FuzzDisassemble(f *testing.F) {
	f.Add(codeOf(0xa9bf7bfd, 0x54000040, 0xf8200020))
	f.Add(codeOf(0xa400a020, 0x19010440, 0x68c4b5a4))
	f.Add([]byte("\xfd\x7b"))
	f.Fuzz(func(t *testing.T, code []byte) {
		at := uint64(0x1000)
		for _, in := range disassembleAll(t, at, code) {
			if in.Address != at || in.Size == 0 || in.Text == "" {
				t.Fatalf("instruction %+v at %#x", in, at)
			}
			at += uint64(in.Size)
		}
		if at != 0x1000+uint64(len(code)) {
			t.Errorf("%d of %d bytes", at-0x1000, len(code))
		}
	})
}
