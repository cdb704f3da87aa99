// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// flag is a bit of a hardware register that is set by an event of a wave. With an
// enableWord of 0 it always counts: the others, where they are not enabled, only
// tell that the event happened at some time.
type flag struct {
	word, bit             uint8
	enableWord, enableBit uint8
	reason                string // "" where it stops no wave
	name                  string
}

// The flags of STATUS that tell why a wave does not go on.
const (
	statusFatalHalt = 23
	statusECC       = 17
)

const (
	trapsts, excpFlagPriv = 6, 6
	mode9, mode10         = 9, 8
	excpFlagUser          = 11
	trapCtrl              = 12
)

// trapstsOf returns the flags of TRAPSTS, enabled by the bits of MODE.
func trapstsOf(mode uint8, more []flag) []flag {
	var flags []flag
	for i, name := range []string{"INVALID", "DENORM", "DIV0", "OVERFLOW", "UNDERFLOW", "INEXACT", "INT_DIV0"} {
		flags = append(flags, flag{trapsts, uint8(i), mode, uint8(12 + i), "math-error", "EXCP." + name}) //nolint:gosec // seven
	}
	flags = append(flags,
		flag{trapsts, 7, mode, 19, "watchpoint", "EXCP.ADDR_WATCH"},
		flag{trapsts, 8, 0, 0, "address-error", "EXCP.MEM_VIOL"},
		flag{trapsts, 11, 0, 0, "illegal-instruction", "ILLEGAL_INST"},
		flag{trapsts, 12, mode, 19, "watchpoint", "EXCP_HI.ADDR_WATCH1"},
		flag{trapsts, 13, mode, 19, "watchpoint", "EXCP_HI.ADDR_WATCH2"},
		flag{trapsts, 14, mode, 19, "watchpoint", "EXCP_HI.ADDR_WATCH3"},
		flag{trapsts, 28, 0, 0, "memory-fault", "XNACK_ERROR"},
		flag{5, statusECC, 0, 0, "ecc-error", "ECC_ERR"},
		flag{5, statusFatalHalt, 0, 0, "fatal-halt", "FATAL_HALT"},
	)
	return append(flags, more...)
}

// trapEvents returns the flags of events other than exceptions, at their
// bits.
func trapEvents(host, begin, end, after uint8) []flag {
	return []flag{
		{trapsts, host, 0, 0, "", "HOST_TRAP"},
		{trapsts, begin, 0, 0, "trap", "WAVE_BEGIN"},
		{trapsts, end, 0, 0, "trap", "WAVE_END"},
		{trapsts, after, 0, 0, "single-step", "TRAP_AFTER_INST"},
	}
}

var (
	flags9  = trapstsOf(mode9, nil)
	flags94 = trapstsOf(mode9, trapEvents(22, 23, 24, 25))
	flags10 = trapstsOf(mode10, nil)
	flags11 = trapstsOf(mode10, trapEvents(16, 17, 18, 20))
	flags12 = excpFlags()
)

// excpFlags returns the flags of gfx12, where TRAP_CTRL enables them.
func excpFlags() []flag {
	var flags []flag
	for i, name := range []string{"INVALID", "INPUT_DENORM", "FLOAT_DIV0", "OVERFLOW", "UNDERFLOW", "INEXACT", "INT_DIV0"} {
		flags = append(flags, flag{excpFlagUser, uint8(i), trapCtrl, uint8(i), "math-error", "ALU_" + name}) //nolint:gosec // seven
	}
	for i := range uint8(4) {
		flags = append(flags, flag{excpFlagPriv, i, trapCtrl, 7, "watchpoint", fmt.Sprintf("ADDR_WATCH%d", i)})
	}
	return append(flags,
		flag{excpFlagPriv, 4, 0, 0, "address-error", "MEMVIOL"},
		flag{excpFlagPriv, 6, 0, 0, "illegal-instruction", "ILLEGAL_INST"},
		flag{excpFlagPriv, 7, 0, 0, "", "HOST_TRAP"},
		flag{excpFlagPriv, 8, 0, 0, "trap", "WAVE_START"},
		flag{excpFlagPriv, 9, 0, 0, "trap", "WAVE_END"},
		flag{excpFlagPriv, 11, 0, 0, "single-step", "TRAP_AFTER_INST"},
		flag{excpFlagPriv, 12, 0, 0, "memory-fault", "XNACK_ERROR"},
		flag{13, statusFatalHalt, 0, 0, "fatal-halt", "FATAL_HALT"},
	)
}

