// SPDX-License-Identifier: Apache-2.0

package riscv64

import (
	"bytes"
	"sync"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/codeflow"
)

// trampoline is the code that a signal handler returns to: li a7, 139; ecall. The number
// is the system call rt_sigreturn. The code is in the vDSO.
var trampoline = []byte{0x93, 0x08, 0xb0, 0x08, 0x73, 0x00, 0x00, 0x00}

// The kernel puts a struct rt_sigframe on the stack (arch/riscv/kernel/signal.c of
// Linux): a siginfo of 128 bytes and a ucontext, whose uc_mcontext begins at byte 176
// with the PC, x1 to x31 and then f0 to f31.
const (
	savedPC    = 128 + 176
	savedFloat = savedPC + 8*32
)

// trampolineRow is the row of a signal trampoline at the PC. Its address is a handler's
// return address although nothing called: a PC that is not exact is the byte before it,
// and the row then begins there. A thread that is in the system call may stand behind
// the last instruction.
func trampolineRow(r *sdk.CodeRange) (cfi.Row, bool) {
	offset := int(r.PC - r.Start)
	for start := max(0, offset-len(trampoline)); start <= offset+1 && start < len(r.Code); start++ {
		end := start + len(trampoline)
		if !bytes.HasPrefix(r.Code[start:], trampoline) || r.Exact && start > offset || !r.Exact && end <= offset {
			continue
		}
		row := signalRow()
		row.Start, row.End = r.Start+uint64(min(start, offset)), r.Start+uint64(max(end, offset+1))
		return row, true
	}
	return cfi.Row{}, false
}

// signalRow finds the interrupted frame by the registers that the kernel saved. The
// interrupted function may be about to execute its first instruction, with its own return
// address in ra: so its PC has a column of its own.
var signalRow = sync.OnceValue(func() cfi.Row {
	var saved []codeflow.SavedRegister
	for r := ra; r < 32; r++ {
		saved = append(saved, codeflow.SavedRegister{Register: r, Offset: savedPC + 8*int64(r)})
	}
	for r := f0; r < f0+32; r++ {
		saved = append(saved, codeflow.SavedRegister{Register: r, Offset: savedFloat + 8*int64(r-f0)})
	}
	return codeflow.SignalRow(sp, pc, append(saved, codeflow.SavedRegister{Register: pc, Offset: savedPC}))
})
