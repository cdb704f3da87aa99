// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// chained is an architecture with a back chain, which knows its calls.
type chained struct {
	sdk.Base
	description func() *sdk.Description
}

func (c chained) Describe(context.Context) (*sdk.Description, error) { return c.description(), nil }

func (c chained) ClassifyReturn(_ context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	d := c.description()
	order := binary.ByteOrder(binary.LittleEndian)
	if d.ByteOrder == sdk.BigEndian {
		order = binary.BigEndian
	}
	return req.Answer(func(at uint64, before []byte) (sdk.ReturnClass, uint64) {
		n := len(before)
		switch {
		case d.Name == "s390x" && n >= 6 && before[n-6] == 0xc0 && before[n-5] == 0xe5: // brasl %r14,...
			return sdk.AfterDirectCall, at - 6 + uint64(2*int64(int32(order.Uint32(before[n-4:]))))
		case d.Name == "s390x" && n >= 2 && before[n-2] == 0x0d && before[n-1]>>4 == 14: // basr %r14,...
			return sdk.AfterIndirectCall, 0
		case d.Name == "s390x" || n < 4:
			return sdk.NotAfterCall, 0
		}
		switch w := order.Uint32(before[n-4:]); {
		case w>>26 == 18 && w&3 == 1: // bl
			return sdk.AfterDirectCall, at - 4 + uint64(int64(int32(w<<6)>>6)&^3)
		case w == 0x4e800421: // bctrl
			return sdk.AfterIndirectCall, 0
		}
		return sdk.NotAfterCall, 0
	})
}

// bareS390x is s390x, which is big-endian; floating point numbers are in the high-order end of registers
// (ELF ABI s390x supplement, table 1.13).
func bareS390x() *sdk.Description {
	const r14, sp, f0, pswm, pswa, bias = 14, 15, 16, 64, 65, 160
	d := &sdk.Description{
		Name: "s390x", Version: "1", Recognises: []sdk.Recogniser{{ELFMachine: 22, OSABI: -1}},
		ByteOrder: sdk.BigEndian, AddressBits: 64,
		Registers: []sdk.RegisterRange{
			{First: 0, Count: 16, Bits: 64, Names: []string{"r%d"}},
			{First: f0, Count: 16, Bits: 64, Class: sdk.Float, Names: strings.Fields("f0 f2 f4 f6 f1 f3 f5 f7 f8 f10 f12 f14 f9 f11 f13 f15")},
			{First: pswm, Count: 1, Bits: 64, Names: []string{"pswm"}, Class: sdk.Flags},
			{First: pswa, Count: 1, Bits: 64, Names: []string{"pc"}, Class: sdk.ProgramCounter},
		},
		PC: pswa, SP: sp, FP: sdk.NoRegister, ReturnAddress: r14,
		CallDistance: 1, FloatFormats: []sdk.FloatFormat{{Bits: 128, Format: locexpr.FloatBinary128}},
		Entry: &cfi.Row{
			CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: sp, Offset: bias},
			Rules:         []cfi.RegisterRule{{Column: r14, Rule: cfi.Rule{Kind: cfi.SameValue}}},
			ReturnAddress: r14,
		},
	}
	for r := uint64(6); r < 16; r++ {
		d.DefaultRules = append(d.DefaultRules, cfi.RegisterRule{Column: r, Rule: cfi.Rule{Kind: cfi.SameValue}})
	}
	d.DefaultRules[sp-6].Rule = cfi.Rule{Kind: cfi.ValOffset, Offset: -bias}
	return d
}

