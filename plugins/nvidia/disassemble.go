// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// triple is LLVM's name of the architecture.
const triple = "nvptx64-nvidia-cuda"

// bundle is the size of a group of instructions before sm_70; its first word schedules the
// others.
const bundle = 32

// Disassemble writes each instruction as its words. NVIDIA's nvdisasm has the names, where the
// user names one.
func (architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	size := uint64(maxInstruction)
	number := processorNumber(req.Processor)
	isNarrow := number != 0 && number < firstWide
	if isNarrow {
		size /= 2
	}
	answer := &sdk.DisassembleAnswer{LLVM: sdk.LLVMTarget{Triple: triple}}
	if number != 0 {
		answer.LLVM.CPU = req.Processor
	}
	for offset := uint64(0); offset < uint64(len(req.Code)); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(answer.Instructions) == sdk.MaxBatch {
			return nil, fmt.Errorf("code of %d bytes has more than %d instructions", len(req.Code), sdk.MaxBatch)
		}
		at := req.Address + offset
		n := min(size-at%size, uint64(len(req.Code))-offset)
		text := wordsText(req.Code[offset : offset+n])
		switch {
		case n < size:
			text += "  // a part of an instruction"
		case isNarrow && at%bundle == 0:
			text += "  // schedules the next three"
		}
		answer.Instructions = append(answer.Instructions, sdk.Instruction{Address: at, Size: uint32(n), Text: text}) //nolint:gosec // at most 16
		offset += n
	}
	return answer, nil
}

// wordsText writes code as an assembler takes it.
func wordsText(code []byte) string {
	var words []string
	if len(code)%4 != 0 {
		for _, c := range code {
			words = append(words, fmt.Sprintf("0x%02x", c))
		}
		return ".byte " + strings.Join(words, ", ")
	}
	for ; len(code) > 0; code = code[4:] {
		words = append(words, fmt.Sprintf("0x%08x", binary.LittleEndian.Uint32(code)))
	}
	return ".long " + strings.Join(words, ", ")
}
