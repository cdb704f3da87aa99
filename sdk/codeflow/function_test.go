// SPDX-License-Identifier: Apache-2.0

package codeflow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// A stackCPU has instructions of two bytes, as a toy has, which push and pop. The state is how much
// lies on the stack: nothing on entry and at a return; unknownDepth where that is not known.
type stackCPU struct {
	*Function[int]
	code []byte
}

const (
	unknownDepth = -99

	cpuPush, cpuPop, cpuStop, cpuUnit = 'p', 'q', 's', 2
)

func newStackCPU(code *Pieces) *stackCPU {
	f := &stackCPU{code: code.Code}
	f.Function = NewFunction(f, code, cpuUnit, Limits{Steps: 1000, Calls: 2})
	return f
}

func (f *stackCPU) Instruction(n uint64) (_ Instruction, ok bool) {
	return toyInstruction(f.code, n)
}

func toyInstruction(code []byte, n uint64) (_ Instruction, ok bool) {
	kinds := map[byte]Kind{cpuPush: Ordinary, cpuPop: Ordinary, toyNothing: Ordinary, toyCall: Call, toyBranch: Branch, toyJump: Jump, toyReturn: Return, cpuStop: Stop}
	kind, ok := kinds[code[cpuUnit*n]]
	distance := int64(int8(code[cpuUnit*n+1])) //nolint:gosec // its bits
	return Instruction{Kind: kind, Length: 1, IsDirect: distance != 0, Distance: distance}, ok
}

func (f *stackCPU) Apply(n uint64, depth *int) {
	switch f.code[cpuUnit*n] {
	case cpuPush:
		*depth++
	case cpuPop:
		*depth--
	}
}

func (f *stackCPU) Leave(n uint64, depth *int) {
	if t := f.Trial(); t != nil && f.code[cpuUnit*n] == toyReturn {
		t.IsConfirmed, t.IsContradicted = *depth == 0, *depth != 0
	}
}

func (f *stackCPU) Equal(a, b *int) bool { return *a == *b }

func (f *stackCPU) Merge(a, b *int) (both int, isA, hasLost bool) {
	return unknownDepth, *a == unknownDepth, *a != *b
}

func (f *stackCPU) IsWrongReturn(p *Point[int]) bool {
	return f.code[cpuUnit*p.Address] == toyReturn && p.State != 0 && p.State != unknownDepth
}

func (f *stackCPU) Row(p *Point[int]) (row cfi.Row, ok bool) {
	return cfi.Row{CFA: cfi.CFARule{Kind: cfi.CFARegister, Offset: int64(p.State)}}, p.State != unknownDepth
}

// rowsText writes rows, as "start-end:depth".
func rowsText(rows []cfi.Row) string {
	var list []string
	for i := range rows {
		list = append(list, fmt.Sprintf("%x-%x:%d", rows[i].Start, rows[i].End, rows[i].CFA.Offset))
	}
	return strings.Join(list, " ")
}

func readStack(_ *sdk.CodeRange, code *Pieces) ([]cfi.Row, error) {
	f := newStackCPU(code)
	if err := f.Follow(&Arrival[int]{Source: None}); err != nil {
		return nil, err
	}
	return f.Rows(), f.Resume(f)
}

func TestRowsOfAFunction(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"one way", "p00 p00 q00 q00 r00", "0-2:0 2-4:1 4-6:2 6-8:1 8-a:0"},
		{"a branch", "b04 p00 r00", "0-4:0"},               // the return has two frames
		{"a return with another frame", "p00 n00 r00", ""}, // nothing that leads to it is right
		{"a call that returns", "p00 l00 q00 r00", "0-2:0 2-6:1 6-8:0"},
		{"a call that does not", "p00 l00 r00", "0-2:0 2-4:1"},
		{"a call behind one that does not", "p00 b06 l00 r00 q00 r00", "0-2:0 2-6:1 8-a:1 a-c:0"},
		{"a call without evidence", "p00 l00 l00 s00", "0-2:0 2-8:1"},
		{"what is no instruction", "p00 x00", "0-2:0"},
		{"a stop, and code behind it", "p00 s00 r00", "0-2:0 2-4:1"},
	} {
		f := newStackCPU(OnePiece(0, toyCode(c.text)))
		if err := f.Follow(&Arrival[int]{Source: None}); err != nil {
			t.Fatal(err)
		}
		if err := f.Resume(f); err != nil {
			t.Fatal(err)
		}
		if got := rowsText(f.Rows()); got != c.want {
			t.Errorf("%s, %s: %q, expected %q", c.name, c.text, got, c.want)
		}
		if isRefuted := strings.Contains(c.text, "p00 l00 r00"); f.IsRefuted(2) != isRefuted || isRefuted && f.Point(2) != nil {
			t.Errorf("%s, %s: the call is refuted: %t, and followed: %t", c.name, c.text, f.IsRefuted(2), f.Point(2) != nil)
		}
	}
}

