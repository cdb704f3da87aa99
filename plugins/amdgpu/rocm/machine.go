// SPDX-License-Identifier: Apache-2.0

// Package rocm reads what ROCm puts into a core: the note of the driver's state,
// and the areas in memory to which it saved the waves of each queue.
//
// The note's format is that of "Core file format" of the LLVM project's "User
// Guide for AMDGPU Backend", with the version that both writers put before it.
// What the areas hold is decided by the hardware and by the driver's and the
// runtime's trap handlers. Those who wrote them describe it in AMD's debugger
// API library (ROCdbgapi), whose facts the tables of this package hold.
package rocm

import "github.com/unwindd/unwindd/locexpr"

// Numbers are the DWARF numbers of a wave's registers. What has a number for each
// wave size has the one for 32 lanes first.
type Numbers struct {
	PC, Status    uint32
	Exec, VCC     [2]uint32
	SGPR0, SGPR64 uint32 // SGPR0 is followed by 63 more
	VGPR0, AGPR0  [2]uint32
	VGPR512       uint32 // of 32 lanes
}

// A Machine is what the architecture calls what a core holds.
type Machine struct {
	Numbers
	Local, PrivateLane, PrivateWave locexpr.AddressSpace
	// IsKnown says whether a processor is one of the description's.
	IsKnown func(processor string) bool
}

const (
	wave32 = 32
	wave64 = 64
	dword  = 4
)
