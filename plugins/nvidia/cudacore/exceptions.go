// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// precision says how far a PC may be from the instruction that caused an exception. The
// header names it in the exception's name.
type precision uint8

const (
	byLane    precision = iota // the lane's own
	byWarp                     // some instructions before
	byCluster                  // another block of the cluster may have caused it
	byDevice                   // any warp may have caused it
)

// exception describes an exception of the hardware or of the driver.
type exception struct {
	name      string // CUDBG_EXCEPTION_*
	words     string
	reason    string // one of sdk.StopReasons
	precision precision
}

// exceptions are the exceptions of cudadebugger.h by their numbers, with the names that were used
// before CUDA 13.1 for those that are not reported any more.
var exceptions = map[uint32]exception{
	1:  {"LANE_ILLEGAL_ADDRESS", "illegal address", sdk.StopMemoryFault, byLane},
	2:  {"LANE_USER_STACK_OVERFLOW", "the lane's stack is full", sdk.StopStackOverflow, byLane},
	3:  {"DEVICE_HARDWARE_STACK_OVERFLOW", "the hardware's stack is full", sdk.StopStackOverflow, byDevice},
	4:  {"WARP_ILLEGAL_INSTRUCTION", "illegal instruction", sdk.StopIllegalInstruction, byWarp},
	5:  {"WARP_OUT_OF_RANGE_ADDRESS", "address out of range", sdk.StopAddressError, byWarp},
	6:  {"WARP_MISALIGNED_ADDRESS", "misaligned address", sdk.StopAddressError, byWarp},
	7:  {"WARP_INVALID_ADDRESS_SPACE", "an address space that the instruction cannot access", sdk.StopAddressError, byWarp},
	8:  {"WARP_INVALID_PC", "the PC left the code", sdk.StopException, byWarp},
	9:  {"WARP_HARDWARE_STACK_OVERFLOW", "the hardware's stack is full", sdk.StopStackOverflow, byWarp},
	10: {"DEVICE_ILLEGAL_ADDRESS", "illegal address", sdk.StopMemoryFault, byDevice},
	11: {"LANE_MISALIGNED_ADDRESS", "misaligned address", sdk.StopAddressError, byLane},
	12: {"WARP_ASSERT", "an assertion failed", sdk.StopAssert, byWarp},
	13: {"LANE_SYSCALL_ERROR", "a system call failed", sdk.StopException, byLane},
	14: {"WARP_ILLEGAL_ADDRESS", "illegal address", sdk.StopMemoryFault, byWarp},
	15: {"LANE_NONMIGRATABLE_ATOMSYS", "an atomic access of the system's memory that cannot migrate", sdk.StopException, byLane},
	16: {"LANE_INVALID_ATOMSYS", "an atomic access that the system's memory does not have", sdk.StopException, byLane},
	17: {"CLUSTER_OUT_OF_RANGE_ADDRESS", "address out of range in a cluster", sdk.StopAddressError, byCluster},
	18: {"CLUSTER_BLOCK_NOT_PRESENT", "a block of the cluster is not there", sdk.StopException, byCluster},
	19: {"WARP_STACK_CANARY", "the stack's canary was overwritten", sdk.StopException, byWarp},
	20: {"WARP_TMEM_ACCESS_CHECK", "an access of tensor memory that is not allowed", sdk.StopException, byWarp},
	21: {"WARP_TMEM_LEAK", "tensor memory was not released", sdk.StopException, byWarp},
	22: {"WARP_CALL_REQUIRES_NEWER_DRIVER", "a call that a newer driver has", sdk.StopException, byWarp},
	23: {"WARP_MISALIGNED_PC", "misaligned PC", sdk.StopIllegalInstruction, byWarp},
	24: {"WARP_PC_OVERFLOW", "the PC left the address space", sdk.StopException, byWarp},
	25: {"WARP_MISALIGNED_REG", "misaligned register", sdk.StopIllegalInstruction, byWarp},
	26: {"WARP_ILLEGAL_INSTR_ENCODING", "illegal encoding of an instruction", sdk.StopIllegalInstruction, byWarp},
	27: {"WARP_ILLEGAL_INSTR_PARAM", "illegal parameter of an instruction", sdk.StopIllegalInstruction, byWarp},
	28: {"WARP_OUT_OF_RANGE_REGISTER", "a register that the warp does not have", sdk.StopIllegalInstruction, byWarp},
	29: {"WARP_INVALID_CONST_ADDR_LDC", "invalid address of a constant bank", sdk.StopAddressError, byWarp},
	30: {"WARP_MMU_FAULT", "a fault of the memory management unit", sdk.StopMemoryFault, byWarp},
	31: {"WARP_ARRIVE", "more arrivals at a barrier than it expects", sdk.StopException, byWarp},
	32: {"CLUSTER_POISON", "an error of the cluster that was not corrected", sdk.StopECCError, byCluster},
	33: {"WARP_API_STACK_ERROR", "the stack is larger than its limit", sdk.StopStackOverflow, byWarp},
	34: {"WARP_BLOCK_NOT_PRESENT", "a block is not there", sdk.StopException, byWarp},
	35: {"WARP_USER_STACK_OVERFLOW", "the stack is full", sdk.StopStackOverflow, byWarp},
	36: {"TMA_SYSCALL", "a system call of the tensor memory accelerator failed", sdk.StopException, byWarp},
}

// exceptionOf describes an exception, whatever its number.
func exceptionOf(code uint32) exception {
	if e, ok := exceptions[code]; ok {
		return e
	}
	return exception{fmt.Sprintf("exception %d", code), "an exception that is not known", sdk.StopException, byWarp}
}

// laneStates are the states of a lane (CUDBGCBUThreadState), before 16 for barriers 0 to 15.
var laneStates = []string{
	"exited", "", "yielded", "asleep", "asleep, yielded", "ready at the next step",
	"blocked until others come, or exit", "blocked until all others come", "blocked until its collective comes",
}

const (
	readyState   = 1
	barrierState = 9
	lastState    = barrierState + 15
)

// invalid is the number of a state and of a scope that the driver could not tell.
const invalid = 0xffff_ffff

// laneState says in plain words what a lane does; "" where it is ready.
func laneState(state uint32) string {
	switch {
	case state < uint32(len(laneStates)):
		return laneStates[state]
	case state >= barrierState && state <= lastState:
		return fmt.Sprintf("blocked on barrier %d", state-barrierState)
	case state == invalid:
		return ""
	}
	return fmt.Sprintf("in state %d, which is not known", state)
}

// barrierScopes say whom a warp waits for at a barrier of software (CUDBGBarrierScope).
var barrierScopes = []string{"", "its warp", "its warp group", "its block", "its cluster", "its kernel"}

func barrierScope(scope uint32) string {
	switch {
	case scope < uint32(len(barrierScopes)):
		return barrierScopes[scope]
	case scope == invalid:
		return ""
	}
	return fmt.Sprintf("scope %d, which is not known", scope)
}
