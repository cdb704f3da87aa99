// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/sdk"
)

var errTooMany = errors.New("too many waves")

// The kinds of queues (KFD_IOC_QUEUE_TYPE_*).
const computeAQL = 2

var queueKinds = []string{"COMPUTE", "SDMA", "COMPUTE_AQL", "SDMA_XGMI", "SDMA_BY_ENG_ID"}

// exceptionNames are the bits of a queue's exceptions (EC_QUEUE_*), less one: the
// first has code 1.
var exceptionNames = map[int]string{
	1: "WAVE_ABORT", 2: "WAVE_TRAP", 3: "WAVE_MATH_ERROR", 4: "WAVE_ILLEGAL_INSTRUCTION",
	5: "WAVE_MEMORY_VIOLATION", 6: "WAVE_APERTURE_VIOLATION",
	16: "PACKET_DISPATCH_DIM_INVALID", 17: "PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID",
	18: "PACKET_DISPATCH_CODE_INVALID", 19: "PACKET_RESERVED", 20: "PACKET_UNSUPPORTED",
	21: "PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID", 22: "PACKET_DISPATCH_REGISTER_INVALID",
	23: "PACKET_VENDOR_UNSUPPORTED", 30: "PREEMPTION_ERROR",
}

// describe describes a queue in the driver's words.
func (q *queue) describe() string {
	kind := fmt.Sprintf("kind %d", q.kind)
	if q.kind < uint32(len(queueKinds)) {
		kind = queueKinds[q.kind]
	}
	kind = fmt.Sprintf("%s, QID %d", kind, q.id)
	for code := 1; code <= 30; code++ {
		if name := exceptionNames[code]; name != "" && q.exceptions>>(code-1)&1 != 0 && len(kind)+len(name) < sdk.MaxName-2 {
			kind += ", " + name
		}
	}
	return kind
}

// The members of amd_queue_t, from read_dispatch_id on.
const (
	tmpringSizeAt      = 12 // compute_tmpring_size
	scratchLocationAt  = 32 // scratch_backing_memory_location
	scratchSizeAt      = 40 // scratch_backing_memory_byte_size, until version 10
	queueStructureSize = 48
)

// queueReader reads the waves of a queue.
type queueReader struct {
	reader  *reader
	agent   *agent
	queue   *queue
	agentID string
	id      string
	spaces  []sdk.SpaceBase
	areas   areas

	hasIDs          bool
	readID, writeID uint64
	hasScratch      bool
	tmpring         uint32
	scratch         uint64 // of the first XCC
	scratchSize     uint64 // of an XCC, until version 10
	xcc             uint32
	packets         map[uint32]int // by index in the ring: of the dispatch in the answer

	privateSizes map[string]uint64 // by dispatch: a lane's private memory

	noDispatch, noGroup, noScratch, unread tally
	byXCC, byRegister                      tally // private memory that was found against the note or without amd_queue_t
}

// read reads the waves of the queue.
func (q *queueReader) read(ctx context.Context) error {
	q.readStructure(ctx)
	problem := q.reader.problems.add
	for q.xcc = range q.areas.count {
		name := fmt.Sprintf("queue %s (%s), the save area of XCC %d at %#x", q.id, q.queue.describe(), q.xcc, q.areaAddress())
		area, err := q.reader.memory.readSaveArea(ctx, q.areaAddress(), q.areas.size)
		if err == nil {
			err = q.readWaves(ctx, name, area)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			problem("%s: %v: its waves are left out", name, err)
		}
	}
	for _, t := range []struct {
		tally *tally
		what  string
	}{
		{&q.unread, "the state of %s could not be read"},
		{&q.noDispatch, "the dispatch of %s is not known"},
		{&q.noGroup, "the first of the group of %s is missing, and with it the group's local memory"},
		{&q.noScratch, "the private memory of %s is left out"},
		{&q.byXCC, "the private memory of %s is found by FLAT_SCRATCH"},
		{&q.byRegister, "the private memory of %s is that at FLAT_SCRATCH, of the size in the packets of their dispatches"},
	} {
		if t.tally.count > 0 {
			problem("queue %s (%s): %s: %v", q.id, q.queue.describe(), fmt.Sprintf(t.what, waves(t.tally.count)), t.tally.first)
		}
	}
	return nil
}