func TestTheNearestReturnsCount(t *testing.T) {
	for _, c := range []struct {
		text   string
		want   []uint64 // returns that are visited
		calls  []uint64 // that each lies behind
		isSure bool
	}{
		{"b04 l00 r00 r00", []uint64{2}, nil, true},
		{"b06 l00 r00 l00 l00 r00", []uint64{2}, []uint64{1}, false},
		{"l00 l00 r00", []uint64{2}, []uint64{1, 0}, false},
		{"b08 l00 p00 r00 l00 r00", []uint64{5}, []uint64{4}, false}, // the first call does not return
		{"l00 x00", nil, nil, false},
	} {
		f := newStackCPU(OnePiece(0, toyCode(c.text)))
		f.IsAhead = true
		var got []uint64
		isSure, err := f.NearestReturns(&Arrival[int]{Source: None}, func(p *Point[int], call uint64) (bool, error) {
			var calls []uint64
			for ; call != None; call = f.Previous(call) {
				calls = append(calls, call)
			}
			if !slices.Equal(calls, c.calls) {
				t.Errorf("%s: behind the calls %d, expected %d", c.text, calls, c.calls)
			}
			got = append(got, p.Address)
			return true, nil
		})
		if err != nil || isSure != c.isSure || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %t, %v, expected %v, %t", c.text, got, isSure, err, c.want, c.isSure)
		}
	}
	f := newStackCPU(OnePiece(0, toyCode("r00")))
	why := errors.New("no")
	if _, err := f.NearestReturns(&Arrival[int]{}, func(*Point[int], uint64) (bool, error) { return false, why }); !errors.Is(err, why) {
		t.Errorf("%v, expected %v", err, why)
	}
}

