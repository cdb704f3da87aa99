// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// given are stacks that a test made, and the facts about their target.
type given struct {
	Head
	stacks    []*trace.Stack
	hasLocals bool
	globals   []Global
}

func (g *given) report() *Stacks {
	return &Stacks{
		each:  slices.Values(g.stacks),
		head:  func(headDetail) Head { return g.Head },
		space: func(_ *trace.Thread, space locexpr.AddressSpace) string { return fmt.Sprint("space ", space) },

		hasLocals: g.hasLocals, Globals: g.globals,
	}
}

// withVariables is a report that variables were asked for.
func withVariables() *given {
	g := reportOf(everything())
	g.hasLocals = true
	f := localsFrame()
	v := f.Locals()[0][0].Variable
	v.Kind = trace.KindGlobal
	g.globals = []Global{{GlobalVariable: trace.GlobalVariable{Variable: v, Module: &libm.Module}}}
	return g
}

func (g *given) WriteText(w io.Writer, o TextOptions) error { return g.report().WriteText(w, o) }
func (g *given) WriteJSON(w io.Writer) error                { return g.report().WriteJSON(w) }

// read is the JSON of the report as a program reads it.
func (g *given) read(t *testing.T) *Report {
	t.Helper()
	var b bytes.Buffer
	if err := g.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&b)
	d.DisallowUnknownFields()
	r := &Report{}
	if err := d.Decode(r); err != nil {
		t.Fatal(err)
	}
	return r
}

// everything is a stack with all that one can have.
func everything() *trace.Stack {
	s := waveStack("w\u2028\n\"<&>")
	s.Thread.Name, s.Thread.Arch, s.Thread.Processor, s.Thread.Crashed = "näme", "amdgpu", "gfx90a", true
	s.Thread.Stop = &trace.Stop{Reason: sdk.StopTrap, TrapID: 2, HasTrapID: true, Address: 0x10, HasAddress: true, HasPCExact: true}
	s.Thread.Wave = &sdk.Wave{Agent: "1", Queue: "2", Dispatch: "3", Kernel: "k", Group: [3]uint32{1, 0, 4294967295}, InGroup: 7, HasGroup: true, HasInGroup: true}
	s.Frames = append(s.Frames, trace.Frame{
		PC: ^uint64(0), CFA: 0x40, HasCFA: true, CFASpace: 5, FoundBy: trace.ByScan, RestsOnGuess: true, Imprecise: true, SignalFrame: true,
		Module: &libm.Module, ModuleOffset: 0x20, Symbols: []trace.Symbol{
			{Function: "in", LinkageName: "_in", File: "a b.c", Line: 1, Column: 2, LineByAssembly: true, ScopeBySource: true},
			{Function: "out", Start: 0x21, HasStart: true},
		},
		Details: &trace.FrameDetails{Registers: []trace.RegisterValue{{Name: "s10", Number: 1, Bits: 32, Value: 5}, {Name: "s1", Number: 2, Bits: 32}}},
	}, localsFrame(), trace.Frame{FoundBy: trace.ByCFI, Details: &trace.FrameDetails{Lanes: []trace.LaneGroup{{Lanes: trace.LaneSet{7}, State: trace.LaneUnknown}}}})
	return s
}

// localsFrame is a frame with all that variables can have.
func localsFrame() trace.Frame {
	inner := trace.Value{Name: "", Role: trace.RoleBase, Type: "B", Status: trace.ValuePartial, Children: []trace.Value{{Name: "x", Status: trace.ValueOptimizedOut}}, More: 1 << 63}
	point := trace.Value{
		Name: "p", Type: "struct <p>", Text: "\"é\"", HasText: true, Status: trace.ValueFailed, Problem: "a problem", Address: 1, Space: 5, HasAddress: true,
		Children: []trace.Value{inner}, IsDeep: true,
	}
	x := trace.Value{Name: "x", Status: trace.ValueOK, HasText: true, HasAddress: true}
	return trace.Frame{FoundBy: trace.ByCFI, Symbols: []trace.Symbol{{Function: "in"}, {Function: "out"}}, Details: &trace.FrameDetails{Locals: [][]trace.FrameVariable{
		{
			{Variable: trace.Variable{Value: point, Kind: trace.KindParameter, Line: 3, IsArtificial: true, IsShadowed: true, MemorySpace: "group", Place: locexpr.MemoryLocation(0, 16)}, Lanes: trace.LaneSet{7}},
			{Variable: trace.Variable{Value: x, Kind: trace.KindStatic}},
		},
		{},
	}}}
}

