// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"slices"
)

// What a mask is, in two worked examples. A lane is of one of a few kinds, and a
// tuple is a kind: the bits that such a lane has in the masks. Below, a line has the
// bits of each mask after an instruction, a digit for each kind; a column of digits,
// read downwards through the masks of a line, is a tuple.
//
// Worked example: the two branches of a condition (amd_h.gfx90a.co, _Z3reciPi)
//
// The comparison makes a condition: some lanes of EXEC. As long as nothing but
// vector instructions may read it, it is not told apart from others.
// s_and_saveexec reads it, and there are three kinds of lanes from then on: the
// first was not active on entry, the second stays active, and the third waits.
//
//	1690 v_cmp_lt_i32_e32 vcc, 0, v40       | entry 01 | EXEC 01
//	16a0 s_and_saveexec_b64 s[4:5], vcc     | entry 011 | EXEC 010 | s[4:5] 011
//	16a4 s_xor_b64 s[34:35], exec, s[4:5]   | entry 011 | EXEC 010 | s[4:5] 011 | s[34:35] 001
//
// s[4:5] is EXEC on entry, bit for bit: both lines read 011. The instructions of the
// first branch overwrite s[4:5]. What remains is as good: a lane that was active on
// entry is in EXEC or in s[34:35], and no other lane is in either.
//
//	16b0 s_getpc_b64 s[4:5]                 | entry 011 | EXEC 010 | s[34:35] 001
//
// The other branch begins: the lanes that waited become active, and those that were
// active wait in s[4:5]. At its end all are active again. EXEC reads as entry does,
// and so it is again the very same mask.
//
//	1700 s_andn2_saveexec_b64 s[4:5], s[34:35] | entry 011 | EXEC 001 | s[4:5] 010
//	1710 s_or_b64 exec, exec, s[4:5]        | entry 011 | EXEC 011 | s[4:5] 010
//
// Worked example: a loop that lanes leave one by one (gfx90a)
//
// s[8:9] collects the lanes that are done. At the beginning of the loop, 1004,
// states of two edges meet: on the edge from before no lane is done, on the edge
// back some are. A lane is of a kind of either state, so there are as many kinds as
// in both: it was not active on entry, it is in the loop, it is done.
//
//	1000 s_mov_b64 s[8:9], 0                | entry 011 | EXEC 010 | s[8:9] 001
//	1004 v_cmp_eq_u32_e32 vcc, s10, v10     | entry 011 | EXEC 010 | s[8:9] 001
//
// The condition is a part of EXEC; or'ed into s[8:9] it makes a fourth kind, the
// third below: a lane that is done just now, and is still active. s_andn2 takes it
// out of EXEC, which makes it one like the lanes that were done before.
//
//	1008 s_or_b64 s[8:9], vcc, s[8:9]       | entry 0111 | EXEC 0110 | s[8:9] 0011
//	100c s_andn2_b64 exec, exec, s[8:9]     | entry 011 | EXEC 010 | s[8:9] 001
//
// Where the branch is not taken EXEC is empty, and the kind with a bit in EXEC is
// struck out. The two kinds that remain have in s[8:9] the bit that they had on
// entry: the loop is left with all its lanes.
//
//	1010 s_cbranch_execnz at_1004           | entry 01 | EXEC 00 | s[8:9] 01
//	1014 s_or_b64 exec, exec, s[8:9]        | entry 01 | EXEC 01 | s[8:9] 01
//	1018 s_endpgm

// masks has the relations between execution masks: not which bits they have, but how
// they relate to each other in any one lane. A column is a mask. A tuple has a bit for
// each column, and the tuples are all the combinations of bits that a lane may have.
// Instructions change masks lane by lane, so the tuples after an instruction follow
// from those before it; where two edges meet, a lane has a tuple of one or the other.
// The tuples then show whether EXEC lacks lanes that it had on entry, and which masks
// keep these, whatever shape loops and conditions have in the code.
type masks struct {
	columns uint8
	kept    uint8    // how many columns remained when unused masks were last forgotten
	tuples  []uint64 // sorted; bit c is column c's
	work    int      // how many steps of a flow it took to find masks to forget
}

