// SPDX-License-Identifier: Apache-2.0

package cudacore

import "github.com/unwindd/unwindd/locexpr"

// RegisterRange are Count registers from First on, registers of one range of the description.
type RegisterRange struct{ First, Count uint32 }

// Machine has the architecture's names and numbers for the contents of a core.
type Machine struct {
	// PC is the register of the program counter, ErrorPC that of the PC at which a warp found
	// an exception: eight bytes each.
	PC, ErrorPC uint32
	// CC is the condition code that processors before sm_70 have. RPC is the low half of the
	// return PC, and the next register the high half: four bytes each.
	CC, RPC uint32
	// Lanes is the register of the lanes that a thread stands for, a mask of four bytes.
	Lanes uint32
	// These ranges have four bytes a register, as the core has them.
	General, Predicates, Uniform, UniformPredicates, Barriers RegisterRange
	// Local is the space of a lane's own memory, Shared that of a block's. Const has the constant
	// banks of a grid at their addresses in global memory, Parameters the parameters of its kernel.
	Local, Shared, Const, Parameters locexpr.AddressSpace
	// IsKnown reports whether the description has a processor.
	IsKnown func(processor string) bool
}
