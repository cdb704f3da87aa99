// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// What the bounds are made of; see walk/bounds.go.
const (
	ownFrames  = 2
	frameBytes = 4
	frameFloor = 1 << 16
)

// openBounded opens a target with stacks of at most so many frames; 0: as many
// as there are by default.
func openBounded(t *testing.T, path string, frames int) *Target {
	t.Helper()
	e, err := New(Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New()}}, MaxFrames: frames})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	target, err := e.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func problemsOfBounds(t *Target) (list []string) {
	for _, p := range t.Problems() {
		if strings.Contains(p, "stacks were") || strings.Contains(p, "guesses were") {
			list = append(list, p)
		}
	}
	return list
}

// TestFramesOfThreadsOverOneStackAreBounded has 3,000 threads that share the
// 16,384 words of one stack, each of which is a return address.
func TestFramesOfThreadsOverOneStackAreBounded(t *testing.T) {
	target := openBounded(t, "testdata/bounds/deep.snapshot", 0)
	frames, stacks, whole := 0, 0, 0
	for s := range target.Stacks(context.Background()) {
		stacks++
		frames += len(s.Frames)
		switch {
		case len(s.Frames) == DefaultMaxFrames:
			whole++
		case len(s.Frames) < ownFrames || s.Stopped.Reason != trace.StopFrameLimit || !strings.Contains(s.Stopped.Detail, "room for"):
			t.Fatalf("%d frames: %v", len(s.Frames), s.Stopped)
		}
	}
	// Room for return addresses in memory, and in two registers of each.
	if most := frameFloor + (128<<10)/frameBytes + 3000*(ownFrames+16/frameBytes) + 3000*ownFrames; stacks != 3000 || frames > most+DefaultMaxFrames || whole < 20 {
		t.Errorf("%d stacks, %d of them whole, %d frames, expected at most %d", stacks, whole, frames, most)
	}
	if p := problemsOfBounds(target); len(p) != 1 || !strings.Contains(p[0], "than the target's memory has room for") {
		t.Errorf("problems %q", p)
	}
}

// TestAStackOfReturnAddressesOnlyIsWhole has one thread of them.
func TestAStackOfReturnAddressesOnlyIsWhole(t *testing.T) {
	target := openBounded(t, "testdata/bounds/deep.snapshot", 1<<20)
	s := target.Walk(context.Background(), target.Threads()[0])
	if len(s.Frames) != 16385 || s.Stopped.Reason == trace.StopFrameLimit {
		t.Errorf("%d frames: %v", len(s.Frames), s.Stopped)
	}
	if p := problemsOfBounds(target); len(p) > 0 {
		t.Errorf("problems %q", p)
	}
}

func TestOneStackIsNotSearchedForEveryThread(t *testing.T) {
	target := openBounded(t, "testdata/bounds/vain.snapshot", 0)
	for s := range target.Stacks(context.Background()) {
		if len(s.Frames) == 0 {
			t.Fatalf("no frame: %v", s.Stopped)
		}
	}
	if p := problemsOfBounds(target); len(p) != 1 || !strings.Contains(p[0], "were not searched for a return address") {
		t.Errorf("problems %q", p)
	}
}

// TestBoundsDoNotCutHonestTargets has every core and snapshot of the examples.
func TestBoundsDoNotCutHonestTargets(t *testing.T) {
	walked := 0
	for _, pattern := range []string{"../examples/*/*.core", "../examples/*/*.snapshot"} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			target := openBounded(t, path, 0)
			frames := 0
			for s := range target.Stacks(context.Background()) {
				walked++
				frames += len(s.Frames)
			}
			if p := problemsOfBounds(target); len(p) > 0 || frames > frameFloor/2 {
				t.Errorf("%s: problems %q, %d frames", path, p, frames)
			}
		}
	}
	if walked < 3 {
		t.Errorf("%d stacks", walked)
	}
}