// reasonOrder are the reasons in the order in which one is chosen of several. The
// reasons of STATUS are last: they may not have stopped the wave.
var reasonOrder = []string{
	"memory-fault", "address-error", "illegal-instruction", "math-error",
	"breakpoint", "trap", "watchpoint", "single-step", "ecc-error", "fatal-halt",
}

// isCrash reports whether a process dies of a reason. A trap is not among them.
func isCrash(reason string) bool {
	switch reason {
	case "memory-fault", "address-error", "illegal-instruction", "math-error", "ecc-error", "fatal-halt":
		return true
	}
	return false
}

// The numbers of trap instructions ("Trap Handler ABI").
const (
	trapBreakpoint = 1
	trapDebug      = 3 // llvm.debugtrap; 2 is llvm.trap, which ends the process
	trapOthers     = 15
)

// stopOf returns why a wave stopped. trap is the number of the trap instruction
// in four bits: 0 is none, 15 may be any from 15 on.
func (f *family) stopOf(h *[16]uint32, trap uint32, isHalted bool) (stop sdk.ThreadStop, hasCrashed bool) {
	best := len(reasonOrder)
	add := func(reason, detail string) {
		hasCrashed = hasCrashed || isCrash(reason)
		if i := slices.Index(reasonOrder, reason); i >= 0 && i < best {
			best = i
		}
		stop.Details = append(stop.Details, detail)
	}
	for i := range f.flags {
		if g := &f.flags[i]; g.isSet(h) {
			add(g.reason, g.name)
		}
	}
	switch {
	case trap == trapBreakpoint:
		add("breakpoint", "s_trap 1")
	case trap == trapOthers:
		add("trap", "s_trap 15 or more")
	case trap != 0 && best < slices.Index(reasonOrder, "trap"):
		add("trap", fmt.Sprintf("s_trap %d", trap))
	case trap != 0:
		best = slices.Index(reasonOrder, "trap") // the number tells the rest
	}
	if trap != 0 && trap != trapOthers {
		stop.TrapID, stop.HasTrapID = trap, true
	}
	if isHalted {
		stop.Details = append(stop.Details, "HALT")
	}
	if best < len(reasonOrder) {
		stop.Reason = reasonOrder[best]
	}
	isTrap := trap != 0 && trap != trapBreakpoint && trap != trapDebug
	// The machine goes on to execute while memory is accessed, and notices a fault
	// or a watched address late.
	switch stop.Reason {
	case "memory-fault", "address-error", "ecc-error", "watchpoint":
		stop.HasPCExact = true
	case "illegal-instruction", "breakpoint", "trap":
		stop.IsPCExact, stop.HasPCExact = true, true
	}
	return stop, hasCrashed || isTrap
}

// faults describes the flags of a wave that was about to stop.
func (f *family) faults(h *[16]uint32) (details []string) {
	for i := range f.flags {
		if g := &f.flags[i]; g.enableWord == 0 && isCrash(g.reason) && g.isSet(h) {
			details = append(details, g.name)
		}
	}
	return details
}

func (g *flag) isSet(h *[16]uint32) bool {
	return h[g.word&15]>>g.bit&1 != 0 && (g.enableWord == 0 || h[g.enableWord&15]>>g.enableBit&1 != 0)
}
