// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// layout has the evidence in an object's code for where its functions are.
type layout struct {
	entries      []uint64 // the addresses that instructions compute and do not jump to: functions that are called, sorted
	jumps        []jump   // the branches, sorted by target
	tails        []jump   // the jumps to computed addresses, sorted by target: tail calls
	hasWildJumps bool     // some jump leads to an address that is not known, and is no return
	// spoils are the accumulation registers that code writes in all lanes, active or not.
	// LLVM does so with registers that contain scalars. Unless the convention preserves
	// such a register, LLVM does not save the lanes that the caller had inactive.
	spoils registerSet
	// writes are the vector registers that code writes.
	writes registerSet
}

type jump struct{ target, source uint64 }

// maxSwept bounds the code of an object that is searched for functions.
const maxSwept = 16 << 20

// sweep reads code from one end to the other. Between functions it skips words that
// begin no instruction.
func sweep(c code, target isa.Target) *layout {
	l := &layout{}
	left := maxSwept
	for _, s := range c {
		made := map[uint16]uint64{} // by register pairs
		all := false                // EXEC has all lanes
		indexed := false            // an index is added to the registers that instructions write
		for offset := 0; offset+4 <= min(len(s.data), left); {
			pc := s.start + uint64(offset)
			inst, err := target.Decode(s.data[offset:], pc)
			if err != nil || inst.Size == 0 {
				offset, all = offset+4, false
				continue
			}
			offset += int(inst.Size)
			if inst.Writes.HasExec() || inst.Flow != isa.Next {
				all = inst.Flow == isa.Next && hasAllLanesAfter(&inst)
			} else if p, ok := registerPlace(inst.Dst.Kind, inst.Dst.Reg); ok && all && inst.Op == isa.VMovB32 && p >= agprs {
				l.spoils.addInactive(int(p))
			}
			if inst.Op == isa.SSetGPRIdx || inst.Op == isa.SGPRIdxOff {
				indexed = inst.Op == isa.SSetGPRIdx
			}
			l.noteWrites(&inst, indexed || inst.Writes.HasUnknownVectors)
			l.note(&inst, pc, made)
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
// added to these it records their neighbours, too.
func (l *layout) noteWrites(inst *isa.Inst, indexed bool) {
	for _, span := range &inst.Writes.Vectors {
		first, end := int(span.First), int(span.First)+int(span.Count)
		if indexed {
			first, end = max(first-indexReach, 0), end+indexReach
		}
		for i := first; i < end && span.Kind != isa.None; i++ {
			if p, ok := registerPlace(span.Kind, uint16(i)); ok { //nolint:gosec // small
				l.writes.addActive(int(p))
			}
		}
	}
}

// hasAllLanesAfter reports whether EXEC has all lanes after an instruction that writes it.
func hasAllLanesAfter(inst *isa.Inst) bool {
	ones := inst.Src[0].Kind == isa.Constant && int32(inst.Src[0].Value) == -1 //nolint:gosec // of as many bits as a mask has
	switch inst.Op {
	case isa.SOrSaveexec, isa.SMovB32, isa.SMovB64:
		return ones
	}
	return false
}

// note records the evidence of an instruction. computed has the addresses that
// instructions are computing, by their registers.
func (l *layout) note(inst *isa.Inst, pc uint64, computed map[uint16]uint64) {
	constant := inst.Src[1].Kind == isa.Constant
	switch {
	case inst.Op == isa.SGetpc:
		computed[inst.Dst.Reg] = pc + uint64(inst.Size)
	case inst.Op == isa.SAddU32 && constant && inst.Src[0] == inst.Dst:
		if address, ok := computed[inst.Dst.Reg]; ok {
			computed[inst.Dst.Reg] = address + uint64(uint32(inst.Src[1].Value)) //nolint:gosec // 32 bits
		}
	case inst.Op == isa.SAddcU32 && constant && inst.Src[0] == inst.Dst:
		if address, ok := computed[inst.Dst.Reg-1]; ok {
			computed[inst.Dst.Reg-1] = address + uint64(uint32(inst.Src[1].Value))<<32 //nolint:gosec // 32 bits
		}
	case inst.Op == isa.SAddU64 && constant && inst.Src[0] == inst.Dst:
		if address, ok := computed[inst.Dst.Reg]; ok {
			computed[inst.Dst.Reg] = address + uint64(inst.Src[1].Value) //nolint:gosec // modular
		}
	case inst.Flow == isa.Call:
		l.entries = append(l.entries, inst.Target)
	case inst.Flow == isa.Branch || inst.Flow == isa.CondBranch:
		l.jumps = append(l.jumps, jump{inst.Target, pc})
	case inst.Flow == isa.IndirectCall:
		if address, ok := computed[inst.Src[0].Reg]; ok {
			l.entries = append(l.entries, address)
		}
	case inst.Flow == isa.Indirect:
		if address, ok := computed[inst.Src[0].Reg]; ok {
			l.tails = append(l.tails, jump{address, pc})
		} else if isa.Reg(inst.Src[0].Reg) != returnLow {
			l.hasWildJumps = true
		}
		clear(computed)
	case inst.Flow == isa.End || inst.Writes.HasUnknownScalars:
		clear(computed)
	case inst.Op != isa.SSextI16: // of the high half, on gfx12
		inst.Writes.EachScalar(func(r isa.Reg) {
			delete(computed, uint16(r))
			delete(computed, uint16(r)-1)
		})
	}
}

// jumpsTo returns the jumps of a list that lead to an address. The list is sorted by
// target.
func jumpsTo(list []jump, target uint64) []jump {
	compare := func(j jump, a uint64) int { return cmp.Compare(j.target, a) }
	first, _ := slices.BinarySearchFunc(list, target, compare)
	end, _ := slices.BinarySearchFunc(list, target+1, compare)
	return list[first:max(first, end)]
}

// source returns a branch from outside of a range into it; ok is false where
// there is none, or the range begins with a function that is called.
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

// maxOwners bounds the functions before an address that are followed to find
// the one that leads there.
const maxOwners = 16

// owner returns the first instruction of the function from which branches lead
// to an address, among the entries and starts (sorted) before it.
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

// hasInstructionAt reports whether one of the blocks that were found has an instruction at or
// across an address.
func (f *flow) hasInstructionAt(address uint64) bool {
	for b := range f.All() {
		if b.Address > address {
			break
		}
		for pc := b.Address; pc <= address; {
			inst, ok := f.decode(pc)
			if !f.Spend(1) || !ok {
				break
			}
			if next := pc + uint64(inst.Size); address < next {
				return true
			} else if pc = next; f.Point(pc) != nil || inst.Flow != isa.Next && inst.Flow != isa.Call && inst.Flow != isa.IndirectCall {
				break
			}
		}
	}
	return false
}
