// SPDX-License-Identifier: Apache-2.0

package target

import "github.com/unwindd/unwindd/sdk"

// A Stop says why a thread stopped, as what stopped it or what dumped it says.
// What is not said is not known.
type Stop struct {
	Reason string // one of sdk.StopReasons
	// Address is what was accessed, in the default address space.
	Address    uint64
	HasAddress bool
	// TrapID is the number that the trap instruction has.
	TrapID    uint32
	HasTrapID bool
	// PCExact says that the PC is that of the instruction that stopped the thread.
	// Where it is false the thread executed that instruction some time before: the
	// PC is where it would go on.
	PCExact    bool
	HasPCExact bool
	// Details are all that the machine says, in its own words.
	Details []string
}

// stopSignals are the reasons of signals that the hardware causes.
var stopSignals = map[string]string{
	"SIGILL":  sdk.StopIllegalInstruction,
	"SIGBUS":  sdk.StopAddressError,
	"SIGFPE":  sdk.StopMathError,
	"SIGSEGV": sdk.StopMemoryFault,
}

// StopOfSignal is why the hardware of an ELF machine stopped a thread that got a
// signal for it; ok is false for other signals.
func StopOfSignal(machine uint16, signal int) (reason sdk.StopReason, ok bool) {
	return sdk.FindStopReason(stopSignals[SignalName(machine, signal)])
}
