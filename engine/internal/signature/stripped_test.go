// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"slices"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

// stackOf is a stack of frames in modules, by their functions; "" has no name.
func stackOf(frames ...trace.Frame) *Crash { return &Crash{Stack: &trace.Stack{Frames: frames}} }

func frameIn(m *trace.Module, offset uint64, function string) trace.Frame {
	f := trace.Frame{Module: m, ModuleOffset: offset}
	if function != "" {
		f.Symbols = []trace.Symbol{{Function: function}}
	}
	return f
}

// TestFramesOfAStrippedProgramAreOffsets has a program without names, one of which some
// functions have names, and the C library.
func TestFramesOfAStrippedProgramAreOffsets(t *testing.T) {
	program, library, libc := &trace.Module{Path: "/bin/server"}, &trace.Module{Path: "/lib/libx.so.1"}, &trace.Module{Path: "/lib/libc.so.6"}
	for _, c := range []struct {
		version int
		crash   *Crash
		want    []string
	}{
		{2, stackOf(frameIn(program, 0x1169, ""), frameIn(program, 0x1200, "")), []string{"server@0x1169", "server@0x1200"}},
		{1, stackOf(frameIn(program, 0x1169, ""), frameIn(program, 0x1200, "")), []string{"server"}},
		{2, stackOf(frameIn(libc, 0x77, ""), frameIn(program, 0x1169, ""), frameIn(program, 0x1200, "main")), []string{"server", "main"}},
		{2, stackOf(frameIn(library, 0x10, ""), frameIn(program, 0x1200, "main")), []string{"libx.so@0x10", "main"}},
	} {
		got := Of(c.version, c.crash)
		if !slices.Equal(got.Frames, c.want) || got.HasOffsets != slices.ContainsFunc(c.want, func(s string) bool { return len(s) > 7 }) || got.Version != c.version {
			t.Errorf("%+v, expected %q", got, c.want)
		}
	}
}

// TestASignatureBeginsAtTheFirstCrash has a handler further in.
func TestASignatureBeginsAtTheFirstCrash(t *testing.T) {
	program := &trace.Module{Path: "/bin/server"}
	crash := stackOf(frameIn(program, 1, "raise"), frameIn(program, 2, "handler"), frameIn(program, 3, "trampoline"), frameIn(program, 4, "reader"), frameIn(program, 5, "main"))
	crash.Stack.Frames[2].SignalFrame = true
	crash.First = 3
	if got := Of(2, crash); !slices.Equal(got.Frames, []string{"reader", "main"}) {
		t.Errorf("%q", got.Frames)
	}
	if got := Of(1, crash); !slices.Equal(got.Frames, []string{"[raise]", "handler", "reader", "main"}) {
		t.Errorf("version 1: %q", got.Frames)
	}
}

// TestALambdaIsWithoutTheFunctionThatCalledIt has one whose function is further out, and
// one that something else calls.
func TestALambdaIsWithoutTheFunctionThatCalledIt(t *testing.T) {
	program := &trace.Module{Path: "/bin/server"}
	inner, outer, pool := frameIn(program, 1, "m::f(int)::{lambda(int)#1}::operator()(int) const"), frameIn(program, 2, "m::f(int)"), frameIn(program, 3, "pool::run()")
	if got := Of(2, stackOf(inner, pool, outer)); !slices.Equal(got.Frames, []string{"{lambda}", "pool::run", "m::f"}) {
		t.Errorf("%q", got.Frames)
	}
	if got := Of(2, stackOf(inner, pool)); !slices.Equal(got.Frames, []string{"m::f::{lambda}", "pool::run"}) {
		t.Errorf("%q", got.Frames)
	}
}
