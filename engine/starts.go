package engine

import (
	"context"
	"debug/elf"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// This file finds the code where stacks begin, which nothing called.

// maxEntryCode bounds the code between a program's entry point and its first call.
const maxEntryCode = 64

// isAtEntryPoint says whether a PC is between the entry point of a program, or of a
// dynamic linker, and the end of its first call: the kernel begins there, and no
// code calls it. pc is an address of the object.
func (m *module) isAtEntryPoint(ctx context.Context, pc uint64, exact bool) bool {
	if m.Object == nil || !m.Object.IsELF() || m.isLaid() {
		return false
	}
	entry := m.Object.Entry()
	if typ := m.Object.Type(); entry == 0 || typ != elf.ET_EXEC && typ != elf.ET_DYN || pc-entry > maxEntryCode {
		return false
	}
	if pc == entry {
		return exact
	}
	last := pc
	if exact {
		last++
	}
	for at := entry + 1; at < last; at++ {
		if m.isAfterCall(ctx, at, entry) {
			return false
		}
	}
	return exact || m.isAfterCall(ctx, pc, entry)
}

// isAfterCall says whether a call of the object, which begins at an address or
// behind it, ends right before pc.
func (m *module) isAfterCall(ctx context.Context, pc, begins uint64) bool {
	from := pc - min(uint64(m.arch.desc.MaxInstruction), pc-begins)
	code := make([]byte, pc-from)
	if n, _ := m.readCodeAt(from, code); n < len(code) {
		if m.codeOfFile(code, from) < len(code) {
			return false
		}
	}
	answer, err := m.arch.arch.ClassifyReturn(ctx, &sdk.ClassifyReturnRequest{
		PCs: []uint64{pc}, Offsets: []uint32{0, uint32(len(code))}, Code: code,
	})
	return err == nil && (answer.Classes[0] == sdk.AfterDirectCall || answer.Classes[0] == sdk.AfterIndirectCall)
}

// enteredRow is the row of a function that begins at pc, where no call ends: the
// function is one that is returned to, such as the one below the first function of
// a context.
func (m *module) enteredRow(ctx context.Context, t *cfi.Table, pc uint64) (*cfi.Row, *cfi.FDE) {
	fde, err := t.FDE(pc)
	if err != nil || fde.Start != pc || m.isAfterCall(ctx, pc, pc-min(pc, uint64(m.arch.desc.MaxInstruction))) {
		return nil, nil
	}
	var row cfi.Row
	if err := fde.RowAt(pc, &row); err != nil || row.CFA.Kind == cfi.NoCFA {
		return nil, nil
	}
	return &row, fde
}
