// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/unwindd/unwindd/sdk"
)

// The bits of the trap handler and the debugger in TTMP6.
const (
	ttmp6IsUnset  = 1 << 31 // the hardware did not set the trap temporaries of this wave
	ttmp6Stopped  = 1 << 30
	ttmp6Halted   = 1 << 29 // STATUS.HALT as it was
	ttmp6TrapMask = 0xf << 25
)

// statusSkipExport is set in STATUS by the trap handler when it stops a wave.
const statusSkipExport = 1 << 18

// state is the content of a header.
type state struct {
	h     [16]uint32 // hardware registers
	t     [16]uint32 // trap temporaries
	vcc   []byte
	ids   bool // the trap temporaries have the IDs of the wave
	isOut bool // it stopped in the trap handler
}

// decode reads a header by the family's layout. It clears the trap temporaries
// that were not set.
func (q *queueReader) decode(r *record, header []byte) state {
	f := q.agent.family
	var s state
	word := func(offset int64) uint32 { return binary.LittleEndian.Uint32(header[recordHeaderBelow+offset:]) }
	for i := range s.h {
		s.h[i] = word(int64(i) * dword)
		s.t[i] = word(f.ttmps + int64(i)*dword)
	}
	if end := min(f.named+f.aliases, r.scalarCount); end >= f.aliases {
		offset := recordHeaderBelow - int(r.scalarCount-end+2)*dword
		s.vcc = header[offset:][: r.lanes/8 : r.lanes/8]
	}
	isSet := q.reader.note.hasTTMPs || q.agent.hasTTMPs
	isMarked := f.ttmp.mark.bits == 0 || f.ttmp.mark.of(&s.t) != 0
	if !isSet && !f.ttmp.isAlwaysSet {
		isMarked = false
	}
	s.ids = isSet
	if s.ids && !f.ttmp.isAlwaysSet && q.reader.version >= 10 && isMarked && s.t[6]&ttmp6IsUnset != 0 {
		s.ids = false
	}
	switch {
	case isMarked:
	case f.ttmp.marksVoid:
		s.t[6] &^= ttmp6Stopped
	case q.reader.version >= 10 && s.h[f.hardware.status]&statusSkipExport != 0:
		s.t[6] &= ttmp6Stopped | ttmp6Halted | ttmp6TrapMask
	default:
		s.t[6] = 0
	}
	s.isOut = s.t[6]&ttmp6Stopped != 0
	return s
}

// thread returns the thread of a wave.
func (q *queueReader) thread(ctx context.Context, r *record, header []byte) sdk.TargetThread {
	s := q.decode(r, header)
	f := q.agent.family
	t := sdk.TargetThread{
		Processor: q.agent.processor, Lanes: r.lanes, Spaces: q.spaces, LaunchKind: "dispatch",
		Saved: q.saved(r, s.h[f.hardware.status]&f.hardware.noVectors != 0),
	}
	q.identify(ctx, &t, &s)
	pc := uint64(s.h[1]) | uint64(s.h[2])<<32
	if !s.isOut {
		t.IsRunning = true
		t.Stop.Details = f.faults(&s.h)
		if f.isHalted(&s.h) {
			t.Stop.Details = append(t.Stop.Details, "HALT")
		}
	} else {
		trap := f.ttmp.trap.of(&s.t)
		if f.isParked(q.reader.version) {
			pc = uint64(s.t[f.ttmp.parkedLow]) | uint64(s.t[11]>>7&0xffff)<<32
		}
		t.Stop, t.HasCrashed = f.stopOf(&s.h, trap, s.t[6]&ttmp6Halted != 0)
		if trap != 0 {
			pc = q.trapPC(ctx, pc, trap)
		}
	}
	if pc%dword != 0 {
		t.Problem = fmt.Sprintf("its PC is %#x, expected a multiple of %d: the record of its state, at %#x, is damaged", pc, dword, r.vectors)
	}
	q.registers(&t, r, &s, pc)
	q.memory(&t, r, &s, header)
	return t
}

// isParked reports whether waves that the trap handler stopped have the PC of
// the handler.
func (f *family) isParked(version uint32) bool {
	return f.parks == alwaysParks || f.parks == parksSince9 && version >= 9
}

