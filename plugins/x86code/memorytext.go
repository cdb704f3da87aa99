// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/arch/x86/x86asm"
)

// This file writes operands in memory. The disassembler takes displacements of 32 bits for
// positive, leaves out an address of 0, takes bytes of VEX and EVEX for prefixes of segments,
// and forgets that such an instruction addresses memory relative to RIP.

// syntheticDisp is the displacement of an operand that replaces the one in memory, and is
// then found in the text.
const syntheticDisp = 0x7ddc0de5eed1

var syntheticText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(fmt.Sprintf("((?:%%[c-gs]s:)*)%#x", syntheticDisp)) })

// replaceMemory replaces an instruction's operand in memory by a synthetic one, and
// returns a function that puts the text of the right one into the instruction's.
func (e *encoding) replaceMemory(is64 bool, code []byte, inst *x86asm.Inst) (restore func(text string) string) {
	asIs := func(text string) string { return text }
	if (!e.hasModRM || e.modRM>>6 == 3) && !e.isAbsoluteMove() {
		return asIs
	}
	for i, arg := range inst.Args {
		m, ok := arg.(x86asm.Mem)
		switch {
		case !ok:
			continue
		case m.Disp == int64(uint32(m.Disp)): //nolint:gosec // only the bits count
			m.Disp = int64(int32(m.Disp)) //nolint:gosec // likewise
		}
		if m.Index >= x86asm.X0 { // a vector of indices
			inst.Args[i] = m
			return asIs
		}
		operand := e.memoryText(is64, &m)
		inst.Args[i] = x86asm.Mem{Segment: m.Segment, Disp: syntheticDisp}
		return func(text string) string {
			return syntheticText().ReplaceAllStringFunc(text, func(found string) string {
				segment, _, _ := strings.Cut(found, "0x")
				if e.kind != legacy {
					segment = segmentText(code)
				}
				return segment + operand
			})
		}
	}
	return asIs
}

// isAbsoluteMove reports whether the instruction moves al or eax to or from an address that
// it has whole.
func (e *encoding) isAbsoluteMove() bool {
	return e.kind == legacy && e.opcodeMap == mapOneByte && e.opcode&^3 == opMovAbsolute
}

// memoryText is an operand in memory without its segment.
func (e *encoding) memoryText(is64 bool, m *x86asm.Mem) string {
	base, mode := m.Base, e.modRM>>6
	isRelative := e.hasModRM && mode == 0 && e.modRM&7 == 5 && is64
	if isRelative && base == 0 {
		base = x86asm.RIP
		if e.address == 32 {
			base = x86asm.EIP
		}
	}
	isAbsolute := base == 0 && m.Index == 0
	text := ""
	switch {
	case isAbsolute:
		return fmt.Sprintf("%#x", uint64(m.Disp)) //nolint:gosec // an address
	case m.Disp != 0 || mode != 0 || base == 0 || isRelative:
		text = fmt.Sprintf("%#x", m.Disp)
	}
	text += "("
	if base != 0 {
		text += addressRegister(base)
	}
	if m.Index != 0 {
		text += fmt.Sprintf(",%s,%d", addressRegister(m.Index), max(m.Scale, 1))
	}
	return text + ")"
}

// addressRegister is the name of a register that addresses memory.
func addressRegister(r x86asm.Reg) string {
	name := strings.ToLower(r.String())
	if short, ok := strings.CutSuffix(name, "l"); ok {
		name = short + "d" // r8d to r15d
	}
	return "%" + name
}

// segmentText is the prefix of a segment that counts in 64-bit mode.
func segmentText(code []byte) (text string) {
	for _, b := range code {
		switch {
		case !isPrefix[b]:
			return text
		case b == prefixFS:
			text = "%fs:"
		case b == prefixGS:
			text = "%gs:"
		}
	}
	return text
}
