// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// This file places call frame information by what executing the code shows: where,
// at every instruction, the stack pointer of the caller and each of its registers
// are. A place counts where it held the register every time that the instruction
// was executed, and for a call, while the callee had begun and when it had returned.

// A gcnLocation is a place where a register may be, in the frame of a function.
type gcnLocation struct {
	// 's' a scalar register, 'l' a lane of a vector register, 'v' a vector register,
	// 'm' memory after the CFA, 'f' memory after the frame pointer: what is between
	// the two depends on the caller where a function aligns its frame
	kind   byte
	reg    int   // vector registers from 256 on are accumulation registers
	lane   int   // of 'l'; firstLane: that one of a vector register or memory
	offset int64 // in bytes of private_wave
}

// firstLane is the first lane that was active at the call: what all these lanes have
// is there.
const firstLane = -1

// A gcnColumn is a register of the caller at an instruction.
type gcnColumn struct {
	moved      bool // it was not where it was at the call, once
	candidates []gcnLocation
	found      bool // candidates were looked for
}

// A gcnSite is an instruction of a function.
type gcnSite struct {
	cfa     map[int]int64 // from a scalar register to the CFA, by register
	columns []gcnColumn   // by gcnFinder.columns
	masks   gcnMasks
	calls   bool
}

// gcnMasks is how the mask of lanes at the call is known at an instruction: what
// was always a part of it, what was always all of it, and so many of the parts that
// they are all of it together.
type gcnMasks struct {
	memory       byte     // the kind of places in memory
	parts, whole []uint64 // bits, by gcnFinder.maskAt
	chosen       []int
	unknown      bool
}

// gcnColumnID is what a column is about: a register, or one half of the return
// address, and for vector registers the lanes that were or were not active.
type gcnColumnID struct {
	register *gcnRegister
	half     int  // of the return address, where register is nil
	active   bool // of a vector register
}

// A gcnFinder finds where registers are.
type gcnFinder struct {
	*gcnJudge
	columns []gcnColumnID
	at      map[gcnLocation]*gcnRegister // the registers of the columns, and EXEC, by where they are at a call
	vectors []int                        // the vector registers that there are
	sites   map[uint64]*gcnSite
	search  bool // the second execution
	// top is the end of what a function has of private_wave: at a call, all beyond
	// the stack pointer is another's.
	top int64
}

func newGCNFinder(j *gcnJudge) *gcnFinder {
	f := &gcnFinder{gcnJudge: j, at: map[gcnLocation]*gcnRegister{}, sites: map[uint64]*gcnSite{}}
	f.columns = append(f.columns, gcnColumnID{half: 0}, gcnColumnID{half: 1})
	for i := range j.registers {
		r := &j.registers[i]
		if r.file == gcnOther || r.file == gcnScalar && r.reg == 32 {
			continue // the stack pointer at the call is the CFA
		}
		own := f.own(gcnColumnID{register: r})
		f.at[own] = r
		switch {
		case r.file == gcnVector || r.file == gcnAcc:
			f.columns = append(f.columns, gcnColumnID{register: r}, gcnColumnID{register: r, active: true})
			f.vectors = append(f.vectors, own.reg)
		case r.reg != gcnExec:
			f.columns = append(f.columns, gcnColumnID{register: r})
		}
	}
	return f
}

