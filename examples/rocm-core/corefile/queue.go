// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	packetBytes = 64
	// Of amd_queue_t (amd_hsa_queue.h): version 1 has 256 bytes.
	queueBytes    = 256
	writeIDOffset = 56
	readIDOffset  = 128
)

func (im *Image) placeAgent(a *Agent) {
	if a.Machine == nil {
		im.fail("agent %#x has no machine", a.GPUID)
		return
	}
	for i := range a.Queues {
		q := &QueuePlan{agent: a, machine: a.Machine, queue: &a.Queues[i], descriptors: map[*Dispatch]uint64{}}
		im.queues = append(im.queues, q)
		im.placeQueue(q)
		if im.err != nil {
			return
		}
	}
}

func (im *Image) placeQueue(q *QueuePlan) {
	u := q.queue
	if u.Packets == 0 || u.Packets&(u.Packets-1) != 0 {
		im.fail("queue %d has %d packets, which is not a power of two", u.ID, u.Packets)
		return
	}
	name := fmt.Sprintf("queue %d's ", u.ID)
	im.planWaves(q)
	q.Ring = im.allocate(u.QueueIn, u.RingAddress, uint64(u.Packets)*packetBytes)
	q.Queue = im.allocate(u.QueueIn, u.QueueAddress, queueBytes)
	area := saveArea{im, q}
	q.Save = im.allocate(GPU, u.SaveAddress, area.size())
	im.placeScratch(q, name)
	if im.err != nil {
		return
	}
	im.add(u.QueueIn, q.Ring, name+"ring", im.ring(q))
	im.add(u.QueueIn, q.Queue, name+"amd_queue_t", data{im.amdQueue(q), pageSize})
	im.add(GPU, q.Save, name+"save area", area)
	im.checkWaves(q)
}

// ring is the packets of the queue (hsa.h, hsa_kernel_dispatch_packet_t).
func (im *Image) ring(q *QueuePlan) content {
	u := q.queue
	ring := &pieces{n: uint64(u.Packets) * packetBytes}
	for i := range u.Dispatches {
		d := &u.Dispatches[i]
		at := d.ID % uint64(u.Packets) * packetBytes
		ring.list = append(ring.list, piece{at, im.packet(q, d)})
	}
	sortPieces(ring.list)
	for i := 1; i < len(ring.list); i++ {
		if ring.list[i].offset == ring.list[i-1].offset {
			im.fail("queue %d: two dispatches are of the same packet", u.ID)
		}
	}
	return ring
}

func (im *Image) packet(q *QueuePlan, d *Dispatch) []byte {
	const kernelDispatch, barrierBit = 2, 1 << 8
	header := d.Header
	if header == 0 {
		header = kernelDispatch | barrierBit
	}
	kernel := d.KernelObject
	if kernel == 0 {
		kernel = im.placeDescriptor(q, d)
	}
	le := binary.LittleEndian
	p := make([]byte, 0, packetBytes)
	p = le.AppendUint16(p, header)
	p = le.AppendUint16(p, max(d.Dimensions, 1))
	for _, n := range d.Group {
		p = le.AppendUint16(p, n)
	}
	p = le.AppendUint16(p, 0)
	for _, n := range d.Grid {
		p = le.AppendUint32(p, n)
	}
	p = le.AppendUint32(p, d.PrivateBytes)
	p = le.AppendUint32(p, d.LDSBytes)
	p = le.AppendUint64(p, kernel)
	p = le.AppendUint64(p, d.Arguments)
	p = le.AppendUint64(p, 0)
	return le.AppendUint64(p, d.Completion)
}

// placeDescriptor makes a kernel descriptor (AMDGPUUsage, "Kernel Descriptor")
// whose entry is d.Entry.
func (im *Image) placeDescriptor(q *QueuePlan, d *Dispatch) uint64 {
	le := binary.LittleEndian
	at := im.allocate(GPU, 0, 64)
	q.descriptors[d] = at
	b := make([]byte, 64)
	le.PutUint32(b[0:], d.LDSBytes)
	le.PutUint32(b[4:], d.PrivateBytes)
	le.PutUint64(b[16:], d.Entry-at)
	im.add(GPU, at, fmt.Sprintf("queue %d's kernel descriptor", q.queue.ID), data{b, pageSize})
	return at
}

