// SPDX-License-Identifier: Apache-2.0

package machocore

import (
	"github.com/unwindd/unwindd/engine/internal/macho"
	"github.com/unwindd/unwindd/engine/internal/target/mach"
)

// fault is the last exception of a thread, as its processor recorded it.
type fault struct {
	name, code string // as reports of macOS have them; code is "" where memory was accessed
	address    uint64
	hasAddress bool
	right      uint32 // to memory that was needed, as macho.CanWrite
}

// named returns the fault of an exception with a code.
func named(e mach.Exception, arch string, code uint64) fault {
	return fault{name: e.Name(), code: e.CodeName(arch, code)}
}

// access returns the fault of an access to memory for which a right was needed.
func access(address uint64, right uint32) fault {
	return fault{name: mach.BadAccess.Name(), address: address, hasAddress: true, right: right}
}

// String names a fault as crash reports do.
func (f *fault) String() string {
	if f.code == "" {
		return f.name
	}
	return f.name + " / " + f.code
}

// Exceptions of x86 (Intel SDM volume 3, 6.3.1), and bits of the error code of a page fault.
const (
	x86Breakpoint = 3
	x86Undefined  = 6
	x86Protection = 13
	x86PageFault  = 14

	x86Write   = 2
	x86User    = 4
	x86Fetch   = 16
	x86StateOf = 16 // bytes of x86_exception_state64
)

// x86Traps are exceptions that have no address. The number 0 (a division) is also that of a thread without
// an exception, so that it tells nothing.
var x86Traps = map[uint16]fault{
	x86Breakpoint: named(mach.Breakpoint, archX86, mach.TrapX86),
	x86Undefined:  named(mach.BadInstruction, archX86, mach.UndefinedX86),
	x86Protection: named(mach.BadAccess, archX86, mach.GeneralProtection),
}

// x86Fault reads x86_exception_state64: the number of the exception and of the processor, the error code, the
// address.
func x86Fault(b []byte) (f fault, ok bool) {
	if len(b) < x86StateOf {
		return f, false
	}
	trap, code := le.Uint16(b), le.Uint32(b[4:])
	if trap != x86PageFault {
		f, ok = x86Traps[trap]
		return f, ok
	}
	f = access(le.Uint64(b[8:]), macho.CanRead)
	switch {
	case code&x86Fetch != 0:
		f.right = macho.CanExecute
	case code&x86Write != 0:
		f.right = macho.CanWrite
	}
	return f, code&x86User != 0
}

// Classes of exceptions of arm64, and bits of their syndrome (Arm ARM, ESR_ELx).
const (
	armUndefined  = 0x00
	armFetchAbort = 0x20
	armPCAlign    = 0x22
	armDataAbort  = 0x24
	armBreak      = 0x3c

	armIsWrite    = 1 << 6
	armIsWide     = 1 << 25 // an instruction of 4 bytes
	armStatus     = 0x3f
	armAlignFault = 0x21
	armClassAt    = 26
	armStateOf    = 12 // bytes of arm_exception_state64 that are read
)

// armTraps are exceptions that have no address.
var armTraps = map[uint32]fault{
	armUndefined: named(mach.BadInstruction, archARM, mach.UndefinedARM),
	armBreak:     named(mach.Breakpoint, archARM, mach.TrapARM),
}

// armFault reads arm_exception_state64: the address and the syndrome.
func armFault(b []byte) (f fault, ok bool) {
	if len(b) < armStateOf {
		return f, false
	}
	address, syndrome := le.Uint64(b), le.Uint32(b[8:])
	switch class := syndrome >> armClassAt; {
	case syndrome&armIsWide == 0 && class == armUndefined: // a thread without an exception
		return f, false
	case class == armFetchAbort:
		return access(address, macho.CanExecute), true
	case class == armPCAlign, class == armDataAbort && syndrome&armStatus == armAlignFault:
		f = named(mach.BadAccess, archARM, mach.MisalignedARM)
		f.address, f.hasAddress = address, true
		return f, true
	case class == armDataAbort:
		f = access(address, macho.CanRead)
		if syndrome&armIsWrite != 0 {
			f.right = macho.CanWrite
		}
		return f, true
	default:
		f, ok = armTraps[class]
		return f, ok
	}
}

// settled returns a fault with the reason why memory could not be accessed. ok is false where it could: the
// system gave the thread the page, and it went on.
func (c *Core) settled(f fault) (_ fault, ok bool) {
	if f.right == 0 {
		return f, true
	}
	f.code = mach.BadAccess.CodeName("", mach.InvalidAddress)
	protection := mach.BadAccess.CodeName("", mach.ProtectionFailure)
	if i, isThere := c.memory.find(f.address); isThere {
		f.code = protection
		return f, c.memory[i].protection&f.right == 0
	}
	mapped, executable := c.Mapped(f.address)
	if !mapped {
		return f, true
	}
	f.code = protection // of an image whose memory the core lacks: it is not written
	return f, f.right == macho.CanExecute && !executable
}
