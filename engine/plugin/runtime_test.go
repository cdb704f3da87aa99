// SPDX-License-Identifier: Apache-2.0

//go:build linux

package plugin

import (
	"context"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// testRuntime does what the path of the module says.
type testRuntime struct {
	sdk.RuntimeBase
	name string
}

func (r *testRuntime) Describe(context.Context) (*sdk.RuntimeDescription, error) {
	return &sdk.RuntimeDescription{
		Name: r.name, Version: "1", ThreadKind: "fibre",
		Recognises: []sdk.RuntimeRecogniser{{Section: ".fibres"}},
		Types:      []sdk.RuntimeType{{Name: "fibre", Members: []string{"next"}}},
	}, nil
}

func (r *testRuntime) OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error) {
	switch req.Path {
	case "dies":
		os.Exit(7)
	case "overlapping":
		return &sdk.OpenRuntimeAnswer{Code: []sdk.RuntimeCode{{Start: 8, End: 16}, {Start: 15, End: 20}}}, nil
	case "unknown thread":
		return &sdk.OpenRuntimeAnswer{HasFrames: true, Threads: []uint64{9}}, nil
	}
	word := make([]byte, 4)
	if _, err := e.ReadMemory(ctx, sdk.MemoryRange{Space: locexpr.DefaultSpace, Address: 0x1000, Lane: -1}, word); err != nil {
		return nil, err
	}
	places, err := e.FindFunctions(ctx, []uint64{0x10, 0x20})
	if err != nil {
		return nil, err
	}
	return &sdk.OpenRuntimeAnswer{Version: string(word) + " " + places[0].Name + places[1].Name, HasThreads: true}, nil
}

// ManagedFrames puts one frame of the language for each first native frame.
func (r *testRuntime) ManagedFrames(_ context.Context, _ sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error) {
	a := &sdk.ManagedFramesAnswer{}
	for range req.Threads {
		a.Stacks = append(a.Stacks, sdk.ManagedStack{Runs: []sdk.ManagedRun{{First: 0, Count: 1, Frames: []sdk.ManagedFrame{{Function: "main", Line: 3}}}}})
	}
	return a, nil
}

// ManagedThreads lists more threads than one part has.
func (r *testRuntime) ManagedThreads(_ context.Context, _ sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error) {
	a := &sdk.ManagedThreadsAnswer{Problems: []string{"one is lost"}}
	for i := range 10_000 {
		n := uint64(i)
		if req.Runtime == 13 {
			n = 1
		}
		a.Threads = append(a.Threads, sdk.ManagedThread{Number: n, State: "ready"})
	}
	return a, nil
}

// runtimeEngine has a word at each address, and a function there.
type runtimeEngine struct{ sdk.Engine }

func (runtimeEngine) ReadMemory(_ context.Context, _ sdk.MemoryRange, buf []byte) (int, error) {
	return copy(buf, "word"), nil
}

func (runtimeEngine) FindFunctions(_ context.Context, addresses []uint64) ([]sdk.FunctionPlace, error) {
	list := make([]sdk.FunctionPlace, len(addresses))
	for i, a := range addresses {
		list[i] = sdk.FunctionPlace{Name: string(rune('a' + a/0x10)), Start: a, HasStart: true}
	}
	return list, nil
}

// runtimesOf are the same runtime in a process and in none.
func runtimesOf(t *testing.T) map[string]*Runtime {
	dir := t.TempDir()
	vendorOf(t, runtimes, dir, "fibres", "")
	both := map[string]*Runtime{}
	for where, o := range map[string]Options{
		"process":    {Dirs: []string{dir}},
		"in-process": {InProcessRuntimes: []sdk.Runtime{&testRuntime{name: "fibres"}}},
	} {
		list := manager(t, o).Runtimes()
		if len(list) != 1 || list[0].Name() != "fibres" || list[0].Description().ThreadKind != "fibre" {
			t.Fatalf("%s: %+v", where, list)
		}
		both[where] = list[0]
	}
	return both
}