// barePower is POWER in a byte order; functions save their return address above their CFA,
// and registers have floating point numbers as doubles (Power Architecture 64-Bit ELF V2
// ABI, 2.2.2 and 2.4).
func barePower(name string, order sdk.ByteOrder) func() *sdk.Description {
	return func() *sdk.Description {
		const r1, f0, lr, ctr, pc = 1, 32, 65, 66, 5000
		d := &sdk.Description{
			Name: name, Version: "1", Recognises: []sdk.Recogniser{{ELFMachine: 21, OSABI: -1}},
			ByteOrder: order, AddressBits: 64,
			Registers: []sdk.RegisterRange{
				{First: 0, Count: 32, Bits: 64, Names: []string{"r%d"}},
				{First: f0, Count: 32, Bits: 64, Class: sdk.Float, Names: []string{"f%d"}, Narrow: sdk.NarrowConverted},
				{First: lr, Count: 2, Bits: 64, Names: []string{"lr", "ctr"}},
				{First: pc, Count: 1, Bits: 64, Names: []string{"pc"}, Class: sdk.ProgramCounter},
			},
			PC: pc, SP: r1, FP: sdk.NoRegister, ReturnAddress: lr,
			CallDistance: 1, FloatFormats: []sdk.FloatFormat{{Bits: 128, Format: locexpr.FloatDoubleDouble}},
			Entry: &cfi.Row{
				CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: r1},
				Rules:         []cfi.RegisterRule{{Column: lr, Rule: cfi.Rule{Kind: cfi.SameValue}}},
				ReturnAddress: lr,
			},
			DefaultRules: []cfi.RegisterRule{{Column: r1, Rule: cfi.Rule{Kind: cfi.ValOffset}}},
		}
		for _, r := range []uint64{14, f0 + 14} {
			for n := r; n < r+18; n++ {
				d.DefaultRules = append(d.DefaultRules, cfi.RegisterRule{Column: n, Rule: cfi.Rule{Kind: cfi.SameValue}})
			}
		}
		d.DefaultRules = append(d.DefaultRules, cfi.RegisterRule{Column: lr, Rule: cfi.Rule{Kind: cfi.SameValue}})
		return d
	}
}

// withChain completes a description by the chain of its ABI: POWER's (Power Architecture 64-Bit
// ELF V2 ABI, 2.2.2.1 and 2.2.3.1) or that of s390x (ELF ABI s390x supplement, 1.2.2).
func withChain(description func() *sdk.Description) func() *sdk.Description {
	return func() *sdk.Description {
		d := description()
		expression := "breg1 0; deref"
		bias, slot := int64(0), int64(16)
		if d.Name == "s390x" {
			expression, bias, slot = "breg15 0; deref; plus_uconst 160", -160, 112
		}
		expr, err := locexpr.Parse(expression, locexpr.TextOptions{Dialect: locexpr.Canonical})
		if err != nil {
			panic(err)
		}
		d.MaxInstruction, d.StackAlign = 6, 8
		d.ReturnSlot, d.FramePointerIsABI = &sdk.ReturnSlot{Offset: slot}, true
		d.FramePointer = &cfi.Row{
			CFA: cfi.CFARule{Kind: cfi.CFAExpression, Expr: expr}, ReturnAddress: uint64(d.ReturnAddress),
			Rules: []cfi.RegisterRule{
				{Column: uint64(d.SP), Rule: cfi.Rule{Kind: cfi.ValOffset, Offset: bias}},
				{Column: uint64(d.ReturnAddress), Rule: cfi.Rule{Kind: cfi.Offset, Offset: bias + slot}},
			},
		}
		slices.SortFunc(d.FramePointer.Rules, func(a, b cfi.RegisterRule) int { return int(a.Column) - int(b.Column) })
		return d
	}
}

// chainStacks are the stacks of testdata/backchain, as its make.sh has them by gdb: the stack
// pointer of each frame.
var chainStacks = []struct {
	name        string
	first, ends string // the outermost function, and why nothing called it
	description func() *sdk.Description
	pointers    []uint64
}{
	{"s390x", "begin", "the chain of frames ends", bareS390x, []uint64{0x40008004e8, 0x40008004e8, 0x40008005b0, 0x40008006f0, 0x4000800790}},
	{"ppc64", "_start", "the program begins there", barePower("ppc64", sdk.BigEndian), []uint64{0x4000800520, 0x4000800520, 0x40008005d0, 0x40008006f0, 0x4000800760}},
	{"ppc64le", "begin", "the chain of frames ends", barePower("ppc64le", sdk.LittleEndian), []uint64{0x4000800640, 0x4000800640, 0x40008006a0, 0x4000800770, 0x4000800790}},
}

