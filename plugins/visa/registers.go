// SPDX-License-Identifier: Apache-2.0

package visa

import "github.com/unwindd/unwindd/sdk"

// DWARF register numbers, as Intel's graphics compiler writes them.
const (
	ip               uint32 = 0
	emask            uint32 = 1 // the channel enables
	btBase           uint32 = 5
	scratchBase      uint32 = 6
	genStateBase     uint32 = 7
	surfStateBase    uint32 = 8
	bindlessSurf     uint32 = 9
	bindlessSampler  uint32 = 10
	scratchBaseSlot1 uint32 = 11
	r0               uint32 = 16  // to r255, 271
	a0               uint32 = 272 // the address register
	f0               uint32 = 288 // to f3, 291: flags
	acc0             uint32 = 304 // to acc9, 313: accumulators
	mme0             uint32 = 335 // to mme7, 342: their extensions
	r256             uint32 = 350 // to r511, 605
)

// The sizes of a GRF register.
const (
	grf32 = 256 // bits
	grf64 = 512
)

// registerRanges lists every register in the order of their numbers. IP has 32
// bits and counts from where the thread's instructions begin. GRF registers,
// and the accumulators that have their size, are as large here as on any
// processor; BindThreads tells the size of a thread's.
func registerRanges() []sdk.RegisterRange {
	files := [...]struct {
		first, count uint32
		name         string
		index        uint32 // of the first register
		class        sdk.RegisterClass
		bits         uint32
	}{
		{ip, 1, "IP", 0, sdk.ProgramCounter, 32},
		{emask, 1, "EMask", 0, sdk.Mask, 32},
		{btBase, 1, "BTBase", 0, sdk.Control, 64},
		{scratchBase, 1, "ScratchBase", 0, sdk.Control, 64},
		{genStateBase, 1, "GenStateBase", 0, sdk.Control, 64},
		{surfStateBase, 1, "SurfStateBase", 0, sdk.Control, 64},
		{bindlessSurf, 1, "BindlessSurf", 0, sdk.Control, 64},
		{bindlessSampler, 1, "BindlessSampler", 0, sdk.Control, 64},
		{scratchBaseSlot1, 1, "ScratchBaseSlot1", 0, sdk.Control, 64},
		{r0, 256, "r%d", 0, sdk.Vector, grf64},
		{a0, 1, "a0", 0, sdk.Vector, 256},
		{f0, 4, "f%d", 0, sdk.Flags, 32},
		{acc0, 10, "acc%d", 0, sdk.Vector, grf64},
		{mme0, 8, "mme%d", 0, sdk.Vector, grf64},
		{r256, 256, "r%d", 256, sdk.Vector, grf64},
	}
	ranges := make([]sdk.RegisterRange, len(files))
	for i, f := range files {
		ranges[i] = sdk.RegisterRange{
			First: f.first, Count: f.count, Names: []string{f.name}, FirstIndex: f.index, Class: f.class, Bits: f.bits,
		}
	}
	return ranges
}

// widths returns the registers that have another size, where a GRF register
// has grf bits.
func widths(grf uint32) []sdk.RegisterWidth {
	if grf == grf64 {
		return nil
	}
	var list []sdk.RegisterWidth
	for _, r := range registerRanges() {
		if r.Bits == grf64 {
			list = append(list, sdk.RegisterWidth{First: r.First, Count: r.Count, Bits: grf})
		}
	}
	return list
}
