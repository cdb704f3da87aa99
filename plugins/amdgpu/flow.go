// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"bytes"
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// Limits of what is read. Compiled functions stay far below.
const (
	maxBlocks = 1 << 14 // of a function
	maxSteps  = 1 << 23 // instructions, over all visits, of a function and those that it calls
	maxWeight = 1 << 24 // words of memory for the states of a function
	maxCallee = 1 << 14 // functions that one function leads to
)

var (
	errSteps  = errors.New("the code takes more steps to read than any compiled function")
	errBlocks = fmt.Errorf("a function with more than %d branches", maxBlocks)
	errWeight = errors.New("the code takes more memory to read than any compiled function")
)

// A codeSection is code at its address.
type codeSection struct {
	start uint64
	data  []byte
}

// code is what can be read of an object: sections sorted by address, without
// overlap.
type code []codeSection

// at returns the code from an address on; nil where there is none.
func (c code) at(pc uint64) []byte {
	i, found := slices.BinarySearchFunc(c, pc, func(s codeSection, pc uint64) int { return cmp.Compare(s.start, pc) })
	if !found {
		i--
	}
	if i < 0 || pc-c[i].start >= uint64(len(c[i].data)) {
		return nil
	}
	return c[i].data[pc-c[i].start:]
}

// hasCode says whether some bytes are at an address.
func (c code) hasCode(start uint64, data []byte) bool { return bytes.HasPrefix(c.at(start), data) }

// A summary is what a function does to those who call it.
type summary struct {
	canReturn bool        // a way from its beginning to its end is known
	changes   registerSet // the registers that it may change
}

// A block is code that is entered at its first instruction only. Where a later branch
// leads into it, it ends there and another block begins.
type block struct {
	start, end uint64
	before     *codeState
	isWaiting  bool
	hasExit    bool // it ends with a jump out of the function
}

// A flow follows a function from its first instruction over every branch, and
// finds the state before each block.
type flow struct {
	*machineMode
	code    code
	steps   *int                         // how many steps are left
	callee  func(target uint64) *summary // what a function does; nil where that is not known
	entry   uint64
	blocks  map[uint64]*block
	queue   addressHeap
	step    stepper
	weight  int
	exits   summary
	entered *registerSet            // registers that may have changed between the call and the entry; nil: none
	tails   map[uint64]*registerSet // by functions that it jumps to: what has changed there. Known at the end
	needed  map[uint64]needed       // by the addresses of instructions that move lanes
	unknown uint64                  // the address of an instruction that could not be read; 0: there is none
}

type addressHeap []uint64

