// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// The address spaces. The compiler's DWARF numbers only one of them: shared
// local memory is DW_AT_address_class 1, as Intel's debugger reads it. The
// number of the scratch space is this project's, after the tag that older
// compilers put into the top byte of its addresses.
const (
	global  locexpr.AddressSpace = 0
	slm     locexpr.AddressSpace = 1
	scratch locexpr.AddressSpace = 9
)

// addressSpaces lists the address spaces. A thread's scratch space has the
// stacks of all its lanes.
func addressSpaces() []sdk.AddressSpace {
	return []sdk.AddressSpace{
		{Number: global, Name: "global", Bits: 64, Scope: sdk.ProcessScope},
		{Number: slm, Name: "slm", Bits: 32, Scope: sdk.GroupScope},
		{Number: scratch, Name: "scratch", Bits: 32, Scope: sdk.WaveScope},
	}
}

// maps maps the scratch space into global memory, where the target or the
// register ScratchBase tells its beginning. A thread without a scratch space
// has 0 in the register.
func maps(t *sdk.ThreadState) []sdk.SpaceMap {
	base, ok := t.Registers.Uint64(scratchBase, sdk.LittleEndian)
	ok = ok && base != 0
	for _, s := range t.Spaces {
		if s.Space == scratch {
			base, ok = s.Base, true
		}
	}
	if !ok {
		return nil
	}
	const last = 1<<32 - 1
	size := min(last, ^base) + 1
	return []sdk.SpaceMap{{Space: scratch, Ranges: []sdk.MapRange{
		{Kind: sdk.IdentityMap, Size: size, Into: global, Base: base},
	}}}
}
