// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// placedEntry is an architecture whose calls push their return address onto a stack in a space
// of its own.
type placedEntry struct {
	sdk.Base
	description sdk.Description
}

func (p *placedEntry) Describe(context.Context) (*sdk.Description, error) { return &p.description, nil }

func (p *placedEntry) ClassifyReturn(_ context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	return req.Answer(func(uint64, []byte) (sdk.ReturnClass, uint64) { return sdk.AfterIndirectCall, 0 })
}

const (
	stackSpace            = 5
	spacedCode, spacedTop = 0x10000, 0x100
)

// spaced is a target with a page of code, and a stack in a space.
type spaced struct{ pages }

func (s *spaced) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if space != stackSpace {
		return s.pages.ReadMemory(space, address, buf)
	}
	if address < spacedTop || address+uint64(len(buf)) > spacedTop+8 {
		return 0, target.ErrNoMemory
	}
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], spacedCode+0x20)
	return copy(buf, word[address-spacedTop:]), nil
}

// TestEntryMayHaveItsReturnAddressInASpace: the caller of a call through a bad pointer is found by
// the row of Entry, whose CFA is in another space, or the result of an expression.
func TestEntryMayHaveItsReturnAddressInASpace(t *testing.T) {
	const sp, pc = 1, 2
	expr, err := locexpr.Parse("breg1 8; lit5; LLVM_form_aspace_address", locexpr.TextOptions{Dialect: locexpr.Canonical})
	if err != nil {
		t.Fatal(err)
	}
	for name, cfa := range map[string]cfi.CFARule{
		"space":      {Kind: cfi.CFARegister, Register: sp, Offset: 8, Space: stackSpace},
		"expression": {Kind: cfi.CFAExpression, Expr: expr},
	} {
		arch := &placedEntry{description: sdk.Description{
			Name: "spaced", Version: "1", Recognises: []sdk.Recogniser{{ELFMachine: 0xfed0, OSABI: -1}}, AddressBits: 64,
			Registers: []sdk.RegisterRange{{First: 1, Count: 2, Names: []string{"sp", "pc"}, Bits: 64}},
			PC:        pc, SP: sp, FP: sdk.NoRegister, ReturnAddress: pc, CallDistance: 1, MaxInstruction: 4,
			AddressSpaces: []sdk.AddressSpace{{Number: stackSpace, Name: "stack", Bits: 64}},
			DefaultRules:  []cfi.RegisterRule{{Column: sp, Rule: cfi.Rule{Kind: cfi.ValOffset}}},
			Entry: &cfi.Row{CFA: cfa, ReturnAddress: pc, Rules: []cfi.RegisterRule{
				{Column: sp, Rule: cfi.Rule{Kind: cfi.Undefined}},
				{Column: pc, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}},
			}},
		}}
		if err := arch.description.Validate(); err != nil {
			t.Fatal(err)
		}
		state := &spaced{pages{hashed{thread: &trace.Thread{ID: "1", Arch: "spaced"}}, map[uint64][]byte{spacedCode: make([]byte, testPage)}}}
		registers := sdk.Registers{}
		registers.Set(sp, binary.LittleEndian.AppendUint64(nil, spacedTop))
		registers.Set(pc, binary.LittleEndian.AppendUint64(nil, 0x99)) // no code
		state.set(registers)
		p := newProcess(t, arch, Options{MaxFrames: 8}, state)
		p.Bind()
		stack := p.Walk(t.Context(), state.thread)
		if len(stack.Frames) != 2 || stack.Frames[1].PC != spacedCode+0x20 || stack.Frames[0].CFASpace != stackSpace {
			t.Errorf("%s: %+v, expected a caller at %#x, and a CFA in space %d", name, stack.Frames, spacedCode+0x20, stackSpace)
		}
	}
}
