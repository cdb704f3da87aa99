// SPDX-License-Identifier: Apache-2.0

package gcn

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/internal/leb128"
)

// This file derives call frame information from executing the code: where, at every
// instruction, the stack pointer of the caller and each of its registers are. A
// place counts where it had the register every time that the instruction was
// executed, and for a call, while the callee had begun and when it had returned.

// location is a place where a register may be, in the frame of a function.
type location struct {
	// 's' a scalar register, 'l' a lane of a vector register, 'v' a vector register,
	// 'm' memory after the CFA, 'f' memory after the frame pointer: the distance of
	// the two depends on the caller where a function aligns its frame
	kind   byte
	reg    int   // vector registers from 256 on are accumulation registers
	lane   int   // of 'l'; firstLane: that lane of a vector register or memory
	offset int64 // in bytes of private_wave
}

// firstLane is the first lane that was active at the call, for values that all these
// lanes share.
const firstLane = -1

// columnState is a register of the caller at an instruction.
type columnState struct {
	moved      bool // it had left its place at the call, once
	candidates []location
	found      bool // candidates were looked for
}

// siteState is an instruction of a function.
type siteState struct {
	cfa     map[int]int64 // from a scalar register to the CFA, by register
	columns []columnState // by finder.columns
	masks   maskState
	calls   bool
}

// maskState has the masks at an instruction that make up the mask of lanes at the
// call: those always a part of it, those always all of it, and the parts chosen for
// their union.
type maskState struct {
	memory       byte     // the kind of places in memory
	parts, whole []uint64 // bits, by finder.maskAt
	chosen       []int
	unknown      bool
}

// columnID identifies a column: a register, or one half of the return
// address, and for vector registers the lanes that were or were not active.
type columnID struct {
	register *Register
	half     int  // of the return address, where register is nil
	active   bool // of a vector register
}

// finder finds where registers are.
type finder struct {
	*Tracker
	columns []columnID
	byPlace map[location]*Register // the registers of the columns, and EXEC, by their places at a call
	vectors []int                  // the numbers of vector registers
	sites   map[uint64]*siteState
	search  bool // the second execution
	// top is the end of a function's part of private_wave: at a call, memory
	// beyond the stack pointer belongs to another.
	top int64
}

func newFinder(j *Tracker) *finder {
	f := &finder{Tracker: j, byPlace: map[location]*Register{}, sites: map[uint64]*siteState{}}
	f.columns = append(f.columns, columnID{half: 0}, columnID{half: 1})
	for i := range j.Registers {
		r := &j.Registers[i]
		if r.File == OtherFile || r.File == Scalar && r.Reg == 32 {
			continue // the stack pointer at the call is the CFA
		}
		own := f.own(columnID{register: r})
		f.byPlace[own] = r
		switch {
		case r.File == Vector || r.File == Acc:
			f.columns = append(f.columns, columnID{register: r}, columnID{register: r, active: true})
			f.vectors = append(f.vectors, own.reg)
		case r.Reg != Exec:
			f.columns = append(f.columns, columnID{register: r})
		}
	}
	return f
}

