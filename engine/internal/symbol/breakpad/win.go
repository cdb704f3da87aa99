// SPDX-License-Identifier: Apache-2.0

package breakpad

import "github.com/unwindd/unwindd/engine/internal/symbol"

// The types of STACK WIN records for unwinding a frame ("STACK WIN records"): DIA's
// FrameTypeFrameData and FrameTypeFPO.
const (
	winFPO       = 0
	winFrameData = 4
)

// Win returns the STACK WIN record for an address; frame data is preferred to FPO.
func (f *File) Win(address uint64) (w symbol.FrameData, ok bool) {
	_ = f.guard(func() error {
		for _, list := range f.win {
			if r := find(list, address); r != nil {
				l := f.lineAt(r.offset())
				l.next()
				l.next()
				_, w, ok = parseWin(l)
				break
			}
		}
		return nil
	})
	return w, ok
}

// parseWin reads the fields after STACK WIN.
func parseWin(l fields) (kind uint64, w symbol.FrameData, ok bool) {
	kind, ok = l.hex()
	if !ok || kind > 0xff {
		return kind, w, false
	}
	w.IsFPO = kind == winFPO
	if w.Start, w.End, ok = l.span(); !ok {
		return kind, w, false
	}
	for _, size := range []*uint64{&w.Prologue, &w.Epilogue, &w.Parameters, &w.SavedRegisters, &w.Locals, &w.MaxStack} {
		if *size, ok = l.hex(); !ok {
			return kind, w, false
		}
	}
	hasProgram, ok := l.hex()
	if !ok {
		return kind, w, false
	}
	if hasProgram != 0 {
		w.Program = string(l.rest())
		return kind, w, w.Program != ""
	}
	allocates, ok := l.hex()
	w.AllocatesBasePointer = allocates != 0
	return kind, w, ok
}
