// SPDX-License-Identifier: Apache-2.0

package pe

import (
	"encoding/binary"
	"errors"
	"slices"
)

var errPackedFrame = errors.New("the frame is smaller than the registers that are saved in it, or x19 and more than 10 registers are")

// maxAddition is the most that one instruction adds to sp in the prologues that packed data describe.
const maxAddition = 4080

// arm64Packed makes the codes of a prologue and an epilogue of the form that packed data describe
// ("ARM64 exception handling", Packed unwind data).
func (f *File) arm64Packed(fn Function, isFragment bool) (*ARM64Info, error) {
	word := fn.entry.unwind
	p := &ARM64Packed{
		RegF: uint8(word >> 13 & 7), RegI: uint8(word >> 16 & 15), H: word>>20&1 != 0, CR: uint8(word >> 21 & 3), FrameSize: word >> 23 * 16,
	}
	codes, homes, err := p.codes()
	if err != nil {
		return nil, f.errorf(fn.entry.begin, "packed unwind data %#x: %w", word, err)
	}
	u := &ARM64Info{Address: f.arm64EntryAddress(fn.entry), Packed: p, IsFragment: isFragment, Prolog: codes}
	if isFragment {
		u.Prolog = slices.Insert(codes, 0, ARM64Code{Operation: ARM64EndC})
		return u, nil
	}
	u.Epilogs = f.arm64Epilogs(fn, slices.Delete(slices.Clone(codes), homes[0], homes[1]))
	return u, nil
}

// packedFrame has the sizes of a frame, in bytes.
type packedFrame struct {
	ints, floats  uint32 // of the registers
	saved, locals uint32 // of all registers with room for alignment, and below them
}

// codes returns the codes, and the range of those that store arguments, which epilogues do not undo.
func (p *ARM64Packed) codes() (list []ARM64Code, homes [2]int, err error) {
	var s packedFrame
	s.ints = 8 * uint32(p.RegI)
	if p.CR == 1 {
		s.ints += 8
	}
	if p.RegF > 0 {
		s.floats = 8 * (uint32(p.RegF) + 1)
	}
	s.saved = s.ints + s.floats
	isHomed := p.H && s.saved > 0 // Windows stores no arguments where it saves no registers
	if isHomed {
		s.saved += 64
	}
	s.saved = (s.saved + 15) &^ 15
	if p.RegI > 10 || p.FrameSize < s.saved {
		return nil, homes, errPackedFrame
	}
	s.locals = p.FrameSize - s.saved
	list = p.locals(nil, s)
	homes = [2]int{len(list), len(list)}
	if isHomed {
		homes[1] += 4
		list = append(list, slices.Repeat([]ARM64Code{{Operation: ARM64Nop}}, 4)...)
	}
	list = p.floats(list, s)
	list = p.integers(list, s)
	if p.CR == 2 {
		list = append(list, ARM64Code{Operation: ARM64PACSignLR})
	}
	return append(list, ARM64Code{Operation: ARM64End}), homes, nil
}

func allocation(bytes uint32) ARM64Code {
	return ARM64Code{Operation: ARM64AllocM, Value: bytes}
}

// save is a code that saves one or two registers, at the bottom of the save area, which it makes room
// for, or above.
func (s *packedFrame) save(offset uint32, registers ...uint8) ARM64Code {
	c := ARM64Code{Operation: ARM64SaveAnyReg, Count: uint8(len(registers)), Value: offset, Size: 8}
	if copy(c.Registers[:], registers); offset == 0 {
		c.IsPre, c.Value = true, s.saved
	}
	return c
}

// locals adds the codes of x29, lr and the memory for local variables, which the last instructions of
// the prologue save and allocate.
func (p *ARM64Packed) locals(list []ARM64Code, s packedFrame) []ARM64Code {
	isChained := p.CR == 2 || p.CR == 3
	if isChained {
		list = append(list, ARM64Code{Operation: ARM64SetFP})
		pair := ARM64Code{Operation: ARM64SaveFPLR, Registers: [2]uint8{arm64FP, arm64LR}, Count: 2, Size: 8}
		if s.locals <= 512 {
			pair.Operation, pair.IsPre, pair.Value = ARM64SaveFPLRX, true, s.locals
			return append(list, pair)
		}
		list = append(list, pair)
	}
	switch {
	case s.locals > maxAddition:
		list = append(list, allocation(s.locals-maxAddition), allocation(maxAddition))
	case s.locals > 0:
		list = append(list, allocation(s.locals))
	}
	return list
}

// floats adds the codes of d8 and those behind it.
func (p *ARM64Packed) floats(list []ARM64Code, s packedFrame) []ARM64Code {
	count := int(s.floats / 8)
	for i := (count - 1) &^ 1; i >= 0 && count > 0; i -= 2 {
		first := arm64V0 + 8 + uint8(i)
		if i+1 == count {
			list = append(list, s.save(s.ints+8*uint32(i), first))
		} else {
			list = append(list, s.save(s.ints+8*uint32(i), first, first+1))
		}
	}
	return list
}