func TestAReaderAnswers(t *testing.T) {
	reader := Reader{Unit: cpuUnit, MaxCode: 10, Separator: toyCode("s00"), Function: readStack,
		HasEntry: func(r *sdk.CodeRange) bool { return IsCalledAtStart(r.Name) },
		Ahead:    func(*sdk.CodeRange) ([]cfi.Row, string) { return nil, "no return" }}
	function, part := toyCode("p00 b1c q00 r00"), toyCode("q00 r00")
	const start = 0x1000
	for _, c := range []struct {
		name string
		r    sdk.CodeRange
		want string // rows, or the reason
	}{
		{"a function", sdk.CodeRange{PC: start + 2, Start: start, Code: function, Bounded: true}, "1000-1002:0 1002-1006:1 1006-1008:0"},
		{"outside", sdk.CodeRange{PC: start + 8, Start: start, Code: function, Bounded: true}, "the code at 0x1000, 8 bytes, does not hold the PC 0x1008"},
		{"at the end of addresses", sdk.CodeRange{PC: ^uint64(0), Start: ^uint64(0), Code: function}, "the code at 0xffffffffffffffff, 8 bytes, goes past the end of the address space"},
		{"without bounds", sdk.CodeRange{PC: start, Start: start, Code: function}, "no return"},
		{"of a part alone", sdk.CodeRange{PC: start, Start: start, Code: function, Bounded: true, Name: "f.cold"}, "no return"},
		{"large", sdk.CodeRange{PC: start, Start: start, Code: append(toyCode("n00 n00"), function...), Bounded: true},
			"a function of 12 bytes, of which 10 at most are read; no return"},
		{"not aligned", sdk.CodeRange{PC: start + 1, Start: start + 1, Code: function, Bounded: true},
			"the code at 0x1001 is not on an address of instructions, which are at multiples of 2; no return"},
		{"short", sdk.CodeRange{PC: start, Start: start, Code: function[:1], Bounded: true}, "the code at 0x1000 has 1 bytes, an instruction has 2; no return"},
		{"not reached", sdk.CodeRange{PC: start + 2, Start: start, Code: toyCode("r00 n00"), Bounded: true},
			"reading the function from its start does not show its frame here; no return"},
		{"a part", sdk.CodeRange{PC: start + 0x1e, Start: start, Code: function[:4], Bounded: true, Parts: []sdk.CodePart{{Start: start + 0x1e, Code: part}}}, "101e-1020:1 1020-1022:0"},
		{"a part that is not reached", sdk.CodeRange{PC: start + 0x20, Start: start, Code: function[:4], Bounded: true, Parts: []sdk.CodePart{{Start: start + 0x20, Code: part}}},
			"reading the function from its start does not lead to its part here"},
		{"parts without bounds", sdk.CodeRange{PC: start, Start: start, Code: function, Parts: []sdk.CodePart{{Start: start + 0x20, Code: part}}},
			"the parts of a function are read with it from its start, and it has none that is known"},
	} {
		answer, err := Answer(context.Background(), &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{c.r}}, reader.Rules, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := rowsText(answer.Functions[0].Rows) + answer.Functions[0].Reason; got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Answer(ctx, &sdk.FrameRulesRequest{Functions: make([]sdk.CodeRange, 1)}, reader.Rules, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected that it was cancelled", err)
	}
}

// A leaver is code whose jumps that are not direct go through a slot at the address of the jump.
type leaver struct{ *Exits[bool] }

func (x *leaver) Instruction(n uint64) (_ Instruction, ok bool) { return toyInstruction(x.Code, n) }

func (x *leaver) Join(_ *Point[bool], _ *bool, isFirst bool) bool { return isFirst }
func (x *leaver) Apply(uint64, *bool)                             {}

func (x *leaver) Leave(n uint64, _ *bool) {
	if x.Code[cpuUnit*n] == toyJump {
		x.Found.Slots = append(x.Found.Slots, x.Location(n))
	}
}

func TestExits(t *testing.T) {
	for text, want := range map[string]sdk.CodeExits{
		"n00 r00":         {},
		"b04 j7e j00":     {Jumps: []uint64{0x1080}, Slots: []uint64{0x1004}},
		"j7e":             {Jumps: []uint64{0x107e}},
		"b06 b04 j7c j7a": {Jumps: []uint64{0x1080}},
		"n00":             {Jumps: []uint64{0x1002}}, // it runs on
		"l00":             {},                        // a call that does not return
		"j01 n00":         {Open: true},              // into the middle of an instruction
		"x00":             {Open: true},
	} {
		x := &leaver{}
		r := &sdk.CodeRange{PC: 0x1000, Start: 0x1000, Code: toyCode(text), Bounded: text == "l00"}
		x.Exits = NewExits(x, r, cpuUnit, 100)
		if got := x.Find(r.PC); !slices.Equal(got.Jumps, want.Jumps) || !slices.Equal(got.Slots, want.Slots) || got.Open != want.Open {
			t.Errorf("%s: %+v, expected %+v", text, got, want)
		}
	}
	for _, r := range []sdk.CodeRange{{PC: 0x1002, Start: 0x1000, Code: make([]byte, 2)}, {PC: 0x1001, Start: 0x1000, Code: make([]byte, 2)},
		{PC: 0x1000, Start: 0x1000, Code: make([]byte, 101)}, {PC: 0x1001, Start: 0x1001, Code: make([]byte, 4)}} {
		if x := NewExits(&leaver{}, &r, cpuUnit, 100); x != nil {
			t.Errorf("%+v can be read", r)
		}
	}
}

func TestObjects(t *testing.T) {
	kinds := FunctionKinds{"_start": sdk.OutermostFunction, "go.exit": sdk.TrampolineFunction}
	if got := kinds.Symbols(); !slices.Equal(got, []string{"_start", "go.exit", "go.exit.abi0"}) {
		t.Errorf("%q", got)
	}
	req := &sdk.OpenObjectRequest{Symbols: []sdk.SymbolInfo{{Name: "go.exit.abi0", Address: 0x20, Size: 8}, {Name: "f", Address: 0x30, Size: 8},
		{Name: "_start", Address: 0x10, Size: 4}, {Name: "_start", Address: 0x10, Size: 4}, {Name: "_start", Address: 0x40}}}
	want := []sdk.Function{{Name: "_start", Start: 0x10, End: 0x14, Kind: sdk.OutermostFunction}, {Name: "go.exit.abi0", Start: 0x20, End: 0x28, Kind: sdk.TrampolineFunction}}
	if got := kinds.Functions(req); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v, expected %+v", got, want)
	}
	if IsGo([]sdk.SectionInfo{{Name: ".text"}}) || !IsGo([]sdk.SectionInfo{{Name: ".text"}, {Name: ".note.go.buildid"}}) {
		t.Error("what Go's linker made is told by its sections")
	}
}

func TestSignalRow(t *testing.T) {
	for sp, want := range map[uint32]string{7: "77 08 06", 40: "92 28 08 06"} {
		row := SignalRow(sp, 50, []SavedRegister{{Register: sp, Offset: 8}, {Register: 50, Offset: 24}})
		if got := fmt.Sprintf("% x", row.CFA.Expr); got != want || row.ReturnAddress != 50 || !row.SignalFrame {
			t.Errorf("CFA %s, expected %s; %+v", got, want, row)
		}
		if rule, _ := row.Rule(50); len(row.Rules) != 2 || rule.Kind != cfi.Expression || rule.Expr[len(rule.Expr)-1] != 24 {
			t.Errorf("%+v", row.Rules)
		}
	}
}
