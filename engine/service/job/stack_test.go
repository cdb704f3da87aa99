// SPDX-License-Identifier: Apache-2.0

package job_test

import (
	"errors"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/service/job"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/enginetest"
)

const (
	examples   = "../../../examples/"
	serverCore = examples + "crash/server.core"
	mixed      = examples + "mixed/mixed.snapshot"
	gen        = examples + "gen/gen.snapshot"
)

func onlyCrashed(a *enginetest.Ask) { a.Stack.Crashed = true }

func twoFrames(a *enginetest.Ask) { a.Stack.Top = 2 }

// thread asks for one thread.
func thread(id string) func(*enginetest.Ask) {
	return func(a *enginetest.Ask) { a.Stack.Thread = id }
}

// TestCrashedThreadsAndInnermostFramesAlone prints less of a core, and of a snapshot in which no thread
// crashed.
func TestCrashedThreadsAndInnermostFramesAlone(t *testing.T) {
	t.Parallel()
	out := enginetest.Text(t, serverCore, onlyCrashed)
	if strings.Count(out, "thread") != 1 || !strings.Contains(out, ", crashed\n") {
		t.Errorf("printed\n%s", out)
	}
	out = enginetest.Text(t, serverCore, twoFrames)
	if strings.Count(out, "  #") != 5 { // one of them is an inlined call
		t.Errorf("printed\n%s", out)
	}
	for _, want := range []string{"\n  #2  0x0000000000401941 serve+0x11", "\n  ... 9 frames left out\n", "3 threads: 5267-5269\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	for _, th := range enginetest.Report(t, serverCore, onlyCrashed, twoFrames).Threads {
		if len(th.Frames) != 3 || len(th.LeftOut) != 1 || th.LeftOut[0].Index != 3 || th.LeftOut[0].Frames != 9 || th.Stopped.Reason != "outermost" {
			t.Errorf("thread %s: %d frames, %v, %v", th.ID, len(th.Frames), th.LeftOut, th.Stopped)
		}
	}
	// A wave's frames come first, its launcher's after them.
	out = enginetest.Text(t, mixed, thread("w0"), func(a *enginetest.Ask) { a.Stack.Top = 3 })
	whole := enginetest.Text(t, mixed, thread("w0"))
	if n := strings.Count(out, "  #"); n < 3 || !strings.HasPrefix(whole, strings.Split(out, "  ...")[0]) {
		t.Errorf("printed\n%s\nof\n%s", out, whole)
	}
	if _, err := enginetest.Write(t, gen, onlyCrashed); err == nil || !strings.Contains(err.Error(), "none of its") {
		t.Error(err)
	}
}

