// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/bits"
	"testing"

	"github.com/unwindd/unwindd/cfi"
)

// machineState is the state of an arm64 function at an instruction: sp and x29 relative to the CFA, and
// the places of the caller's values. The test executes all ways through the code to find it.
type machineState struct {
	sp, fp   int64
	hasSP    bool
	hasFP    bool
	kept     uint64           // registers x19 to x30 with the caller's values, by bit
	keptReal uint64           // likewise of v8 to v15
	stored   map[int64]uint64 // offsets from the CFA at which the caller's registers are, by column
	constant map[uint32]uint64
	isSigned bool
}

func (s machineState) clone() machineState {
	s.stored, s.constant = maps.Clone(s.stored), maps.Clone(s.constant)
	return s
}

// join leaves what both states know; false where nothing changes.
func (s *machineState) join(o *machineState) bool {
	before := s.clone()
	s.hasSP = s.hasSP && o.hasSP && s.sp == o.sp
	s.hasFP = s.hasFP && o.hasFP && s.fp == o.fp
	s.kept, s.keptReal = s.kept&o.kept, s.keptReal&o.keptReal
	maps.DeleteFunc(s.stored, func(at int64, column uint64) bool { c, ok := o.stored[at]; return !ok || c != column })
	maps.DeleteFunc(s.constant, func(r uint32, v uint64) bool { c, ok := o.constant[r]; return !ok || c != v })
	return before.hasSP != s.hasSP || before.hasFP != s.hasFP || before.kept != s.kept || before.keptReal != s.keptReal ||
		len(before.stored) != len(s.stored) || len(before.constant) != len(s.constant)
}

// base returns the distance from the CFA to the address in a register; false where it is not known.
func (s *machineState) base(r uint32) (int64, bool) {
	switch r {
	case 31:
		return s.sp, s.hasSP
	case 29:
		return s.fp, s.hasFP
	}
	return 0, false
}

// write forgets the value of a register.
func (s *machineState) write(r uint32) {
	if r < 31 {
		s.kept &^= 1 << r
		delete(s.constant, r)
	}
	if r == 29 {
		s.hasFP = false
	}
}

func (s *machineState) setBase(r uint32, v int64, ok bool) {
	if r == 31 {
		s.sp, s.hasSP = v, ok
	} else if s.write(r); r == 29 {
		s.fp, s.hasFP = v, ok
	}
}

// store stores a register of a size at an address.
func (s *machineState) store(place int64, ok bool, column uint64, isKept bool, size int64) {
	if !ok {
		return
	}
	for a := place - 7; a < place+size; a++ {
		delete(s.stored, a)
	}
	if isKept && size >= 8 {
		s.stored[place] = column
	}
}

// load loads a register.
func (s *machineState) load(place int64, ok bool, r uint32, isFloat bool, size int64) {
	column := uint64(r)
	if isFloat {
		column += arm64V0
	}
	has := ok && size >= 8 && s.stored[place] == column
	if _, is := s.stored[place]; !is {
		has = false
	}
	if isFloat {
		if s.keptReal &^= 1 << r; has {
			s.keptReal |= 1 << r
		}
		return
	}
	if s.write(r); has {
		s.kept |= 1 << r
	}
}

func signExtend(v uint32, n int) int64 { return int64(v) << (64 - n) >> (64 - n) }