func (q *queueReader) areaAddress() uint64 {
	return q.queue.saveAt + uint64(q.xcc)*q.areas.size
}

// readWaves adds a thread for each wave of a save area.
func (q *queueReader) readWaves(ctx context.Context, name string, area *saveArea) error {
	most := maxWaves - len(q.reader.answer.Threads)
	records, err := q.agent.family.records(area.controlStackContents, area.waves, area.end, most)
	switch {
	case errors.Is(err, errTooMany):
		q.reader.problems.add("%s: there are more than %d waves in all: those after them are left out", name, maxWaves)
	case err != nil:
		return err
	}
	q.reader.answer.Threads = slices.Grow(q.reader.answer.Threads, len(records))
	return q.reader.recordHeaders(ctx, records, func(r *record, header []byte, why error) {
		t := sdk.TargetThread{}
		if header != nil {
			t = q.thread(ctx, r, header)
		} else {
			q.unread.add(why)
			t = sdk.TargetThread{Processor: q.agent.processor, Lanes: r.lanes}
			q.identify(ctx, &t, &state{})
			t.Problem = fmt.Sprintf("its state at %#x could not be read: %v", r.control, why)
		}
		q.reader.answer.Threads = append(q.reader.answer.Threads, t)
	})
}

// readStructure reads the runtime's amd_queue_t of the queue.
func (q *queueReader) readStructure(ctx context.Context) {
	m := &q.reader.memory
	var b [queueStructureSize]byte
	writeID, err := m.uint64(ctx, q.queue.writeID)
	if err == nil {
		err = m.read(ctx, q.queue.readID, b[:])
	}
	if err != nil {
		q.reader.problems.add("queue %s (%s): the runtime's structure of it, amd_queue_t, could not be read: "+
			"which of its dispatches are over, and how its private memory is divided, is not known: %v", q.id, q.queue.describe(), err)
		return
	}
	le := binary.LittleEndian
	q.hasIDs, q.readID, q.writeID = true, le.Uint64(b[:]), writeID
	q.hasScratch, q.tmpring = true, le.Uint32(b[tmpringSizeAt:])
	q.scratch, q.scratchSize = le.Uint64(b[scratchLocationAt:]), le.Uint64(b[scratchSizeAt:])
}

// scratchOf returns where a wave's private memory is, by the word of the control stack
// and the number of shader engines of an XCC.
func (q *queueReader) scratchOf(word, engines uint32) (address, size uint64, err error) {
	f := q.agent.family
	inAll, perXCC := uint64(q.tmpring&0xfff), uint64(q.tmpring&0xfff)*uint64(engines)
	size = uint64(f.scratch.size.of(q.tmpring)) * f.scratch.unit
	perEngine := inAll
	if !f.scratch.isPerEngine {
		if engines == 0 || inAll%uint64(engines) != 0 {
			return 0, 0, fmt.Errorf("memory for %d waves is not divided evenly among %d shader engines", inAll, engines)
		}
		perEngine, perXCC = inAll/uint64(engines), inAll
	}
	perXCC *= size
	if q.reader.version < 11 {
		perXCC = q.scratchSize
	}
	offset := (perEngine*uint64(f.engine.of(word)) + uint64(f.slot.of(word))) * size
	if size > 0 && (perXCC > math.MaxUint64>>8 || q.scratch > math.MaxUint64>>1) {
		return 0, 0, fmt.Errorf("it is %#x bytes at %#x, which cannot be", perXCC, q.scratch)
	}
	return q.scratch + uint64(q.xcc)*perXCC + offset, size, nil
}

// spacesOf returns the apertures of an agent. Where generic addresses of private
// memory name the lane too, the aperture of private memory is left out.
func (r *reader) spacesOf(a *agent) []sdk.SpaceBase {
	var spaces []sdk.SpaceBase
	if a.localBase < a.localLimit {
		spaces = append(spaces, sdk.SpaceBase{Space: r.machine.Local, Base: a.localBase})
	}
	if a.privateBase < a.privateLimit && !a.family.scratch.hidesAperture {
		spaces = append(spaces, sdk.SpaceBase{Space: r.machine.PrivateLane, Base: a.privateBase})
	}
	return spaces
}

