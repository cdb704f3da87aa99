// SPDX-License-Identifier: Apache-2.0

package breakpad

// The types of STACK WIN records for unwinding a frame ("STACK WIN records"): DIA's
// FrameTypeFrameData and FrameTypeFPO.
const (
	WinFPO       = 0
	WinFrameData = 4
)

// Win is a STACK WIN record of code from Start to End: the layout of frames of 32-bit x86.
// Sizes are in bytes. This package does not unwind frames by it.
type Win struct {
	Type                                         int
	Start, End                                   uint64
	Prologue, Epilogue                           uint64
	Parameters, SavedRegisters, Locals, MaxStack uint64
	// Program computes the caller's registers; "" where the record has none.
	Program string
	// AllocatesBasePointer is set where there is no program and the function uses ebp as a
	// general register.
	AllocatesBasePointer bool
}

// Win returns the STACK WIN record for an address; frame data is preferred to FPO.
func (f *File) Win(address uint64) (w Win, ok bool) {
	_ = f.guard(func() error {
		for _, list := range f.win {
			if r := find(list, address); r != nil {
				l := f.lineAt(r.offset())
				l.next()
				l.next()
				w, ok = parseWin(l)
				break
			}
		}
		return nil
	})
	return w, ok
}

// parseWin reads the fields after STACK WIN.
func parseWin(l fields) (w Win, ok bool) {
	kind, ok := l.hex()
	if !ok || kind > 0xff {
		return w, false
	}
	w.Type = int(kind)
	if w.Start, w.End, ok = l.span(); !ok {
		return w, false
	}
	for _, size := range []*uint64{&w.Prologue, &w.Epilogue, &w.Parameters, &w.SavedRegisters, &w.Locals, &w.MaxStack} {
		if *size, ok = l.hex(); !ok {
			return w, false
		}
	}
	hasProgram, ok := l.hex()
	if !ok {
		return w, false
	}
	if hasProgram != 0 {
		w.Program = string(l.rest())
		return w, w.Program != ""
	}
	allocates, ok := l.hex()
	w.AllocatesBasePointer = allocates != 0
	return w, ok
}
