// SPDX-License-Identifier: Apache-2.0

package target

import (
	"debug/elf"
	"fmt"
	"strings"
)

// The numbers of the signals of Linux differ between machines
// (arch/*/include/uapi/asm/signal.h).

// ownSignals are the numbers of signals that differ from x86's, by machine.
var ownSignals = map[elf.Machine]map[int]string{
	elf.EM_MIPS:        mipsSignals,
	elf.EM_MIPS_RS3_LE: mipsSignals,
	elf.EM_SPARC:       sparcSignals,
	elf.EM_SPARC32PLUS: sparcSignals,
	elf.EM_SPARCV9:     sparcSignals,
	elf.EM_ALPHA:       sparcSignals,
	elf.EM_ALPHA_STD:   sparcSignals,
	elf.EM_PARISC: {
		7: "SIGSTKFLT", 10: "SIGBUS", 12: "SIGXCPU", 16: "SIGUSR1", 17: "SIGUSR2", 18: "SIGCHLD", 19: "SIGPWR", 20: "SIGVTALRM",
		21: "SIGPROF", 22: "SIGIO", 23: "SIGWINCH", 24: "SIGSTOP", 25: "SIGTSTP", 26: "SIGCONT", 27: "SIGTTIN", 28: "SIGTTOU",
		29: "SIGURG", 30: "SIGXFSZ", 31: "SIGSYS",
	},
}

// commonSignals are the signals of x86 and of most machines.
var commonSignals = map[int]string{
	1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
	10: "SIGUSR1", 11: "SIGSEGV", 12: "SIGUSR2", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 16: "SIGSTKFLT", 17: "SIGCHLD",
	18: "SIGCONT", 19: "SIGSTOP", 20: "SIGTSTP", 21: "SIGTTIN", 22: "SIGTTOU", 23: "SIGURG", 24: "SIGXCPU", 25: "SIGXFSZ",
	26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH", 29: "SIGIO", 30: "SIGPWR", 31: "SIGSYS",
}

var mipsSignals = map[int]string{
	7: "SIGEMT", 10: "SIGBUS", 12: "SIGSYS", 16: "SIGUSR1", 17: "SIGUSR2", 18: "SIGCHLD", 19: "SIGPWR", 20: "SIGWINCH",
	21: "SIGURG", 22: "SIGIO", 23: "SIGSTOP", 24: "SIGTSTP", 25: "SIGCONT", 26: "SIGTTIN", 27: "SIGTTOU", 28: "SIGVTALRM",
	29: "SIGPROF", 30: "SIGXCPU", 31: "SIGXFSZ",
}

// sparcSignals are the signals of SPARC and Alpha.
var sparcSignals = map[int]string{
	7: "SIGEMT", 10: "SIGBUS", 12: "SIGSYS", 16: "SIGURG", 17: "SIGSTOP", 18: "SIGTSTP", 19: "SIGCONT", 20: "SIGCHLD",
	21: "SIGTTIN", 22: "SIGTTOU", 23: "SIGIO", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH",
	29: "SIGPWR", 30: "SIGUSR1", 31: "SIGUSR2",
}

// SignalName returns the name of a signal on an ELF machine; "" if it has none.
func SignalName(machine uint16, signal int) string {
	if name, ok := ownSignals[elf.Machine(machine)][signal]; ok {
		return name
	}
	return commonSignals[signal]
}

// signalCodes are the values of si_code of the signals of faults, from 1 on
// (include/uapi/asm-generic/siginfo.h).
var signalCodes = map[string][]string{
	"SIGILL": {"ILLOPC", "ILLOPN", "ILLADR", "ILLTRP", "PRVOPC", "PRVREG", "COPROC", "BADSTK", "BADIADDR"},
	"SIGFPE": {"INTDIV", "INTOVF", "FLTDIV", "FLTOVF", "FLTUND", "FLTRES", "FLTINV", "FLTSUB"},
	"SIGSEGV": {"MAPERR", "ACCERR", "BNDERR", "PKUERR", "ACCADI", "ADIDERR", "ADIPERR", "MTEAERR", "MTESERR",
		"CPERR"},
	"SIGBUS":  {"ADRALN", "ADRERR", "OBJERR", "MCEERR_AR", "MCEERR_AO"},
	"SIGTRAP": {"BRKPT", "TRACE", "BRANCH", "HWBKPT", "UNK", "PERF"},
	"SIGSYS":  {"SECCOMP", "USER_DISPATCH"},
	"SIGCHLD": {"EXITED", "KILLED", "DUMPED", "TRAPPED", "STOPPED", "CONTINUED"},
}

// SignalFromKernel is the si_code of a signal that the kernel sent without details.
const SignalFromKernel = 0x80

// senders are the values of si_code that do not depend on the signal.
var senders = map[int32]string{
	SignalFromKernel: "SI_KERNEL", -1: "SI_QUEUE", -2: "SI_TIMER", -3: "SI_MESGQ", -4: "SI_ASYNCIO", -5: "SI_SIGIO",
	-6: "SI_TKILL", -7: "SI_DETHREAD", -60: "SI_ASYNCNL",
}

// SignalCode returns the name of an si_code of a signal: SEGV_MAPERR for 1 of SIGSEGV; "" if
// it has none.
func SignalCode(signal string, code int32) string {
	if names := signalCodes[signal]; code > 0 && int(code) <= len(names) {
		return strings.TrimPrefix(signal, "SIG") + "_" + names[code-1]
	}
	return senders[code]
}

// SignalCrash returns the name that reports have for a crash by a signal: "SIGSEGV /
// SEGV_MAPERR".
func SignalCrash(signal string, code int32) string {
	switch name := SignalCode(signal, code); {
	case code == 0:
		return signal
	case name != "":
		return signal + " / " + name
	}
	return fmt.Sprintf("%s / %#08x", signal, uint32(code)) //nolint:gosec // its bits
}