func (h addressHeap) Len() int           { return len(h) }
func (h addressHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h addressHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *addressHeap) Push(x any)        { *h = append(*h, x.(uint64)) }
func (h *addressHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

func newFlow(m *machineMode, c code, entry uint64, steps *int, callee func(uint64) *summary) *flow {
	return &flow{
		machineMode: m, code: c, steps: steps, callee: callee, entry: entry,
		blocks: map[uint64]*block{}, step: stepper{machineMode: m, symbols: map[uint64]uint16{}},
	}
}

// decode reads the instruction at an address.
func (f *flow) decode(pc uint64) (isa.Inst, bool) {
	b := f.code.at(pc)
	if b == nil {
		return isa.Inst{}, false
	}
	in, err := f.target.Decode(b, pc)
	return in, err == nil && in.Size > 0
}

// run follows the function until nothing new is found.
func (f *flow) run() error {
	if err := f.findBlocks(); err != nil {
		return err
	}
	if err := f.findNeeded(); err != nil {
		return err
	}
	s := entryState(f.lanes)
	if f.entered != nil {
		s.lose(f.entered)
		f.step.touched.add(f.entered)
	}
	if err := f.arrive(f.entry, s); err != nil {
		return err
	}
	for len(f.queue) > 0 {
		b := f.blocks[heap.Pop(&f.queue).(uint64)]
		b.isWaiting = false
		if err := f.walk(b); err != nil {
			return err
		}
	}
	return f.leaveAll()
}

// leaveAll finds the exits anew from the states at the end. Earlier states may have known
// less, because masks were forgotten to make room for others.
func (f *flow) leaveAll() error {
	f.exits, f.tails = summary{}, map[uint64]*registerSet{}
	for _, b := range f.blocks {
		if !b.hasExit {
			continue
		}
		if err := f.visit(b, nil, func(uint64, *codeState) error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// findBlocks finds where branches lead before any block is walked. Few blocks need to be
// divided later.
func (f *flow) findBlocks() error {
	seen := map[uint64]bool{}
	waiting := []uint64{f.entry}
	for len(waiting) > 0 {
		pc := waiting[len(waiting)-1]
		waiting = waiting[:len(waiting)-1]
		if f.blocks[pc] != nil {
			continue
		}
		if len(f.blocks) == maxBlocks {
			return errBlocks
		}
		f.blocks[pc] = &block{start: pc, end: pc}
		for !seen[pc] {
			seen[pc] = true
			if *f.steps--; *f.steps < 0 {
				return errSteps
			}
			in, ok := f.decode(pc)
			if !ok {
				break
			}
			pc += uint64(in.Size)
			switch in.Flow {
			case isa.Branch:
				waiting = append(waiting, in.Target)
			case isa.CondBranch:
				waiting = append(waiting, in.Target, pc)
			case isa.Next, isa.Call, isa.IndirectCall:
				continue
			}
			break
		}
	}
	return nil
}

// arrive joins a state into the state before a block.
func (f *flow) arrive(pc uint64, s *codeState) error {
	s.limit()
	s.collect()
	f.spend(s)
	b := f.blocks[pc]
	if b == nil {
		if len(f.blocks) == maxBlocks {
			return errBlocks
		}
		b = &block{start: pc, end: pc}
		f.blocks[pc] = b
		// A block that contains the address has been walked past it.
		for _, o := range f.blocks {
			if o.start < pc && pc < o.end && o.before != nil {
				f.enqueue(o)
			}
		}
		*f.steps -= len(f.blocks) / 8
	}
	if b.before == nil {
		b.before = s
	} else {
		both := join(b.before, s)
		if f.spend(both); both.equal(b.before) {
			return nil
		}
		f.weight -= b.before.weight()
		b.before = both
	}
	if f.weight += b.before.weight(); f.weight > maxWeight {
		return errWeight
	}
	f.enqueue(b)
	return nil
}

// spend counts the steps of an instruction: one, and more where the state before it has
// many tuples.
func (f *flow) spend(s *codeState) {
	n := len(s.masks.tuples)
	*f.steps -= 1 + n*n>>14 + s.masks.work
	s.masks.work = 0
}

func (f *flow) enqueue(b *block) {
	if !b.isWaiting {
		b.isWaiting = true
		heap.Push(&f.queue, b.start)
	}
}

// walk follows a block to the blocks that it leads to.
func (f *flow) walk(b *block) error { return f.visit(b, nil, f.arrive) }

// visit goes through the instructions of a block. It calls each, if it is not nil, with
// every instruction and the state before it, and arrive with every address that the block
// leads to and the state there.
func (f *flow) visit(b *block, each func(pc uint64, in *isa.Inst, s *codeState), arrive func(pc uint64, s *codeState) error) error {
	s := b.before.clone()
	f.step.s = s
	pc := b.start
	for {
		if pc != b.start && f.blocks[pc] != nil {
			b.end = pc
			return arrive(pc, s)
		}
		if f.spend(s); *f.steps < 0 {
			return errSteps
		}
		in, ok := f.decode(pc)
		if !ok {
			b.end, f.unknown = pc, pc
			return nil
		}
		if each != nil {
			each(pc, &in, s)
		}
		next := pc + uint64(in.Size)
		b.end = next
		switch in.Flow {
		case isa.Next:
			f.step.step(&in, pc)
			if n, ok := f.needed[pc]; ok {
				f.step.release(&in, n)
			}
		case isa.Branch:
			return arrive(in.Target, s)
		case isa.CondBranch:
			return f.branch(&in, next, arrive)
		case isa.Call, isa.IndirectCall:
			if !f.call(&in) {
				return nil
			}
		case isa.Indirect:
			b.hasExit = true
			return f.leave(&in, arrive)
		default:
			return nil
		}
		pc = next
	}
}

// branch follows both ways of a conditional branch. If the branch asks whether EXEC is
// empty, EXEC is known to be empty on one of the ways.
func (f *flow) branch(in *isa.Inst, next uint64, arrive func(uint64, *codeState) error) error {
	s := f.step.s
	f.step.clobber(in)
	taken := s.clone()
	empty := (*codeState)(nil)
	switch in.Op {
	case isa.SCbranchEXECZ:
		empty = taken
	case isa.SCbranchEXECNZ:
		empty = s
	}
	if empty != nil {
		empty.masks.only(empty.exec(f.lanes), 0)
	}
	if err := arrive(in.Target, taken); err != nil {
		return err
	}
	return arrive(next, s)
}

// calls is the function that a call leads to, if the code says so.
func (f *flow) calls(in *isa.Inst) (target uint64, ok bool) {
	if in.Flow == isa.Call {
		return in.Target, true
	}
	return f.codeAddress(&in.Src[0])
}

// codeAddress is the address of code that an operand is.
func (f *flow) codeAddress(o *isa.Operand) (uint64, bool) {
	low, high := f.step.operand(o, 0), f.step.operand(o, 1)
	if low.kind != codeLow || high.kind != codeHigh || low.at != high.at {
		return 0, false
	}
	target := low.at + (uint64(high.add)<<32 | uint64(low.add))
	return target, target%4 == 0 && f.code.at(target) != nil
}

// effect is what a call changes, and whether it is known to return.
func (f *flow) effect(in *isa.Inst) (changes *registerSet, returns bool) {
	if target, ok := f.calls(in); ok {
		if s := f.callee(target); s != nil {
			return &s.changes, s.canReturn
		}
		return &unknownCallee, true
	}
	return &f.abi, true
}

// unknownCallee is what a function may change that is called directly and cannot be read:
// all registers, and of vector registers the active lanes. Where all calls of a function are direct, compilers let it change what the
// convention preserves, and its callers keep values in whatever else it leaves alone.
var unknownCallee = func() (all registerSet) {
	for i := range all.scalars {
		all.scalars[i] = ^uint64(0)
	}
	for i := range all.in {
		all.in[i] = ^uint64(0)
	}
	return all
}()

// call applies a call to the state. It answers false if it does not return.
func (f *flow) call(in *isa.Inst) bool {
	changes, returns := f.effect(in)
	if returns {
		f.step.call(in, changes)
	}
	return returns
}

// leave follows a jump to an address in registers: a return, a jump to another
// function in the place of a call and a return, or one that is too far for a
// branch. Both of the latter go on with what is known of the caller.
func (f *flow) leave(in *isa.Inst, arrive func(uint64, *codeState) error) error {
	if target, ok := f.codeAddress(&in.Src[0]); ok {
		if f.tails != nil {
			if f.tails[target] == nil {
				f.tails[target] = &registerSet{}
			}
			f.tails[target].add(f.step.s.changes())
		}
		return arrive(target, f.step.s)
	}
	low, high := f.step.operand(&in.Src[0], 0), f.step.operand(&in.Src[0], 1)
	if low != entryOf(returnLow) || high != entryOf(returnHigh) {
		f.step.call(in, &f.abi)
	}
	f.exits.canReturn = true
	f.exits.changes.add(f.step.s.changes())
	return nil
}

// changes are the registers that do not hold what they held on entry.
func (s *codeState) changes() *registerSet {
	var c registerSet
	for i, v := range s.scalars {
		if r := isa.Reg(i); v != entryOf(r) && r != isa.ExecLo && r != isa.ExecHi {
			c.addScalar(r)
		}
	}
	for i := range s.places {
		p, v := s.places[i].at, &s.places[i].v
		if p.isPrivate() {
			continue
		}
		own := p.untouched()
		in, out := v.whole()
		if v.in != own.in || !in {
			c.addIn(int(p))
		}
		if v.out != own.out || !out {
			c.addOut(int(p))
		}
	}
	return &c
}

// callees are the targets of calls and the addresses of code that instructions compute.
// The function may call others besides, and need not call all of them.
func (f *flow) callees() []uint64 {
	var list []uint64
	type pair struct {
		at, low uint64
	}
	made := map[uint16]pair{}
	for _, b := range f.blocks {
		for pc := b.start; ; {
			in, ok := f.decode(pc)
			if !ok {
				break
			}
			pc += uint64(in.Size)
			switch {
			case in.Op == isa.SGetpc:
				made[in.Dst.Reg] = pair{at: pc}
			case in.Op == isa.SAddU32 && in.Src[1].Kind == isa.Constant:
				if p, ok := made[in.Dst.Reg]; ok && in.Src[0] == in.Dst {
					p.low = uint64(uint32(in.Src[1].Value)) //nolint:gosec // 32 bits
					made[in.Dst.Reg] = p
				}
			case in.Op == isa.SAddcU32 && in.Src[1].Kind == isa.Constant:
				if p, ok := made[in.Dst.Reg-1]; ok {
					list = append(list, p.at+p.low+uint64(uint32(in.Src[1].Value))<<32) //nolint:gosec // 32 bits
				}
			case in.Op == isa.SAddU64 && in.Src[1].Kind == isa.Constant:
				if p, ok := made[in.Dst.Reg]; ok {
					list = append(list, p.at+uint64(in.Src[1].Value)) //nolint:gosec // modular
				}
			case in.Flow == isa.Call:
				list = append(list, in.Target)
			}
			if in.Flow != isa.Next && in.Flow != isa.Call && in.Flow != isa.IndirectCall || f.blocks[pc] != nil {
				break
			}
			if *f.steps--; *f.steps < 0 {
				break
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
