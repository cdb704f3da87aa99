// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"errors"
	"math"
	"strings"
	"testing"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

func TestValidateOpenRuntime(t *testing.T) {
	req := &OpenRuntimeRequest{Threads: []RuntimeThread{{Thread: 3}, {Thread: 5}}}
	check(t, func() *OpenRuntimeAnswer {
		return &OpenRuntimeAnswer{
			Fatal: "Fatal error: aborted", Threads: []uint64{3, 5},
			Locks: []RuntimeLock{{Address: 1, Name: "the GIL", Holder: 5, HasHolder: true, Waiters: []uint64{3, 5}}, {Address: 2, Holder: 9}},
		}
	}, func(a *OpenRuntimeAnswer) error { return a.Validate(nil, req) }, map[string]func(*OpenRuntimeAnswer){
		"Fatal: ":                              func(a *OpenRuntimeAnswer) { a.Fatal = "\xff" },
		"Fatal: 65537 bytes":                   func(a *OpenRuntimeAnswer) { a.Fatal = longText },
		"Threads[1]: 9 is the handle":          func(a *OpenRuntimeAnswer) { a.Threads[1] = 9 },
		"Locks[1].Address: 0x1 is another":     func(a *OpenRuntimeAnswer) { a.Locks[1].Address = 1 },
		"Locks[1].Name: ":                      func(a *OpenRuntimeAnswer) { a.Locks[1].Name = "\xff" },
		"Locks[1].Holder: 9 is the handle":     func(a *OpenRuntimeAnswer) { a.Locks[1].HasHolder = true },
		"Locks[0].Waiters[1]: 4 is the handle": func(a *OpenRuntimeAnswer) { a.Locks[0].Waiters[1] = 4 },
		"Locks[0].Waiters[1]: 3 behind 3":      func(a *OpenRuntimeAnswer) { a.Locks[0].Waiters[1] = 3 },
	})
}

func TestValidateManagedFrames(t *testing.T) {
	req := &ManagedFramesRequest{Threads: []NativeStack{{Frames: make([]NativeFrame, 2)}}}
	frame := []ManagedFrame{{Function: "f"}}
	check(t, func() *ManagedFramesAnswer {
		return &ManagedFramesAnswer{Stacks: []ManagedStack{{
			Runs: []ManagedRun{{Count: 1, Frames: frame}, {First: 2, Frames: frame}}, Name: "worker", State: "waits for the GIL",
			Locks:     []ManagedLock{{Address: 1, Name: "a lock"}, {Address: 1, IsWaited: true}},
			Exception: &ManagedException{Type: "ValueError", Text: "no", Frames: []ManagedFrame{{Function: "g"}}},
		}}}
	}, func(a *ManagedFramesAnswer) error { return a.Validate(nil, req) }, map[string]func(*ManagedFramesAnswer){
		"Stacks: 2 entries":                    func(a *ManagedFramesAnswer) { a.Stacks = make([]ManagedStack, 2) },
		"Stacks[0].Name: ":                     func(a *ManagedFramesAnswer) { a.Stacks[0].Name = "\xff" },
		"Stacks[0].State: 65537 bytes":         func(a *ManagedFramesAnswer) { a.Stacks[0].State = longText },
		"Stacks[0].Locks: 4097":                func(a *ManagedFramesAnswer) { a.Stacks[0].Locks = make([]ManagedLock, maxManagedLocks+1) },
		"Stacks[0].Locks[0].Name: ":            func(a *ManagedFramesAnswer) { a.Stacks[0].Locks[0].Name = "\xff" },
		"Stacks[0].Exception.Type: empty":      func(a *ManagedFramesAnswer) { a.Stacks[0].Exception.Type = "" },
		"Stacks[0].Exception.Text: ":           func(a *ManagedFramesAnswer) { a.Stacks[0].Exception.Text = "\xff" },
		"Stacks[0].Exception.Frames[0].Kind: ": func(a *ManagedFramesAnswer) { a.Stacks[0].Exception.Frames[0].Kind = Entry + 1 },
		"Stacks[0].Exception.Frames[0].Line: ": func(a *ManagedFramesAnswer) { a.Stacks[0].Exception.Frames[0].Line = math.MaxInt32 + 1 },
		"Stacks[0].Exception.Frames: 65537":    func(a *ManagedFramesAnswer) { a.Stacks[0].Exception.Frames = make([]ManagedFrame, maxManagedFrames+1) },
		"Stacks[0].Runs[1].First: 0":           func(a *ManagedFramesAnswer) { a.Stacks[0].Runs[1].First = 0 },
		"Stacks[0].Runs[1].Count: 1 frames":    func(a *ManagedFramesAnswer) { a.Stacks[0].Runs[1].Count = 1 },
	})
}

// TestStatesOfThreadsMayBeAbsent: a plugin may be older than they are.
func TestStatesOfThreadsMayBeAbsent(t *testing.T) {
	stacks := []ManagedStack{{Problem: "no"}, {}}
	p, err := encodeManagedFramesAnswer(&ManagedFramesAnswer{Stacks: stacks})
	if err != nil || p.GetStates() != nil {
		t.Errorf("states of threads of which nothing is known: %v %v", p.GetStates(), err)
	}
	if a, err := decodeManagedFramesAnswer(p); err != nil || len(a.Stacks) != 2 {
		t.Errorf("%+v %v", a, err)
	}
	if p := encodeOpenRuntimeAnswer(&OpenRuntimeAnswer{}); p.GetLocks() != nil {
		t.Errorf("locks that are not known: %v", p.GetLocks())
	}
}

func TestStatesOfThreadsFitTheStacks(t *testing.T) {
	for field, damage := range map[string]func(*pb.ManagedStates){
		"names: 3 elements, expected 2":       func(p *pb.ManagedStates) { p.Names = texts([]string{"a", "b", "c"}) },
		"states: 0 elements":                  func(p *pb.ManagedStates) { p.States = nil },
		"lock_counts: 1 elements":             func(p *pb.ManagedStates) { p.LockCounts = p.LockCounts[1:] },
		"lock_counts: a sum of 2, expected 1": func(p *pb.ManagedStates) { p.LockCounts[0] = 2 },
		"locks.names: 0 elements":             func(p *pb.ManagedStates) { p.Locks.Names = nil },
		"locks.waited: 0 elements":            func(p *pb.ManagedStates) { p.Locks.Waited = nil },
		"has_exception: 0 elements":           func(p *pb.ManagedStates) { p.HasException = nil },
		"exceptions.types: too few":           func(p *pb.ManagedStates) { p.HasException[0] = true },
		"exceptions.types: 1 elements":        func(p *pb.ManagedStates) { p.HasException[1] = false },
		"exceptions.texts: 0 elements":        func(p *pb.ManagedStates) { p.Exceptions.Texts = nil },
		"exceptions.frame_counts: a sum of 2": func(p *pb.ManagedStates) { p.Exceptions.FrameCounts[0] = 2 },
		"ManagedFrameList.kinds: 0 elements":  func(p *pb.ManagedStates) { p.Exceptions.Frames.Kinds = nil },
	} {
		p, err := encodeManagedFramesAnswer(&ManagedFramesAnswer{Stacks: []ManagedStack{
			{Name: "a", Locks: []ManagedLock{{Address: 1}}},
			{State: "b", Exception: &ManagedException{Type: "E", Frames: make([]ManagedFrame, 1)}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		damage(p.States)
		if a, err := decodeManagedFramesAnswer(p); !errors.Is(err, ErrMalformed) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v %v", field, a, err)
		}
	}
}
