// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"encoding/binary"
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// maxAround is the number of bytes before and after a call that are read for marks of the
// deepest frame.
const maxAround = 32

// deepestRow is the row of a call in the function that a thread begins in, which C
// libraries write in assembly language, without call frame information. Before the
// call it sets the frame pointer to 0, which marks the deepest frame (psABI of x86-64, 3.4.1; of i386, 2.3.1), and after it
// there is nothing to return to: the thread ends.
func (m *Mode) deepestRow(r *sdk.CodeRange, offset int) (row cfi.Row, ok bool) {
	if r.Exact {
		return row, false
	}
	end := m.ResumeAfter(r.Code, offset)
	if end < 0 || !m.isEndOfThread(r.Code[end:]) || !m.hasClearedFramePointer(r.Code[max(0, end-maxAround):end]) {
		return row, false
	}
	return m.OutermostRow(r.Start+uint64(offset), r.Start+uint64(max(end, offset+1))), true
}

// hasClearedFramePointer reports whether the frame pointer is set to 0 in code that runs on to its end.
func (m *Mode) hasClearedFramePointer(code []byte) bool {
	for from := range code {
		if !HasPrefix(code[from:], bytesXorEBP) {
			continue
		}
		at := from
		for at < len(code) {
			e, ok := m.ReadEffect(code[at:])
			if !ok || e.Kind >= Return {
				break
			}
			at += int(e.Length)
		}
		if at == len(code) {
			return true
		}
	}
	return false
}

// isEndOfThread reports whether code runs on to the system call exit or exit_group, or to
// an instruction that a program may not execute.
func (m *Mode) isEndOfThread(code []byte) bool {
	number := int64(-1) // in eax
	for at := 0; at < min(len(code), maxAround); {
		rest := code[at:]
		e, ok := m.ReadEffect(rest)
		if !ok {
			return false
		}
		switch {
		case e.Kind == Stop:
			return true
		case e.Kind >= Call:
			return false
		case HasPrefix(rest, m.Syscall):
			return slices.Contains(m.Exits, number)
		case HasPrefix(rest, bytesXorEAX):
			number = 0
		case rest[0] == opMovALImm && len(rest) > 1 && number == 0:
			number = int64(rest[1])
		case rest[0] == opMovEAXImm && len(rest) > 4:
			number = int64(binary.LittleEndian.Uint32(rest[1:]))
		case e.Clobbers&(1<<AX) != 0 || e.Dst == AX && e.Kind != Other:
			number = -1
		}
		at += int(e.Length)
	}
	return false
}
