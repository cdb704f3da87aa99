// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"bytes"
	"cmp"
	"errors"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// Limits of the code that is read. Compiled functions stay far below.
const (
	maxBlocks = 1 << 14 // of a function
	maxSteps  = 1 << 23 // instructions, over all visits, of a function and those that it calls
	maxWeight = 1 << 24 // words of memory for the states of a function
	maxCallee = 1 << 14 // functions that one function leads to
)

var errWeight = errors.New("the code takes more memory to read than any compiled function")

// codeSection is code at its address.
type codeSection struct {
	start uint64
	data  []byte
}

// code is the readable code of an object: sections sorted by address, without
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

// hasCode reports whether some bytes are at an address.
func (c code) hasCode(start uint64, data []byte) bool { return bytes.HasPrefix(c.at(start), data) }

// summary is the effect of a function on its callers.
type summary struct {
	canReturn bool        // a path from its beginning to its end is known
	changes   registerSet // the registers that it may change
}

// flow follows a function from its first instruction over every branch, and
// finds the state before each block.
type flow struct {
	*codeflow.Flow[*codeState]
	*machineMode
	code    code
	callee  func(target uint64) *summary // the effect of a function; nil where it is not known
	entry   uint64
	inst    isa.Inst // the instruction that was decoded last, at pc; of size 0 where there is none
	pc      uint64
	step    stepper
	taken   *codeState // the state where a branch is taken
	weight  int        // of the states before blocks
	exits   summary
	leaving []*block                // the blocks that end with a jump out of the function, by address
	entered *registerSet            // registers that may have changed between the call and the entry; nil: none
	tails   map[uint64]*registerSet // by functions that it jumps to: the registers that have changed there. Known at the end
	needed  map[uint64]needed       // by the addresses of instructions that move lanes
	unknown uint64                  // the address of an instruction that could not be read; 0: there is none
}

// block is code that is entered at its first instruction only. Where a later branch
// leads into it, it ends there and another block begins.
type block = codeflow.Point[*codeState]

func newFlow(m *machineMode, c code, entry uint64, steps *int, callee func(uint64) *summary) *flow {
	f := &flow{
		machineMode: m, code: c, callee: callee, entry: entry,
		step: stepper{machineMode: m, symbols: map[uint64]uint16{}},
	}
	f.Flow = codeflow.ByBlock(f, steps, maxBlocks)
	return f
}

// decode reads the instruction at an address. The result is valid until another one is
// read.
func (f *flow) decode(pc uint64) (inst *isa.Inst, ok bool) {
	if f.pc == pc && f.inst.Size > 0 {
		return &f.inst, true
	}
	f.inst, f.pc = isa.Inst{}, pc
	if b := f.code.at(pc); b != nil {
		if inst, err := f.target.Decode(b, pc); err == nil {
			f.inst = inst
		}
	}
	return &f.inst, f.inst.Size > 0
}

