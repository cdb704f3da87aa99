// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"math"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
)

func goodRow(start, end uint64) cfi.Row {
	return cfi.Row{
		Start: start, End: end,
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: 8, Offset: 8},
		Rules: []cfi.RegisterRule{
			{Column: 0, Rule: cfi.Rule{Kind: cfi.Register, Register: 1}},
			{Column: 9, Rule: cfi.Rule{Kind: cfi.Expression, Expr: []byte{0x30}}}, // DW_OP_lit0
		},
		ReturnAddress: 9,
	}
}

// check runs cases that each spoil one thing of a good answer.
func check[A any](t *testing.T, good func() *A, validate func(*A) error, cases map[string]func(*A)) {
	t.Helper()
	if err := validate(good()); err != nil {
		t.Fatalf("the good answer: %v", err)
	}
	for want, spoil := range cases {
		a := good()
		spoil(a)
		err := validate(a)
		if err == nil {
			t.Errorf("%s: accepted", want)
		} else if _, text, _ := strings.Cut(err.Error(), "."); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

var longText = strings.Repeat("x", MaxText+1)

func TestValidateFrameRules(t *testing.T) {
	d := testDescription()
	req := &FrameRulesRequest{Functions: []CodeRange{
		{PC: 0x1004, Start: 0x1000, Code: make([]byte, 0x20)},
		{PC: 0xffffffffffffffff, Start: 0xfffffffffffffff0, Code: make([]byte, 0x10)},
		{PC: 0x1004, Start: 0x1000, Code: make([]byte, 0x20), Bounded: true},
	}}
	check(t, func() *FrameRulesAnswer {
		return &FrameRulesAnswer{Functions: []FrameRules{
			{Rows: []cfi.Row{goodRow(0x1000, 0x1004), goodRow(0x1004, 0x1020)}},
			{Reason: "no code"},
			{Rows: []cfi.Row{goodRow(0x1004, 0x1008), goodRow(0x1010, 0x1014)}, Gaps: []RowGap{
				{0x1000, 0x1004, "dead"}, {0x1008, 0x100c, "dead"}, {0x100c, 0x1010, "lost"}, {0x1018, 0x1020, "dead"},
			}},
		}}
	}, func(a *FrameRulesAnswer) error { return a.Validate(d, req) }, map[string]func(*FrameRulesAnswer){
		"Functions[2].Gaps[0].End: 0x1000":                                        func(a *FrameRulesAnswer) { a.Functions[2].Gaps[0].End = 0x1000 },
		"Functions[2].Gaps[0].Start: 0xfff":                                       func(a *FrameRulesAnswer) { a.Functions[2].Gaps[0].Start = 0xfff },
		"Functions[2].Gaps[0].Start: 0x1020":                                      func(a *FrameRulesAnswer) { a.Functions[2].Gaps[0] = RowGap{0x1020, 0x1024, "dead"} },
		"Functions[2].Gaps[3].End: 0x1021":                                        func(a *FrameRulesAnswer) { a.Functions[2].Gaps[3].End = 0x1021 },
		"Functions[2].Gaps[2].Start: 0x100b":                                      func(a *FrameRulesAnswer) { a.Functions[2].Gaps[2].Start = 0x100b },
		"Functions[2].Gaps[0].Start: 0x1000, there is a row for [0x1004, 0x1008)": func(a *FrameRulesAnswer) { a.Functions[2].Gaps[0].End = 0x1005 },
		"Functions[2].Gaps[1].Start: 0x1007, there is a row for [0x1004, 0x1008)": func(a *FrameRulesAnswer) { a.Functions[2].Gaps[1].Start = 0x1007 },
		"Functions[2].Gaps[3].Start: 0x1013, there is a row for [0x1010, 0x1014)": func(a *FrameRulesAnswer) { a.Functions[2].Gaps[3].Start = 0x1013 },
		"Functions[2].Gaps[1].Start: 0x1008, there is a row for [0x1010, 0x1014)": func(a *FrameRulesAnswer) {
			a.Functions[2].Gaps = []RowGap{{0x1000, 0x1004, "dead"}, {0x1008, 0x1020, "around a row"}}
		},
		"Functions[2].Contradictions[0].End: 0x1021":   func(a *FrameRulesAnswer) { a.Functions[2].Contradictions = []RowGap{{0x1000, 0x1021, "another CFA"}} },
		"Functions[2].Contradictions[0].Reason: empty": func(a *FrameRulesAnswer) { a.Functions[2].Contradictions = []RowGap{{0x1004, 0x1008, ""}} },
		"Functions[2].Gaps[3].Reason: empty":           func(a *FrameRulesAnswer) { a.Functions[2].Gaps[3].Reason = "" },
		"Functions[2].Gaps[3].Reason: 65537":           func(a *FrameRulesAnswer) { a.Functions[2].Gaps[3].Reason = longText },
		"Functions[2].Gaps[3].Reason: \"\\xff\"":       func(a *FrameRulesAnswer) { a.Functions[2].Gaps[3].Reason = "\xff" },
		"Functions: 1 for 3":                           func(a *FrameRulesAnswer) { a.Functions = a.Functions[:1] },
		"Functions: 4 for 3":                           func(a *FrameRulesAnswer) { a.Functions = append(a.Functions, FrameRules{}) },
		"Functions[1].Reason: 65537":                   func(a *FrameRulesAnswer) { a.Functions[1].Reason = longText },
		"Functions[1].Reason: \"\\xff\"":               func(a *FrameRulesAnswer) { a.Functions[1].Reason = "\xff" },
		"Functions[0].Rows[0].End: 0x1000":             func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].End = 0x1000 },
		"Functions[0].Rows[0].Start: 0xfff":            func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].Start = 0xfff },
		"Functions[0].Rows[1].End: 0x1021":             func(a *FrameRulesAnswer) { a.Functions[0].Rows[1].End = 0x1021 },
		"Functions[0].Rows[1].Start: 0x1020":           func(a *FrameRulesAnswer) { a.Functions[0].Rows[1] = goodRow(0x1020, 0x1021) },
		"Functions[0].Rows[1].Start: 0x1003":           func(a *FrameRulesAnswer) { a.Functions[0].Rows[1].Start = 0x1003 },
		"Functions[1].Rows[0].Start: 0x0":              func(a *FrameRulesAnswer) { a.Functions[1].Rows = []cfi.Row{goodRow(0, 1)} },
		"Functions[0].Rows[0].CFA.Kind: a row":         func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].CFA.Kind = cfi.NoCFA },
		"Functions[0].Rows[0].CFA.Kind: 77":            func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].CFA.Kind = 77 },
		"Functions[0].Rows[0].CFA.Register: 10":        func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].CFA.Register = 10 },
		"Functions[0].Rows[0].CFA.Space: 9":            func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].CFA.Space = 9 },
		"Functions[0].Rows[0].ReturnAddress: 10":       func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].ReturnAddress = 10 },
		"Functions[0].Rows[0].CFA.Expr: ": func(a *FrameRulesAnswer) {
			a.Functions[0].Rows[0].CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expr: []byte{0x08}}
		},
		"Functions[0].Rows[0].Rules[1].Column: 0 after 0": func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].Rules[1].Column = 0 },
		"Functions[0].Rows[0].Rules[1].Column: 1844":      func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].Rules[1].Column = 1<<64 - 1 },
		"Functions[0].Rows[0].Rules[0].Rule.Register: 10": func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].Rules[0].Rule.Register = 10 },
		"Functions[0].Rows[0].Rules[0].Rule.Kind: a rule": func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].Rules[0].Rule.Kind = 0 },
		"Functions[0].Rows[0].Rules[0].Rule.Kind: 66":     func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].Rules[0].Rule.Kind = 66 },
		"Functions[0].Rows[0].Rules[1].Rule.Expr: 65537":  func(a *FrameRulesAnswer) { a.Functions[0].Rows[0].Rules[1].Rule.Expr = make([]byte, MaxExpression+1) },
		"Functions[0].Rows[0].CallSite[0].Column: 10": func(a *FrameRulesAnswer) {
			a.Functions[0].Rows[0].CallSite = []cfi.RegisterRule{{Column: 10}}
		},
		// DW_OP_entry_value whose inner expression is no expression, and one
		// nested deeper than any compiler writes.
		"Functions[0].Rows[0].Rules[1].Rule.Expr: offset 0: in DW_OP_entry_value": func(a *FrameRulesAnswer) {
			a.Functions[0].Rows[0].Rules[1].Rule.Expr = []byte{0xa3, 1, 0x08}
		},
		"Functions[0].Rows[0].Rules[1].Rule.Expr: offset 0: in DW_OP_entry_value: offset 0": func(a *FrameRulesAnswer) {
			expr := []byte{0x30}
			for range 10 {
				expr = append([]byte{0xa3, byte(len(expr))}, expr...)
			}
			a.Functions[0].Rows[0].Rules[1].Rule.Expr = expr
		},
	})
}

