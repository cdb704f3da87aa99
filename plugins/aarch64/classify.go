// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// ClassifyReturn says for each PC whether a call ends right before it.
func (architecture) ClassifyReturn(_ context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	if len(req.Offsets) != len(req.PCs)+1 {
		return nil, fmt.Errorf("ClassifyReturn: %d offsets for %d PCs, expected one more than PCs", len(req.Offsets), len(req.PCs))
	}
	answer := &sdk.ClassifyReturnAnswer{
		Classes: make([]sdk.ReturnClass, len(req.PCs)),
		Targets: make([]uint64, len(req.PCs)),
	}
	for i, pc := range req.PCs {
		from, to := req.Offsets[i], req.Offsets[i+1]
		if from > to || uint64(to) > uint64(len(req.Code)) {
			return nil, fmt.Errorf("ClassifyReturn: bytes %d to %d of PC %d, expected a range of %d bytes", from, to, i, len(req.Code))
		}
		answer.Classes[i], answer.Targets[i] = callBefore(pc, req.Code[from:to])
	}
	return answer, nil
}

// callBefore says whether a call ends where code does, at pc, and where a direct one
// leads.
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