// run follows the function until nothing new is found.
func (f *flow) run() error {
	if err := f.FindBlocks(f.entry, f.edges); err != nil {
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
	f.Arrive(f.entry, &s)
	if err := f.Run(); err != nil {
		return err
	}
	return f.leaveAll()
}

// leaveAll finds the exits anew from the states at the end. Earlier states may have known
// less, because masks were forgotten to bound their number.
func (f *flow) leaveAll() error {
	f.exits, f.tails = summary{}, map[uint64]*registerSet{}
	for _, b := range f.leaving {
		if err := f.Replay(b, nil); err != nil {
			return err
		}
	}
	return nil
}

// edges returns where control goes after an instruction, if every call
// returns.
func (f *flow) edges(pc uint64) (w codeflow.Edges) {
	inst, ok := f.decode(pc)
	if !ok {
		return codeflow.Edges{Next: pc}
	}
	w.Next, w.Target = pc+uint64(inst.Size), inst.Target
	switch inst.Flow {
	case isa.Branch:
		w.Jumps = true
	case isa.CondBranch:
		w.Jumps, w.Continues = true, true
	case isa.Next, isa.Call, isa.IndirectCall:
		w.Continues = true
	}
	return w
}

// spend takes steps off the budget, and more of them where a state has many tuples.
// codeflow has taken the first step of each instruction.
func (f *flow) spend(steps int, s *codeState) (ok bool) {
	n := len(s.masks.tuples)
	steps += n*n>>14 + s.masks.work
	s.masks.work = 0
	return f.Spend(steps)
}

// Join joins a state into the state before a block. It bounds the memory of the states,
// whose size codeflow does not know.
func (f *flow) Join(b *block, state **codeState, isFirst bool) (hasChanged bool) {
	s := *state
	s.limit()
	s.collect()
	f.spend(1, s)
	if isFirst {
		b.State = s.clone()
	} else {
		both := join(b.State, s)
		if f.spend(1, both); both.equal(b.State) {
			return false
		}
		f.weight -= b.State.weight()
		b.State = both
	}
	if f.weight += b.State.weight(); f.weight > maxWeight {
		f.Fail(errWeight)
	}
	return true
}

// Copy copies a state into the memory of another.
func (f *flow) Copy(to, from **codeState) {
	if *to == nil {
		*to = &codeState{}
	}
	(*to).set(*from)
}

// Step executes the instruction at an address.
func (f *flow) Step(pc uint64, state **codeState) (next uint64, continues bool) {
	s := *state
	if !f.spend(0, s) {
		return pc, false
	}
	inst, ok := f.decode(pc)
	if !ok {
		f.unknown = pc
		return pc, false
	}
	f.step.s, next = s, pc+uint64(inst.Size)
	switch inst.Flow {
	case isa.Next:
		f.step.step(inst, pc)
		if n, ok := f.needed[pc]; ok {
			f.step.release(inst, n)
		}
		return next, true
	case isa.Call, isa.IndirectCall:
		return next, f.call(inst)
	case isa.Branch:
		f.Arrive(inst.Target, state)
	case isa.CondBranch:
		f.branch(inst, next)
	case isa.Indirect:
		f.leave(inst)
	}
	return next, false
}

// replay executes the instructions of a block once more, and calls each with every one of
// them and the state before it.
func (f *flow) replay(b *block, each func(pc uint64, inst *isa.Inst, s *codeState)) error {
	return f.Replay(b, func(pc uint64, s **codeState) {
		if inst, ok := f.decode(pc); ok {
			each(pc, inst, *s)
		}
	})
}

// branch follows both edges of a conditional branch. If the branch tests whether EXEC
// is empty, EXEC is known to be empty on one of the edges.
func (f *flow) branch(inst *isa.Inst, next uint64) {
	s := f.step.s
	f.step.clobber(inst)
	f.Copy(&f.taken, &s)
	empty := (*codeState)(nil)
	switch inst.Op {
	case isa.SCbranchEXECZ:
		empty = f.taken
	case isa.SCbranchEXECNZ:
		empty = s
	}
	if empty != nil {
		empty.masks.only(empty.exec(f.lanes), 0)
	}
	f.Arrive(inst.Target, &f.taken)
	f.Arrive(next, &s)
}

// calls returns the function that a call leads to, if the code tells.
func (f *flow) calls(inst *isa.Inst) (target uint64, ok bool) {
	if inst.Flow == isa.Call {
		return inst.Target, true
	}
	return f.codeAddress(&inst.Src[0])
}

// codeAddress returns the address of code that an operand has.
func (f *flow) codeAddress(o *isa.Operand) (uint64, bool) {
	low, high := f.step.operand(o, 0), f.step.operand(o, 1)
	if low.kind != codeLow || high.kind != codeHigh || low.address != high.address {
		return 0, false
	}
	target := low.address + (uint64(high.add)<<32 | uint64(low.add))
	return target, target%4 == 0 && f.code.at(target) != nil
}

// effect returns the registers that a call changes, and whether it is known
// to return.
func (f *flow) effect(inst *isa.Inst) (changes *registerSet, returns bool) {
	if target, ok := f.calls(inst); ok {
		if s := f.callee(target); s != nil {
			return &s.changes, s.canReturn
		}
		return &unknownCallee, true
	}
	return &f.abi, true
}

// unknownCallee has the registers that a function may change which is called directly and cannot be
// read: all of them, and of vector registers the active lanes. Where all calls of a function are
// direct, compilers let it change what the convention preserves, and its callers keep values in
// other registers that it leaves alone.
var unknownCallee = func() (all registerSet) {
	for i := range all.scalars {
		all.scalars[i] = ^uint64(0)
	}
	for i := range all.active {
		all.active[i] = ^uint64(0)
	}
	return all
}()

// call applies a call to the state. It returns false if the call does not
// return.
func (f *flow) call(inst *isa.Inst) bool {
	changes, returns := f.effect(inst)
	if returns {
		f.step.call(inst, changes)
	}
	return returns
}

// leave follows a jump to an address in registers: a return, a jump to another
// function in the place of a call and a return, or one that is too far for a
// branch. After the latter two, the facts about the caller still hold.
func (f *flow) leave(inst *isa.Inst) {
	b := f.Current()
	if i, isNoted := slices.BinarySearchFunc(f.leaving, b.Address, func(b *block, address uint64) int { return cmp.Compare(b.Address, address) }); !isNoted {
		f.leaving = slices.Insert(f.leaving, i, b)
	}
	s := f.step.s
	if target, ok := f.codeAddress(&inst.Src[0]); ok {
		if f.tails != nil {
			if f.tails[target] == nil {
				f.tails[target] = &registerSet{}
			}
			f.tails[target].add(s.changes())
		}
		f.Arrive(target, &s)
		return
	}
	low, high := f.step.operand(&inst.Src[0], 0), f.step.operand(&inst.Src[0], 1)
	if low != entryOf(returnLow) || high != entryOf(returnHigh) {
		f.step.call(inst, &f.abi)
	}
	f.exits.canReturn = true
	f.exits.changes.add(s.changes())
}

// changes returns the registers that do not have their values on entry.
func (s *codeState) changes() *registerSet {
	var c registerSet
	for i, v := range s.scalars {
		if r := isa.Reg(i); v != entryOf(r) && r != isa.ExecLo && r != isa.ExecHi {
			c.addScalar(r)
		}
	}
	for i := range s.places {
		p, v := s.places[i].place, &s.places[i].v
		if p.isPrivate() {
			continue
		}
		own := p.untouched()
		active, inactive := v.whole()
		if v.active != own.active || !active {
			c.addActive(int(p))
		}
		if v.inactive != own.inactive || !inactive {
			c.addInactive(int(p))
		}
	}
	return &c
}

// callees returns the targets of calls and the addresses of code that instructions
// compute. The function may call others besides, and need not call all of them.
func (f *flow) callees() []uint64 {
	var list []uint64
	type pair struct {
		address, low uint64
	}
	computed := map[uint16]pair{}
	for b := range f.All() {
		for pc := b.Address; ; {
			inst, ok := f.decode(pc)
			if !ok {
				break
			}
			pc += uint64(inst.Size)
			switch {
			case inst.Op == isa.SGetpc:
				computed[inst.Dst.Reg] = pair{address: pc}
			case inst.Op == isa.SAddU32 && inst.Src[1].Kind == isa.Constant:
				if p, ok := computed[inst.Dst.Reg]; ok && inst.Src[0] == inst.Dst {
					p.low = uint64(uint32(inst.Src[1].Value)) //nolint:gosec // 32 bits
					computed[inst.Dst.Reg] = p
				}
			case inst.Op == isa.SAddcU32 && inst.Src[1].Kind == isa.Constant:
				if p, ok := computed[inst.Dst.Reg-1]; ok {
					list = append(list, p.address+p.low+uint64(uint32(inst.Src[1].Value))<<32) //nolint:gosec // 32 bits
				}
			case inst.Op == isa.SAddU64 && inst.Src[1].Kind == isa.Constant:
				if p, ok := computed[inst.Dst.Reg]; ok {
					list = append(list, p.address+uint64(inst.Src[1].Value)) //nolint:gosec // modular
				}
			case inst.Flow == isa.Call:
				list = append(list, inst.Target)
			}
			if inst.Flow != isa.Next && inst.Flow != isa.Call && inst.Flow != isa.IndirectCall || f.Point(pc) != nil {
				break
			}
			if !f.Spend(1) {
				break
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