// explore executes kernels twice: the first time to find out which registers
// move and what is a part of EXEC at the call, the second time to find where to,
// and which of the parts are needed.
func (f *gcnFinder) explore(launches []func() (*gcnState, error), limit int) error {
	for _, f.search = range []bool{false, true} {
		for _, launch := range launches {
			s, err := launch()
			if err != nil {
				return err
			}
			if err := f.follow(s, limit); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow executes a kernel.
func (f *gcnFinder) follow(s *gcnState, limit int) error {
	f.start(s)
	call, back := s.onCall, s.onReturn
	s.onCall = func(to uint64) error {
		if n := len(f.calls); n > 0 {
			f.see(to-4, f.calls[n-1], true)
		}
		return call(to)
	}
	s.onReturn = func(to uint64) error {
		n := len(f.calls)
		if err := back(to); err != nil {
			return err
		}
		if m := len(f.calls); m < n && m > 0 {
			f.see(to-4, f.calls[m-1], true)
		}
		return nil
	}
	for !s.ended && s.steps < limit {
		if n := len(f.calls); n > 0 {
			f.see(s.pc, f.calls[n-1], false)
		}
		if err := s.step(); err != nil {
			return err
		}
	}
	return nil
}

// scalarValue is what a column holds that is one word.
func (f *gcnFinder) scalarValue(id gcnColumnID, c *gcnCall) uint32 {
	if id.register == nil {
		return uint32(c.back >> (32 * id.half)) //nolint:gosec // halves
	}
	return binary.LittleEndian.Uint32(c.registers[id.register.at:])
}

// see looks at the state as that of an instruction in the call c. calls says that it
// calls: what is beyond the stack pointer is then another's.
func (f *gcnFinder) see(pc uint64, c *gcnCall, calls bool) {
	site := f.sites[pc]
	if site == nil {
		site = &gcnSite{columns: make([]gcnColumn, len(f.columns)), cfa: map[int]int64{}}
		for _, r := range []int{32, 33, 34} {
			site.cfa[r] = f.fromCFA(c, r)
		}
		f.sites[pc] = site
	}
	for r, d := range site.cfa {
		if f.fromCFA(c, r) != d {
			delete(site.cfa, r)
		}
	}
	s := f.state
	f.top = int64(len(s.scratch))
	if calls {
		f.top = f.pointer(32)
	}
	site.calls = site.calls || calls
	f.seeMasks(site, c)
	if !f.search {
		f.refresh()
	}
	for i := range f.columns {
		id, column := f.columns[i], &site.columns[i]
		if !f.search {
			if r := id.register; column.moved || r != nil && bytes.Equal(f.live[r.at:][:r.size], c.registers[r.at:][:r.size]) {
				continue
			}
			column.moved = !f.holds(id, f.own(id), c)
			continue
		}
		if !column.moved {
			continue
		}
		if column.found {
			column.candidates = slices.DeleteFunc(column.candidates, func(l gcnLocation) bool { return !f.holds(id, l, c) })
			continue
		}
		column.found = true
		if id.register != nil && id.register.reg == gcnVCC && id.register.file == gcnScalar {
			continue // of no use to anybody
		}
		try := func(l gcnLocation) {
			if f.holds(id, l, c) {
				column.candidates = append(column.candidates, l)
			}
		}
		end := (int64(s.deepest)-int64(c.cfa))/int64(4*s.lanes) + 1 //nolint:gosec // below the size of the memory
		bases := []byte{'m'}
		if _, ok := site.cfa[33]; !ok {
			bases = append(bases, 'f')
		}
		if id.register != nil && id.register.file != gcnScalar {
			for r := range 512 {
				try(gcnLocation{kind: 'v', reg: r})
			}
			for _, base := range bases {
				for slot := int64(-64); slot < end; slot++ {
					try(gcnLocation{kind: base, offset: slot * int64(4*s.lanes)})
				}
			}
			continue
		}
		for r := range gcnVCC + s.lanes/32 {
			try(gcnLocation{kind: 's', reg: r})
		}
		want := f.scalarValue(id, c)
		for at, v := range s.vector {
			if v == want {
				try(gcnLocation{kind: 'l', reg: at / s.lanes, lane: at % s.lanes})
			}
		}
		for r := range 512 {
			try(gcnLocation{kind: 'l', reg: r, lane: firstLane})
		}
		for _, base := range bases {
			from := f.address(gcnLocation{kind: base}, c)
			for offset := int64(0); from >= 0 && from+offset+4 <= int64(s.deepest); offset += 4 { //nolint:gosec // 32 bits
				if binary.LittleEndian.Uint32(s.scratch[from+offset:]) == want {
					try(gcnLocation{kind: base, offset: offset})
				}
			}
			for slot := range end {
				try(gcnLocation{kind: base, lane: firstLane, offset: slot * int64(4*s.lanes)})
			}
		}
	}
}

// fromCFA is how far the CFA is from where a scalar register points to, in what
// that counts.
func (f *gcnFinder) fromCFA(c *gcnCall, r int) int64 {
	v := int64(f.state.scalar[r])
	if f.state.flat {
		return int64(c.cfa)/int64(f.state.lanes) - v //nolint:gosec // 32 bits
	}
	return int64(c.cfa) - v //nolint:gosec // 32 bits
}

// pointer is where a scalar register points to, in bytes of private_wave.
func (f *gcnFinder) pointer(r int) int64 {
	v := int64(f.state.scalar[r])
	if f.state.flat {
		v *= int64(f.state.lanes)
	}
	return v
}

// own is where the register of a column is at a call.
func (f *gcnFinder) own(id gcnColumnID) gcnLocation {
	switch r := id.register; {
	case r == nil:
		return gcnLocation{kind: 's', reg: 30 + id.half}
	case r.file == gcnAcc:
		return gcnLocation{kind: 'v', reg: 256 + r.reg}
	case r.file == gcnVector:
		return gcnLocation{kind: 'v', reg: r.reg}
	default:
		return gcnLocation{kind: 's', reg: r.reg}
	}
}

// word is a word of a place.
func (f *gcnFinder) word(l gcnLocation, lane int, c *gcnCall) (uint32, bool) {
	s := f.state
	if l.lane == firstLane {
		if c.exec == 0 {
			return 0, false
		}
		l.lane = bits.TrailingZeros64(c.exec)
		lane = l.lane
	}
	switch l.kind {
	case 's':
		return s.scalar[l.reg], true
	case 'l':
		return s.vector[l.reg*s.lanes+l.lane], true
	case 'v':
		return s.vector[l.reg*s.lanes+lane], true
	}
	at := f.address(l, c) + int64(4*lane)
	if at < 0 || at+4 > int64(len(s.scratch)) || at >= f.top {
		return 0, false
	}
	return binary.LittleEndian.Uint32(s.scratch[at:]), true
}

// address is that of a place in memory, in private_wave.
func (f *gcnFinder) address(l gcnLocation, c *gcnCall) int64 {
	if l.kind == 'f' {
		return f.pointer(33) + l.offset
	}
	return int64(c.cfa) + l.offset //nolint:gosec // 32 bits
}

// holds says whether a place holds what the register of a column held at a call.
func (f *gcnFinder) holds(id gcnColumnID, l gcnLocation, c *gcnCall) bool {
	if r := id.register; r != nil && r.file == gcnScalar && r.size == 8 {
		return f.state.mask(r.reg) == binary.LittleEndian.Uint64(c.registers[r.at:])
	}
	if id.register == nil || id.register.file == gcnScalar {
		v, ok := f.word(l, 0, c)
		return ok && v == f.scalarValue(id, c)
	}
	for lane := range f.state.lanes {
		if c.exec>>lane&1 != bit(id.active) {
			continue
		}
		v, ok := f.word(l, lane, c)
		if !ok || v != binary.LittleEndian.Uint32(c.registers[id.register.at+4*lane:]) {
			return false
		}
	}
	return true
}

// next is the place of the word that follows.
func (l gcnLocation) next() gcnLocation {
	switch l.kind {
	case 's':
		l.reg++
	case 'l':
		l.lane++
	default:
		l.offset += 4
	}
	return l
}

// gcnScalars are the scalar registers that may hold masks, VCC the last of them.
const gcnScalars = gcnVCC + 1

// maskAt is a place that may hold a mask, or its low word: 'x' is the mask of the lanes
// that execute.
func (f *gcnFinder) maskAt(m *gcnMasks, i int) gcnLocation {
	if i == 0 {
		return gcnLocation{kind: 'x'}
	}
	if i--; i < gcnScalars {
		return gcnLocation{kind: 's', reg: i}
	}
	lanes := f.state.lanes
	if i -= gcnScalars; i < len(f.vectors)*lanes {
		return gcnLocation{kind: 'l', reg: f.vectors[i/lanes], lane: i % lanes}
	}
	return gcnLocation{kind: m.memory, offset: 4 * int64(i-len(f.vectors)*lanes)}
}

// maskValue is a mask now.
func (f *gcnFinder) maskValue(l gcnLocation, c *gcnCall) (uint64, bool) {
	if l.kind == 'x' {
		return f.state.exec(), true
	}
	low, ok := f.word(l, 0, c)
	if !ok || f.state.lanes == 32 {
		return uint64(low), ok
	}
	if l.kind == 'l' && l.lane == f.state.lanes-1 {
		return 0, false
	}
	high, ok := f.word(l.next(), 0, c)
	return uint64(low) | uint64(high)<<32, ok
}

// seeMasks finds masks whose union is that of the lanes that were active at the
// call: what is always a part of it, by the first execution, and by the second one
// which parts are needed.
func (f *gcnFinder) seeMasks(site *gcnSite, c *gcnCall) {
	if f.search {
		f.chooseMasks(site, c)
		return
	}
	m := &site.masks
	if m.parts == nil {
		m.memory = 'm'
		if f.state.scalar[33] != binary.LittleEndian.Uint32(c.registers[f.at[gcnLocation{kind: 's', reg: 33}].at:]) {
			m.memory = 'f'
		}
		// The frame, and what a function writes before it moves the stack pointer.
		words := int(f.pointer(32)-int64(c.cfa))/4 + 32*f.state.lanes //nolint:gosec // 32 bits
		n := (1+gcnScalars+len(f.vectors)*f.state.lanes+max(words, 0))/64 + 1
		m.parts, m.whole = slices.Repeat([]uint64{^uint64(0)}, n), slices.Repeat([]uint64{^uint64(0)}, n)
	}
	for w, set := range m.parts {
		for ; set != 0; set &= set - 1 {
			bit := set & -set
			v, ok := f.maskValue(f.maskAt(m, 64*w+bits.TrailingZeros64(set)), c)
			if !ok || v&^c.exec != 0 {
				m.parts[w] &^= bit
			}
			if !ok || v != c.exec {
				m.whole[w] &^= bit
			}
		}
	}
}

// chooseMasks adds to the parts that are chosen until they have all lanes.
func (f *gcnFinder) chooseMasks(site *gcnSite, c *gcnCall) {
	m := &site.masks
	if m.chosen == nil {
		for _, whole := range f.numbers(site, m.whole) {
			if len(whole) > 0 && m.chosen == nil {
				m.chosen = whole[:1]
			}
		}
		if m.chosen == nil && m.parts[0]&1 != 0 {
			m.chosen = []int{0}
		}
	}
	missing := c.exec
	for _, i := range m.chosen {
		v, _ := f.maskValue(f.maskAt(m, i), c)
		missing &^= v
	}
	for missing != 0 && !m.unknown {
		best, has := 0, uint64(0)
		for _, parts := range f.numbers(site, m.parts) {
			if has != 0 {
				break
			}
			for _, i := range parts {
				if v, _ := f.maskValue(f.maskAt(m, i), c); bits.OnesCount64(v&missing) > bits.OnesCount64(has&missing) {
					best, has = i, v&missing
				}
			}
		}
		m.chosen = append(m.chosen, best)
		missing &^= has
		m.unknown = has == 0
	}
}

// numbers are the bits of a set of masks. At a call those in places that endure it
// come first, and the others apart.
func (f *gcnFinder) numbers(site *gcnSite, set []uint64) (lists [2][]int) {
	for w, word := range set {
		for ; word != 0; word &= word - 1 {
			i, which := 64*w+bits.TrailingZeros64(word), 0
			if site.calls && !f.endures(f.maskAt(&site.masks, i)) {
				which = 1
			}
			lists[which] = append(lists[which], i)
		}
	}
	return lists
}

// endures says whether functions leave a place alone.
func (f *gcnFinder) endures(l gcnLocation) bool {
	kind := l.kind
	switch kind {
	case 'l':
		kind = 'v'
	case 's', 'v':
	default:
		return true
	}
	r := f.at[gcnLocation{kind: kind, reg: l.reg}]
	return r != nil && r.keeps
}

// vectorNumber is the DWARF number of a vector register.
func (f *gcnFinder) vectorNumber(reg int) uint64 {
	switch {
	case reg >= 256:
		return 3072 + uint64(reg-256) //nolint:gosec // not negative
	case f.state.lanes == 32:
		return 1536 + uint64(reg) //nolint:gosec // not negative
	}
	return 2560 + uint64(reg) //nolint:gosec // not negative
}

func scalarNumber(reg int) uint64 {
	if reg >= 64 {
		return 1088 + uint64(reg-64) //nolint:gosec // not negative
	}
	return 32 + uint64(reg) //nolint:gosec // not negative
}

// Operations and instructions of DWARF by the names they have there, and those of
// the extension, which follow llvmUser.
const (
	opDrop, opOver, opPick, opSwap, opAnd               = 0x13, 0x14, 0x15, 0x16, 0x1a
	opOr, opPlus, opPlusUconst, opShl, opShr            = 0x21, 0x22, 0x23, 0x24, 0x25
	opBra, opSkip, opPiece                              = 0x28, 0x2f, 0x93
	opConsts, opRegx, opDerefSize, opLit0, opStackValue = 0x11, 0x90, 0x94, 0x30, 0x9f
	llvmUser                                            = 0xe9
	llvmFormAspace, llvmOffset, llvmOffsetUconst        = 2, 4, 5
	llvmEntryReg, llvmUndefined, llvmSelect             = 7, 8, 12

	cfaUndefined, cfaSameValue, cfaRegister, cfaDefExpression = 0x07, 0x08, 0x09, 0x0f
	cfaExpression                                             = 0x10
)

func sleb(v int64) (b []byte) {
	for {
		c := byte(v & 0x7f)
		v >>= 7
		if v == 0 && c&0x40 == 0 || v == -1 && c&0x40 != 0 {
			return append(b, c)
		}
		b = append(b, c|0x80)
	}
}

// byLanes is what makes of where a scalar register points to a place of
// private_wave.
func (f *gcnFinder) byLanes() []byte {
	if f.state.flat {
		return []byte{opLit0 + byte(5+f.state.lanes/64), opShl, opLit0 + 6, llvmUser, llvmFormAspace}
	}
	return []byte{opLit0 + 6, llvmUser, llvmFormAspace}
}

// place is the expression of a place, above so many entries of the stack that have
// the CFA below them.
func (f *gcnFinder) place(l gcnLocation, above byte) []byte {
	switch l.kind {
	case 's':
		if l.reg < gcnVCC {
			return regx(scalarNumber(l.reg))
		}
		vcc := f.at[gcnLocation{kind: 's', reg: gcnVCC}].number
		return join(regx(vcc), []byte{llvmUser, llvmOffsetUconst}, uleb(uint64(4*(l.reg-gcnVCC)))) //nolint:gosec // not negative
	case 'v':
		return regx(f.vectorNumber(l.reg))
	case 'l':
		return join(regx(f.vectorNumber(l.reg)), f.lane(l.lane))
	case 'm':
		return join([]byte{opPick, above, opConsts}, sleb(l.offset), []byte{llvmUser, llvmOffset}, f.lane(l.lane))
	case 'f':
		return join(regx(scalarNumber(33)), []byte{opDerefSize, 4}, f.byLanes(), []byte{opConsts}, sleb(l.offset), []byte{llvmUser, llvmOffset}, f.lane(l.lane))
	}
	return []byte{llvmUser, llvmUndefined}
}

// lane moves a location to a lane. The first one that was active is the lowest bit
// of EXEC at the call, which is shifted until it is reached.
func (f *gcnFinder) lane(n int) []byte {
	if n != firstLane {
		return join([]byte{llvmUser, llvmOffsetUconst}, uleb(uint64(4*n))) //nolint:gosec // not negative
	}
	return join([]byte{llvmUser, llvmEntryReg}, uleb(f.exec()), []byte{
		opDerefSize, byte(f.state.lanes / 8), opLit0,
		opOver, opOver, opShr, opLit0 + 1, opAnd, opBra, 5, 0, // to what follows the loop
		opPlusUconst, 1, opSkip, 0xf3, 0xff, // to its beginning
		opSwap, opDrop, opLit0 + 2, opShl, llvmUser, llvmOffset,
	})
}

// exec is the DWARF number of EXEC.
func (f *gcnFinder) exec() uint64 { return f.at[gcnLocation{kind: 's', reg: gcnExec}].number }

func block(kind byte, column uint64, expr ...[]byte) []byte {
	e := join(expr...)
	return join([]byte{kind}, uleb(column), uleb(uint64(len(e))), e)
}

// chosen is the place of a column at an instruction: that of the instruction
// before, where it is still one. At a call it is one that endures it, if there is.
func (f *gcnFinder) chosen(site *gcnSite, i int, before *gcnLocation) gcnLocation {
	column := &site.columns[i]
	if !column.moved {
		return f.own(f.columns[i])
	}
	if len(column.candidates) == 0 {
		return gcnLocation{kind: 'u'}
	}
	if before != nil && slices.Contains(column.candidates, *before) && (!site.calls || f.endures(*before)) {
		return *before
	}
	if i := slices.IndexFunc(column.candidates, f.endures); site.calls && i >= 0 {
		return column.candidates[i]
	}
	return column.candidates[0]
}

// rules are those of an instruction: what the CFA is, under ^0, and what each
// column is, by number, as the bytes of an instruction.
func (f *gcnFinder) rules(site *gcnSite, before map[int]gcnLocation) (map[uint64]string, error) {
	s := f.state
	rules := map[uint64]string{}
	if len(site.cfa) == 0 {
		return nil, fmt.Errorf("no register says where the CFA is")
	}
	r := slices.Min(slices.Collect(maps.Keys(site.cfa)))
	e := join(regx(scalarNumber(r)), []byte{opDerefSize, 4, opConsts}, sleb(site.cfa[r]), []byte{opPlus}, f.byLanes())
	rules[^uint64(0)] = string(join([]byte{cfaDefExpression}, uleb(uint64(len(e))), e))

	exec := f.exec()
	same := func(n uint64) { rules[n] = string(join([]byte{cfaSameValue}, uleb(n))) }
	switch m := &site.masks; {
	case m.unknown || len(m.chosen) == 0:
		rules[exec] = string(join([]byte{cfaUndefined}, uleb(exec)))
	case len(m.chosen) == 1 && m.chosen[0] == 0:
		same(exec)
	default:
		rules[exec] = string(block(cfaExpression, exec, f.union(m), []byte{opStackValue, opPiece, byte(s.lanes / 8)}))
	}
	at := make([]gcnLocation, len(f.columns))
	for i := range f.columns {
		var last *gcnLocation
		if l, ok := before[i]; ok {
			last = &l
		}
		at[i] = f.chosen(site, i, last)
		before[i] = at[i]
	}
	rules[16] = string(block(cfaExpression, 16, f.place(at[0], 0), []byte{opPiece, 4}, f.place(at[1], 1), []byte{opPiece, 4}))
	for i := 2; i < len(f.columns); i++ {
		id := f.columns[i]
		n := id.register.number
		own := f.own(id)
		if id.register.file == gcnScalar {
			switch l := at[i]; {
			case l == own:
				same(n)
			case l.kind == 'u':
				rules[n] = string(join([]byte{cfaUndefined}, uleb(n)))
			case l.kind == 's' && l.reg < gcnVCC:
				rules[n] = string(join([]byte{cfaRegister}, uleb(n), uleb(scalarNumber(l.reg))))
			default:
				rules[n] = string(block(cfaExpression, n, f.place(l, 0)))
			}
			continue
		}
		inactive, active := at[i], at[i+1]
		i++
		switch {
		case inactive == active && active == own:
			same(n)
		case inactive == active && active.kind == 'u':
			rules[n] = string(join([]byte{cfaUndefined}, uleb(n)))
		case inactive == active:
			rules[n] = string(block(cfaExpression, n, f.place(active, 0)))
		default:
			rules[n] = string(block(cfaExpression, n, f.place(inactive, 0), f.place(active, 1),
				[]byte{llvmUser, llvmEntryReg}, uleb(exec), []byte{opDerefSize, byte(s.lanes / 8)},
				[]byte{llvmUser, llvmSelect}, uleb(32), uleb(uint64(s.lanes)))) //nolint:gosec // positive
		}
	}
	return rules, nil
}

// union is the value of masks together.
func (f *gcnFinder) union(m *gcnMasks) (e []byte) {
	for i, number := range m.chosen {
		above := byte(min(i, 1)) // the union so far
		l := f.maskAt(m, number)
		if l.kind == 'x' {
			e = join(e, regx(f.exec()), []byte{opDerefSize, byte(f.state.lanes / 8)})
		} else {
			e = join(e, f.place(l, above), []byte{opDerefSize, 4})
			if f.state.lanes == 64 {
				e = join(e, f.place(l.next(), above+1), []byte{opDerefSize, 4, opConsts}, sleb(32), []byte{opShl, opOr})
			}
		}
		if i > 0 {
			e = append(e, opOr)
		}
	}
	return e
}

var (
	gcnAssemblyLabel = regexp.MustCompile(`^([A-Za-z_][\w$.]*):`)
	gcnAssemblyCode  = regexp.MustCompile(`^\t([a-z]\w*)`)
)

// annotate writes assembly anew with the rules in it.
func (f *gcnFinder) annotate(assembly string) (string, error) {
	c := f.object.code
	kernels := map[string]bool{}
	for _, k := range f.object.kernels {
		kernels[k.name] = true
	}
	byName := map[string]uint64{}
	for at, name := range c.functions {
		byName[name] = at
	}
	var out strings.Builder
	var current map[uint64]string
	var places map[int]gcnLocation
	at, in, name := uint64(0), false, ""
	escape := func(b string) {
		out.WriteString("\t.cfi_escape ")
		for i := range len(b) {
			if i > 0 {
				out.WriteByte(',')
			}
			fmt.Fprintf(&out, "%#x", b[i])
		}
		out.WriteByte('\n')
	}
	// annotate writes the rules of the instruction that comes next.
	annotate := func() error {
		site := f.sites[codeBase+at]
		switch {
		case kernels[name] && current[16] == "":
			escape(string([]byte{cfaDefExpression, 4, opLit0, opLit0 + 6, llvmUser, llvmFormAspace}))
			current[16] = string([]byte{cfaUndefined, 16})
			escape(current[16])
		case !kernels[name] && site != nil:
			rules, err := f.rules(site, places)
			if err != nil {
				return fmt.Errorf("%s: %#x: %w", name, at, err)
			}
			for _, n := range slices.Sorted(maps.Keys(rules)) {
				if rules[n] != current[n] {
					escape(rules[n])
				}
			}
			current = rules
		}
		return nil
	}
	for line := range strings.Lines(assembly) {
		if m := gcnAssemblyLabel.FindStringSubmatch(line); m != nil {
			if entry, ok := byName[m[1]]; ok {
				at, in, name = entry, true, m[1]
				current, places = map[uint64]string{}, map[int]gcnLocation{}
			}
		}
		if strings.HasPrefix(line, ".Lfunc_end") {
			in = false
		}
		m := gcnAssemblyCode.FindStringSubmatch(line)
		if padding := c.instructions[at]; in && strings.HasPrefix(line, "\t.p2align") && padding != nil && padding.name == "s_nop" {
			if err := annotate(); err != nil { // of code that is executed, too
				return "", err
			}
		}
		if !in || m == nil {
			out.WriteString(line)
			continue
		}
		instruction := c.instructions[at]
		for instruction != nil && instruction.name == "s_nop" && m[1] != "s_nop" { // to align what follows
			at = instruction.next
			instruction = c.instructions[at]
		}
		if instruction == nil || !strings.HasPrefix(instruction.text+" ", m[1]+" ") {
			return "", fmt.Errorf("%s: %q is not at %#x", name, line, at)
		}
		if err := annotate(); err != nil {
			return "", err
		}
		out.WriteString(line)
		at = instruction.next
	}
	return out.String(), nil
}

// withCFI is an object of the same code with rules that are exact for what its
// kernels do when they are launched.
func withCFI(t testing.TB, o *gcnObject, j *gcnJudge, assemblies []string, launches []func() (*gcnState, error)) *gcnObject {
	t.Helper()
	f := newGCNFinder(j)
	if err := f.explore(launches, gcnSteps); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var annotated []string
	for i, path := range assemblies {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		with, err := f.annotate(string(text))
		if err != nil {
			t.Fatal(err)
		}
		annotated = append(annotated, filepath.Join(dir, fmt.Sprintf("%d.s", i)))
		if err := os.WriteFile(annotated[i], []byte(with), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "cfi.co")
	gcnCompile(t, o.processor, out, annotated)
	other := openGCN(t, o.processor, out)
	for at, in := range o.code.instructions {
		if n := other.code.instructions[at]; n == nil || n.text != in.text {
			t.Fatalf("%s: %#x: the code is another", out, at)
		}
	}
	return other
}
