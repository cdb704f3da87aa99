// SPDX-License-Identifier: Apache-2.0

// Package mach names the exceptions of Mach, the kernel of macOS and iOS, as the crash reports of these do.
package mach

// Exception is the number of an exception (osfmk/mach/exception_types.h).
type Exception uint32

// Exceptions that readers tell apart.
const (
	BadAccess      Exception = 1
	BadInstruction Exception = 2
	Breakpoint     Exception = 6
	Crash          Exception = 10
	Resource       Exception = 11
	Guard          Exception = 12
	Simulated      Exception = 0x43507378 // Crashpad: CPsx
)

// Codes that readers tell apart.
const (
	InvalidAddress    = 1     // of BadAccess
	ProtectionFailure = 2     // of BadAccess
	GeneralProtection = 13    // of BadAccess, on x86
	UndefinedX86      = 1     // of BadInstruction
	UndefinedARM      = 1     // of BadInstruction
	TrapX86           = 2     // of Breakpoint
	TrapARM           = 1     // of Breakpoint
	MisalignedARM     = 0x101 // of BadAccess
)

// names has the name of an exception, and of its codes, on all processors and on single ones.
type names struct {
	name  string
	codes map[uint64]string
	x86   map[uint64]string
	arm   map[uint64]string
}

var exceptions = map[Exception]names{
	BadAccess: {name: "EXC_BAD_ACCESS", // codes are kern_return_t (osfmk/mach/kern_return.h)
		codes: map[uint64]string{
			1: "KERN_INVALID_ADDRESS", 2: "KERN_PROTECTION_FAILURE", 3: "KERN_NO_SPACE", 4: "KERN_INVALID_ARGUMENT", 5: "KERN_FAILURE",
			8: "KERN_NO_ACCESS", 9: "KERN_MEMORY_FAILURE", 10: "KERN_MEMORY_ERROR", 50: "KERN_CODESIGN_ERROR",
		},
		x86: map[uint64]string{GeneralProtection: "EXC_I386_GPFLT"},
		arm: map[uint64]string{
			0x101: "EXC_ARM_DA_ALIGN", 0x102: "EXC_ARM_DA_DEBUG", 0x103: "EXC_ARM_SP_ALIGN", 0x104: "EXC_ARM_SWP", 0x105: "EXC_ARM_PAC_FAIL",
		}},
	BadInstruction: {name: "EXC_BAD_INSTRUCTION",
		x86: map[uint64]string{
			1: "EXC_I386_INVOP", 10: "EXC_I386_INVTSSFLT", 11: "EXC_I386_SEGNPFLT", 12: "EXC_I386_STKFLT", 13: "EXC_I386_GPFLT",
			17: "EXC_I386_ALIGNFLT",
		},
		arm: map[uint64]string{1: "EXC_ARM_UNDEFINED"}},
	3: {name: "EXC_ARITHMETIC",
		x86: map[uint64]string{
			1: "EXC_I386_DIV", 2: "EXC_I386_INTO", 3: "EXC_I386_NOEXT", 4: "EXC_I386_EXTOVR", 5: "EXC_I386_EXTERR", 6: "EXC_I386_EMERR",
			7: "EXC_I386_BOUND", 8: "EXC_I386_SSEEXTERR",
		},
		arm: map[uint64]string{
			0: "EXC_ARM_FP_UNDEFINED", 1: "EXC_ARM_FP_IO", 2: "EXC_ARM_FP_DZ", 3: "EXC_ARM_FP_OF", 4: "EXC_ARM_FP_UF",
			5: "EXC_ARM_FP_IX", 6: "EXC_ARM_FP_ID",
		}},
	4: {name: "EXC_EMULATION"},
	5: {name: "EXC_SOFTWARE",
		codes: map[uint64]string{
			0x10000: "EXC_UNIX_BAD_SYSCALL", 0x10001: "EXC_UNIX_BAD_PIPE", 0x10002: "EXC_UNIX_ABORT", 0x10003: "EXC_SOFT_SIGNAL",
			0xdeadc0de: "NSException",
		}},
	Breakpoint: {name: "EXC_BREAKPOINT",
		x86: map[uint64]string{1: "EXC_I386_SGL", 2: "EXC_I386_BPT"},
		arm: map[uint64]string{1: "EXC_ARM_BREAKPOINT"}},
	7:          {name: "EXC_SYSCALL"},
	8:          {name: "EXC_MACH_SYSCALL"},
	9:          {name: "EXC_RPC_ALERT"},
	Crash:      {name: "EXC_CRASH"},
	Resource:   {name: "EXC_RESOURCE"},
	Guard:      {name: "EXC_GUARD"},
	13:         {name: "EXC_CORPSE_NOTIFY"},
	Simulated:  {name: "Crashpad's simulated exception"},
	0x43506e78: {name: "NSException"}, // Crashpad: CPnx
}

// signals are the signals that end a process (bsd/sys/signal.h), which are in the code of Crash.
var signals = map[uint64]string{
	3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGEMT", 8: "SIGFPE", 9: "SIGKILL", 10: "SIGBUS", 11: "SIGSEGV", 12: "SIGSYS",
	13: "SIGPIPE", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ",
}

// Kinds of Resource (osfmk/kern/exc_resource.h) and of Guard (osfmk/kern/exc_guard.h), whose number is in the
// code from bit 61 on.
var (
	resources = []string{"", "CPU", "WAKEUPS", "MEMORY", "IO", "THREADS", "PORTS"}
	guards    = []string{"NONE", "MACH_PORT", "FD", "USER", "VN", "VIRT_MEMORY", "REJECTED_SC"}
)

// Named returns the exception of a name, as EXC_BAD_ACCESS.
func Named(name string) (e Exception, ok bool) {
	for number, n := range exceptions {
		if n.name == name {
			return number, true
		}
	}
	return 0, false
}

// Name returns the name of an exception; "" for an unknown number.
func (e Exception) Name() string { return exceptions[e].name }

// CodeName returns the name of the first code of an exception on an architecture; "" where it has none.
func (e Exception) CodeName(arch string, code uint64) string {
	switch e {
	case Resource:
		return kindName("RESOURCE_TYPE_", resources, code)
	case Guard:
		return kindName("GUARD_TYPE_", guards, code)
	}
	n := exceptions[e]
	own := map[string]map[uint64]string{"x86_64": n.x86, "i386": n.x86, "arm": n.arm, "aarch64": n.arm}[arch]
	if name, ok := own[code]; ok {
		return name
	}
	return n.codes[code]
}

// SignalOf reads the code of Crash (bsd/sys/wait.h and osfmk/kern/exc_resource.h): the signal from bit 24 on, and
// from bit 20 on the exception that caused it.
func SignalOf(code uint64) string {
	name := signals[code>>24&0xff]
	if first := Exception(code >> 20 & 0xf).Name(); first != "" && name != "" {
		name += ", of " + first
	}
	return name
}

// kindName returns the name of the kind in a code of 64 bits, or in its upper half.
func kindName(prefix string, names []string, code uint64) string {
	kind := code >> 61
	if code <= 0xffffffff {
		kind = code >> 29
	}
	if kind < uint64(len(names)) && names[kind] != "" {
		return prefix + names[kind]
	}
	return ""
}