// trapPC returns the PC of the trap instruction that stopped a wave. Up to version
// 11 of the runtime's debug interface the PC in the record is that of the
// instruction after it. The code decides where it can be read.
func (q *queueReader) trapPC(ctx context.Context, pc uint64, trap uint32) uint64 {
	if pc < dword {
		return pc
	}
	is := func(pc uint64) bool {
		word, err := q.reader.memory.uint32(ctx, pc)
		id := word & 0xff
		return err == nil && word&^0xffff == q.agent.family.trap && (id == trap || trap == trapOthers && id >= trapOthers)
	}
	usual, other := pc, pc-dword
	if q.reader.version < 12 {
		usual, other = other, usual
	}
	if !is(usual) && is(other) {
		return other
	}
	return usual
}

// identify fills in the wave, group and dispatch of a thread.
func (q *queueReader) identify(ctx context.Context, t *sdk.TargetThread, s *state) {
	w := &t.Wave
	w.Agent, w.Queue = q.agentID, q.id
	layout := &q.agent.family.ttmp
	group, inGroup := "(?,?,?)", "?"
	if s.ids {
		w.Group, w.HasGroup = layout.groupOf(&s.t)
		w.InGroup, w.HasInGroup = layout.inGroup.of(&s.t), true
		if w.HasGroup {
			group = fmt.Sprintf("(%d,%d,%d)", w.Group[0], w.Group[1], w.Group[2])
		}
		inGroup = strconv.FormatUint(uint64(w.InGroup), 10)
		if d := q.dispatch(ctx, layout.packet.of(&s.t)); d != nil {
			w.Dispatch, w.Kernel = d.ID, d.Kernel
		}
	}
	// The number and the name are those that ROCgdb gives the wave, which counts
	// agents, queues, dispatches and waves in the order of the core.
	number := strconv.Itoa(len(q.reader.answer.Threads) + 1)
	t.ID = "w" + number
	dispatch := cmp.Or(w.Dispatch, "?")
	t.Name = "AMDGPU Wave " + q.agentID + ":" + q.id + ":" + dispatch + ":" + number + " " + group + "/" + inGroup
}

// groupOf returns the ID of a wave's group, by its place in its cluster where it is in
// one.
func (l *ttmpLayout) groupOf(t *[16]uint32) (id [3]uint32, ok bool) {
	for i := range id {
		if i == 0 || l.hasYZ.bits == 0 || l.hasYZ.of(t) != 0 {
			id[i] = l.group[i].of(t)
		}
		place, last := l.inCluster[i].of(t), l.last[i].of(t)
		if place > last {
			return [3]uint32{}, false
		}
		id[i] = id[i]*(last+1) + place
	}
	return id, true
}

// saved returns the registers that stay in the record.
func (q *queueReader) saved(r *record, hasNoVectors bool) []sdk.SavedRegisters {
	n := &q.reader.machine.Numbers
	f := q.agent.family
	size := r.lanes / wave64
	list := make([]sdk.SavedRegisters, 0, 6)
	add := func(first, count uint32, address uint64) {
		if count > 0 {
			list = append(list, sdk.SavedRegisters{First: first, Count: count, Address: address})
		}
	}
	scalars := min(f.named, max(min(f.named+f.aliases, r.scalarCount), f.aliases)-f.aliases)
	add(n.SGPR0, min(scalars, 64), r.scalars)
	add(n.SGPR64, max(scalars, 64)-64, r.scalars+64*dword)
	if hasNoVectors {
		return list
	}
	vectors := []uint32{512, 256}[size]
	add(n.VGPR0[size], min(r.vectorCount, vectors), r.vectors)
	if r.vectorCount > vectors && size == 0 {
		add(n.VGPR512, min(r.vectorCount-vectors, 512), r.vectors+uint64(vectors)*wave32*dword)
	}
	add(n.AGPR0[size], min(r.accCount, 256), r.acc)
	return list
}

// registers fills in the registers whose values the header has.
func (q *queueReader) registers(t *sdk.TargetThread, r *record, s *state, pc uint64) {
	n := &q.reader.machine.Numbers
	size := r.lanes / wave64
	f := q.agent.family
	status := f.statusOf(s)
	le := binary.LittleEndian
	exec := le.AppendUint64(nil, uint64(s.h[3])|uint64(s.h[4])<<32)[:r.lanes/8]
	values := []struct {
		number uint32
		value  []byte
	}{
		{n.PC, le.AppendUint64(nil, pc)}, {n.Status, le.AppendUint32(nil, status)},
		{n.Exec[size], exec}, {n.VCC[size], s.vcc},
	}
	slices.SortFunc(values, func(a, b struct {
		number uint32
		value  []byte
	}) int {
		return int(a.number) - int(b.number)
	})
	for i := range values {
		if values[i].value != nil {
			t.Registers.Set(values[i].number, values[i].value)
		}
	}
}

