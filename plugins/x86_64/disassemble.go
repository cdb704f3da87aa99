package x86_64

import (
	"context"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
	"golang.org/x/arch/x86/x86asm"
)

// decodeInst decodes one instruction in 64-bit mode. The disassembler is given
// bytes that nobody checked, so that a panic of it is an error here.
func decodeInst(code []byte) (inst x86asm.Inst, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the disassembler failed: %v", r)
		}
	}()
	return x86asm.Decode(code, 64)
}

// named are instructions that the disassembler takes for others.
var named = map[string]string{
	bytesEndbr64:    "endbr64",
	bytesEndbr32:    "endbr32",
	bytesVzeroupper: "vzeroupper",
	bytesVzeroall:   "vzeroall",
	bytesRdpkru:     "rdpkru",
	bytesWrpkru:     "wrpkru",
}

// Disassemble writes instructions as GNU tools do (AT&T syntax). An instruction
// whose length is known but not its name is shown as .byte; a byte that begins
// no instruction, or one cut by the end of the code, as (bad).
func (architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	answer := &sdk.DisassembleAnswer{}
	for at := 0; at < len(req.Code); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(answer.Instructions) == sdk.MaxBatch {
			return nil, fmt.Errorf("code of %d bytes has more than %d instructions", len(req.Code), sdk.MaxBatch)
		}
		pc := req.Address + uint64(at)
		text, size := disassemble(req.Code[at:], pc)
		answer.Instructions = append(answer.Instructions, sdk.Instruction{Address: pc, Size: uint32(size), Text: text})
		at += size
	}
	return answer, nil
}

func disassemble(code []byte, pc uint64) (text string, size int) {
	e, ok := layout(code)
	if !ok {
		return "(bad)", 1
	}
	code = code[:e.length]
	if text, ok := named[string(code)]; ok {
		return text, e.length
	}
	if inst, err := decodeInst(code); err == nil && inst.Len == e.length {
		if text, ok := gnuSyntax(&e, code, inst, pc); ok {
			return text, e.length
		}
	}
	var b strings.Builder
	b.WriteString(".byte ")
	for i, c := range code {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "0x%02x", c)
	}
	return b.String(), e.length
}

func gnuSyntax(e *encoding, code []byte, inst x86asm.Inst, pc uint64) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	memory := e.replaceMemory(code, &inst)
	return memory(x86asm.GNUSyntax(inst, pc, nil)), true
}
