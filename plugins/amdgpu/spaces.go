// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// The address spaces ("Address Space Identifier", table "AMDGPU DWARF Address
// Space Mapping"; 4 is reserved).
const (
	global      locexpr.AddressSpace = 0 // DW_ASPACE_LLVM_none
	generic     locexpr.AddressSpace = 1
	region      locexpr.AddressSpace = 2
	local       locexpr.AddressSpace = 3
	privateLane locexpr.AddressSpace = 5
	privateWave locexpr.AddressSpace = 6
)

// addressSpaces lists the address spaces. A generic address may be one of a
// lane's private memory, so what it names depends on the lane.
func addressSpaces() []sdk.AddressSpace {
	return []sdk.AddressSpace{
		{Number: global, Name: "global", Bits: 64, Scope: sdk.ProcessScope},
		{Number: generic, Name: "generic", Bits: 64, Scope: sdk.LaneScope},
		{Number: region, Name: "region", Bits: 32, Scope: sdk.AgentScope},
		{Number: local, Name: "local", Bits: 32, Scope: sdk.GroupScope},
		{Number: privateLane, Name: "private_lane", Bits: 32, Scope: sdk.LaneScope},
		{Number: privateWave, Name: "private_wave", Bits: 32, Scope: sdk.WaveScope},
	}
}

const (
	dword = 4
	// segment is the size of a 32-bit address space, and so of its aperture in
	// generic addresses ("Address Spaces", Generic).
	segment = 1 << 32
)

// maps returns the maps of a wave's address spaces.
func maps(lanes uint32, bases []sdk.SpaceBase) []sdk.SpaceMap {
	m := []sdk.SpaceMap{{Space: privateLane, Ranges: []sdk.MapRange{laneRange(lanes)}}}
	if base, ok := baseOf(bases, privateWave); ok {
		m = append(m, sdk.SpaceMap{Space: privateWave, Ranges: []sdk.MapRange{waveRange(base)}})
	}
	if ranges := genericRanges(bases); ranges != nil {
		m = append(m, sdk.SpaceMap{Space: generic, Ranges: ranges})
	}
	return m
}

// laneRange maps a lane's private memory into its wave's: address a of lane l
// is (a/4)*lanes*4 + l*4 + a%4 there ("Address Space Identifier"). There are
// lanes times as many bytes in the wave's, so the addresses end earlier.
func laneRange(lanes uint32) sdk.MapRange {
	return sdk.MapRange{
		Kind: sdk.InterleavedMap, Size: segment / uint64(lanes),
		Into: privateWave, Element: dword, Stride: dword * uint64(lanes),
	}
}

// waveRange maps a wave's private memory into global memory, from base on
// ("Address Spaces", Private).
func waveRange(base uint64) sdk.MapRange {
	return sdk.MapRange{Kind: sdk.IdentityMap, Size: min(segment-1, ^base) + 1, Into: global, Base: base}
}

// genericRanges maps generic addresses: an aperture's addresses into its
// address space, as far as the target tells where the two apertures are, and
// all others into global memory, unchanged ("Address Spaces", Generic). The
// apertures lie outside global memory, so that an unknown one reads as absent
// memory. Impossible apertures give no ranges.
func genericRanges(bases []sdk.SpaceBase) []sdk.MapRange {
	var apertures []sdk.MapRange
	for _, space := range [...]locexpr.AddressSpace{local, privateLane} {
		base, ok := baseOf(bases, space)
		if !ok {
			continue
		}
		if base > ^uint64(segment-1) {
			return nil
		}
		apertures = append(apertures, sdk.MapRange{Kind: sdk.IdentityMap, Start: base, Size: segment, Into: space})
	}
	if len(apertures) == 2 {
		a, b := apertures[0], apertures[1]
		if a.Start > b.Start {
			a, b = b, a
		}
		if b.Start-a.Start < segment {
			return nil
		}
		apertures = []sdk.MapRange{a, b}
	}
	var ranges []sdk.MapRange
	var next uint64 // 0 again where an aperture ends the address space
	for _, a := range apertures {
		if a.Start > next {
			ranges = appendGlobal(ranges, next, a.Start-1)
		}
		ranges = append(ranges, a)
		next = a.Start + segment
	}
	if len(apertures) == 0 || next != 0 {
		ranges = appendGlobal(ranges, next, ^uint64(0))
	}
	return ranges
}

// appendGlobal appends the addresses from first to last, unchanged. A range has
// at most half of all addresses: the size of all does not fit in 64 bits.
func appendGlobal(ranges []sdk.MapRange, first, last uint64) []sdk.MapRange {
	const half = 1 << 63
	if first < half && last >= half {
		ranges = appendGlobal(ranges, first, half-1)
		first = half
	}
	return append(ranges, sdk.MapRange{Kind: sdk.IdentityMap, Start: first, Size: last - first + 1, Into: global, Base: first})
}

// baseOf returns where an address space begins, if the target tells.
func baseOf(bases []sdk.SpaceBase, space locexpr.AddressSpace) (uint64, bool) {
	for _, b := range bases {
		if b.Space == space {
			return b.Base, true
		}
	}
	return 0, false
}