// TestStacksThatHaveNoMeaning has what contradicts itself, in the words of flags.
func TestStacksThatHaveNoMeaning(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set  func(*job.Stack)
		says string
	}{
		{func(s *job.Stack) { s.Crashed, s.Thread = true, "5266" }, "--crashed and --thread 5266"},
		{func(s *job.Stack) { s.Lane = new(uint32(99999999)) }, "--lane 99999999: expected 0 to"},
		{func(s *job.Stack) { s.Source = new(uint32(1001)) }, "--source 1001: expected 0 to 1000"},
		{func(s *job.Stack) { s.Code = 1001 }, "--code 1001: expected 1 to 1000"},
		{func(s *job.Stack) { s.Depth = 65 }, "--depth 65: expected 1 to 64"},
		{func(s *job.Stack) { s.Signature, s.Top = true, 3 }, "--top: --signature has no place for it"},
		{func(s *job.Stack) { s.Signature, s.MaxFrames = true, new(uint32(0)) }, "--max-frames: --signature has no place for it"},
		{func(s *job.Stack) { s.Signature, s.Format = true, "breakpad" }, "--format breakpad"},
		{func(s *job.Stack) { s.Signature, s.SignatureVersion = true, 3 }, "--signature-version 3: expected 1 to 2"},
		{func(s *job.Stack) { s.Format, s.Registers = "breakpad", true }, "--registers: --format breakpad has no place for it"},
		{func(s *job.Stack) { s.Format, s.Lanes = "breakpad", true }, "--lanes: --format breakpad has no place for it"},
		{func(s *job.Stack) { s.Format, s.Locals = "breakpad", true }, "--locals: --format breakpad has no place for it"},
		{func(s *job.Stack) { s.Format, s.Globals = "breakpad", []string{"lock"} }, "--globals: --format breakpad has no place for it"},
		{func(s *job.Stack) { s.Format, s.Source = "breakpad", new(uint32(3)) }, "--source: --format breakpad has no place for it"},
		{func(s *job.Stack) { s.Format, s.Code = "breakpad", 3 }, "--code: --format breakpad has no place for it"},
	} {
		s := job.NewStack()
		c.set(&s)
		if err := s.Check(); !errors.Is(err, job.ErrUsage) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, expected %q", err, c.says)
		}
	}
	for _, c := range []struct {
		ranges job.Ranges
		flag   string
		number int64
		says   string // "": the number is taken
	}{
		{job.StackRanges, "top", 0, "--top 0: expected 1 or more"},
		{job.StackRanges, "top", -1, "--top -1: expected 1 or more"},
		{job.StackRanges, "lane", -1, "--lane -1: expected 0 to 4095"},
		{job.StackRanges, "lane", 0, ""},
		{job.StackRanges, "signature-version", -1, "--signature-version -1: expected 1 to 2"},
		{job.StackRanges, "signature-version", 0, ""},
		{job.StackRanges, "max-frames", -1, "--max-frames -1: expected 0 or more"},
		{job.StackRanges, "max-frames", 0, ""},
		{job.ProfileRanges, "max-stack", 0, "--max-stack 0: expected 1 or more"},
		{job.EvaluateRanges, "frame", -1, "--frame -1: expected 0 or more"},
		{job.EvaluateRanges, "lane", -2, "--lane -2: expected 0 to 2147483647"},
		{job.EvaluateRanges, "iteration", -1, "--iteration -1: expected 0 or more"},
		{job.LimitRanges, "depth", 0, "--depth 0: expected 1 to 64"},
		{job.LimitRanges, "elements", 1 << 21, "--elements 2097152: expected 1 to 1048576"},
	} {
		says := ""
		if err := c.ranges[c.flag].Check(c.flag, c.number); err != nil {
			says = err.Error()
		}
		if says != c.says {
			t.Errorf("%q, expected %q", says, c.says)
		}
	}
}

// TestEqualStacksHaveEqualOptions completes options that say what is so without them.
func TestEqualStacksHaveEqualOptions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, like func(*job.Stack) }{
		{func(s *job.Stack) { s.MaxFrames = new(uint32(engine.DefaultMaxFrames)) }, func(*job.Stack) {}},
		{func(s *job.Stack) { s.Depth, s.Elements, s.SignatureVersion = 4, 200, trace.SignatureVersion }, func(*job.Stack) {}},
		{func(s *job.Stack) { s.MaxFrames = new(uint32(0)) }, func(s *job.Stack) { s.MaxFrames = new(uint32(engine.AllFrames)) }},
	} {
		got, want := job.NewStack(), job.NewStack()
		c.set(&got)
		c.like(&want)
		if err := errors.Join(got.Check(), got.Check(), want.Check()); err != nil || !proto.Equal(got, want) {
			t.Errorf("%v, expected %v (%v)", got, want, err)
		}
	}
	p, usual := job.NewProfile(), job.NewProfile()
	p.MaxStack = engine.DefaultMaxFrames
	if err := errors.Join(p.Check(), usual.Check()); err != nil || !proto.Equal(p, usual) {
		t.Errorf("%v, expected %v (%v)", p, usual, err)
	}
}

const serverSignature = "unwindd-2:5cfbecc3e9546971 content_length | read_body | serve | by_name | msort_with_tmp\n"

func signature(a *enginetest.Ask) { a.Stack.Signature = true }

