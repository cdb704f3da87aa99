// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/examples/cuda-core/corefile"
	"github.com/unwindd/unwindd/examples/cuda-core/sass"
)

// The numbers of NVIDIA's headers that this core has.
const (
	driver         = 580
	illegalAddress = 14 // CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS
	application    = 2  // a kernel's type
	active         = 2  // a grid's status
	ready          = 1  // a lane's state
	onBarrier0     = 9
	module         = 0x5581_7d2e_4a10
	contextID      = 0x5581_7d1f_3000
	hostThread     = 2451
)

// describe describes the core of a launch.
func describe(l *launched, cubin, image []byte, start uint64) *corefile.Core {
	d := corefile.Device{
		Name: "NVIDIA H100 80GB HBM3", Type: "GH100", SM: "sm_90", PCIBus: 0x19, SMCount: 132, WarpsPerSM: 64, Lanes: 32, Registers: 255, Predicates: 7,
		Major: 9, InstructionSize: 16, UniformRegisters: 63, UniformPredicates: 7, Barriers: 16,
		Contexts: []corefile.Context{{
			ID: contextID, Shared: 0x7fff_f400_0000, Local: 0x7fff_f200_0000, HostThread: 2440,
			Modules: []corefile.Module{{Handle: module, Relocated: image, Original: cubin}},
		}},
		Grids: []corefile.Grid{{
			ID: 7, Context: contextID, Function: 0x5581_7d2f_0000, Entry: start, Module: module, ParametersAt: parametersAt, Kind: application, Status: active,
			Registers: 24, Blocks: [3]uint32{blocks, 1, 1}, Block: [3]uint32{blockLanes, 1, 1}, HostThread: hostThread, Cluster: [3]uint32{1, 1, 1},
			PreferredCluster: [3]uint32{1, 1, 1}, Parameters: l.constant[parametersAt:], Banks: []corefile.Bank{{Address: constants, Size: uint32(len(l.constant))}}, //nolint:gosec // small
		}},
	}
	for i := range blocks {
		m := corefile.SM{ID: uint32(i), Blocks: []corefile.Block{{Grid: 7, Index: [3]uint32{uint32(i)}, ClusterDim: [3]uint32{1, 1, 1}}}} //nolint:gosec // small
		for j := range blockLanes / 32 {
			w := warp(l.warps[i*blockLanes/32+j], uint32(j), start) //nolint:gosec // small
			if w.HasErrorPC {
				m.Exception, m.HasErrorPC, m.ErrorPC = illegalAddress, true, w.ErrorPC
			}
			if w.Valid != 0 { // else it has ended
				m.Blocks[0].Warps = append(m.Blocks[0].Warps, w)
			}
		}
		d.SMs = append(d.SMs, m)
	}
	return &corefile.Core{
		Driver: driver, Devices: []corefile.Device{d},
		Meta: corefile.Meta{Generator: "unwindd example", Driver: [2]uint32{driver, 65}, CUDA: [2]uint32{13, 0}, SecondsOfEpoch: 1_796_000_000},
		Global: []corefile.Memory{
			{Address: partsAt, Data: l.words(partsAt, count*partWords)},
			{Address: resultsAt, Data: l.words(resultsAt, count)},
			{Address: constants, Data: l.constant},
		},
	}
}

// warp describes a warp.
func warp(w *sass.Warp, id uint32, start uint64) corefile.Warp {
	c := corefile.Warp{ID: id, Registers: 24, CBUActive: 0, Barriers: make([]uint32, 16)}
	var shared *sass.Lane // whose registers stand for the warp
	for i, l := range w.Lanes {
		if l.State == sass.Exited {
			c.CBUExited |= 1 << i
			continue
		}
		c.Valid |= 1 << i
		for j, mask := range l.B {
			c.Barriers[j] |= mask
		}
		if l.State == sass.Faulted || l.State == sass.Ready && (shared == nil || shared.State != sass.Faulted) {
			shared = l
		}
	}
	if c.Valid == 0 {
		return c
	}
	if shared == nil {
		shared = w.Lanes[bits.TrailingZeros32(c.Valid)]
	}
	for i, l := range w.Lanes {
		if l.State == sass.Exited {
			continue
		}
		if l.State == shared.State && slices.Equal(l.Stack(), shared.Stack()) {
			c.Active |= 1 << i
		}
		if l.State == sass.Faulted {
			c.ErrorPC, c.HasErrorPC = start+l.PC, true
		}
		c.Lanes = append(c.Lanes, lane(l, id, start))
	}
	c.CBUActive = c.Active
	c.Uniform = shared.UR[:]
	c.UniformPredicates = flags(shared.UP[:])
	return c
}

// lane describes a lane. That of a fault is an instruction further: the warp went on until it
// waits.
func lane(l *sass.Lane, warp uint32, start uint64) corefile.Lane {
	c := corefile.Lane{
		Number: uint32(l.Number), Thread: [3]uint32{warp*32 + uint32(l.Number)}, State: ready, Predicates: flags(l.P[:]), //nolint:gosec // small
		Registers: l.R[:24], Depth: uint32(len(l.Calls)), //nolint:gosec // small
	}
	stack := pcs(l, start)
	c.PC, c.Offset = stack[0], stack[0]-start
	switch l.State {
	case sass.Waiting:
		c.State = onBarrier0 + uint32(l.Waits) //nolint:gosec // small
	case sass.Faulted:
		c.Exception = illegalAddress
	}
	if top := uint32(len(l.Local)); sass.LocalEnd-l.R[1] <= top { //nolint:gosec // small
		c.LocalStart, c.Local = uint64(l.R[1]), l.Local[top-(sass.LocalEnd-l.R[1]):]
	}
	for i, address := range stack[1:] {
		c.Frames = append(c.Frames, corefile.Frame{Offset: address - start, Address: address, Level: uint32(i)}) //nolint:gosec // small
	}
	return c
}

// pcs are the addresses of the stack of a lane, the innermost first.
func pcs(l *sass.Lane, start uint64) []uint64 {
	stack := l.Stack()
	if l.State == sass.Faulted {
		stack[0] += 16
	}
	for i := range stack {
		stack[i] += start
	}
	return stack
}

func flags(list []bool) []uint32 {
	words := make([]uint32, len(list))
	for i, b := range list {
		if b {
			words[i] = 1
		}
	}
	return words
}
