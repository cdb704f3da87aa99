// SPDX-License-Identifier: Apache-2.0

package sdk_test

import (
	"context"
	"fmt"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// tiny is an architecture with four registers. It keeps a frame pointer: the
// caller's is at fp, and the return address above it. Embedding Base answers
// all calls but Describe.
type tiny struct{ sdk.Base }

func (tiny) Describe(context.Context) (*sdk.Description, error) {
	const a, fp, sp, pc = 0, 1, 2, 3
	saved := func(column uint64, offset int64) cfi.RegisterRule {
		return cfi.RegisterRule{Column: column, Rule: cfi.Rule{Kind: cfi.Offset, Offset: offset}}
	}
	return &sdk.Description{
		Name: "tiny", Version: "1.0",
		Recognises:  []sdk.Recogniser{{ELFMachine: 0xfe00, OSABI: -1}},
		AddressBits: 32,
		Registers: []sdk.RegisterRange{
			{First: a, Count: 3, Names: []string{"a", "fp", "sp"}, Bits: 32},
			{First: pc, Count: 1, Names: []string{"pc"}, Bits: 32, Class: sdk.ProgramCounter},
		},
		RegisterSets: []sdk.RegisterSet{{Source: sdk.CoreNote, Owner: "CORE", Type: 1, Fields: []sdk.RegisterField{
			{Offset: 0, Size: 4, Register: a}, {Offset: 4, Size: 4, Register: fp},
			{Offset: 8, Size: 4, Register: sp}, {Offset: 12, Size: 4, Register: pc},
		}}},
		PC: pc, SP: sp, FP: fp, ReturnAddress: pc,
		DefaultRules: []cfi.RegisterRule{
			{Column: fp, Rule: cfi.Rule{Kind: cfi.SameValue}},
			{Column: sp, Rule: cfi.Rule{Kind: cfi.ValOffset}}, // the CFA
		},
		FramePointer: &cfi.Row{
			CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: fp, Offset: 8},
			Rules:         []cfi.RegisterRule{saved(fp, -8), saved(pc, -4)},
			ReturnAddress: pc,
		},
		Entry: &cfi.Row{ // a call pushes the return address
			CFA:           cfi.CFARule{Kind: cfi.CFARegister, Register: sp, Offset: 4},
			Rules:         []cfi.RegisterRule{saved(pc, -4)},
			ReturnAddress: pc,
		},
		CallDistance: 1, MaxInstruction: 4, StackAlign: 4,
	}, nil
}

// A plugin is a Describe method and a main function, which is nothing but
//
//	func main() { sdk.Serve(tiny{}) }
//
// built as unwindd-arch-tiny and put into a folder that --plugin-dir names.
// Here it is called in this process, as the engine would call it.
func ExampleArchitecture() {
	ctx := context.Background()
	var arch sdk.Architecture = tiny{}

	description, err := arch.Describe(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := description.Validate(); err != nil {
		fmt.Println(err)
		return
	}

	// The record of a note becomes registers, and those a bound thread.
	record := []byte{1, 0, 0, 0, 0xf0, 0xff, 0, 0, 0xe0, 0xff, 0, 0, 0x34, 0x12, 0, 0}
	thread := sdk.ThreadState{Thread: 1}
	description.RegisterSet(sdk.CoreNote, "CORE", 1).Decode(record, &thread.Registers)
	bound, err := sdk.BindThreads(ctx, arch, nil, &sdk.BindThreadsRequest{Threads: []sdk.ThreadState{thread}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: pc %#x, %d lane\n", description.Name, bound.Threads[0].PC, bound.Threads[0].Lanes)
	// Output: tiny: pc 0x1234, 1 lane
}