func TestValidateBindThreads(t *testing.T) {
	d := testDescription()
	d.AddressSpaces = append(d.AddressSpaces, AddressSpace{Number: 5, Name: "lane", Bits: 32, Scope: LaneScope})
	d.AddressBits, d.AddressSpaces[0].Bits = 48, 48
	req := &BindThreadsRequest{Threads: make([]ThreadState, 2)}
	one := func(f func(*ThreadBinding)) func(*BindThreadsAnswer) {
		return func(a *BindThreadsAnswer) { f(&a.Threads[0]) }
	}
	ranged := func(f func(r []MapRange)) func(*BindThreadsAnswer) {
		return func(a *BindThreadsAnswer) { f(a.Threads[0].Maps[0].Ranges) }
	}
	check(t, func() *BindThreadsAnswer {
		return &BindThreadsAnswer{Threads: []ThreadBinding{
			{
				PC: 0x1000, Lanes: 12, ActiveLanes: []byte{0xff, 0x0f},
				Widths: []RegisterWidth{{First: 32, Count: 4, Bits: 2048}, {First: 6, Count: 4, Bits: 8}},
				Maps: []SpaceMap{{Space: 5, Ranges: []MapRange{
					{Kind: InterleavedMap, Start: 0, Size: 64, Base: 0x8000, Element: 4, Stride: 256},
					{Kind: RegisterMap, Start: 64, Size: 64, Register: 32},
					{Kind: OpaqueMap, Start: 0x1000, Size: 1<<32 - 0x1000},
				}}, {Space: 3, Ranges: []MapRange{{Kind: IdentityMap, Size: 1 << 16, Base: 1<<48 - 1<<16}}}},
			},
			{Problem: "it is halted"},
		}}
	}, func(a *BindThreadsAnswer) error { return a.Validate(d, req) }, map[string]func(*BindThreadsAnswer){
		"Threads: 1 for 2":                               func(a *BindThreadsAnswer) { a.Threads = a.Threads[:1] },
		"Threads[0].Agent: 65537":                        one(func(b *ThreadBinding) { b.Agent = longText }),
		"Threads[0].Problem: 65537":                      one(func(b *ThreadBinding) { b.Problem = longText }),
		"Threads[0].PC: 0x1000000000000,":                one(func(b *ThreadBinding) { b.PC = 1 << 48 }),
		"Threads[0].Lanes: 0":                            one(func(b *ThreadBinding) { b.Lanes = 0 }),
		"Threads[0].Lanes: 429":                          one(func(b *ThreadBinding) { b.Lanes = NoRegister }),
		"Threads[0].ActiveLanes: 3":                      one(func(b *ThreadBinding) { b.ActiveLanes = make([]byte, 3) }),
		"Threads[0].ActiveLanes: 2 bytes, expected none": one(func(b *ThreadBinding) { b.ActiveUnknown = true }),
		"Threads[0].ActiveLanes: a bit":                  one(func(b *ThreadBinding) { b.ActiveLanes[1] = 0x10 }),
		"Threads[0].Widths: 1025":                        one(func(b *ThreadBinding) { b.Widths = make([]RegisterWidth, 1025) }),
		"Threads[0].Widths[0].First":                     one(func(b *ThreadBinding) { b.Widths[0].First = 10 }),
		"Threads[0].Widths[0].Count: 0":                  one(func(b *ThreadBinding) { b.Widths[0].Count = 0 }),
		"Threads[0].Widths[0].Count: 5":                  one(func(b *ThreadBinding) { b.Widths[0].Count = 5 }),
		"Threads[0].Widths[0].Bits":                      one(func(b *ThreadBinding) { b.Widths[0].Bits = 0 }),
		"Threads[0].Maps: 1025":                          one(func(b *ThreadBinding) { b.Maps = make([]SpaceMap, 1025) }),
		"Threads[0].Maps[0].Space: 9":                    one(func(b *ThreadBinding) { b.Maps[0].Space = 9 }),
		"Threads[0].Maps[1].Space: 5":                    one(func(b *ThreadBinding) { b.Maps[1].Space = 5 }),

		"Threads[0].Maps[0].Ranges[0].Size: 0x0":       ranged(func(r []MapRange) { r[0].Size = 0 }),
		"Threads[0].Maps[0].Ranges[2].Size":            ranged(func(r []MapRange) { r[2].Size++ }),
		"Threads[0].Maps[0].Ranges[2].Size: 0xfffff00": ranged(func(r []MapRange) { r[2].Start = 1 << 40 }),
		"Threads[0].Maps[0].Ranges[1].Start: 0x3f":     ranged(func(r []MapRange) { r[1].Start = 63 }),
		"Threads[0].Maps[0].Ranges[2].Start: 0x20":     ranged(func(r []MapRange) { r[2].Start, r[2].Size = 0x20, 1 }),
		"Threads[0].Maps[0].Ranges[0].Kind":            ranged(func(r []MapRange) { r[0].Kind = 9 }),
		"Threads[0].Maps[0].Ranges[1].Register":        ranged(func(r []MapRange) { r[1].Register = 10 }),
		"Threads[0].Maps[0].Ranges[0].Into: 9":         ranged(func(r []MapRange) { r[0].Into = 9 }),
		"Threads[0].Maps[0].Ranges[0].Into: 5":         ranged(func(r []MapRange) { r[0].Into = 5 }),
		"Threads[0].Maps[0].Ranges[0].Element: 0":      ranged(func(r []MapRange) { r[0].Element = 0 }),
		"Threads[0].Maps[0].Ranges[0].Element: 257":    ranged(func(r []MapRange) { r[0].Element = 257 }),
		"Threads[0].Maps[0].Ranges[0].Stride":          ranged(func(r []MapRange) { r[0].Stride = 1<<64 - 1 }),
		"Threads[0].Maps[0].Ranges[0].Base":            ranged(func(r []MapRange) { r[0].Stride = 1 << 45 }),
		"Threads[0].Maps[0].Ranges[0].Base: 0x1":       ranged(func(r []MapRange) { r[0].Base = 1 << 60 }),
		"Threads[0].Maps[1].Ranges[0].Base": func(a *BindThreadsAnswer) {
			a.Threads[0].Maps[1].Ranges[0].Base++
		},
	})
}