// The JSON equals the output of encoding/json for a Report, byte for byte: indent, escapes,
// order of members and omissions.
func TestJSONIsThatOfAReport(t *testing.T) {
	for name, g := range map[string]*given{
		"nothing":     {Head: Head{Target: Target{Problems: []string{}}, Modules: []Module{}}},
		"a crash":     testReport(),
		"waves":       reportOf(waveStack("w"), everything(), waveStack("x")),
		"variables":   withVariables(),
		"guesses":     endings(),
		"goroutines":  goroutineStacks(),
		"no launcher": reportOf(&trace.Stack{Thread: &trace.Thread{Wave: &sdk.Wave{}, LaunchedBy: &trace.Launch{}}}),
	} {
		t.Run(name, func(t *testing.T) {
			var got, want bytes.Buffer
			if err := g.WriteJSON(&got); err != nil {
				t.Fatal(err)
			}
			if err := WriteJSON(&want, g.read(t)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want.String(), got.String()); d != "" {
				t.Errorf("(-encoding/json +got):\n%s", d)
			}
		})
	}
}

// Of a target with many threads the first are written before the last are walked,
// and the facts about the target once all were.
func TestJSONOfManyThreadsIsWrittenAsTheyCome(t *testing.T) {
	const n = 10000
	var b bytes.Buffer
	walked, early := 0, -1
	g := reportOf()
	r := g.report()
	r.each = func(yield func(*trace.Stack) bool) {
		for i := range n {
			if early < 0 && b.Len() > 0 {
				early = i
			}
			walked++
			if !yield(waveStack(fmt.Sprint("w", i))) {
				return
			}
		}
	}
	r.head = func(headDetail) Head {
		h := g.Head
		h.Target.Problems = []string{fmt.Sprint(walked, " were walked")}
		return h
	}
	if err := r.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	if early < 0 || early > n/2 {
		t.Errorf("nothing was written before stack %d of %d", early, n)
	}
	var got Report
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Threads) != n || got.Threads[n-1].ID != fmt.Sprint("w", n-1) {
		t.Errorf("%d threads, expected %d in their order", len(got.Threads), n)
	}
	if want := []string{fmt.Sprint(n, " were walked")}; !slices.Equal(got.Target.Problems, want) {
		t.Errorf("problems %q, expected %q", got.Target.Problems, want)
	}
}