const (
	entryColumn = 0 // EXEC on entry to the function
	// maxTuples is how many tuples are kept. A mask that no instruction reads any
	// more may double them, where liveness does not see that.
	maxTuples = 1 << 10
	// maxMasks is how many masks are kept between two instructions. An instruction
	// makes eight at most, constants among them, and where two states join there are
	// two more; a tuple has 64 bits.
	maxMasks = 52
)

// entryMasks returns masks with the column of EXEC on entry, in which any
// lane may be or not.
func entryMasks() masks { return masks{columns: 1, tuples: []uint64{0, 1}} }

func (m *masks) clone() masks {
	return masks{columns: m.columns, kept: m.kept, tuples: slices.Clone(m.tuples)}
}

func (m *masks) equal(o *masks) bool {
	return m.columns == o.columns && slices.Equal(m.tuples, o.tuples)
}

// truth is a truth table: a mask that is computed from masks a and b has in a lane
// the bit 2a+b of it, where a and b are the bits of the lane in these masks.
type truth uint8

const (
	truthZero  truth = 0b0000
	truthOnes  truth = 0b1111
	truthA     truth = 0b1100
	truthB     truth = 0b1010
	truthAnd   truth = truthA & truthB
	truthOr    truth = truthA | truthB
	truthXor   truth = truthA ^ truthB
	truthNotA  truth = truthA ^ truthOnes
	truthNotB  truth = truthB ^ truthOnes
	truthNand  truth = truthAnd ^ truthOnes
	truthNor   truth = truthOr ^ truthOnes
	truthXnor  truth = truthXor ^ truthOnes
	truthAndn1 truth = truthNotA & truthB
	truthAndn2 truth = truthA & truthNotB
	truthOrn1  truth = truthNotA | truthB
	truthOrn2  truth = truthA | truthNotB
)

// add computes a column from columns a and b: each lane has the bit of t, or that of
// other. Where an equal column exists already, it returns that one.
func (m *masks) add(a, b uint8, t, other truth) (column uint8) {
	n := m.columns
	tuples := make([]uint64, 0, 2*len(m.tuples))
	for _, x := range m.tuples {
		i := x>>a&1<<1 | x>>b&1
		one, two := uint64(t)>>i&1, uint64(other)>>i&1
		tuples = append(tuples, x|one<<n)
		if two != one {
			tuples = append(tuples, x|two<<n)
		}
	}
	slices.Sort(tuples)
	m.tuples, m.columns = tuples, n+1
	for c := range n {
		if m.isSame(c, n) {
			m.drop(n)
			return c
		}
	}
	return n
}

// constant returns the column of a constant truth table.
func (m *masks) constant(t truth) uint8 { return m.add(entryColumn, entryColumn, t, t) }

// any returns a new column whose bits are not known.
func (m *masks) any() (column uint8) {
	return m.add(entryColumn, entryColumn, truthZero, truthOnes)
}

// some returns a new column that has any of the lanes of mask.
func (m *masks) some(mask uint8) (column uint8) { return m.add(mask, mask, truthZero, truthA) }

// isSame reports whether two masks are equal.
func (m *masks) isSame(a, b uint8) bool {
	for _, x := range m.tuples {
		if (x>>a^x>>b)&1 != 0 {
			return false
		}
	}
	return true
}

// drop forgets the last column.
func (m *masks) drop(last uint8) {
	for i := range m.tuples {
		m.tuples[i] &^= 1 << last
	}
	m.tuples = slices.Compact(sorted(m.tuples))
	m.columns = last
}

func sorted(t []uint64) []uint64 {
	slices.Sort(t)
	return t
}

// keep replaces the columns: the new column i is the old column list[i].
func (m *masks) keep(list []uint8) {
	m.tuples = project(m.tuples, list)
	m.columns, m.kept = uint8(len(list)), uint8(len(list)) //nolint:gosec // at most 64
}