// explore executes kernels twice: the first time to find the registers that move and the
// masks that are a part of EXEC at the call, the second time to find the new places, and
// the needed parts.
func (f *finder) explore(launches []func() (*State, error), limit int) error {
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
func (f *finder) follow(s *State, limit int) error {
	f.Start(s)
	call, back := s.OnCall, s.OnReturn
	s.OnCall = func(target uint64) error {
		if n := len(f.Calls); n > 0 {
			f.see(target-4, f.Calls[n-1], true)
		}
		return call(target)
	}
	s.OnReturn = func(target uint64) error {
		n := len(f.Calls)
		if err := back(target); err != nil {
			return err
		}
		if m := len(f.Calls); m < n && m > 0 {
			f.see(target-4, f.Calls[m-1], true)
		}
		return nil
	}
	for !s.Ended && s.Steps < limit {
		if n := len(f.Calls); n > 0 {
			f.see(s.PC, f.Calls[n-1], false)
		}
		if err := s.Step(); err != nil {
			return err
		}
	}
	return nil
}

// scalarValue returns the content of a column of a word.
func (f *finder) scalarValue(id columnID, c *Call) uint32 {
	if id.register == nil {
		return uint32(c.Back >> (32 * id.half)) //nolint:gosec // halves
	}
	return binary.LittleEndian.Uint32(c.Registers[id.register.Offset:])
}

// see looks at the state before an instruction in the call c. calls is set where it
// is a call: memory beyond the stack pointer then belongs to another function.
func (f *finder) see(pc uint64, c *Call, calls bool) {
	site := f.siteAt(pc, c)
	f.top = int64(len(f.State.Scratch))
	if calls {
		f.top = f.pointer(32)
	}
	site.calls = site.calls || calls
	f.seeMasks(site, c)
	if f.search {
		f.seePlaces(site, c)
	} else {
		f.seeMoves(site, c)
	}
}

// siteAt returns the state of an instruction, without the distances to the CFA that are
// different this time.
func (f *finder) siteAt(pc uint64, c *Call) *siteState {
	site := f.sites[pc]
	if site == nil {
		site = &siteState{columns: make([]columnState, len(f.columns)), cfa: map[int]int64{}}
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
	return site
}

// seeMoves finds the registers that have left their places at the call.
func (f *finder) seeMoves(site *siteState, c *Call) {
	f.Refresh()
	for i := range f.columns {
		id, column := f.columns[i], &site.columns[i]
		if r := id.register; column.moved || r != nil && bytes.Equal(f.Live[r.Offset:][:r.Size], c.Registers[r.Offset:][:r.Size]) {
			continue
		}
		column.moved = !f.holds(id, f.own(id), c)
	}
}

// seePlaces finds the places of registers that have moved, the first time, and drops the
// places that do not have them any more.
func (f *finder) seePlaces(site *siteState, c *Call) {
	for i := range f.columns {
		id, column := f.columns[i], &site.columns[i]
		switch r := id.register; {
		case !column.moved:
		case column.found:
			column.candidates = slices.DeleteFunc(column.candidates, func(l location) bool { return !f.holds(id, l, c) })
		case r != nil && r.Reg == VCC && r.File == Scalar:
			column.found = true // its place is of no use
		default:
			column.found = true
			column.candidates = f.candidates(id, site, c)
		}
	}
}

// candidates returns the places that have the register of a column.
func (f *finder) candidates(id columnID, site *siteState, c *Call) (list []location) {
	bases := []byte{'m'}
	if _, ok := site.cfa[33]; !ok {
		bases = append(bases, 'f')
	}
	try := func(l location) {
		if f.holds(id, l, c) {
			list = append(list, l)
		}
	}
	if id.register != nil && id.register.File != Scalar {
		f.eachVectorPlace(bases, c, try)
	} else {
		f.eachWordPlace(f.scalarValue(id, c), bases, c, try)
	}
	return list
}

// slotSize is the size of a vector register in memory.
func (f *finder) slotSize() int64 { return int64(4 * f.State.Lanes) }

// slots is the number of vector registers between the CFA and the end of the memory that
// was used.
func (f *finder) slots(c *Call) int64 {
	return (int64(f.State.Deepest)-int64(c.CFA))/f.slotSize() + 1 //nolint:gosec // below the size of the memory
}

// eachVectorPlace calls try with the places where a vector register may be.
func (f *finder) eachVectorPlace(bases []byte, c *Call, try func(location)) {
	for r := range 512 {
		try(location{kind: 'v', reg: r})
	}
	end := f.slots(c)
	for _, base := range bases {
		for slot := int64(-64); slot < end; slot++ {
			try(location{kind: base, offset: slot * f.slotSize()})
		}
	}
}

// eachWordPlace calls try with the places where a word may be.
func (f *finder) eachWordPlace(want uint32, bases []byte, c *Call, try func(location)) {
	s := f.State
	for r := range VCC + s.Lanes/32 {
		try(location{kind: 's', reg: r})
	}
	for index, v := range s.Vector {
		if v == want {
			try(location{kind: 'l', reg: index / s.Lanes, lane: index % s.Lanes})
		}
	}
	for r := range 512 {
		try(location{kind: 'l', reg: r, lane: firstLane})
	}
	for _, base := range bases {
		start := f.address(location{kind: base}, c)
		for offset := int64(0); start >= 0 && start+offset+4 <= int64(s.Deepest); offset += 4 { //nolint:gosec // 32 bits
			if binary.LittleEndian.Uint32(s.Scratch[start+offset:]) == want {
				try(location{kind: base, offset: offset})
			}
		}
		for slot := range f.slots(c) {
			try(location{kind: base, lane: firstLane, offset: slot * f.slotSize()})
		}
	}
}

// fromCFA returns the distance from a scalar register's target to the CFA, in
// the register's units.
func (f *finder) fromCFA(c *Call, r int) int64 {
	v := int64(f.State.Scalar[r])
	if f.State.flat {
		return int64(c.CFA)/int64(f.State.Lanes) - v //nolint:gosec // 32 bits
	}
	return int64(c.CFA) - v //nolint:gosec // 32 bits
}

// pointer returns the target of a scalar register, in bytes of private_wave.
func (f *finder) pointer(r int) int64 {
	v := int64(f.State.Scalar[r])
	if f.State.flat {
		v *= int64(f.State.Lanes)
	}
	return v
}

// own returns the place of a column's register at a call.
func (f *finder) own(id columnID) location {
	switch r := id.register; {
	case r == nil:
		return location{kind: 's', reg: 30 + id.half}
	case r.File == Acc:
		return location{kind: 'v', reg: 256 + r.Reg}
	case r.File == Vector:
		return location{kind: 'v', reg: r.Reg}
	default:
		return location{kind: 's', reg: r.Reg}
	}
}

// word returns a word of a place.
func (f *finder) word(l location, lane int, c *Call) (uint32, bool) {
	s := f.State
	if l.lane == firstLane {
		if c.Exec == 0 {
			return 0, false
		}
		l.lane = bits.TrailingZeros64(c.Exec)
		lane = l.lane
	}
	switch l.kind {
	case 's':
		return s.Scalar[l.reg], true
	case 'l':
		return s.Vector[l.reg*s.Lanes+l.lane], true
	case 'v':
		return s.Vector[l.reg*s.Lanes+lane], true
	}
	address := f.address(l, c) + int64(4*lane)
	if address < 0 || address+4 > int64(len(s.Scratch)) || address >= f.top {
		return 0, false
	}
	return binary.LittleEndian.Uint32(s.Scratch[address:]), true
}

// address returns the address of a place in memory, in private_wave.
func (f *finder) address(l location, c *Call) int64 {
	if l.kind == 'f' {
		return f.pointer(33) + l.offset
	}
	return int64(c.CFA) + l.offset //nolint:gosec // 32 bits
}

// holds reports whether a place has the value that the register of a column had at a call.
func (f *finder) holds(id columnID, l location, c *Call) bool {
	if r := id.register; r != nil && r.File == Scalar && r.Size == 8 {
		return f.State.mask(r.Reg) == binary.LittleEndian.Uint64(c.Registers[r.Offset:])
	}
	if id.register == nil || id.register.File == Scalar {
		v, ok := f.word(l, 0, c)
		return ok && v == f.scalarValue(id, c)
	}
	for lane := range f.State.Lanes {
		if c.Exec>>lane&1 != bit(id.active) {
			continue
		}
		v, ok := f.word(l, lane, c)
		if !ok || v != binary.LittleEndian.Uint32(c.Registers[id.register.Offset+4*lane:]) {
			return false
		}
	}
	return true
}

// next returns the place of the next word.
func (l location) next() location {
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

// scalars is the number of scalar registers that may have masks, VCC the last
// of them.
const scalars = VCC + 1

// maskAt returns a place that may have a mask, or its low word: 'x' is the mask of the
// lanes that execute.
func (f *finder) maskAt(m *maskState, i int) location {
	if i == 0 {
		return location{kind: 'x'}
	}
	if i--; i < scalars {
		return location{kind: 's', reg: i}
	}
	lanes := f.State.Lanes
	if i -= scalars; i < len(f.vectors)*lanes {
		return location{kind: 'l', reg: f.vectors[i/lanes], lane: i % lanes}
	}
	return location{kind: m.memory, offset: 4 * int64(i-len(f.vectors)*lanes)}
}

// maskValue returns the current value of a mask.
func (f *finder) maskValue(l location, c *Call) (uint64, bool) {
	if l.kind == 'x' {
		return f.State.Exec(), true
	}
	low, ok := f.word(l, 0, c)
	if !ok || f.State.Lanes == 32 {
		return uint64(low), ok
	}
	if l.kind == 'l' && l.lane == f.State.Lanes-1 {
		return 0, false
	}
	high, ok := f.word(l.next(), 0, c)
	return uint64(low) | uint64(high)<<32, ok
}

// seeMasks finds masks whose union is the mask of the lanes that were active at the call: the
// masks that are always a part of it, by the first execution, and the needed parts, by the
// second one.
func (f *finder) seeMasks(site *siteState, c *Call) {
	if f.search {
		f.chooseMasks(site, c)
		return
	}
	m := &site.masks
	if m.parts == nil {
		m.memory = 'm'
		if f.State.Scalar[33] != binary.LittleEndian.Uint32(c.Registers[f.byPlace[location{kind: 's', reg: 33}].Offset:]) {
			m.memory = 'f'
		}
		// The frame, and memory that a function writes before it moves the stack
		// pointer.
		words := int(f.pointer(32)-int64(c.CFA))/4 + 32*f.State.Lanes //nolint:gosec // 32 bits
		n := (1+scalars+len(f.vectors)*f.State.Lanes+max(words, 0))/64 + 1
		m.parts, m.whole = slices.Repeat([]uint64{^uint64(0)}, n), slices.Repeat([]uint64{^uint64(0)}, n)
	}
	for w, set := range m.parts {
		for ; set != 0; set &= set - 1 {
			bit := set & -set
			v, ok := f.maskValue(f.maskAt(m, 64*w+bits.TrailingZeros64(set)), c)
			if !ok || v&^c.Exec != 0 {
				m.parts[w] &^= bit
			}
			if !ok || v != c.Exec {
				m.whole[w] &^= bit
			}
		}
	}
}

// chooseMasks adds to the parts that are chosen until they have all lanes.
func (f *finder) chooseMasks(site *siteState, c *Call) {
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
	missing := c.Exec
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

// numbers returns the bits of a set of masks. At a call masks in places that
// endure it come first, and the others apart.
func (f *finder) numbers(site *siteState, set []uint64) (lists [2][]int) {
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

// endures reports whether functions leave a place alone.
func (f *finder) endures(l location) bool {
	kind := l.kind
	switch kind {
	case 'l':
		kind = 'v'
	case 's', 'v':
	default:
		return true
	}
	r := f.byPlace[location{kind: kind, reg: l.reg}]
	return r != nil && r.Keeps
}

// vectorNumber returns the DWARF number of a vector register.
func (f *finder) vectorNumber(reg int) uint64 {
	switch {
	case reg >= 256:
		return 3072 + uint64(reg-256) //nolint:gosec // not negative
	case f.State.Lanes == 32:
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

// registerPlace returns a DW_OP_regx.
func registerPlace(number uint64) []byte { return binary.AppendUvarint([]byte{dw.OpRegx}, number) }

// byLanes returns the operations that turn a scalar register's target into a
// place of private_wave.
func (f *finder) byLanes() []byte {
	if f.State.flat {
		return []byte{dw.OpLit0 + byte(5+f.State.Lanes/64), dw.OpShl, dw.OpLit0 + 6, dw.OpLLVMUser, dw.UserFormAspaceAddress}
	}
	return []byte{dw.OpLit0 + 6, dw.OpLLVMUser, dw.UserFormAspaceAddress}
}

// place returns the expression of a place; above is the number of entries on the
// stack above the CFA.
func (f *finder) place(l location, above byte) []byte {
	switch l.kind {
	case 's':
		if l.reg < VCC {
			return registerPlace(scalarNumber(l.reg))
		}
		vcc := f.byPlace[location{kind: 's', reg: VCC}].Number
		return slices.Concat(registerPlace(vcc), []byte{dw.OpLLVMUser, dw.UserOffsetUconst}, binary.AppendUvarint(nil, uint64(4*(l.reg-VCC)))) //nolint:gosec // not negative
	case 'v':
		return registerPlace(f.vectorNumber(l.reg))
	case 'l':
		return slices.Concat(registerPlace(f.vectorNumber(l.reg)), f.lane(l.lane))
	case 'm':
		return slices.Concat([]byte{dw.OpPick, above, dw.OpConsts}, leb128.AppendSigned(nil, l.offset), []byte{dw.OpLLVMUser, dw.UserOffset}, f.lane(l.lane))
	case 'f':
		return slices.Concat(registerPlace(scalarNumber(33)), []byte{dw.OpDerefSize, 4}, f.byLanes(), []byte{dw.OpConsts}, leb128.AppendSigned(nil, l.offset), []byte{dw.OpLLVMUser, dw.UserOffset}, f.lane(l.lane))
	}
	return []byte{dw.OpLLVMUser, dw.UserUndefined}
}

// lane moves a location to a lane. The first one that was active is the lowest bit
// of EXEC at the call, which is shifted until it is reached.
func (f *finder) lane(n int) []byte {
	if n != firstLane {
		return slices.Concat([]byte{dw.OpLLVMUser, dw.UserOffsetUconst}, binary.AppendUvarint(nil, uint64(4*n))) //nolint:gosec // not negative
	}
	return slices.Concat([]byte{dw.OpLLVMUser, dw.UserCallFrameEntryReg}, binary.AppendUvarint(nil, f.exec()), []byte{
		dw.OpDerefSize, byte(f.State.Lanes / 8), dw.OpLit0,
		dw.OpOver, dw.OpOver, dw.OpShr, dw.OpLit0 + 1, dw.OpAnd, dw.OpBra, 5, 0, // to the end of the loop
		dw.OpPlusUconst, 1, dw.OpSkip, 0xf3, 0xff, // to its beginning
		dw.OpSwap, dw.OpDrop, dw.OpLit0 + 2, dw.OpShl, dw.OpLLVMUser, dw.UserOffset,
	})
}

// exec returns the DWARF number of EXEC.
func (f *finder) exec() uint64 { return f.byPlace[location{kind: 's', reg: Exec}].Number }

// expressionRule returns a DW_CFA_expression of a column.
func expressionRule(column uint64, expr ...[]byte) []byte {
	e := slices.Concat(expr...)
	return slices.Concat([]byte{dw.CFAExpression}, binary.AppendUvarint(nil, column), binary.AppendUvarint(nil, uint64(len(e))), e)
}

// chosen returns the place of a column at an instruction: the place at the instruction
// before, if it still has the value. At a call a place that endures it is preferred.
func (f *finder) chosen(site *siteState, i int, last *location) location {
	column := &site.columns[i]
	if !column.moved {
		return f.own(f.columns[i])
	}
	if len(column.candidates) == 0 {
		return location{kind: 'u'}
	}
	if last != nil && slices.Contains(column.candidates, *last) && (!site.calls || f.endures(*last)) {
		return *last
	}
	if i := slices.IndexFunc(column.candidates, f.endures); site.calls && i >= 0 {
		return column.candidates[i]
	}
	return column.candidates[0]
}

// sameValue and undefinedRule return a DW_CFA_same_value and a DW_CFA_undefined of a column.
func sameValue(column uint64) []byte { return binary.AppendUvarint([]byte{dw.CFASameValue}, column) }

func undefinedRule(column uint64) []byte {
	return binary.AppendUvarint([]byte{dw.CFAUndefined}, column)
}

// rules returns the rules of an instruction, as the bytes of call frame instructions: the CFA's
// under ^0, and each column's by its number.
func (f *finder) rules(site *siteState, previous map[int]location) (map[uint64]string, error) {
	if len(site.cfa) == 0 {
		return nil, fmt.Errorf("no register says where the CFA is")
	}
	rules := map[uint64]string{^uint64(0): string(f.cfaRule(site)), f.exec(): string(f.execRule(&site.masks))}
	places := make([]location, len(f.columns))
	for i := range f.columns {
		var last *location
		if l, ok := previous[i]; ok {
			last = &l
		}
		places[i] = f.chosen(site, i, last)
		previous[i] = places[i]
	}
	rules[16] = string(expressionRule(16, f.place(places[0], 0), []byte{dw.OpPiece, 4}, f.place(places[1], 1), []byte{dw.OpPiece, 4}))
	for i := 2; i < len(f.columns); i++ {
		id := f.columns[i]
		if n := id.register.Number; id.register.File == Scalar {
			rules[n] = string(f.scalarRule(id, places[i]))
		} else {
			rules[n] = string(f.vectorRule(id, places[i], places[i+1]))
			i++
		}
	}
	return rules, nil
}

// cfaRule returns the rule of the CFA, by the first register that it is in a known
// distance of.
func (f *finder) cfaRule(site *siteState) []byte {
	r := slices.Min(slices.Collect(maps.Keys(site.cfa)))
	e := slices.Concat(registerPlace(scalarNumber(r)), []byte{dw.OpDerefSize, 4, dw.OpConsts}, leb128.AppendSigned(nil, site.cfa[r]), []byte{dw.OpPlus}, f.byLanes())
	return slices.Concat([]byte{dw.CFADefCFAExpression}, binary.AppendUvarint(nil, uint64(len(e))), e)
}

// execRule returns the rule of EXEC.
func (f *finder) execRule(m *maskState) []byte {
	exec := f.exec()
	switch {
	case m.unknown || len(m.chosen) == 0:
		return undefinedRule(exec)
	case len(m.chosen) == 1 && m.chosen[0] == 0:
		return sameValue(exec)
	}
	return expressionRule(exec, f.union(m), []byte{dw.OpStackValue, dw.OpPiece, byte(f.State.Lanes / 8)})
}

// scalarRule returns the rule of a scalar register that is in a place.
func (f *finder) scalarRule(id columnID, l location) []byte {
	n := id.register.Number
	switch {
	case l == f.own(id):
		return sameValue(n)
	case l.kind == 'u':
		return undefinedRule(n)
	case l.kind == 's' && l.reg < VCC:
		return slices.Concat([]byte{dw.CFARegister}, binary.AppendUvarint(nil, n), binary.AppendUvarint(nil, scalarNumber(l.reg)))
	}
	return expressionRule(n, f.place(l, 0))
}

// vectorRule returns the rule of a vector register, by the places of the lanes that were
// inactive and active at the call.
func (f *finder) vectorRule(id columnID, inactive, active location) []byte {
	n := id.register.Number
	switch {
	case inactive == active && active == f.own(id):
		return sameValue(n)
	case inactive == active && active.kind == 'u':
		return undefinedRule(n)
	case inactive == active:
		return expressionRule(n, f.place(active, 0))
	}
	lanes := f.State.Lanes
	return expressionRule(n, f.place(inactive, 0), f.place(active, 1),
		[]byte{dw.OpLLVMUser, dw.UserCallFrameEntryReg}, binary.AppendUvarint(nil, f.exec()), []byte{dw.OpDerefSize, byte(lanes / 8)},
		[]byte{dw.OpLLVMUser, dw.UserSelectBitPiece}, binary.AppendUvarint(nil, 32), binary.AppendUvarint(nil, uint64(lanes))) //nolint:gosec // positive
}

// union returns the expression of the union of masks.
func (f *finder) union(m *maskState) (e []byte) {
	for i, number := range m.chosen {
		above := byte(min(i, 1)) // the union so far
		l := f.maskAt(m, number)
		if l.kind == 'x' {
			e = slices.Concat(e, registerPlace(f.exec()), []byte{dw.OpDerefSize, byte(f.State.Lanes / 8)})
		} else {
			e = slices.Concat(e, f.place(l, above), []byte{dw.OpDerefSize, 4})
			if f.State.Lanes == 64 {
				e = slices.Concat(e, f.place(l.next(), above+1), []byte{dw.OpDerefSize, 4, dw.OpConsts}, leb128.AppendSigned(nil, 32), []byte{dw.OpShl, dw.OpOr})
			}
		}
		if i > 0 {
			e = append(e, dw.OpOr)
		}
	}
	return e
}

// WithCFI returns an object of the same code with rules that are exact for
// these launches of its kernels.
func WithCFI(t testing.TB, o *Object, assemblies []string, launches []func() (*State, error)) *Object {
	t.Helper()
	f := newFinder(NewTracker(o))
	if err := f.explore(launches, MaxSteps); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var annotated []string
	for i, path := range assemblies {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		rewritten, err := f.annotate(string(text))
		if err != nil {
			t.Fatal(err)
		}
		annotated = append(annotated, filepath.Join(dir, fmt.Sprintf("%d.s", i)))
		if err := os.WriteFile(annotated[i], []byte(rewritten), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "cfi.co")
	Compile(t, o.Processor, out, annotated)
	other := Open(t, o.Processor, out)
	for address, instruction := range o.Code.instructions {
		if n := other.Code.instructions[address]; n == nil || n.text != instruction.text {
			t.Fatalf("%s: %#x: the code is another", out, address)
		}
	}
	return other
}