func TestValidateOpenTarget(t *testing.T) {
	d := testDescription()
	check(t, func() *OpenTargetAnswer {
		var r Registers
		r.Set(0, make([]byte, 8))
		r.Set(32, make([]byte, 64))
		return &OpenTargetAnswer{
			Agents:     []TargetAgent{{ID: "1", Processor: "chip"}, {ID: "2"}},
			Queues:     []TargetQueue{{ID: "1", Agent: "2", Kind: "AQL"}},
			Dispatches: []TargetDispatch{{ID: "7", Queue: "1", Kernel: "k"}},
			Threads: []TargetThread{
				{ID: "1", Registers: r, LaunchEvidence: "queue", Wave: Wave{Agent: "2", Queue: "1", Dispatch: "7"}},
				{
					ID: "2", Lanes: 64, Saved: []SavedRegisters{{First: 1, Count: 1, Address: 1 << 63}},
					Spaces: []SpaceBase{{Space: 3}}, Memory: []SpaceMemory{{Space: 3, Start: 0, Size: 1 << 16, Address: 1 << 47}},
					Stop: ThreadStop{Reason: "trap", Details: []string{"TRAP"}},
				},
				{
					ID: "3", Lanes: 4, Callers: make([]uint64, 1<<16), Lead: 3, State: "blocked on barrier 2",
					LaneStates: []LaneState{
						{Lane: 0, Saved: []SavedRegisters{{First: 1, Count: 1, Address: 64, Into: FileSpace}}},
						{Lane: 3, Memory: []SpaceMemory{{Space: 3, Size: 16, Address: 128, Into: FileSpace}}},
					},
				},
			},
			Objects: []TargetObject{
				{URI: "file:///x", Path: "/x", Offset: 1 << 62, Size: 1 << 61}, {URI: "memory://1", Size: 1, MemoryAddress: 1 << 63},
				{URI: "file://2", Size: 1, MemoryAddress: 1 << 12, Into: FileSpace},
			},
			Memory:          []SpaceMemory{{Start: 1 << 40, Size: 8, Into: FileSpace}, {Space: 3, Start: 64, Size: 8}},
			WaitFunctions:   []string{"wait"},
			LaunchFunctions: []string{"launch"},
			HostProcess:     &HostProcess{PID: 4711},
			Problems:        []string{"the queue is gone"},
		}
	}, func(a *OpenTargetAnswer) error { return a.Validate(d, &OpenTargetRequest{}) }, map[string]func(*OpenTargetAnswer){
		"Kind":                                               func(a *OpenTargetAnswer) { a.Kind = longText },
		"Agents[0].ID: empty":                                func(a *OpenTargetAnswer) { a.Agents[0].ID = "" },
		"Agents[1].ID: \"1\"":                                func(a *OpenTargetAnswer) { a.Agents[1].ID = "1" },
		"Agents[0].Processor":                                func(a *OpenTargetAnswer) { a.Agents[0].Processor = longText },
		"Queues[0].ID: empty":                                func(a *OpenTargetAnswer) { a.Queues[0].ID = "" },
		"Queues[0].Agent: \"9\"":                             func(a *OpenTargetAnswer) { a.Queues[0].Agent = "9" },
		"Queues[0].Kind":                                     func(a *OpenTargetAnswer) { a.Queues[0].Kind = "\xff" },
		"Dispatches[0].ID: empty":                            func(a *OpenTargetAnswer) { a.Dispatches[0].ID = "" },
		"Dispatches[0].Queue: \"9\"":                         func(a *OpenTargetAnswer) { a.Dispatches[0].Queue = "9" },
		"Dispatches[0].Kernel":                               func(a *OpenTargetAnswer) { a.Dispatches[0].Kernel = longText },
		"Threads[0].ID: empty":                               func(a *OpenTargetAnswer) { a.Threads[0].ID = "" },
		"Threads[1].ID: \"1\"":                               func(a *OpenTargetAnswer) { a.Threads[1].ID = "1" },
		"Threads[0].Wave.Agent: \"9\"":                       func(a *OpenTargetAnswer) { a.Threads[0].Wave.Agent = "9" },
		"Threads[0].Wave.Queue: \"9\"":                       func(a *OpenTargetAnswer) { a.Threads[0].Wave.Queue = "9" },
		"Threads[0].Wave.Dispatch: \"9\"":                    func(a *OpenTargetAnswer) { a.Threads[0].Wave.Dispatch = "9" },
		"Threads[0].Wave.Kernel":                             func(a *OpenTargetAnswer) { a.Threads[0].Wave.Kernel = longText },
		"Threads[0].LaunchEvidence":                          func(a *OpenTargetAnswer) { a.Threads[0].LaunchEvidence = "hearsay" },
		"Threads[0].Lanes: 4097":                             func(a *OpenTargetAnswer) { a.Threads[0].Lanes = MaxLanes + 1 },
		"Threads[0].Registers.Numbers[1]: 0":                 func(a *OpenTargetAnswer) { a.Threads[0].Registers.Numbers[1] = 0 },
		"Threads[0].Registers.Offsets[1]: 9":                 func(a *OpenTargetAnswer) { a.Threads[0].Registers.Set(0, make([]byte, 9)) },
		"Threads[0].Registers.Numbers[2]: 1":                 func(a *OpenTargetAnswer) { a.Threads[0].Registers.Set(100, nil) },
		"Threads[1].Saved[0]: 0 registers":                   func(a *OpenTargetAnswer) { a.Threads[1].Saved[0].Count = 0 },
		"Threads[1].Saved[0]: 100 registers":                 func(a *OpenTargetAnswer) { a.Threads[1].Saved[0].Count = 100 },
		"Threads[1].Saved[0].Address":                        func(a *OpenTargetAnswer) { a.Threads[1].Saved[0].Address = math.MaxUint64 },
		"Threads[1].Saved[1]: registers":                     func(a *OpenTargetAnswer) { a.Threads[1].Saved = append(a.Threads[1].Saved, a.Threads[1].Saved[0]) },
		"Threads[1].Saved[0]: register ":                     func(a *OpenTargetAnswer) { a.Threads[1].Registers.Set(1, nil) },
		"Threads[1].Saved: 65":                               func(a *OpenTargetAnswer) { a.Threads[1].Saved = make([]SavedRegisters, 65) },
		"Threads[1].Spaces[0].Space: 99":                     func(a *OpenTargetAnswer) { a.Threads[1].Spaces[0].Space = 99 },
		"Threads[1].Spaces: 65":                              func(a *OpenTargetAnswer) { a.Threads[1].Spaces = make([]SpaceBase, 65) },
		"Threads[1].Memory[0].Space: 99":                     func(a *OpenTargetAnswer) { a.Threads[1].Memory[0].Space = 99 },
		"Threads[1].Memory[0].Space: the":                    func(a *OpenTargetAnswer) { a.Threads[1].Memory[0].Space = 0 },
		"Threads[1].Memory[0].Size: 0x0":                     func(a *OpenTargetAnswer) { a.Threads[1].Memory[0].Size = 0 },
		"Threads[1].Memory[0].Size: 0xffffff":                func(a *OpenTargetAnswer) { a.Threads[1].Memory[0].Size = math.MaxUint64 },
		"Threads[1].Memory[0].Address":                       func(a *OpenTargetAnswer) { a.Threads[1].Memory[0].Address = math.MaxUint64 },
		"Threads[1].Memory: 65":                              func(a *OpenTargetAnswer) { a.Threads[1].Memory = make([]SpaceMemory, 65) },
		"Threads[1].Stop.Reason: \"boredom\"":                func(a *OpenTargetAnswer) { a.Threads[1].Stop.Reason = "boredom" },
		"Threads[1].Stop.Details: \"\\xff\"":                 func(a *OpenTargetAnswer) { a.Threads[1].Stop.Details[0] = "\xff" },
		"Threads[1].Stop.Details: 65":                        func(a *OpenTargetAnswer) { a.Threads[1].Stop.Details = make([]string, 65) },
		"Threads[2].Callers: 65537":                          func(a *OpenTargetAnswer) { a.Threads[2].Callers = make([]uint64, 65537) },
		"Threads[2].State":                                   func(a *OpenTargetAnswer) { a.Threads[2].State = longText },
		"Threads[2].Lead: 1,":                                func(a *OpenTargetAnswer) { a.Threads[2].Lead = 1 },
		"Threads[1].Lead: 1,":                                func(a *OpenTargetAnswer) { a.Threads[1].Lead = 1 },
		"Threads[2].LaneStates[1].Lane: 4":                   func(a *OpenTargetAnswer) { a.Threads[2].LaneStates[1].Lane = 4 },
		"Threads[2].LaneStates[1].Lane: 0":                   func(a *OpenTargetAnswer) { a.Threads[2].LaneStates[1].Lane = 0 },
		"Threads[2].LaneStates[0].Saved[0]: register ":       func(a *OpenTargetAnswer) { a.Threads[2].LaneStates[0].Registers.Set(1, nil) },
		"Threads[2].LaneStates[0].Registers.Numbers[0]: 100": func(a *OpenTargetAnswer) { a.Threads[2].LaneStates[0].Registers.Set(100, nil) },
		"Threads[2].LaneStates[0].Saved[0].Into: 0x3":        func(a *OpenTargetAnswer) { a.Threads[2].LaneStates[0].Saved[0].Into = 3 },
		"Threads[2].LaneStates[0].Saved[0]: 9 registers":     func(a *OpenTargetAnswer) { a.Threads[2].LaneStates[0].Saved[0].Count = 9 },
		"Threads[2].LaneStates[1].Memory[0].Into: 0x1":       func(a *OpenTargetAnswer) { a.Threads[2].LaneStates[1].Memory[0].Into = 1 },
		"Threads[2].LaneStates[1].Memory[0].Space: the":      func(a *OpenTargetAnswer) { a.Threads[2].LaneStates[1].Memory[0].Space = 0 },
		"Memory[0].Into: 0, expected FileSpac":               func(a *OpenTargetAnswer) { a.Memory[0].Into = 0 },
		"Memory[1].Space: 99":                                func(a *OpenTargetAnswer) { a.Memory[1].Space = 99 },
		"Memory[1].Into: 0x3":                                func(a *OpenTargetAnswer) { a.Memory[1].Into = 3 },
		"LaunchFunctions: 1025":                              func(a *OpenTargetAnswer) { a.LaunchFunctions = make([]string, 1025) },
		"LaunchFunctions[0]":                                 func(a *OpenTargetAnswer) { a.LaunchFunctions[0] = longText },
		"Objects[0].Into":                                    func(a *OpenTargetAnswer) { a.Objects[0].Into = FileSpace },
		"Objects[2].Into: 0x3":                               func(a *OpenTargetAnswer) { a.Objects[2].Into = 3 },
		"Threads[1].Problem":                                 func(a *OpenTargetAnswer) { a.Threads[1].Problem = longText },
		"Objects[0].URI":                                     func(a *OpenTargetAnswer) { a.Objects[0].URI = "" },
		"Objects[0].Path":                                    func(a *OpenTargetAnswer) { a.Objects[0].Path = longText },
		"Objects[0].Size: 0x4000000000000000 ":               func(a *OpenTargetAnswer) { a.Objects[0].Size = 1 << 62 },
		"Objects[1].Size: 0,":                                func(a *OpenTargetAnswer) { a.Objects[1].Size = 0 },
		"Objects[1].Size: 0x8":                               func(a *OpenTargetAnswer) { a.Objects[1].Size = 1 << 63 },
		"WaitFunctions[0]":                                   func(a *OpenTargetAnswer) { a.WaitFunctions[0] = longText },
		"WaitFunctions: 1025":                                func(a *OpenTargetAnswer) { a.WaitFunctions = make([]string, 1025) },
		"Problems[0]: 65537":                                 func(a *OpenTargetAnswer) { a.Problems[0] = longText },
		"Problems: 4097":                                     func(a *OpenTargetAnswer) { a.Problems = make([]string, 4097) },
	})
}

