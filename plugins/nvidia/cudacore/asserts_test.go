// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/examples/cuda-core/corefile"
)

// TestAsserts has the arguments of a failed assertion in a lane's registers, and then in them
// something else: nothing is said of which one failed.
func TestAsserts(t *testing.T) {
	const at = 0x7f00_0000_1000
	text := []byte("count > 0\x00/src/parts.cu\x00void grade(int)\x00\x01\x02")
	const wantText = "/src/parts.cu:41: void grade(int): count > 0 (by its argument registers)"
	registers := func(message, file, function uint32) []uint32 {
		return []uint32{0, 0, 0, 0, at&0xffff_ffff + message, at >> 32, at&0xffff_ffff + file, at >> 32, 41, 0, at&0xffff_ffff + function, at >> 32}
	}
	for _, test := range []struct {
		name      string
		registers []uint32
		want      bool
	}{
		{"the arguments", registers(0, 10, 24), true},
		{"no text", registers(0, 10, 41), false},
		{"an empty text", registers(9, 10, 24), false},
		{"no memory", registers(0, 10, 1<<20), false},
		{"fewer registers", registers(0, 10, 24)[:11], false},
	} {
		core := corefile.Core{Driver: 575, Global: []corefile.Memory{{Address: at, Data: text}}, Devices: []corefile.Device{{
			SM: "sm_90", Contexts: []corefile.Context{{ID: 1}}, Grids: []corefile.Grid{{ID: 1, Context: 1}},
			SMs: []corefile.SM{{Blocks: []corefile.Block{{Grid: 1, Warps: []corefile.Warp{{
				Valid: 1, Lanes: []corefile.Lane{{PC: lanePC, Exception: 12, Registers: test.registers}},
			}}}}}},
		}}}
		a := readCore(t, core.Build().Bytes())
		details := a.Threads[0].Stop.Details
		if slices.Contains(details, wantText) != test.want || !test.want && strings.Contains(strings.Join(details, ""), "argument") {
			t.Errorf("%s: details %q", test.name, details)
		}
	}
}
