package minidump

import (
	"debug/elf"
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
)

// Exception codes of Linux that are no signals: somebody asked for the dump.
const (
	breakpadRequest = 0xffffffff
	crashpadRequest = 0x0517a7ed
)

// machines have the signals whose numbers differ from those of x86.
var machines = map[string]elf.Machine{
	"mips": elf.EM_MIPS, "mips64": elf.EM_MIPS, "sparc": elf.EM_SPARC, "alpha": elf.EM_ALPHA, "alpha64": elf.EM_ALPHA,
}

func signalName(arch string, number uint32) string {
	if number < 1<<16 {
		if name := target.SignalName(uint16(machines[arch]), int(number)); name != "" {
			return name
		}
	}
	return fmt.Sprintf("signal %d", number)
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

const siKernel = 0x80

// senders are the values of si_code that do not depend on the signal.
var senders = map[int32]string{
	siKernel: "SI_KERNEL", -1: "SI_QUEUE", -2: "SI_TIMER", -3: "SI_MESGQ", -4: "SI_ASYNCIO", -5: "SI_SIGIO",
	-6: "SI_TKILL", -7: "SI_DETHREAD", -60: "SI_ASYNCNL",
}

// faults are the signals that have the address of a fault.
var faults = []string{"SIGILL", "SIGFPE", "SIGSEGV", "SIGBUS", "SIGTRAP"}
