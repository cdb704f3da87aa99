package target

import (
	"debug/elf"

	"golang.org/x/sys/unix"
)

// This file has the signals of Linux, whose numbers differ between machines
// (arch/*/include/uapi/asm/signal.h).

// ownSignals are the numbers that machines have of their own. The others are
// those of x86.
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

var mipsSignals = map[int]string{
	7: "SIGEMT", 10: "SIGBUS", 12: "SIGSYS", 16: "SIGUSR1", 17: "SIGUSR2", 18: "SIGCHLD", 19: "SIGPWR", 20: "SIGWINCH",
	21: "SIGURG", 22: "SIGIO", 23: "SIGSTOP", 24: "SIGTSTP", 25: "SIGCONT", 26: "SIGTTIN", 27: "SIGTTOU", 28: "SIGVTALRM",
	29: "SIGPROF", 30: "SIGXCPU", 31: "SIGXFSZ",
}

// sparcSignals are those of Alpha too.
var sparcSignals = map[int]string{
	7: "SIGEMT", 10: "SIGBUS", 12: "SIGSYS", 16: "SIGURG", 17: "SIGSTOP", 18: "SIGTSTP", 19: "SIGCONT", 20: "SIGCHLD",
	21: "SIGTTIN", 22: "SIGTTOU", 23: "SIGIO", 24: "SIGXCPU", 25: "SIGXFSZ", 26: "SIGVTALRM", 27: "SIGPROF", 28: "SIGWINCH",
	29: "SIGPWR", 30: "SIGUSR1", 31: "SIGUSR2",
}

// SignalName is the name of a signal on an ELF machine; "" where it has none.
func SignalName(machine uint16, signal int) string {
	if name, ok := ownSignals[elf.Machine(machine)][signal]; ok {
		return name
	}
	return unix.SignalName(unix.Signal(signal))
}