func TestValidateOpenObject(t *testing.T) {
	d := testDescription()
	req := &OpenObjectRequest{Sections: []SectionInfo{{}, {Name: ".text"}}}
	check(t, func() *OpenObjectAnswer {
		return &OpenObjectAnswer{
			Processor: "gfx90a", Dialect: "vendor",
			Overrides:    []DialectOverride{{Producer: "clang", Dialect: "dwarf5"}},
			DefaultRules: []cfi.RegisterRule{{Column: 1, Rule: cfi.Rule{Kind: cfi.Undefined}}},
			Nested:       []NestedObject{{Name: "device", Offset: 1, Size: 2}},
			Tables:       []RowTable{{Rows: []cfi.Row{goodRow(0, 1)}, Section: 1}, {Priority: OverridesCFI, Reason: "stripped"}},
			Functions:    []Function{{Name: "f", Start: 1, End: 2, Lanes: 64, Kind: KernelFunction, Section: 1}},
			PositionMaps: []PositionMap{{Kind: "visa", PCs: []uint64{1, 2}, Positions: []uint64{9, 3}, Section: 1}},
			Variables:    []Variable{{Name: "v", Start: []uint64{1}, End: []uint64{2}, Locations: [][]byte{{0x30}}, Section: 1}},
		}
	}, func(a *OpenObjectAnswer) error { return a.Validate(d, req) }, map[string]func(*OpenObjectAnswer){
		"Tables[0].Section: 2":          func(a *OpenObjectAnswer) { a.Tables[0].Section = 2 },
		"Functions[0].Section: 3":       func(a *OpenObjectAnswer) { a.Functions[0].Section = 3 },
		"PositionMaps[0].Section: 429":  func(a *OpenObjectAnswer) { a.PositionMaps[0].Section = 1<<32 - 1 },
		"Variables[0].Section: 2":       func(a *OpenObjectAnswer) { a.Variables[0].Section = 2 },
		"Processor":                     func(a *OpenObjectAnswer) { a.Processor = "a b" },
		"Dialect: \"other\"":            func(a *OpenObjectAnswer) { a.Dialect = "other" },
		"Overrides[0].Dialect":          func(a *OpenObjectAnswer) { a.Overrides[0].Dialect = "other" },
		"Overrides[0].Augmentation":     func(a *OpenObjectAnswer) { a.Overrides[0].Augmentation = "zR" },
		"Overrides[0].Augmentation: \"": func(a *OpenObjectAnswer) { a.Overrides[0].Producer = "" },
		"DefaultRules[0].Column":        func(a *OpenObjectAnswer) { a.DefaultRules[0].Column = 10 },
		"Nested[0].Size: 0,":            func(a *OpenObjectAnswer) { a.Nested[0].Size = 0 },
		"Nested[0].Size: 0xff":          func(a *OpenObjectAnswer) { a.Nested[0].Size = 1<<64 - 1 },
		"Nested[0].Name":                func(a *OpenObjectAnswer) { a.Nested[0].Name = "\xff" },
		"Tables[0].Priority":            func(a *OpenObjectAnswer) { a.Tables[0].Priority = 2 },
		"Tables[1].Reason":              func(a *OpenObjectAnswer) { a.Tables[1].Reason = "" },
		"Tables[0].Rows[0].End":         func(a *OpenObjectAnswer) { a.Tables[0].Rows[0].End = 0 },
		"Tables[0].Rows[0].CFA":         func(a *OpenObjectAnswer) { a.Tables[0].Rows[0].CFA.Kind = 0 },
		"Functions[0].End":              func(a *OpenObjectAnswer) { a.Functions[0].End = 1 },
		"Functions[0].Lanes":            func(a *OpenObjectAnswer) { a.Functions[0].Lanes = MaxLanes + 1 },
		"Functions[0].Kind":             func(a *OpenObjectAnswer) { a.Functions[0].Kind = 7 },
		"Functions[0].DefaultRules[0]":  func(a *OpenObjectAnswer) { a.Functions[0].DefaultRules = make([]cfi.RegisterRule, 1) },
		"PositionMaps[0].Kind":          func(a *OpenObjectAnswer) { a.PositionMaps[0].Kind = "" },
		"PositionMaps[0].Positions":     func(a *OpenObjectAnswer) { a.PositionMaps[0].Positions = nil },
		"PositionMaps[0].PCs[1]":        func(a *OpenObjectAnswer) { a.PositionMaps[0].PCs[1] = 1 },
		"Variables[0].Start":            func(a *OpenObjectAnswer) { a.Variables[0].End = nil },
		"Variables[0].End[0]":           func(a *OpenObjectAnswer) { a.Variables[0].End[0] = 1 },
		"Variables[0].Locations[0]: ":   func(a *OpenObjectAnswer) { a.Variables[0].Locations[0] = []byte{0xff} },
		"Problems[0]: ":                 func(a *OpenObjectAnswer) { a.Problems = []string{"\xff"} },
	})
}

