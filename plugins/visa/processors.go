package visa

import (
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// A generation is what processors have in common.
type generation struct {
	grf   uint32   // bits of a GRF register
	lanes []uint32 // SIMD widths of kernels, the narrowest that compilers choose first; 1 is that of explicitly vectorised ones
}

var (
	narrow = &generation{grf: grf32, lanes: []uint32{8, 16, 32, 1}}
	wide   = &generation{grf: grf64, lanes: []uint32{16, 32, 1}}
)

// A processor is one that compilers know by name.
type processor struct {
	name string
	*generation
}

// processors are those that ocloc's -device and GenX_IR's -platform name.
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
	{"tgl", narrow},
	{"tgllp", narrow},
	{"rkl", narrow},
	{"adl", narrow},
	{"adls", narrow},
	{"adlp", narrow},
	{"adln", narrow},
	{"dg1", narrow},
	{"dg2", narrow},
	{"dg2-g10", narrow},
	{"dg2-g11", narrow},
	{"dg2-g12", narrow},
	{"acm-g10", narrow},
	{"acm-g11", narrow},
	{"acm-g12", narrow},
	{"ats-m75", narrow},
	{"ats-m150", narrow},
	{"mtl", narrow},
	{"mtl-h", narrow},
	{"mtl-s", narrow},
	{"mtl-m", narrow},
	{"mtl-p", narrow},
	{"mtl-u", narrow},
	{"arl-h", narrow},
	{"arl-s", narrow},
	{"arl-u", narrow},
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
