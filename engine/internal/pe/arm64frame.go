// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/internal/leb128"
)

// An arm64Place is a distance above an origin, sp or x29: bytes, and eighths of the length of a vector
// of SVE, which are as many as register vg counts.
type arm64Place struct{ bytes, scaled int64 }

func (p arm64Place) plus(c *ARM64Code, sign int64) arm64Place {
	if c.Scale != 0 {
		p.scaled += sign * int64(c.Scale) * int64(c.Value)
	} else {
		p.bytes += sign * int64(c.Value)
	}
	return p
}

// An arm64Frame is the result of undoing unwind codes of arm64.
type arm64Frame struct {
	origin   uint8 // sp or x29
	depth    arm64Place
	saved    []arm64Saved
	isSigned bool
	// pushed is the operation that has all registers of the interrupted code above; where the row's
	// caller was interrupted but nothing is stored, ARM64ClearUnwoundToCall; ARM64End where it was not.
	pushed ARM64Operation
}

type arm64Saved struct {
	register uint8
	place    arm64Place
}

// undo undoes codes. The first instructions, skip of them, were not executed, or an epilogue undid them.
func (fr *arm64Frame) undo(codes []ARM64Code, skip int) {
	*fr = arm64Frame{origin: arm64SP, saved: fr.saved[:0], pushed: ARM64End}
	for i := range codes {
		c := &codes[i]
		if skip > 0 {
			if c.IsInstruction() {
				skip--
			}
			continue
		}
		switch arm64Operations[c.Operation].kind {
		case allocates:
			fr.depth = fr.depth.plus(c, 1)
		case saves:
			fr.save(c)
		case setsFrame:
			fr.rebase(c)
		case signs:
			fr.isSigned = true
		case pushes:
			if fr.pushed = c.Operation; c.Operation != ARM64ClearUnwoundToCall {
				return
			}
		}
	}
}

// save records where registers were saved. Of several places the first one written counts, as it has
// the caller's value.
func (fr *arm64Frame) save(c *ARM64Code) {
	place := fr.depth
	if !c.IsPre {
		place = place.plus(c, 1)
	}
	for _, r := range c.Registers[:c.Count] {
		s := arm64Saved{r, place}
		place.bytes += int64(c.Size)
		if i := slices.IndexFunc(fr.saved, func(s arm64Saved) bool { return s.register == r }); i >= 0 {
			fr.saved[i] = s
		} else {
			fr.saved = append(fr.saved, s)
		}
	}
	if c.IsPre {
		fr.depth = fr.depth.plus(c, 1)
	}
}

// rebase makes x29 the origin, which was set to sp and a number of bytes. Codes that were undone
// before came later in the prologue: their places lie below.
func (fr *arm64Frame) rebase(c *ARM64Code) {
	if fr.origin == arm64SP {
		for i := range fr.saved {
			p := &fr.saved[i].place
			p.bytes, p.scaled = p.bytes-fr.depth.bytes-int64(c.Value), p.scaled-fr.depth.scaled
		}
	}
	fr.origin, fr.depth = arm64FP, arm64Place{bytes: -int64(c.Value)}
}

// An arm64Block is memory with all registers of interrupted code.
type arm64Block struct {
	size      int64            // the CFA is its end
	registers map[uint64]int64 // offsets by register
}

