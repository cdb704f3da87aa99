// SPDX-License-Identifier: Apache-2.0

// Package rocm reads what ROCm puts into a core: the note of the driver's state,
// and the areas in memory to which it saved the waves of each queue.
//
// The note's format is that of "Core file format" of the LLVM project's "User
// Guide for AMDGPU Backend", with the version that both writers put before it.
// The contents of the areas are decided by the hardware and by the driver's
// and the runtime's trap handlers. Their authors describe them in AMD's
// debugger API library (ROCdbgapi), whose facts are in this package's tables.
package rocm

import "github.com/unwindd/unwindd/locexpr"

// Numbers are the DWARF numbers of a wave's registers. Registers with a number
// for each wave size have the one for 32 lanes first.
type Numbers struct {
	PC, Status    uint32
	Exec, VCC     [2]uint32
	SGPR0, SGPR64 uint32 // SGPR0 is followed by 63 more
	VGPR0, AGPR0  [2]uint32
	VGPR512       uint32 // of 32 lanes
}

// Machine has the architecture's names and numbers for the contents of a
// core.
type Machine struct {
	Numbers
	Local, PrivateLane, PrivateWave locexpr.AddressSpace
	// IsKnown reports whether the description has a processor.
	IsKnown func(processor string) bool
}

const (
	wave32 = 32
	wave64 = 64
	dword  = 4
)
