// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// The toy machine: sp 0, fp 1, lr 2, pc 3, missing 4. Its code is in no module and is one
// instruction a byte; rows come from FrameRules.
const (
	toySP = iota
	toyFP
	toyLR
	toyPC
	toyMissing // no thread has it
)

type toy struct {
	sdk.Base
	rows     []cfi.Row
	fail     map[uint64]error // FrameRules of a PC
	calls    map[uint64]bool  // addresses after a call
	badBind  int              // how many times BindThreads fails
	fp       *cfi.Row
	bindings int
}

func (*toy) Describe(context.Context) (*sdk.Description, error) { return toyDescription(nil), nil }

func toyDescription(fp *cfi.Row) *sdk.Description {
	return &sdk.Description{
		Name: "toy", Version: "1", AddressBits: 64,
		Recognises: []sdk.Recogniser{{ELFMachine: 0x1234, OSABI: -1}},
		Registers: []sdk.RegisterRange{
			{First: toySP, Count: 1, Names: []string{"sp"}, Bits: 64},
			{First: toyFP, Count: 1, Names: []string{"fp"}, Bits: 64},
			{First: toyLR, Count: 1, Names: []string{"lr"}, Bits: 64},
			{First: toyPC, Count: 1, Names: []string{"pc"}, Bits: 64, Class: sdk.ProgramCounter},
			{First: toyMissing, Count: 1, Names: []string{"missing"}, Bits: 64},
		},
		PC: toyPC, SP: toySP, FP: toyFP, ReturnAddress: toyPC,
		AddressSpaces: []sdk.AddressSpace{{Number: 0, Name: "global", Bits: 64}},
		DefaultRules: []cfi.RegisterRule{
			{Column: toySP, Rule: cfi.Rule{Kind: cfi.ValOffset}},
			{Column: toyFP, Rule: cfi.Rule{Kind: cfi.SameValue}},
		},
		Entry: &cfi.Row{ // a call pushes its return address
			CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: toySP, Offset: 8},
			Rules: []cfi.RegisterRule{
				{Column: toySP, Rule: cfi.Rule{Kind: cfi.ValOffset}}, {Column: toyPC, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}},
			},
			ReturnAddress: toyPC,
		},
		FramePointer: fp, CallDistance: 1, MaxInstruction: 1, StackAlign: 8,
	}
}

func (a *toy) BindThreads(_ context.Context, _ sdk.Engine, req *sdk.BindThreadsRequest) (*sdk.BindThreadsAnswer, error) {
	a.bindings++
	if a.bindings <= a.badBind {
		return nil, errors.New("not now")
	}
	return sdk.DefaultBindThreads(toyDescription(nil), req), nil
}

// rowAt is the row among some that holds at an address; nil where none does.
func rowAt(rows []cfi.Row, pc uint64) *cfi.Row {
	for i := range rows {
		if r := &rows[i]; pc >= r.Start && pc < r.End && r.CFA.Kind != cfi.NoCFA {
			return r
		}
	}
	return nil
}

func (a *toy) FrameRules(_ context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	answer := &sdk.FrameRulesAnswer{}
	for _, f := range req.Functions {
		if err := a.fail[f.PC]; err != nil {
			return nil, err
		}
		rules := sdk.FrameRules{Reason: "the code is of no known shape"}
		if row := rowAt(a.rows, f.PC); row != nil {
			rules = sdk.FrameRules{Rows: []cfi.Row{*row}}
		}
		answer.Functions = append(answer.Functions, rules)
	}
	return answer, nil
}

func (a *toy) ClassifyReturn(_ context.Context, req *sdk.ClassifyReturnRequest) (*sdk.ClassifyReturnAnswer, error) {
	answer := &sdk.ClassifyReturnAnswer{Classes: make([]sdk.ReturnClass, len(req.PCs)), Targets: make([]uint64, len(req.PCs))}
	for i, pc := range req.PCs {
		answer.Classes[i] = sdk.NotAfterCall
		if a.calls[pc] {
			answer.Classes[i] = sdk.AfterIndirectCall
		}
	}
	return answer, nil
}

// state is a target of the toy machine: code at 0x1000, a stack at 0x8000.
type state struct {
	threads []*trace.Thread
	stack   []byte
}

const (
	codeStart, codeEnd = 0x1000, 0x3000
	stackStart         = 0x8000
)

