// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// linkers are the registers by which linkers and compilers jump far: x16 and x17, and x27
// of Go.
var linkers = [...]uint8{16, 17, 27}

// A farValue is what a register holds, as far as a jump shows it.
type farValue struct {
	isAddress bool // the address
	isWord    bool // the word at an address
	address   uint64
}

// farState has the values of linkers.
type farState [len(linkers)]farValue

// value is what a register holds.
func (s *farState) value(r uint8) farValue {
	if i := slices.Index(linkers[:], r); i >= 0 {
		return s[i]
	}
	return farValue{}
}

// exits finds how code is left.
type exits struct {
	*codeflow.Exits[farState]
	effect effect // of the instruction that was read last
}

// codeExits is nil where the code cannot be read.
func codeExits(r *sdk.CodeRange) *sdk.CodeExits {
	x := &exits{}
	if x.Exits = codeflow.NewExits(x, r, instructionSize, maxCode); x.Exits == nil {
		return nil
	}
	return x.Find(r.PC)
}

// Instruction reads the instruction of a number.
func (x *exits) Instruction(n uint64) (in codeflow.Instruction, ok bool) {
	x.effect = effect{}
	readEffect(word(x.Code, n), &x.effect)
	return x.effect.instruction()
}

// Join keeps what holds in both states.
func (x *exits) Join(p *codeflow.Point[farState], s *farState, isFirst bool) (hasChanged bool) {
	if isFirst {
		p.State = *s
		return true
	}
	for i := range s {
		if p.State[i] != s[i] && p.State[i] != (farValue{}) {
			p.State[i], hasChanged = farValue{}, true
		}
	}
	return hasChanged
}

// Leave is a return, or a jump to what a register holds.
func (x *exits) Leave(_ uint64, s *farState) {
	e := &x.effect
	switch v := s.value(e.dst); {
	case e.kind == effectReturn:
		x.Found.Open = e.dst != gprX30
	case v.isAddress:
		x.Jump(v.address, s)
	case v.isWord:
		x.Found.Slots = append(x.Found.Slots, v.address)
	default:
		x.Found.Open = true
	}
}

// Apply makes s the state after an instruction.
func (x *exits) Apply(n uint64, s *farState) {
	e, w, pc := &x.effect, word(x.Code, n), x.Location(n)
	after := *s
	for i, r := range linkers {
		v := s[i]
		switch {
		case e.kind == effectCall && r < 19:
			v = farValue{}
		case rd(w) == r && isPageAddress(w):
			v = farValue{isAddress: true, address: pageAddress(pc, w)}
		case rd(w) == r && w&0xff000000 == 0x58000000: // LDR (literal)
			v = farValue{isWord: true, address: pc + uint64(4*signed(w, 5, 19))} //nolint:gosec // modular
		case e.kind == effectMove && e.dst == r:
			if v = s.value(e.src); v.isAddress {
				v.address += uint64(int64(e.imm)) //nolint:gosec // modular
			} else if e.imm != 0 {
				v = farValue{}
			}
		case e.kind == effectAccess && e.isLoad && !e.isVector && (e.first == r || e.second == r):
			base := s.value(e.src)
			v = farValue{}
			if base.isAddress && !e.isPair && e.size == 8 && e.writeback == offsetOnly {
				v = farValue{isWord: true, address: base.address + uint64(int64(e.imm))} //nolint:gosec // modular
			}
		case e.clobbers>>r&1 != 0, e.dst == r, e.kind == effectAccess && e.src == r && e.writeback != offsetOnly && e.writeback != noOffset:
			v = farValue{}
		}
		after[i] = v
	}
	*s = after
}

// isPageAddress says whether a word is ADR or ADRP.
func isPageAddress(w uint32) bool { return w&0x1f000000 == 0x10000000 }

// pageAddress is the address that an ADR or ADRP at pc makes.
func pageAddress(pc uint64, w uint32) uint64 {
	n := uint64(signed(w, 5, 19)<<2 | int64(w>>29&3)) //nolint:gosec // modular
	if w>>31 == 0 {
		return pc + n
	}
	return pc&^0xfff + n<<12
}
