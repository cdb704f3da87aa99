// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/sdk"
)

// ask for rows of one function of a name.
func functionNamed(name string) *sdk.FrameRulesRequest {
	return &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{{PC: 0x1000, Start: 0x1000, Code: make([]byte, 16), Bounded: true, Name: name}}}
}

// transports are the same architecture in a process and in none.
func transports(t *testing.T) map[string]*Arch {
	m := manager(t, Options{InProcess: []sdk.Architecture{newTestArch(other)}})
	inside, err := m.ForMachine(machine(testMachine + 1))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Arch{"process": testArchOf(t, good, Options{}), "in-process": inside}
}

func TestNonsenseIsRefused(t *testing.T) {
	for where, a := range transports(t) {
		for _, c := range []struct{ name, want string }{
			{"unknown register", "register"},
			{"unknown column", "Column"},
			{"outside", ""},
			{"backwards", ""},
			{"overlapping", ""},
			{"bad expression", ""},
			{"too many", "Functions"},
			{"too few", "Functions"},
		} {
			t.Run(where+"/"+c.name, func(t *testing.T) {
				answer, err := a.FrameRules(t.Context(), nil, functionNamed(c.name))
				var f *Failure
				if answer != nil || !errors.As(err, &f) || f.Call != "FrameRules" ||
					!strings.Contains(f.Reason, "answered nonsense: ") || !strings.Contains(f.Reason, c.want) {
					t.Errorf("%v, %v", answer, err)
				}
			})
		}
		for _, command := range []string{"outside", "none"} {
			if _, err := obey(t, a, command); err == nil || !strings.Contains(err.Error(), "nonsense") && !strings.Contains(err.Error(), "neither an answer nor an error") {
				t.Errorf("%s/%s: %v", where, command, err)
			}
		}
		if answer, err := a.FrameRules(t.Context(), nil, functionNamed("good")); err != nil || len(answer.Functions[0].Rows) != 1 {
			t.Errorf("%s: after nonsense: %+v, %v", where, answer, err)
		}
		if g := a.Generation(); g > 1 {
			t.Errorf("%s: generation %d: nonsense is no reason to restart, nor to ask again", where, g)
		}
	}
}

func TestErrorsAndPanicsAreTheSameEverywhere(t *testing.T) {
	for where, a := range transports(t) {
		var f *Failure
		if _, err := obey(t, a, "error"); !errors.As(err, &f) || !strings.Contains(f.Reason, errTest.Error()) {
			t.Errorf("%s: %v", where, err)
		}
		if _, err := obey(t, a, "panic"); !errors.As(err, &f) || !strings.Contains(f.Reason, "panicked: "+errTest.Error()+", at plugin.init.func") {
			t.Errorf("%s: %v", where, err)
		}
		if _, err := a.Translate(t.Context(), nil, &sdk.TranslateRequest{}); !errors.As(err, &f) || !errors.Is(err, sdk.ErrNotImplemented) {
			t.Errorf("%s: Translate: %v", where, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Disassemble(ctx, order("error")); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: cancelled: %v", where, err)
		}
	}
}

// A memory is an engine that has memory only.
type memory string

func (m memory) ReadMemory(_ context.Context, r sdk.MemoryRange, buf []byte) (int, error) {
	if r.Address != 0x5000 {
		return 0, errors.New("no memory there")
	}
	return copy(buf, m), nil
}

func (memory) ReadRegisters(context.Context, uint64, []uint32) (sdk.Registers, error) {
	return sdk.Registers{}, errors.New("no registers")
}

func (memory) ReadSection(context.Context, uint64, string) ([]byte, error) {
	return nil, errors.New("no sections")
}

func TestPluginReadsFromTheEngine(t *testing.T) {
	for where, a := range transports(t) {
		for range 2 {
			answer, err := a.FrameRules(t.Context(), memory("live"), functionNamed("memory"))
			if err != nil || answer.Functions[0].Reason != "4 bytes: live" {
				t.Fatalf("%s: %+v, %v", where, answer, err)
			}
			if pid := a.PID(); pid != 0 {
				kill(t, pid)
			}
		}
	}
}

func TestBindThreadsHasADefault(t *testing.T) {
	for where, a := range transports(t) {
		var r sdk.Registers
		r.Set(9, []byte{0x34, 0x12, 0, 0, 0, 0, 0, 0})
		answer, err := a.BindThreads(t.Context(), nil, &sdk.BindThreadsRequest{Threads: []sdk.ThreadState{{Registers: r}}})
		if err != nil || answer.Threads[0].PC != 0x1234 || answer.Threads[0].Lanes != 1 {
			t.Errorf("%s: %+v, %v", where, answer, err)
		}
	}
}

func TestCallsThatAreNotWrittenAnswerNothingSpecial(t *testing.T) {
	for where, a := range transports(t) {
		target, err := a.OpenTarget(t.Context(), nil, &sdk.OpenTargetRequest{Notes: []sdk.Note{{Owner: "TEST", Type: 1}}})
		if err != nil || len(target.Threads) != 0 {
			t.Errorf("%s: OpenTarget: %+v, %v", where, target, err)
		}
		object, err := a.OpenObject(t.Context(), memory(""), &sdk.OpenObjectRequest{Path: "x"})
		if err != nil || len(object.Tables) != 0 {
			t.Errorf("%s: OpenObject: %+v, %v", where, object, err)
		}
		returns, err := a.ClassifyReturn(t.Context(), &sdk.ClassifyReturnRequest{PCs: []uint64{1, 2}, Offsets: []uint32{0, 0, 0}})
		if err != nil || len(returns.Classes) != 2 || returns.Classes[0] != sdk.UnknownReturn {
			t.Errorf("%s: ClassifyReturn: %+v, %v", where, returns, err)
		}
	}
}

// counting counts what it is asked for, and answers with rows of other code.
type counting struct {
	sdk.Architecture
	asked *int
}

func (c counting) FrameRules(_ context.Context, _ sdk.Engine, req *sdk.FrameRulesRequest) (*sdk.FrameRulesAnswer, error) {
	*c.asked++
	f := &req.Functions[0]
	return &sdk.FrameRulesAnswer{Functions: []sdk.FrameRules{{Rows: []cfi.Row{{Start: f.Start - 1, End: f.Start}}}}}, nil
}

// TestWhatWasRefusedIsNotAskedAgain: for no PC of a function that is bounded, and for the
// same PC of code that is not.
func TestWhatWasRefusedIsNotAskedAgain(t *testing.T) {
	asked := 0
	m := manager(t, Options{InProcess: []sdk.Architecture{counting{newTestArch(other), &asked}}})
	a, err := m.ForMachine(machine(testMachine + 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		start, pc uint64
		isBounded bool
		want      int
	}{
		{0x1000, 0x1000, true, 1}, {0x1000, 0x1004, true, 1}, {0x2000, 0x2000, true, 2}, {0x1000, 0x1008, true, 2},
		{0x3000, 0x3000, false, 3}, {0x3000, 0x3004, false, 4}, {0x3000, 0x3000, false, 4},
	} {
		req := &sdk.FrameRulesRequest{Functions: []sdk.CodeRange{{PC: c.pc, Start: c.start, Code: make([]byte, 16), Bounded: c.isBounded}}}
		_, err := a.FrameRules(t.Context(), nil, req)
		var f *Failure
		if !errors.As(err, &f) || !strings.Contains(f.Reason, "nonsense") || asked != c.want {
			t.Errorf("%#x of the code at %#x: %v, asked %d times, expected %d", c.pc, c.start, err, asked, c.want)
		}
	}
}