func newState(words ...uint64) *state {
	s := &state{}
	for _, w := range words {
		s.stack = binary.LittleEndian.AppendUint64(s.stack, w)
	}
	return s
}

func (s *state) thread(pc, sp, fp, lr uint64) *state {
	th := &trace.Thread{Handle: uint64(len(s.threads)), ID: fmt.Sprint(len(s.threads) + 1), Arch: "toy"}
	for n, v := range map[uint32]uint64{toyPC: pc, toySP: sp, toyFP: fp, toyLR: lr} {
		th.Registers.Set(n, binary.LittleEndian.AppendUint64(nil, v))
	}
	s.threads = append(s.threads, th)
	return s
}

func (s *state) Info() trace.Target        { return trace.Target{Kind: "toy"} }
func (s *state) Modules() []*target.Module { return nil }
func (s *state) Threads() []*trace.Thread  { return s.threads }
func (s *state) Close() error              { return nil }

func (s *state) Mapped(address uint64) (mapped, executable bool) {
	code := address >= codeStart && address < codeEnd
	return code || address-stackStart < uint64(len(s.stack)), code
}

func (s *state) ReadMemory(_ locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	n := 0
	for i := range buf {
		switch at := address + uint64(i); {
		case at >= codeStart && at < codeEnd:
			buf[i] = 0x90
		case at-stackStart < uint64(len(s.stack)):
			buf[i] = s.stack[at-stackStart]
		default:
			return n, fmt.Errorf("%#x: %w", at, target.ErrNoMemory)
		}
		n++
	}
	return n, nil
}

// row is a row of a function: CFA = sp+size, return address at CFA-8.
func row(start, end uint64, size int64, more ...cfi.RegisterRule) cfi.Row {
	rules := append(more, cfi.RegisterRule{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}})
	return cfi.Row{
		Start: start, End: end, ReturnAddress: toyPC, Rules: rules,
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: toySP, Offset: size},
	}
}

// walkToy walks the first thread and says what it found in a few words.
func walkToy(t *testing.T, a *toy, s *state, options Options) []string {
	t.Helper()
	options.Plugins = plugin.Options{InProcess: []sdk.Architecture{described{a}}}
	e, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	tt := e.Attach(s)
	stack := tt.Walk(context.Background(), s.threads[0])
	var out []string
	for _, f := range stack.Frames {
		out = append(out, fmt.Sprintf("%#x %s", f.PC, f.FoundBy))
	}
	t.Logf("stopped: %s: %s", stack.Stopped.Reason, stack.Stopped.Detail)
	return append(out, string(stack.Stopped.Reason))
}

// described gives a toy its frame-pointer rule.
type described struct{ *toy }

func (d described) Describe(context.Context) (*sdk.Description, error) {
	return toyDescription(d.fp), nil
}

