// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// thread is a thread with its architecture and its plugin's answers.
type thread struct {
	*trace.Thread
	arch *machine

	mu       sync.Mutex // locked while the thread is bound again
	binding  *sdk.ThreadBinding
	failure  error   // why there is no binding
	unplaced *thread // the same, bound as if at PC 0; nil until it is needed
	noPC     bool    // it is the unplaced one
	counted  bool    // its lanes were counted by the code: see countLanes
}

// lanes returns how many lanes the thread has; 0 where it is not bound.
func (s *thread) lanes() uint32 {
	if s.binding == nil {
		return 0
	}
	return s.binding.Lanes
}

// threadStates are the threads of a process with plugins' answers, a batch at a time: a process
// may have a million waves.
type threadStates struct {
	once    sync.Once
	index   map[*trace.Thread]int // where handles are not indices; nil: they are
	batches []threadBatch
}

// threadBatch is threads that plugins are asked about together.
type threadBatch struct {
	mu     sync.Mutex
	states []thread        // nil until one is needed, and after they were released
	alone  map[int]*thread // states that were needed after that
	isPast bool            // the states were released
}

// maxBound is how many threads a plugin is asked about in one call, which has a deadline.
const maxBound = 1 << 12

// Bind finds the architectures of the threads, once. Their plugins are asked about a
// thread when its stack is walked.
func (p *Process) Bind() {
	p.bound.Do(func() {
		p.machines, p.missing = map[string]*machine{}, map[string]error{}
		for th := range p.list.Kinds() {
			if th.Unread != "" || p.machines[th.Arch] != nil || p.missing[th.Arch] != nil {
				continue
			}
			m, err := p.shared.machine(th.Arch)
			if err != nil {
				p.missing[th.Arch] = err
				continue
			}
			p.machines[th.Arch] = m
		}
	})
}

// machineOf returns the architecture of a thread; nil where there is none that reads it, and
// before Bind.
func (p *Process) machineOf(th *trace.Thread) *machine {
	if th.Unread != "" {
		return nil
	}
	return p.machines[th.Arch]
}

// Machine returns the architecture of a thread; nil where there is none.
func (p *Process) Machine(th *trace.Thread) *code.Machine {
	p.Bind()
	if m := p.machineOf(th); m != nil {
		return m.Machine
	}
	return nil
}

// indexOf returns the index of a thread in the target's list.
func (p *Process) indexOf(th *trace.Thread) (i int, ok bool) {
	t := &p.threads
	t.once.Do(func() {
		t.batches = make([]threadBatch, (p.list.Len()+maxBound-1)/maxBound)
		if p.list.HasHandles() {
			return
		}
		t.index = make(map[*trace.Thread]int, p.list.Len())
		for i, th := range p.list.All() {
			t.index[th] = i
		}
	})
	if t.index != nil {
		i, ok = t.index[th]
		return i, ok
	}
	if th.Handle >= uint64(p.list.Len()) || p.list.At(int(th.Handle)) != th {
		return 0, false
	}
	return int(th.Handle), true
}

// stateOf returns a thread with its plugin's answers; nil for a thread that is not in the
// process.
func (p *Process) stateOf(ctx context.Context, th *trace.Thread) *thread {
	p.Bind()
	i, ok := p.indexOf(th)
	if !ok {
		return nil
	}
	b := &p.threads.batches[i/maxBound]
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isPast && len(b.alone) < maxAlone {
		if b.alone[i] == nil {
			if b.alone == nil {
				b.alone = map[int]*thread{}
			}
			alone := make([]thread, 1)
			p.bindBatch(ctx, alone, i)
			b.alone[i] = &alone[0]
		}
		return b.alone[i]
	}
	if b.states == nil {
		first := i / maxBound * maxBound
		b.states, b.alone, b.isPast = make([]thread, min(maxBound, p.list.Len()-first)), nil, false
		p.bindBatch(ctx, b.states, first)
	}
	return &b.states[i%maxBound]
}

// maxAlone is how many threads of a released batch are asked about one by one.
const maxAlone = 64

// threadPass goes over threads once, and releases each batch after it.
type threadPass struct {
	process *Process
	left    []int // how many threads of each batch are left to walk
	isBegun []bool
}

func (p *Process) newPass(threads *target.ThreadList) *threadPass {
	k := &threadPass{process: p}
	if threads.Len() <= maxBound {
		return k // the next pass may find them bound
	}
	for _, th := range threads.All() {
		if i, ok := p.indexOf(th); ok {
			if k.left == nil {
				k.left, k.isBegun = make([]int, len(p.threads.batches)), make([]bool, len(p.threads.batches))
			}
			k.left[i/maxBound]++
		}
	}
	return k
}

// begin makes the batch of a thread be asked about as a whole.
func (k *threadPass) begin(th *trace.Thread) {
	i, ok := k.process.indexOf(th)
	if k.left == nil || !ok || k.isBegun[i/maxBound] {
		return
	}
	k.isBegun[i/maxBound] = true
	b := &k.process.threads.batches[i/maxBound]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.isPast = false
}

// end drops plugins' answers about a batch whose last thread was walked.
func (k *threadPass) end(th *trace.Thread) {
	i, ok := k.process.indexOf(th)
	if k.left == nil || !ok {
		return
	}
	if k.left[i/maxBound]--; k.left[i/maxBound] > 0 {
		return
	}
	b := &k.process.threads.batches[i/maxBound]
	b.mu.Lock()
	defer b.mu.Unlock()
	b.states, b.alone, b.isPast = nil, nil, true
}

