// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// A layout is what the code of an object shows of where its functions are.
type layout struct {
	entries      []uint64 // the addresses that instructions compute and do not jump to: functions that are called, sorted
	jumps        []jump   // the branches, sorted by target
	tails        []jump   // the jumps to computed addresses, sorted by target: calls that are the last thing a function does
	hasWildJumps bool     // some jump leads to an address that is not known, and is no return
	// spoils are the accumulation registers that code writes in all lanes, active or
	// not. LLVM does so with registers that hold scalars. Unless the convention
	// preserves such a register, LLVM does not save the lanes that the caller had inactive.
	spoils registerSet
	// writes are the vector registers that code writes.
	writes registerSet
}

type jump struct{ target, source uint64 }

// maxSwept is how much code of an object is searched for functions.
const maxSwept = 16 << 20

// sweep reads code from one end to the other. Between functions it skips, word by word,
// what is no instruction.
func sweep(c code, target isa.Target) *layout {
	l := &layout{}
	left := maxSwept
	for _, s := range c {
		made := map[uint16]uint64{} // by register pairs
		all := false                // EXEC has all lanes
		indexed := false            // an index is added to what instructions write
		for at := 0; at+4 <= min(len(s.data), left); {
			pc := s.start + uint64(at)
			in, err := target.Decode(s.data[at:], pc)
			if err != nil || in.Size == 0 {
				at, all = at+4, false
				continue
			}
			at += int(in.Size)
			if in.Writes.HasExec() || in.Flow != isa.Next {
				all = in.Flow == isa.Next && hasAllLanesAfter(&in)
			} else if p, ok := registerPlace(in.Dst.Kind, in.Dst.Reg); ok && all && in.Op == isa.VMovB32 && p >= agprs {
				l.spoils.addOut(int(p))
			}
			if in.Op == isa.SSetGPRIdx || in.Op == isa.SGPRIdxOff {
				indexed = in.Op == isa.SSetGPRIdx
			}
			l.noteWrites(&in, indexed || in.Writes.HasUnknownVectors)
			l.note(&in, pc, made)
		}
		left -= min(len(s.data), left)
	}
	slices.Sort(l.entries)
	l.entries = slices.Compact(l.entries)
	for _, list := range [][]jump{l.jumps, l.tails} {
		slices.SortFunc(list, func(a, b jump) int {
			return cmp.Or(cmp.Compare(a.target, b.target), cmp.Compare(a.source, b.source))
		})
	}
	return l
}

// noteWrites records the vector registers that an instruction writes. Where an index is
// added to these it records those around them, too.
func (l *layout) noteWrites(in *isa.Inst, indexed bool) {
	for _, span := range &in.Writes.Vectors {
		first, end := int(span.First), int(span.First)+int(span.Count)
		if indexed {
			first, end = max(first-indexReach, 0), end+indexReach
		}
		for i := first; i < end && span.Kind != isa.None; i++ {
			if p, ok := registerPlace(span.Kind, uint16(i)); ok { //nolint:gosec // small
				l.writes.addIn(int(p))
			}
		}
	}
}

// hasAllLanesAfter says whether EXEC has all lanes after an instruction that writes it.
func hasAllLanesAfter(in *isa.Inst) bool {
	ones := in.Src[0].Kind == isa.Constant && int32(in.Src[0].Value) == -1 //nolint:gosec // of as many bits as a mask has
	switch in.Op {
	case isa.SOrSaveexec, isa.SMovB32, isa.SMovB64:
		return ones
	}
	return false
}