func TestValidateTranslate(t *testing.T) {
	d := testDescription()
	check(t, func() *TranslateAnswer { return &TranslateAnswer{Expr: []byte{0x30}} },
		func(a *TranslateAnswer) error { return a.Validate(d, &TranslateRequest{}) },
		map[string]func(*TranslateAnswer){
			"Expr: empty": func(a *TranslateAnswer) { a.Expr = nil },
			"Expr: 65537": func(a *TranslateAnswer) { a.Expr = make([]byte, MaxExpression+1) },
			// An address that the expression ends in.
			"Expr: ": func(a *TranslateAnswer) { a.Expr = []byte{0x03, 1, 2, 3} },
		})
}

func TestValidateClassifyReturn(t *testing.T) {
	d := testDescription()
	d.AddressBits = 32
	req := &ClassifyReturnRequest{PCs: []uint64{1, 2}}
	check(t, func() *ClassifyReturnAnswer {
		return &ClassifyReturnAnswer{Classes: []ReturnClass{AfterDirectCall, NotAfterCall}, Targets: []uint64{5, 0}}
	}, func(a *ClassifyReturnAnswer) error { return a.Validate(d, req) }, map[string]func(*ClassifyReturnAnswer){
		"Classes: 1,":         func(a *ClassifyReturnAnswer) { a.Classes = a.Classes[:1] },
		"Classes: 2, with 1 ": func(a *ClassifyReturnAnswer) { a.Targets = a.Targets[:1] },
		"Classes[1]: 4":       func(a *ClassifyReturnAnswer) { a.Classes[1] = 4 },
		"Targets[1]: 0x6":     func(a *ClassifyReturnAnswer) { a.Targets[1] = 6 },
		"Targets[0]: 0x1":     func(a *ClassifyReturnAnswer) { a.Targets[0] = 1 << 32 },
	})
}

