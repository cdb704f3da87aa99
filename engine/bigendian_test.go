// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// described is an architecture that is nothing but its description.
type described struct {
	sdk.Base
	description func() *sdk.Description
}

func (d described) Describe(context.Context) (*sdk.Description, error) { return d.description(), nil }

// s390x is big-endian; floating point numbers are in the high-order end of registers
// (ELF ABI s390x supplement, table 1.13).
func s390x() *sdk.Description {
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

// power is POWER in a byte order; functions save their return address above their CFA,
// and registers have floating point numbers as doubles (Power Architecture 64-Bit ELF V2
// ABI, 2.2.2 and 2.4).
func power(name string, order sdk.ByteOrder) func() *sdk.Description {
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

func TestValuesOfMachinesOfBothByteOrders(t *testing.T) {
	const inMemory = "{bits = {a = 5, b = 1000, c = -100, d = 588715939448, e = GREEN}, k = GREEN, f = -0.25, ld = LD, " +
		"z = 1 + 2i, zf = 3 + 4i, zl = 5.5 + 6.25i, s = {-7, -2, 3}, t = true, uc = 200 '\\310', wide = -5}"
	for _, m := range []struct {
		description func() *sdk.Description
		longDouble  string   // ppc64's libc has no other than 64 bits
		want        []string // as testdata/bigendian/make.sh has them by gdb
	}{
		{s390x, "-3.1", []string{"ch = 122 'z'", "ss = -2", "t = true", "x = 2.75", "k = GREEN", "q = 0x0", "cp = " + inMemory, "k = GREEN"}},
		{power("ppc64", sdk.BigEndian), "-3.1", []string{"ch = 122 'z'", "t = true", "f = 0.5", "x = 2.75", "k = GREEN", "q = 0x0", "cp = " + inMemory, "f = -0.25"}},
		{power("ppc64le", sdk.LittleEndian), "-3.10000000000000000000000000000002", []string{"ch = 122 'z'", "f = 0.5", "x = 2.75", "k = GREEN", "q = 0x0", "cp = " + inMemory, "f = -0.25"}},
	} {
		d := m.description()
		t.Run(d.Name, func(t *testing.T) {
			th := stackOf(t, "testdata/bigendian/"+d.Name+".snapshot", m.description)
			var got []string
			for _, f := range th.Frames[:2] {
				for _, list := range f.Details.Locals {
					for i := range list {
						if v := &list[i]; v.Status == trace.ValueOK {
							got = append(got, v.Name+" = "+value.Line(&v.Value, v.Language))
						} else if v.Status == trace.ValueFailed {
							t.Log(v.Name, v.Problem)
						}
					}
				}
			}
			for _, want := range m.want {
				if want = strings.Replace(want, "LD", m.longDouble, 1); !slices.Contains(got, want) {
					t.Errorf("%s is not among\n%s", want, strings.Join(got, "\n"))
				}
			}
		})
	}
}

// TestReturnAddressAboveTheCFAMovesNoStackPointer walks a function that saved its return
// address in its caller's frame: the caller's stack pointer is the CFA all the same, where
// the architecture does not say that functions are entered with words pushed.
func TestReturnAddressAboveTheCFAMovesNoStackPointer(t *testing.T) {
	for _, name := range []string{"ppc64", "ppc64le"} {
		order := sdk.BigEndian
		if name == "ppc64le" {
			order = sdk.LittleEndian
		}
		th := stackOf(t, "testdata/bigendian/"+name+".snapshot", power(name, order))
		held, start := th.Frames[1], th.Frames[2]
		sp := uint64(0)
		for _, r := range start.Details.Registers {
			if r.Number == 1 {
				sp = r.Value
			}
		}
		if !held.HasCFA || sp != held.CFA {
			t.Errorf("%s: the stack pointer of _start is %#x, expected the CFA of its callee, %#x", name, sp, held.CFA)
		}
	}
}

// stackOf is the stack of the one thread of a snapshot.
func stackOf(t *testing.T, path string, description func() *sdk.Description) *trace.Stack {
	t.Helper()
	limits := trace.DefaultValueLimits
	e, err := engine.New(engine.Options{Registers: true, Locals: &limits, Plugins: plugin.Options{InProcess: []sdk.Architecture{described{description: description}}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	state, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { state.Close() })
	stack := state.Walk(t.Context(), state.Threads()[0])
	if len(stack.Frames) < 3 {
		t.Fatalf("%d frames: %v", len(stack.Frames), stack.Stopped)
	}
	return stack
}
