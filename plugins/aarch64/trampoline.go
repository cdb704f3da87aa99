// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"strings"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// trampoline is the code that a signal handler returns to on Linux: mov x8, #139; svc #0
// (rt_sigreturn).
const trampoline = "\x68\x11\x80\xd2\x01\x00\x00\xd4"

// sigcontextRegisters is where the kernel keeps x0, from sp: struct rt_sigframe has a
// siginfo of 128 bytes and a ucontext, whose mcontext is at 176 and begins with the
// fault's address (arch/arm64/include/uapi/asm/sigcontext.h and ucontext.h). x1 to
// x30, sp, pc and pstate follow.
const sigcontextRegisters = 128 + 176 + 8

// signalFrame says where the kernel keeps why it called a handler. Behind pstate come records
// from the next multiple of 16 bytes on, of which esr_context has ESR_EL1; its upper bits are
// the class of the exception (Arm Architecture Reference Manual for A-profile, D24.2.40), of
// which arch/arm64/kernel/entry-common.c makes signals.
func signalFrame() *sdk.SignalFrame {
	const (
		sigill, sigtrap, sigbus, sigfpe, sigsegv = 4, 5, 7, 8, 11

		esrMagic = 0x45535201
		class    = 26
	)
	return &sdk.SignalFrame{
		PC: sigcontextRegisters + 8*pc, Address: sigcontextRegisters - 8, Trap: 128 + 176 + 288, TrapRecord: esrMagic, TrapShift: class,
		Traps: []sdk.Trap{
			{Number: 0x00, Signal: sigill}, {Number: 0x0e, Signal: sigill}, {Number: 0x20, Signal: sigsegv, HasAddress: true},
			{Number: 0x22, Signal: sigbus, HasAddress: true}, {Number: 0x24, Signal: sigsegv, HasAddress: true}, {Number: 0x26, Signal: sigbus}, {Number: 0x2c, Signal: sigfpe}, {Number: 0x30, Signal: sigtrap},
			{Number: 0x32, Signal: sigtrap}, {Number: 0x34, Signal: sigtrap}, {Number: 0x3c, Signal: sigtrap},
		},
	}
}

// trampolineRow is the row of a signal trampoline that holds an offset of the code, or
// begins right after it: where PC is not exact it is the byte before the trampoline,
// which is a handler's return address though nothing called.
func trampolineRow(r *sdk.CodeRange, offset int) (row cfi.Row, ok bool) {
	first := max(0, offset-len(trampoline)+1)
	i := strings.Index(string(r.Code[first:min(len(r.Code), offset+1+len(trampoline))]), trampoline)
	if i < 0 || (r.Start+uint64(first+i))%instructionSize != 0 || first+i > offset && r.Exact {
		return row, false
	}
	row = signalRow()
	row.Start = r.Start + uint64(min(first+i, offset))
	row.End = r.Start + uint64(first+i+len(trampoline))
	return row, true
}

// signalRow finds every register in the signal's frame: x0 to x30, sp and pc. The caller's pc is
// the one that the signal interrupted, which is why the return address is pc.
var signalRow = sync.OnceValue(func() cfi.Row {
	var saved []codeflow.SavedRegister
	for r := x0; r <= pc; r++ {
		saved = append(saved, codeflow.SavedRegister{Register: r, Offset: sigcontextRegisters + 8*int64(r)})
	}
	return codeflow.SignalRow(sp, pc, saved)
})
