package walk

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/sdk"
)

// thread is a thread with its architecture and what its plugin said of it.
type thread struct {
	*target.Thread
	arch *machine

	mu       sync.Mutex // held while the thread is bound again
	binding  *sdk.ThreadBinding
	failure  error   // why there is no binding
	unplaced *thread // the same, bound as if at PC 0; nil until it is needed
	noPC     bool    // it is such a one
	counted  bool    // its lanes were asked of the code: see countLanes
}

// lanes is how many lanes the thread has; 0 where it is not bound.
func (s *thread) lanes() uint32 {
	if s.binding == nil {
		return 0
	}
	return s.binding.Lanes
}

// Bind asks the plugins about all threads of the target, once, a batch for each
// architecture.
func (p *Process) Bind(ctx context.Context) { p.bound.Do(func() { p.bindAll(ctx) }) }

func (p *Process) bindAll(ctx context.Context) {
	p.machines = map[string]*machine{}
	p.threads = map[*target.Thread]*thread{}
	batches := map[*machine][]*thread{}
	for _, th := range p.list {
		s := &thread{Thread: th}
		p.threads[th] = s
		if th.Unread != "" {
			s.failure = errors.New(th.Unread)
			continue
		}
		m := p.machines[th.Arch]
		if m == nil {
			var err error
			if m, err = p.shared.machine(th.Arch); err != nil {
				s.failure = err
				continue
			}
			p.machines[th.Arch] = m
		}
		s.arch = m
		if th.Problem == "" {
			batches[m] = append(batches[m], s)
		}
	}
	for m, batch := range batches {
		for part := range slices.Chunk(batch, maxBound) {
			p.bind(ctx, m, part...)
		}
	}
}

// maxBound is how many threads a plugin is asked about in one call, which has a
// deadline: a process may have a million waves.
const maxBound = 1 << 14

// bind asks about threads in one call.
func (p *Process) bind(ctx context.Context, m *machine, batch ...*thread) {
	req := &sdk.BindThreadsRequest{Threads: make([]sdk.ThreadState, len(batch))}
	for i, s := range batch {
		req.Threads[i] = sdk.ThreadState{
			Thread: s.Handle, Registers: s.boundRegisters(m), Processor: s.Processor, Lanes: s.Lanes, Spaces: s.Spaces,
		}
	}
	answer, err := m.Plugin.BindThreads(ctx, &view{p}, req)
	for i, s := range batch {
		if s.failure = err; err == nil {
			s.binding = &answer.Threads[i]
		}
	}
}

// boundRegisters are the registers that a thread is bound with.
func (s *thread) boundRegisters(m *machine) sdk.Registers {
	info, ok := m.Description.Register(m.Description.PC)
	if !s.noPC || !ok {
		return s.Registers
	}
	registers := s.Registers.Clone()
	registers.Set(m.Description.PC, make([]byte, (info.Bits+7)/8))
	return registers
}

// withoutPC is the thread as an evaluation sees it, which needs only what it
// reads. One whose PC the target does not say cannot be bound; it is bound again
// as if at 0, and its PC stays unknown.
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

// rebind asks about one thread alone after the batch that it was in failed:
// the plugin may run again, and another thread's state may have been why. A
// plugin that hung would only cost its deadline once more.
func (p *Process) rebind(ctx context.Context, s *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arch != nil && s.binding == nil && s.failure != nil && !errors.Is(s.failure, context.DeadlineExceeded) {
		p.bind(ctx, s.arch, s)
	}
}
