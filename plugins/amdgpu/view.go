// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// How a row comes out of a state, in two worked examples. The state follows the values
// of the caller's registers to where the function keeps them; the row has a rule for
// each of these places. After each instruction stand the changes of the state (s4 =
// s33: s4 has the value of s33 on entry), and after a colon the rule of the row there,
// as rowwriter.go writes it.
//
// Worked example: a frame of buffer instructions (amd_h.gfx90a.co, _Z3reciPi)
//
// The stack pointer on entry is the CFA. It is in s32, and from the second instruction on
// in s33, too, which is tried first because it stays as it is until the function ends.
//
//	1634 s_mov_b32 s4, s33 | s4 = s33 | CFA: SGPR32+0 in 6 | SGPR33: none
//	1638 s_mov_b32 s33, s32 | s33 = s32 | CFA: SGPR33+0 in 6 | SGPR33: SGPR4
//
// All lanes become active, for v41 to be saved in all of them. EXEC on entry is in
// s[6:7] meanwhile, and v41 is in its own register until an instruction writes it. 12
// bytes of each lane are 12 times 64 of the wave.
//
//	163c s_or_saveexec_b64 s[6:7], -1 | entry 01 | EXEC 11 | s[6:7] 01 | EXEC: regx SGPR6; piece 4; regx SGPR7; piece 4
//	1640 buffer_store_dword v41, off, s[0:3], s33 offset:12 | private[12] = v41 | VGPR41: none
//	1648 s_mov_b64 exec, s[6:7] | entry 01 | EXEC 01 | EXEC: none
//	164c v_writelane_b32 v41, s4, 4 | v41[4] = s33 | VGPR41: CFA+768 | SGPR33: SGPR4
//
// The lanes of v41 keep scalar registers. The return address stays where it was as
// long as s30 and s31 have it; a register is better than a lane (see rankScalar).
//
//	1654 v_writelane_b32 v41, s30, 0 | v41[0] = s30 | PC: regx SGPR30; piece 4; regx SGPR31; piece 4
//
// v40 is saved in the lanes that are active. Where it is written, it is written in
// those lanes only: its row selects, lane by lane, between memory and the register.
//
//	165c buffer_store_dword v40, off, s[0:3], s33 offset:8 | private[8] = v40 in, unknown out | VGPR40: none
//	1674 v_writelane_b32 v41, s31, 1 | v41[1] = s31
//	167c v_mov_b32_e32 v40, v0 | v40 = v0 in, v40 out
//	     | VGPR40: regx VGPR40; pick 1; offset_uconst 512; call_frame_entry_reg EXEC; deref_size 8; select_bit_piece 32 64
//
// After 16c8 there is a call. During the call s30 and s31 have its own return
// address: the function's is in the lanes 0 and 1 of v41. s[4:5] may be lost in it,
// too, so EXEC on entry is the union of two masks (see masks.go).
//
//	16c8 v_mov_b32_e32 v2, v43 | PC: regx VGPR41; piece 4; regx VGPR41; offset_uconst 4; piece 4
//	     | entry 011 | EXEC 010 | s[34:35] 001
//	     | EXEC: regx SGPR34; deref_size 4; regx EXEC; deref_size 4; or; stack_value; piece 4; regx SGPR35; deref_size 4; regx EXEC; offset_uconst 4; deref_size 4; or; stack_value; piece 4
//
// Worked example: a frame of scratch instructions (amd_k.gfx1100.co, mid)
//
// Here stack pointers count the bytes of one of 32 lanes: the CFA is 32 times s33,
// and the caller's stack pointer is a lane's part of the CFA.
//
//	1644 s_mov_b32 s2, s33 | s2 = s33 | SGPR33: none
//	1648 s_mov_b32 s33, s32 | s33 = s32 | SGPR33: SGPR2 | SGPR32: a lane's CFA
//	     | CFA: regx SGPR33; deref_size 4; lit5; shl; lit6; form_aspace_address
//
// v8 is a register that functions may change, but not in lanes that they were not
// entered with. It is saved in those, for which EXEC is inverted.
//
//	164c s_xor_saveexec_b32 s0, -1 | entry 01 | EXEC 10 | s0 01 | EXEC: regx SGPR0
//	1650 scratch_store_b32 off, v8, s33 | private[0] = unknown in, v8 out
//	1658 s_mov_b32 exec_lo, s0 | entry 01 | EXEC 01 | EXEC: none
//	1664 v_writelane_b32 v8, s30, 0 | v8[0] = s30
//	     | VGPR8: dup; undefined; call_frame_entry_reg EXEC; deref_size 4; select_bit_piece 32 32
//
// The stack pointer moves up by 16 bytes of a lane. Its old value is still in
// s33.
//
//	166c s_add_i32 s32, s32, 16 | s32 = s32+16 | CFA: regx SGPR33; deref_size 4; lit5; shl; lit6; form_aspace_address
//	168c v_writelane_b32 v8, s31, 1 | v8[1] = s31 | PC: regx VGPR8; piece 4; regx VGPR8; offset_uconst 4; piece 4
//
// After that there is a call, at 1694.

