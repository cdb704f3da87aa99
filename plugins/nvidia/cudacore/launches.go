// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"fmt"
	"math"
	"strconv"

	"github.com/unwindd/unwindd/sdk"
)

// ofDevice is the ID of a grid or a context of a device.
type ofDevice struct {
	device uint32
	id     uint64
}

// addLaunches adds devices as agents, contexts as queues and grids as dispatches.
func (r *reader) addLaunches() {
	for i := range r.devices {
		d := &r.devices[i]
		id := r.unique("device " + strconv.FormatUint(uint64(d.id), 10))
		if d.status != 0 {
			r.problems.add("the driver could not dump all of device %d (%s): its status is %d, expected 0", d.id, d.name, d.status)
		}
		if !r.machine.IsKnown(d.processor) {
			r.problems.add("device %d (%s) is of %q, which is not known: it is read like the others", d.id, d.name, d.processor)
		}
		id = id[len("device "):]
		r.agents = append(r.agents, id)
		r.processors = append(r.processors, d.processor)
		r.answer.Agents = append(r.answer.Agents, sdk.TargetAgent{ID: id, Processor: d.processor})
	}
	r.queues = make([]string, len(r.contexts))
	r.contextIndex = map[ofDevice]uint32{}
	for i := range r.devices {
		for _, c := range r.children(r.devices[i].contexts) {
			r.addContext(uint32(i), c) //nolint:gosec // an index
		}
	}
	r.gridIndex = map[ofDevice]uint32{}
	r.gridMemory = make([][]sdk.SpaceMemory, len(r.grids))
	r.answer.Dispatches = make([]sdk.TargetDispatch, len(r.grids))
	for i := range r.grids {
		r.addGrid(uint32(i)) //nolint:gosec // an index
	}
}

func (r *reader) addContext(device, i uint32) {
	c := &r.contexts[i]
	key := ofDevice{device, c.id}
	if _, ok := r.contextIndex[key]; ok {
		r.problems.add("context %#x of device %d has more than one row in .cudbg.ctxtbl: the first is used", c.id, r.devices[device].id)
		return
	}
	r.contextIndex[key] = i
	r.queues[i] = strconv.Itoa(len(r.answer.Queues) + 1)
	r.answer.Queues = append(r.answer.Queues, sdk.TargetQueue{
		ID: r.queues[i], Agent: r.agents[device], Kind: fmt.Sprintf("context %#x of host thread %d", c.id, c.thread),
	})
}

// contextOf finds a context by its device and its ID.
func (r *reader) contextOf(device uint32, id uint64) (i uint32, ok bool) {
	i, ok = r.contextIndex[ofDevice{device, id}]
	return i, ok
}

// gridOf finds a grid by its device and its ID.
func (r *reader) gridOf(device uint32, id uint64) (i uint32, ok bool) {
	i, ok = r.gridIndex[ofDevice{device, id}]
	return i, ok
}

func (r *reader) addGrid(i uint32) {
	g := &r.grids[i]
	key := ofDevice{g.device, g.id}
	if _, ok := r.gridIndex[key]; ok {
		r.problems.add("grid %d of device %d has more than one row in .cudbg.gridtbl: the first is used", g.id, r.devices[g.device].id)
		return
	}
	r.gridIndex[key] = i
	d := &r.answer.Dispatches[i]
	name := strconv.FormatUint(g.id, 10)
	if len(r.devices) > 1 {
		name = r.agents[g.device] + ":" + name // each device counts its own
	}
	d.ID = r.unique("grid " + name)[len("grid "):]
	d.Entry, d.Kernel = g.entry, r.kernels[kernel{g.module, g.entry}]
	d.Group = g.block
	for j := range d.Grid {
		d.Grid[j] = times(g.blocks[j], g.block[j])
	}
	if c, ok := r.contextOf(g.device, g.context); ok {
		d.Queue = r.queues[c]
	} else {
		r.problems.add("grid %d belongs to context %#x, which has no row in .cudbg.ctxtbl", g.id, g.context)
	}
	r.gridMemory[i] = r.memoryOf(g)
}

// times is a product, or 0, which stands for unknown.
func times(a, b uint32) uint32 {
	if n := uint64(a) * uint64(b); n <= math.MaxUint32 {
		return uint32(n)
	}
	return 0
}

// maxBanks bounds the constant banks of a grid.
const maxBanks = 32

// memoryOf returns where the parameters and the constant banks of a grid are. The banks are
// in global memory.
func (r *reader) memoryOf(g *grid) (memory []sdk.SpaceMemory) {
	if s := &r.sections[g.parameters]; g.parameters != 0 && s.size > 0 && !fits(g.parametersAt, s.size) {
		r.problems.add("grid %d has %#x bytes of parameters at offset %#x of constant bank 0, expected some within 32 bits: they are left out", g.id, s.size, g.parametersAt)
	} else if g.parameters != 0 && s.size > 0 {
		memory = append(memory, sdk.SpaceMemory{Space: r.machine.Parameters, Start: g.parametersAt, Size: s.size, Address: s.offset, Into: sdk.FileSpace})
	}
	if g.banks == 0 {
		return memory
	}
	for n, i := range r.children(g.banks) {
		b := &r.banks[i]
		switch {
		case b.size == 0:
		case n >= maxBanks:
			r.problems.add("grid %d has more than %d constant banks: the others are left out", g.id, maxBanks)
			return memory
		case b.address > math.MaxUint64-uint64(b.size):
			r.problems.add("constant bank %d of grid %d has %#x bytes at %#x, which pass the end of the address space: it is left out", b.bank, g.id, b.size, b.address)
		default:
			memory = append(memory, sdk.SpaceMemory{Space: r.machine.Const, Start: b.address, Size: uint64(b.size), Address: b.address})
		}
	}
	return memory
}
