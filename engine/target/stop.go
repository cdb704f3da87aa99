// SPDX-License-Identifier: Apache-2.0

package target

import "github.com/unwindd/unwindd/sdk"

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
