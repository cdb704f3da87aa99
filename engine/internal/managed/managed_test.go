// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

const serverCore = "../../../examples/crash/server.core"

// fake is a runtime that executes the function serve of the server: each of its frames is one of
// a script.
type fake struct {
	sdk.RuntimeBase
	about   sdk.RuntimeDescription
	answer  sdk.OpenRuntimeAnswer
	frames  func(e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error)
	rules   func(req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error)
	threads func(e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error)

	opened, asked atomic.Int32
	request       atomic.Pointer[sdk.OpenRuntimeRequest]
}

func newFake() *fake {
	f := &fake{
		about: sdk.RuntimeDescription{
			Name: "script", Version: "1", Recognises: []sdk.RuntimeRecogniser{{Section: ".text", Symbol: "serve"}},
			Symbols:    []string{"waiting", "serve", "no such symbol"},
			Types:      []sdk.RuntimeType{{Name: "request", Members: []string{"line", "headers"}}, {Name: "no_such_type"}},
			ThreadKind: "task",
		},
		answer: sdk.OpenRuntimeAnswer{HasFrames: true},
	}
	f.frames = func(_ sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		return scripted(req), nil
	}
	return f
}

// scripted answers with a frame of the script for each native frame of serve.
func scripted(req *sdk.ManagedFramesRequest) *sdk.ManagedFramesAnswer {
	a := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
	for i, th := range req.Threads {
		for k, f := range th.Frames {
			if f.Function != "serve" {
				continue
			}
			out := sdk.ManagedFrame{Function: "Handler.serve", File: "handler.scr", Line: 7, Kind: sdk.Interpreted}
			if req.Variables {
				out.Variables = []sdk.ManagedVariable{
					{Name: "self", Type: "Handler", Text: "<Handler>", IsParam: true, Children: []sdk.ManagedVariable{{Name: "depth", Type: "int", Text: "3"}}},
					{Name: "result", Status: sdk.ValueUnset},
					{Name: "broken", Status: sdk.ValueUnreadable, Text: "its object is not in the target"},
				}
			}
			a.Stacks[i].Runs = append(a.Stacks[i].Runs, sdk.ManagedRun{First: uint32(k), Count: 1, Frames: []sdk.ManagedFrame{out}}) //nolint:gosec // small
		}
	}
	return a
}

func (f *fake) Describe(context.Context) (*sdk.RuntimeDescription, error) { return &f.about, nil }

func (f *fake) OpenRuntime(_ context.Context, _ sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	f.opened.Add(1)
	f.request.Store(req)
	answer := f.answer
	return &answer, nil
}

func (f *fake) ManagedFrames(_ context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	f.asked.Add(1)
	return f.frames(e, req)
}

func (f *fake) CodeRules(_ context.Context, _ sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	f.asked.Add(1)
	return f.rules(req)
}

func (f *fake) ManagedThreads(_ context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	return f.threads(e, req)
}

