// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// generation has the properties that processors share.
type generation struct {
	grf   uint32 // bits of a GRF register
	unit  uint64 // bytes that stack and frame pointers count
	code  *encoding
	lanes []uint32 // SIMD widths of kernels, the narrowest that compilers choose first; 1 is the width of explicitly vectorised ones
}

var (
	narrow = &generation{grf: grf32, unit: owordUnit, code: &encodings[0], lanes: []uint32{8, 16, 32, 1}}
	gen12  = &generation{grf: grf32, unit: owordUnit, code: &encodings[1], lanes: []uint32{8, 16, 32, 1}}
	dg2    = &generation{grf: grf32, unit: byteUnit, code: &encodings[1], lanes: []uint32{8, 16, 32, 1}}
	wide   = &generation{grf: grf64, unit: byteUnit, code: &encodings[2], lanes: []uint32{16, 32, 1}}
)

// processor is a processor that compilers know by name.
type processor struct {
	name string
	*generation
}

// processors are the processors that ocloc's -device and GenX_IR's -platform
// name.
var processors = [...]processor{
	{"bdw", narrow},
	{"skl", narrow},
	{"kbl", narrow},
	{"cfl", narrow},
	{"apl", narrow},
	{"bxt", narrow},
	{"glk", narrow},
	{"whl", narrow},
	{"aml", narrow},
	{"cml", narrow},
	{"icl", narrow},
	{"icllp", narrow},
	{"ehl", narrow},
	{"jsl", narrow},
	{"lkf", narrow},
	{"tgl", gen12},
	{"tgllp", gen12},
	{"rkl", gen12},
	{"adl", gen12},
	{"adls", gen12},
	{"adlp", gen12},
	{"adln", gen12},
	{"dg1", gen12},
	{"dg2", dg2},
	{"dg2-g10", dg2},
	{"dg2-g11", dg2},
	{"dg2-g12", dg2},
	{"acm-g10", dg2},
	{"acm-g11", dg2},
	{"acm-g12", dg2},
	{"ats-m75", dg2},
	{"ats-m150", dg2},
	{"mtl", dg2},
	{"mtl-h", dg2},
	{"mtl-s", dg2},
	{"mtl-m", dg2},
	{"mtl-p", dg2},
	{"mtl-u", dg2},
	{"arl-h", dg2},
	{"arl-s", dg2},
	{"arl-u", dg2},
	{"pvc", wide},
	{"pvc-sdv", wide},
	{"pvc-vg", wide},
	{"pvc-xl", wide},
	{"pvc-xt", wide},
	{"xe2", wide},
	{"lnl", wide},
	{"lnl-m", wide},
	{"bmg", wide},
	{"bmg-g21", wide},
	{"bmg-g31", wide},
	{"xe3", wide},
	{"ptl", wide},
	{"ptl-h", wide},
	{"ptl-u", wide},
}

// processorNamed returns the processor of a name, in any case, or nil.
func processorNamed(name string) *processor {
	for i := range processors {
		if strings.EqualFold(processors[i].name, name) {
			return &processors[i]
		}
	}
	return nil
}

// laneCounts are the SIMD widths, by processor.
func laneCounts() []sdk.Processor {
	list := []sdk.Processor{{Lanes: slices.Clone(narrow.lanes)}}
	for i := range processors {
		list = append(list, sdk.Processor{Name: processors[i].name, Lanes: slices.Clone(processors[i].lanes)})
	}
	return list
}
