// SPDX-License-Identifier: Apache-2.0

package amdgpu

import (
	"cmp"
	"slices"

	"github.com/unwindd/unwindd/plugins/amdgpu/isa"
)

// scalars is the number of scalar registers without SCC.
const scalars = int(isa.SCC)

// codeState has the values that are known before an instruction.
type codeState struct {
	scalars  [scalars]scalar
	masks    masks    // the columns of maskScalars
	places   []stored // the places that the function has written, sorted
	mayIndex bool     // instructions may add an index to the vector registers that they name
	banks    banks    // the mode of the upper bits of their numbers
}

type stored struct {
	place place
	v     vector
}

// entryState returns the state at the first instruction of a function.
func entryState(lanes uint32) *codeState {
	s := &codeState{masks: entryMasks()}
	for r := range s.scalars {
		s.scalars[r] = entryOf(isa.Reg(r))
	}
	s.setMask(isa.ExecLo, entryColumn, lanes)
	return s
}

// lose forgets the values of a set of registers.
func (s *codeState) lose(set *registerSet) {
	for r := range s.scalars {
		if set.hasScalar(isa.Reg(r)) {
			s.scalars[r] = scalar{}
		}
	}
	for i := range vectors {
		v := s.at(place(i))
		if set.hasActive(i) {
			v.active = part{}
		}
		if set.hasInactive(i) {
			v.inactive = part{}
		}
		s.put(place(i), v)
	}
}

func (s *codeState) clone() *codeState {
	c := &codeState{}
	c.set(s)
	return c
}

// set copies another state to s, in the memory of s.
func (s *codeState) set(o *codeState) {
	tuples, places := append(s.masks.tuples[:0], o.masks.tuples...), append(s.places[:0], o.places...)
	*s = *o
	s.masks.tuples, s.masks.work, s.places = tuples, 0, places
}

func (s *codeState) equal(o *codeState) bool {
	return s.mayIndex == o.mayIndex && s.banks == o.banks && s.scalars == o.scalars && s.masks.equal(&o.masks) &&
		slices.EqualFunc(s.places, o.places, func(a, b stored) bool { return a.place == b.place && a.v.equal(&b.v) })
}

// weight estimates the memory that a state takes, in words.
func (s *codeState) weight() int {
	n := 2*scalars + len(s.masks.tuples)
	for i := range s.places {
		n += 10 + 7*len(s.places[i].v.lanes)
	}
	return n
}

func (s *codeState) find(p place) (i int, found bool) {
	return slices.BinarySearchFunc(s.places, p, func(x stored, p place) int { return cmp.Compare(x.place, p) })
}

// at returns the value of a place.
func (s *codeState) at(p place) vector {
	if i, found := s.find(p); found {
		return s.places[i].v
	}
	return p.untouched()
}

// put changes the value of a place.
func (s *codeState) put(p place, v vector) {
	i, found := s.find(p)
	untouched := p.untouched()
	switch plain := v.equal(&untouched); {
	case plain && found:
		s.places = slices.Delete(s.places, i, i+1)
	case plain:
	case found:
		s.places[i].v = v
	default:
		s.places = slices.Insert(s.places, i, stored{p, v})
	}
}

// setMask puts a mask in a register, or a pair of them in waves of 64 lanes.
func (s *codeState) setMask(r isa.Reg, column uint8, lanes uint32) {
	s.setColumn(maskScalar, r, column, lanes)
}

// setColumn does the same with a mask or with a condition, which has some lanes of a mask.
func (s *codeState) setColumn(kind scalarKind, r isa.Reg, column uint8, lanes uint32) {
	s.scalars[r] = scalar{kind: kind, id: uint16(column)}
	if lanes == wave64 && int(r)+1 < scalars {
		s.scalars[r+1] = scalar{kind: kind, id: uint16(column), isHigh: true}
	}
}

// read turns a condition in a register into a mask. Few conditions are read by other
// instructions than vector instructions. If all of them were masks, each would double
// the tuples.
func (s *codeState) read(r isa.Reg, lanes uint32) {
	v := s.scalars[r]
	if v.kind != partScalar {
		return
	}
	if v.isHigh {
		r--
	}
	if lanes == wave64 {
		low, high := v, v
		low.isHigh, high.isHigh = false, true
		if s.scalars[r] != low || int(r)+1 >= scalars || s.scalars[r+1] != high {
			return
		}
	}
	s.setMask(r, s.masks.some(uint8(v.id)), lanes)
}

// constantMask returns the truth table of a constant whose 32 bits are all
// alike.
func constantMask(v scalar) (t truth, ok bool) {
	switch {
	case v.kind != constantScalar:
	case v.add == 0:
		return truthZero, true
	case v.add == ^uint32(0):
		return truthOnes, true
	}
	return 0, false
}