func TestValidateDisassemble(t *testing.T) {
	d := testDescription()
	req := &DisassembleRequest{Address: 1<<64 - 4, Code: make([]byte, 8)}
	check(t, func() *DisassembleAnswer {
		return &DisassembleAnswer{Instructions: []Instruction{{Address: 1<<64 - 4, Size: 2, Accesses: []Access{{Index: NoRegister, AddressBits: 64}}}, {Address: 1<<64 - 1, Size: 3}, {Address: 3, Size: 1}}, LLVM: LLVMTarget{Triple: "amdgcn-amd-amdhsa", CPU: "gfx9-4-generic", Features: "+wavefrontsize64,-xnack"}}
	}, func(a *DisassembleAnswer) error { return a.Validate(d, req) }, map[string]func(*DisassembleAnswer){
		"Instructions[0].Text":                        func(a *DisassembleAnswer) { a.Instructions[0].Text = longText },
		"Instructions[0].Address":                     func(a *DisassembleAnswer) { a.Instructions[0].Address-- },
		"Instructions[1].Address":                     func(a *DisassembleAnswer) { a.Instructions[1].Address -= 2 },
		"Instructions[2].Address: 0x4":                func(a *DisassembleAnswer) { a.Instructions[2].Address = 4 },
		"Instructions[2].Size: 0":                     func(a *DisassembleAnswer) { a.Instructions[2].Size = 0 },
		"Instructions[2].Size: 2":                     func(a *DisassembleAnswer) { a.Instructions[2].Size = 2 },
		"Instructions[0].Kind":                        func(a *DisassembleAnswer) { a.Instructions[0].Kind = SystemCallInstruction + 1 },
		"Instructions[0].RegisterBits: 65":            func(a *DisassembleAnswer) { a.Instructions[0].RegisterBits = 65 },
		"Instructions[0].Accesses: 5":                 func(a *DisassembleAnswer) { a.Instructions[0].Accesses = make([]Access, MaxAccesses+1) },
		"Instructions[0].Accesses[0].AddressBits: 65": func(a *DisassembleAnswer) { a.Instructions[0].Accesses[0].AddressBits = 65 },
		"Instructions[0].Accesses[0].Size":            func(a *DisassembleAnswer) { a.Instructions[0].Accesses[0].Size = maxAccessSize + 1 },
		"Instructions[0].Accesses[0].Scale":           func(a *DisassembleAnswer) { a.Instructions[0].Accesses[0].Scale = 1 },
		"LLVM.Triple: 129 bytes":                      func(a *DisassembleAnswer) { a.LLVM.Triple = strings.Repeat("x", MaxLLVMName+1) },
		"LLVM.CPU: \"gfx90a -o\"":                     func(a *DisassembleAnswer) { a.LLVM.CPU = "gfx90a -o" },
		"LLVM.Features: \"+a\\x00\"":                  func(a *DisassembleAnswer) { a.LLVM.Features = "+a\x00" },
		"LLVM.CPU: \"gfx9-4-generic\", expected none": func(a *DisassembleAnswer) { a.LLVM.Triple = "" },
	})
}

func BenchmarkValidateRows(b *testing.B) {
	d := testDescription()
	a := &OpenObjectAnswer{Tables: []RowTable{{}}}
	for i := range uint64(1000) {
		a.Tables[0].Rows = append(a.Tables[0].Rows, goodRow(i, i+1))
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := a.Validate(d, nil); err != nil {
			b.Fatal(err)
		}
	}
}
