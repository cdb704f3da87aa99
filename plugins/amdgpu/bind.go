// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

// bind describes a wave by its registers and its processor.
func bind(t *sdk.ThreadState) sdk.ThreadBinding {
	var b sdk.ThreadBinding
	b.Lanes, b.Problem = lanesOf(t)
	if b.Problem != "" {
		return b
	}
	pc, ok := t.Registers.Uint64(pc64, sdk.LittleEndian)
	if !ok {
		b.Problem = "the PC, register PC, is not among the wave's registers"
	}
	b.PC = pc
	b.ActiveLanes = activeLanes(&t.Registers, b.Lanes)
	b.ActiveUnknown = b.ActiveLanes == nil
	b.Maps = maps(b.Lanes, t.Spaces)
	return b
}

// lanesOf returns how many lanes a wave has: the target's number, else the
// size that its registers prove (vector registers before masks), else the
// usual size of its processor.
func lanesOf(t *sdk.ThreadState) (lanes uint32, problem string) {
	p := processorNamed(t.Processor)
	lanes, why := t.Lanes, "the target says so"
	if lanes == 0 {
		lanes, why = lanesByRegisters(&t.Registers), "its registers are of that size"
	}
	switch {
	case lanes == 0 && p != nil:
		return p.lanes[0], ""
	case lanes == 0:
		return usualLanes(t.Processor), ""
	case lanes != wave32 && lanes != wave64:
		return 0, fmt.Sprintf("a wave of %d lanes (%s), expected 32 or 64", lanes, why)
	case p != nil && !p.canRun(lanes):
		return 0, fmt.Sprintf("a wave of %d lanes (%s), but those of %s have %d", lanes, why, p.name, p.lanes[0])
	}
	return lanes, ""
}

// lanesByRegisters returns the wave size that registers prove; 0 where there
// are registers of both sizes or of neither.
func lanesByRegisters(r *sdk.Registers) uint32 {
	for _, files := range [][]registerFile{vectorFiles, maskFiles} {
		var found [2]bool
		for _, f := range files {
			if hasValue(r, f.first, f.count) {
				found[f.lanes/wave64] = true
			}
		}
		switch found {
		case [2]bool{true, false}:
			return wave32
		case [2]bool{false, true}:
			return wave64
		}
	}
	return 0
}

// registerFile is a range of registers that waves of one size have.
type registerFile struct{ first, count, lanes uint32 }

var vectorFiles, maskFiles = func() (vectors, masks []registerFile) {
	for _, r := range registerRanges() {
		f := registerFile{r.First, r.Count, r.Lanes}
		switch {
		case r.Lanes == 0:
		case r.Class == sdk.Vector:
			vectors = append(vectors, f)
		default:
			masks = append(masks, f)
		}
	}
	return vectors, masks
}()

// activeLanes returns the execution mask, one bit a lane; nil where the
// registers do not hold all of it. In a wave of 32 lanes it is the low half of
// the 64-bit register.
func activeLanes(r *sdk.Registers, lanes uint32) []byte {
	own, other := exec64, exec32
	if lanes == wave32 {
		own, other = exec32, exec64
	}
	size := int(lanes / 8)
	for _, number := range [...]uint32{own, other} {
		if value, ok := r.Get(number); ok && len(value) >= size {
			return append([]byte(nil), value[:size]...)
		}
	}
	return nil
}