func TestRuntimeAnswersInEitherTransport(t *testing.T) {
	for where, r := range runtimesOf(t) {
		t.Run(where, func(t *testing.T) {
			open, err := r.OpenRuntime(t.Context(), runtimeEngine{}, &sdk.OpenRuntimeRequest{Path: "good", PC: 16})
			if err != nil || open.Version != "word bc" || !open.HasThreads {
				t.Errorf("OpenRuntime: %+v, %v", open, err)
			}
			frames, err := r.ManagedFrames(t.Context(), runtimeEngine{}, &sdk.ManagedFramesRequest{Threads: []sdk.NativeStack{{Frames: make([]sdk.NativeFrame, 2)}}})
			want := []sdk.ManagedRun{{Count: 1, Frames: []sdk.ManagedFrame{{Function: "main", Line: 3}}}}
			if err != nil || !reflect.DeepEqual(frames.Stacks[0].Runs, want) {
				t.Errorf("ManagedFrames: %+v, %v", frames, err)
			}
			threads, err := r.ManagedThreads(t.Context(), runtimeEngine{}, &sdk.ManagedThreadsRequest{})
			if err != nil || len(threads.Threads) != 10_000 || threads.Threads[9_999].Number != 9_999 || threads.Threads[0].State != "ready" || len(threads.Problems) != 1 {
				t.Errorf("ManagedThreads: %v", err)
			}
			rules, err := r.CodeRules(t.Context(), runtimeEngine{}, &sdk.CodeRulesRequest{PCs: []uint64{1, 2}})
			if err != nil || len(rules.Code) != 2 || rules.Code[1].Reason == "" {
				t.Errorf("CodeRules: %+v, %v", rules, err)
			}
		})
	}
}

func TestNonsenseOfRuntimesIsRefused(t *testing.T) {
	for where, r := range runtimesOf(t) {
		for name, call := range map[string]func() error{
			"overlapping ranges": func() error {
				_, err := r.OpenRuntime(t.Context(), runtimeEngine{}, &sdk.OpenRuntimeRequest{Path: "overlapping"})
				return err
			},
			"the handle of no thread": func() error {
				_, err := r.OpenRuntime(t.Context(), runtimeEngine{}, &sdk.OpenRuntimeRequest{Path: "unknown thread"})
				return err
			},
			"a run for native frames that are not there": func() error {
				_, err := r.ManagedFrames(t.Context(), runtimeEngine{}, &sdk.ManagedFramesRequest{Threads: []sdk.NativeStack{{}}})
				return err
			},
			"two threads of one number": func() error {
				_, err := r.ManagedThreads(t.Context(), runtimeEngine{}, &sdk.ManagedThreadsRequest{Runtime: 13})
				return err
			},
		} {
			var f *Failure
			if err := call(); !errors.As(err, &f) || !strings.Contains(f.Reason, "answered nonsense: ") {
				t.Errorf("%s: %s: %v", where, name, err)
			}
		}
	}
}

func TestRuntimeIsStartedAgain(t *testing.T) {
	r := runtimesOf(t)["process"]
	_, err := r.OpenRuntime(t.Context(), runtimeEngine{}, &sdk.OpenRuntimeRequest{Path: "dies"})
	var f *Failure
	if !errors.As(err, &f) || !strings.Contains(f.Reason, "exited with status 7") {
		t.Fatalf("%v", err)
	}
	before := r.Generation()
	if _, err := r.ManagedThreads(t.Context(), runtimeEngine{}, &sdk.ManagedThreadsRequest{}); err != nil || r.Generation() != before+1 {
		t.Errorf("%v after %d processes, %d before", err, r.Generation(), before)
	}
}

func TestRuntimeAndArchitectureOfOneNameStandBesideEachOther(t *testing.T) {
	dir := t.TempDir()
	vendor(t, dir, string(good), "")
	vendorOf(t, runtimes, dir, string(good), "")
	m := manager(t, Options{Dirs: []string{dir}})
	list := m.List()
	if len(list) != 2 || list[0].Description == nil || list[0].Runtime != nil || list[1].Runtime == nil || list[1].Description != nil {
		t.Errorf("%+v", list)
	}
	if got := len(m.Runtimes()); got != 1 {
		t.Errorf("%d runtimes, expected 1", got)
	}
}
