// SPDX-License-Identifier: Apache-2.0

package sdk

// The reasons why a thread stopped (`stop.reason` of snapshots and of the output). Where
// several apply, the fault is used.
const (
	StopBreakpoint         = "breakpoint"
	StopWatchpoint         = "watchpoint"
	StopSingleStep         = "single-step"
	StopTrap               = "trap"                // a trap instruction
	StopMemoryFault        = "memory-fault"        // nothing is mapped at an address, or not for such an access
	StopAddressError       = "address-error"       // an address that no access may have: out of range, or not aligned
	StopIllegalInstruction = "illegal-instruction" // an instruction that the processor does not have
	StopMathError          = "math-error"          // an exception of floating-point or integer arithmetic
	StopECCError           = "ecc-error"           // memory that lost its contents
	StopFatalHalt          = "fatal-halt"          // the hardware gave up
	StopAssert             = "assert"              // the program found that a condition does not hold
	StopStackOverflow      = "stack-overflow"      // the stack has no more memory
	StopException          = "exception"           // another one of the machine's; the details say which
)

// StopReason is a reason, with the members of a ThreadStop that may be set with it.
type StopReason struct {
	Name       string
	HasAddress bool // an access is the reason
	HasTrapID  bool // a trap instruction is the reason
}

// StopReasons are all reasons.
var StopReasons = []StopReason{
	{Name: StopBreakpoint},
	{Name: StopWatchpoint, HasAddress: true},
	{Name: StopSingleStep},
	{Name: StopTrap, HasTrapID: true},
	{Name: StopMemoryFault, HasAddress: true},
	{Name: StopAddressError, HasAddress: true},
	{Name: StopIllegalInstruction},
	{Name: StopMathError},
	{Name: StopECCError, HasAddress: true},
	{Name: StopFatalHalt},
	{Name: StopAssert},
	{Name: StopStackOverflow},
	{Name: StopException},
}

// FindStopReason returns the reason of a name; ok is false where there is none.
func FindStopReason(name string) (reason StopReason, ok bool) {
	for _, r := range StopReasons {
		if r.Name == name {
			return r, true
		}
	}
	return StopReason{}, false
}