// asColumn returns the column of a value of 32 bits: half of a mask, or a constant whose
// bits are all alike, which is either half. ok is false where it is not the requested
// half.
func (m *masks) asColumn(v scalar, high bool) (column uint8, ok bool) {
	if v.kind == maskScalar {
		return uint8(v.id), v.isHigh == high
	}
	if t, ok := constantMask(v); ok {
		return m.constant(t), true
	}
	return 0, false
}

// mask returns the column of the mask in a register or a pair. ok is false where none is
// known there.
func (s *codeState) mask(r isa.Reg, lanes uint32) (column uint8, ok bool) {
	if column, ok = s.masks.asColumn(s.scalars[r], false); !ok || lanes == wave32 {
		return column, ok
	}
	if int(r)+1 >= scalars {
		return 0, false
	}
	high, ok := s.masks.asColumn(s.scalars[r+1], true)
	return column, ok && high == column
}

// exec returns the column of EXEC. Where EXEC is not known, it becomes a mask
// that any lane may be in or not.
func (s *codeState) exec(lanes uint32) uint8 {
	column, ok := s.mask(isa.ExecLo, lanes)
	if !ok {
		column = s.masks.any()
	}
	s.setMask(isa.ExecLo, column, lanes)
	return column
}

// constantExec returns EXEC where it is a constant that has some lanes and not
// others. Compilers set it to reach lanes by their numbers.
func (s *codeState) constantExec(lanes uint32) (mask uint64, ok bool) {
	low, high := s.scalars[isa.ExecLo], s.scalars[isa.ExecHi]
	if low.kind != constantScalar || lanes == wave64 && high.kind != constantScalar {
		return 0, false
	}
	mask = uint64(low.add)
	if lanes == wave64 {
		mask |= uint64(high.add) << 32
	}
	return mask, mask != 0 && mask != ^uint64(0)>>(64-lanes)
}

// limit forgets masks beyond maxMasks and maxTuples. It forgets EXEC last. Columns keep
// their numbers from one call of limit to the next.
func (s *codeState) limit() {
	if s.masks.columns > s.masks.kept+4 || len(s.masks.tuples) > maxTuples {
		s.collect()
	}
	for s.masks.columns > maxMasks || len(s.masks.tuples) > maxTuples {
		spare := uint8(entryColumn)
		if v := s.scalars[isa.ExecLo]; v.kind == maskScalar {
			spare = uint8(v.id)
		}
		s.forget(s.masks.excess(spare))
		s.collect()
	}
}

// eachScalar replaces every value of 32 bits that has a name (see hasName) by the
// result of f.
func (s *codeState) eachScalar(f func(scalar) scalar) {
	renew := func(v *scalar) {
		if v.hasName() {
			*v = f(*v)
		}
	}
	for i := range s.scalars {
		renew(&s.scalars[i])
	}
	for i := range s.places {
		v := &s.places[i].v
		renew(&v.active.u)
		renew(&v.inactive.u)
		own := false
		for j := range v.lanes {
			l := v.lanes[j]
			renew(&l.active.u)
			renew(&l.inactive.u)
			if l == v.lanes[j] {
				continue
			}
			if !own {
				v.lanes, own = slices.Clone(v.lanes), true
			}
			v.lanes[j] = l
		}
	}
}

// forget makes all values unknown that are the mask or condition of a column.
func (s *codeState) forget(column uint8) {
	s.eachScalar(func(v scalar) scalar {
		if v.hasColumn() && uint8(v.id) == column {
			return scalar{}
		}
		return v
	})
	s.mend()
}

// release forgets the masks that a place has in lanes, except some lanes.
func (s *codeState) release(p place, lanes uint64) {
	i, found := s.find(p)
	if !found {
		return
	}
	v := &s.places[i].v
	masked := func(l laneValue) bool {
		return lanes>>l.lane&1 == 0 && (l.active.kind == uniformPart && l.active.u.hasColumn() || l.inactive.kind == uniformPart && l.inactive.u.hasColumn())
	}
	if !slices.ContainsFunc(v.lanes, masked) {
		return
	}
	v.lanes = slices.Clone(v.lanes)
	for j := range v.lanes {
		if masked(v.lanes[j]) {
			v.lanes[j].active, v.lanes[j].inactive = part{}, part{}
		}
	}
	v.lanes = slices.DeleteFunc(v.lanes, v.isUsual)
}

