// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/sdk"
)

// longestCall is the length of the longest call that assemblers write: prefixes,
// FF /2 with SIB and a 32-bit displacement.
const longestCall = 11

// ClassifyReturn finds for each PC the call that ends right before it, if any.
//
// A PC is after a direct call only where no indirect call ends there too: bytes of an
// indirect call may read as a direct one with a meaningless target.
func (m *Mode) ClassifyReturn(req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return req.Answer(func(pc uint64, code []byte) (class sdk.ReturnClass, target uint64) {
		if class = m.CallBefore(code); class == sdk.AfterDirectCall {
			displacement := int32(binary.LittleEndian.Uint32(code[len(code)-4:]))
			target = m.address(pc + uint64(int64(displacement))) //nolint:gosec // modular
		}
		return class, target
	})
}

// CallBefore classifies the call that ends where code ends.
func (m *Mode) CallBefore(code []byte) sdk.ReturnClass {
	class := sdk.NotAfterCall
	if len(code) < longestCall {
		class = sdk.UnknownReturn
	}
	for length := 2; length <= min(len(code), MaxInstruction); length++ {
		e, ok := m.layout(code[len(code)-length:])
		if !ok || e.length != length || e.kind != legacy || e.opcodeMap != mapOneByte {
			continue
		}
		switch {
		case e.opcode == opGroup5 && e.modRMReg() == group5Call && (!e.operand16 || e.isWide()):
			return sdk.AfterIndirectCall
		case e.opcode == opCall:
			class = sdk.AfterDirectCall
		}
	}
	return class
}
