// SPDX-License-Identifier: Apache-2.0

package nvidia

import (
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// The address spaces. They have the numbers of DW_AT_address_class in compilers' debug
// information (enum CUDBGPtxStorage), except generic addresses, which are the default:
// pointers of CUDA C++ are generic.
const (
	generic  locexpr.AddressSpace = 0
	constant locexpr.AddressSpace = 4
	global   locexpr.AddressSpace = 5
	local    locexpr.AddressSpace = 6
	param    locexpr.AddressSpace = 7
	shared   locexpr.AddressSpace = 8
)

// addressSpaces lists the address spaces.
func addressSpaces() []sdk.AddressSpace {
	return []sdk.AddressSpace{
		{Number: generic, Name: "generic", Bits: 64, Scope: sdk.LaneScope},
		{Number: constant, Name: "const", Bits: 64, Scope: sdk.GroupScope},
		{Number: global, Name: "global", Bits: 64, Scope: sdk.ProcessScope},
		{Number: local, Name: "local", Bits: 32, Scope: sdk.LaneScope},
		{Number: param, Name: "param", Bits: 32, Scope: sdk.GroupScope},
		{Number: shared, Name: "shared", Bits: 32, Scope: sdk.GroupScope},
	}
}

// addressClasses are the classes of memory. Class 12 is of generic addresses, and class 0 is
// the absence of one; classes 2 and 3 are of registers.
func addressClasses() []sdk.AddressClass {
	list := []sdk.AddressClass{{Class: 12, Space: generic}}
	for _, s := range addressSpaces() {
		if s.Number != generic {
			list = append(list, sdk.AddressClass{Class: uint64(s.Number), Space: s.Number})
		}
	}
	return list
}

// window is the size of the part of generic addresses that leads to shared memory, and of
// that which leads to local memory.
const window = 16 << 20

// half is the most addresses that one range of a map has: the size of all does not fit in
// 64 bits.
const half = 1 << 63

// maps maps generic addresses in the windows of shared and local memory, as far as the
// target has their bases, into these spaces. All other generic addresses are memory of the
// target, and so are global ones.
func maps(bases []sdk.SpaceBase) []sdk.SpaceMap {
	list := []sdk.SpaceMap{{Space: global, Ranges: []sdk.MapRange{
		{Kind: sdk.IdentityMap, Start: 0, Size: half, Into: generic},
		{Kind: sdk.IdentityMap, Start: half, Size: half, Into: generic, Base: half},
	}}}
	var windows []sdk.MapRange
	for _, b := range bases {
		if b.Space != shared && b.Space != local || b.Base == 0 || b.Base > ^uint64(window-1) {
			continue
		}
		windows = append(windows, sdk.MapRange{Kind: sdk.IdentityMap, Start: b.Base, Size: window, Into: b.Space})
	}
	if len(windows) == 2 && windows[0].Start > windows[1].Start {
		windows[0], windows[1] = windows[1], windows[0]
	}
	if len(windows) == 0 || len(windows) == 2 && windows[1].Start-windows[0].Start < window {
		return list
	}
	return append(list, sdk.SpaceMap{Space: generic, Ranges: windows})
}
