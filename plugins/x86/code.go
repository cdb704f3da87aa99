// SPDX-License-Identifier: Apache-2.0

package x86

import (
	"encoding/binary"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/plugins/x86code"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// This file has the pieces of code that are known by their bytes.

// convention is the calling convention of the psABI, on Linux.
func convention() x86code.Convention {
	c := x86code.Convention32()
	c.Stubs, c.Signals, c.Kinds = stubs, signals(), functionKinds
	c.Syscall, c.Exits, c.Clones = bytesInterrupt, []int64{sysExit, sysExitGroup}, clones()
	return c
}

// The system calls of Linux.
const (
	sysExit        = 1
	sysSigreturn   = 119
	sysClone       = 120
	sysRtSigreturn = 173
	sysExitGroup   = 252
	sysClone3      = 435
)

// Whole instructions.
const (
	bytesInterrupt = "\xcd\x80" // int $0x80
	bytesPopEAX    = "\x58"
	bytesEndbr32   = "\xf3\x0f\x1e\xfb"
)

// movEAXImm is the instruction that loads a number into eax.
func movEAXImm(n uint32) string { return "\xb8" + string(binary.LittleEndian.AppendUint32(nil, n)) }

// functionKinds has the functions at which a stack differs from its call frame
// information, by symbol. The kernel and dynamic linkers begin at functions that nothing
// calls.
var functionKinds = codeflow.FunctionKinds{
	"_start":         sdk.OutermostFunction,
	"_dl_start_user": sdk.OutermostFunction,
	// glibc's makecontext has functions return there. Its row has a return address.
	"__start_context": sdk.OutermostFunction,
}

// clones are the system calls that make threads. clone is given the new stack in ecx; as
// fork it gets none, and the stack is a copy of the old one. The result of clone3 is 0.
func clones() []x86code.Clone {
	return []x86code.Clone{
		{Code: movEAXImm(sysClone) + bytesInterrupt, IsParent: x86code.RegisterText(esp, 0) + "; " + x86code.RegisterText(ecx, 0) + "; minus"},
		{Code: movEAXImm(sysClone3) + bytesInterrupt, IsParent: x86code.RegisterText(eax, 0)},
	}
}

// sigcontext are the offsets in struct sigcontext at which the kernel keeps the registers of
// the interrupted code (arch/x86/include/uapi/asm/sigcontext.h of Linux).
var sigcontext = []codeflow.SavedRegister{
	{Register: eax, Offset: 44}, {Register: ecx, Offset: 40}, {Register: edx, Offset: 36}, {Register: ebx, Offset: 32},
	{Register: esp, Offset: 28}, {Register: ebp, Offset: 24}, {Register: esi, Offset: 20}, {Register: edi, Offset: 16},
	{Register: eip, Offset: 56}, {Register: eflags, Offset: 64},
}

// The places of the sigcontext, and of a siginfo, above the stack pointer of the code that
// a handler returns to (struct sigframe_ia32 and rt_sigframe_ia32 of
// arch/x86/include/asm/sigframe.h): the number of the signal lies there, in a handler's
// frame of the newer kind two pointers more, the siginfo of 128 bytes and the ucontext,
// whose sigcontext is at 20.
const (
	oldContext = 4
	infoPlace  = 12
	rtContext  = infoPlace + 128 + 20
)

// signals are the code that signal handlers return to, in the vDSO and in C libraries.
func signals() []x86code.SignalCode {
	row := func(distance int64) func() cfi.Row {
		return sync.OnceValue(func() cfi.Row {
			saved := make([]codeflow.SavedRegister, len(sigcontext))
			for i, r := range sigcontext {
				saved[i] = codeflow.SavedRegister{Register: r.Register, Offset: r.Offset + distance}
			}
			return codeflow.SignalRow(esp, eip, saved)
		})
	}
	return []x86code.SignalCode{
		{{Code: bytesPopEAX, Row: row(oldContext)}, {Code: movEAXImm(sysSigreturn) + bytesInterrupt, Row: row(0)}},
		{{Code: movEAXImm(sysRtSigreturn) + bytesInterrupt, Row: row(rtContext)}},
	}
}

// signalFrame has the places where the kernel keeps the reason for a handler's call, in a
// frame with a siginfo. The numbers are the vectors of the processor's exceptions (Intel SDM
// volume 3, 6.15), the signals come from arch/x86/kernel/traps.c. A page fault may be a
// SIGBUS too, which the siginfo shows.
func signalFrame() *sdk.SignalFrame {
	const sigill, sigtrap, sigbus, sigfpe, sigsegv = 4, 5, 7, 8, 11
	return &sdk.SignalFrame{Info: infoPlace, PC: rtContext + 56, Address: rtContext + 84, Trap: rtContext + 48, Traps: []sdk.Trap{
		{Number: 0, Signal: sigfpe}, {Number: 1, Signal: sigtrap}, {Number: 3, Signal: sigtrap}, {Number: 4, Signal: sigsegv},
		{Number: 5, Signal: sigsegv}, {Number: 6, Signal: sigill}, {Number: 11, Signal: sigbus}, {Number: 12, Signal: sigbus},
		{Number: 13, Signal: sigsegv}, {Number: 14, Signal: sigsegv, HasAddress: true},
		{Number: 16, Signal: sigfpe}, {Number: 17, Signal: sigbus}, {Number: 19, Signal: sigfpe},
	}}
}

var (
	endbr   = x86code.StubInstruction{Bytes: bytesEndbr32}
	pushImm = x86code.StubInstruction{Bytes: "\x68", Any: 4, Pushes: true}
	jump    = x86code.StubInstruction{Bytes: "\xe9", Any: 4}

	pushAbs = x86code.StubInstruction{Bytes: "\xff\x35", Any: 4, Pushes: true} // pushl disp32
	jumpAbs = x86code.StubInstruction{Bytes: "\xff\x25", Any: 4}               // jmp *disp32
	// Of code that is independent of its place, by the global offset table at ebx.
	pushGOT      = x86code.StubInstruction{Bytes: "\xff\xb3", Any: 4, Pushes: true} // pushl disp32(%ebx)
	jumpGOT      = x86code.StubInstruction{Bytes: "\xff\xa3", Any: 4}               // jmp *disp32(%ebx)
	pushShortGOT = x86code.StubInstruction{Bytes: "\xff\x73\x04", Pushes: true}     // pushl 4(%ebx)
	jumpShortGOT = x86code.StubInstruction{Bytes: "\xff\x63\x08"}                   // jmp *8(%ebx)
)

// The entries that linkers write (psABI 5.2; the variants for IBT of GNU ld and lld). The
// index is pushed before the first entry is entered.
var stubs = []x86code.Stub{
	{CFA: 8, Code: []x86code.StubInstruction{pushAbs, jumpAbs}, Header: true},
	{CFA: 8, Code: []x86code.StubInstruction{pushGOT, jumpGOT}, Header: true},
	{CFA: 8, Code: []x86code.StubInstruction{pushShortGOT, jumpShortGOT}},
	{CFA: 4, Code: []x86code.StubInstruction{jumpAbs, pushImm, jump}},
	{CFA: 4, Code: []x86code.StubInstruction{jumpGOT, pushImm, jump}},
	{CFA: 4, Code: []x86code.StubInstruction{endbr, pushImm, jump}},
	{CFA: 4, Code: []x86code.StubInstruction{endbr, jumpAbs}},
	{CFA: 4, Code: []x86code.StubInstruction{endbr, jumpGOT}},
	{CFA: 4, Code: []x86code.StubInstruction{jumpAbs}},
	{CFA: 4, Code: []x86code.StubInstruction{jumpGOT}},
}
