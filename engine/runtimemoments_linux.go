// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/profile"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/internal/target/process"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
)

// runtimeMoments finds the frames of language runtimes at the moments of a recording, while the
// threads stand still. It implements process.Runtimes.
type runtimeMoments struct {
	ctx       context.Context //nolint:containedctx // that of the recording
	engine    *Engine         // a view without names of native code
	processes map[int]*runtimeProcess
	problems  []string
	numbers   map[perfdata.RuntimeFrame]uint32 // of a moment's frames
}

// runtimeProcess is a process with a language runtime.
type runtimeProcess struct {
	pid         int
	own         *Target // nil: it has no runtime
	state       *momentState
	sinceOpened int // moments since the runtimes were opened
	failures    int // moments in a row that took too long
	late        int // and all of them
}

const (
	// momentTime bounds the time for which threads stand still.
	momentTime = 500 * time.Millisecond
	// maxLate is how many moments in a row may take longer.
	maxLate = 3
	// openAgain is after how many moments runtimes are opened again for a thread that they left
	// out before.
	openAgain = 16
)

func (e *Engine) newRuntimeMoments(ctx context.Context) (*runtimeMoments, error) {
	o := e.options
	o.NoSymbols, o.NoInlines, o.Registers, o.Lanes, o.Locals, o.SourceLines = true, true, false, false, nil, 0
	view, err := e.With(o)
	if err != nil {
		return nil, err
	}
	return &runtimeMoments{ctx: ctx, engine: view, processes: map[int]*runtimeProcess{}}, nil
}

func (r *runtimeMoments) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(r.problems, text) {
		r.problems = append(r.problems, text)
	}
}

// Prepare opens the files of a process with new code. Where it has a language runtime, plugins are
// started, and the rows of the code that is executed are found, so that the threads stand still for
// a shorter time.
func (r *runtimeMoments) Prepare(pid int, isNew bool) {
	if !isNew {
		return
	}
	p := &runtimeProcess{pid: pid}
	if before := r.processes[pid]; before != nil && before.own != nil {
		r.keepProblems(before)
		defer before.own.Close()
	}
	r.processes[pid] = p
	if len(r.engine.RuntimesOf(pid)) == 0 {
		return
	}
	warm, t, err := r.engine.openProcess(pid, nil, nil)
	if err != nil {
		return // recording it has an error, too
	}
	defer warm.Close()
	if !warm.managed.MayHaveFrames() {
		return
	}
	ctx, cancel := context.WithTimeout(r.ctx, warmTime)
	defer cancel()
	t.ReadOn()
	warm.readRuntimes(ctx)
	p.state = &momentState{Target: t}
	p.own = r.engine.Attach(p.state)
}

// keepProblems keeps the problems with the runtimes of a process, which may be nil.
func (r *runtimeMoments) keepProblems(p *runtimeProcess) {
	if p == nil || p.own == nil {
		return
	}
	if p.late > 0 {
		later := ""
		if p.failures >= maxLate {
			later = ", nor do later ones"
		}
		r.problem("process %d: the state of its language runtimes was not read within %v at %d moments: their samples have no frames of them%s", p.pid, momentTime, p.late, later)
	}
	for _, text := range p.own.managed.Problems() {
		r.problem("%s", text)
	}
}

// Find finds the frames of runtimes in the threads that stand still.
func (r *runtimeMoments) Find(m *process.Moment) {
	p := r.processes[m.PID]
	if p == nil || p.own == nil || p.failures >= maxLate {
		return
	}
	p.state.set(m)
	p.own.process.Renew()
	p.own.managed.Renew(p.isDue())
	ctx, cancel := context.WithTimeout(r.ctx, momentTime)
	defer cancel()
	stacks := make([]*trace.Stack, 0, len(m.Threads))
	var of []int
	for i, th := range p.own.Threads() {
		if m.Threads[i].IsStopped {
			stacks, of = append(stacks, p.own.process.Walk(ctx, th)), append(of, i)
		}
	}
	p.own.managed.Extend(ctx, stacks)
	if ctx.Err() != nil {
		p.failures++
		p.late++
		return
	}
	p.failures = 0
	r.numbers = map[perfdata.RuntimeFrame]uint32{}
	for i, s := range stacks {
		m.Threads[of[i]].Stack = r.record(m, s)
	}
}

