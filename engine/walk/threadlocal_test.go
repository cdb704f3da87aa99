// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"errors"
	"testing"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/sdk"
)

// TestBlocksByVariant has the layouts of x86-64, AArch64 and RISC-V.
func TestBlocksByVariant(t *testing.T) {
	two := &sdk.ThreadLocal{Variant: sdk.ThreadLocalVariantII}
	above := &sdk.ThreadLocal{TCBAbove: 16}
	below := &sdk.ThreadLocal{TCBBelow: 16}
	const pointer = 0x10000
	for _, c := range []struct {
		abi         *sdk.ThreadLocal
		align, want uint64
	}{{two, 8, pointer - 0x18}, {two, 32, pointer - 0x20}, {above, 8, pointer + 16}, {above, 64, pointer + 64}, {below, 64, pointer}} {
		segment := &object.Program{}
		segment.Align, segment.MemSize = c.align, 0x14
		if got, err := executableBlock(c.abi, segment, pointer); err != nil || got != c.want {
			t.Errorf("%+v, alignment %d: %#x %v, expected %#x", *c.abi, c.align, got, err, c.want)
		}
	}
	for _, c := range []struct {
		abi            *sdk.ThreadLocal
		distance, want uint64 // 0: not allocated
	}{
		{two, 0x40, pointer - 0x40}, {two, 0, 0}, {two, ^uint64(0), 0},
		{above, 0x40, pointer + 0x40}, {above, 0, 0}, {above, ^uint64(0), 0},
		{below, 0, pointer}, {below, ^uint64(0), 0}, {below, ^uint64(1), 0},
	} {
		got, err := fixedBlock(c.abi, pointer, c.distance)
		if got != c.want || errors.Is(err, errNotAllocated) != (c.want == 0) {
			t.Errorf("%+v, distance %#x: %#x %v, expected %#x", *c.abi, c.distance, got, err, c.want)
		}
	}
}
