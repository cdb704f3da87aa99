// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
	"github.com/unwindd/unwindd/sdk"
)

// The wave sizes.
const (
	wave32 = 32
	wave64 = 64
)

// DWARF register numbers ("Register Identifier", table "AMDGPU DWARF Register
// Mapping"). PC_32 belongs to 32-bit processes, for which no compiler for
// amdgcn exists.
const (
	pc32     uint32 = 0
	exec32   uint32 = 1
	pc64     uint32 = 16
	exec64   uint32 = 17
	sgpr0    uint32 = 32 // to SGPR63, 95
	status   uint32 = 128
	vcc32    uint32 = 512
	vcc64    uint32 = 768
	sgpr64   uint32 = 1088 // to SGPR105, 1129
	vgpr0w32 uint32 = 1536 // to VGPR511, 2047
	agpr0w32 uint32 = 2048 // to AGPR255, 2303
	vgpr0w64 uint32 = 2560 // to VGPR255, 2815
	agpr0w64 uint32 = 3072 // to AGPR255, 3327
	vgpr512  uint32 = 3584 // to VGPR1023, 4095
)

// registerRanges lists every register under the guide's name, and under the
// assembler's or the guide's longer one besides. A register with a number for
// each wave size has one name; the ranges of 64 lanes come first, so that the
// name is theirs where the number of lanes is not known, as with compilers that
// are told no processor.
func registerRanges() []sdk.RegisterRange {
	const bits32, bits64 = wave32 * 32, wave64 * 32 // of vector registers
	files := [...]struct {
		first, count uint32
		name, alias  string
		index        uint32 // of the first register
		class        sdk.RegisterClass
		bits, lanes  uint32
	}{
		{pc32, 1, "PC_32", "", 0, sdk.ProgramCounter, 32, 0},
		{pc64, 1, "PC", "PC_64", 0, sdk.ProgramCounter, 64, 0},
		{exec64, 1, "EXEC", "EXEC_MASK_64", 0, sdk.Mask, 64, wave64},
		{exec32, 1, "EXEC", "EXEC_MASK_32", 0, sdk.Mask, 32, wave32},
		{sgpr0, 64, "SGPR%d", "s%d", 0, sdk.General, 32, 0},
		{sgpr64, 42, "SGPR%d", "s%d", 64, sdk.General, 32, 0},
		{status, 1, "STATUS", "", 0, sdk.Control, 32, 0},
		{vcc64, 1, "VCC", "VCC_64", 0, sdk.Flags, 64, wave64},
		{vcc32, 1, "VCC", "VCC_32", 0, sdk.Flags, 32, wave32},
		{vgpr0w64, 256, "VGPR%d", "v%d", 0, sdk.Vector, bits64, wave64},
		{agpr0w64, 256, "AGPR%d", "a%d", 0, sdk.Vector, bits64, wave64},
		{vgpr0w32, 512, "VGPR%d", "v%d", 0, sdk.Vector, bits32, wave32},
		{vgpr512, 512, "VGPR%d", "v%d", 512, sdk.Vector, bits32, wave32},
		{agpr0w32, 256, "AGPR%d", "a%d", 0, sdk.Vector, bits32, wave32},
	}
	ranges := make([]sdk.RegisterRange, len(files))
	for i, f := range files {
		ranges[i] = sdk.RegisterRange{
			First: f.first, Count: f.count, Names: []string{f.name}, FirstIndex: f.index,
			Class: f.class, Bits: f.bits, Lanes: f.lanes,
		}
		if f.alias != "" {
			ranges[i].Aliases = []string{f.alias}
		}
	}
	return ranges
}

// rangesByNumber returns the register ranges in the order of their numbers.
func rangesByNumber() []sdk.RegisterRange {
	ranges := registerRanges()
	slices.SortFunc(ranges, func(a, b sdk.RegisterRange) int { return cmp.Compare(a.First, b.First) })
	return ranges
}

const noColumn = ^uint32(0)

// dwarfScalar returns the DWARF number of a scalar register.
func dwarfScalar(r isa.Reg) uint32 {
	switch {
	case r < 64:
		return sgpr0 + uint32(r)
	case r < namedScalars:
		return sgpr64 + uint32(r) - 64
	}
	return noColumn
}

// dwarfHalf returns the DWARF number of EXEC or VCC by one of their halves, and the
// offset of that half in bytes.
func dwarfHalf(r isa.Reg, lanes uint32) (column uint32, offset int64) {
	columns := [2]uint32{vcc32, vcc64}
	if r >= isa.ExecLo {
		columns = [2]uint32{exec32, exec64}
	}
	return columns[lanes/wave64], int64(r&1) * 4
}

// dwarfVector returns the DWARF number of a vector register in waves of a
// size.
func dwarfVector(p place, lanes uint32) uint32 {
	i := uint32(p) //nolint:gosec // below vectors
	switch {
	case i >= agprs && lanes == wave64:
		return agpr0w64 + i - agprs
	case i >= agprs:
		return agpr0w32 + i - agprs
	case lanes == wave32 && i >= 512:
		return vgpr512 + i - 512
	case lanes == wave32:
		return vgpr0w32 + i
	case i < 256:
		return vgpr0w64 + i
	}
	return noColumn
}
