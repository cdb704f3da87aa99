// SPDX-License-Identifier: Apache-2.0

package cudacore

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

const (
	warpsOfBatch = 64
	maxThreads   = 1 << 18
	maxCallers   = 1 << 23 // of all threads
)

// readThreads adds the threads of all warps, in the order of their devices, SMs, blocks and
// rows, and one for each SM with an exception that has no warp left.
func (r *reader) readThreads(ctx context.Context) error {
	r.reported = make([]bool, len(r.sms))
	defer func() { r.answer.Threads = slices.Concat(r.threadParts...) }()
	for d := range r.devices {
		for _, m := range r.children(r.devices[d].sms) {
			var warps []uint32
			for _, b := range r.children(r.sms[m].blocks) {
				warps = append(warps, r.children(r.blocks[b].warps)...)
			}
			before := r.threads
			for len(warps) > 0 {
				n := min(len(warps), warpsOfBatch)
				if err := r.readWarps(ctx, warps[:n]); err != nil {
					return err
				}
				warps = warps[n:]
			}
			if r.sms[m].exception != 0 {
				r.sayException(m, r.threads > before)
			}
		}
	}
	if r.left > 0 {
		r.problems.add("there are more than %d threads, or %d recorded callers, in all: %d threads are left out", maxThreads, maxCallers, r.left)
	}
	return nil
}

// threadsOfPart is how many threads are kept in one array. A list that grows would be copied
// again and again: there are many, and they are large.
const threadsOfPart = 1 << 10

// addThread adds a thread to the last part of the list.
func (r *reader) addThread(t *sdk.TargetThread) {
	last := len(r.threadParts) - 1
	if r.threads%threadsOfPart == 0 {
		r.threadParts, last = append(r.threadParts, make([]sdk.TargetThread, 0, threadsOfPart)), last+1
	}
	r.threadParts[last] = append(r.threadParts[last], *t)
	r.threads++
}

// children are the rows of a table.
func (r *reader) children(section uint32) []uint32 {
	if section == 0 {
		return nil
	}
	span := r.rows[section]
	list := make([]uint32, span.count)
	for i := range list {
		list[i] = span.first + uint32(i) //nolint:gosec // an index
	}
	return list
}

// readWarps adds the threads of some warps of one SM.
func (r *reader) readWarps(ctx context.Context, list []uint32) error {
	warps, parts, owners := r.batch[:len(list)], r.parts[:0], r.owners[:0]
	for i, w := range list {
		r.findLanes(w, &warps[i])
		for j, l := range warps[i].lanes {
			if l == nil || l.frames == 0 {
				continue
			}
			if count, ok := r.countRows(l.frames, maxFrames); ok {
				s := &r.sections[l.frames]
				parts = append(parts, part{s.offset, uint64(count) * uint64(s.entry)}) //nolint:gosec // at most maxFrames
				owners = append(owners, i*lanesOfWarp+j)
			}
		}
	}
	r.parts, r.owners = parts, owners
	err := r.file.readAll(ctx, parts, func(k int, data []byte, err error) {
		w := &warps[owners[k]/lanesOfWarp]
		section := w.lanes[owners[k]%lanesOfWarp].frames
		if err != nil {
			r.problems.add("section %d (.cudbg.bt): %v", section, err)
			return
		}
		w.callers[owners[k]%lanesOfWarp] = framesOf(data, int(r.sections[section].entry))
	})
	for i := range warps {
		r.addWarp(&warps[i])
	}
	return err
}

// addWarp adds the threads of a warp: one for each group of its lanes.
func (r *reader) addWarp(w *warpLanes) {
	groups := r.groups(w)
	for i := range groups {
		g := &groups[i]
		r.callers += len(w.callers[g.lead])
		if r.threads >= maxThreads || r.callers > maxCallers {
			r.left++
			continue
		}
		id := r.warpName(w.warp)
		if len(groups) > 1 {
			id = fmt.Sprintf("%s:%d", id, bits.TrailingZeros32(g.mask))
		}
		t := r.thread(w, g)
		t.ID = r.unique(id)
		r.addThread(&t)
	}
}

// warpName is the ID of a warp.
func (r *reader) warpName(i uint32) string {
	w := &r.warps[i]
	return r.smName(r.blocks[w.block].sm) + ".w" + strconv.FormatUint(uint64(w.id), 10)
}

