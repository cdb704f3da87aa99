// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"
	"sync"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/trace"
)

// maxLaunches bounds a chain of launches.
const maxLaunches = 64

// launchers are the threads of a target that launched others, by ID, and their stacks: many may
// have one launcher.
type launchers struct {
	once sync.Once
	byID map[string]launcher

	mu     sync.Mutex
	stacks map[*trace.Thread]*launcherStack
	// recorded are the frames of launches that were recorded. Waves that were launched together
	// have one launch.
	recorded map[*trace.Launch][]trace.Frame

	waits waits
}

// maxRecorded bounds the launches whose frames are kept for the next wave.
const maxRecorded = 64

// launcher is a thread whose ID others have as their launcher's.
type launcher struct {
	thread *trace.Thread // nil: no thread of the target has the ID
	isMany bool          // several have it
}

type launcherStack struct {
	mu    sync.Mutex
	stack *trace.Stack // nil until it was walked to its end
}

// thread finds a launcher.
func (l *launchers) thread(p *Process, id string) (*trace.Thread, error) {
	l.once.Do(func() {
		l.byID = map[string]launcher{}
		for th := range p.list.Kinds() {
			if th.LaunchedBy != nil {
				l.byID[th.LaunchedBy.Thread] = launcher{}
			}
		}
		for i := range p.list.Len() {
			id := p.list.ID(i)
			if known, isOne := l.byID[id]; isOne {
				l.byID[id] = launcher{p.list.At(i), known.thread != nil}
			}
		}
	})
	switch known := l.byID[id]; {
	case known.isMany:
		return nil, fmt.Errorf("several threads have the ID %s", id)
	case known.thread == nil:
		return nil, fmt.Errorf("thread %s is not in the target", id)
	default:
		return known.thread, nil
	}
}

// stack returns the current stack of a launcher.
func (l *launchers) stack(ctx context.Context, p *Process, th *trace.Thread) *trace.Stack {
	l.mu.Lock()
	s := l.stacks[th]
	if s == nil {
		if l.stacks == nil {
			l.stacks = map[*trace.Thread]*launcherStack{}
		}
		s = &launcherStack{}
		l.stacks[th] = s
	}
	l.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stack != nil {
		return s.stack
	}
	stack := p.walkThread(ctx, th)
	if ctx.Err() == nil {
		s.stack = stack
	}
	return stack
}

// joinLaunchers continues a stack in the threads that launched it. A launcher that has gone on to
// something else is only named.
func (p *Process) joinLaunchers(ctx context.Context, s *trace.Stack) {
	if s.Thread.LaunchedBy == nil {
		return
	}
	seen := map[string]bool{s.Thread.ID: true}
	for th := s.Thread; th != nil && th.LaunchedBy != nil; {
		found := p.launchOf(ctx, th)
		l := trace.Launcher{Launch: found.launch, Thread: found.thread}
		id := l.Launch.Thread
		var missing error
		if l.Thread == nil {
			l.Thread, missing = p.launchers.thread(p, id)
		}
		switch {
		case seen[id]:
			l.Thread = nil
			l.Problem = fmt.Sprintf("thread %s is in this stack already: the launches go round", id)
		case len(s.Launchers) == maxLaunches:
			l.Thread = nil
			l.Problem = fmt.Sprintf("more than %d launches one after the other", maxLaunches)
		case l.Evidence == trace.LaunchQueue:
			l.Thread = nil // a thread in a cycle is no caller
		case l.Evidence == trace.LaunchRecorded && len(l.Launch.Frames) == 0:
			l.Problem = "the stack of the launch was not kept"
		case l.Evidence == trace.LaunchRecorded:
			l.Frames = p.launchFrames(l.Launch)
		case missing != nil:
			l.Problem = missing.Error()
		default:
			stack := p.launchers.stack(ctx, p, l.Thread)
			l.Frames, l.Gap, l.Stopped = stack.Frames, stack.Gap, stack.Stopped
		}
		s.Launchers = append(s.Launchers, l)
		if th = l.Thread; len(l.Frames) == 0 {
			return
		}
		seen[id] = true
	}
}

// launchFrames returns the frames of a launch that was recorded.
func (p *Process) launchFrames(l *trace.Launch) []trace.Frame {
	launchers := &p.launchers
	launchers.mu.Lock()
	frames, isKnown := launchers.recorded[l]
	launchers.mu.Unlock()
	if isKnown {
		return frames
	}
	frames = p.recordedFrames(l.Frames)
	launchers.mu.Lock()
	defer launchers.mu.Unlock()
	if launchers.recorded == nil || len(launchers.recorded) == maxRecorded {
		launchers.recorded = map[*trace.Launch][]trace.Frame{}
	}
	launchers.recorded[l] = frames
	return frames
}

// recordedFrames returns the frames of PCs that were recorded at a launch. Each is a return
// address: the innermost one follows the call that launched.
func (p *Process) recordedFrames(pcs []uint64) []trace.Frame {
	frames := make([]trace.Frame, min(len(pcs), p.shared.options.MaxFrames))
	for i := range frames {
		frames[i] = trace.Frame{PC: pcs[i], FoundBy: trace.ByLaunch}
	}
	// If a file shrinks only the names are lost.
	_ = object.Guard(func() error {
		for i := range frames {
			p.placeRecorded(&frames[i])
		}
		return nil
	})
	return frames
}

// placeRecorded finds the module and the functions of a return address, or of an exact PC.
func (p *Process) placeRecorded(f *trace.Frame) {
	distance := uint64(1)
	if s := p.Segment(f.PC); s != nil {
		if m := s.Module.Code.Machine(); m != nil {
			distance = uint64(m.Description.CallDistance)
		}
	}
	if f.Exact {
		distance = 0
	}
	s := p.Segment(f.PC - distance)
	if s == nil {
		return
	}
	m, lookup := s.Module, s.ObjectAddress(f.PC-distance)
	f.Module, f.ModuleOffset = &m.Module.Module, m.Code.Offset(lookup)+distance
	if !p.shared.options.NoSymbols {
		f.Symbols = p.names(m, lookup)
	}
}