func TestWalk(t *testing.T) {
	undefined := cfi.RegisterRule{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Undefined}}
	outermost := cfi.Row{
		Start: 0x1200, End: 0x1300, ReturnAddress: toyPC, Rules: []cfi.RegisterRule{undefined},
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: toySP, Offset: 8},
	}
	leaf := cfi.Row{ // return address in lr
		Start: 0x1000, End: 0x1100, ReturnAddress: toyPC,
		CFA:   cfi.CFARule{Kind: cfi.CFARegister, Register: toySP},
		Rules: []cfi.RegisterRule{{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Register, Register: toyLR}}},
	}
	framePointer := cfi.Row{
		Start: 0, End: ^uint64(0), ReturnAddress: toyPC,
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: toyFP, Offset: 16},
		Rules: []cfi.RegisterRule{
			{Column: toyFP, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -16}},
			{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}},
		},
	}
	for _, c := range []struct {
		name    string
		toy     toy
		state   *state
		options Options
		want    []string
	}{
		{"an undefined return address is outermost",
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 16), outermost}},
			newState(1, 0x1210, 2).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "0x1210 rules", "outermost"}},
		{"a return address of 0 in code that was read",
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 16)}},
			newState(1, 0).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "no-row"}},
		{"a return address that 0 was written over, beside a frame record",
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 16), outermost}, calls: map[uint64]bool{0x1210: true}, fp: &framePointer},
			newState(1, 0, 5, stackStart+64, 0x1210, 7).thread(0x1004, stackStart, stackStart+24, 0), Options{},
			[]string{"0x1004 context", "0x0 rules", "0x1210 frame-pointer", "outermost"}},
		{"a return address of 0 in a register",
			toy{rows: []cfi.Row{leaf}},
			newState(1).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "outermost"}},
		{"a return address that is no code, beside a frame record",
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 16), outermost}, calls: map[uint64]bool{0x1210: true}, fp: &framePointer},
			newState(1, 0x66, 5, stackStart+64, 0x1210, 7).thread(0x1004, stackStart, stackStart+24, 0), Options{},
			[]string{"0x1004 context", "0x1210 frame-pointer", "outermost"}},
		{"frame records that lead down the stack",
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 16)}, calls: map[uint64]bool{0x1210: true}, fp: &framePointer},
			newState(1, 0x66, 5, stackStart+64, 0x1210, 7).thread(0x1004, stackStart, stackStart, 0), Options{},
			[]string{"0x1004 context", "no-module"}},
		{"a leaf's return address is in a register, and frames may share a CFA",
			toy{rows: []cfi.Row{leaf, row(0x1100, 0x1200, 8), outermost}},
			newState(0x1210).thread(0x1004, stackStart, 0, 0x1110), Options{},
			[]string{"0x1004 context", "0x1110 rules", "0x1210 rules", "outermost"}},
		{"a return address is looked up inside its call",
			// 0x1100 belongs to the function that ends there.
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 8), outermost}},
			newState(0x1100, 0x1210).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "0x1100 rules", "0x1210 rules", "outermost"}},
		{"a signal's frame makes the next PC exact",
			toy{rows: []cfi.Row{func() cfi.Row { r := row(0x1000, 0x1100, 8); r.SignalFrame = true; return r }(), outermost}},
			newState(0x1200).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "0x1200 rules", "outermost"}},
		{"a walk that goes round is cut",
			toy{rows: []cfi.Row{
				// fp holds the address of the next record: two of them, in a ring.
				{Start: 0x1000, End: 0x1100, ReturnAddress: toyPC,
					CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: toyFP, Offset: 0},
					Rules: []cfi.RegisterRule{
						{Column: toyFP, Rule: cfi.Rule{Kind: cfi.Offset}},
						{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Offset, Offset: 8}},
					}},
			}},
			newState(stackStart+16, 0x1010, stackStart, 0x1020).thread(0x1004, stackStart, stackStart, 0), Options{},
			[]string{"0x1004 context", "0x1010 rules", "0x1020 rules", "no-progress"}},
		{"frames are limited",
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 8)}},
			newState(0x1001, 0x1002, 0x1003, 0x1004, 0x1005).thread(0x1004, stackStart, 0, 0), Options{MaxFrames: 2},
			[]string{"0x1004 context", "0x1001 rules", "no-memory"}},
		{"memory that is not there ends the stack",
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 24)}},
			newState(1, 2).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "no-memory"}},
		{"a plugin that fails ends the stack and loses nothing",
			toy{rows: []cfi.Row{row(0x1000, 0x1100, 8)}, fail: map[uint64]error{0x1210 - 1: errors.New("out of order")}},
			newState(0x1210, 3).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "0x1210 rules", "plugin-failed"}},
		{"a thread whose batch failed is asked about again",
			toy{rows: []cfi.Row{outermost}, badBind: 1},
			newState(1).thread(0x1204, stackStart, 0, 0), Options{},
			[]string{"0x1204 context", "outermost"}},
		{"a thread that the plugin fails keeps its top frame",
			toy{rows: []cfi.Row{outermost}, badBind: 9},
			newState(1).thread(0x1204, stackStart, 0, 0), Options{},
			[]string{"0x1204 context", "plugin-failed"}},
		{"call-site rules hold in every frame but the top one",
			// The middle function keeps its fp at CFA-16 during calls; its own row
			// needs that fp for the return address.
			toy{rows: []cfi.Row{
				row(0x1000, 0x1100, 8, cfi.RegisterRule{Column: toyFP, Rule: cfi.Rule{Kind: cfi.Undefined}}),
				func() cfi.Row {
					r := row(0x1100, 0x1200, 24)
					r.Rules = []cfi.RegisterRule{{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Register, Register: toyFP}}}
					r.CallSite = []cfi.RegisterRule{{Column: toyFP, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -16}}}
					return r
				}(), outermost}},
			newState(0x1110, 7, 0x1210, 9).thread(0x1004, stackStart, 0x5555, 0), Options{},
			[]string{"0x1004 context", "0x1110 rules", "0x1210 rules", "outermost"}},
		{"a CFA that counts from a register saved by a frame further in",
			// The fp of the outermost function was saved by the innermost one.
			toy{rows: []cfi.Row{
				row(0x1000, 0x1100, 16, cfi.RegisterRule{Column: toyFP, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -16}}),
				row(0x1100, 0x1180, 8),
				{Start: 0x1180, End: 0x1200, ReturnAddress: toyPC,
					CFA:   cfi.CFARule{Kind: cfi.CFARegister, Register: toyFP, Offset: 8},
					Rules: []cfi.RegisterRule{{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}}},
				outermost}},
			newState(stackStart+40, 0x1110, 0x1190, 1, 2, 0x1210).thread(0x1004, stackStart, 0x5555, 0), Options{},
			[]string{"0x1004 context", "0x1110 rules", "0x1190 rules", "0x1210 rules", "outermost"}},
		{"a CFA that counts from a register that calls do not preserve",
			toy{rows: []cfi.Row{
				row(0x1000, 0x1100, 8, cfi.RegisterRule{Column: toyLR, Rule: cfi.Rule{Kind: cfi.SameValue}}),
				{Start: 0x1100, End: 0x1200, ReturnAddress: toyPC,
					CFA:   cfi.CFARule{Kind: cfi.CFARegister, Register: toyLR, Offset: 8},
					Rules: []cfi.RegisterRule{{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Offset, Offset: -8}}}},
				outermost}},
			newState(0x1110, 1, 2, 0x1210).thread(0x1004, stackStart, 0, stackStart+24), Options{},
			[]string{"0x1004 context", "0x1110 rules", "0x1210 rules", "outermost"}},
		{"a return address in a register that the target does not have",
			toy{rows: []cfi.Row{func() cfi.Row {
				r := row(0x1000, 0x1100, 8)
				r.Rules = []cfi.RegisterRule{{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Register, Register: toyMissing}}}
				return r
			}()}},
			newState(0x1110).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "no-row"}},
		{"a call through a bad pointer",
			toy{rows: []cfi.Row{outermost}, calls: map[uint64]bool{0x1210: true}},
			newState(0x1210, 1).thread(0x66, stackStart, 0, 0), Options{},
			[]string{"0x66 context", "0x1210 scan", "outermost"}},
		{"a call through a bad pointer, whose signal is being handled",
			toy{rows: []cfi.Row{func() cfi.Row { r := row(0x1000, 0x1100, 8); r.SignalFrame = true; return r }(), outermost}, calls: map[uint64]bool{0x1210: true}},
			newState(0x66, 0x1210, 1).thread(0x1004, stackStart, 0, 0), Options{},
			[]string{"0x1004 context", "0x66 rules", "0x1210 scan", "outermost"}},
		{"a bad pointer without a call before the word on the stack",
			toy{rows: []cfi.Row{outermost}},
			newState(0x1210, 1).thread(0x66, stackStart, 0, 0), Options{},
			[]string{"0x66 context", "no-module"}},
		{"the frame-pointer convention, where no row is known",
			toy{rows: []cfi.Row{outermost}, calls: map[uint64]bool{0x1210: true}, fp: &framePointer},
			newState(5, 6, stackStart+64, 0x1210, 7).thread(0x1504, stackStart, stackStart+16, 0), Options{},
			[]string{"0x1504 context", "0x1210 frame-pointer", "outermost"}},
		{"no frame pointer below the stack pointer",
			toy{rows: []cfi.Row{outermost}, calls: map[uint64]bool{0x1210: true}, fp: &framePointer},
			newState(stackStart+64, 0x1210, 5, 6).thread(0x1504, stackStart+16, stackStart, 0), Options{},
			[]string{"0x1504 context", "no-module"}},
		{"nothing is known",
			toy{}, newState(1, 2, 3).thread(0x1504, stackStart, 0, 0), Options{},
			[]string{"0x1504 context", "no-module"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, walkToy(t, &c.toy, c.state, c.options)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}
