// SPDX-License-Identifier: Apache-2.0

package visa

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
)

// Of Gen instructions only those are read that set up a frame and take it down.
// An instruction has 16 bytes, or 8 where it is compacted.
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

// An encoding says where the fields of Gen instructions are that are read here.
// In instructions that are written in full they are in the second and the third
// word of 32 bits.
type encoding struct {
	mov uint32 // opcode
	grf uint64 // bytes of a general register

	// writes returns the general register that an instruction writes, and the
	// first byte of it that it writes.
	writes func(w1 uint32) (register, at uint32, ok bool)
	// sends does the same for a send, which writes whole registers.
	sends func(w1 uint32) (register uint32, ok bool)
	// reads returns the general register that an instruction reads first, and the
	// byte of it.
	reads func(w2 uint32) (register, at uint32, ok bool)
	// isDirect says whether a call, written in full, has a distance in its last word: else
	// a register has it.
	isDirect func(w1, w2 uint32) bool
	// short returns the registers that a compacted instruction writes and reads
	// first.
	short func(w0, w1 uint32) (to, from uint32)
}

// encodings are those of Gen8 to Gen11, and of Gen12 and its successors with
// registers of 32 and of 64 bytes.
var encodings = [...]encoding{
	{
		mov: 0x01, grf: grf32 / 8,
		writes: func(w1 uint32) (register, at uint32, ok bool) {
			n := w1 >> 16
			return n >> 5 & 0xff, n & 31, w1>>3&3 == 1 && n>>15 == 0
		},
		sends: func(w1 uint32) (register uint32, ok bool) {
			n := w1 >> 16
			return n >> 5 & 0xff, w1>>3&3 == 1 && n>>15 == 0
		},
		reads: func(w2 uint32) (register, at uint32, ok bool) {
			return w2 >> 5 & 0xff, w2 & 31, w2>>15&1 == 0
		},
		isDirect: func(_, w2 uint32) bool { return w2>>26&1 == 1 },
		short:    func(_, w1 uint32) (to, from uint32) { return w1 >> 8 & 0xff, w1 >> 16 & 0xff },
	},
	{
		mov: 0x61, grf: grf32 / 8, writes: gen12Writes(1), sends: gen12Sends, reads: gen12Reads(1), isDirect: gen12IsDirect,
		short: func(w0, w1 uint32) (to, from uint32) { return w0 >> 16 & 0xff, w1 >> 8 & 0xff },
	},
	{
		mov: 0x61, grf: grf64 / 8, writes: gen12Writes(2), sends: gen12Sends, reads: gen12Reads(2), isDirect: gen12IsDirect,
		short: func(_, w1 uint32) (to, from uint32) { return w1 & 0xff, w1 >> 8 & 0xff },
	},
}

// gen12Writes reads a destination whose sub-register is in units of so many
// bytes.
func gen12Writes(unit uint32) func(uint32) (register, at uint32, ok bool) {
	return func(w1 uint32) (register, at uint32, ok bool) {
		return w1 >> 24, w1 >> 19 & 31 * unit, w1>>18&1 == 1
	}
}

func gen12Sends(w1 uint32) (register uint32, ok bool) { return w1 >> 24, w1>>18&1 == 1 }

func gen12Reads(unit uint32) func(uint32) (register, at uint32, ok bool) {
	return func(w2 uint32) (register, at uint32, ok bool) {
		return w2 >> 8 & 0xff, w2 >> 3 & 31 * unit, w2>>2&1 == 1
	}
}

func gen12IsDirect(w1, _ uint32) bool { return w1>>14&1 == 1 }

// An instruction is one while it is looked at.
type instruction struct {
	words [4]uint32 // two of a compacted one
	size  uint64
}

// instructionAt reads the instruction at an offset.
func instructionAt(code []byte, at uint64) (in instruction, ok bool) {
	if at >= uint64(len(code)) || len(code)-int(at) < compactedSize {
		return in, false
	}
	code = code[at:]
	in.size = instructionSize
	in.words[0] = binary.LittleEndian.Uint32(code)
	if in.words[0]&compacted != 0 {
		in.size = compactedSize
	}
	if uint64(len(code)) < in.size {
		return in, false
	}
	for i := range in.size / 4 {
		in.words[i] = binary.LittleEndian.Uint32(code[4*i:])
	}
	return in, true
}

// is says whether an instruction is written in full and has an opcode.
func (in *instruction) is(opcode uint32) bool {
	return in.size == instructionSize && in.words[0]&opcodeMask == opcode
}

// codeFacts are what the code of a function says of its frame.
type codeFacts struct {
	grf      uint64 // bytes of a general register; 0: unknown
	grow     uint64 // by what the stack pointer grows, in its units; 0: unknown
	restored uint64 // offset behind the instruction that takes the frame down; 0: unknown
}

// maxSetup is how many instructions may lie between those that set the frame
// pointer and the stack pointer.
const maxSetup = 16

