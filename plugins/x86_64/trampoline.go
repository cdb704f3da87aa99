// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// sysRtSigreturn is the system call by which a signal handler returns on Linux.
const sysRtSigreturn = 15

// trampolines are the code that a signal handler returns to.
var trampolines = []string{
	movRAXImm(sysRtSigreturn) + bytesSyscall,
	movEAXImm(sysRtSigreturn) + bytesSyscall,
}

// movRAXImm and movEAXImm are the instructions that load a number into rax.
func movRAXImm(n uint32) string { return bytesMovRAX + imm32(n) }
func movEAXImm(n uint32) string { return bytesMovEAX + imm32(n) }

func imm32(n uint32) string { return string(binary.LittleEndian.AppendUint32(nil, n)) }

// sigcontext are the offsets from the ucontext at which the kernel keeps the registers of
// the interrupted code: uc_mcontext begins at 40 (arch/x86/include/uapi/asm/sigcontext.h
// and ucontext.h of Linux).
var sigcontext = []codeflow.SavedRegister{
	{Register: rax, Offset: 144}, {Register: rdx, Offset: 136}, {Register: rcx, Offset: 152}, {Register: rbx, Offset: 128},
	{Register: rsi, Offset: 112}, {Register: rdi, Offset: 104}, {Register: rbp, Offset: 120}, {Register: rsp, Offset: 160},
	{Register: r8, Offset: 40}, {Register: r9, Offset: 48}, {Register: r10, Offset: 56}, {Register: r11, Offset: 64},
	{Register: r12, Offset: 72}, {Register: r13, Offset: 80}, {Register: r14, Offset: 88}, {Register: r15, Offset: 96},
	{Register: rip, Offset: 168}, {Register: rflags, Offset: 176},
}

// signalRow is the row of a trampoline, in which the stack pointer is at the ucontext.
var signalRow = sync.OnceValue(func() cfi.Row { return codeflow.SignalRow(rsp, rip, sigcontext) })

// signalFrame has the places where the kernel keeps the reason for a handler's call:
// trapno and cr2 are in the sigcontext, which begins at 40, and the siginfo follows the
// ucontext (arch/x86/include/asm/sigframe.h of Linux). The numbers are the vectors of the
// processor's exceptions (Intel SDM volume 3, 6.15), the signals come from
// arch/x86/kernel/traps.c. A page fault may be a SIGBUS too, which the siginfo shows.
func signalFrame() *sdk.SignalFrame {
	const sigill, sigtrap, sigbus, sigfpe, sigsegv = 4, 5, 7, 8, 11
	return &sdk.SignalFrame{Info: 304, PC: 40 + 128, Address: 40 + 176, Trap: 40 + 160, Traps: []sdk.Trap{
		{Number: 0, Signal: sigfpe}, {Number: 1, Signal: sigtrap}, {Number: 3, Signal: sigtrap}, {Number: 4, Signal: sigsegv},
		{Number: 5, Signal: sigsegv}, {Number: 6, Signal: sigill}, {Number: 11, Signal: sigbus}, {Number: 12, Signal: sigbus},
		{Number: 13, Signal: sigsegv}, {Number: 14, Signal: sigsegv, HasAddress: true},
		{Number: 16, Signal: sigfpe}, {Number: 17, Signal: sigbus}, {Number: 19, Signal: sigfpe},
	}}
}

// trampolineRows returns the row of a signal trampoline at or right after an
// offset of the code. The handler has popped the trampoline's address, so the
// stack pointer is at the ucontext.
//
// The address of a trampoline is a handler's return address, though nothing called: where
// PC is not exact it is the byte before the trampoline, and the row then begins there, as
// in C libraries. A thread that is in the kernel, in the system call, stands after its
// last byte, in the padding before the next function.
func trampolineRows(r *sdk.CodeRange, offset int) []cfi.Row {
	start, first, length := -1, offset, 0
	for _, code := range trampolines {
		for i := max(0, offset-len(code)); i <= offset; i++ {
			if hasPrefix(r.Code[i:], code) && (i+len(code) > offset || r.Exact && isFill(r.Code[offset:])) {
				start, first, length = i, i, len(code)
			}
		}
		if start < 0 && !r.Exact && hasPrefix(r.Code[offset+1:], code) && resumeAfter(r.Code[:offset+1], offset) < 0 {
			start, first, length = offset+1, offset, len(code)
		}
	}
	if start < 0 {
		return nil
	}
	end := start + length
	if r.Exact && isFill(r.Code[end:]) {
		end++
	}
	row := signalRow()
	row.Start, row.End = r.Start+uint64(first), r.Start+uint64(end)
	return []cfi.Row{row}
}

// fills are the bytes that assemblers and linkers put between functions: nop in its
// variants, int3, and int $3, which Go's assembler writes.
var fills = []string{bytesNop, bytesNop2, bytesNopl, bytesNopw, bytesCsNopw, bytesDataCs, bytesInt3, bytesIntImm}

func isFill(code []byte) bool {
	return slices.ContainsFunc(fills, func(fill string) bool { return hasPrefix(code, fill) })
}