// site is the place of a value of the caller's. 32 bits are in a scalar register or in
// a lane of a place. The lanes of a vector register are in the same lanes of a place,
// or still in the register itself. The zero site is nowhere.
type site struct {
	place place
	kind  siteKind
	reg   isa.Reg
	lane  uint8
}

type siteKind uint8

const (
	nowhere siteKind = iota
	inScalar
	inLane  // for the lanes of a vector register, lane is 0
	inFirst // in the first lane of the place that was active on entry
	itself  // for vector registers only
)

// rule tells where one register of the caller's is. A writer turns it into a rule
// of a row.
type rule struct {
	column uint32
	kind   ruleKind
	// A scalarRule has one site, an addressRule the sites of its low and its high half.
	// A vectorRule has the site of the lanes that were active on entry, and that of the
	// others.
	sites [2]site
}

type ruleKind uint8

const (
	undefinedRule ruleKind = iota
	scalarRule             // 32 bits are at the first site
	addressRule            // 64 bits are at both sites
	maskRule               // EXEC on entry is the union of the view's masks
	vectorRule
	pointerRule // the stack pointer, which counts the bytes of a lane, follows from the CFA
)

// maxUnion bounds the masks whose union is EXEC on entry: one for every
// condition around an instruction, in unoptimized code.
const maxUnion = 8

// view is the frame as a state shows it.
type view struct {
	reason string            // why there is no row; "" where there is one
	cfa    site              // where the stack pointer on entry is, plus add
	add    uint32            //
	rules  []rule            // sorted by column
	masks  [maxUnion][2]site // where the masks are whose union is EXEC on entry, by halves
	bases  []base            // of the places of rules and masks
}

// base is the site of an address that places are relative to: of a stack pointer that
// the function aligned.
type base struct {
	symbol uint16 // of the address
	site   site   // where the address is, plus add
	add    uint32
}

func (v *view) equal(o *view) bool {
	return v.reason == o.reason && v.cfa == o.cfa && v.add == o.add && v.masks == o.masks && slices.Equal(v.rules, o.rules) && slices.Equal(v.bases, o.bases)
}

// Reasons why code has no row.
const (
	reasonReturn = "the code shows no register, lane or private memory that holds the return address here"
	reasonCFA    = "the code shows nothing here from which the stack pointer on entry could be computed"
)

// viewer finds the view of one state after another, and uses its memory again.
type viewer struct {
	*flow
	now, before *evidence
	isAnew      bool        // the last view is invalid for the next state, even if its evidence is equal
	touched     registerSet // the registers that vectors lists
	vectors     []touchedVector

	atCall *registerSet // the registers that the current call changes; nil where there is none
	link   isa.Reg      // the pair in which the call puts its return address

	// The findings of survey: the best site of each scalar register of the caller's, of
	// each mask by halves, of each vector register's lanes that were active on entry, and
	// of its inactive lanes. copied lists the vector registers that active or inactive
	// has.
	scalarSites      [scalars]site
	ranks            [scalars]uint8
	masks            [64][2]site
	maskRanks        [64][2]uint8
	active, inactive [vectors]site
	copied           []uint16

	buffer           []rule // the memory for the next view
	canTellEntryExec bool   // the view has the site of EXEC on entry
}

// touchedVector is a vector register that the function writes. isLost is set where
// the function may change the lanes that were active on entry.
type touchedVector struct {
	place  place
	column uint32
	isLost bool
}

// look gathers the evidence of a state. It reports whether the view of this state may
// differ from the view of the state before.
func (x *viewer) look(inst *isa.Inst, s *codeState) bool {
	x.now, x.before = x.before, x.now
	x.now.gather(s, x.lanes)
	call := inst.Flow == isa.Call || inst.Flow == isa.IndirectCall
	other := call || x.isAnew || x.touched != x.step.touched || !x.now.equal(x.before)
	x.isAnew = call
	if x.touched != x.step.touched {
		x.findVectors()
	}
	return other
}

