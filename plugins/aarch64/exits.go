// SPDX-License-Identifier: Apache-2.0

package aarch64

import (
	"slices"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// linkers are the registers through which linkers and compilers make long jumps: x16 and
// x17, and x27 in Go.
var linkers = [...]uint8{16, 17, 27}

// linkerValue is the value of one of linkers.
type linkerValue struct {
	isAddress bool // the address
	isWord    bool // the word at an address
	address   uint64
}

// linkerState has the values of linkers.
type linkerState [len(linkers)]linkerValue

// value is the value of a register.
func (s *linkerState) value(r uint8) linkerValue {
	if i := slices.Index(linkers[:], r); i >= 0 {
		return s[i]
	}
	return linkerValue{}
}

// exits finds how code is left.
type exits struct {
	*codeflow.Exits[linkerState]
	effect effect // of the last instruction that was read
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
func (x *exits) Instruction(n uint64) (decoded codeflow.Instruction, ok bool) {
	x.effect = effect{}
	readEffect(word(x.Code, n), &x.effect)
	return x.effect.instruction()
}

// Join keeps the values that both states have.
func (x *exits) Join(p *codeflow.Point[linkerState], s *linkerState, isFirst bool) (hasChanged bool) {
	if isFirst {
		p.State = *s
		return true
	}
	for i := range s {
		if p.State[i] != s[i] && p.State[i] != (linkerValue{}) {
			p.State[i], hasChanged = linkerValue{}, true
		}
	}
	return hasChanged
}

// Leave ends a path at a return, or at a jump through a register.
func (x *exits) Leave(_ uint64, s *linkerState) {
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
func (x *exits) Apply(n uint64, s *linkerState) {
	e, w, pc := &x.effect, word(x.Code, n), x.Location(n)
	after := *s
	for i, r := range linkers {
		v := s[i]
		switch {
		case e.kind == effectCall && r < 19:
			v = linkerValue{}
		case rd(w) == r && isPageAddress(w):
			v = linkerValue{isAddress: true, address: pageAddress(pc, w)}
		case rd(w) == r && w&0xff000000 == 0x58000000: // LDR (literal)
			v = linkerValue{isWord: true, address: pc + uint64(4*signed(w, 5, 19))} //nolint:gosec // modular
		case e.kind == effectMove && e.dst == r:
			if v = s.value(e.src); v.isAddress {
				v.address += uint64(int64(e.imm)) //nolint:gosec // modular
			} else if e.imm != 0 {
				v = linkerValue{}
			}
		case e.kind == effectAccess && e.isLoad && !e.isVector && (e.first == r || e.second == r):
			base := s.value(e.src)
			v = linkerValue{}
			if base.isAddress && !e.isPair && e.size == 8 && e.writeback == offsetOnly {
				v = linkerValue{isWord: true, address: base.address + uint64(int64(e.imm))} //nolint:gosec // modular
			}
		case e.clobbers>>r&1 != 0, e.dst == r, e.kind == effectAccess && e.src == r && e.writeback != offsetOnly && e.writeback != noOffset:
			v = linkerValue{}
		}
		after[i] = v
	}
	*s = after
}

// isPageAddress reports whether a word is ADR or ADRP.
func isPageAddress(w uint32) bool { return w&0x1f000000 == 0x10000000 }

// pageAddress is the address that an ADR or ADRP at pc makes.
func pageAddress(pc uint64, w uint32) uint64 {
	n := uint64(signed(w, 5, 19)<<2 | int64(w>>29&3)) //nolint:gosec // modular
	if w>>31 == 0 {
		return pc + n
	}
	return pc&^0xfff + n<<12
}
