// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
)

// The interpreter of HotSpot, Java's virtual machine, is made at run time, of a piece of
// code for each bytecode. Its pieces jump to each other, so the code after a call leads
// to no return. But after calls it does two things that compiled code does not. Its frame
// (frame_x86.hpp of OpenJDK) has at rbp a frame record, and below it the stack pointer
// that the caller had: that is above the arguments, which the caller moved when it is
// compiled code.

const (
	// senderSP is the offset of the caller's stack pointer from rbp.
	senderSP = -8
	// maxRestore is the number of instructions behind a call within which the
	// interpreter's registers are restored.
	maxRestore = 64
	// maxNative is the number of instructions that are followed behind the call of a
	// native method.
	maxNative = 1 << 10
	// maxArguments is the farthest that a caller may have moved its stack pointer.
	maxArguments = 1 << 16
)

// interpreterRow is the row of a call in the interpreter.
func interpreterRow(r *sdk.CodeRange, offset int) (row cfi.Row, ok bool) {
	if r.Exact || r.Bounded {
		return row, false
	}
	// A bytecode that calls a method pushes an address to return to, which follows
	// no call.
	resume := offset + 1
	isCall := mode.CallBefore(r.Code[:resume]) >= sdk.AfterDirectCall
	if !mayLeadTo(r.Code, resume, maxRestore, isBytecodeRestore) && !(isCall && mayLeadTo(r.Code, resume, maxNative, isInterpreterExit)) {
		return row, false
	}
	row = cfi.Row{Start: r.Start + uint64(offset), End: r.Start + uint64(resume), ReturnAddress: uint64(rip),
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: uint64(rbp), Offset: 16}}
	// Java's code has all that it needs of its caller in the frame.
	for _, register := range calleeSaved {
		rule := cfi.Rule{Kind: cfi.Undefined}
		if register == rbp {
			rule = cfi.Rule{Kind: cfi.Offset, Offset: -16}
		}
		row.Rules = append(row.Rules, cfi.RegisterRule{Column: uint64(register), Rule: rule})
	}
	row.Rules = append(row.Rules,
		cfi.RegisterRule{Column: uint64(rsp), Rule: cfi.Rule{Kind: cfi.ValExpression, Expr: callerSP()}},
		cfi.RegisterRule{Column: uint64(rip), Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}})
	slices.SortFunc(row.Rules, func(a, b cfi.RegisterRule) int { return cmp.Compare(a.Column, b.Column) })
	return row, true
}

// callerSP is the expression for the stack pointer of the caller of an interpreted
// method: the frame's record of it, if that is at or above the CFA and near it; else the
// CFA.
var callerSP = sync.OnceValue(func() []byte {
	said, cfa := x86code.WordText(rbp, senderSP), x86code.RegisterText(rbp, 16)
	above := fmt.Sprintf("%s; %s; minus", said, cfa)
	// The stack has its distance above the CFA, and whether that is plausible.
	isNear := fmt.Sprintf("dup; constu %d; lt; over; lit0; ge; and", maxArguments)
	return x86code.Expression(above + "; " + isNear + "; bra 2; drop; lit0; " + cfa + "; plus")
})

// mayLeadTo reports whether code at an offset leads, within a number of instructions, to
// code that found accepts.
func mayLeadTo(code []byte, offset, most int, found func([]byte) bool) bool {
	seen := map[int]bool{}
	for waiting := []int{offset}; len(waiting) > 0 && len(seen) < most; {
		at := waiting[0]
		waiting = waiting[1:]
		if !isInside(at, code) || seen[at] {
			continue
		}
		seen[at] = true
		e, ok := mode.ReadEffect(code[at:])
		switch {
		case !ok || e.Kind == x86code.Return || e.Kind == x86code.Stop:
			continue
		case found(code[at:]):
			return true
		case e.IsDirect && e.Kind != x86code.Call:
			waiting = append(waiting, at+int(e.Target))
		}
		if e.Kind != x86code.Jump {
			waiting = append(waiting, at+int(e.Length))
		}
	}
	return false
}

// isBytecodeRestore reports whether code loads the position in the bytecode into r13 and
// the local variables into r14, from two words of the frame beside each other.
func isBytecodeRestore(code []byte) bool {
	position, rest, ok := nextEffect(code)
	if !ok || position.Kind != x86code.Load || position.Dst != x86code.R13 || position.Mem.Base != x86code.BP || position.Mem.Offset >= 0 {
		return false
	}
	locals, _, ok := nextEffect(rest)
	return ok && locals.Kind == x86code.Load && locals.Dst == x86code.R14 && locals.Mem.Base == x86code.BP && locals.Mem.Offset == position.Mem.Offset+8
}

// isInterpreterExit reports whether code takes down the frame of a method: it loads the
// caller's stack pointer, and jumps to the return address that it pops.
func isInterpreterExit(code []byte) bool {
	sp, rest, ok := nextEffect(code)
	if !ok || sp.Kind != x86code.Load || sp.Mem.Base != x86code.BP || sp.Mem.Offset != senderSP {
		return false
	}
	leave, rest, ok := nextEffect(rest)
	if !ok || leave.Kind != x86code.Leave {
		return false
	}
	back, rest, ok := nextEffect(rest)
	if !ok || back.Kind != x86code.Pop || back.Dst == x86code.None {
		return false
	}
	move, rest, ok := nextEffect(rest)
	if !ok || move.Kind != x86code.Move || move.Dst != x86code.SP || move.Src != sp.Dst {
		return false
	}
	jump, _, ok := nextEffect(rest)
	return ok && jump.Kind == x86code.Jump && !jump.IsDirect && !jump.HasMem && jump.Dst == back.Dst
}

// nextEffect reads an instruction, and returns the code after it.
func nextEffect(code []byte) (e x86code.Effect, rest []byte, ok bool) {
	if e, ok = mode.ReadEffect(code); !ok {
		return e, nil, false
	}
	return e, code[e.Length:], true
}

func isInside(offset int, code []byte) bool { return offset >= 0 && offset < len(code) }
