// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"encoding/binary"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// sysRtSigreturn is the system call by which a signal handler returns on Linux.
const sysRtSigreturn = 15

// trampolines are the code that a signal handler returns to.
var trampolines = []x86code.SignalCode{
	{{Code: movRAXImm(sysRtSigreturn) + bytesSyscall, Row: signalRow}},
	{{Code: movEAXImm(sysRtSigreturn) + bytesSyscall, Row: signalRow}},
}

const bytesSyscall = "\x0f\x05"

// movRAXImm and movEAXImm are the instructions that load a number into rax.
func movRAXImm(n uint32) string { return "\x48\xc7\xc0" + imm32(n) }
func movEAXImm(n uint32) string { return "\xb8" + imm32(n) }

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
