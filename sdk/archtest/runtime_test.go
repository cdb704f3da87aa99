// SPDX-License-Identifier: Apache-2.0

package archtest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/unwindd/unwindd/sdk"
	"github.com/unwindd/unwindd/sdk/archtest"
)

// script is a whole runtime: a description.
type script struct{ sdk.RuntimeBase }

func (script) Describe(context.Context) (*sdk.RuntimeDescription, error) {
	return &sdk.RuntimeDescription{
		Name: "script", Version: "1", Recognises: []sdk.RuntimeRecogniser{{Symbol: "script_run"}}, Symbols: []string{"script_state"},
		Types: []sdk.RuntimeType{{Name: "State", Members: []string{"frame"}}},
	}, nil
}

// badScript is script with one fault.
type badScript struct {
	script
	describe func(*sdk.RuntimeDescription)
	open     func(context.Context, sdk.RuntimeEngine, *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error)
	code     func(*sdk.CodeRulesRequest, *sdk.CodeRulesAnswer)
	frames   func(*sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error)
	threads  func() (*sdk.ManagedThreadsAnswer, error)
}

func (b *badScript) Describe(ctx context.Context) (*sdk.RuntimeDescription, error) {
	d, err := b.script.Describe(ctx)
	if b.describe != nil {
		b.describe(d)
	}
	return d, err
}

func (b *badScript) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	if b.open != nil {
		return b.open(ctx, e, req)
	}
	return b.script.OpenRuntime(ctx, e, req)
}

func (b *badScript) CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error) {
	a, err := b.script.CodeRules(ctx, e, req)
	if b.code != nil {
		b.code(req, a)
	}
	return a, err
}

func (b *badScript) ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	if b.frames != nil {
		return b.frames(req)
	}
	return b.script.ManagedFrames(ctx, e, req)
}

func (b *badScript) ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	if b.threads != nil {
		return b.threads()
	}
	return b.script.ManagedThreads(ctx, e, req)
}

// module is a module with the runtime and a thread of two native frames.
func module() archtest.RuntimeModule {
	return archtest.RuntimeModule{
		Name: "program", Request: sdk.OpenRuntimeRequest{Runtime: 5, Path: "program", Threads: []sdk.RuntimeThread{{Thread: 3}}},
		Stacks: []sdk.NativeStack{{Thread: 3, Frames: make([]sdk.NativeFrame, 2)}},
	}
}

// opens answers about the module alone.
func opens(answer sdk.OpenRuntimeAnswer) func(context.Context, sdk.RuntimeEngine, *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	return func(_ context.Context, _ sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
		if req.Path != "program" {
			return &sdk.OpenRuntimeAnswer{}, nil
		}
		return &answer, nil
	}
}

// stacksOf answers with one stack for every thread.
func stacksOf(stack sdk.ManagedStack) func(*sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	return func(req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
		a := &sdk.ManagedFramesAnswer{}
		for range req.Threads {
			a.Stacks = append(a.Stacks, stack)
		}
		return a, nil
	}
}

func TestARuntimeOfADescriptionAloneHasNoFindings(t *testing.T) {
	archtest.TestRuntime(t, script{})
	if findings := archtest.VerifyRuntime(t.Context(), script{}, archtest.RuntimeOptions{Modules: []archtest.RuntimeModule{module()}}); len(findings) > 0 {
		t.Errorf("%+v", findings)
	}
}