// isHalted reports whether a wave that the trap handler did not stop is halted.
func (f *family) isHalted(h *[16]uint32) bool { return h[f.hardware.halt]>>f.hardware.haltBit&1 != 0 }

// statusOf returns STATUS without the trap handler's changes.
func (f *family) statusOf(s *state) uint32 {
	status := s.h[f.hardware.status] &^ f.hardware.statusHides
	isHalted := f.isHalted(&s.h)
	if s.isOut {
		isHalted = s.t[6]&ttmp6Halted != 0
	}
	if f.hardware.halt == f.hardware.status && isHalted {
		status |= 1 << f.hardware.haltBit
	}
	return status
}

// memory fills in where the group's local memory and the wave's private memory
// lie.
func (q *queueReader) memory(t *sdk.TargetThread, r *record, s *state, header []byte) {
	if r.localSize > 0 {
		t.Memory = append(t.Memory, sdk.SpaceMemory{Space: q.reader.machine.Local, Size: uint64(r.localSize), Address: r.localAddress})
	} else if !r.hasGroup {
		q.noGroup.addf("%s, whose record is at %#x", t.ID, r.vectors)
	}
	if q.agent.family.hasScratch.of(r.word) == 0 {
		return
	}
	address, size, err := q.private(t, r, s, header)
	switch {
	case err != nil:
		q.noScratch.add(err)
	case size > 0:
		t.Memory = append(t.Memory, sdk.SpaceMemory{Space: q.reader.machine.PrivateWave, Size: size, Address: address})
	}
}

// private returns where the wave's private memory is. The hardware's own address decides
// where there is one.
func (q *queueReader) private(t *sdk.TargetThread, r *record, s *state, header []byte) (address, size uint64, err error) {
	f := q.agent.family
	if !f.scratch.isArchitected {
		if !q.hasScratch {
			return 0, 0, nil // reported once for the queue
		}
		return q.scratchOf(r.word, q.agent.engines)
	}
	base := f.flatScratch(r, s, header)
	if !q.hasScratch {
		size = q.privateSizes[t.Wave.Dispatch] * uint64(r.lanes)
		size = (size + f.scratch.unit - 1) / f.scratch.unit * f.scratch.unit
		if size > 0 && base != 0 && base <= math.MaxUint64>>1 {
			q.byRegister.addf("amd_queue_t could not be read, and FLAT_SCRATCH of %s is %#x", t.ID, base)
			return base, size, nil
		}
		return 0, 0, nil
	}
	address, size, err = q.scratchOf(r.word, q.agent.engines)
	if err == nil && (size == 0 || base == address) {
		return address, size, nil
	}
	// The runtime library of June and July 2026 recorded the shader arrays of all
	// XCCs.
	if n := q.areas.count; n > 1 && q.agent.engines%n == 0 {
		a, size, wrong := q.scratchOf(r.word, q.agent.engines/n)
		if wrong == nil && a == base {
			q.byXCC.addf("the note gives each XCC %d shader engines, but FLAT_SCRATCH of %s is right for %d, as if the note counted those of all %d XCCs",
				q.agent.engines, t.ID, q.agent.engines/n, n)
			return a, size, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("it should be at %#x, but FLAT_SCRATCH of %s is %#x", address, t.ID, base)
	}
	return 0, 0, err
}

// flatScratch returns the hardware's address of the wave's private memory.
func (f *family) flatScratch(r *record, s *state, header []byte) uint64 {
	if i := f.hardware.flatScratch; i != 0 {
		return uint64(s.h[i]) | uint64(s.h[i+1])<<32
	}
	end := min(f.named+f.aliases, r.scalarCount)
	if end < f.aliases {
		return math.MaxUint64
	}
	offset := recordHeaderBelow - int(r.scalarCount-end+f.aliases)*dword
	return binary.LittleEndian.Uint64(header[offset:])
}
