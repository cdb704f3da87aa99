// SPDX-License-Identifier: Apache-2.0

package target

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"github.com/unwindd/unwindd/engine/trace"
)

// SignalInfoSize is the size of a siginfo_t of Linux.
const SignalInfoSize = 128

// SignalInfo has the members of a siginfo_t of Linux (include/uapi/asm-generic/siginfo.h).
type SignalInfo struct {
	Signal      int
	Error, Code int32 // si_errno, si_code
	// Address is the address that was accessed, if HasAddress: only if the kernel sent the
	// signal for a fault. Then si_code is positive, not SI_KERNEL (x86 tells no address
	// that is not canonical), and not SEGV_CPERR, which comes without an address.
	Address    uint64
	HasAddress bool
	Sender     *trace.Sender     // nil if the kernel sent the signal
	SystemCall *trace.SystemCall // of SIGSYS of a filter
}

// Values of si_code that senders has too, and whose siginfo_t has no sender: timers and I/O
// have other members in its place.
const (
	SignalFromUser  = 0
	signalFromQueue = -1
	signalFromTKill = -6
)

// IsFromProcess reports whether a process sent a signal with an si_code.
func IsFromProcess(code int32) bool {
	return code == SignalFromUser || code == signalFromQueue || code == signalFromTKill
}

// addressed are the signals whose siginfo_t has the address of a fault.
var addressed = []string{"SIGILL", "SIGFPE", "SIGSEGV", "SIGBUS"}

// ReadSignalInfo reads a siginfo_t: si_signo, si_errno and si_code of 4 bytes each, of
// which MIPS has the last two in the other order, and, aligned to a word of wordSize bytes,
// what belongs to the signal. ok is false where the data does not reach to si_code.
func ReadSignalInfo(data []byte, machine uint16, order binary.ByteOrder, wordSize int) (x SignalInfo, ok bool) {
	if len(data) < 12 {
		return x, false
	}
	half := func(offset int) uint32 { return order.Uint32(data[offset:]) }
	x.Signal, x.Error, x.Code = int(int32(half(0))), int32(half(4)), int32(half(8)) //nolint:gosec // their bits
	if elf.Machine(machine) == elf.EM_MIPS {
		x.Error, x.Code = x.Code, x.Error
	}
	word := func(offset int) uint64 {
		if wordSize == 8 {
			return order.Uint64(data[offset:])
		}
		return uint64(half(offset))
	}
	offset, name := 8+wordSize, SignalName(machine, x.Signal)
	if len(data) < offset+wordSize {
		return x, true
	}
	switch {
	case IsFromProcess(x.Code) && len(data) >= offset+8:
		x.Sender = &trace.Sender{ID: int32(half(offset)), User: half(offset + 4)} //nolint:gosec // its bits
	case name == "SIGSYS" && x.Code > 0 && len(data) >= offset+wordSize+8:
		x.SystemCall = &trace.SystemCall{Address: word(offset), Number: int32(half(offset + wordSize)), Arch: half(offset + wordSize + 4)} //nolint:gosec // its bits
	case x.Code > 0 && x.Code < SignalFromKernel && slices.Contains(addressed, name) && SignalCode(name, x.Code) != "SEGV_CPERR":
		x.Address, x.HasAddress = word(offset), true
	}
	return x, true
}
