// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"bytes"
	"errors"
	"testing"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/plugins/aarch64"
)

// pages is a target with two pages of executable memory, and nothing beside them.
type pages struct {
	hashed
	code map[uint64][]byte // by the page's address
}

const testPage = 4096

func (p *pages) Mapped(address uint64) (mapped, executable bool) {
	_, ok := p.code[address&^(testPage-1)]
	return ok, ok
}

func (p *pages) ReadMemory(_ locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	page, ok := p.code[address&^(testPage-1)]
	if !ok {
		return 0, target.ErrNoMemory
	}
	return copy(buf, page[address%testPage:]), nil
}

// TestATrampolineIsLookedUpAtItsOwnAddress returns to the first instruction of executable
// memory that is in no module: before a trampoline there is nothing to look at, and
// other code there was not returned to.
func TestATrampolineIsLookedUpAtItsOwnAddress(t *testing.T) {
	const trampoline, nothing = 0x10000, 0x20000
	sigreturn := []byte{0x68, 0x11, 0x80, 0xd2, 1, 0, 0, 0xd4} // mov x8, #139; svc #0
	nop := []byte{0x1f, 0x20, 0x03, 0xd5}
	state := &pages{hashed{thread: &trace.Thread{ID: "1", Arch: "aarch64"}}, map[uint64][]byte{
		trampoline: append(sigreturn, make([]byte, testPage-len(sigreturn))...),
		nothing:    bytes.Repeat(nop, testPage/len(nop)),
	}}
	p := newProcess(t, aarch64.New(), Options{MaxFrames: 64}, state)
	p.Bind()
	w := newWalker(p, p.stateOf(t.Context(), state.thread))
	f := w.frame(0)
	f.pc = trampoline
	row, err := w.findRow(t.Context(), f)
	if err != nil || !row.IsSignalFrame() {
		t.Errorf("the row %+v, error %v, expected that of a signal's frame", row, err)
	}
	f.pc = nothing
	var none *code.NoRow
	if row, err := w.findRow(t.Context(), f); !errors.As(err, &none) {
		t.Errorf("the row %+v, error %v, expected no row", row, err)
	}
}