// brokenWriter takes some bytes.
type brokenWriter struct{ left int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

// What cannot be written any more is not walked either.
func TestWritingThatFailsEndsTheWalk(t *testing.T) {
	for name, write := range map[string]func(*Stacks, io.Writer) error{
		"JSON": (*Stacks).WriteJSON,
		"text": func(s *Stacks, w io.Writer) error { return s.WriteText(w, TextOptions{NoFold: true}) },
	} {
		walked := 0
		r := reportOf().report()
		r.each = func(yield func(*trace.Stack) bool) {
			for i := range 100000 {
				walked++
				if !yield(waveStack(fmt.Sprint("w", i))) {
					return
				}
			}
		}
		if err := write(r, &brokenWriter{1 << 20}); !errors.Is(err, errBroken) {
			t.Errorf("%s: error %v, expected %v", name, err, errBroken)
		}
		if walked == 100000 {
			t.Errorf("%s: all stacks were walked for a writer that failed", name)
		}
	}
}

// Stacks one by one are written as they come, and problems that walking shows at
// their end.
func TestTextOneByOneIsWrittenAsItComes(t *testing.T) {
	var b bytes.Buffer
	g := reportOf()
	g.Target.Problems = []string{"known before"}
	r := g.report()
	early := 0
	r.each = func(yield func(*trace.Stack) bool) {
		for i := range 2000 {
			if b.Len() > 0 {
				early++
			}
			g.Target.Problems = []string{"known before", "known later"}
			if !yield(waveStack(fmt.Sprint("w", i))) {
				return
			}
		}
	}
	if err := r.WriteText(&b, TextOptions{NoFold: true}); err != nil {
		t.Fatal(err)
	}
	if early == 0 {
		t.Error("nothing was written before the last stack had come")
	}
	text := b.String()
	if !strings.HasPrefix(text, "snapshot s\nproblem: known before\n\nthread w0\n") || !strings.HasSuffix(text, "\n\nproblem: known later\n") ||
		strings.Count(text, "problem:") != 2 {
		t.Errorf("%.200s ... %s", text, text[max(0, len(text)-200):])
	}
}

// Stacks that differ in one thing that is printed are not folded.
func TestOnlyEqualStacksAreFolded(t *testing.T) {
	crashed := func(s *trace.Stack) { s.Thread.Crashed = true }
	for name, change := range map[string]func(*trace.Stack){
		"nothing":          nil,
		"thread":           func(s *trace.Stack) { s.Thread.ID, s.Thread.Name = "other", "name" },
		"crash":            crashed,
		"signal":           func(s *trace.Stack) { crashed(s); s.Thread.Signal = 6 },
		"stop":             func(s *trace.Stack) { s.Thread.Stop = &trace.Stop{Reason: sdk.StopTrap} },
		"PC":               func(s *trace.Stack) { s.Frames[0].PC++ },
		"how it was found": func(s *trace.Stack) { s.Frames[0].FoundBy = trace.ByCFI },
		"an inlined call":  func(s *trace.Stack) { s.Frames[0].Symbols = s.Frames[0].Symbols[1:] },
		"a function": func(s *trace.Stack) {
			s.Frames[0].Symbols = []trace.Symbol{{Function: "repair"}, {Function: "other"}}
		},
		"a frame more":    func(s *trace.Stack) { s.Frames = append(s.Frames, trace.Frame{}) },
		"lanes":           func(s *trace.Stack) { s.Frames[0].Lanes()[0].Lanes = trace.LaneSet{3} },
		"what lanes do":   func(s *trace.Stack) { s.Frames[0].Lanes()[2].State = trace.LaneUnknown },
		"where lanes are": func(s *trace.Stack) { s.Frames[0].Lanes()[1].PC++ },
		"a register": func(s *trace.Stack) {
			s.Frames[0].Details = &trace.FrameDetails{Registers: []trace.RegisterValue{{Name: "s0"}}, Lanes: s.Frames[0].Lanes()}
		},
		"the launcher":           func(s *trace.Stack) { s.Launchers[0].Launch = &trace.Launch{Thread: "8"} },
		"the launcher's frames":  func(s *trace.Stack) { s.Launchers[0].Frames = append(s.Launchers[0].Frames, trace.Frame{}) },
		"the launcher's problem": func(s *trace.Stack) { s.Launchers[0].Problem = "p" },
		"the end":                func(s *trace.Stack) { s.Launchers[0].Stopped.Reason = trace.StopNoModule },
		"why it ends":            func(s *trace.Stack) { s.Launchers[0].Stopped.Detail = "other" },
		"whose end it is":        func(s *trace.Stack) { s.Stopped = s.Launchers[0].Stopped },
		"no launcher":            func(s *trace.Stack) { s.Launchers = nil },
		"registers are its own": func(s *trace.Stack) {
			s.Frames[0].Details = &trace.FrameDetails{Registers: []trace.RegisterValue{{Name: "s0", Value: 1}}, Lanes: s.Frames[0].Lanes()}
		},
		"an end that is assumed":  func(s *trace.Stack) { s.Launchers, s.EndAssumed = nil, true },
		"an end that rests on it": func(s *trace.Stack) { s.Launchers, s.Frames[0].FoundBy = nil, trace.ByScan },
	} {
		t.Run(name, func(t *testing.T) {
			f := newStackFolder()
			f.add(waveStack("w"))
			s, groups := waveStack("w"), 2
			if change != nil {
				change(s)
			}
			if change == nil || name == "thread" {
				groups = 1
			}
			f.add(s)
			f.add(waveStack("v"))
			if len(f.groups) != groups {
				t.Errorf("%d stacks are printed, expected %d", len(f.groups), groups)
			}
			if n := f.groups[0].count; n != 4-groups {
				t.Errorf("%d threads have the first one, expected %d", n, 4-groups)
			}
		})
	}
}