func TestSignatureIsALine(t *testing.T) {
	t.Parallel()
	if out := enginetest.Text(t, serverCore, signature); out != serverSignature {
		t.Errorf("printed\n%s", out)
	}
	withPath := func(a *enginetest.Ask) { a.Stack.WithPath = true }
	for path, want := range map[string]string{serverCore: serverSignature, mixed: "unwindd-2:7b0cc5d98aee5d20 repair | grade\n"} {
		if out := enginetest.Text(t, path, signature, withPath); out != path+": "+want {
			t.Errorf("printed\n%s", out)
		}
	}
	first := enginetest.Text(t, serverCore, signature, func(a *enginetest.Ask) { a.Stack.SignatureVersion = 1 })
	if first != "unwindd-1:838e1f3e3c2c6ca8 content_length | read_body | serve | by_name | msort_with_tmp\n" {
		t.Errorf("printed\n%s", first)
	}
	// A thread that did not crash, where it is asked for.
	if out := enginetest.Text(t, serverCore, signature, thread("5267")); !strings.HasPrefix(out, "unwindd-2:") || out == serverSignature {
		t.Errorf("printed\n%s", out)
	}
	for _, c := range []struct{ path, thread, says string }{
		{gen, "", "expected --thread ID too"}, {serverCore, "9", "no thread 9"},
	} {
		if _, err := enginetest.Write(t, c.path, signature, thread(c.thread)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, expected %q", c.path, err, c.says)
		}
	}
}

// TestSignatureInJSON compares the JSON of a signature with that of the stack.
func TestSignatureInJSON(t *testing.T) {
	t.Parallel()
	one := enginetest.Signature(t, serverCore)
	if one.Path != serverCore || one.Version != 2 || one.Thread != "5266" || len(one.Frames) != 5 || !strings.HasPrefix(serverSignature, one.Signature+" ") {
		t.Errorf("%+v", one)
	}
	whole := func(*enginetest.Ask) {}
	for i, set := range []func(*enginetest.Ask){whole, twoFrames, func(a *enginetest.Ask) { a.Stack.MaxFrames = new(uint32(engine.AllFrames)) }} {
		for _, th := range enginetest.Report(t, serverCore, set).Threads {
			if th.Crashed != (th.Signature != nil) || th.Crashed && (th.Signature.Hash != one.Hash || len(th.Signature.Frames) != 5) {
				t.Errorf("%d: thread %s: %+v", i, th.ID, th.Signature)
			}
		}
	}
	for _, th := range enginetest.Report(t, serverCore, func(a *enginetest.Ask) { a.Stack.NoInlines = true }).Threads {
		if th.Signature != nil {
			t.Errorf("without inlined calls: %+v", th.Signature)
		}
	}
}

func TestStackOfALane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lane   uint32
		thread string
		says   string // in the text, or the error
	}{
		{63, "", "2 threads: w2 w3"},
		{64, "", "no thread has a frame of a lane 64"},
		// The last wave of grade has work for 36 lanes.
		{36, "w1", "no thread has a frame of a lane 36"},
	} {
		out, err := enginetest.Write(t, mixed, thread(c.thread), func(a *enginetest.Ask) { a.Stack.Lane = &c.lane })
		if err != nil {
			out = err.Error()
		}
		if !strings.Contains(out, c.says) || (err == nil) != (c.lane == 63) {
			t.Errorf("lane %d: %q, expected %q", c.lane, out, c.says)
		}
	}
}

// TestJSONHasLanesUnasked is about the lanes of physical frames, without lanes asked for.
func TestJSONHasLanesUnasked(t *testing.T) {
	t.Parallel()
	groups := map[string]int{}
	for _, th := range enginetest.Report(t, mixed).Threads {
		for _, f := range th.Frames {
			groups[th.ID] += len(f.Lanes)
			if f.Inlined && len(f.Lanes) > 0 {
				t.Errorf("thread %s: an inlined frame has lanes", th.ID)
			}
		}
	}
	for id, want := range map[string]int{"w0": 3, "w1": 3, "w2": 7, "w3": 7} {
		if groups[id] != want {
			t.Errorf("thread %s has %d groups of lanes, expected %d", id, groups[id], want)
		}
	}
}

// TestStackIsAsItsSchemaHasIt has every member of docs/stack.schema.json written, by which
// Report reads the JSON.
func TestStackIsAsItsSchemaHasIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path string
		set  func(*job.Stack)
	}{
		{serverCore, func(s *job.Stack) {
			s.Locals, s.Registers, s.Globals, s.Source = true, true, []string{"lock"}, new(uint32(3))
		}},
		{serverCore, func(s *job.Stack) { s.Locals, s.Depth = true, 1 }},
		{serverCore, func(s *job.Stack) { s.Code = 3 }},
		{mixed, func(s *job.Stack) { s.Locals = true }},
		{mixed, func(s *job.Stack) { s.Code = 5 }},
		{gen, func(s *job.Stack) { s.Locals, s.Registers = true, true }},
	} {
		enginetest.Report(t, c.path, func(a *enginetest.Ask) { c.set(&a.Stack) })
	}
}