// note records what an instruction shows. made has the addresses that instructions are
// computing, by the registers that hold them.
func (l *layout) note(in *isa.Inst, pc uint64, made map[uint16]uint64) {
	constant := in.Src[1].Kind == isa.Constant
	switch {
	case in.Op == isa.SGetpc:
		made[in.Dst.Reg] = pc + uint64(in.Size)
	case in.Op == isa.SAddU32 && constant && in.Src[0] == in.Dst:
		if at, ok := made[in.Dst.Reg]; ok {
			made[in.Dst.Reg] = at + uint64(uint32(in.Src[1].Value)) //nolint:gosec // 32 bits
		}
	case in.Op == isa.SAddcU32 && constant && in.Src[0] == in.Dst:
		if at, ok := made[in.Dst.Reg-1]; ok {
			made[in.Dst.Reg-1] = at + uint64(uint32(in.Src[1].Value))<<32 //nolint:gosec // 32 bits
		}
	case in.Op == isa.SAddU64 && constant && in.Src[0] == in.Dst:
		if at, ok := made[in.Dst.Reg]; ok {
			made[in.Dst.Reg] = at + uint64(in.Src[1].Value) //nolint:gosec // modular
		}
	case in.Flow == isa.Call:
		l.entries = append(l.entries, in.Target)
	case in.Flow == isa.Branch || in.Flow == isa.CondBranch:
		l.jumps = append(l.jumps, jump{in.Target, pc})
	case in.Flow == isa.IndirectCall:
		if at, ok := made[in.Src[0].Reg]; ok {
			l.entries = append(l.entries, at)
		}
	case in.Flow == isa.Indirect:
		if at, ok := made[in.Src[0].Reg]; ok {
			l.tails = append(l.tails, jump{at, pc})
		} else if isa.Reg(in.Src[0].Reg) != returnLow {
			l.hasWildJumps = true
		}
		clear(made)
	case in.Flow == isa.End || in.Writes.HasUnknownScalars:
		clear(made)
	case in.Op != isa.SSextI16: // of the high half, on gfx12
		in.Writes.EachScalar(func(r isa.Reg) {
			delete(made, uint16(r))
			delete(made, uint16(r)-1)
		})
	}
}

// jumpsTo are the jumps of a list that lead to an address. The list is sorted by target.
func jumpsTo(list []jump, target uint64) []jump {
	compare := func(j jump, a uint64) int { return cmp.Compare(j.target, a) }
	first, _ := slices.BinarySearchFunc(list, target, compare)
	end, _ := slices.BinarySearchFunc(list, target+1, compare)
	return list[first:max(first, end)]
}

// source is a branch from outside of a range into it; ok is false where there is
// none, or the range begins with a function that is called.
func (l *layout) source(start, end uint64) (pc uint64, ok bool) {
	if _, called := slices.BinarySearch(l.entries, start); called {
		return 0, false
	}
	i, _ := slices.BinarySearchFunc(l.jumps, start, func(j jump, a uint64) int { return cmp.Compare(j.target, a) })
	for ; i < len(l.jumps) && l.jumps[i].target < end; i++ {
		if s := l.jumps[i].source; s < start || s >= end {
			return s, true
		}
	}
	return 0, false
}

// maxOwners is how many functions before an address are followed to find the
// one that leads there.
const maxOwners = 16

// owner is the first instruction of the function from which branches lead to an
// address, among the entries and starts (sorted) before it.
func (l *layout) owner(m *machineMode, c code, starts []uint64, pc uint64, steps *int) (entry uint64, ok bool) {
	before := func(list []uint64) []uint64 {
		i, found := slices.BinarySearch(list, pc)
		if found {
			i++
		}
		return list[max(i-maxOwners, 0):i]
	}
	list := slices.Concat(before(l.entries), before(starts))
	slices.Sort(list)
	list = slices.Compact(list)
	for i := len(list) - 1; i >= max(len(list)-maxOwners, 0); i-- {
		f := newFlow(m, c, list[i], steps, nil)
		if f.FindBlocks(f.entry, f.edges) == nil && f.hasInstructionAt(pc) {
			return list[i], true
		}
	}
	return 0, false
}

// hasInstructionAt says whether one of the blocks that were found has an instruction at an
// address, or around it.
func (f *flow) hasInstructionAt(address uint64) bool {
	for b := range f.All() {
		if b.Address > address {
			break
		}
		for pc := b.Address; pc <= address; {
			in, ok := f.decode(pc)
			if !f.Spend(1) || !ok {
				break
			}
			if next := pc + uint64(in.Size); address < next {
				return true
			} else if pc = next; f.Point(pc) != nil || in.Flow != isa.Next && in.Flow != isa.Call && in.Flow != isa.IndirectCall {
				break
			}
		}
	}
	return false
}
