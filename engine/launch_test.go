// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/plugins/amdgpu"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

// launching is a target of several threads, each in code of which nothing is
// known: the stack of each is one frame.
type launching struct {
	walk.Sample
	threads []*trace.Thread
}

func (l *launching) Threads() []*trace.Thread { return l.threads }

// add adds a thread. A wave's ID begins with "w".
func (l *launching) add(id string, pc uint64, launch *trace.Launch) *trace.Thread {
	th := &trace.Thread{Handle: uint64(len(l.threads)), ID: id, Arch: "x86_64", LaunchedBy: launch}
	word := binary.LittleEndian.AppendUint64(nil, pc)
	if strings.HasPrefix(id, "w") {
		th.Arch, th.Processor = "amdgpu", "gfx90a"
		th.Registers.Set(regPC, word)
	} else {
		th.Registers.Set(16, word)           // rip
		th.Registers.Set(7, make([]byte, 8)) // rsp
		th.Registers.Set(6, make([]byte, 8)) // rbp
	}
	l.threads = append(l.threads, th)
	return th
}

func by(thread, evidence string, frames ...uint64) *trace.Launch {
	return &trace.Launch{Thread: thread, Kind: "dispatch", Evidence: evidence, Frames: frames}
}

// TestStacksContinueInTheirLaunchers is about what follows a wave's own frames.
func TestStacksContinueInTheirLaunchers(t *testing.T) {
	const waiting, recorded, queue = trace.LaunchWaiting, trace.LaunchRecorded, trace.LaunchQueue
	for _, c := range []struct {
		name    string
		threads func(l *launching)
		want    []string // of each launcher: its thread, its frames or why there are none
	}{
		{"a thread that nothing launched", func(l *launching) { l.add("w", 0x10, nil) }, nil},
		{"a launcher that waits", func(l *launching) {
			l.add("w", 0x10, by("1", waiting))
			l.add("1", 0x401000, nil)
		}, []string{"1 context 0x401000, no-module"}},
		{"the launcher's stack was recorded, and is another one now", func(l *launching) {
			l.add("w", 0x10, by("1", recorded, 0x402000, 0x403000))
			l.add("1", 0x401000, nil)
		}, []string{"1 launch 0x402000 launch 0x403000"}},
		{"a launcher that is gone, whose stack was recorded", func(l *launching) {
			l.add("w", 0x10, by("1", recorded, 0x402000))
		}, []string{"1 launch 0x402000"}},
		{"only the process is known", func(l *launching) {
			l.add("w", 0x10, by("1", queue))
			l.add("1", 0x401000, nil)
		}, []string{"1: "}},
		{"a launcher that is gone", func(l *launching) { l.add("w", 0x10, by("1", waiting)) },
			[]string{"1: thread 1 is not in the target"}},
		{"a launcher whose ID is another thread's too", func(l *launching) {
			l.add("w", 0x10, by("1", waiting))
			l.add("1", 0x401000, nil)
			l.add("1", 0x402000, nil)
		}, []string{"1: several threads have the ID 1"}},
		{"a record without frames", func(l *launching) {
			l.add("w", 0x10, by("1", recorded))
			l.add("1", 0x401000, nil)
		}, []string{"1: the stack of the launch was not kept"}},
		{"a wave that a wave launched", func(l *launching) {
			l.add("w", 0x10, by("w2", waiting))
			l.add("w2", 0x20, by("1", recorded, 0x402000))
			l.add("1", 0x401000, nil)
		}, []string{"w2 context 0x20, no-module", "1 launch 0x402000"}},
		{"a wave that launched itself", func(l *launching) { l.add("w", 0x10, by("w", waiting)) },
			[]string{"w: thread w is in this stack already: the launches go round"}},
		{"launches that go round", func(l *launching) {
			l.add("w", 0x10, by("w2", waiting))
			l.add("w2", 0x20, by("w3", recorded, 0x30))
			l.add("w3", 0x30, by("w2", waiting))
		}, []string{"w2 context 0x20, no-module", "w3 launch 0x30", "w2: thread w2 is in this stack already: the launches go round"}},
		{"no frames, no launcher's launcher", func(l *launching) {
			l.add("w", 0x10, by("1", queue))
			l.add("1", 0x401000, by("2", waiting))
			l.add("2", 0x402000, nil)
		}, []string{"1: "}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l launching
			c.threads(&l)
			s := walkFirst(t, &l)
			var got []string
			for i := range s.Launchers {
				n := &s.Launchers[i]
				text := n.Launch.Thread
				for _, f := range n.Frames {
					text += fmt.Sprintf(" %s %#x", f.FoundBy, f.PC)
				}
				if n.Stopped.Reason != "" {
					text += ", " + string(n.Stopped.Reason)
				}
				if len(n.Frames) == 0 {
					text += ": " + n.Problem
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(s.Frames) != 1 {
				t.Errorf("%d frames of its own, expected 1", len(s.Frames))
			}
		})
	}
}

// TestLaunchesAreFollowedSoFar is a chain of more launches than anybody makes.
func TestLaunchesAreFollowedSoFar(t *testing.T) {
	var l launching
	const chain = 100000
	for i := range chain {
		l.add(fmt.Sprintf("w%d", i), uint64(i), by(fmt.Sprintf("w%d", i+1), trace.LaunchWaiting))
	}
	s := walkFirst(t, &l)
	last := s.Launchers[len(s.Launchers)-1]
	if len(s.Launchers) != 65 || !strings.Contains(last.Problem, "more than 64 launches") {
		t.Errorf("%d launchers, the last one: %q", len(s.Launchers), last.Problem)
	}
}

func walkFirst(t *testing.T, l *launching) *trace.Stack {
	t.Helper()
	e, err := engine.New(engine.Options{Plugins: plugin.Options{InProcess: []sdk.Architecture{x86_64.New(), amdgpu.New()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	tg := e.Attach(l)
	return tg.Walk(context.Background(), l.threads[0])
}