// findVectors lists the vector registers that the function writes, by their columns. That is
// not the order of their places: VGPR512 and above have columns behind the accumulation
// registers' and, in waves of 32, behind the columns of waves of 64.
func (x *viewer) findVectors() {
	x.touched, x.vectors = x.step.touched, x.vectors[:0]
	for word := range x.touched.active {
		for set := x.touched.active[word] | x.touched.inactive[word]; set != 0; set &= set - 1 {
			i := word*64 + bits.TrailingZeros64(set)
			if column := dwarfVector(place(i), x.lanes); column != noColumn && x.processor.hasVector(place(i)) {
				x.vectors = append(x.vectors, touchedVector{place(i), column, x.touched.hasActive(i) && !isPreserved(column, x.processor)})
			}
		}
	}
	slices.SortFunc(x.vectors, func(a, b touchedVector) int { return cmp.Compare(a.column, b.column) })
}

// isKept reports whether a scalar register has the same value during the call, if there is
// one, as before it. Only the rows of the called function could tell of others.
func (x *viewer) isKept(r isa.Reg) bool {
	return x.atCall == nil || !x.atCall.hasScalar(r)
}

func (x *viewer) isKeptPlace(p place) bool {
	if x.atCall == nil || p.isPrivate() {
		return true
	}
	return !x.atCall.hasActive(int(p)) && !x.atCall.hasInactive(int(p))
}

// The ranks of sites. Where several sites have the same value the row names the one
// with the lowest rank.
const (
	rankOwn      = iota // the register that had the value on entry
	rankScalar          // another scalar register
	rankLane            // a lane of a vector register
	rankPrivate         // a lane of private memory
	rankUniform         // all lanes of private memory
	rankFirst           // all lanes that were active on entry
	rankLost            // a scalar register that the called function may have changed already
	rankLostLane        // a lane that it may have changed
)

// note records that a value is at a site.
func (x *viewer) note(v scalar, s site, rank uint8) {
	switch v.kind {
	case entryScalar:
		if v.add == 0 && (x.scalarSites[v.id].kind == nowhere || rank < x.ranks[v.id]) {
			x.scalarSites[v.id], x.ranks[v.id] = s, rank
		}
	case maskScalar:
		if s.kind == inFirst {
			return // to read it, one must know the mask already
		}
		half := 0
		if v.isHigh {
			half = 1
		}
		if m := &x.masks[v.id][half]; m.kind == nowhere || rank < x.maskRanks[v.id][half] {
			*m, x.maskRanks[v.id][half] = s, rank
		}
	}
}

// view finds the view before an instruction. If that is a call the view is valid during
// the call, too. It reads only the evidence of the state.
func (x *viewer) view(inst *isa.Inst) view {
	x.atCall = nil
	if inst.Flow == isa.Call || inst.Flow == isa.IndirectCall {
		changes := registerSet{}
		if c, returns := x.effect(inst); returns {
			changes = *c
		}
		if inst.Dst.Kind == isa.Scalar {
			changes.addScalar(isa.Reg(inst.Dst.Reg))
			changes.addScalar(isa.Reg(inst.Dst.Reg) + 1)
		}
		for _, r := range [...]isa.Reg{stackPointer, framePointer, isa.ExecLo, isa.ExecHi} {
			changes.scalars[r/64] &^= 1 << (r % 64)
		}
		x.atCall, x.link = &changes, isa.Reg(inst.Dst.Reg)
	}
	e := x.now
	x.survey(e)
	out := view{}
	if out.cfa, out.add = x.findCFA(e); out.cfa.kind == nowhere {
		out.reason = reasonCFA
		return out
	}
	out.rules = x.buffer[:0]
	exec, found := x.execRule(&out, e)
	ra := rule{kind: addressRule, column: pc64, sites: [2]site{x.scalarSites[returnLow], x.scalarSites[returnHigh]}}
	if !x.canTell(ra.sites[0]) || !x.canTell(ra.sites[1]) {
		return view{reason: reasonReturn}
	}
	if found && exec.column < ra.column {
		out.rules = append(out.rules, exec)
	}
	out.rules = append(out.rules, ra)
	if found && exec.column > ra.column {
		out.rules = append(out.rules, exec)
	}
	out.rules = x.scalarRules(out.rules, e)
	out.rules = x.vectorRules(out.rules, e)
	x.buffer = out.rules
	out.bases = x.findBases(e, &out)
	for _, s := range ra.sites {
		if s.kind >= inLane && s.place.isPrivate() && s.place.base() != 0 &&
			slices.ContainsFunc(out.bases, func(b base) bool { return b.symbol == s.place.base() && b.site.kind == nowhere }) {
			return view{reason: reasonReturn}
		}
	}
	return out
}