// mend makes a part unknown whose value has become unknown.
func (s *codeState) mend() {
	mend := func(p *part) {
		if p.kind == uniformPart && p.u.kind == unknownScalar {
			*p = part{}
		}
	}
	for i := range s.places {
		v := &s.places[i].v
		mend(&v.active)
		mend(&v.inactive)
		for j := range v.lanes { // a value to mend is the state's own
			mend(&v.lanes[j].active)
			mend(&v.lanes[j].inactive)
		}
		if slices.ContainsFunc(v.lanes, v.isUsual) {
			v.lanes = slices.DeleteFunc(slices.Clone(v.lanes), v.isUsual)
		}
	}
}

// collect forgets the columns that no register or place has, and numbers the others in
// the order of these registers and places.
func (s *codeState) collect() {
	var number [64]uint8
	list := append(make([]uint8, 0, len(number)), entryColumn)
	note := func(c uint8) uint8 {
		if c != entryColumn && number[c] == 0 {
			number[c] = uint8(len(list))
			list = append(list, c)
		}
		return number[c]
	}
	s.eachScalar(func(v scalar) scalar {
		if v.hasColumn() {
			v.id = uint16(note(uint8(v.id)))
		}
		return v
	})
	s.masks.keep(list)
}

// joiner joins two states. columns lists the columns of the joined state, each as a
// column of a and one of b.
type joiner struct {
	a, b    masks // of both states, and the constants that meet masks
	columns [][2]uint8
}

// scalar joins two values: the result holds of either.
func (j *joiner) scalar(a, b scalar) scalar {
	if a.kind == partScalar && b.kind == partScalar && a.isHigh == b.isHigh {
		return j.column(partScalar, uint8(a.id), uint8(b.id), a.isHigh)
	}
	if a.kind != maskScalar && b.kind != maskScalar {
		if a == b && a.kind != partScalar {
			return a
		}
		return scalar{}
	}
	high := a.kind == maskScalar && a.isHigh || b.kind == maskScalar && b.isHigh
	ca, okA := j.a.asColumn(a, high)
	cb, okB := j.b.asColumn(b, high)
	if !okA || !okB {
		return scalar{}
	}
	return j.column(maskScalar, ca, cb, high)
}

// column returns the value of a joined column, which is ca in one state and cb in the
// other.
func (j *joiner) column(kind scalarKind, ca, cb uint8, high bool) scalar {
	i := slices.Index(j.columns, [2]uint8{ca, cb})
	if i < 0 {
		if i = len(j.columns); i == maxMasks {
			return scalar{}
		}
		j.columns = append(j.columns, [2]uint8{ca, cb})
	}
	return scalar{kind: kind, id: uint16(i), isHigh: high} //nolint:gosec // at most maxMasks
}

func (j *joiner) part(a, b part) part {
	if a.kind != b.kind || a.id != b.id {
		return part{}
	}
	if a.kind == uniformPart {
		if a.u = j.scalar(a.u, b.u); a.u.kind == unknownScalar {
			return part{}
		}
	}
	return a
}

func (j *joiner) vector(a, b *vector) vector {
	v := vector{active: j.part(a.active, b.active), inactive: j.part(a.inactive, b.inactive)}
	v.lanes = mergeLanes(a, b, 0, &v, func(x, y laneValue) (active, inactive part) {
		return j.part(x.active, y.active), j.part(x.inactive, y.inactive)
	})
	return v
}

// join returns the state of all facts that hold in both states.
func join(a, b *codeState) *codeState {
	j := joiner{a: a.masks.clone(), b: b.masks.clone(), columns: [][2]uint8{{entryColumn, entryColumn}}}
	out := &codeState{mayIndex: a.mayIndex || b.mayIndex, banks: a.banks}
	if a.banks != b.banks {
		out.banks = anyBanks
	}
	for i := range out.scalars {
		out.scalars[i] = j.scalar(a.scalars[i], b.scalars[i])
	}
	for x, y := a.places, b.places; len(x) > 0 || len(y) > 0; {
		var at place
		var v, w vector
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].place < y[0].place:
			at, v, w, x = x[0].place, x[0].v, x[0].place.untouched(), x[1:]
		case len(x) == 0 || y[0].place < x[0].place:
			at, v, w, y = y[0].place, y[0].place.untouched(), y[0].v, y[1:]
		default:
			at, v, w, x, y = x[0].place, x[0].v, y[0].v, x[1:], y[1:]
		}
		out.put(at, j.vector(&v, &w))
	}
	left, right := make([]uint8, len(j.columns)), make([]uint8, len(j.columns))
	for i, c := range j.columns {
		left[i], right[i] = c[0], c[1]
	}
	tuples := append(project(j.a.tuples, left), project(j.b.tuples, right)...)
	out.masks = masks{columns: uint8(len(j.columns)), tuples: slices.Compact(sorted(tuples))}
	out.limit()
	return out
}
