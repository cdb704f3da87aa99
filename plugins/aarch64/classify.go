// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"encoding/binary"

	"github.com/unwindd/unwindd/sdk"
)

// ClassifyReturn finds for each PC the call that ends right before it, if any.
func (architecture) ClassifyReturn(_ context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return req.Answer(callBefore)
}

// callBefore classifies the call that ends where code ends, at pc, and returns the target
// of a direct one.
func callBefore(pc uint64, code []byte) (class sdk.ReturnClass, target uint64) {
	switch {
	case pc%instructionSize != 0:
		return sdk.NotAfterCall, 0
	case len(code) < instructionSize:
		return sdk.UnknownReturn, 0
	}
	var e effect
	readEffect(binary.LittleEndian.Uint32(code[len(code)-instructionSize:]), &e)
	switch {
	case e.kind != effectCall:
		return sdk.NotAfterCall, 0
	case !e.direct:
		return sdk.AfterIndirectCall, 0
	}
	return sdk.AfterDirectCall, pc - instructionSize + uint64(e.target) //nolint:gosec // modular
}
