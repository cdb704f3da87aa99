// SPDX-License-Identifier: Apache-2.0

package cudacore

import "encoding/binary"

// record is a row of a table. A member behind its end was appended by a later driver, and
// reads as 0.
type record []byte

func (r record) quad(offset int) uint64 {
	if offset+8 > len(r) {
		return 0
	}
	return binary.LittleEndian.Uint64(r[offset:])
}

func (r record) word(offset int) uint32 {
	if offset+4 > len(r) {
		return 0
	}
	return binary.LittleEndian.Uint32(r[offset:])
}

func (r record) three(offset int) [3]uint32 {
	return [3]uint32{r.word(offset), r.word(offset + 4), r.word(offset + 8)}
}

// has reports whether the row's driver has the member of size bytes.
func (r record) has(offset, size int) bool { return offset+size <= len(r) }

// The rows of the tables. Rows refer to the rows of other tables by their indices in the
// core's lists, and to sections by their indices in the file, of which 0 is none.
type (
	device struct {
		name, processor      string
		id, bus, slot        uint32
		status               uint32
		contexts, grids, sms uint32 // sections
	}
	contextRow struct {
		id, shared, local, global uint64
		device, thread            uint32
		modules                   uint32 // section
	}
	module struct {
		handle              uint64
		context             uint32
		relocated, original uint32 // sections
	}
	grid struct {
		id, context, entry, module, parametersAt uint64
		device, origin, status, thread           uint32
		kind                                     uint32
		blocks, block, cluster                   [3]uint32
		parameters, banks                        uint32 // sections
	}
	bank struct {
		address    uint64
		size, bank uint32
		grid       uint32
	}
	sm struct {
		id, device            uint32
		exception             uint32
		errorPC               uint64
		hasErrorPC, hasTarget bool
		target                [3]uint32
		text                  uint64
		blocks                uint32 // section
	}
	block struct {
		grid                       uint64
		sm                         uint32
		index, cluster, clusterDim [3]uint32
		shared, warps              uint32 // sections
	}
	warp struct {
		errorPC                          uint64
		block, id                        uint32
		valid, active                    uint32
		exited                           uint32
		isBroken, hasErrorPC             bool
		registers                        uint32 // how many; 0: unknown
		barrierScope                     uint32
		barrierText                      uint64
		lanes                            uint32 // sections
		uniform, uniformPredicates, bars uint32
	}
	lane struct {
		pc                                   uint64
		rpc                                  [2]uint32
		number                               uint32
		thread                               [3]uint32
		exception                            uint32
		cc, state                            uint32
		hasState, hasRPC                     bool
		local, registers, predicates, frames uint32 // sections
	}
)

func (r *reader) device(b record) device {
	d := device{
		name: r.text(b.quad(0), "the name of a device"), processor: r.text(b.quad(16), "the processor of a device"),
		id: b.word(24), bus: b.word(28), slot: b.word(32), status: b.word(68),
	}
	if d.processor == "" {
		d.processor = processorOf(b.word(56), b.word(60))
	}
	return d
}

func contextOf(b record) contextRow {
	return contextRow{id: b.quad(0), shared: b.quad(8), local: b.quad(16), global: b.quad(24), device: b.word(32), thread: b.word(36)}
}

func gridOf(b record) grid {
	return grid{
		id: b.quad(0), context: b.quad(8), entry: b.quad(24), module: b.quad(32), parametersAt: b.quad(48),
		kind: b.word(56), origin: b.word(60), status: b.word(64), blocks: b.three(72), block: b.three(84), thread: b.word(100), cluster: b.three(104),
	}
}

func smOf(b record) sm {
	return sm{
		id: b.word(0), exception: b.word(8), hasErrorPC: b.word(12) != 0, errorPC: b.quad(16),
		hasTarget: b.word(24) != 0, target: b.three(28), text: b.quad(40),
	}
}

func blockOf(b record) block {
	return block{grid: b.quad(0), index: b.three(8), cluster: b.three(24), clusterDim: b.three(40)}
}

func warpOf(b record) warp {
	return warp{
		errorPC: b.quad(0), id: b.word(8), valid: b.word(12), active: b.word(16), isBroken: b.word(20) != 0, hasErrorPC: b.word(24) != 0,
		registers: b.word(32), exited: b.word(56), barrierScope: b.word(64), barrierText: b.quad(72),
	}
}

func laneOf(b record) lane {
	return lane{
		pc: b.quad(0), number: b.word(16), thread: b.three(20), exception: b.word(32),
		cc: b.word(44), state: b.word(48), hasState: b.has(48, 4), rpc: [2]uint32{b.word(56), b.word(60)}, hasRPC: b.has(56, 8),
	}
}
