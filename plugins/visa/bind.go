// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/sdk"
)

// bind describes a hardware thread by its registers and its processor.
func bind(t *sdk.ThreadState) sdk.ThreadBinding {
	g := generationOf(t)
	mask, known := t.Registers.Uint64(emask, sdk.LittleEndian)
	b := sdk.ThreadBinding{Lanes: t.Lanes, Widths: widths(g.grf), Maps: maps(t)}
	switch {
	case b.Lanes == 0:
		b.Lanes = lanesOf(g, uint32(mask))
	case !slices.Contains(g.lanes, b.Lanes):
		b.Problem = fmt.Sprintf("a thread of %d lanes, expected one of %v", b.Lanes, g.lanes)
		b.Lanes = 0
		return b
	}
	b.ActiveUnknown = !known
	if known {
		b.ActiveLanes = activeLanes(uint32(mask), b.Lanes)
	}
	pc, ok := t.Registers.Uint64(ip, sdk.LittleEndian)
	if !ok {
		b.Problem = "the PC, register IP, is not among the thread's registers"
	}
	b.PC = pc
	return b
}

// generationOf returns the generation of the thread's processor. Where no known
// one is named, the size of the thread's registers tells it.
func generationOf(t *sdk.ThreadState) *generation {
	if p := processorNamed(t.Processor); p != nil {
		return p.generation
	}
	for i, n := range t.Registers.Numbers {
		if n-r0 >= 256 && n-r256 >= 256 || i+1 >= len(t.Registers.Offsets) {
			continue
		}
		if value, ok := t.Registers.Get(n); ok && len(value) > grf32/8 {
			return wide
		}
	}
	return narrow
}

// lanesOf returns how many lanes a thread has at least, where the target does
// not tell: as many as the narrowest kernels of its processor have, or as many
// as the enabled lanes need. The kernel tells the true number.
func lanesOf(g *generation, mask uint32) uint32 {
	lanes := g.lanes[0]
	for _, n := range g.lanes {
		if lanes < uint32(bits.Len32(mask)) {
			lanes = max(lanes, n)
		}
	}
	return lanes
}

// activeLanes returns the channel-enable mask, one bit a lane. The hardware's
// has 32 channels, whichever the thread's width is.
func activeLanes(mask, lanes uint32) []byte {
	mask &= uint32(uint64(1)<<lanes - 1)
	active := make([]byte, (lanes+7)/8)
	for i := range active {
		active[i] = byte(mask >> (8 * i))
	}
	return active
}
