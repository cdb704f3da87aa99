// SPDX-License-Identifier: Apache-2.0

package x86code

import (
	"slices"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// SignalCode is the code that a signal handler returns to, in parts that have a row each.
type SignalCode []SignalPart

// SignalPart is a part of that code.
type SignalPart struct {
	Code string
	Row  func() cfi.Row // without its addresses
}

// text is the whole code.
func (c SignalCode) text() (code string) {
	for i := range c {
		code += c[i].Code
	}
	return code
}

// trampolineRows returns the rows of a signal trampoline at or right after an
// offset of the code. The handler has popped the trampoline's address, so the
// stack pointer is where the kernel put the handler's arguments or the ucontext.
//
// The address of a trampoline is a handler's return address, though nothing called: where
// PC is not exact it is the byte before the trampoline, and the row then begins there, as
// in C libraries. A thread that is in the kernel, in the system call, stands after its
// last byte, in the padding before the next function.
func (m *Mode) trampolineRows(r *sdk.CodeRange, offset int) []cfi.Row {
	start, first := -1, offset
	var found SignalCode
	for n, signal := range m.Signals {
		code := m.signalTexts[n]
		for i := max(0, offset-len(code)); i <= offset; i++ {
			if HasPrefix(r.Code[i:], code) && (i+len(code) > offset || r.Exact && isFill(r.Code[offset:])) {
				start, first, found = i, i, signal
			}
		}
		if start < 0 && !r.Exact && HasPrefix(r.Code[offset+1:], code) && m.ResumeAfter(r.Code[:offset+1], offset) < 0 {
			start, first, found = offset+1, offset, signal
		}
	}
	if start < 0 {
		return nil
	}
	var rows []cfi.Row
	for i := range found {
		start += len(found[i].Code)
		end := start
		if i == len(found)-1 && r.Exact && isFill(r.Code[end:]) {
			end++
		}
		row := found[i].Row()
		row.Start, row.End = r.Start+uint64(first), r.Start+uint64(end)
		rows, first = append(rows, row), end
	}
	return rows
}

// fills are the bytes that assemblers and linkers put between functions: nop in its
// variants, int3, and int $3, which Go's assembler writes.
var fills = []string{bytesNop, bytesNop2, bytesNopl, bytesNopw, bytesCsNopw, bytesDataCs, bytesInt3, bytesIntImm}

func isFill(code []byte) bool {
	return slices.ContainsFunc(fills, func(fill string) bool { return HasPrefix(code, fill) })
}