// readQueues reads all queues.
func (r *reader) readQueues(ctx context.Context) error {
	agents := make(map[uint32]int, len(r.note.agents))
	for i := range r.note.agents {
		a := &r.note.agents[i]
		if _, ok := agents[a.gpu]; !ok {
			agents[a.gpu] = i
		}
		r.answer.Agents = append(r.answer.Agents, sdk.TargetAgent{ID: strconv.Itoa(i + 1), Processor: a.processor})
		r.sayFamily(i, a)
	}
	for i := range r.note.queues {
		q := &r.note.queues[i]
		id := strconv.Itoa(i + 1)
		index, ok := agents[q.gpu]
		if !ok {
			r.problems.add("queue %s (%s) is of the agent %#x, which the core does not have: it is left out", id, q.describe(), q.gpu)
			r.answer.Queues = append(r.answer.Queues, sdk.TargetQueue{ID: id, Kind: q.describe()})
			continue
		}
		a := &r.note.agents[index]
		r.answer.Queues = append(r.answer.Queues, sdk.TargetQueue{ID: id, Agent: strconv.Itoa(index + 1), Kind: q.describe()})
		var areas areas
		if q.kind == computeAQL && a.family != nil {
			var said string
			if areas, said = r.areasOf(ctx, q, a); said != "" {
				r.problems.add("queue %s (%s): %s", id, q.describe(), said)
			}
		}
		if why := r.unreadable(i, a, areas); why != "" {
			r.problems.add("queue %s (%s): %s: its waves are left out", id, q.describe(), why)
			continue
		}
		if q.kind != computeAQL || a.family == nil {
			continue
		}
		reader := &queueReader{
			reader: r, agent: a, queue: q, agentID: strconv.Itoa(index + 1), id: id, spaces: r.spacesOf(a), areas: areas,
			packets: map[uint32]int{}, privateSizes: map[string]uint64{},
		}
		if err := reader.read(ctx); err != nil {
			return err
		}
	}
	return nil
}

// unreadable returns why a queue's waves cannot be read; "" where they can,
// where its agent has the reason, or where it has no waves.
func (r *reader) unreadable(i int, a *agent, areas areas) string {
	q := &r.note.queues[i]
	size := areas.size * uint64(areas.count)
	switch {
	case q.kind == 0:
		return "it is no queue of AQL packets, of which nothing is known"
	case q.kind >= uint32(len(queueKinds)):
		return fmt.Sprintf("its kind is not known, expected one of 0 to %d", len(queueKinds)-1)
	case q.kind != computeAQL || a.family == nil:
		return ""
	case q.isInvalid:
		return "the driver says that it is not valid"
	case areas.count == 0 || areas.count > maxXCCs:
		return fmt.Sprintf("its agent has %d XCCs, expected 1 to %d", areas.count, maxXCCs)
	case size > math.MaxUint64-q.saveAt:
		return fmt.Sprintf("its save areas of %#x bytes at %#x pass the end of the address space", size, q.saveAt)
	}
	for j := range r.areas {
		if o := r.areas[j]; q.saveAt < o.end && o.start < q.saveAt+size {
			return fmt.Sprintf("its save areas of %#x bytes at %#x overlap those of queue %d", size, q.saveAt, o.queue)
		}
	}
	r.areas = append(r.areas, areaRange{q.saveAt, q.saveAt + size, i + 1})
	return ""
}

// areaRange is the range of addresses of a queue's save areas.
type areaRange struct {
	start, end uint64
	queue      int
}

// sayFamily reports an agent of an unknown family.
func (r *reader) sayFamily(i int, a *agent) {
	switch {
	case a.family == nil:
		r.problems.add("agent %d is a %s (version %d), of which nothing is known, expected one of %s: its waves are left out; %s",
			i+1, a.processor, a.version, strings.Join(familyNames(), ", "), whereToAsk)
	case !r.machine.IsKnown(a.processor):
		r.problems.add("agent %d is a %s (version %d), which is not known: its waves are read as those of %s; %s",
			i+1, a.processor, a.version, a.family.name, whereToAsk)
	}
}

const whereToAsk = "https://github.com/unwindd/unwindd/issues is where to ask for it"

func familyNames() []string {
	var names []string
	for i := range families {
		names = append(names, families[i].family.name)
	}
	return names
}
