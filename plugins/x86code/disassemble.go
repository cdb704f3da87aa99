// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"context"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
	"golang.org/x/arch/x86/x86asm"
)

// Decode decodes one instruction. The disassembler gets unchecked
// bytes, so a panic of it is an error here.
func (m *Mode) Decode(code []byte) (inst x86asm.Inst, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the disassembler failed: %v", r)
		}
	}()
	return x86asm.Decode(code, 8*m.Word)
}

// named are the right names of instructions that the disassembler takes for others.
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
func (m *Mode) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	answer := &sdk.DisassembleAnswer{}
	for at := 0; at < len(req.Code); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if len(answer.Instructions) == sdk.MaxBatch {
			return nil, fmt.Errorf("code of %d bytes has more than %d instructions", len(req.Code), sdk.MaxBatch)
		}
		pc := req.Address + uint64(at)
		in := m.disassemble(req.Code[at:], pc)
		answer.Instructions = append(answer.Instructions, in)
		at += int(in.Size)
	}
	return answer, nil
}

func (m *Mode) disassemble(code []byte, pc uint64) sdk.Instruction {
	e, ok := m.layout(code)
	if !ok {
		return sdk.Instruction{Address: pc, Size: 1, Text: "(bad)"}
	}
	code = code[:e.length]
	in := sdk.Instruction{Address: pc, Size: uint32(e.length)} //nolint:gosec // at most MaxInstruction
	if text, ok := named[string(code)]; ok {
		in.Text = text
		return in
	}
	inst, err := m.Decode(code)
	isKnown := err == nil && inst.Len == e.length
	in.Kind, in.Accesses = m.explain(&e, code, &inst, isKnown, pc)
	if isKnown {
		in.Register, in.RegisterBits = m.operandRegister(&inst, in.Kind)
		if in.Text, ok = m.gnuSyntax(&e, code, inst, pc); ok {
			return in
		}
	}
	in.Text = bytesText(code)
	return in
}

// bytesText is the text of an instruction that has no name here.
func bytesText(code []byte) string {
	var b strings.Builder
	b.WriteString(".byte ")
	for i, c := range code {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "0x%02x", c)
	}
	return b.String()
}

func (m *Mode) gnuSyntax(e *encoding, code []byte, inst x86asm.Inst, pc uint64) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	for i, a := range inst.Args {
		if imm, ok := a.(x86asm.Imm); ok && m.Word == 4 && inst.DataSize == 16 {
			inst.Args[i] = imm & 0xffff // the disassembler has its sign
		}
	}
	memory := e.replaceMemory(m.Word == 8, code, &inst)
	return memory(x86asm.GNUSyntax(inst, pc, nil)), true
}