// integers adds the codes of x19 and those behind it, and of lr where it is saved alone.
func (p *ARM64Packed) integers(list []ARM64Code, s packedFrame) []ARM64Code {
	count := int(p.RegI)
	isAlone := p.CR == 1
	if isAlone && count%2 == 0 {
		list = append(list, s.save(s.ints-8, arm64LR))
	}
	for i := (count - 1) &^ 1; i >= 0 && count > 0; i -= 2 {
		first := firstSave + uint8(i)
		switch offset := 8 * uint32(i); {
		case i+1 < count:
			list = append(list, s.save(offset, first, first+1))
		case isAlone:
			c := s.save(offset, first, arm64LR)
			if list = append(list, c); c.IsPre { // no code lowers sp for this pair
				list[len(list)-1].IsPre, list[len(list)-1].Value = false, 0
				list = append(list, allocation(s.saved))
			}
		default:
			list = append(list, s.save(offset, first))
		}
	}
	return list
}

// arm64Epilogs finds the epilogues of a function of the form of packed data. The document has one, at the
// end of the function. Where the code is there that is held against it: the function must end with a
// return, or with an epilogue and a jump; and returns before its end with an epilogue count, too.
func (f *File) arm64Epilogs(fn Function, codes []ARM64Code) (list []ARM64Epilog) {
	size := fn.End - fn.Start
	long := arm64EpilogSize(codes)
	if long > size {
		return nil
	}
	code := f.source.upTo(fn.entry.begin, size)
	if uint64(len(code)) < size {
		return []ARM64Epilog{{fn.End - long, codes}}
	}
	for at := long; at <= size; at += arm64Instruction {
		last := binary.LittleEndian.Uint32(code[at-arm64Instruction:])
		isLast, isReturn := at == size, isARM64Return(last)
		isLeaving := isReturn || isLast && isARM64Jump(last)
		if isLast && isReturn || isLeaving && areUndone(code[at-long:at-arm64Instruction], codes) {
			list = append(list, ARM64Epilog{fn.Start + at - long, codes})
		}
	}
	return list
}

// areUndone reports whether each instruction undoes its code. Compilers leave out the one that sets
// sp to x29 where nothing moved sp meanwhile.
func areUndone(code []byte, codes []ARM64Code) bool {
	for i := 0; len(code) > 0; i, code = i+1, code[arm64Instruction:] {
		word := binary.LittleEndian.Uint32(code)
		if word == arm64AuthLRA {
			word = arm64AuthLR
		}
		if c := &codes[i]; c.Operation != ARM64SetFP && c.undoing() != word {
			return false
		}
	}
	return true
}

// Instructions (Arm Architecture Reference Manual for A-profile, C6.2).
const (
	arm64Return    = 0xd65f03c0 // ret
	arm64ReturnB   = 0xd65f0fff // retab
	arm64AuthLR    = 0xd50323ff // autibsp
	arm64AuthLRA   = 0xd50323bf // autiasp, of compilers for other systems
	arm64AddSP     = 0x910003ff // add sp, sp, #imm12
	arm64BaseSP    = 31 << 5
	arm64ShiftedBy = 1 << 22 // an immediate is shifted by 12 bits
)

func isARM64Return(word uint32) bool { return word == arm64Return || word == arm64ReturnB }

// isARM64Jump reports whether an instruction is b or br.
func isARM64Jump(word uint32) bool { return word>>26 == 5 || word&0xfffffc1f == 0xd61f0000 }

// arm64Loads are ldr and ldp of x and d registers: at an offset from sp, and at sp, which is raised
// behind it. The immediate of the pair counts units of 8 bytes, as that of the single load at an
// offset.
var arm64Loads = map[struct {
	isFloat, isPair, isPre bool
}]uint32{
	{false, true, false}: 0xa9400000, {false, true, true}: 0xa8c00000,
	{false, false, false}: 0xf9400000, {false, false, true}: 0xf8400400,
	{true, true, false}: 0x6d400000, {true, true, true}: 0x6cc00000,
	{true, false, false}: 0xfd400000, {true, false, true}: 0xfc400400,
}

// undoing returns the instruction that undoes a code of packed data.
func (c *ARM64Code) undoing() uint32 {
	switch arm64Operations[c.Operation].kind {
	case allocates:
		if c.Value%0x1000 == 0 {
			return arm64AddSP | arm64ShiftedBy | c.Value>>12<<10
		}
		return arm64AddSP | c.Value<<10
	case signs:
		return arm64AuthLR
	}
	return c.load()
}

// load returns the instruction that loads registers that were saved.
func (c *ARM64Code) load() uint32 {
	isFloat, isPair := c.Registers[0] >= arm64V0, c.Count == 2
	word := arm64Loads[struct{ isFloat, isPair, isPre bool }{isFloat, isPair, c.IsPre}] | arm64BaseSP | uint32(c.Registers[0]&31)
	switch {
	case isPair:
		return word | uint32(c.Registers[1]&31)<<10 | c.Value/8&0x7f<<15
	case c.IsPre:
		return word | c.Value&0x1ff<<12
	}
	return word | c.Value/8&0xfff<<10
}
