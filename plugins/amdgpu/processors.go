// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"slices"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

// scratchMethod is a method by which code reaches private memory ("Kernel
// Prolog", Flat Scratch).
type scratchMethod uint8

const (
	absoluteScratch    scratchMethod = iota // FLAT_SCRATCH has an address that the prologue sets; SGPR32 counts the wave's bytes
	architectedScratch                      // the hardware sets it; SGPR32 counts a lane's bytes
)

// generation has the properties that processors share.
type generation struct {
	lanes            []uint32 // wave sizes, the usual one first
	scratch          scratchMethod
	sgprs            uint32 // how many scalar registers an instruction can name, VCC not counted
	vgprs            uint32 // how many vector registers a wave can have
	agprs            uint32 // how many accumulation registers besides
	hasAlignedTuples bool   // tuples of vector registers begin at even ones
}

var (
	only64   = []uint32{wave64}
	only32   = []uint32{wave32}
	mostly32 = []uint32{wave32, wave64}

	gfx9   = &generation{lanes: only64, scratch: absoluteScratch, sgprs: 102, vgprs: 256}
	gfx908 = &generation{lanes: only64, scratch: absoluteScratch, sgprs: 102, vgprs: 256, agprs: 256}
	gfx90a = &generation{lanes: only64, scratch: absoluteScratch, sgprs: 102, vgprs: 256, agprs: 256, hasAlignedTuples: true}
	gfx94  = &generation{lanes: only64, scratch: architectedScratch, sgprs: 102, vgprs: 256, agprs: 256, hasAlignedTuples: true}
	gfx10  = &generation{lanes: mostly32, scratch: absoluteScratch, sgprs: 106, vgprs: 256}
	gfx11  = &generation{lanes: mostly32, scratch: architectedScratch, sgprs: 106, vgprs: 256}
	gfx12  = gfx11
	gfx125 = &generation{lanes: only32, scratch: architectedScratch, sgprs: 106, vgprs: 1024, hasAlignedTuples: true}
)

// processor is a processor that compilers know by name.
type processor struct {
	name string
	flag uint32 // EF_AMDGPU_MACH of the ELF header's flags
	*generation
}

// canRun reports whether the processor has waves of a size.
func (p *processor) canRun(lanes uint32) bool { return slices.Contains(p.lanes, lanes) }

// hasVector reports whether waves can have a vector register or accumulation register.
func (p *processor) hasVector(vector place) bool {
	if vector >= agprs {
		return uint32(vector-agprs) < p.agprs //nolint:gosec // below vectors
	}
	return uint32(vector) < p.vgprs //nolint:gosec // below vectors
}

// processors are the processors of gfx9 to gfx12 ("Processors"; "ELF Code
// Object", e_flags).
var processors = [...]processor{
	{"gfx900", 0x2c, gfx9},
	{"gfx902", 0x2d, gfx9},
	{"gfx904", 0x2e, gfx9},
	{"gfx906", 0x2f, gfx9},
	{"gfx908", 0x30, gfx908},
	{"gfx909", 0x31, gfx9},
	{"gfx90a", 0x3f, gfx90a},
	{"gfx90c", 0x32, gfx9},
	{"gfx9-generic", 0x51, gfx9},
	{"gfx940", 0x40, gfx94},
	{"gfx941", 0x4b, gfx94},
	{"gfx942", 0x4c, gfx94},
	{"gfx950", 0x4f, gfx94},
	{"gfx9-4-generic", 0x5f, gfx94},
	{"gfx1010", 0x33, gfx10},
	{"gfx1011", 0x34, gfx10},
	{"gfx1012", 0x35, gfx10},
	{"gfx1013", 0x42, gfx10},
	{"gfx10-1-generic", 0x52, gfx10},
	{"gfx1030", 0x36, gfx10},
	{"gfx1031", 0x37, gfx10},
	{"gfx1032", 0x38, gfx10},
	{"gfx1033", 0x39, gfx10},
	{"gfx1034", 0x3e, gfx10},
	{"gfx1035", 0x3d, gfx10},
	{"gfx1036", 0x45, gfx10},
	{"gfx10-3-generic", 0x53, gfx10},
	{"gfx1100", 0x41, gfx11},
	{"gfx1101", 0x46, gfx11},
	{"gfx1102", 0x47, gfx11},
	{"gfx1103", 0x44, gfx11},
	{"gfx1150", 0x43, gfx11},
	{"gfx1151", 0x4a, gfx11},
	{"gfx1152", 0x55, gfx11},
	{"gfx1153", 0x58, gfx11},
	{"gfx1154", 0x57, gfx11},
	{"gfx1170", 0x5d, gfx11},
	{"gfx1171", 0x5e, gfx11},
	{"gfx1172", 0x5c, gfx11},
	{"gfx11-generic", 0x54, gfx11},
	{"gfx1200", 0x48, gfx12},
	{"gfx1201", 0x4e, gfx12},
	{"gfx12-generic", 0x59, gfx12},
	{"gfx1250", 0x49, gfx125},
	{"gfx1251", 0x5a, gfx125},
	{"gfx12-5-generic", 0x5b, gfx125},
}

const mach = 0xff // EF_AMDGPU_MACH, of an ELF header's flags

// processorOf returns the processor of an ELF header's flags, or nil.
func processorOf(flags uint32) *processor {
	for i := range processors {
		if processors[i].flag == flags&mach {
			return &processors[i]
		}
	}
	return nil
}

// processorNamed returns the processor of a name or a target ID
// ("gfx90a:xnack+"), in any case, or nil.
func processorNamed(name string) *processor {
	name, _, _ = strings.Cut(name, ":")
	for i := range processors {
		if strings.EqualFold(processors[i].name, name) {
			return &processors[i]
		}
	}
	return nil
}

// usualLanes returns the wave size of processors that are not in the table: 32
// from gfx10 on, else 64. Compilers take it where they are told none.
func usualLanes(name string) uint32 {
	name, _, _ = strings.Cut(strings.ToLower(name), ":")
	if digits, ok := strings.CutPrefix(name, "gfx1"); ok && len(digits) > 0 && '0' <= digits[0] && digits[0] <= '9' {
		return wave32
	}
	return wave64
}

// laneCounts are the wave sizes, by processor.
func laneCounts() []sdk.Processor {
	list := []sdk.Processor{{Lanes: []uint32{wave64, wave32}}}
	for i := range processors {
		list = append(list, sdk.Processor{
			Name: processors[i].name, Lanes: slices.Clone(processors[i].lanes), FlagsMask: mach, Flags: processors[i].flag,
		})
	}
	return list
}
