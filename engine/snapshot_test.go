// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/cfi"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/sdk"
)

// taken writes a snapshot of a target and opens it.
func taken(t *testing.T, e *Engine, from *Target, o SnapshotOptions) (*Target, *Snapshot) {
	t.Helper()
	s, err := from.Snapshot(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "taken.snapshot")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return again, s
}

// frames are what of stacks a snapshot keeps also where code is in no module.
func frames(from *Target) (list [][]string) {
	for s := range from.Stacks(context.Background()) {
		var one []string
		for _, f := range s.Frames {
			one = append(one, fmt.Sprintf("%#x %#x %v %s", f.PC, f.CFA, f.HasCFA, f.FoundBy))
		}
		list = append(list, one)
	}
	return list
}

// The toy machine's code is in no module, as what is compiled while a process
// runs.
func TestSnapshotsKeepCodeThatIsInNoModule(t *testing.T) {
	undefined := cfi.RegisterRule{Column: toyPC, Rule: cfi.Rule{Kind: cfi.Undefined}}
	outermost := cfi.Row{
		Start: 0x1200, End: 0x1300, ReturnAddress: toyPC, Rules: []cfi.RegisterRule{undefined},
		CFA: cfi.CFARule{Kind: cfi.CFARegister, Register: toySP, Offset: 8},
	}
	a := &toy{rows: []cfi.Row{row(0x1000, 0x1100, 16), outermost, row(0x2000, 0x2800, 8)}, calls: map[uint64]bool{0x1210: true}}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{described{a}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := newState(1, 0x2010, 0x1210, 9, 0x1210, 2).
		thread(0x1004, stackStart, 0, 0).
		thread(0x66, stackStart+16, 0, 0). // a call through a bad pointer
		thread(0x2900, stackStart, 0, 0).  // no row: found by a scan
		thread(0x66, stackStart+24, 0, 0)
	from := e.Attach(s)
	want := frames(from)
	if len(want[0]) != 3 || len(want[1]) != 2 || len(want[3]) != 1 {
		t.Fatalf("stacks %q", want)
	}
	first, contents := taken(t, e, from, SnapshotOptions{})
	if d := cmp.Diff(want, frames(first)); d != "" {
		t.Errorf("(-target +snapshot):\n%s", d)
	}
	second, _ := taken(t, e, first, SnapshotOptions{})
	if d := cmp.Diff(want, frames(second)); d != "" {
		t.Errorf("(-target +snapshot of a snapshot):\n%s", d)
	}
	if len(contents.Contents().Modules) != 1 || contents.Contents().Modules[0].Path != "" || contents.Contents().Modules[0].Segments[0].Start != codeStart {
		t.Errorf("modules %+v", contents.Contents().Modules)
	}
	if p := contents.Problems; len(p) > 0 {
		t.Errorf("problems %q", p)
	}
}

// Threads are more than a plugin answers for in one call.
func TestManyThreadsAreBoundInParts(t *testing.T) {
	a := &toy{}
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{described{a}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	const maxBound = 1 << 12 // threads that a plugin is asked about in one call
	s := newState(1)
	for range 2*maxBound + 1 {
		s.thread(0x1004, stackStart, 0, 0)
	}
	walked := 0
	for stack := range e.Attach(s).Stacks(context.Background()) {
		walked += len(stack.Frames)
	}
	if walked != 2*maxBound+1 || a.bindings != 3 {
		t.Errorf("%d frames of %d threads, bound in %d calls, expected 3", walked, 2*maxBound+1, a.bindings)
	}
}

// Memory that no walk asked for is not in a snapshot, so one that says nothing is taken for whole.
func TestSnapshotsSayWhereAPluginFailed(t *testing.T) {
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{described{&toy{badBind: 1 << 20}}}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	state := newState(1)
	state.thread(0x1004, stackStart, 0, 0)
	state.thread(0x1004, stackStart, 0, 0)
	s, err := e.Attach(state).Snapshot(context.Background(), SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "2 of 2 stacks end where a plugin failed: what is beyond is not in the snapshot"; !slices.Contains(s.Problems, want) {
		t.Errorf("problems %q, expected %q", s.Problems, want)
	}
}
