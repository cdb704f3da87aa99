// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"context"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// Disassemble writes each instruction as its words, with what is known of it behind
// them: whether it is compacted, its opcode, and of the instructions that make frames
// their names, where calls go and which register they write.
func (architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	answer := &sdk.DisassembleAnswer{}
	var e *encoding
	if p := processorNamed(req.Processor); p != nil {
		e = p.code
	}
	for at := uint64(0); at < uint64(len(req.Code)); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(answer.Instructions) == sdk.MaxBatch {
			return nil, fmt.Errorf("code of %d bytes has more than %d instructions", len(req.Code), sdk.MaxBatch)
		}
		pc := req.Address + at
		in, ok := instructionAt(req.Code, at)
		text := "// the code ends within an instruction"
		if !ok {
			in.size = uint64(len(req.Code)) - at
		} else {
			text = wordsText(&in) + "  // " + strings.Join(in.known(e, pc), ", ")
		}
		answer.Instructions = append(answer.Instructions, sdk.Instruction{Address: pc, Size: uint32(in.size), Text: text}) //nolint:gosec // at most 16
		at += in.size
	}
	return answer, nil
}

// wordsText is an instruction as an assembler takes it.
func wordsText(in *instruction) string {
	var b strings.Builder
	b.WriteString(".long ")
	for i := range in.size / 4 {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "0x%08x", in.words[i])
	}
	return b.String()
}

// known says what is known of an instruction at an address, with an encoding; nil: which
// one it has is not known.
func (in *instruction) known(e *encoding, pc uint64) []string {
	opcode := in.words[0] & opcodeMask
	name := ""
	if e != nil {
		name = e.opcodeName(opcode)
	}
	if name == "" {
		name = fmt.Sprintf("opcode %#02x", opcode)
	}
	list := []string{name}
	if in.size == compactedSize {
		return append(list, "compacted")
	}
	if e == nil {
		return list
	}
	switch opcode {
	case opcodeCall:
		if e.isDirect(in.words[1], in.words[2]) {
			list[0] = fmt.Sprintf("calls %#x", pc+uint64(int64(int32(in.words[3])))) //nolint:gosec // a distance
		} else if register, at, ok := e.reads(in.words[2]); ok {
			list[0] = fmt.Sprintf("calls by the distance in byte %d of r%d", at, register)
		}
	case opcodeReturn:
		if register, at, ok := e.reads(in.words[2]); ok {
			list[0] = fmt.Sprintf("returns to the address in byte %d of r%d", at, register)
		}
		return list
	case opcodeSend:
		if register, ok := e.sends(in.words[1]); ok {
			list = append(list, fmt.Sprintf("writes from r%d on", register))
		}
		return list
	case e.mov, opcodeAdd:
	default:
		return list
	}
	if register, at, ok := e.writes(in.words[1]); ok {
		list = append(list, fmt.Sprintf("writes from byte %d of r%d on", at, register))
	}
	return list
}

// opcodeName is what is known by its name; "": another operation.
func (e *encoding) opcodeName(opcode uint32) string {
	switch opcode {
	case e.mov:
		return "mov"
	case opcodeAdd:
		return "add"
	case opcodeSend:
		return "send"
	case opcodeCall:
		return "call"
	case opcodeReturn:
		return "ret"
	}
	return ""
}
