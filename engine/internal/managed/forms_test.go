// SPDX-License-Identifier: Apache-2.0

package managed_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/internal/schema"
	"github.com/unwindd/unwindd/sdk"
)

// written returns stacks in a form.
func written(t *testing.T, target *engine.Target, write func(s *report.Stacks, b *bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(report.NewStacks(target, target.Stacks(t.Context())), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// checked reads the JSON of stacks, which has to be as its schema says.
func checked(t *testing.T, target *engine.Target) *report.Report {
	t.Helper()
	text := written(t, target, func(s *report.Stacks, b *bytes.Buffer) error { return s.WriteJSON(b) })
	var document any
	r := &report.Report{}
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range schema.Docs(t, "stack.schema.json").Check("stack", document) {
		t.Error(wrong)
	}
	return r
}

func TestJSONHasManagedFramesAndTheNativeOnesBehind(t *testing.T) {
	r := checked(t, open(t, serverCore, engine.Options{}, newFake()))
	i := slices.IndexFunc(r.Threads, func(th report.Thread) bool { return th.Crashed })
	frames := r.Threads[i].Frames
	count := 0
	for k := range frames {
		f := &frames[k]
		if f.Index != k {
			t.Fatalf("frame %d has the index %d", k, f.Index)
		}
		if f.Managed == nil {
			continue
		}
		count++
		if *f.Managed != (report.Managed{Runtime: "script", Kind: "interpreted"}) || f.FoundBy != "runtime" || f.Module != nil || f.Line != 7 {
			t.Errorf("frame %d: %+v", k, f)
		}
		if next := &frames[k+1]; !next.BehindManaged || next.Function != "serve" || next.PC != f.PC || next.CFA != f.CFA {
			t.Errorf("behind frame %d: %+v", k, next)
		}
	}
	if count == 0 {
		t.Error("no managed frame")
	}
	if own := r.Threads[i].FirstOwnFrame; own == nil || frames[*own].Function == "serve" {
		t.Errorf("the program's own frame is %v", own)
	}
}

func TestOtherFormsHaveManagedFrames(t *testing.T) {
	target := open(t, serverCore, engine.Options{}, newFake())
	page := written(t, target, func(s *report.Stacks, b *bytes.Buffer) error { return s.WritePage(b, report.TextOptions{}) })
	markdown := written(t, target, func(s *report.Stacks, b *bytes.Buffer) error { return s.WriteMarkdown(b, report.TextOptions{}, 0) })
	for form, text := range map[string]string{"page": page, "markdown": markdown} {
		if !strings.Contains(text, "Handler.serve") || !strings.Contains(text, "of the runtime script") {
			t.Errorf("the %s has no managed frame or no note", form)
		}
	}
	// The format of minidump-stackwalk has frames of the machine alone.
	plain := open(t, serverCore, engine.Options{})
	breakpad := func(target *engine.Target) string {
		return written(t, target, func(s *report.Stacks, b *bytes.Buffer) error { return s.WriteBreakpad(t.Context(), b, target) })
	}
	if got := breakpad(target); got != breakpad(plain) {
		t.Errorf("the JSON of minidump-stackwalk differs:\n%s", got)
	}
}

func TestSignaturesAreOfTheLanguage(t *testing.T) {
	target := open(t, serverCore, engine.Options{}, newFake())
	signed := target.Signature(crashed(t, target), target.Fact(t.Context()))
	if !slices.Contains(signed.Frames, "Handler.serve") || slices.Contains(signed.Frames, "serve") {
		t.Errorf("signature %q", signed.Frames)
	}
}

// TestNamesOfALanguageAreNotReduced has functions with the names of C's machinery, and such as
// rules for C++ would cut.
func TestNamesOfALanguageAreNotReduced(t *testing.T) {
	f := newFake()
	f.frames = func(_ sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		a := scripted(req)
		names := []string{"abort", "<module>", "operator <(int)"}
		for i := range a.Stacks {
			for k := range a.Stacks[i].Runs {
				a.Stacks[i].Runs[k].Frames[0].Function = names[k%len(names)]
			}
		}
		return a, nil
	}
	target := open(t, serverCore, engine.Options{}, f)
	signed := target.Signature(crashed(t, target), "")
	for _, name := range []string{"abort", "<module>", "operator <(int)"} {
		if !slices.Contains(signed.Frames, name) {
			t.Errorf("signature %q has no %s", signed.Frames, name)
		}
	}
}

func TestJSONOfThreadsOfARuntime(t *testing.T) {
	f := newFake()
	f.answer = sdk.OpenRuntimeAnswer{HasThreads: true}
	f.threads = func(sdk.RuntimeEngine, *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
		return &sdk.ManagedThreadsAnswer{Threads: []sdk.ManagedThread{
			{Number: 3, Name: "timer", State: "waiting", WaitsFor: []uint64{9}, Frames: []sdk.ManagedFrame{{Function: "sleep", Kind: sdk.Builtin}}},
		}}, nil
	}
	r := checked(t, open(t, serverCore, engine.Options{}, f).WithGoroutines(t.Context()))
	th := r.Threads[len(r.Threads)-1]
	m := th.ManagedThread
	if m == nil || th.Goroutine != nil || m.Runtime != "script" || m.Kind != "task" || m.ID != 3 || !slices.Equal(m.WaitsFor, []uint64{9}) {
		t.Errorf("found %+v", m)
	}
	if len(th.Frames) != 1 || th.Frames[0].Managed.Kind != "builtin" {
		t.Errorf("frames: %+v", th.Frames)
	}
}
