// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// warpLanes is the number of lanes of a warp.
const warpLanes = 32

// The two forms of cubins: EI_OSABI, the place of the processor in e_flags, and the bit that
// says that the code is for this processor alone ("sm_90a"), as far as compilers set it.
// CUDA 12 writes the first for processors before sm_100, and CUDA 13 the second for all.
var flagForms = [...]struct {
	osabi     uint8
	shift     uint
	arch, own uint32
}{
	{0x33, 0, 0xff, 0x800},
	{0x41, 8, 0xff00, 0x8},
}

// processors are the compute capabilities that compilers of CUDA 11.8 to 13.5 know.
var processors = [...]uint32{
	35, 37, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 107, 110, 120, 121,
}

// firstWide is the first processor whose instructions have 16 bytes; before it they have 8,
// and every fourth word schedules the three behind it.
const firstWide = 70

// processorName returns the name of the processor of a cubin's header; "" where it is none.
func processorName(osabi uint8, flags uint32) string {
	for _, f := range flagForms {
		if f.osabi != osabi {
			continue
		}
		number := flags & f.arch >> f.shift
		if !slices.Contains(processors[:], number) {
			return ""
		}
		if flags&f.own != 0 {
			return fmt.Sprintf("sm_%da", number)
		}
		return fmt.Sprintf("sm_%d", number)
	}
	return ""
}

// processorNumber returns 75 for "sm_75", "sm_75a" and "sm_75f"; 0 for another name.
func processorNumber(name string) uint32 {
	digits, ok := strings.CutPrefix(name, "sm_")
	number, err := strconv.ParseUint(strings.TrimRight(digits, "af"), 10, 16)
	if !ok || err != nil {
		return 0
	}
	return uint32(number)
}

// laneCounts are the lanes of warps, by processor. The two forms of e_flags have no mask in
// common: OpenObject says which processor a cubin is for.
func laneCounts() []sdk.Processor {
	list := []sdk.Processor{{Lanes: []uint32{warpLanes}}}
	for _, number := range processors {
		list = append(list, sdk.Processor{Name: fmt.Sprintf("sm_%d", number), Lanes: []uint32{warpLanes}})
	}
	return list
}