// canTell reports whether a row can describe a site.
func (x *viewer) canTell(s site) bool {
	return s.kind != nowhere && (s.kind != inFirst || x.canTellEntryExec)
}

// survey finds the best site of every register of the caller's.
func (x *viewer) survey(e *evidence) {
	x.scalarSites, x.masks, x.maskRanks = [scalars]site{}, [64][2]site{}, [64][2]uint8{}
	for _, id := range x.copied {
		x.active[id], x.inactive[id] = site{}, site{}
	}
	x.copied = x.copied[:0]
	for i := range e.scalars {
		r, v := isa.Reg(i), e.scalars[i]
		s := site{kind: inScalar, reg: r}
		switch {
		case x.atCall != nil && (r == x.link || r == x.link+1):
			continue // the register has the return address of the call
		case !x.isKept(r):
			x.note(v, s, rankLost)
		case v.kind == entryScalar && isa.Reg(v.id) == r:
			x.note(v, s, rankOwn)
		default:
			x.note(v, s, rankScalar)
		}
	}
	for i := range e.lanes {
		l := &e.lanes[i]
		rank := uint8(rankLane)
		switch {
		case l.place.isPrivate():
			rank = rankPrivate
		case !x.isKeptPlace(l.place):
			rank = rankLostLane
		}
		x.note(l.v, l.site, max(rank, l.rank))
	}
	for i := range e.parts {
		p := &e.parts[i]
		better := func(m *[vectors]site, id uint16) {
			// Private memory is better than registers. Of two places there the first
			// is better: it is nearer to the stack pointer on entry.
			if id == noRegister || place(id) == p.place {
				return
			}
			if old := &m[id]; old.kind == nowhere || p.place.isPrivate() && !old.place.isPrivate() {
				*old = site{kind: inLane, place: p.place}
				x.copied = append(x.copied, id)
			}
		}
		better(&x.active, p.active)
		better(&x.inactive, p.inactive)
	}
	// EXEC is its own best site.
	if v := e.exec; v.kind == maskScalar && !v.isHigh {
		x.masks[v.id], x.maskRanks[v.id] = [2]site{{kind: inScalar, reg: isa.ExecLo}, {kind: inScalar, reg: isa.ExecHi}}, [2]uint8{}
	}
}

// pointerOrder is the order in which registers are searched for the stack pointer on
// entry. The registers that keep it longest are first, so that many instructions share a
// row.
var pointerOrder = [...]isa.Reg{framePointer, stackPointer, 34, 35}

func (x *viewer) findCFA(e *evidence) (found site, add uint32) {
	is := func(v *scalar) bool { return v.kind == entryScalar && isa.Reg(v.id) == stackPointer }
	for _, r := range pointerOrder {
		if v := &e.scalars[r]; is(v) && x.isKept(r) {
			return site{kind: inScalar, reg: r}, v.add
		}
	}
	for i := range e.scalars {
		r, v := isa.Reg(i), &e.scalars[i]
		if is(v) && x.isKept(r) && (x.atCall == nil || r != x.link && r != x.link+1) {
			return site{kind: inScalar, reg: r}, v.add
		}
	}
	for i := range e.lanes {
		// In private memory it is found by the CFA.
		if l := &e.lanes[i]; is(&l.v) && l.rank == rankLane && !l.place.isPrivate() {
			return l.site, l.v.add
		}
	}
	return site{}, 0
}