func (r *reader) smName(i uint32) string {
	m := &r.sms[i]
	return fmt.Sprintf("d%d.sm%d", r.devices[m.device].id, m.id)
}

// unique returns an ID, or, where it is taken, another one.
func (r *reader) unique(id string) string {
	name := id
	for _, taken := r.ids[name]; taken; _, taken = r.ids[name] {
		r.repeated++
		name = fmt.Sprintf("%s#%d", id, r.repeated)
	}
	if name != id {
		r.problems.add("%s is the name of more than one: rows of tables repeat a number", id)
	}
	r.ids[name] = struct{}{}
	return name
}

// thread makes a thread of a group of lanes.
func (r *reader) thread(w *warpLanes, g *group) sdk.TargetThread {
	row := &r.warps[w.warp]
	b := &r.blocks[row.block]
	lead := w.lanes[g.lead]
	t := sdk.TargetThread{
		Processor: r.processors[r.sms[b.sm].device], Lanes: lanesOfWarp, Lead: g.lead, Callers: w.callers[g.lead],
		Stop: r.stopOf(w, g), State: r.stateOf(w, g), HasCrashed: g.stop.code != 0,
	}
	t.IsRunning = t.Stop.Reason == "" && t.State == ""
	r.identify(&t, b, lead)
	r.setRegisters(&t.Registers, row, lead, g.mask)
	r.laneStates(&t, w, g.mask)
	t.Saved = r.warpRegisters(t.Saved, row)
	t.Memory = append(t.Memory, r.blockMemory(b)...)
	return t
}

// laneStates says where the registers and the memory of the lanes of a group are. All of
// them have their lists in two arrays: there are many.
func (r *reader) laneStates(t *sdk.TargetThread, w *warpLanes, mask uint32) {
	row, n := &r.warps[w.warp], bits.OnesCount32(mask)
	ownRPC := differByRPC(w, mask)
	t.LaneStates = make([]sdk.LaneState, 0, n)
	saved, memory := make([]sdk.SavedRegisters, 0, 2*n), make([]sdk.SpaceMemory, 0, n)
	for ; mask != 0; mask &= mask - 1 {
		i := uint32(bits.TrailingZeros32(mask)) //nolint:gosec // below 32
		firstSaved, firstMemory := len(saved), len(memory)
		saved, memory = r.laneState(saved, memory, row, w.lanes[i])
		s := sdk.LaneState{Lane: i, Saved: saved[firstSaved:len(saved):len(saved)], Memory: memory[firstMemory:len(memory):len(memory)]}
		if ownRPC {
			setRPC(&s.Registers, r.machine.RPC, w.lanes[i])
		}
		t.LaneStates = append(t.LaneStates, s)
		if i == t.Lead {
			t.Saved, t.Memory = slices.Clone(s.Saved), slices.Clone(s.Memory)
		}
	}
}

// setRegisters sets the registers that the rows of a warp and of a group's lead have.
func (r *reader) setRegisters(to *sdk.Registers, w *warp, lead *lane, mask uint32) {
	le := binary.LittleEndian
	to.Set(r.machine.PC, le.AppendUint64(nil, lead.pc))
	to.Set(r.machine.Lanes, le.AppendUint32(nil, mask))
	if w.hasErrorPC {
		to.Set(r.machine.ErrorPC, le.AppendUint64(nil, w.errorPC))
	}
	if lead.hasRPC {
		setRPC(to, r.machine.RPC, lead)
	}
	if lead.cc != 0 {
		to.Set(r.machine.CC, le.AppendUint32(nil, lead.cc))
	}
}

// setRPC sets the registers of the return PC of a lane.
func setRPC(to *sdk.Registers, first uint32, l *lane) {
	for i, v := range l.rpc {
		to.Set(first+uint32(i), binary.LittleEndian.AppendUint32(nil, v)) //nolint:gosec // two
	}
}

// differByRPC reports whether the lanes of a group have different return PCs. Where all have
// the same, it is the thread's.
func differByRPC(w *warpLanes, mask uint32) bool {
	first := w.lanes[bits.TrailingZeros32(mask)]
	for ; mask != 0; mask &= mask - 1 {
		if l := w.lanes[bits.TrailingZeros32(mask)]; l.hasRPC && l.rpc != first.rpc {
			return true
		}
	}
	return false
}

