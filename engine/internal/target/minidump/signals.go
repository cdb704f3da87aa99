// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"debug/elf"
	"fmt"

	"github.com/unwindd/unwindd/engine/target"
)

// The exception codes of Linux that are no signals: the dump was requested.
const (
	breakpadRequest = 0xffffffff
	crashpadRequest = 0x0517a7ed
)

// machines are the machines on which signals have other numbers than on x86.
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

// faults are the signals that may have the address of a fault.
var faults = []string{"SIGILL", "SIGFPE", "SIGSEGV", "SIGBUS", "SIGTRAP"}

// timers are the signals for which Crashpad writes the fields of a timer or of a file.
var timers = []string{"SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPOLL"}