// arm64Blocks are memory that the system, and dispatchers of exceptions, leave on a stack (winnt.h:
// ARM64_NT_CONTEXT, ARM64EC_NT_CONTEXT, which has the registers of arm64 in the places of x86-64's;
// ntddk.h: KTRAP_FRAME of arm64).
var arm64Blocks = map[ARM64Operation]arm64Block{
	ARM64TrapFrame:    {0x150, joined(numbers(0, 19, 0xa0, 8), map[uint64]int64{arm64LR: 0x138, arm64FP: 0x140, arm64SP: 0x98, arm64PC: 0x148})},
	ARM64MachineFrame: {16, map[uint64]int64{arm64SP: 0, arm64PC: 8}},
	ARM64Context:      {912, joined(numbers(0, 33, 8, 8), numbers(arm64V0, 32, 272, 16))},
	ARM64ECContext: {1232, joined(numbers(arm64V0, 16, 0x1a0, 16), map[uint64]int64{
		8: 0x78, 0: 0x80, 1: 0x88, 27: 0x90, arm64SP: 0x98, arm64FP: 0xa0, 25: 0xa8, 26: 0xb0, 2: 0xb8, 3: 0xc0, 4: 0xc8, 5: 0xd0,
		19: 0xd8, 20: 0xe0, 21: 0xe8, 22: 0xf0, arm64PC: 0xf8, arm64LR: 0x120, 6: 0x130, 7: 0x140, 9: 0x150, 10: 0x160, 11: 0x170, 12: 0x180, 15: 0x190,
	})},
}

// numbers are the offsets of registers that follow one another.
func numbers(first uint64, count int, offset, size int64) map[uint64]int64 {
	m := make(map[uint64]int64, count)
	for i := range count {
		m[first+uint64(i)] = offset + size*int64(i)
	}
	return m
}

func joined(a, b map[uint64]int64) map[uint64]int64 {
	for r, offset := range b {
		a[r] = offset
	}
	return a
}

// row fills in the CFA and the rules. The CFA is the stack pointer of the caller, and where all
// registers are stored the end of their memory, above which the stack of the interrupted code need
// not be.
func (fr *arm64Frame) row(r *cfi.Row) {
	block := arm64Blocks[fr.pushed]
	cfa := fr.depth
	cfa.bytes += block.size
	r.Rules, r.CallSite = r.Rules[:0], r.CallSite[:0]
	r.SignalFrame, r.WindowSave = fr.pushed != ARM64End, fr.isSigned
	r.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(fr.origin), Offset: cfa.bytes}
	if cfa.scaled != 0 {
		r.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: scaledExpression(leb128.AppendSigned([]byte{opBreg0 + fr.origin}, cfa.bytes), cfa.scaled)}
	}
	for _, s := range fr.saved {
		if _, isStored := block.registers[uint64(s.register)]; !isStored {
			r.Rules = append(r.Rules, s.rule(cfa))
		}
	}
	r.ReturnAddress = arm64LR
	for register, offset := range block.registers {
		r.ReturnAddress = arm64PC
		r.Rules = append(r.Rules, offsetRule(register, offset-block.size))
	}
	slices.SortFunc(r.Rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
}

// rule is the rule of a saved register. Of SVE's vectors functions preserve the low halves, too, which
// the registers of the other floating-point instructions have.
func (s *arm64Saved) rule(cfa arm64Place) cfi.RegisterRule {
	column := uint64(s.register)
	if column >= arm64Z0 {
		column -= arm64Z0 - arm64V0
	}
	bytes, scaled := s.place.bytes-cfa.bytes, s.place.scaled-cfa.scaled
	if scaled == 0 {
		return offsetRule(column, bytes)
	}
	return cfi.RegisterRule{Column: column, Rule: cfi.Rule{Kind: cfi.Expression, Expr: scaledExpression(leb128.AppendSigned([]byte{opConsts}, bytes), scaled, opPlus)}}
}

// Operations of DWARF expressions (DWARF 5, 2.5.1).
const (
	opConsts = 0x11
	opMul    = 0x1e
	opPlus   = 0x22
	opBreg0  = 0x70
	opBregx  = 0x92
)

// scaledExpression appends to an expression the addition of a number times vg; further operations
// come between.
func scaledExpression(expr []byte, scaled int64, between ...byte) []byte {
	expr = append(expr, between...)
	expr = append(expr, opBregx, arm64VG, 0, opConsts)
	return append(leb128.AppendSigned(expr, scaled), opMul, opPlus)
}