// open opens a target with runtimes.
func open(t testing.TB, path string, o engine.Options, runtimes ...sdk.Runtime) *engine.Target {
	t.Helper()
	o.InProcess, o.InProcessRuntimes = []sdk.Architecture{x86_64.New()}, runtimes
	e, err := engine.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	target, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

// summary describes a stack, a frame in a line.
func summary(s *trace.Stack) (list []string) {
	for i := range s.Frames {
		f := &s.Frames[i]
		line := string(f.FoundBy)
		if m := f.Managed(); m != nil {
			line += fmt.Sprintf(" %s/%s", m.Runtime, m.Kind)
		}
		if f.BehindManaged {
			line += " behind"
		}
		for k := range f.Symbols {
			line += " " + f.Symbols[k].Function
		}
		list = append(list, line)
	}
	return list
}

// crashed walks the crashed thread.
func crashed(t testing.TB, target *engine.Target) *trace.Stack {
	t.Helper()
	for s := range target.Stacks(t.Context()) {
		if s.Thread.Crashed {
			return s
		}
	}
	t.Fatal("no thread crashed")
	return nil
}

// native returns the summary of the crashed thread without runtimes.
func native(t testing.TB) []string { return summary(crashed(t, open(t, serverCore, engine.Options{}))) }

func text(t testing.TB, target *engine.Target, o report.TextOptions) string {
	t.Helper()
	var b bytes.Buffer
	if err := report.NewStacks(target, target.Stacks(t.Context())).WriteText(&b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFramesOfARuntimeStandForNativeOnes(t *testing.T) {
	f := newFake()
	target := open(t, serverCore, engine.Options{}, f)
	s := crashed(t, target)
	var want []string
	for _, line := range native(t) {
		if strings.HasSuffix(line, " serve") {
			method, rest, _ := strings.Cut(line, " ")
			want = append(want, "runtime script/interpreted Handler.serve", method+" behind "+rest)
			continue
		}
		want = append(want, line)
	}
	if got := summary(s); !slices.Equal(got, want) {
		t.Errorf("found\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := f.opened.Load(); n != 1 {
		t.Errorf("opened %d times", n)
	}
	if n := f.asked.Load(); n != 1 {
		t.Errorf("asked %d times about the stacks of %d threads, expected once", n, len(target.Threads()))
	}
	for i := range s.Frames {
		if m := s.Frames[i].Managed(); m != nil && s.Frames[i].PC != s.Frames[i+1].PC {
			t.Errorf("frame %d has another PC than the native frame that it stands for", i)
		}
	}
	if walked := target.Walk(t.Context(), s.Thread); !slices.Equal(summary(walked), want) {
		t.Errorf("Walk: found\n%s", strings.Join(summary(walked), "\n"))
	}
}

func TestTextFoldsNativeFramesBehindManagedOnes(t *testing.T) {
	target := open(t, serverCore, engine.Options{}, newFake())
	folded := text(t, target, report.TextOptions{})
	for _, part := range []string{"interpreted", "Handler.serve handler.scr:7", "... 1 frame of the runtime script (frame #"} {
		if !strings.Contains(folded, part) {
			t.Errorf("no %q in\n%s", part, folded)
		}
	}
	if strings.Contains(folded, " serve+") {
		t.Errorf("a native frame is shown:\n%s", folded)
	}
	if all := text(t, target, report.TextOptions{NoFold: true}); !strings.Contains(all, " serve+") || strings.Contains(all, "frame of the runtime") {
		t.Errorf("without folding:\n%s", all)
	}
}

func TestRuntimesAreToldOfTheirModule(t *testing.T) {
	f := newFake()
	target := open(t, serverCore, engine.Options{}, f)
	crashed(t, target)
	req := f.request.Load()
	if len(req.Threads) != len(target.Threads()) || !req.HasDebugInfo || req.AddressBits != 64 || len(req.Segments) == 0 || req.MemorySize == 0 || len(req.Sections) < 2 {
		t.Errorf("request: %+v", req)
	}
	if s := req.Symbols; !s[0].IsKnown || s[0].Size != 4 || !s[1].IsKnown || s[2].IsKnown {
		t.Errorf("symbols: %+v", s)
	}
	if l := req.Types[0]; l.Size != 72 || l.Problem != "" || l.Members[0] != (sdk.MemberPlace{Offset: 0, Size: 64}) || l.Members[1] != (sdk.MemberPlace{Offset: 64, Size: 8}) {
		t.Errorf("layout: %+v", l)
	}
	if l := req.Types[1]; l.Problem == "" || l.Members != nil {
		t.Errorf("layout of a type that is not there: %+v", l)
	}
}

func TestARuntimeThatNoModuleHasIsNotAsked(t *testing.T) {
	for _, r := range []sdk.RuntimeRecogniser{{Symbol: "no such symbol"}, {Section: ".no", Symbol: "serve"}, {BuildID: []byte{1}, Symbol: "serve"}} {
		f := newFake()
		f.about.Recognises = []sdk.RuntimeRecogniser{r}
		if got := summary(crashed(t, open(t, serverCore, engine.Options{}, f))); !slices.Equal(got, native(t)) || f.opened.Load() != 0 {
			t.Errorf("%+v: opened %d times", r, f.opened.Load())
		}
	}
}

func TestVariablesOfManagedFrames(t *testing.T) {
	limits := trace.DefaultValueLimits
	s := crashed(t, open(t, serverCore, engine.Options{Locals: &limits}, newFake()))
	i := slices.IndexFunc(s.Frames, func(f trace.Frame) bool { return !f.IsNative() })
	list := s.Frames[i].Locals()[0]
	if v := &list[0]; v.Kind != trace.KindParameter || v.Text != "<Handler>" || len(v.Children) != 1 || v.Children[0].Text != "3" {
		t.Errorf("self: %+v", v)
	}
	if list[1].Status != trace.ValueUnset || list[2].Status != trace.ValueFailed || list[2].Problem == "" {
		t.Errorf("found %+v", list[1:])
	}
	shallow := trace.ValueLimits{Depth: 0, Elements: 1}
	s = crashed(t, open(t, serverCore, engine.Options{Locals: &shallow}, newFake()))
	if v := &s.Frames[i].Locals()[0][0]; len(v.Children) != 0 || !v.IsDeep {
		t.Errorf("without depth: %+v", v)
	}
}

// hostile answers leave the native stack as it is, and a problem.
func TestHostileFramesLeaveTheNativeStack(t *testing.T) {
	one := []sdk.ManagedFrame{{Function: "f"}}
	for name, runs := range map[string][]sdk.ManagedRun{
		"beyond":     {{First: 1 << 20, Count: 1, Frames: one}},
		"too many":   {{First: 0, Count: 1 << 31, Frames: one}},
		"overflow":   {{First: 1<<32 - 1, Count: 1<<32 - 1, Frames: one}},
		"order":      {{First: 2, Count: 1, Frames: one}, {First: 1, Count: 1, Frames: one}},
		"overlap":    {{First: 0, Count: 2, Frames: one}, {First: 1, Count: 1, Frames: one}},
		"no frames":  {{First: 0, Count: 1}},
		"no text":    {{First: 0, Count: 1, Frames: []sdk.ManagedFrame{{Function: "\xff"}}}},
		"no kind":    {{First: 0, Count: 1, Frames: []sdk.ManagedFrame{{Kind: 200}}}},
		"other list": nil,
	} {
		f := newFake()
		f.frames = func(_ sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
			a := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
			for i := range a.Stacks {
				a.Stacks[i].Runs = runs
			}
			if runs == nil {
				a.Stacks = a.Stacks[1:]
			}
			return a, nil
		}
		target := open(t, serverCore, engine.Options{}, f)
		if got := summary(crashed(t, target)); !slices.Equal(got, native(t)) {
			t.Errorf("%s: found\n%s", name, strings.Join(got, "\n"))
		}
		if !slices.ContainsFunc(target.Problems(), func(p string) bool { return strings.Contains(p, "script") }) {
			t.Errorf("%s: no problem among %q", name, target.Problems())
		}
	}
}

func TestAddedFramesAreBounded(t *testing.T) {
	f := newFake()
	f.frames = func(_ sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		a := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
		for i := range a.Stacks {
			a.Stacks[i].Runs = []sdk.ManagedRun{{Frames: make([]sdk.ManagedFrame, 1000)}}
		}
		return a, nil
	}
	target := open(t, serverCore, engine.Options{MaxFrames: 100}, f)
	s := crashed(t, target)
	if n := len(native(t)); len(s.Frames) != 100+n {
		t.Errorf("%d frames, expected 100 and %d native ones", len(s.Frames), n)
	}
}

func TestARuntimeThatForgotIsOpenedAgain(t *testing.T) {
	f := newFake()
	f.frames = func(_ sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		if f.opened.Load() == 1 {
			return nil, sdk.ErrObjectNotOpen
		}
		return scripted(req), nil
	}
	target := open(t, serverCore, engine.Options{}, f)
	if got := summary(crashed(t, target)); slices.Equal(got, native(t)) || f.opened.Load() != 2 {
		t.Errorf("opened %d times, found\n%s", f.opened.Load(), strings.Join(got, "\n"))
	}
}

func TestARuntimeThatFailsIsNotAskedForEver(t *testing.T) {
	f := newFake()
	f.frames = func(sdk.RuntimeEngine, *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		return nil, errors.New("out of order")
	}
	target := open(t, serverCore, engine.Options{}, f)
	for range 10 {
		if got := summary(target.Walk(t.Context(), target.Crashed())); !slices.Equal(got, native(t)) {
			t.Fatalf("found\n%s", strings.Join(got, "\n"))
		}
	}
	if n := f.asked.Load(); n != 3 {
		t.Errorf("asked %d times, expected 3", n)
	}
	if !slices.ContainsFunc(target.Problems(), func(p string) bool { return strings.Contains(p, "out of order") }) {
		t.Errorf("problems: %q", target.Problems())
	}
}

// TestSnapshotsHaveTheMemoryThatRuntimesRead walks a snapshot, whose runtime reads a variable that
// no native walk does.
func TestSnapshotsHaveTheMemoryThatRuntimesRead(t *testing.T) {
	newReader := func() *fake {
		f := newFake()
		f.answer.HasThreads = true
		read := func(e sdk.RuntimeEngine, behind uint64) (string, error) {
			b := make([]byte, 4)
			_, err := e.ReadMemory(t.Context(), sdk.MemoryRange{Address: f.request.Load().Symbols[0].Address + behind, Lane: -1}, b)
			return fmt.Sprintf("after %x waited", b), err
		}
		f.frames = func(e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
			if !req.Variables {
				return scripted(req), nil
			}
			name, err := read(e, 0)
			if err != nil {
				return nil, err
			}
			a := scripted(req)
			for i := range a.Stacks {
				for k := range a.Stacks[i].Runs {
					a.Stacks[i].Runs[k].Frames[0].Function = name
				}
			}
			return a, nil
		}
		f.threads = func(e sdk.RuntimeEngine, _ *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
			name, err := read(e, 0x2000)
			return &sdk.ManagedThreadsAnswer{Threads: []sdk.ManagedThread{{Number: 1, Frames: []sdk.ManagedFrame{{Function: name}}}}}, err
		}
		return f
	}
	locals := engine.Options{Locals: &trace.ValueLimits{Depth: 1, Elements: 1}}
	all := func(target *engine.Target) (list []string) {
		for s := range target.WithGoroutines(t.Context()).Stacks(t.Context()) {
			if s.Thread.Crashed || s.Thread.Goroutine != nil {
				list = append(list, summary(s)...)
			}
		}
		return list
	}
	want := all(open(t, serverCore, locals, newReader()))
	snapshot, err := open(t, serverCore, engine.Options{}, newReader()).Snapshot(t.Context(), engine.SnapshotOptions{Files: true, AnyFile: true})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := snapshot.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/server.snapshot"
	writeFile(t, path, b.Bytes())
	if got := all(open(t, path, locals, newReader())); !slices.Equal(got, want) || strings.Count(strings.Join(want, "\n"), " waited") < 2 {
		t.Errorf("found\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestCodeOfARuntime gives a runtime the code of one function, with the rows that call frame
// information has of it.
func TestCodeOfARuntime(t *testing.T) {
	plain := open(t, serverCore, engine.Options{})
	s := crashed(t, plain)
	at := slices.IndexFunc(s.Frames, func(f trace.Frame) bool { return len(f.Symbols) == 1 && f.Symbols[0].Function == "serve" })
	pc := s.Frames[at].PC - 1
	start := s.Frames[at].Symbols[0].Start
	segment := plain.Process().Segment(pc)
	row, err := segment.Module.Row(t.Context(), segment.ObjectAddress(pc)+1, false)
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	f.answer = sdk.OpenRuntimeAnswer{Code: []sdk.RuntimeCode{{Start: start, End: start + 0x100, Name: "code"}}}
	rules := func(req *sdk.CodeRulesRequest) *sdk.CodeRulesAnswer {
		a := &sdk.CodeRulesAnswer{}
		for range req.PCs {
			own := *row.Rules
			a.Code = append(a.Code, sdk.CodeRules{Start: start, End: start + 0x100, Rows: []cfi.Row{own}, Frames: []sdk.ManagedFrame{
				{Function: "inlined", File: "a.scr", Line: 1, Kind: sdk.Compiled}, {Function: "outer", File: "a.scr", Line: 2, Kind: sdk.Compiled},
			}})
		}
		return a
	}
	f.rules = func(req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) { return rules(req), nil }
	made := crashed(t, open(t, serverCore, engine.Options{}, f))
	if len(made.Frames) != len(s.Frames) {
		t.Fatalf("%d frames, expected %d:\n%s", len(made.Frames), len(s.Frames), strings.Join(summary(made), "\n"))
	}
	g := &made.Frames[at]
	if m := g.Managed(); m == nil || !m.IsNative || m.Kind != trace.ManagedCompiled || len(g.Symbols) != 2 || g.Symbols[1].Function != "outer" || !g.Symbols[0].Inlined {
		t.Errorf("found %+v", g)
	}
	if next := made.Frames[at+1].FoundBy; next != trace.ByRuntime {
		t.Errorf("the caller was found by %s", next)
	}
	if n := f.asked.Load(); n != 1 {
		t.Errorf("asked %d times, expected once", n)
	}
	for name, damage := range map[string]func(*sdk.CodeRules){
		"PC outside":    func(r *sdk.CodeRules) { r.End = r.Start + 1 },
		"outside":       func(r *sdk.CodeRules) { r.Start -= 0x1000 },
		"rows outside":  func(r *sdk.CodeRules) { r.Rows[0].End = r.End + 1 },
		"no register":   func(r *sdk.CodeRules) { r.Rows[0].CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: 1 << 20} },
		"no function":   func(r *sdk.CodeRules) { *r = sdk.CodeRules{Reason: "none"} },
		"empty range":   func(r *sdk.CodeRules) { r.End = r.Start },
		"wrapped range": func(r *sdk.CodeRules) { r.Start, r.End = r.End, r.Start },
	} {
		f.rules = func(req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
			a := rules(req)
			for i := range a.Code {
				damage(&a.Code[i])
			}
			return a, nil
		}
		if got := summary(crashed(t, open(t, serverCore, engine.Options{}, f))); !slices.Equal(got, summary(s)) {
			t.Errorf("%s: found\n%s", name, strings.Join(got, "\n"))
		}
	}
}

// TestThreadsOfARuntime lists a task that a thread executes, one that was parked with the
// registers of a thread, one without a native stack, and two whose place is not known.
func TestThreadsOfARuntime(t *testing.T) {
	f := newFake()
	f.answer = sdk.OpenRuntimeAnswer{HasThreads: true}
	plain := open(t, serverCore, engine.Options{})
	main := plain.Crashed()
	other := plain.Threads()[slices.IndexFunc(plain.Threads(), func(th *trace.Thread) bool { return th != main })]
	f.threads = func(_ sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
		return &sdk.ManagedThreadsAnswer{Threads: []sdk.ManagedThread{
			{Number: 1, State: "running", Carrier: main.ID, IsMounted: true, StartedAt: f.request.Load().Symbols[1].Address},
			{Number: 2, State: "waiting", Reason: "read", Parent: 1, WaitsFor: []uint64{3}, Registers: other.Registers},
			{Number: 3, Name: "timer", State: "waiting", Frames: []sdk.ManagedFrame{{Function: "sleep", File: "t.scr", Line: 3}}},
			{Number: 4, State: "running", Carrier: "77777", IsMounted: true},
			{Number: 5, State: "new", Problem: "it has not begun"},
		}}, nil
	}
	target := open(t, serverCore, engine.Options{}, f).WithGoroutines(t.Context())
	found := map[string]*trace.Stack{}
	for s := range target.Stacks(t.Context()) {
		found[s.Thread.ID] = s
	}
	if len(found) != len(plain.Threads())+5 {
		t.Fatalf("%d threads", len(found))
	}
	pcs := func(s *trace.Stack) (list []uint64) {
		for i := range s.Frames {
			list = append(list, s.Frames[i].PC)
		}
		return list
	}
	if s := found["task 1"]; !slices.Equal(pcs(s), pcs(found[main.ID])) || !s.Thread.Crashed || s.Thread.Name != "serve" {
		t.Errorf("task 1: %+v", s.Thread)
	}
	if e := found[main.ID].Thread.Executes; e == nil || e.ID != "task 1" {
		t.Errorf("the thread executes %+v", e)
	}
	if s := found["task 2"]; !slices.Equal(pcs(s), pcs(found[other.ID])) || s.Thread.Goroutine.WaitReason != "read" || !slices.Equal(s.Thread.Goroutine.WaitsFor, []uint64{3}) {
		t.Errorf("task 2: %+v", s.Thread.Goroutine)
	}
	if s := found["task 3"]; len(s.Frames) != 1 || s.Frames[0].Symbols[0].Function != "sleep" || s.Thread.Name != "timer" || s.Stopped.Reason != trace.StopOutermost {
		t.Errorf("task 3: %+v", s)
	}
	if s := found["task 4"]; len(s.Frames) != 0 || s.Thread.Problem != "thread 77777, which executes it, is not in the target" {
		t.Errorf("task 4: %+v", s)
	}
	if s := found["task 5"]; s.Thread.Problem != "it has not begun" {
		t.Errorf("task 5: %+v", s)
	}
	if all := text(t, target, report.TextOptions{}); !strings.Contains(all, "task 2 [read]") {
		t.Errorf("found\n%s", all)
	}
}

// TestAThreadThatIsExecutedHasTheFramesOfItsCarrier lists a task that a thread executes, and one
// with the registers of a thread: the runtime knows frames of threads alone.
func TestAThreadThatIsExecutedHasTheFramesOfItsCarrier(t *testing.T) {
	f := newFake()
	f.answer.HasThreads = true
	main := open(t, serverCore, engine.Options{}).Crashed()
	f.threads = func(sdk.RuntimeEngine, *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
		return &sdk.ManagedThreadsAnswer{Threads: []sdk.ManagedThread{
			{Number: 1, State: "running", Carrier: main.ID, IsMounted: true}, {Number: 2, State: "waiting", Registers: main.Registers},
		}}, nil
	}
	found := map[string][]string{}
	for s := range open(t, serverCore, engine.Options{}, f).WithGoroutines(t.Context()).Stacks(t.Context()) {
		found[s.Thread.ID] = summary(s)
	}
	carrier := found[main.ID]
	if !strings.Contains(strings.Join(carrier, "\n"), "Handler.serve") || !slices.Equal(found["task 1"], carrier) {
		t.Errorf("the carrier has\n%s\ntask 1 has\n%s", strings.Join(carrier, "\n"), strings.Join(found["task 1"], "\n"))
	}
	if slices.Equal(found["task 2"], carrier) {
		t.Error("task 2 has frames of a thread that does not execute it")
	}
}

func TestCodeInAnotherModuleIsRefused(t *testing.T) {
	plain := open(t, serverCore, engine.Options{})
	var other trace.Segment
	for _, m := range plain.Modules() {
		for _, s := range m.Segments {
			if strings.Contains(m.Path, "vdso") && s.Executable {
				other = s
			}
		}
	}
	if other.Size == 0 {
		t.Fatal("the core has no code of the vDSO")
	}
	f := newFake()
	f.answer = sdk.OpenRuntimeAnswer{Code: []sdk.RuntimeCode{{Start: other.Start, End: other.Start + other.Size}}}
	f.rules = func(*sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) { return nil, errors.New("not expected") }
	target := open(t, serverCore, engine.Options{}, f)
	crashed(t, target)
	target.Symbolize(t.Context(), []uint64{other.Start + other.Size/2})
	if !slices.ContainsFunc(target.Problems(), func(p string) bool { return strings.Contains(p, "is not used: it is in") }) || f.asked.Load() != 0 {
		t.Errorf("asked %d times, problems %q", f.asked.Load(), target.Problems())
	}
}

// TestTheFirstOfTwoRuntimesCounts has two that stand for the same native frames.
func TestTheFirstOfTwoRuntimesCounts(t *testing.T) {
	first, second := newFake(), newFake()
	second.about.Name = "zother"
	target := open(t, serverCore, engine.Options{}, first, second)
	s := crashed(t, target)
	for i := range s.Frames {
		if m := s.Frames[i].Managed(); m != nil && m.Runtime != "script" {
			t.Errorf("frame %d is of %s", i, m.Runtime)
		}
	}
	if !slices.ContainsFunc(target.Problems(), func(p string) bool { return strings.Contains(p, "another runtime has frames for these") }) {
		t.Errorf("problems: %q", target.Problems())
	}
}
