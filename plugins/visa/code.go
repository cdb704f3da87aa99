// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// This file reads the Gen instructions that set up a frame and take it down. An
// instruction has 16 bytes, or 8 where it is compacted.
const (
	instructionSize = 16
	compactedSize   = 8
	compacted       = 1 << 29 // in the first 32 bits
	opcodeMask      = 0x7f

	opcodeCall   = 0x2c
	opcodeReturn = 0x2d
	opcodeSend   = 0x31
	opcodeAdd    = 0x40
)

// encoding has the places of the fields of Gen instructions that are read here.
// In instructions that are written in full they are in the second and the third
// word of 32 bits.
type encoding struct {
	mov uint32 // opcode
	grf uint64 // bytes of a general register

	// writes returns the general register that an instruction writes, and the
	// first byte of it that it writes.
	writes func(w1 uint32) (register, offset uint32, ok bool)
	// sends does the same for a send, which writes whole registers.
	sends func(w1 uint32) (register uint32, ok bool)
	// reads returns the general register that an instruction reads first, and the
	// byte of it.
	reads func(w2 uint32) (register, offset uint32, ok bool)
	// isDirect reports whether a call, written in full, has its distance in its last word,
	// and not in a register.
	isDirect func(w1, w2 uint32) bool
	// short returns the registers that a compacted instruction writes and reads
	// first.
	short func(w0, w1 uint32) (destination, source uint32)
}

// encodings are the encodings of Gen8 to Gen11, and of Gen12 and its
// successors with registers of 32 and of 64 bytes.
var encodings = [...]encoding{
	{
		mov: 0x01, grf: grf32 / 8,
		writes: func(w1 uint32) (register, offset uint32, ok bool) {
			n := w1 >> 16
			return n >> 5 & 0xff, n & 31, w1>>3&3 == 1 && n>>15 == 0
		},
		sends: func(w1 uint32) (register uint32, ok bool) {
			n := w1 >> 16
			return n >> 5 & 0xff, w1>>3&3 == 1 && n>>15 == 0
		},
		reads: func(w2 uint32) (register, offset uint32, ok bool) {
			return w2 >> 5 & 0xff, w2 & 31, w2>>15&1 == 0
		},
		isDirect: func(_, w2 uint32) bool { return w2>>26&1 == 1 },
		short:    func(_, w1 uint32) (destination, source uint32) { return w1 >> 8 & 0xff, w1 >> 16 & 0xff },
	},
	{
		mov: 0x61, grf: grf32 / 8, writes: gen12Writes(1), sends: gen12Sends, reads: gen12Reads(1), isDirect: gen12IsDirect,
		short: func(w0, w1 uint32) (destination, source uint32) { return w0 >> 16 & 0xff, w1 >> 8 & 0xff },
	},
	{
		mov: 0x61, grf: grf64 / 8, writes: gen12Writes(2), sends: gen12Sends, reads: gen12Reads(2), isDirect: gen12IsDirect,
		short: func(_, w1 uint32) (destination, source uint32) { return w1 & 0xff, w1 >> 8 & 0xff },
	},
}

// gen12Writes reads a destination whose sub-register is in units of so many
// bytes.
func gen12Writes(unit uint32) func(uint32) (register, offset uint32, ok bool) {
	return func(w1 uint32) (register, offset uint32, ok bool) {
		return w1 >> 24, w1 >> 19 & 31 * unit, w1>>18&1 == 1
	}
}

func gen12Sends(w1 uint32) (register uint32, ok bool) { return w1 >> 24, w1>>18&1 == 1 }

func gen12Reads(unit uint32) func(uint32) (register, offset uint32, ok bool) {
	return func(w2 uint32) (register, offset uint32, ok bool) {
		return w2 >> 8 & 0xff, w2 >> 3 & 31 * unit, w2>>2&1 == 1
	}
}

func gen12IsDirect(w1, _ uint32) bool { return w1>>14&1 == 1 }