// identify says which part of which launch a thread is.
func (r *reader) identify(t *sdk.TargetThread, b *block, lead *lane) {
	m := &r.sms[b.sm]
	t.Wave.Agent = r.agents[m.device]
	t.Wave.Group, t.Wave.HasGroup = b.index, true
	t.Name = fmt.Sprintf("block (%d,%d,%d) thread (%d,%d,%d)", b.index[0], b.index[1], b.index[2], lead.thread[0], lead.thread[1], lead.thread[2])
	i, ok := r.gridOf(m.device, b.grid)
	if !ok {
		r.problems.add("%s belongs to grid %d of device %d, which has no row in .cudbg.gridtbl: its launch is not known", r.smName(b.sm), b.grid, r.devices[m.device].id)
		return
	}
	g, d := &r.grids[i], &r.answer.Dispatches[i]
	if d.ID == "" {
		return
	}
	t.Wave.Dispatch, t.Wave.Queue, t.Wave.Kernel = d.ID, d.Queue, d.Kernel
	if in := inBlock(lead.thread, g.block); in >= 0 {
		t.Wave.InGroup, t.Wave.HasInGroup = uint32(in)/lanesOfWarp, true //nolint:gosec // at most 32 bits
	}
	if isCluster(b.clusterDim) || isCluster(g.cluster) {
		t.Wave.Cluster, t.Wave.HasCluster = b.cluster, true
	}
	c, hasContext := r.contextOf(m.device, g.context)
	if hasContext {
		t.Spaces = []sdk.SpaceBase{{Space: r.machine.Shared, Base: r.contexts[c].shared}, {Space: r.machine.Local, Base: r.contexts[c].local}}
	}
	r.launcher(t, g, c, hasContext)
}

// isCluster reports whether a cluster has more than one block.
func isCluster(size [3]uint32) bool { return size[0] > 1 || size[1] > 1 || size[2] > 1 }

// launcher says which thread of the host launched a grid: the one that the grid's row names,
// else the one that owns its context. Whether it still waits, its stack tells.
func (r *reader) launcher(t *sdk.TargetThread, g *grid, c uint32, hasContext bool) {
	const originGPU = 1
	thread := g.thread
	if thread == 0 && hasContext {
		thread = r.contexts[c].thread
	}
	if thread == 0 || g.origin == originGPU {
		return
	}
	t.LauncherThread, t.LaunchKind, t.LaunchEvidence = strconv.FormatUint(uint64(thread), 10), "dispatch", "queue"
}

// inBlock returns the number of a thread in its block; -1 where it is in none of that size.
func inBlock(thread, size [3]uint32) int64 {
	if thread[0] >= size[0] || thread[1] >= size[1] || thread[2] >= size[2] || size[0] > 1<<16 || size[1] > 1<<16 || size[2] > 1<<16 {
		return -1
	}
	return (int64(thread[2])*int64(size[1])+int64(thread[1]))*int64(size[0]) + int64(thread[0])
}

// laneState appends where the registers and the memory of a lane are.
func (r *reader) laneState(saved []sdk.SavedRegisters, memory []sdk.SpaceMemory, w *warp, l *lane) ([]sdk.SavedRegisters, []sdk.SpaceMemory) {
	saved = r.saved(saved, r.machine.General, l.registers, w.registers)
	saved = r.saved(saved, r.machine.Predicates, l.predicates, 0)
	if s := &r.sections[l.local]; l.local != 0 && s.size > 0 {
		if !fits(s.address, s.size) {
			r.problems.add("section %d (.cudbg.local) has %#x bytes at local address %#x, expected some within 32 bits: it is left out", l.local, s.size, s.address)
			return saved, memory
		}
		memory = append(memory, sdk.SpaceMemory{Space: r.machine.Local, Start: s.address, Size: s.size, Address: s.offset, Into: sdk.FileSpace})
	}
	return saved, memory
}

// fits reports whether memory is within the spaces of 32 bits: all but the global ones.
func fits(start, size uint64) bool { return start <= math.MaxUint32 && size <= math.MaxUint32+1-start }

// warpRegisters appends where the registers are that the lanes of a warp share.
func (r *reader) warpRegisters(saved []sdk.SavedRegisters, w *warp) []sdk.SavedRegisters {
	saved = r.saved(saved, r.machine.Uniform, w.uniform, 0)
	saved = r.saved(saved, r.machine.UniformPredicates, w.uniformPredicates, 0)
	return r.saved(saved, r.machine.Barriers, w.bars, 0)
}

