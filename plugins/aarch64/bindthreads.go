// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"

	"github.com/unwindd/unwindd/sdk"
)

// assumedMask are the bits of an address that pointer authentication takes where
// addresses have 48 bits and the top byte is ignored, as Linux sets most machines up: 48
// to 54. Bit 55 selects the half of the address space.
const assumedMask = 0x7f << 48

// BindThreads gives each thread its pc, one lane, the bits of its return addresses that
// pointer authentication may have set, and the length of its vectors. A thread without pc
// gets a problem.
func (architecture) BindThreads(_ context.Context, _ sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	answer := sdk.DefaultBindThreads(bindDescription(), req)
	for i := range answer.Threads {
		registers, b := &req.Threads[i].Registers, &answer.Threads[i]
		b.ReturnAddressMask = assumedMask
		if mask, ok := registers.Uint64(pauthCmask, sdk.LittleEndian); ok {
			b.ReturnAddressMask = mask
		}
		b.Widths = vectorWidths(registers)
	}
	return answer, nil
}

// vectorWidths are the sizes of the registers of SVE. A thread in streaming mode has
// vectors of another length, but its core has the other registers as well. A sample of
// perf has vg and no vectors: it gets no widths, and is bound as the sample before it.
func vectorWidths(registers *sdk.Registers) []sdk.RegisterWidth {
	bytes, ok := registers.Uint64(sveLength, sdk.LittleEndian)
	granules, hasVG := registers.Uint64(vg, sdk.LittleEndian)
	if _, hasVectors := registers.Get(z0); !ok && hasVG && hasVectors && granules <= vectorBits/64 {
		bytes = 8 * granules
	}
	if bytes == 0 || bytes%16 != 0 || bytes > vectorBits/8 {
		return nil
	}
	return []sdk.RegisterWidth{
		{First: ffr, Count: 17, Bits: uint32(bytes)}, // a bit for each byte of a vector
		{First: z0, Count: 32, Bits: 8 * uint32(bytes)},
	}
}
