// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/unwindd/unwindd/sdk"
	"golang.org/x/arch/arm64/arm64asm"
)

// llvmTarget has the options by which LLVM's tools disassemble AArch64, with every
// extension.
var llvmTarget = sdk.LLVMTarget{Triple: "aarch64-linux-gnu", Features: "+all"}

// Disassemble writes instructions as GNU tools do. A word that is not an instruction, or
// has no name here, is shown as .inst; bytes after the last word as .byte.
func (architecture) Disassemble(ctx context.Context, req *sdk.DisassembleRequest) (*sdk.DisassembleAnswer, error) {
	if len(req.Code)/instructionSize >= sdk.MaxBatch {
		return nil, fmt.Errorf("code of %d bytes has more than %d instructions", len(req.Code), sdk.MaxBatch)
	}
	answer := &sdk.DisassembleAnswer{LLVM: llvmTarget}
	for at := 0; at < len(req.Code); at += instructionSize {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		code, pc := req.Code[at:], req.Address+uint64(at)
		if len(code) < instructionSize {
			answer.Instructions = append(answer.Instructions, sdk.Instruction{Address: pc, Size: uint32(len(code)), Text: bytesText(code)})
			break
		}
		answer.Instructions = append(answer.Instructions, disassemble(binary.LittleEndian.Uint32(code), pc))
	}
	return answer, nil
}

// disassemble returns the instruction of a word at pc.
func disassemble(w uint32, pc uint64) sdk.Instruction {
	in := sdk.Instruction{Address: pc, Size: instructionSize}
	in.Text = text(w, pc)
	in.Kind, in.Register, in.RegisterBits = kindOf(w)
	in.Accesses = accessesOf(w, pc)
	return in
}

// bytesText is the text of bytes after the last whole word.
func bytesText(code []byte) string {
	list := make([]string, len(code))
	for i, b := range code {
		list[i] = fmt.Sprintf("0x%02x", b)
	}
	return ".byte " + strings.Join(list, ",")
}

// text is the text of a word: from the table of words that the disassembler does not know
// or gets wrong, else from the disassembler.
func text(w uint32, pc uint64) string {
	if isReserved(w) {
		return wordText(w)
	}
	for i := range syntaxes {
		if f := &syntaxes[i]; w&f.mask == f.value {
			if text, ok := f.write(w, pc); ok {
				return text
			}
			return wordText(w)
		}
	}
	if text, ok := gnuSyntax(w, pc); ok {
		return text
	}
	return wordText(w)
}

// wordText is the text of a word that has no name here.
func wordText(w uint32) string { return fmt.Sprintf(".inst 0x%08x", w) }

// gnuSyntax is the text of an instruction of ARMv8.0. The disassembler gets unchecked
// words: one at which it panics counts as unknown.
func gnuSyntax(w uint32, pc uint64) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	inst, err := arm64asm.Decode(binary.LittleEndian.AppendUint32(nil, w))
	if err != nil {
		return "", false
	}
	for i, arg := range inst.Args {
		switch arg := arg.(type) {
		case arm64asm.PCRel: // the last operand
			inst.Args[i] = arm64asm.Imm64{Imm: target(&inst, pc, int64(arg))}
			text := withBlanks(arm64asm.GNUSyntax(inst))
			mark := strings.LastIndexByte(text, '#')
			return text[:mark] + text[mark+1:], true
		case arm64asm.Cond:
			if arg.Value == conditionNever {
				return "", false // written as "al", which is another condition
			}
		}
	}
	text = strings.TrimSpace(withBlanks(arm64asm.GNUSyntax(inst)))
	if zeroCompares[inst.Op] && strings.HasSuffix(text, ", #0") {
		text += ".0"
	}
	return text, true
}

// isReserved reports whether a word is not an instruction although the disassembler, or a
// pattern, takes it for one.
func isReserved(w uint32) bool {
	switch {
	case w&0x1fe00000 == 0x0b200000: // ADD and SUB of an extended register
		return field(w, 10, 3) > 4
	case w&0x1f800000 == 0x12000000: // AND, ORR and EOR of an immediate
		_, ok := bitmask(w)
		return !ok
	case w&0x3fa00000 == 0x08800000: // LDAR and STLR with zeros in bits that should be ones
		return w&0x1f7c00 != 0x1f7c00
	case w&0xfe400000 == 0x68400000: // LDPSW of one register twice, or that changes one twice
		first, second, base := field(w, 0, 5), field(w, 10, 5), field(w, 5, 5)
		hasWriteback := field(w, 23, 1) == 1 && base != gprSP
		return first == second || hasWriteback && (first == base || second == base)
	case w&0x3b200c00 == 0x19000400: // CPY and SET, which need three different registers
		d, s, n := field(w, 0, 5), field(w, 16, 5), field(w, 5, 5)
		isSet := field(w, 22, 2) == 3
		return d == gprSP || n == gprSP || s == gprSP && !isSet || d == s || d == n || s == n
	}
	return false
}

// conditionNever is the condition nv, which is always true.
const conditionNever = 15

// zeroCompares compare with a floating-point zero.
var zeroCompares = map[arm64asm.Op]bool{
	arm64asm.FCMP: true, arm64asm.FCMPE: true, arm64asm.FCMEQ: true, arm64asm.FCMGE: true, arm64asm.FCMGT: true,
	arm64asm.FCMLE: true, arm64asm.FCMLT: true,
}

// target is the address of an operand.
func target(inst *arm64asm.Inst, pc uint64, distance int64) uint64 {
	if inst.Op == arm64asm.ADRP {
		pc &^= 1<<12 - 1
	}
	return pc + uint64(distance) //nolint:gosec // modular
}

// withBlanks puts a blank behind every comma. The disassembler writes none between the
// operands of an address.
func withBlanks(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, ", ", ","), ",", ", ")
}
