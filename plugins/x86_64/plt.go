// SPDX-License-Identifier: Apache-2.0

package x86_64

import "github.com/unwindd/unwindd/plugins/x86code"

// The beginnings of instructions that linkage tables consist of. A displacement or an
// immediate of four bytes follows unless noted.
const (
	bytesEndbr64 = "\xf3\x0f\x1e\xfa" // nothing follows
	bytesBnd     = "\xf2"             // the prefix of the instruction behind it
	bytesJump    = "\xe9"             // jmp rel32
	bytesJumpRIP = "\xff\x25"         // jmp *disp32(%rip)
	bytesMovR11D = "\x41\xbb"         // mov $imm32,%r11d
	bytesPushImm = "\x68"             // push $imm32
	bytesPushRIP = "\xff\x35"         // push disp32(%rip)
	bytesPushR11 = "\x41\x53"         // push %r11, nothing follows
)

var (
	endbr   = x86code.StubInstruction{Bytes: bytesEndbr64}
	pushR11 = x86code.StubInstruction{Bytes: bytesPushR11, Pushes: true}
	pushRIP = x86code.StubInstruction{Bytes: bytesPushRIP, Any: 4, Pushes: true}
	pushImm = x86code.StubInstruction{Bytes: bytesPushImm, Any: 4, Pushes: true}
	movR11D = x86code.StubInstruction{Bytes: bytesMovR11D, Any: 4}
	jump    = x86code.StubInstruction{Bytes: bytesJump, Any: 4}
	bndJump = x86code.StubInstruction{Bytes: bytesBnd + bytesJump, Any: 4}

	jumpRIP    = x86code.StubInstruction{Bytes: bytesJumpRIP, Any: 4}
	bndJumpRIP = x86code.StubInstruction{Bytes: bytesBnd + bytesJumpRIP, Any: 4}
)

// The entries that linkers write (psABI 5.2; the variants for BND and IBT of GNU ld, lld
// and mold). The index is pushed before the first entry is entered.
var stubs = []x86code.Stub{
	{CFA: 16, Code: []x86code.StubInstruction{pushRIP, jumpRIP}, Header: true},
	{CFA: 16, Code: []x86code.StubInstruction{pushRIP, bndJumpRIP}, Header: true},
	{CFA: 8, Code: []x86code.StubInstruction{endbr, pushR11, pushRIP, jumpRIP}, Header: true},
	{CFA: 8, Code: []x86code.StubInstruction{jumpRIP, pushImm, jump}},
	{CFA: 8, Code: []x86code.StubInstruction{endbr, pushImm, bndJump}},
	{CFA: 8, Code: []x86code.StubInstruction{endbr, pushImm, jump}},
	{CFA: 8, Code: []x86code.StubInstruction{pushImm, bndJump}},
	{CFA: 8, Code: []x86code.StubInstruction{endbr, bndJumpRIP}},
	{CFA: 8, Code: []x86code.StubInstruction{endbr, jumpRIP}},
	{CFA: 8, Code: []x86code.StubInstruction{endbr, movR11D, jumpRIP}},
	{CFA: 8, Code: []x86code.StubInstruction{movR11D, jumpRIP}},
	{CFA: 8, Code: []x86code.StubInstruction{bndJumpRIP}},
	{CFA: 8, Code: []x86code.StubInstruction{jumpRIP}},
}
