// SPDX-License-Identifier: Apache-2.0

package target

import "github.com/unwindd/unwindd/sdk"

// Stop is why a thread stopped, as its debugger or the writer of the target recorded it.
// Empty members are not known.
type Stop struct {
	Reason string // one of sdk.StopReasons
	// Address is the address that was accessed, in the default address space.
	Address    uint64
	HasAddress bool
	// TrapID is the operand of the trap instruction.
	TrapID    uint32
	HasTrapID bool
	// PCExact means that the PC is the address of the instruction that stopped the thread.
	// If false, the thread executed that instruction earlier, and the PC is where it would
	// continue.
	PCExact    bool
	HasPCExact bool
	// Details are all causes that the machine recorded, in its own words.
	Details []string
}

// stopSignals has the reasons of the signals that hardware causes.
var stopSignals = map[string]string{
	"SIGILL":  sdk.StopIllegalInstruction,
	"SIGBUS":  sdk.StopAddressError,
	"SIGFPE":  sdk.StopMathError,
	"SIGSEGV": sdk.StopMemoryFault,
}

// StopOfSignal returns the reason for which the hardware of an ELF machine causes a signal;
// ok is false for signals that hardware does not cause.
func StopOfSignal(machine uint16, signal int) (reason sdk.StopReason, ok bool) {
	return sdk.FindStopReason(stopSignals[SignalName(machine, signal)])
}