// isDue reports whether runtimes are opened again, since a thread is sampled that they left out.
func (p *runtimeProcess) isDue() bool {
	p.sinceOpened++
	if p.sinceOpened < openAgain {
		return false
	}
	for _, th := range p.own.Threads() {
		if th.Problem == "" && p.own.managed.LeavesOut(th) {
			p.sinceOpened = 0
			return true
		}
	}
	return false
}

// record returns a stack for the recording; nil where no runtime knows a frame of it.
func (r *runtimeMoments) record(m *process.Moment, s *trace.Stack) *perfdata.RuntimeStack {
	out := &perfdata.RuntimeStack{IsCut: s.LeftOut > 0, Stop: profile.StopNumber(s.Stopped.Reason)}
	isManaged := false
	for i := range s.Frames {
		f := &s.Frames[i]
		about := f.Managed()
		if about == nil || len(f.Symbols) == 0 {
			out.Entries = append(out.Entries, perfdata.RuntimeEntry{PC: f.PC, Found: uint8(code.IndexOf(f.FoundBy)), IsExact: f.Exact, IsBehind: f.BehindManaged})
			continue
		}
		isManaged = true
		for k := range f.Symbols {
			symbol := &f.Symbols[k]
			frame := perfdata.RuntimeFrame{
				Runtime: about.Runtime, Kind: string(about.Kind), Function: symbol.Function, File: symbol.File,
				Line: uint32(max(symbol.Line, 0)), Column: uint32(max(symbol.Column, 0)), //nolint:gosec // from 32 bits
			}
			number, ok := r.numbers[frame]
			if !ok {
				number = uint32(len(m.Frames)) //nolint:gosec // memory has room for fewer
				r.numbers[frame] = number
				m.Frames = append(m.Frames, frame)
			}
			out.Entries = append(out.Entries, perfdata.RuntimeEntry{Frame: number, IsManaged: true})
		}
	}
	if !isManaged {
		return nil
	}
	return out
}

// Problems returns what went wrong with runtimes and their plugins.
func (r *runtimeMoments) Problems() []string {
	for _, pid := range slices.Sorted(maps.Keys(r.processes)) {
		r.keepProblems(r.processes[pid])
	}
	return r.problems
}

// Close closes the files of all processes.
func (r *runtimeMoments) Close() { _ = r.engine.Close() }

// momentState is a process at a moment: a copy that was made before has the modules.
type momentState struct {
	*process.Target
	moment  *process.Moment
	threads []*trace.Thread
}

// set sets the moment.
func (s *momentState) set(m *process.Moment) {
	arch := ""
	if first := s.Target.Threads(); len(first) > 0 {
		arch = first[0].Arch
	}
	s.moment, s.threads = m, make([]*trace.Thread, len(m.Threads))
	for i := range m.Threads {
		th := &trace.Thread{Handle: uint64(i), ID: strconv.Itoa(m.Threads[i].ID), Arch: arch} //nolint:gosec // an index
		if m.Threads[i].IsStopped {
			th.Registers = m.Threads[i].Registers
		} else {
			th.IsUnstopped, th.Problem = true, "it waits"
		}
		s.threads[i] = th
	}
}

// Threads returns the threads of the moment.
func (s *momentState) Threads() []*trace.Thread {
	if s.moment == nil {
		return s.Target.Threads()
	}
	return s.threads
}

// ReadMemory reads the memory of the process.
func (s *momentState) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	if s.moment == nil || space != locexpr.DefaultSpace {
		return s.Target.ReadMemory(space, address, buf)
	}
	n := s.moment.Read(address, buf)
	if n < len(buf) {
		return n, fmt.Errorf("0x%x: %w", address+uint64(n), target.ErrNoMemory) //nolint:gosec // a length
	}
	return n, nil
}

// Mapped reports whether there is memory at an address.
func (s *momentState) Mapped(address uint64) (isMapped, isExecutable bool) {
	if s.moment == nil {
		return s.Target.Mapped(address)
	}
	return s.moment.Mapped(address)
}

// MemorySize is how many bytes of memory can be read.
func (s *momentState) MemorySize() uint64 {
	if s.moment == nil {
		return s.Target.MemorySize()
	}
	return s.moment.MemorySize()
}
