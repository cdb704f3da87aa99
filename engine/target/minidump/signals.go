// SPDX-License-Identifier: Apache-2.0

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

// faults are the signals that have the address of a fault.
var faults = []string{"SIGILL", "SIGFPE", "SIGSEGV", "SIGBUS", "SIGTRAP"}

// timers are the signals of which Crashpad writes a timer's fields, or those of a file.
var timers = []string{"SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPOLL"}
