// SPDX-License-Identifier: Apache-2.0

package x86_64

import (
	"encoding/binary"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// maxAround is the number of bytes before and after a call that are read for marks of the
// deepest frame.
const maxAround = 32

// deepestRow is the row of a call in the function that a thread begins in, which C
// libraries write in assembly language, without call frame information. Before the
// call it sets rbp to 0, which marks the deepest frame (psABI 3.4.1), and after it
// there is nothing to return to: the thread ends.
func deepestRow(r *sdk.CodeRange, offset int) (row cfi.Row, ok bool) {
	if r.Exact {
		return row, false
	}
	end := resumeAfter(r.Code, offset)
	if end < 0 || !isEndOfThread(r.Code[end:]) || !hasClearedFramePointer(r.Code[max(0, end-maxAround):end]) {
		return row, false
	}
	return outermostRow(r.Start+uint64(offset), r.Start+uint64(max(end, offset+1))), true
}

// hasClearedFramePointer reports whether rbp is set to 0 in code that runs on to its end.
func hasClearedFramePointer(code []byte) bool {
	for from := range code {
		if !hasPrefix(code[from:], bytesXorEBP) {
			continue
		}
		at := from
		for at < len(code) {
			e, ok := readEffect(code[at:])
			if !ok || e.kind >= effectReturn {
				break
			}
			at += int(e.length)
		}
		if at == len(code) {
			return true
		}
	}
	return false
}

// isEndOfThread reports whether code runs on to the system call exit or exit_group, or to
// an instruction that a program may not execute.
func isEndOfThread(code []byte) bool {
	number := int64(-1) // in eax
	for at := 0; at < min(len(code), maxAround); {
		rest := code[at:]
		e, ok := readEffect(rest)
		if !ok {
			return false
		}
		switch {
		case e.kind == effectStop:
			return true
		case e.kind >= effectCall:
			return false
		case hasPrefix(rest, bytesSyscall):
			return number == sysExit || number == sysExitGroup
		case hasPrefix(rest, bytesXorEAX):
			number = 0
		case rest[0] == opMovALImm && len(rest) > 1 && number == 0:
			number = int64(rest[1])
		case rest[0] == opMovEAXImm && len(rest) > 4:
			number = int64(binary.LittleEndian.Uint32(rest[1:]))
		case e.clobbers&(1<<gprAX) != 0 || e.dst == gprAX && e.kind != effectOther:
			number = -1
		}
		at += int(e.length)
	}
	return false
}

// The system calls of Linux that end a thread and a process.
const (
	sysExit      = 60
	sysExitGroup = 231
)
