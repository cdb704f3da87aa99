// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"context"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// Disassemble writes each instruction as its words, and behind them whether it is
// compacted, its opcode, and for the instructions that build frames their names,
// where calls go and which register they write.
func (architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	answer := &sdk.DisassembleAnswer{}
	var e *encoding
	if p := processorNamed(req.Processor); p != nil {
		e = p.code
	}
	for offset := uint64(0); offset < uint64(len(req.Code)); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(answer.Instructions) == sdk.MaxBatch {
			return nil, fmt.Errorf("code of %d bytes has more than %d instructions", len(req.Code), sdk.MaxBatch)
		}
		pc := req.Address + offset
		inst, ok := instructionAt(req.Code, offset)
		text := "// the code ends within an instruction"
		if !ok {
			inst.size = uint64(len(req.Code)) - offset
		} else {
			text = wordsText(&inst) + "  // " + strings.Join(inst.known(e, pc), ", ")
		}
		answer.Instructions = append(answer.Instructions, sdk.Instruction{Address: pc, Size: uint32(inst.size), Text: text}) //nolint:gosec // at most 16
		offset += inst.size
	}
	return answer, nil
}

// wordsText writes an instruction as an assembler takes it.
func wordsText(inst *instruction) string {
	var b strings.Builder
	b.WriteString(".long ")
	for i := range inst.size / 4 {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "0x%08x", inst.words[i])
	}
	return b.String()
}

// known describes an instruction at an address. e is nil where the encoding is not
// known.
func (inst *instruction) known(e *encoding, pc uint64) []string {
	opcode := inst.words[0] & opcodeMask
	name := ""
	if e != nil {
		name = e.opcodeName(opcode)
	}
	if name == "" {
		name = fmt.Sprintf("opcode %#02x", opcode)
	}
	list := []string{name}
	if inst.size == compactedSize {
		return append(list, "compacted")
	}
	if e == nil {
		return list
	}
	switch opcode {
	case opcodeCall:
		if e.isDirect(inst.words[1], inst.words[2]) {
			list[0] = fmt.Sprintf("calls %#x", pc+uint64(int64(int32(inst.words[3])))) //nolint:gosec // a distance
		} else if register, offset, ok := e.reads(inst.words[2]); ok {
			list[0] = fmt.Sprintf("calls by the distance in byte %d of r%d", offset, register)
		}
	case opcodeReturn:
		if register, offset, ok := e.reads(inst.words[2]); ok {
			list[0] = fmt.Sprintf("returns to the address in byte %d of r%d", offset, register)
		}
		return list
	case opcodeSend:
		if register, ok := e.sends(inst.words[1]); ok {
			list = append(list, fmt.Sprintf("writes from r%d on", register))
		}
		return list
	case e.mov, opcodeAdd:
	default:
		return list
	}
	if register, offset, ok := e.writes(inst.words[1]); ok {
		list = append(list, fmt.Sprintf("writes from byte %d of r%d on", offset, register))
	}
	return list
}

// opcodeName returns the name of an operation that is known; "": another one.
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