// project returns the tuples with only the columns of list, in its order. Most columns
// are neighbours that remain neighbours, so bits are moved in runs.
func project(tuples []uint64, list []uint8) []uint64 {
	type run struct {
		from, to uint8
		bits     uint64
	}
	var runs [64]run
	n := 0
	for i, c := range list {
		if n > 0 && list[i-1]+1 == c {
			runs[n-1].bits = runs[n-1].bits<<1 | 1
			continue
		}
		runs[n] = run{c, uint8(i), 1} //nolint:gosec // at most 64
		n++
	}
	out := make([]uint64, len(tuples))
	for i, x := range tuples {
		for _, r := range runs[:n] {
			out[i] |= (x >> r.from & r.bits) << r.to
		}
	}
	return slices.Compact(sorted(out))
}

// only keeps the tuples in which a column has a certain bit: where a branch was taken
// because a mask is empty, no lane has its bit.
func (m *masks) only(column uint8, bit uint64) {
	m.tuples = slices.DeleteFunc(m.tuples, func(x uint64) bool { return x>>column&1 != bit })
}

// excess chooses a column to forget, which is neither EXEC on entry nor exec, the column
// of EXEC; 0 if there is none. Conditions are chosen first: they are a part of EXEC, and
// have none of the lanes that wait. Of several columns it chooses the one without which
// the fewest tuples remain, and of equally good ones the oldest.
func (m *masks) excess(exec uint8) uint8 {
	best, fewest, condition := uint8(0), len(m.tuples)+1, false
	m.work += int(m.columns) * len(m.tuples) / 16
	seen := make([]uint64, len(m.tuples))
	for c := uint8(1); c < m.columns; c++ {
		part := exec != entryColumn && m.isWithin(c, exec)
		if c == exec || condition && !part {
			continue
		}
		for i, x := range m.tuples {
			seen[i] = x &^ (1 << c)
		}
		slices.Sort(seen)
		n := 0
		for i := range seen {
			if i == 0 || seen[i] != seen[i-1] {
				n++
			}
		}
		if n < fewest || part && !condition {
			best, fewest, condition = c, n, part
		}
	}
	return best
}

// isWithin reports whether column has only lanes of other.
func (m *masks) isWithin(column, other uint8) bool {
	return !slices.ContainsFunc(m.tuples, func(x uint64) bool { return x>>column&1 != 0 && x>>other&1 == 0 })
}

// extent describes how far a mask reaches among the lanes that were active on entry
// and among the inactive ones: it may have some of them, or must have all of them. The
// lanes of a constant are known by number instead.
type extent struct {
	mayActive, mustActive, mayInactive, mustInactive bool
	isConstant                                       bool
	bits                                             uint64 // isConstant: the lanes
}

func (m *masks) extent(column uint8) extent {
	r := extent{mustActive: true, mustInactive: true}
	for _, x := range m.tuples {
		has := x>>column&1 != 0
		if x&1 != 0 {
			r.mayActive, r.mustActive = r.mayActive || has, r.mustActive && has
		} else {
			r.mayInactive, r.mustInactive = r.mayInactive || has, r.mustInactive && has
		}
	}
	return r
}

// union finds columns, among those whose bits usable has, that together have exactly the
// lanes of EXEC on entry. None of them could be left out. It returns nil if there are none.
func (m *masks) union(usable uint64) []uint8 {
	var within []uint8
	for c := range m.columns {
		if usable>>c&1 == 0 {
			continue
		}
		if r := m.extent(c); !r.mayInactive {
			if r.mustActive {
				return []uint8{c}
			}
			within = append(within, c)
		}
	}
	covers := func(list []uint8) bool {
		for _, x := range m.tuples {
			if x&1 != 0 && !slices.ContainsFunc(list, func(c uint8) bool { return x>>c&1 != 0 }) {
				return false
			}
		}
		return true
	}
	if len(within) == 0 || !covers(within) {
		return nil
	}
	// The smallest go first, so that few are left.
	size := func(c uint8) (n int) {
		for _, x := range m.tuples {
			n += int(x >> c & 1) //nolint:gosec // a bit
		}
		return n
	}
	slices.SortStableFunc(within, func(a, b uint8) int { return cmp.Compare(size(b), size(a)) })
	for i := len(within) - 1; i >= 0; i-- {
		if less := slices.Delete(slices.Clone(within), i, i+1); covers(less) {
			within = less
		}
	}
	return within
}