// instruction is an instruction that is being read.
type instruction struct {
	words [4]uint32 // two of a compacted one
	size  uint64
}

// instructionAt reads the instruction at an offset.
func instructionAt(code []byte, offset uint64) (inst instruction, ok bool) {
	if offset >= uint64(len(code)) || len(code)-int(offset) < compactedSize {
		return inst, false
	}
	code = code[offset:]
	inst.size = instructionSize
	inst.words[0] = binary.LittleEndian.Uint32(code)
	if inst.words[0]&compacted != 0 {
		inst.size = compactedSize
	}
	if uint64(len(code)) < inst.size {
		return inst, false
	}
	for i := range inst.size / 4 {
		inst.words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return inst, true
}

// is reports whether an instruction is written in full, with this opcode.
func (inst *instruction) is(opcode uint32) bool {
	return inst.size == instructionSize && inst.words[0]&opcodeMask == opcode
}

// codeFacts are the facts about a function's frame in its code.
type codeFacts struct {
	grf      uint64 // bytes of a general register; 0: unknown
	grow     uint64 // the growth of the stack pointer, in its units; 0: unknown
	restored uint64 // offset behind the instruction that takes the frame down; 0: unknown
}

// maxSetup bounds the instructions between the ones that set the frame
// pointer and the stack pointer.
const maxSetup = 16

// factsOf reads the code of a function with a frame: the frame pointer is set by
// the instruction before set, and up to down the frame is in use.
//
// The frame pointer is set to the stack pointer, which then grows. The frame is
// taken down by one instruction: by a copy of the descriptor from another
// register, or by a load of all of it from memory, whose address another
// instruction computes.
func factsOf(code []byte, a *abi, set, down uint64) codeFacts {
	number, ok := generalIndex(a.descriptor)
	if !ok || set < instructionSize || down < set {
		return codeFacts{}
	}
	inst, ok := instructionAt(code, set-instructionSize)
	if !ok {
		return codeFacts{}
	}
	for i := range encodings {
		e := &encodings[i]
		if !inst.is(e.mov) {
			continue
		}
		destination, destinationByte, ok := e.writes(inst.words[1])
		source, sourceByte, okSource := e.reads(inst.words[2])
		if !ok || !okSource || destination != number || source != number || uint64(destinationByte) != a.fp || uint64(sourceByte) != a.sp {
			continue
		}
		return codeFacts{grf: e.grf, grow: e.grow(code, a, number, set), restored: e.restored(code, a, number, down)}
	}
	return codeFacts{}
}

// grow returns the growth of the stack pointer behind an offset.
func (e *encoding) grow(code []byte, a *abi, number uint32, offset uint64) uint64 {
	for range maxSetup {
		inst, ok := instructionAt(code, offset)
		if !ok {
			break
		}
		offset += inst.size
		if !inst.is(opcodeAdd) {
			continue
		}
		destination, destinationByte, ok := e.writes(inst.words[1])
		source, sourceByte, okSource := e.reads(inst.words[2])
		if ok && okSource && destination == number && source == number && uint64(destinationByte) == a.sp && uint64(sourceByte) == a.sp {
			return uint64(inst.words[3])
		}
	}
	return 0
}

// restored finds the instruction that takes the frame down: the only one that
// writes the descriptor between an offset and the return. The bytes that a
// compacted copy writes are not decoded. It counts if it copies the register
// in which functions keep the descriptor, the last one that they do not
// preserve for their callers.
func (e *encoding) restored(code []byte, a *abi, number uint32, offset uint64) (behind uint64) {
	first := min(a.fp, a.ip)
	for {
		inst, ok := instructionAt(code, offset)
		switch {
		case !ok:
			return 0
		case inst.is(opcodeReturn):
			return behind
		}
		offset += inst.size
		switch {
		case inst.is(opcodeSend):
			if destination, ok := e.sends(inst.words[1]); !ok || destination != number {
				continue
			}
		case inst.size == compactedSize && inst.words[0]&opcodeMask == e.mov:
			if destination, source := e.short(inst.words[0], inst.words[1]); destination != number || source != a.calleeSaved()-1 {
				continue
			}
		case inst.is(e.mov):
			destination, destinationByte, ok := e.writes(inst.words[1])
			if !ok || destination != number || uint64(destinationByte) != first {
				continue
			}
		default:
			continue
		}
		if behind != 0 {
			return 0
		}
		behind = offset
	}
}

// registerByte is a place in the general registers.
type registerByte struct{ register, offset uint32 }

// calls are the calls and the returns in a function's code, by the place of the
// return address.
type calls struct {
	targets map[registerByte][]uint64 // sorted
	returns map[registerByte][]uint64 // the ends of returns, sorted
}

// callsOf reads the calls of code with each encoding by which some return takes
// its address from where a call puts it.
func callsOf(code []byte) []*calls {
	var list []*calls
	for i := range encodings {
		c := encodings[i].calls(code)
		for place := range c.returns {
			if len(c.targets[place]) > 0 {
				list = append(list, c)
				break
			}
		}
	}
	return list
}

// calls reads the calls of code with an encoding.
func (e *encoding) calls(code []byte) *calls {
	c := &calls{targets: map[registerByte][]uint64{}, returns: map[registerByte][]uint64{}}
	for offset := uint64(0); ; {
		inst, ok := instructionAt(code, offset)
		if !ok {
			break
		}
		switch {
		case inst.is(opcodeCall):
			target := offset + uint64(int64(int32(inst.words[3]))) //nolint:gosec // a distance
			if register, first, ok := e.writes(inst.words[1]); ok && target < uint64(len(code)) {
				place := registerByte{register, first}
				c.targets[place] = append(c.targets[place], target)
			}
		case inst.is(opcodeReturn):
			if register, first, ok := e.reads(inst.words[2]); ok {
				place := registerByte{register, first}
				c.returns[place] = append(c.returns[place], offset+inst.size)
			}
		}
		offset += inst.size
	}
	for place, list := range c.targets {
		slices.Sort(list)
		c.targets[place] = slices.Compact(list)
	}
	return c
}

// subroutine returns the code of the subroutine whose return address is at a
// place and whose start satisfies is.
func (c *calls) subroutine(place registerByte, is func(start uint64) bool) (start, end uint64, err error) {
	const enough = 1 << 10
	targets := c.targets[place]
	if len(targets) > enough {
		return 0, 0, fmt.Errorf("calls of more than %d subroutines with the return address in r%d", enough, place.register)
	}
	found := 0
	for _, t := range targets {
		if is(t) {
			start = t
			found++
		}
	}
	returns := c.returns[place]
	i := sort.Search(len(returns), func(i int) bool { return returns[i] > start })
	if found != 1 || i == len(returns) {
		return 0, 0, fmt.Errorf("%d calls of it, and %d returns from it, with the address at byte %d of r%d", found, len(returns)-i, place.offset, place.register)
	}
	return start, returns[i], nil
}

// callsInside reports whether code calls a part of itself. Calls of its beginning,
// and so of the whole function, count where beginning is set.
func callsInside(code []byte, beginning bool) bool {
	for offset := uint64(0); ; {
		inst, ok := instructionAt(code, offset)
		if !ok {
			return false
		}
		if inst.words[0]&opcodeMask == opcodeCall {
			target := offset + uint64(int64(int32(inst.words[3]))) //nolint:gosec // a distance
			if inst.size == compactedSize || target < uint64(len(code)) && (target != 0 || beginning) {
				return true
			}
		}
		offset += inst.size
	}
}

// generalIndex returns the index of a general register, if it is below 256:
// instructions have no more bits for it.
func generalIndex(dwarf uint32) (n uint32, ok bool) { return dwarf - r0, dwarf-r0 < 256 }