// access executes a load or a store of one register or two; false where it is none.
func (s *machineState) access(w uint32) bool {
	base, first, second := w>>5&31, w&31, w>>10&31
	isFloat := w>>26&1 != 0
	var size, offset int64
	isLoad, isPair, mode := w>>22&1 != 0, false, uint32(2) // 1 post, 2 offset, 3 pre
	switch {
	case w>>27&7 == 5 && w>>25&1 == 0: // pairs
		isPair, mode = true, w>>23&3
		size = 4 << (w >> 31)
		if isFloat {
			size = 4 << (w >> 30)
		}
		if offset = signExtend(w>>15&0x7f, 7) * size; mode == 0 {
			mode = 2
		}
	case w>>27&7 == 7 && w>>24&3 == 1: // an offset without a sign
		size = 1 << (w >> 30)
		if isFloat && w>>23&1 != 0 {
			size, isLoad = 16, w>>22&1 != 0
		} else if !isFloat {
			isLoad = w>>22&3 != 0
		}
		offset = int64(w>>10&0xfff) * size
	case w>>27&7 == 7 && w>>24&3 == 0 && w>>21&1 == 0: // nine bits
		size = 1 << (w >> 30)
		if isFloat && w>>23&1 != 0 {
			size = 16
		} else if !isFloat {
			isLoad = w>>22&3 != 0
		}
		if offset, mode = signExtend(w>>12&0x1ff, 9), w>>10&3; mode == 0 {
			mode = 2
		}
	case w>>27&7 == 7 && w>>21&1 == 1: // an index
		if !isFloat && w>>22&3 != 0 {
			s.write(first)
		} else if isFloat && isLoad {
			s.keptReal &^= 1 << first
		}
		return true
	default:
		return false
	}
	at, ok := s.base(base)
	if mode != 1 {
		at += offset
	}
	for i, r := range []uint32{first, second} {
		if i == 1 && !isPair {
			break
		}
		place := at + int64(i)*size
		column, isKept := uint64(r), s.kept>>r&1 != 0
		if isFloat {
			column, isKept = column+arm64V0, s.keptReal>>r&1 != 0
		} else if r == 31 {
			isKept = false
		}
		if isLoad {
			s.load(place, ok, r, isFloat, size)
		} else {
			s.store(place, ok, column, isKept, size)
		}
	}
	if mode == 1 || mode == 3 {
		if mode == 1 {
			at += offset
		}
		s.setBase(base, at, ok)
	}
	return true
}

// execute executes an instruction, and returns the offsets to which it goes.
func (s *machineState) execute(w uint32) (next []int64) {
	destination := w & 31
	switch {
	case w == arm64Return || w == arm64ReturnB || w&0xffe0001f == 0xd4200000: // ret, brk
		return nil
	case w>>26 == 5: // b
		return []int64{signExtend(w&0x3ffffff, 26) * 4}
	case w&0xfffffc1f == 0xd61f0000: // br
		return nil
	case w>>24 == 0x54, w>>25&0x3f == 0x1a: // b.cond, cbz, cbnz
		return []int64{4, signExtend(w>>5&0x7ffff, 19) * 4}
	case w>>25&0x3f == 0x1b: // tbz, tbnz
		return []int64{4, signExtend(w>>5&0x3fff, 14) * 4}
	case w>>26 == 0x25 || w&0xfffffc1f == 0xd63f0000: // bl, blr
		for r := range uint32(19) {
			if r != 15 { // __chkstk keeps the size that it is called with
				s.write(r)
			}
		}
		s.write(30)
	case w == 0xd503237f || w == 0xd503233f: // pacibsp, paciasp
		s.isSigned = true
	case w == arm64AuthLR || w == 0xd50323bf:
		s.isSigned = false
	case w>>12 == 0xd5032: // hints
	case w&0x7f000000 == 0x11000000 || w&0x7f000000 == 0x51000000: // add, sub of an immediate
		v := int64(w >> 10 & 0xfff)
		if w>>22&1 != 0 {
			v <<= 12
		}
		if w&0x40000000 != 0 {
			v = -v
		}
		base, ok := s.base(w >> 5 & 31)
		s.setBase(destination, base+v, ok && w>>31 != 0)
	case w&0xffe0e3ff == 0xcb2063ff: // sub sp, sp, x, uxtx #n
		c, ok := s.constant[w>>16&31]
		s.setBase(31, s.sp-int64(c<<(w>>10&7)), ok && s.hasSP && w>>5&31 == 31)
	case w&0x7f800000 == 0x52800000: // movz
		s.write(destination)
		s.constant[destination] = uint64(w>>5&0xffff) << (w >> 21 & 3 * 16)
	case w&0x7f800000 == 0x72800000: // movk
		v, ok := s.constant[destination]
		shift := w >> 21 & 3 * 16
		if s.write(destination); ok {
			s.constant[destination] = v&^(0xffff<<shift) | uint64(w>>5&0xffff)<<shift
		}
	case w&0xffc003e0 == 0xb24003e0: // mov of a run of ones, as one immediate
		s.write(destination)
		ones := w>>10&63 + 1
		s.constant[destination] = bits.RotateLeft64(1<<ones-1, -int(w>>16&63))
	case w&0x7f8003e0 == 0x320003e0: // mov of 32 bits, the same
		s.write(destination)
		if w>>10&0x20 == 0 {
			ones := w>>10&63 + 1
			s.constant[destination] = uint64(bits.RotateLeft32(1<<ones-1, -int(w>>16&63)))
		}
	case s.access(w):
	case w>>25&7 == 7: // floating point
		if w>>30&3 == 0 && w&0x7e000000 == 0x1e000000 && w&0xfc00 == 0 {
			s.write(destination) // to an integer
		} else if s.keptReal &^= 1 << destination; w&0x5f20fc00 == 0x1e200000 {
			s.write(destination)
		}
	default:
		if s.write(destination); destination == 31 && (w&0x1f800000 == 0x12000000 || w&0x1fe00000 == 0x0b200000) && w>>29&3 != 3 && w>>29&1 == 0 {
			s.hasSP = false // and, add to sp
		}
	}
	return []int64{4}
}

