// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// storage is something with lanes: a vector register, by its place, or 4 bytes of
// private memory, by the base register and the offset of the instructions that reach
// it.
type storage uint64

const (
	noStorage storage = 1<<64 - 1
	memoryBit storage = 1 << 63
)

// laneMove is an instruction that copies all lanes of one storage to another, or that
// reads or writes lanes of a single storage.
type laneMove struct {
	pc       uint64
	dst, src storage
	lanes    uint64 // which lanes are read or written, where dst or src is noStorage
}

// laneBlock has the moves of lanes in a block.
type laneBlock struct {
	moves      []laneMove
	next       []uint64
	mayReadAll bool     // it leads to unknown code, which may read all lanes
	live       []uint64 // which lanes are read after the block begins, by the storage's number
}

// liveness finds which lanes of a storage are read later. It numbers only storages whose
// lanes are read by number. It goes over the blocks of a flow in rounds, from the last to
// the first, because a flow itself follows code forward only.
type liveness struct {
	blocks  map[uint64]*laneBlock
	order   []*laneBlock // by address
	numbers map[storage]int
}

const (
	maxLaneMoves = 1 << 16 // of a function
	maxLive      = 1 << 20 // storages, over all blocks
)

// findNeeded finds which lanes of the storages of an instruction are read after it.
// Unoptimized code keeps each mask in a lane of its own and never writes that lane again.
// Without this, masks that no instruction reads any more would double the tuples.
// Addresses are not known yet, so storages in memory are told apart by registers and
// offsets only. Where that is wrong a mask is forgotten too early: rows lack rules then,
// and have no wrong ones.
func (f *flow) findNeeded() error {
	l := liveness{blocks: map[uint64]*laneBlock{}, numbers: map[storage]int{}}
	moves := 0
	for p := range f.All() {
		b, err := f.laneBlock(p.Address)
		if err != nil {
			return err
		}
		l.blocks[p.Address], l.order = b, append(l.order, b)
		moves += len(b.moves)
	}
	if moves > maxLaneMoves {
		return nil
	}
	for more := true; more; {
		if !f.Spend(moves) {
			return f.Err()
		}
		more = l.number()
		if len(l.numbers)*len(l.order) > maxLive {
			return nil
		}
	}
	l.choose()
	for changed := true; changed; {
		changed = false
		for _, b := range slices.Backward(l.order) {
			if !f.Spend(1 + len(b.moves) + len(l.numbers)/8) {
				return f.Err()
			}
			live := l.before(b, nil)
			changed = changed || !slices.Equal(live, b.live)
			b.live = live
		}
	}
	f.needed = make(map[uint64]needed, moves)
	for _, b := range l.order {
		l.before(b, f.needed)
	}
	return nil
}

// needed has the lanes of the storages of a move that are read after it.
type needed struct{ dst, src uint64 }

// laneBlock reads a block.
func (f *flow) laneBlock(start uint64) (*laneBlock, error) {
	b := &laneBlock{}
	for pc := start; ; {
		if !f.Spend(1) {
			return nil, f.Err()
		}
		inst, ok := f.decode(pc)
		if !ok {
			return b, nil
		}
		if m := laneMoveOf(inst, f.lanes); m.dst != m.src {
			m.pc = pc
			b.moves = append(b.moves, m)
		}
		pc += uint64(inst.Size)
		switch inst.Flow {
		case isa.Next, isa.Call, isa.IndirectCall:
			if f.Point(pc) == nil {
				continue
			}
			b.next = []uint64{pc}
		case isa.Branch:
			b.next = []uint64{inst.Target}
		case isa.CondBranch:
			b.next = []uint64{inst.Target, pc}
		case isa.Indirect:
			b.mayReadAll = isa.Reg(inst.Src[0].Reg) != returnLow
		}
		return b, nil
	}
}

