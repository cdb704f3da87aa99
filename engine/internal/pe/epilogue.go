// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"github.com/unwindd/unwindd/cfi"
)

// An epilogue is code that takes a frame down: an instruction that frees the allocated stack, pops,
// and a return or a jump to another function ("x64 exception handling", Unwind procedure and Epilog
// code). The unwind codes do not apply in it.
type epilogue struct {
	adjustment int   // length of the instruction that frees; 0 where there is none
	register   uint8 // that it computes rsp from
	freed      int64 // the bytes that it adds to that
	pops       []pop // in the order of the code
	end        int   // offset of the end of the last instruction
	last       int   // offset of the last instruction
	isReturn   bool  // it ends in a return, else in a jump
}

type pop struct {
	offset   int // offset of the instruction
	register uint8
}

// maxPops is the number of registers that can be popped.
const maxPops = 16

// read reads an epilogue at an offset of code, whose first instruction is known. It is
// false where there is none.
func (e *epilogue) read(code []byte, offset int, inst x86asm.Inst) bool {
	*e = epilogue{pops: e.pops[:0]}
	ok := true
	if register, freed, is := frees(inst); is {
		e.adjustment, e.register, e.freed = inst.Len, register, freed
		offset += inst.Len
		inst, ok = instruction(code[offset:])
	}
	for ok && inst.Op == x86asm.POP {
		r, is := register64(inst.Args[0])
		if !is || r == rsp || len(e.pops) == maxPops {
			return false
		}
		e.pops = append(e.pops, pop{offset, r})
		offset += inst.Len
		inst, ok = instruction(code[offset:])
	}
	if !ok || inst.Op != x86asm.RET && inst.Op != x86asm.JMP {
		return false
	}
	e.isReturn = inst.Op == x86asm.RET
	e.last, e.end = offset, offset+inst.Len
	return true
}

// begins reports whether an instruction can be the first of an epilogue.
func begins(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.ADD, x86asm.LEA, x86asm.POP, x86asm.RET, x86asm.JMP:
		return true
	}
	return false
}

// frees reports whether an instruction adds to rsp, or sets rsp to a register and an offset.
func frees(inst x86asm.Inst) (register uint8, n int64, ok bool) {
	if r, is := register64(inst.Args[0]); !is || r != rsp {
		return 0, 0, false
	}
	switch a := inst.Args[1].(type) {
	case x86asm.Imm:
		return rsp, int64(a), inst.Op == x86asm.ADD
	case x86asm.Mem:
		r, is := register64(a.Base)
		return r, a.Disp, is && inst.Op == x86asm.LEA && a.Index == 0 && a.Segment == 0
	}
	return 0, 0, false
}

func register64(a x86asm.Arg) (uint8, bool) {
	r, ok := a.(x86asm.Reg)
	if !ok || r < x86asm.RAX || r > x86asm.R15 {
		return 0, false
	}
	return uint8(r - x86asm.RAX), true
}

// takesDown reports whether the epilogue takes down a frame. One with a return does, whatever came
// before: the return address is where the pops leave rsp. A jump need not leave the function, nor
// does a jump to another range of the function, which compilers split, take its frame down: so it
// must free the whole frame.
func (e *epilogue) takesDown(fr *frame) bool {
	if e.isReturn {
		return true
	}
	popped := int64(8 * len(e.pops))
	switch {
	case e.adjustment != 0 && e.register != fr.register:
	case fr.register == rsp && e.freed+popped == fr.depth:
		return true
	case fr.register != rsp && e.adjustment != 0 && e.freed+fr.offset+popped == fr.depth:
		return true
	}
	return len(e.pops) != 0 && slices.EqualFunc(e.pops, fr.pushed, func(p pop, r uint8) bool { return p.register == r })
}

// start is the offset of the first instruction whose row differs from the body's.
func (e *epilogue) start() int {
	if len(e.pops) != 0 {
		return e.pops[0].offset
	}
	return e.last
}

// rows calls f with the rows of the epilogue: at each pop, for the registers still on the stack.
// Registers that were popped have the values of the caller.
func (e *epilogue) rows(row *cfi.Row, f func(start, end int) bool) bool {
	var fr frame
	for i := range len(e.pops) + 1 {
		fr.reset()
		for _, p := range e.pops[i:] {
			fr.save(dwarfRegisters[p.register], fr.depth, false)
			fr.depth += 8
		}
		start, end := e.last, e.end
		if i < len(e.pops) {
			start, end = e.pops[i].offset, e.last
			if i+1 < len(e.pops) {
				end = e.pops[i+1].offset
			}
		}
		fr.row(row)
		if !f(start, end) {
			return false
		}
	}
	return true
}
