// SPDX-License-Identifier: Apache-2.0

package minidump

import (
	"fmt"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/target/mach"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
)

// Reason is the meaning of an exception.
type Reason struct {
	// Name is STATUS_ACCESS_VIOLATION, SIGSEGV, EXC_BAD_ACCESS; the number where it
	// has none.
	Name string
	// Detail is the meaning of the further numbers: SEGV_MAPERR, KERN_INVALID_ADDRESS,
	// FAST_FAIL_INVALID_ARG, the status of a page that could not be read.
	Detail string
	// Access is how the address was accessed: read, write or execute; "" where that
	// is unknown.
	Access string
	// Address is the accessed address, or, for a signal that is not about memory, the
	// instruction's. HasAddress is false where the processor did not report it. It is set
	// as in the dump also where, as Detail then says, a fault of the program cannot be
	// told from a signal that was sent.
	Address    uint64
	HasAddress bool
	// IsRequest is true where nothing failed: the dump was requested.
	IsRequest bool
}

// String returns the reason as a line: "STATUS_ACCESS_VIOLATION: write at 0x45".
func (r Reason) String() string {
	var parts []string
	if r.Detail != "" {
		parts = append(parts, r.Detail)
	}
	switch {
	case r.Access != "" && r.HasAddress:
		parts = append(parts, fmt.Sprintf("%s at %#x", r.Access, r.Address))
	case r.Access != "":
		parts = append(parts, r.Access+" at an address that is not known")
	case r.HasAddress:
		parts = append(parts, fmt.Sprintf("at %#x", r.Address))
	}
	if len(parts) == 0 {
		return r.Name
	}
	return r.Name + ": " + strings.Join(parts, ", ")
}

// Reason interprets an exception for the system of the dump.
func (d *Dump) Reason(x *Exception) Reason {
	switch d.os() {
	case Windows:
		return d.windowsReason(x)
	case MacOS, IOS:
		return d.machReason(x)
	case LinuxOS, Android:
		return d.signalReason(x)
	}
	return Reason{Name: fmt.Sprintf("%#x", x.Code)}
}

// address cuts an address to the process's width. Old writers extended the sign of 32
// bits.
func (d *Dump) address(a uint64) uint64 {
	if d.word() == 4 {
		return a & 0xffffffff
	}
	return a
}

// windowsReason reads an EXCEPTION_RECORD (winnt.h).
func (d *Dump) windowsReason(x *Exception) Reason {
	r := Reason{Name: StatusName(x.Code)}
	p := x.Parameters
	switch x.Code {
	case statusAccessViolation, statusInPageError:
		if len(p) < 2 {
			return r
		}
		r.Access, r.Address, r.HasAddress = accesses[p[0]], d.address(p[1]), true
		// The processor does not report which address was not canonical.
		if d.word() == 8 && p[1] == ^uint64(0) {
			r.Address, r.HasAddress = 0, false
		}
		if x.Code == statusInPageError && len(p) > 2 {
			r.Detail = StatusName(uint32(p[2]))
		}
	case statusStackBufferOverrun:
		if len(p) > 0 {
			r.Detail = fastFailName(p[0])
		}
	case statusIllegalInstruction, statusPrivilegedInstruction, statusIntegerDivide, statusIntegerOverflow, statusBreakpoint, statusSingleStep:
		r.Address, r.HasAddress = d.address(x.Address), true
	case crashpadSimulated:
		r.IsRequest = true
	}
	return r
}

// accesses are the values of an access violation's first parameter.
var accesses = map[uint64]string{0: trace.AccessRead, 1: trace.AccessWrite, 8: trace.AccessExecute}

// signalReason reads the parts of a siginfo_t that Breakpad and Crashpad write: the
// signal's number as code, si_code as flags, si_addr as address.
func (d *Dump) signalReason(x *Exception) Reason {
	if x.Code == breakpadRequest || x.Code == crashpadRequest {
		return Reason{Name: "DUMP_REQUESTED", IsRequest: true}
	}
	r := Reason{Name: signalName(d.arch(), x.Code)}
	if x.Flags == lldbFlags {
		r.Detail = x.Description
		// LLDB stops a process with it to attach: each thread has an exception then.
		r.IsRequest = r.Name == "SIGSTOP"
		return r
	}
	code, isKnown := d.signalCode(x)
	if name := target.SignalCode(r.Name, code); name != "" {
		r.Detail = name
	} else if code != 0 {
		r.Detail = fmt.Sprintf("si_code %d", code)
	} else if r.Detail = "SI_USER"; !isKnown {
		r.Detail += ", or si_code is not in the dump"
	}
	// The kernel reports the address of a fault only (signal.c: force_sig_fault), which
	// has a si_code of its own. An address that is not canonical has SI_KERNEL, too. Older
	// versions of Breakpad did not write si_code.
	if (code > 0 && code != target.SignalFromKernel || !isKnown && x.Address != 0) && slices.Contains(faults, r.Name) {
		r.Address, r.HasAddress = d.address(x.Address), true
	}
	return r
}

// machReason reads the parts of a Mach exception that Breakpad and Crashpad write: its
// number as code, its first code as flags, its second one as address. Crashpad has all
// three as parameters, of 64 bits.
func (d *Dump) machReason(x *Exception) Reason {
	e := mach.Exception(x.Code)
	if e.Name() == "" {
		return Reason{Name: fmt.Sprintf("%#x", x.Code)}
	}
	r := Reason{Name: e.Name(), IsRequest: e == mach.Simulated}
	code := machCode(x)
	name := e.CodeName(d.arch(), code)
	if e == mach.Crash {
		name = mach.SignalOf(code)
	}
	if name != "" {
		r.Detail = name
	} else if code != 0 {
		r.Detail = fmt.Sprintf("code %#x", code)
	}
	if e == mach.BadAccess {
		// A general protection fault of x86 has no address.
		r.HasAddress = !(d.arch() == ArchAMD64 || d.arch() == ArchX86) || code != mach.GeneralProtection
		if r.HasAddress {
			r.Address = d.address(x.Address)
		}
	}
	return r
}

// machCode returns the first code of an exception of Mach, which has 64 bits in
// Crashpad's parameters.
func machCode(x *Exception) uint64 {
	if len(x.Parameters) >= 2 && x.Parameters[0] == uint64(x.Code) {
		return x.Parameters[1]
	}
	return uint64(x.Flags)
}