// factsOf reads the code of a function with a frame: the frame pointer is set by
// the instruction before set, and up to down the frame is in use.
//
// The frame pointer is set to what the stack pointer is, and then that grows. The
// frame is taken down by one instruction: by a copy of the descriptor from
// another register, or by a load of all of it from memory, which takes another
// instruction that makes up its address.
func factsOf(code []byte, a *abi, set, down uint64) codeFacts {
	number, ok := generalIndex(a.descriptor)
	if !ok || set < instructionSize || down < set {
		return codeFacts{}
	}
	in, ok := instructionAt(code, set-instructionSize)
	if !ok {
		return codeFacts{}
	}
	for i := range encodings {
		e := &encodings[i]
		if !in.is(e.mov) {
			continue
		}
		to, toAt, ok := e.writes(in.words[1])
		from, fromAt, okFrom := e.reads(in.words[2])
		if !ok || !okFrom || to != number || from != number || uint64(toAt) != a.fp || uint64(fromAt) != a.sp {
			continue
		}
		return codeFacts{grf: e.grf, grow: e.grow(code, a, number, set), restored: e.restored(code, a, number, down)}
	}
	return codeFacts{}
}

// grow finds by what the stack pointer grows behind an offset.
func (e *encoding) grow(code []byte, a *abi, number uint32, at uint64) uint64 {
	for range maxSetup {
		in, ok := instructionAt(code, at)
		if !ok {
			break
		}
		at += in.size
		if !in.is(opcodeAdd) {
			continue
		}
		to, toAt, ok := e.writes(in.words[1])
		from, fromAt, okFrom := e.reads(in.words[2])
		if ok && okFrom && to == number && from == number && uint64(toAt) == a.sp && uint64(fromAt) == a.sp {
			return uint64(in.words[3])
		}
	}
	return 0
}

// restored finds the instruction that takes the frame down: the only one that
// writes the descriptor between an offset and the return. Which bytes a
// compacted copy writes is not read. It is one if it copies the register in
// which functions keep the descriptor, which is the last one that they do not
// preserve for their callers.
func (e *encoding) restored(code []byte, a *abi, number uint32, at uint64) (behind uint64) {
	first := min(a.fp, a.ip)
	for {
		in, ok := instructionAt(code, at)
		switch {
		case !ok:
			return 0
		case in.is(opcodeReturn):
			return behind
		}
		at += in.size
		switch {
		case in.is(opcodeSend):
			if to, ok := e.sends(in.words[1]); !ok || to != number {
				continue
			}
		case in.size == compactedSize && in.words[0]&opcodeMask == e.mov:
			if to, from := e.short(in.words[0], in.words[1]); to != number || from != a.calleeSaved()-1 {
				continue
			}
		case in.is(e.mov):
			to, toAt, ok := e.writes(in.words[1])
			if !ok || to != number || uint64(toAt) != first {
				continue
			}
		default:
			continue
		}
		if behind != 0 {
			return 0
		}
		behind = at
	}
}

// registerByte is a place in the general registers.
type registerByte struct{ register, at uint32 }

// calls are the calls and the returns in a function's code, by the place of the
// return address.
type calls struct {
	targets map[registerByte][]uint64 // sorted
	returns map[registerByte][]uint64 // the ends of returns, sorted
}

// callsOf reads the calls of code, by each encoding with which it has returns that
// take their address from where calls put it.
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
	for at := uint64(0); ; {
		in, ok := instructionAt(code, at)
		if !ok {
			break
		}
		switch {
		case in.is(opcodeCall):
			target := at + uint64(int64(int32(in.words[3]))) //nolint:gosec // a distance
			if register, byteAt, ok := e.writes(in.words[1]); ok && target < uint64(len(code)) {
				place := registerByte{register, byteAt}
				c.targets[place] = append(c.targets[place], target)
			}
		case in.is(opcodeReturn):
			if register, byteAt, ok := e.reads(in.words[2]); ok {
				place := registerByte{register, byteAt}
				c.returns[place] = append(c.returns[place], at+in.size)
			}
		}
		at += in.size
	}
	for place, list := range c.targets {
		slices.Sort(list)
		c.targets[place] = slices.Compact(list)
	}
	return c
}

// subroutine is the code of the subroutine with its return address at a place, of
// those that begin where is says.
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
		return 0, 0, fmt.Errorf("%d calls of it, and %d returns from it, with the address at byte %d of r%d", found, len(returns)-i, place.at, place.register)
	}
	return start, returns[i], nil
}

// callsInside says whether code calls something in itself. Calls of its beginning,
// which are of the whole function, count where beginning is set.
func callsInside(code []byte, beginning bool) bool {
	for at := uint64(0); ; {
		in, ok := instructionAt(code, at)
		if !ok {
			return false
		}
		if in.words[0]&opcodeMask == opcodeCall {
			target := at + uint64(int64(int32(in.words[3]))) //nolint:gosec // a distance
			if in.size == compactedSize || target < uint64(len(code)) && (target != 0 || beginning) {
				return true
			}
		}
		at += in.size
	}
}

// generalIndex is the number of a general register among them, where it is
// one of the first 256: instructions have no more bits for it.
func generalIndex(dwarf uint32) (n uint32, ok bool) { return dwarf - r0, dwarf-r0 < 256 }