// findBases finds where the addresses are that the places of rules are relative to.
func (x *viewer) findBases(e *evidence, v *view) []base {
	if !e.hasBases {
		return nil
	}
	var list []base
	need := func(p place) {
		if !p.isPrivate() || p.base() == 0 || slices.ContainsFunc(list, func(b base) bool { return b.symbol == p.base() }) {
			return
		}
		b := base{symbol: p.base()}
		for i := range e.scalars {
			if r, v := isa.Reg(i), &e.scalars[i]; v.kind == alignedScalar && v.id == b.symbol && x.isKept(r) {
				b.site, b.add = site{kind: inScalar, reg: r}, v.add
				if r == framePointer {
					break
				}
			}
		}
		list = append(list, b)
	}
	for i := range v.rules {
		for _, s := range v.rules[i].sites {
			need(s.place)
		}
	}
	for _, m := range v.masks {
		need(m[0].place)
		need(m[1].place)
	}
	return list
}

// execRule returns the rule of EXEC on entry. isNeeded is false where EXEC has not
// changed.
func (x *viewer) execRule(v *view, e *evidence) (r rule, isNeeded bool) {
	r.column = exec64
	if x.lanes == wave32 {
		r.column = exec32
	}
	x.canTellEntryExec = true
	if e.exec == entryMask {
		return r, false
	}
	var usable, enduring uint64
	for c := range e.masks.columns {
		if m := &x.masks[c]; m[0].kind != nowhere && (x.lanes == wave32 || m[1].kind != nowhere) {
			usable |= 1 << c
			if r := &x.maskRanks[c]; r[0] < rankLost && r[1] < rankLost {
				enduring |= 1 << c
			}
		}
	}
	list := e.masks.union(enduring)
	if list == nil {
		list = e.masks.union(usable)
	}
	if len(list) == 0 || len(list) > len(v.masks) {
		x.canTellEntryExec = false
		return r, true
	}
	for i, c := range list {
		v.masks[i] = x.masks[c]
	}
	r.kind = maskRule
	return r, true
}

// scalarRules adds the rules of the caller's scalar registers. Those that the convention
// lets functions change are lost as soon as the function writes them anywhere. The
// columns of the condition codes lie between SGPR63's and SGPR64's.
func (x *viewer) scalarRules(rules []rule, e *evidence) []rule {
	for r := range isa.Reg(namedScalars) {
		column := dwarfScalar(r)
		if r == 64 {
			rules = x.flagRules(rules)
		}
		switch {
		case r == stackPointer:
			if x.isPerLane {
				rules = append(rules, rule{kind: pointerRule, column: column})
			}
		case r < returnLow && (x.isPerLane || r > resource+3):
			if x.touched.hasScalar(r) {
				rules = append(rules, rule{column: column})
			}
		case e.scalars[r] == entryOf(r) && x.scalarSites[r] == site{kind: inScalar, reg: r}:
		case !x.canTell(x.scalarSites[r]):
			rules = append(rules, rule{column: column})
		default:
			rules = append(rules, rule{kind: scalarRule, column: column, sites: [2]site{x.scalarSites[r]}})
		}
	}
	return rules
}

// flagRules adds the rules of the condition codes, which are lost.
func (x *viewer) flagRules(rules []rule) []rule {
	vcc := vcc64
	if x.lanes == wave32 {
		vcc = vcc32
	}
	rules = append(rules, rule{column: status})
	if x.touched.hasScalar(isa.VCCLo) || x.touched.hasScalar(isa.VCCHi) {
		rules = append(rules, rule{column: vcc})
	}
	return rules
}

// vectorRules adds the rules of the caller's vector registers.
func (x *viewer) vectorRules(rules []rule, e *evidence) []rule {
	for i := range x.vectors {
		t := &x.vectors[i]
		ownActive, ownInactive := true, true
		if k, found := slices.BinarySearchFunc(e.parts, t.place, func(e partEvidence, p place) int { return cmp.Compare(e.place, p) }); found {
			ownActive, ownInactive = place(e.parts[k].active) == t.place, place(e.parts[k].inactive) == t.place
		}
		endures := x.isKeptPlace(t.place)
		find := func(own bool, copied *site) site {
			if own && (endures || copied.kind == nowhere) {
				return site{kind: itself}
			}
			return *copied
		}
		r := rule{kind: vectorRule, column: t.column}
		if !t.isLost {
			r.sites[0] = find(ownActive, &x.active[t.place])
		}
		r.sites[1] = find(ownInactive, &x.inactive[t.place])
		switch active, inactive := &r.sites[0], &r.sites[1]; {
		case active.kind == itself && inactive.kind == itself:
			continue
		case active.kind == nowhere && inactive.kind == nowhere, !x.canTellEntryExec && *active != *inactive:
			r = rule{column: t.column}
		}
		rules = append(rules, r)
	}
	return rules
}
