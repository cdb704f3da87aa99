// SPDX-License-Identifier: Apache-2.0

package hotspot

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// Compiled code makes its frame, and takes it down, by a few sequences of instructions, with the
// size of the frame in them.

// findPrologue finds how code makes its frame: pushed is the offset behind the push of rbp, -1 where the stack
// pointer is lowered in one step, and done the one from which on the frame is there, -1: not found.
func findPrologue(code []byte, frameSize uint64) (pushed, done int) {
	// push rbp; (mov rbp, rsp); sub rsp, frameSize-16
	for _, push := range append([][]byte{{0x55}}, enterCode...) {
		for _, sub := range stackSteps(0xec, frameSize-16) {
			if at := bytes.LastIndex(code, slices.Concat(push, sub)); at >= 0 {
				return at + 1, at + len(push) + len(sub)
			}
		}
	}
	// sub rsp, frameSize-8; mov [rsp+frameSize-16], rbp
	store := []byte{0x48, 0x89, 0x6c, 0x24, byte(frameSize - 16)}
	if frameSize-16 > 127 {
		store = binary.LittleEndian.AppendUint32([]byte{0x48, 0x89, 0xac, 0x24}, uint32(frameSize-16)) //nolint:gosec // at most maxBlobSize
	}
	for _, sub := range stackSteps(0xec, frameSize-8) {
		if at := bytes.LastIndex(code, slices.Concat(sub, store)); at >= 0 {
			return -1, at + len(sub)
		}
	}
	return -1, -1
}

// stackSteps are the instructions that change rsp by a number of bytes.
func stackSteps(operation byte, size uint64) (list [][]byte) {
	if size <= 127 {
		list = append(list, []byte{0x48, 0x83, operation, byte(size)})
	}
	return append(list, binary.LittleEndian.AppendUint32([]byte{0x48, 0x81, operation}, uint32(size))) //nolint:gosec // at most maxBlobSize
}

// epilogue is code that takes down a frame. Its members are offsets: where the stack pointer was
// raised, where rbp was popped, and behind the return. Code up to end is not known where isOpen.
type epilogue struct {
	added, popped, end int
	isOpen             bool
}

// unknownTail is how many bytes behind the pop of rbp have no row where what follows is not known.
const unknownTail = 32

// findEpilogues finds where code takes down its frame, from an offset on, in order: add rsp; pop
// rbp, or leave.
func findEpilogues(code []byte, from int, frameSize uint64) (list []epilogue) {
	add := func(pattern []byte, popped int) {
		for at := from; at < len(code); {
			i := bytes.Index(code[at:], pattern)
			if i < 0 {
				return
			}
			e := epilogue{added: at + i + popped - 1, popped: at + i + popped}
			if n := returnAfter(code[e.popped:]); n > 0 {
				e.end = e.popped + n
			} else {
				e.end, e.isOpen = min(e.popped+unknownTail, len(code)), true
			}
			list = append(list, e)
			at = e.popped
		}
	}
	for _, step := range stackSteps(0xc4, frameSize-16) {
		add(append(step, 0x5d), len(step)+1)
	}
	for _, next := range [][]byte{{leaveCode, 0xc3}, {leaveCode, 0x49, 0x81, 0x7f}, {leaveCode, 0x49, 0x83, 0x7f}} {
		add(next, 1)
	}
	slices.SortFunc(list, func(a, b epilogue) int { return cmp.Compare(a.popped, b.popped) })
	return slices.CompactFunc(list, func(a, b epilogue) bool { return b.added < a.end })
}

// returnSteps are the first bytes and the lengths of instructions between the pop of rbp and the
// return: polls for a safepoint, which versions do in different ways.
var returnSteps = []struct {
	first  []byte
	length int
}{
	{[]byte{0x49, 0x3b, 0xa7}, 7},       // cmp rsp, [r15+disp]
	{[]byte{0x0f, 0x87}, 6},             // ja
	{[]byte{0x0f, 0x85}, 6},             // jne
	{[]byte{0x85, 0x05}, 6},             // test [rip+disp], eax
	{[]byte{0x4d, 0x8b, 0x97}, 7},       // mov r10, [r15+disp]
	{[]byte{0x49, 0x8b, 0x8f}, 7},       // mov rcx, [r15+disp]
	{[]byte{0x41, 0x85, 0x02}, 3},       // test [r10], eax
	{[]byte{0x85, 0x01}, 2},             // test [rcx], eax
	{[]byte{0xc5, 0xf8, 0x77}, 3},       // vzeroupper
	{[]byte{0x49, 0x83, 0x7f}, 5},       // cmp qword [r15+disp8], imm8
	{[]byte{0x49, 0x81, 0x7f}, 8},       // cmp qword [r15+disp8], imm32
	{[]byte{0x4c, 0x8b, 0x15}, 7},       // mov r10, [rip+disp]
	{[]byte{0x4d, 0x3b, 0xa7}, 7},       // cmp r12, [r15+disp]
	{[]byte{0x41, 0xf6, 0x87}, 8},       // test byte [r15+disp], imm8
	{[]byte{0x4c, 0x8d, 0x15}, 7},       // lea r10, [rip+disp]
	{[]byte{0x0f, 0x1f, 0x44, 0x00}, 5}, // nop
}

// returnAfter returns how many bytes from the start of code up to the end of a return are nothing
// but such instructions; 0: there are others.
func returnAfter(code []byte) int {
	for at := 0; at < len(code); {
		if code[at] == 0xc3 {
			return at + 1
		}
		i := slices.IndexFunc(returnSteps, func(s struct {
			first  []byte
			length int
		}) bool {
			return bytes.HasPrefix(code[at:], s.first)
		})
		if i < 0 {
			return 0
		}
		at += returnSteps[i].length
	}
	return 0
}