func TestFaultsOfRuntimesAreFoundByTheirChecks(t *testing.T) {
	calls := 0
	for _, c := range []struct {
		name, check, detail, fix string
		severity                 archtest.Severity
		runtime                  *badScript
	}{
		{"recognises nothing", "description", "Recognises: empty", "Mend the field", archtest.Error, &badScript{describe: func(d *sdk.RuntimeDescription) { d.Recognises = nil }}},
		{"no version", "description", "Version is empty", "Set Version", archtest.Warning, &badScript{describe: func(d *sdk.RuntimeDescription) { d.Version = "" }}},
		{"a type without members", "description", "a type without Members", "paths of the members", archtest.Warning, &badScript{describe: func(d *sdk.RuntimeDescription) { d.Types[0].Members = nil }}},
		{"changes", "description-constant", "first in RuntimeDescription.Version", "belongs in OpenRuntime", archtest.Error, &badScript{describe: func(d *sdk.RuntimeDescription) {
			calls++
			d.Version = fmt.Sprint(calls)
		}}},
		{"refuses its module", "modules", "OpenRuntime of program: an error: not this version", "Answer what is known", archtest.Error, &badScript{
			open: func(context.Context, sdk.RuntimeEngine, *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
				return nil, errors.New("not this version")
			}}},
		{"code in disorder", "modules", "expected ranges in order", "Mend the field", archtest.Error, &badScript{open: opens(sdk.OpenRuntimeAnswer{Code: []sdk.RuntimeCode{{Start: 8, End: 9}, {Start: 4, End: 5}}})}},
		{"threads of nobody", "modules", "is the handle of no thread", "Mend the field", archtest.Error, &badScript{open: opens(sdk.OpenRuntimeAnswer{Threads: []uint64{9}})}},
		{"code of which nothing is known", "modules", "Code[0] has neither a function at 0x1000 nor a reason", "Say in Reason", archtest.Warning, &badScript{
			open: opens(sdk.OpenRuntimeAnswer{Code: []sdk.RuntimeCode{{Start: 0x1000, End: 0x2000}}}), code: func(_ *sdk.CodeRulesRequest, a *sdk.CodeRulesAnswer) { clear(a.Code) }}},
		{"a function elsewhere", "modules", "expected a range with 0x1000", "Mend the field", archtest.Error, &badScript{
			open: opens(sdk.OpenRuntimeAnswer{Code: []sdk.RuntimeCode{{Start: 0x1000, End: 0x2000}}}), code: func(_ *sdk.CodeRulesRequest, a *sdk.CodeRulesAnswer) {
				for i := range a.Code {
					a.Code[i] = sdk.CodeRules{Start: 1, End: 2}
				}
			}}},
		{"frames for native ones that are not there", "modules", "expected at most 2, the native frames", "Mend the field", archtest.Error, &badScript{
			open: opens(sdk.OpenRuntimeAnswer{HasFrames: true}), frames: func(req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
				a := &sdk.ManagedFramesAnswer{Stacks: make([]sdk.ManagedStack, len(req.Threads))}
				a.Stacks[0].Runs = []sdk.ManagedRun{{First: 1, Count: 2, Frames: make([]sdk.ManagedFrame, 1)}}
				return a, nil
			}}},
		{"an exception without a type", "modules", "Stacks[0].Exception.Type: empty", "Mend the field", archtest.Error, &badScript{
			open: opens(sdk.OpenRuntimeAnswer{HasFrames: true}), frames: stacksOf(sdk.ManagedStack{Exception: &sdk.ManagedException{Text: "no"}})}},
		{"a lock of nobody", "modules", "Locks[0].Holder: 9 is the handle of no thread", "Mend the field", archtest.Error, &badScript{
			open: opens(sdk.OpenRuntimeAnswer{Locks: []sdk.RuntimeLock{{Address: 1, Holder: 9, HasHolder: true}}})}},
		{"two locks in one place", "modules", "the lock at 0x10 is \"a mutex\", and elsewhere \"the GIL\"", "its own address", archtest.Error, &badScript{
			open:   opens(sdk.OpenRuntimeAnswer{HasFrames: true, Locks: []sdk.RuntimeLock{{Address: 0x10, Name: "the GIL"}}}),
			frames: stacksOf(sdk.ManagedStack{Locks: []sdk.ManagedLock{{Address: 0x10, Name: "a mutex"}}})}},
		{"a lock without a name", "modules", "the lock at 0x10 has no name", "Name the lock", archtest.Warning, &badScript{
			open: opens(sdk.OpenRuntimeAnswer{HasFrames: true}), frames: stacksOf(sdk.ManagedStack{Locks: []sdk.ManagedLock{{Address: 0x10}}})}},
		{"a thread twice", "modules", "Number: 4 is another thread's", "Mend the field", archtest.Error, &badScript{
			open: opens(sdk.OpenRuntimeAnswer{HasThreads: true}), threads: func() (*sdk.ManagedThreadsAnswer, error) {
				return &sdk.ManagedThreadsAnswer{Threads: []sdk.ManagedThread{{Number: 4}, {Number: 4}}}, nil
			}}},
		{"too few answers", "batches", "expected 257", "Mend the field", archtest.Error, &badScript{code: func(req *sdk.CodeRulesRequest, a *sdk.CodeRulesAnswer) {
			if len(req.PCs) > 100 {
				a.Code = a.Code[1:]
			}
		}}},
		{"answers by the batch", "batches", "a PC has another answer in a batch than alone", "does not depend on its neighbours", archtest.Error, &badScript{code: func(req *sdk.CodeRulesRequest, a *sdk.CodeRulesAnswer) {
			for i := range a.Code {
				a.Code[i].Reason = fmt.Sprint("one of ", len(req.PCs))
			}
		}}},
		{"believes symbols", "garbage", "panic", "Check lengths", archtest.Error, &badScript{open: func(_ context.Context, _ sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
			_ = req.Types[0].Members[0]
			return &sdk.OpenRuntimeAnswer{}, nil
		}}},
		{"forgets runtimes", "garbage", "ManagedThreads of a runtime that was never opened: who is that?", "Answer ErrObjectNotOpen", archtest.Error, &badScript{threads: func() (*sdk.ManagedThreadsAnswer, error) {
			return nil, errors.New("who is that?")
		}}},
		{"waits for the engine alone", "deadlines", "OpenRuntime: no return", "Return when the context", archtest.Error, &badScript{open: func(_ context.Context, e sdk.RuntimeEngine, _ *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
			defer cancel()
			_, _ = e.FindFunctions(ctx, []uint64{1})
			return &sdk.OpenRuntimeAnswer{}, nil
		}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := archtest.VerifyRuntime(t.Context(), c.runtime, archtest.RuntimeOptions{Modules: []archtest.RuntimeModule{module()}})
			finds(t, findings, c.check, c.severity, c.detail, c.fix)
			if passed := archtest.Passed(findings); passed != (c.severity == archtest.Warning) {
				t.Errorf("passed: %v", passed)
			}
		})
	}
}
