// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/sdk"
)

// TestPlannedPlaces: each lane has the place that its bits of the masks choose, and none has one
// where a mask cannot be read.
func TestPlannedPlaces(t *testing.T) {
	const execMask, sgpr0, sgpr1 = 17, 32, 33
	here, there := lanePlace{placed, 0x100}, lanePlace{placed, 0x200}
	plan := placesPlan{{
		mask: []uint64{execMask}, set: &laneChoice{place: here},
		clear: &laneChoice{mask: []uint64{sgpr0, sgpr1}, set: &laneChoice{place: there}, clear: &laneChoice{place: lanePlace{kind: absent}}},
	}}
	for range 1000 {
		exec, saved := rand.Uint64(), rand.Uint64()
		var regs sdk.Registers
		regs.Set(execMask, binary.LittleEndian.AppendUint64(nil, exec))
		regs.Set(sgpr0, binary.LittleEndian.AppendUint32(nil, uint32(saved)))
		f := &frame{walker: &walker{
			machine: &machine{Machine: &code.Machine{Description: amdgpu.Description()}},
			thread:  &thread{Thread: &trace.Thread{Registers: regs}},
		}}
		places := make([]lanePlace, 64)
		if plan.assign(f, places) {
			t.Fatal("places without a register of a mask")
		}
		regs.Set(sgpr1, binary.LittleEndian.AppendUint32(nil, uint32(saved>>32)))
		f.walker.thread.Registers = regs
		if !plan.assign(f, places) {
			t.Fatal("a register of a mask cannot be read")
		}
		for lane, got := range places {
			want := lanePlace{kind: absent}
			switch {
			case exec>>lane&1 != 0:
				want = here
			case saved>>lane&1 != 0:
				want = there
			}
			if got != want {
				t.Fatalf("EXEC %#x, saved %#x: lane %d at %+v, expected %+v", exec, saved, lane, got, want)
			}
		}
	}
}
