// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/dw"
	"github.com/unwindd/unwindd/plugins/aarch64"
)

// wide is a target with code up to addresses of 52 bits.
type wide struct{ hashed }

func (w *wide) Mapped(address uint64) (mapped, executable bool) {
	return address < 1<<52, address < 1<<52
}

// TestSignaturesAreTakenAwayAsRowsSay gives return addresses to rows that say in each way
// whether they are signed.
func TestSignaturesAreTakenAwayAsRowsSay(t *testing.T) {
	const signState, mask = 34, uint64(0x7f) << 48
	const far, signed = uint64(8)<<48 | 0x1000, uint64(0x5a)<<48 | 0x1000
	state := &wide{hashed{thread: &trace.Thread{ID: "1", Arch: "aarch64"}}}
	p := newProcess(t, aarch64.New(), Options{MaxFrames: 64}, state)
	p.Bind()
	w := newWalker(p, p.stateOf(t.Context(), state.thread))
	w.thread.binding.ReturnAddressMask = mask
	expression := func(op byte) *cfi.Row {
		return &cfi.Row{CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 31}, ReturnAddress: 30,
			Rules: []cfi.RegisterRule{{Column: signState, Rule: cfi.Rule{Kind: cfi.ValExpression, Expr: []byte{op}}}}}
	}
	plain := func(windowSave bool) *cfi.Row {
		return &cfi.Row{CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 31}, ReturnAddress: 30, WindowSave: windowSave}
	}
	for _, c := range []struct {
		name     string
		row      *cfi.Row
		found    trace.FoundBy
		pc, want uint64
	}{
		{"no bit of a signature", plain(false), trace.ByCFI, 0x1000, 0x1000},
		{"signed", plain(true), trace.ByCFI, signed, 0x1000},
		{"signed, where there is code as it stands", plain(true), trace.ByCFI, far, 0x1000},
		{"not signed", plain(false), trace.ByCFI, far, far},
		{"not signed, by the code", plain(false), trace.ByRules, far, far},
		{"signed without a word", plain(false), trace.ByCFI, signed, 0x1000},
		{"a source that says nothing", plain(false), trace.ByBreakpad, far, 0x1000},
		{"signed by an expression", expression(dw.OpLit0 + 1), trace.ByCFI, far, 0x1000},
		{"not signed by an expression", expression(dw.OpLit0), trace.ByCFI, far, far},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := &code.Row{Rules: c.row, By: c.found, Defaults: w.machine.Defaults}
			source.Compile(w.machine.Machine)
			f := w.frame(0)
			f.source, f.hasCFA, f.cfa = source, true, 0x2000
			if !source.IsCompiled {
				f.settle(0)
				f.evaluateRules(t.Context())
			}
			if pc := w.withoutSignature(t.Context(), f, source, c.pc); pc != c.want {
				t.Errorf("%#x becomes %#x, expected %#x", c.pc, pc, c.want)
			}
		})
	}
}

// TestSignaturesOfEitherHalf: the bit above the lowest ones of a mask fills all of them; a mask that reaches the highest bit
// has none, and is cleared.
func TestSignaturesOfEitherHalf(t *testing.T) {
	const linux, macOS, windows = uint64(0x7f) << 48, uint64(0xff7f800000000000), ^uint64(1<<47 - 1)
	for _, c := range []struct{ mask, address, want uint64 }{
		{0, 0xffff_0000_1234_5678, 0xffff_0000_1234_5678},
		{linux, 0x005a_8000_1234_5678, 0x0000_8000_1234_5678},
		{linux, 0xff85_8000_1234_5678, 0xffff_8000_1234_5678},
		{macOS, 0x5a2a_8000_1234_5678, 0x0000_0000_1234_5678},
		{macOS, 0x5aaa_fe00_0712_3450, 0xffff_fe00_0712_3450},
		{macOS, 0xffff_fe00_0712_3450, 0xffff_fe00_0712_3450},
		{windows, 0xfffa_8000_1234_5678, 0x0000_0000_1234_5678},
	} {
		if got := stripped(c.address, c.mask); got != c.want {
			t.Errorf("%#x without the mask %#x is %#x, expected %#x", c.address, c.mask, got, c.want)
		}
	}
}