// saved appends the registers of a section: at most count of them where that is known.
func (r *reader) saved(list []sdk.SavedRegisters, registers RegisterRange, section, count uint32) []sdk.SavedRegisters {
	if section == 0 || registers.Count == 0 {
		return list
	}
	const size = 4
	s := &r.sections[section]
	n := uint32(min(s.size/size, uint64(registers.Count))) //nolint:gosec // at most Count
	if count > 0 {
		n = min(n, count)
	}
	if n == 0 {
		return list
	}
	return append(list, sdk.SavedRegisters{First: registers.First, Count: n, Address: s.offset, Into: sdk.FileSpace})
}

// blockMemory returns where the memory is that all lanes of a block see alike.
func (r *reader) blockMemory(b *block) (memory []sdk.SpaceMemory) {
	if s := &r.sections[b.shared]; b.shared != 0 && s.size > 0 && fits(0, s.size) {
		memory = append(memory, sdk.SpaceMemory{Space: r.machine.Shared, Size: s.size, Address: s.offset, Into: sdk.FileSpace})
	}
	i, ok := r.gridOf(r.sms[b.sm].device, b.grid)
	if !ok {
		return memory
	}
	return append(memory, r.gridMemory[i]...)
}

// stateOf describes the state of the lanes of a group; "" where all are ready, or the dump does not
// say.
func (r *reader) stateOf(w *warpLanes, g *group) string {
	row := &r.warps[w.warp]
	var order []uint32
	var states [lanesOfWarp]uint32 // the lanes of each state in order
	for mask := g.mask; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		state := uint32(readyState)
		if l := w.lanes[i]; l.hasState {
			state = l.state
		}
		at := slices.Index(order, state)
		if at < 0 {
			at = len(order)
			order = append(order, state)
		}
		states[at] |= 1 << i
	}
	var parts []string
	for i, state := range order {
		text := laneState(state)
		if text != "" && states[i] != g.mask {
			text = laneList(states[i]) + " " + text
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	if row.barrierScope != 0 && row.active&g.mask != 0 {
		if scope := barrierScope(row.barrierScope); scope != "" {
			parts = append(parts, strings.TrimSpace("waits at a barrier of "+scope+" "+r.text(row.barrierText, "the text of a barrier")))
		}
	}
	return cut(strings.Join(parts, "; "), sdk.MaxName)
}

// sayException reports an SM's exception that no lane has: by a thread that stands for the
// SM where it has no lanes left.
func (r *reader) sayException(i uint32, hasLanes bool) {
	m := &r.sms[i]
	if hasLanes {
		if !r.reported[i] && !r.hasException(i) {
			place := "at a PC that is not known"
			if m.hasErrorPC {
				place = fmt.Sprintf("at PC %#x", m.errorPC)
			}
			r.problems.add("%s recorded an exception (%s, %s), which is that of none of its lanes", r.smName(i), exceptionOf(m.exception).words, place)
		}
		return
	}
	t := sdk.TargetThread{
		ID: r.unique(r.smName(i)), Name: fmt.Sprintf("multiprocessor %d of device %d, whose warps have ended", m.id, r.devices[m.device].id),
		Processor: r.processors[m.device], HasCrashed: true, Stop: r.exceptionStop(m.exception), Wave: sdk.Wave{Agent: r.agents[m.device]},
	}
	t.Stop.Details = append(t.Stop.Details, r.smDetails(m, m.exception)...)
	if m.hasErrorPC {
		t.Registers.Set(r.machine.PC, binary.LittleEndian.AppendUint64(nil, m.errorPC))
	} else {
		t.Problem = "the multiprocessor recorded an exception, and not its PC"
	}
	r.addThread(&t)
}

// hasException reports whether a lane of an SM has the exception of the SM as its own.
func (r *reader) hasException(i uint32) bool {
	for _, b := range r.children(r.sms[i].blocks) {
		for _, w := range r.children(r.blocks[b].warps) {
			for _, l := range r.children(r.warps[w].lanes) {
				if r.lanes[l].exception == r.sms[i].exception {
					return true
				}
			}
		}
	}
	return false
}