// statesOf executes a function.
func statesOf(code []byte) map[int64]*machineState {
	start := &machineState{hasSP: true, stored: map[int64]uint64{}, constant: map[uint32]uint64{}, kept: (1<<31 - 1) &^ (1<<19 - 1), keptReal: 0xff00}
	states := map[int64]*machineState{0: start}
	for list := []int64{0}; len(list) > 0; {
		at := list[0]
		list = list[1:]
		s := states[at].clone()
		for _, offset := range s.execute(binary.LittleEndian.Uint32(code[at:])) {
			to := at + offset
			if to < 0 || to >= int64(len(code)) {
				continue
			}
			if known := states[to]; known == nil {
				c := s.clone()
				states[to] = &c
				list = append(list, to)
			} else if known.join(&s) {
				list = append(list, to)
			}
		}
	}
	return states
}

// disagrees describes the first rule of a row that contradicts a state; "" where there is none. Where the
// state does not know the register of the CFA, only the other rules are compared.
func disagrees(row *Row, s *machineState) string {
	base, ok := s.base(uint32(row.CFA.Register))
	if ok && base+row.CFA.Offset != 0 {
		return fmt.Sprintf("CFA is register %d%+d, expected %+d", row.CFA.Register, row.CFA.Offset, -base)
	}
	if !ok && row.CFA.Register == arm64FP {
		return "CFA by x29, which is not set"
	}
	for column := uint64(firstSave); column < arm64V0+16; column++ {
		if column == arm64LR+1 {
			column = arm64V0 + 8
		}
		kept := s.kept
		if column >= arm64V0 {
			kept = s.keptReal
		}
		rule, isSaved := row.Rule(column)
		if !isSaved {
			if kept>>(column&31)&1 == 0 {
				return fmt.Sprintf("register %d is not the caller's any more", column)
			}
			continue
		}
		if c, ok := s.stored[rule.Offset]; rule.Kind != cfi.Offset || !ok || c != column {
			return fmt.Sprintf("register %d is not at CFA%+d", column, rule.Offset)
		}
	}
	if row.WindowSave != s.isSigned && s.kept>>arm64LR&1 != 0 {
		return fmt.Sprintf("lr is signed: %v", s.isSigned)
	}
	return ""
}

// TestARM64RowsAreThoseOfTheCode executes the functions of clang's images, and holds the rows of unwind
// codes against what is so at every instruction.
func TestARM64RowsAreThoseOfTheCode(t *testing.T) {
	var parts [4]int
	wrong, unreached, unknown := 0, 0, 0
	for _, path := range arm64Programs(t) {
		f := open(t, path)
		err := f.Functions(func(fn Function) bool {
			code, err := f.Bytes(fn.Start, fn.End-fn.Start)
			if err != nil {
				t.Fatal(err)
			}
			states := statesOf(code)
			err = f.Rows(fn, func(r *Row) bool {
				for at := r.Start; at < r.End; at += 4 {
					s := states[int64(at-fn.Start)]
					if s == nil {
						unreached++
						continue
					}
					if _, ok := s.base(uint32(r.CFA.Register)); !ok {
						unknown++
					}
					parts[r.Part]++
					if why := disagrees(r, s); why != "" {
						if wrong++; wrong < 10 {
							t.Errorf("%s: function %#x, %#x: %s: %s\nrow %+v\ncode %+v", path, fn.Start, at, r.Part, why, r, s)
						}
					}
				}
				return true
			})
			if err != nil {
				t.Error(err)
			}
			return true
		})
		if err != nil {
			t.Error(err)
		}
	}
	t.Logf("instructions: %d of bodies, %d of prologues, %d of epilogues; %d are not reached by jumps, of %d the CFA is not known; %d wrong",
		parts[Body], parts[Prologue], parts[Epilogue], unreached, unknown, wrong)
	if parts[Body] < 10000 || parts[Prologue] < 3000 || parts[Epilogue] < 3000 {
		t.Error("expected many of each")
	}
}
