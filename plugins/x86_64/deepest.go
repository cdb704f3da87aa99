package x86_64

import (
	"bytes"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// maxAround is how many bytes before and after a call are read for what marks the
// deepest frame.
const maxAround = 32

// deepestRow is the row of a call in the function that a thread begins in, which C
// libraries write in assembly language, without call frame information. Before the
// call it sets rbp to 0, which marks the deepest frame (psABI 3.4.1), and after it
// there is nothing to return to: the thread ends.
func deepestRow(r *sdk.CodeRange, at int) (row cfi.Row, ok bool) {
	if r.Exact {
		return row, false
	}
	end := resumeAfter(r.Code, at)
	if end < 0 || !endsThread(r.Code[end:]) || !clearsFramePointer(r.Code[max(0, end-maxAround):end]) {
		return row, false
	}
	return outermostRow(r.Start+uint64(at), r.Start+uint64(max(end, at+1))), true
}

// clearsFramePointer says whether rbp is set to 0 in code that runs on to its end.
func clearsFramePointer(code []byte) bool {
	for from := range code {
		if !bytes.HasPrefix(code[from:], []byte{0x31, 0xed}) { // xor %ebp,%ebp; with REX.W, %rbp
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

// endsThread says whether code runs on to the system call exit or exit_group, or to
// an instruction that a program may not execute.
func endsThread(code []byte) bool {
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
		case bytes.HasPrefix(rest, []byte{0x0f, 0x05}): // syscall
			return number == sysExit || number == sysExitGroup
		case bytes.HasPrefix(rest, []byte{0x31, 0xc0}): // xor %eax,%eax
			number = 0
		case rest[0] == 0xb0 && len(rest) > 1 && number == 0: // mov $imm8,%al
			number = int64(rest[1])
		case rest[0] == 0xb8 && len(rest) > 4: // mov $imm32,%eax
			number = int64(rest[1]) | int64(rest[2])<<8 | int64(rest[3])<<16 | int64(rest[4])<<24
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