// bindBatch asks the plugins about threads, one call for each architecture. The first has an index.
func (p *Process) bindBatch(ctx context.Context, states []thread, first int) {
	batches := map[*machine][]*thread{}
	for i := range states {
		s, th := &states[i], p.list.At(first+i)
		s.Thread, s.arch = th, p.machineOf(th)
		switch {
		case th.Unread != "":
			s.failure = errors.New(th.Unread)
		case len(th.ManagedFrames) > 0:
			s.failure = errors.New("the thread has no registers: a language runtime schedules it, and it has no native stack")
		case s.arch == nil:
			s.failure = p.missing[th.Arch]
		case th.Problem == "":
			batches[s.arch] = append(batches[s.arch], s)
		}
	}
	for m, batch := range batches {
		p.bind(ctx, m, batch...)
	}
}

const (
	// maxBoundBytes bounds the registers that one call has, unless a single thread has more:
	// waves of an accelerator have a hundred thousand bytes each.
	maxBoundBytes = 16 << 20
	// maxSlowlyBound is how many threads a plugin is asked about in one call after it did not
	// end a larger one in time.
	maxSlowlyBound = maxBound / 16
	// maxSplits is how many batches of threads of one architecture are asked about by halves.
	maxSplits = 64
)

// bind asks about threads, in few calls. A plugin that does not end a call in time is asked about
// fewer threads at once from then on; one that does not end such a call either is not asked about
// the rest.
func (p *Process) bind(ctx context.Context, m *machine, batch ...*thread) {
	for len(batch) > 0 {
		most := maxBound
		if m.isSlow.Load() {
			most = maxSlowlyBound
		}
		n := countBytes(batch[:min(len(batch), most)], maxBoundBytes)
		err := p.bindSplit(ctx, m, batch[:n])
		switch {
		case !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil:
		case n > maxSlowlyBound:
			m.isSlow.Store(true)
			continue
		default:
			for _, s := range batch[n:] {
				s.failure = err
			}
			return
		}
		batch = batch[n:]
	}
}

// countBytes returns how many of the first threads have so many bytes of registers together, at
// least 1.
func countBytes(batch []*thread, most int) int {
	size := 0
	for n, s := range batch {
		if size += len(s.Registers.Data); size > most && n > 0 {
			return n
		}
	}
	return len(batch)
}

// bindSplit asks about threads in one call. Where the plugin answers with an error, or its answer
// is refused, the threads are asked about by halves: one thread does not cost the others their
// answers. It returns the error of a call in which the plugin did not answer.
func (p *Process) bindSplit(ctx context.Context, m *machine, batch []*thread) error {
	req := &sdk.BindThreadsRequest{Threads: make([]sdk.ThreadState, len(batch))}
	for i, s := range batch {
		req.Threads[i] = sdk.ThreadState{
			Thread: s.Handle, Registers: s.boundRegisters(m), Processor: s.Processor, Lanes: s.Lanes, Spaces: s.Spaces,
		}
	}
	answer, err := m.Plugin.BindThreads(ctx, &view{p}, req)
	if len(batch) > 1 && plugin.IsAnswered(err) && ctx.Err() == nil && m.splits.Add(1) <= maxSplits {
		half := len(batch) / 2
		return cmp.Or(p.bindSplit(ctx, m, batch[:half]), p.bindSplit(ctx, m, batch[half:]))
	}
	for i, s := range batch {
		if s.failure = err; err == nil {
			s.binding = &answer.Threads[i]
		}
	}
	if plugin.IsAnswered(err) {
		return nil
	}
	return err
}

// boundRegisters returns the registers that a thread is bound with.
func (s *thread) boundRegisters(m *machine) sdk.Registers {
	info, ok := m.Description.Register(m.Description.PC)
	if !s.noPC || !ok {
		return s.Registers
	}
	registers := s.Registers.Clone()
	registers.Set(m.Description.PC, make([]byte, (info.Bits+7)/8))
	return registers
}

// withoutPC returns the thread as an evaluation needs it, which reads only some of its state. A
// thread whose PC the target does not have cannot be bound; it is bound again as if at 0, and
// its PC stays unknown.
func (p *Process) withoutPC(ctx context.Context, s *thread) *thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arch == nil {
		return s
	}
	_, hasPC := s.Registers.Get(s.arch.Description.PC)
	if bad := s.Problem != "" || s.binding != nil && s.binding.Problem != ""; hasPC || !bad {
		return s
	}
	if s.unplaced == nil {
		s.unplaced = &thread{Thread: s.Thread, arch: s.arch, noPC: true}
		p.bind(ctx, s.arch, s.unplaced)
	}
	if s.unplaced.binding == nil {
		return s
	}
	return s.unplaced
}

// rebind asks about one thread alone after its batch failed: the plugin may run again, and
// another thread's state may have been the cause. A plugin that hung would only cost its
// deadline once more.
func (p *Process) rebind(ctx context.Context, s *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arch != nil && s.binding == nil && s.failure != nil && !errors.Is(s.failure, context.DeadlineExceeded) {
		p.bind(ctx, s.arch, s)
	}
}