// walkChain walks the stack of a snapshot by an architecture.
func walkChain(t *testing.T, name string, arch sdk.Architecture) *trace.Stack {
	t.Helper()
	e, err := engine.New(engine.Options{Registers: true, Plugins: plugin.Options{InProcess: []sdk.Architecture{arch}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	state, err := e.Open("testdata/backchain/" + name + ".snapshot")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { state.Close() })
	return state.Walk(t.Context(), state.Threads()[0])
}

// register returns a register of a frame.
func register(f *trace.Frame, number uint32) (uint64, bool) {
	for _, r := range f.Details.Registers {
		if r.Number == uint64(number) {
			return r.Value, true
		}
	}
	return 0, false
}

// chainNames are the functions of testdata/backchain.
var chainNames = []string{"crash", "entry", "middle", "outer"}

// checkChain compares a stack with gdb's: its functions and their stack pointers.
func checkChain(t *testing.T, s *trace.Stack, sp uint32, first string, pointers []uint64) {
	t.Helper()
	names := append(slices.Clone(chainNames), first)
	if len(s.Frames) != len(pointers) {
		t.Fatalf("%d frames, expected %d: %v", len(s.Frames), len(pointers), s.Stopped)
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		if v, ok := register(f, sp); !ok || v != pointers[i] {
			t.Errorf("frame %d: the stack pointer is %#x %v, gdb has %#x", i, v, ok, pointers[i])
		}
		if len(f.Symbols) != 1 || f.Symbols[0].Function != names[i] {
			t.Errorf("frame %d: %+v, expected %s", i, f.Symbols, names[i])
		}
	}
}

// TestTheBackChainIsNoGuess walks functions without call frame information by the chain that
// their ABI prescribes.
func TestTheBackChainIsNoGuess(t *testing.T) {
	for _, m := range chainStacks {
		t.Run(m.name, func(t *testing.T) {
			description := withChain(m.description)
			s := walkChain(t, m.name, chained{description: description})
			checkChain(t, s, description().SP, m.first, m.pointers)
			for i := range s.Frames {
				f := &s.Frames[i]
				want := trace.ByBackChain
				switch i {
				case 0:
					want = trace.ByContext
				case 1:
					want = trace.ByCFI
				}
				if f.FoundBy != want || f.RestsOnGuess {
					t.Errorf("frame %d: found by %s, rests on a guess: %v; expected %s", i, f.FoundBy, f.RestsOnGuess, want)
				}
			}
			if s.Stopped.Reason != trace.StopOutermost || s.Stopped.Detail != m.ends {
				t.Errorf("stopped: %+v", s.Stopped)
			}
		})
	}
}

// TestAScanGivesTheStackPointerOfTheReturnSlot walks the same functions without the chain: the
// stack pointers follow from the place of the return addresses.
func TestAScanGivesTheStackPointerOfTheReturnSlot(t *testing.T) {
	for _, m := range chainStacks {
		t.Run(m.name, func(t *testing.T) {
			description := func() *sdk.Description {
				d := withChain(m.description)()
				d.FramePointer, d.FramePointerIsABI = nil, false
				return d
			}
			s := walkChain(t, m.name, chained{description: description})
			checkChain(t, s, description().SP, m.first, m.pointers)
			for i := 2; i < len(s.Frames); i++ {
				if s.Frames[i].FoundBy != trace.ByScan {
					t.Errorf("frame %d: found by %s", i, s.Frames[i].FoundBy)
				}
			}
			for i := 1; i+1 < len(s.Frames); i++ {
				want := m.pointers[i+1]
				if m.name == "s390x" {
					want += 160 // the CFA of its rows, too
				}
				if s.Frames[i].CFA != want {
					t.Errorf("frame %d: the CFA is %#x, expected %#x", i, s.Frames[i].CFA, want)
				}
			}
		})
	}
}

// TestARuleBehindACallGivesTheTOCPointer: crash destroyed r2 and left its value in r10. middle
// calls through a pointer, and loads r2 behind the call; entry does not.
func TestARuleBehindACallGivesTheTOCPointer(t *testing.T) {
	for _, m := range chainStacks[1:] {
		t.Run(m.name, func(t *testing.T) {
			description := func() *sdk.Description {
				d := withChain(m.description)()
				d.DefaultRules = slices.Insert(d.DefaultRules, 1, cfi.RegisterRule{Column: 2, Rule: cfi.Rule{Kind: cfi.SameValue}})
				code, mask, place := []byte{0xe8, 0x41, 0, 40}, []byte{0xff, 0xff, 0xff, 0xff}, "breg1 40"
				if m.name == "ppc64le" {
					code, place = []byte{24, 0, 0x41, 0xe8}, "breg1 24"
				}
				expr, err := locexpr.Parse(place, locexpr.TextOptions{Dialect: locexpr.Canonical})
				if err != nil {
					t.Fatal(err)
				}
				d.CallSites = []sdk.CallSite{{Code: code, Mask: mask, Rules: []cfi.RegisterRule{{Column: 2, Rule: cfi.Rule{Kind: cfi.Expression, Expr: expr}}}}}
				return d
			}
			s := walkChain(t, m.name, chained{description: description})
			checkChain(t, s, description().SP, m.first, m.pointers)
			toc, _ := register(&s.Frames[0], 10)
			for i, want := range []uint64{0x123, 0x123, toc, toc, toc} {
				if got, ok := register(&s.Frames[i], 2); !ok || got != want {
					t.Errorf("frame %d: r2 is %#x %v, expected %#x", i, got, ok, want)
				}
			}
		})
	}
}
