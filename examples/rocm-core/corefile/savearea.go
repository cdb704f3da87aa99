// SPDX-License-Identifier: Apache-2.0

package corefile

import "encoding/binary"

// QueuePlan has the addresses that Build gave to the parts of a queue.
type QueuePlan struct {
	agent   *Agent
	machine *Machine
	queue   *Queue
	// Ring, Queue, Save and Scratch are the addresses of the packets, of
	// amd_queue_t, of the first XCC's save area and of the private memory.
	Ring, Queue, Save, Scratch uint64
	// AreaSize is the length of one XCC's save area, and ScratchStride of its
	// private memory.
	AreaSize, ScratchStride uint64
	boundary                uint64 // where control stacks end and records begin
	xccs                    []xccPlan
	descriptors             map[*Dispatch]uint64 // made by Build
}

type xccPlan struct {
	waves   []wavePlan
	control []uint32
	records uint64 // bytes
}

type wavePlan struct {
	group    *Group
	wave     *Wave
	position int // in the group
	isFirst  bool
	isLast   bool
	shape    shape
	bytes    uint64 // of the record with the gap above it
}

const (
	headerBytes = 40   // kfd_context_save_area_header
	debugBytes  = 4096 // behind the areas, for the debugger
)

// planWaves computes the sizes of each XCC's control stack and records.
func (im *Image) planWaves(q *QueuePlan) {
	q.xccs = make([]xccPlan, max(q.agent.XCCs, 1))
	for i := range q.queue.Groups {
		g := &q.queue.Groups[i]
		if g.XCC < 0 || g.XCC >= len(q.xccs) || g.Dispatch < 0 || g.Dispatch >= len(q.queue.Dispatches) {
			im.fail("queue %d: group %d is of XCC %d of %d and dispatch %d of %d", q.queue.ID, i,
				g.XCC, len(q.xccs), g.Dispatch, len(q.queue.Dispatches))
			return
		}
		im.planGroup(q, &q.xccs[g.XCC], g)
	}
	var control, records uint64
	for i := range q.xccs {
		control = max(control, 4*uint64(len(q.xccs[i].control)))
		records = max(records, q.xccs[i].records)
	}
	q.boundary = roundUp(headerBytes+control, pageSize)
	q.AreaSize = roundUp(q.boundary+records, pageSize)
	if q.AreaSize > 1<<32-pageSize {
		im.fail("queue %d: a save area of %d bytes does not fit its 32 bits", q.queue.ID, q.AreaSize)
	}
}

func (im *Image) planGroup(q *QueuePlan, x *xccPlan, g *Group) {
	for i := range g.Waves {
		p := wavePlan{group: g, wave: &g.Waves[i], position: i, isFirst: i == 0, isLast: i == len(g.Waves)-1}
		p.shape = im.shapeOf(q.machine, g, p.wave)
		if im.err != nil {
			return
		}
		p.bytes = p.shape.recordBytes(q.machine, p.isFirst) + q.machine.Gap
		if len(x.control) == 0 {
			x.control = append(x.control, q.stackWords()...)
		}
		for _, e := range p.wave.Events {
			x.control = append(x.control, e&^(1<<31)|1<<30)
		}
		if n := len(x.waves); n == 0 || x.waves[n-1].shape != p.shape {
			x.control = append(x.control, im.stateWords(q.machine, &p.shape)...)
		}
		x.control = append(x.control, im.waveWord(q, &p))
		x.waves = append(x.waves, p)
		x.records += p.bytes
	}
}

// stackWords returns the words of the command processor that begin a control stack. The
// default looks like two waves.
func (q *QueuePlan) stackWords() []uint32 {
	if q.queue.StackWords == [2]uint32{} {
		return []uint32{0x0002_1001, 0x0000_1002}
	}
	return q.queue.StackWords[:]
}

func (im *Image) waveWord(q *QueuePlan, p *wavePlan) uint32 {
	m, word := q.machine, uint32(0)
	im.put(&word, m.ScratchSlot, uint64(p.wave.ScratchSlot), "a wave's scratch slot")
	im.put(&word, m.ShaderEngine, uint64(p.wave.ShaderEngine), "a wave's shader engine")
	im.put(&word, m.ScratchOn, toBit(p.wave.HasScratch), "whether a wave has scratch")
	im.put(&word, m.First, toBit(p.isFirst), "first wave")
	im.put(&word, m.Last, toBit(p.isLast), "last wave")
	return word
}

// saveArea is the content of the save areas of all XCCs of a queue.
type saveArea struct {
	im *Image
	q  *QueuePlan
}

func (a saveArea) size() uint64 {
	return a.q.AreaSize*uint64(len(a.q.xccs)) + debugBytes
}

func (a saveArea) emit(s *sink) {
	for i := range a.q.xccs {
		x := &a.q.xccs[i]
		s.bytes(a.q.header(i))
		control := 4 * uint64(len(x.control))
		s.zeros(a.q.boundary - control - headerBytes)
		s.words(x.control)
		for j := len(x.waves) - 1; j >= 0; j-- {
			p := &x.waves[j]
			p.emit(s, a.q.machine, a.im.registersOf(a.q, p))
		}
		s.zeros(a.q.AreaSize - a.q.boundary - x.records)
	}
	s.zeros(debugBytes)
}

// header is kfd_context_save_area_header (kfd_ioctl.h). The control stack ends
// where the records begin (queue.cpp, update_waves).
func (q *QueuePlan) header(xcc int) []byte {
	x, le := &q.xccs[xcc], binary.LittleEndian
	control := 4 * uint64(len(x.control))
	h := make([]byte, 0, headerBytes)
	h = le.AppendUint32(h, uint32(q.boundary-control))
	h = le.AppendUint32(h, uint32(control))
	h = le.AppendUint32(h, uint32(q.boundary+x.records))
	h = le.AppendUint32(h, uint32(x.records))
	h = le.AppendUint32(h, uint32(q.AreaSize*uint64(len(q.xccs)-xcc)))
	h = le.AppendUint32(h, debugBytes)
	h = le.AppendUint64(h, q.queue.Payload)
	h = le.AppendUint32(h, q.queue.Event)
	return le.AppendUint32(h, 0)
}

// checkWaves builds every wave's registers once so that a value that does not
// fit fails Build and not the writing.
func (im *Image) checkWaves(q *QueuePlan) {
	for i := range q.xccs {
		for j := range q.xccs[i].waves {
			im.registersOf(q, &q.xccs[i].waves[j])
			if im.err != nil {
				return
			}
		}
	}
}