// amdQueue is amd_queue_t (amd_hsa_queue.h). Up to version 10 of the runtime it has
// scratch_backing_memory_byte_size, the size for one XCC.
func (im *Image) amdQueue(q *QueuePlan) []byte {
	u, le := q.queue, binary.LittleEndian
	b := make([]byte, queueBytes)
	le.PutUint32(b[0:], 1) // HSA_QUEUE_TYPE_SINGLE is 1
	le.PutUint32(b[4:], 1) // HSA_QUEUE_FEATURE_KERNEL_DISPATCH
	le.PutUint64(b[8:], q.Ring)
	le.PutUint32(b[24:], u.Packets)
	le.PutUint64(b[32:], uint64(u.ID))
	le.PutUint64(b[writeIDOffset:], u.WriteID)
	le.PutUint32(b[64:], uint32(q.agent.apertures()[0]>>32))
	le.PutUint32(b[68:], uint32(q.agent.apertures()[2]>>32))
	le.PutUint64(b[readIDOffset:], u.ReadID)
	le.PutUint32(b[136:], readIDOffset)
	le.PutUint32(b[140:], im.tmpring(q))
	le.PutUint64(b[160:], q.Scratch)
	if im.core.RuntimeVersion <= 10 {
		le.PutUint64(b[168:], q.ScratchStride)
	}
	le.PutUint32(b[176:], uint32(u.Scratch.WaveBytes/64))
	le.PutUint32(b[180:], 1<<1) // IS_PTR64
	return b
}

// tmpring is COMPUTE_TMPRING_SIZE: ROCdbgapi's scratch_memory_region of each
// generation.
func (im *Image) tmpring(q *QueuePlan) uint32 {
	m, s, word := q.machine, &q.queue.Scratch, uint32(0)
	if s.WaveBytes%m.TmpringUnit != 0 {
		im.fail("queue %d: %d bytes of scratch per wave are no multiple of %d", q.queue.ID, s.WaveBytes, m.TmpringUnit)
	}
	im.put(&word, bits(11, 0), s.Waves, "the waves that have scratch")
	im.put(&word, m.TmpringWave, s.WaveBytes/m.TmpringUnit, "a wave's scratch")
	return word
}

func (im *Image) placeScratch(q *QueuePlan, name string) {
	s := &q.queue.Scratch
	if s.Waves == 0 || s.WaveBytes == 0 {
		return
	}
	q.ScratchStride = s.Waves * s.WaveBytes
	if q.machine.TmpringPerSE {
		q.ScratchStride *= uint64(q.agent.engines())
	}
	memory := &pieces{n: q.ScratchStride * uint64(len(q.xccs))}
	q.Scratch = im.allocate(GPU, s.Address, memory.n)
	for i := range q.xccs {
		for j := range q.xccs[i].waves {
			p := &q.xccs[i].waves[j]
			if len(p.wave.Scratch) == 0 {
				continue
			}
			if uint64(len(p.wave.Scratch)) > s.WaveBytes || !p.wave.HasScratch {
				im.fail("queue %d: a wave has %d bytes of scratch", q.queue.ID, len(p.wave.Scratch))
				return
			}
			at := q.scratchOf(p) - q.Scratch
			memory.list = append(memory.list, piece{at, p.wave.Scratch})
		}
	}
	sortPieces(memory.list)
	for i, x := range memory.list {
		end := x.offset + uint64(len(x.bytes))
		if end > memory.n || i+1 < len(memory.list) && end > memory.list[i+1].offset {
			im.fail("queue %d: a wave's scratch slot is outside or is another wave's too", q.queue.ID)
			return
		}
	}
	im.add(GPU, q.Scratch, name+"scratch", memory)
}

// scratchOf is the address of a wave's private memory (scratch_memory_region).
func (q *QueuePlan) scratchOf(p *wavePlan) uint64 {
	s, engines := &q.queue.Scratch, uint64(q.agent.engines())
	perEngine := s.Waves
	if !q.machine.TmpringPerSE {
		perEngine /= engines
	}
	slot := perEngine*uint64(p.wave.ShaderEngine) + uint64(p.wave.ScratchSlot)
	return q.Scratch + uint64(p.group.XCC)*q.ScratchStride + slot*s.WaveBytes
}

func (im *Image) flatScratch(q *QueuePlan, p *wavePlan) uint64 {
	if p.wave.FlatScratch != 0 || !p.wave.HasScratch || !q.machine.HasFlatAddress {
		return p.wave.FlatScratch
	}
	return q.scratchOf(p)
}

// Swizzle lays the private memory of lanes out as in a wave's scratch: dword by dword, of
// each dword all lanes (memory.cpp, private_swizzled). All lanes must have the same
// number of bytes, a multiple of 4.
func Swizzle(lanes [][]byte) []byte {
	if len(lanes) == 0 {
		return nil
	}
	out := make([]byte, 0, len(lanes)*len(lanes[0]))
	for i := 0; i+4 <= len(lanes[0]); i += 4 {
		for _, lane := range lanes {
			out = append(out, lane[i:i+4]...)
		}
	}
	return out
}

func sortPieces(list []piece) {
	slices.SortFunc(list, func(a, b piece) int { return cmp.Compare(a.offset, b.offset) })
}

func (a *Agent) engines() uint32 { return max(a.ShaderEngines, 1) }
