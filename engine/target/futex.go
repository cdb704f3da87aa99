// SPDX-License-Identifier: Apache-2.0

package target

// FutexCall is the arguments of a call of futex(2) that waits, in the registers of the thread
// that called it.
type FutexCall struct {
	Address   uint64 // of the word
	Operation uint32 // FUTEX_* without its flags
	Value     uint32 // that the word had, for operations that compare it
	IsTimed   bool   // the wait ends at a given time
}

// The operations that wait (include/uapi/linux/futex.h).
const (
	FutexWait          = 0
	FutexLockPI        = 6
	FutexWaitBitset    = 9
	FutexWaitRequeuePI = 11
	FutexLockPI2       = 13

	futexFlags = 128 | 256 // FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME
)

var futexWaits = map[uint32]bool{FutexWait: true, FutexLockPI: true, FutexWaitBitset: true, FutexWaitRequeuePI: true, FutexLockPI2: true}

// futexRegisters are the registers of a call of futex, by their DWARF numbers.
type futexRegisters struct {
	call   uint32 // has the number of the call, or, on x86-64, its result while it is interrupted
	number uint64
	isKept bool // call keeps the number

	address, operation, value, timeout uint32
}

// futexCalls are by architecture (syscall(2), the psABIs' DWARF numbers).
var futexCalls = map[string]futexRegisters{
	"x86_64":  {call: 0, number: 202, address: 5, operation: 4, value: 1, timeout: 10},
	"aarch64": {call: 8, number: 98, isKept: true, address: 0, operation: 1, value: 2, timeout: 3},
}

// The results of a system call that is to be called again once the thread goes on
// (include/linux/errno.h of the kernel, ERESTARTSYS to ERESTART_RESTARTBLOCK). Debuggers and
// cores see them.
const restartFirst, restartLast = -516, -512

// FutexNumber returns the number of the system call futex of an architecture; ^0 where it is not
// known.
func FutexNumber(arch string) uint64 {
	if r, ok := futexCalls[arch]; ok {
		return r.number
	}
	return ^uint64(0)
}

// FutexArguments returns the arguments of the futex that a thread of an architecture may be
// waiting for, by a function that returns the value of a register. ok is false where it is in no
// such system call. Other calls of three arguments may look alike: the code before the PC, or the
// function that it is in, has to confirm it.
func FutexArguments(arch string, register func(number uint32) (uint64, bool)) (c FutexCall, ok bool) {
	r, ok := futexCalls[arch]
	if !ok {
		return c, false
	}
	call, ok := register(r.call)
	if result := int64(call); !ok || call != r.number && (r.isKept || result < restartFirst || result > restartLast) { //nolint:gosec // its bits
		return c, false
	}
	address, ok := register(r.address)
	operation, isKnown := register(r.operation)
	if !ok || !isKnown || address == 0 || address%4 != 0 || operation&^futexFlags > FutexLockPI2 || !futexWaits[uint32(operation&^futexFlags)] {
		return c, false
	}
	c = FutexCall{Address: address, Operation: uint32(operation &^ futexFlags)}
	value, _ := register(r.value)
	timeout, _ := register(r.timeout)
	c.Value, c.IsTimed = uint32(value), timeout != 0 //nolint:gosec // the kernel takes 32 bits
	return c, true
}

// The bytes around the word of a futex that a lock has: a lock of glibc has at most 56, and its
// word is at most 44 behind its beginning.
const (
	LockBefore = 64
	LockBehind = 64
)
