// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// A keeper is something whose lanes keep values: a vector register, by its place, or 4
// bytes of private memory, by the base register and the offset of the instructions that
// reach it.
type keeper uint64

const (
	noKeeper  keeper = 1<<64 - 1
	memoryBit keeper = 1 << 63
)

// A laneMove is an instruction that copies all lanes of one keeper to another, or that
// reads or writes lanes of a single keeper.
type laneMove struct {
	pc       uint64
	dst, src keeper
	lanes    uint64 // which lanes are read or written, where dst or src is noKeeper
}

// A laneBlock is what a block does to lanes.
type laneBlock struct {
	moves      []laneMove
	next       []uint64
	mayReadAll bool     // it leads to code that is not known: everything may be read there
	live       []uint64 // which lanes are read after the block begins, by the keeper's number
}

// A liveness finds which lanes of a keeper are read later. It numbers the keepers of which
// lanes are read by number at all. It goes over the blocks of a flow in rounds, from the
// last to the first: a flow follows code only the way that it executes.
type liveness struct {
	blocks  map[uint64]*laneBlock
	order   []*laneBlock // by address
	numbers map[keeper]int
}

const (
	maxLaneMoves = 1 << 16 // of a function
	maxLive      = 1 << 20 // keepers, over all blocks
)

// findNeeded finds which lanes of the keepers of an instruction are read after it.
// Unoptimized code keeps each mask in a lane of its own and never writes that lane again.
// Without this, masks that nothing reads any more would double the tuples. Addresses are
// not known yet, so keepers in memory are told apart by registers and offsets only. Where
// that is wrong a mask is forgotten too early, and the rows know less; they say nothing
// wrong.
func (f *flow) findNeeded() error {
	l := liveness{blocks: map[uint64]*laneBlock{}, numbers: map[keeper]int{}}
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

// A needed says which lanes of the keepers of a move are read after it.
type needed struct{ dst, src uint64 }

// laneBlock reads a block.
func (f *flow) laneBlock(start uint64) (*laneBlock, error) {
	b := &laneBlock{}
	for pc := start; ; {
		if !f.Spend(1) {
			return nil, f.Err()
		}
		in, ok := f.decode(pc)
		if !ok {
			return b, nil
		}
		if m := laneMoveOf(in, f.lanes); m.dst != m.src {
			m.pc = pc
			b.moves = append(b.moves, m)
		}
		pc += uint64(in.Size)
		switch in.Flow {
		case isa.Next, isa.Call, isa.IndirectCall:
			if f.Point(pc) == nil {
				continue
			}
			b.next = []uint64{pc}
		case isa.Branch:
			b.next = []uint64{in.Target}
		case isa.CondBranch:
			b.next = []uint64{in.Target, pc}
		case isa.Indirect:
			b.mayReadAll = isa.Reg(in.Src[0].Reg) != returnLow
		}
		return b, nil
	}
}

// laneMoveOf is what an instruction does to lanes. If it does nothing both keepers are
// noKeeper.
func laneMoveOf(in *isa.Inst, lanes uint32) laneMove {
	m := laneMove{dst: noKeeper, src: noKeeper, lanes: ^uint64(0)}
	register := func(o *isa.Operand) keeper {
		if p, ok := registerPlace(o.Kind, o.Reg); ok {
			return keeper(p)
		}
		return noKeeper
	}
	numbered := func(o *isa.Operand) uint64 {
		if o.Kind != isa.Constant {
			return ^uint64(0)
		}
		return 1 << (uint64(o.Value) % uint64(lanes)) //nolint:gosec // the bits that count
	}
	switch in.Op {
	case isa.VReadlane:
		m.src, m.lanes = register(&in.Src[0]), numbered(&in.Src[1])
	case isa.VReadfirst:
		m.src = register(&in.Src[0])
	case isa.VWritelane:
		if in.Src[1].Kind == isa.Constant {
			m.dst, m.lanes = register(&in.Dst), numbered(&in.Src[1])
		}
	case isa.VMovB32:
		m.dst, m.src = register(&in.Dst), register(&in.Src[0])
	case isa.BufferLoad, isa.ScratchLoad:
		if in.Bytes == 4 {
			m.dst, m.src = register(&in.Dst), slot(in)
		}
	case isa.BufferStore, isa.ScratchStore:
		if in.Bytes == 4 {
			m.dst, m.src = slot(in), register(&in.Src[0])
		}
	}
	return m
}

// slot is private memory at an offset from the stack or frame pointer.
func slot(in *isa.Inst) keeper {
	base := &in.SOffset
	if in.Op == isa.ScratchLoad || in.Op == isa.ScratchStore {
		base = &in.Base
	}
	if in.VAddr.Kind != isa.None || base.Kind != isa.Scalar || isa.Reg(base.Reg) != stackPointer && isa.Reg(base.Reg) != framePointer {
		return noKeeper
	}
	return memoryBit | keeper(base.Reg)<<32 | keeper(uint32(in.Offset)) //nolint:gosec // its bits
}

// number numbers the keepers whose lanes some instruction reads by number, and those from
// which lanes are moved to such a keeper. It answers whether it has to be called again.
func (l *liveness) number() (more bool) {
	for _, b := range slices.Backward(l.order) {
		for _, m := range slices.Backward(b.moves) {
			if m.src != noKeeper && !l.isNumbered(m.src) && (m.dst == noKeeper || l.isNumbered(m.dst)) {
				l.numbers[m.src], more = len(l.numbers), true
			}
		}
	}
	return more
}

func (l *liveness) isNumbered(k keeper) bool {
	_, ok := l.numbers[k]
	return ok
}

// choose removes the moves between keepers that have no number.
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
	of := func(k keeper) (i int, lanes uint64) {
		if i, ok := l.numbers[k]; ok {
			return i, live[i]
		}
		return -1, 0
	}
	for i := len(b.moves) - 1; i >= 0; i-- {
		m := &b.moves[i]
		dst, after := of(m.dst)
		src, kept := of(m.src)
		if all != nil {
			all[m.pc] = needed{after, kept}
		}
		lanes := m.lanes
		if m.src != noKeeper && m.dst != noKeeper {
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