// laneMoveOf returns the move of lanes by an instruction. If there is none both
// storages are noStorage.
func laneMoveOf(inst *isa.Inst, lanes uint32) laneMove {
	m := laneMove{dst: noStorage, src: noStorage, lanes: ^uint64(0)}
	register := func(o *isa.Operand) storage {
		if p, ok := registerPlace(o.Kind, o.Reg); ok {
			return storage(p)
		}
		return noStorage
	}
	numbered := func(o *isa.Operand) uint64 {
		if o.Kind != isa.Constant {
			return ^uint64(0)
		}
		return 1 << (uint64(o.Value) % uint64(lanes)) //nolint:gosec // the bits that count
	}
	switch inst.Op {
	case isa.VReadlane:
		m.src, m.lanes = register(&inst.Src[0]), numbered(&inst.Src[1])
	case isa.VReadfirst:
		m.src = register(&inst.Src[0])
	case isa.VWritelane:
		if inst.Src[1].Kind == isa.Constant {
			m.dst, m.lanes = register(&inst.Dst), numbered(&inst.Src[1])
		}
	case isa.VMovB32:
		m.dst, m.src = register(&inst.Dst), register(&inst.Src[0])
	case isa.BufferLoad, isa.ScratchLoad:
		if inst.Bytes == 4 {
			m.dst, m.src = register(&inst.Dst), slot(inst)
		}
	case isa.BufferStore, isa.ScratchStore:
		if inst.Bytes == 4 {
			m.dst, m.src = slot(inst), register(&inst.Src[0])
		}
	}
	return m
}

// slot returns the storage in private memory at an offset from the stack or
// frame pointer.
func slot(inst *isa.Inst) storage {
	base := &inst.SOffset
	if inst.Op == isa.ScratchLoad || inst.Op == isa.ScratchStore {
		base = &inst.Base
	}
	if inst.VAddr.Kind != isa.None || base.Kind != isa.Scalar || isa.Reg(base.Reg) != stackPointer && isa.Reg(base.Reg) != framePointer {
		return noStorage
	}
	return memoryBit | storage(base.Reg)<<32 | storage(uint32(inst.Offset)) //nolint:gosec // its bits
}

// number numbers the storages whose lanes some instruction reads by number, and the
// storages from which lanes are moved to such a storage. It reports whether it has to be
// called again.
func (l *liveness) number() (more bool) {
	for _, b := range slices.Backward(l.order) {
		for _, m := range slices.Backward(b.moves) {
			if m.src != noStorage && !l.isNumbered(m.src) && (m.dst == noStorage || l.isNumbered(m.dst)) {
				l.numbers[m.src], more = len(l.numbers), true
			}
		}
	}
	return more
}

func (l *liveness) isNumbered(k storage) bool {
	_, ok := l.numbers[k]
	return ok
}

// choose removes the moves between storages that have no number.
func (l *liveness) choose() {
	for _, b := range l.order {
		b.moves = slices.DeleteFunc(b.moves, func(m laneMove) bool { return !l.isNumbered(m.dst) && !l.isNumbered(m.src) })
		b.live = make([]uint64, len(l.numbers))
	}
}

// before finds which lanes are read after a block begins. If all is not nil, it gets for
// each move of the block the lanes that are read after that.
func (l *liveness) before(b *laneBlock, all map[uint64]needed) []uint64 {
	live := make([]uint64, len(l.numbers))
	for _, n := range b.next {
		if o := l.blocks[n]; o != nil {
			for i := range live {
				live[i] |= o.live[i]
			}
		}
	}
	if b.mayReadAll {
		for i := range live {
			live[i] = ^uint64(0)
		}
	}
	find := func(k storage) (i int, lanes uint64) {
		if i, ok := l.numbers[k]; ok {
			return i, live[i]
		}
		return -1, 0
	}
	for i := len(b.moves) - 1; i >= 0; i-- {
		m := &b.moves[i]
		dst, after := find(m.dst)
		src, kept := find(m.src)
		if all != nil {
			all[m.pc] = needed{after, kept}
		}
		lanes := m.lanes
		if m.src != noStorage && m.dst != noStorage {
			lanes = after
		}
		if dst >= 0 {
			live[dst] &^= lanes
		}
		if src >= 0 {
			live[src] |= lanes
		}
	}
	return live
}
