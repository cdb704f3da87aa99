// SPDX-License-Identifier: Apache-2.0

package rocm

import (
	"encoding/binary"
	"fmt"

	"github.com/unwindd/unwindd/sdk"
)

const (
	noteOwner   = "AMDGPU"
	noteType    = 33 // NT_AMDGPU_KFD_CORE_STATE
	noteVersion = 1

	headerSize  = 8 + 32 // the version and the header
	runtimeSize = 16     // kfd_runtime_info
	agentSize   = 120    // kfd_dbg_device_info_entry; newer drivers have more
	queueSize   = 64     // kfd_queue_snapshot_entry

	maxAgents = 256
	maxQueues = 1 << 12
)

// note is the driver's state.
type note struct {
	driver       [2]uint32 // the version of its interface
	debug        uint64    // address of the runtime's r_debug
	runtimeState uint32
	hasTTMPs     bool // the trap temporaries of all waves were set up
	agents       []agent
	queues       []queue
	left         [2]int // how many agents and queues were left out
}

// agent is a device.
type agent struct {
	localBase, localLimit, privateBase, privateLimit uint64 // apertures
	gpu                                              uint32
	version                                          uint32 // major*10000 + minor*100 + stepping
	engines                                          uint32 // shader engines of an XCC
	xccs                                             uint32
	hasTTMPs                                         bool

	processor string
	family    *family
}

// queue is the driver's description of a queue.
type queue struct {
	exceptions                    uint64
	ring, writeID, readID, saveAt uint64
	id, gpu                       uint32
	ringSize, kind, saveSize      uint32
	isInvalid                     bool
}

// findNote returns the note of a core.
func findNote(notes []sdk.Note, problem func(string, ...any)) []byte {
	var found []byte
	for i := range notes {
		n := &notes[i]
		switch {
		case n.Owner != noteOwner || n.Type != noteType:
			problem("note %q of type %d is not known, expected type %d: it is ignored", n.Owner, n.Type, noteType)
		case found == nil:
			found = n.Data
		case string(found) != string(n.Data):
			problem("a second note of the state of AMD's graphics processors differs from the first: it is ignored")
		}
	}
	return found
}

// parseNote reads a note. Entries may be longer than the known ones.
func parseNote(b []byte) (*note, error) {
	le := binary.LittleEndian
	if len(b) < headerSize {
		return nil, fmt.Errorf("it has %d bytes, expected a header of %d", len(b), headerSize)
	}
	if v := le.Uint64(b); v != noteVersion {
		return nil, fmt.Errorf("offset 0: its version is %d, expected %d", v, noteVersion)
	}
	n := &note{driver: [2]uint32{le.Uint32(b[8:]), le.Uint32(b[12:])}}
	size := [3]uint64{le.Uint64(b[16:]), uint64(le.Uint32(b[28:])), uint64(le.Uint32(b[36:]))}
	count := [3]uint64{1, uint64(le.Uint32(b[24:])), uint64(le.Uint32(b[32:]))}
	least := [3]uint64{runtimeSize, agentSize, queueSize}
	what := [3]string{"runtime information", "an agent", "a queue"}
	offsets := [4]uint64{headerSize}
	for i := range size {
		if (size[i] < least[i] || size[i]%8 != 0) && count[i] > 0 {
			return nil, fmt.Errorf("offset %#x: %s has %d bytes, expected a multiple of 8 of at least %d",
				[3]int{16, 28, 36}[i], what[i], size[i], least[i])
		}
		rest := uint64(len(b)) - offsets[i]
		if count[i] > 0 && size[i] > rest/count[i] {
			return nil, fmt.Errorf("offset %#x: %d times %s of %d bytes, where %d bytes are left",
				offsets[i], count[i], what[i], size[i], rest)
		}
		offsets[i+1] = offsets[i] + size[i]*count[i]
	}
	if rest := uint64(len(b)) - offsets[3]; rest != 0 {
		return nil, fmt.Errorf("offset %#x: %d bytes after the last queue, expected none", offsets[3], rest)
	}
	n.runtime(b[offsets[0]:])
	for i := range min(count[1], maxAgents) {
		n.agents = append(n.agents, parseAgent(b[offsets[1]+i*size[1]:]))
	}
	for i := range min(count[2], maxQueues) {
		n.queues = append(n.queues, parseQueue(b[offsets[2]+i*size[2]:]))
	}
	n.left = [2]int{int(count[1]) - len(n.agents), int(count[2]) - len(n.queues)} //nolint:gosec // at most the note's bytes
	return n, nil
}

func (n *note) runtime(b []byte) {
	n.debug = binary.LittleEndian.Uint64(b)
	n.runtimeState = binary.LittleEndian.Uint32(b[8:])
	n.hasTTMPs = binary.LittleEndian.Uint32(b[12:]) != 0
}

func parseAgent(b []byte) agent {
	word := func(offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
	long := func(offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
	a := agent{
		localBase: long(8), localLimit: long(16), privateBase: long(24), privateLimit: long(32),
		gpu: word(56), version: word(88), xccs: word(108),
		hasTTMPs: word(116)&(1<<10) != 0, // HSA_DBG_DISPATCH_INFO_ALWAYS_VALID
	}
	arrays, perEngine := uint64(word(100))*uint64(a.xccs), uint64(word(104))
	if perEngine > 0 && a.xccs > 0 {
		a.engines = uint32(min(arrays/perEngine/uint64(a.xccs), 1<<16)) //nolint:gosec // at most 2^16
	}
	a.processor = processorName(a.version)
	a.family = familyOf(a.version)
	return a
}

func parseQueue(b []byte) queue {
	word := func(offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
	long := func(offset int) uint64 { return binary.LittleEndian.Uint64(b[offset:]) }
	const isInError, isInvalid = 1 << 30, 1 << 31 // KFD_DBG_QUEUE_ERROR_MASK, KFD_DBG_QUEUE_INVALID_MASK
	return queue{
		exceptions: long(0), ring: long(8), writeID: long(16), readID: long(24), saveAt: long(32),
		id: word(40) &^ (isInError | isInvalid), isInvalid: word(40)&isInvalid != 0,
		gpu: word(44), ringSize: word(48), kind: word(52), saveSize: word(56),
	}
}