func TestVersionIsFirstInJSON(t *testing.T) {
	t.Parallel()
	out := enginetest.Text(t, serverCore, func(a *enginetest.Ask) { a.Stack.Format = "json" })
	if !strings.HasPrefix(out, "{\n \"version\": 1,\n ") {
		t.Errorf("%.80s", out)
	}
}

func TestGlobalsThatNothingHasAreAMistake(t *testing.T) {
	t.Parallel()
	_, err := enginetest.Write(t, serverCore, func(a *enginetest.Ask) { a.Stack.Globals = []string{"waiting", "no_such"} })
	if err == nil || !strings.Contains(err.Error(), "no variable no_such") {
		t.Error(err)
	}
}

// variable is the text of a variable of a frame, or why there is none.
func variable(t *testing.T, path string, e job.Evaluate) string {
	t.Helper()
	if err := e.Check(true); err != nil {
		return err.Error()
	}
	target, err := enginetest.Engine(t, e.Engine(engine.Options{})).Open(path)
	if err != nil {
		t.Fatal(err)
	}
	found, err := e.Variable(t.Context(), target)
	if err != nil {
		return err.Error()
	}
	var b strings.Builder
	if err := found.WriteText(&b, report.TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if found.Err != nil {
		return found.Err.Error()
	}
	return b.String()
}

// TestVariablesByPath selects parts of variables.
func TestVariablesByPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, want, problem string }{
		{path: "bad", want: `bad = {line = "!POST /upload", headers = 0x7ffebe744c50}`},
		{path: "bad.line", want: `bad.line = "!POST /upload"`},
		{path: "bad.line[1]", want: `bad.line[1] = 80 'P'`},
		{path: "batch[1]->headers->value", want: `batch[1]->headers->value = 0x48d02a "example.org"`},
		{path: "*batch[0]->headers", want: `*batch[0]->headers = {name = 0x48d025 "Host", value = 0x48d02a "example.org", next = 0x0}`},
		{path: "**bad.headers->name", problem: "no part *"},
		{path: "waiting", want: "waiting = 3"}, // a global
		{path: "lock.__data.__nusers", want: "lock.__data.__nusers = 3"},
		{path: "bad.nothing", problem: "no part .nothing"},
		{path: "bad.line[64]", problem: "expected 0 to 63"},
		{path: "host.next->name", problem: "not in the target"},
		{path: "nothing", problem: "no variable nothing"},
		{path: "bad..line", problem: "expected the name of a member"},
		{path: "bad[x]", problem: "expected a number"},
		{path: "", problem: "--arch is missing"},
	} {
		e := job.NewEvaluate()
		e.Frame, e.Var = 7, c.path
		got := variable(t, serverCore, e)
		if c.want != "" && strings.TrimSpace(got) != c.want || !strings.Contains(got, c.problem) {
			t.Errorf("%s: %q, expected %q", c.path, got, c.want+c.problem)
		}
	}
}

// TestVariableOfALane has variables of lanes that are at several places in one frame.
func TestVariableOfALane(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		thread string
		frame  uint32
		lane   uint32
		name   string
		want   string
	}{
		{"w0", 0, 24, "wear", "wear = 27\n"},
		{"w0", 0, 16, "wear", "wear = 18\n"},
		{"w0", 0, 0, "wear", "wear = <optimized out>\n"}, // the kernel's parameter: the lane is in no inlined call
		{"w0", 0, 0, "w", "w = 0\n"},
		{"w2", 1, 50, "front", "front = 21\n"},
		{"w2", 0, 50, "left", "where lane 50 is in frame 0 is not known"},
		{"w2", 0, 0, "left", "lane 0 did not call the function of frame 0"},
		{"w2", 0, 64, "left", "lane 64 of a thread with 64"},
	} {
		e := job.NewEvaluate()
		e.Thread, e.Frame, e.Lane, e.Var = c.thread, c.frame, &c.lane, c.name
		if got := variable(t, mixed, e); !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q", c, got)
		}
	}
}
