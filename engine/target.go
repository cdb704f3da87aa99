package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// A Target is an opened target with what the engine knows about it: its
// threads' bindings, and the rows and symbols of its modules. It may be used
// concurrently.
type Target struct {
	engine  *Engine
	number  uint64 // of no other target of this process; see module.handle
	state   target.Target
	finder  object.Finder
	adding  sync.RWMutex // of modules, which only a recording's grow
	modules []*module
	index   codeIndex
	threads map[*target.Thread]*thread
	rows    rowCache
	// machines are the architectures of its threads, by name.
	machines map[string]*machine
	walkers  sync.Pool // of *walker
	bounds   *bounds

	bound sync.Once
	tls   tlsBlocks

	launchers launchers
}

// targets counts the targets of this process.
var targets atomic.Uint64

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

func newTarget(e *Engine, state target.Target) *Target {
	t := &Target{engine: e, number: targets.Add(1), state: state, finder: e.Finder(state.Info().Path), threads: map[*target.Thread]*thread{}, bounds: newBounds(state)}
	for _, m := range state.Modules() {
		mod := t.newModule(m)
		t.modules = append(t.modules, mod)
		mod.placeSegments()
		for _, s := range mod.placed {
			if s.Executable && s.Size > 0 && s.Start+s.Size > s.Start {
				t.index = append(t.index, moduleSegment{s.Start, s.Start + s.Size, mod, s.Address})
			}
		}
	}
	t.index.sort()
	t.walkers.New = func() any { return t.walker() }
	return t
}

func (t *Target) newModule(m *target.Module) *module {
	return &module{Module: m, target: t, rows: map[rowKey]*rowSource{}}
}

// addModule adds a module, whose ID becomes its index.
func (t *Target) addModule(m *module) {
	t.adding.Lock()
	defer t.adding.Unlock()
	m.ID = len(t.modules)
	t.modules = append(t.modules, m)
}

// moduleOf is the module with an ID; nil where there is none.
func (t *Target) moduleOf(id uint64) *module {
	t.adding.RLock()
	defer t.adding.RUnlock()
	if id >= uint64(len(t.modules)) {
		return nil
	}
	return t.modules[id]
}

// Info is what is known of the target as a whole.
func (t *Target) Info() target.Info { return t.state.Info() }

// Modules are the code objects loaded, by address.
func (t *Target) Modules() []*target.Module { return t.state.Modules() }

// Threads are in the target's own order.
func (t *Target) Threads() []*target.Thread { return t.state.Threads() }

// State is where the target's memory and registers come from.
func (t *Target) State() target.Target { return t.state }

// SpaceName is what the architecture of a thread, whose stack was walked, calls
// an address space.
func (t *Target) SpaceName(th *target.Thread, space locexpr.AddressSpace) string {
	if s := t.threads[th]; s != nil && s.arch != nil {
		return s.arch.spaceName(space)
	}
	return fmt.Sprintf("address space %d", space)
}

// Close closes the target and the files it mapped.
func (t *Target) Close() error {
	t.engine.mu.Lock()
	delete(t.engine.targets, t)
	t.engine.mu.Unlock()
	for _, m := range t.modules {
		m.close()
	}
	return t.state.Close()
}

// Stacks walks the threads of the target, in its order.
func (t *Target) Stacks(ctx context.Context) iter.Seq[*Stack] {
	return func(yield func(*Stack) bool) {
		for _, th := range t.state.Threads() {
			if ctx.Err() != nil || !yield(t.Walk(ctx, th)) {
				return
			}
		}
	}
}

// Walk walks the stack of one thread of the target. There is always a stack:
// what went wrong is its Stopped. Nothing that was found before is lost. The
// stack of a thread that another one launched continues in its Launchers.
func (t *Target) Walk(ctx context.Context, th *target.Thread) *Stack {
	stack := t.walkThread(ctx, th)
	t.joinLaunchers(ctx, stack)
	return stack
}

// walkThread walks the stack of a thread alone.
func (t *Target) walkThread(ctx context.Context, th *target.Thread) *Stack {
	t.bound.Do(func() { t.bindAll(ctx) })
	state := t.threads[th]
	if state == nil {
		return &Stack{Thread: th, Stopped: Stopped{StopNoMemory, "the thread is not of this target"}}
	}
	t.rebind(ctx, state)
	t.countLanes(ctx, state)
	w := t.walkers.Get().(*walker)
	stack := &Stack{Thread: th, Frames: w.results[:0], Lanes: state.lanes()}
	w.start(t.state, state, stack)
	most := w.limit
	w.limit = t.bounds.framesOf(most)
	w.guarded(ctx)
	w.results = stack.Frames
	stack.Frames = slices.Clone(stack.Frames)
	t.bounds.walked(stack, w.limit, most)
	if s := th.Stop; s != nil && s.HasPCExact && !s.PCExact && len(stack.Frames) > 0 {
		stack.Frames[0].Imprecise = true
	}
	clear(w.results)
	w.stack = nil
	t.walkers.Put(w)
	return stack
}

// guarded walks, and takes a file that shrinks for memory that is not there.
func (w *walker) guarded(ctx context.Context) {
	if err := object.Guard(func() error { w.walk(ctx); return nil }); err != nil {
		w.stack.Stopped = Stopped{StopNoMemory, err.Error()}
	}
}

// ModuleInfo is what was found out about a module while walking.
type ModuleInfo struct {
	DebugFile string    // the separate debug file in use; "" when there is none
	DebugInfo DebugInfo // what came of looking for debug information
	Problems  []string  // each a sentence
	Unused    []string  // debug files that are there and could not be used, where no other was; sentences among Problems
	Searched  []string  // other debug files that were looked at and not taken, and why
}

// DebugInfo says what came of looking for a module's debug information
// (`debug_info` of the output).
type DebugInfo string

// What came of it. It is "" where nobody looked.
const (
	DebugInfoFound      DebugInfo = "found"      // in the module's file or in a separate one
	DebugInfoNone       DebugInfo = "none"       // there is neither
	DebugInfoMismatch   DebugInfo = "mismatch"   // the file that should have it belongs to another module
	DebugInfoUnreadable DebugInfo = "unreadable" // it is there and cannot be read
)

// ModuleInfo says what is known of a module of the target by now.
func (t *Target) ModuleInfo(m *target.Module) ModuleInfo {
	for _, mod := range t.modules {
		if mod.Module == m {
			return mod.info()
		}
	}
	return ModuleInfo{}
}

// Problems are what went wrong with the target and with the plugins it uses,
// each a sentence.
func (t *Target) Problems() []string {
	problems := append(append([]string(nil), t.state.Info().Problems...), t.bounds.problems()...)
	seen := map[*plugin.Arch]bool{}
	for _, th := range t.state.Threads() {
		if s := t.threads[th]; s != nil && s.arch != nil && !seen[s.arch.arch] {
			seen[s.arch.arch] = true
			problems = append(problems, s.arch.arch.Problems()...)
		}
	}
	return countEqual(problems)
}

// countEqual keeps the first of equal sentences and says how many there are.
func countEqual(sentences []string) []string {
	var out []string
	count := map[string]int{}
	for _, s := range sentences {
		if count[s]++; count[s] == 1 {
			out = append(out, s)
		}
	}
	for i, s := range out {
		if n := count[s]; n > 1 {
			out[i] = fmt.Sprintf("%s (%d times)", s, n)
		}
	}
	return out
}

// bindAll asks the plugins about all threads of the target, a batch for each
// architecture.
func (t *Target) bindAll(ctx context.Context) {
	if t.machines == nil {
		t.machines = map[string]*machine{}
	}
	machines := t.machines
	batches := map[*machine][]*thread{}
	for _, th := range t.state.Threads() {
		s := &thread{Thread: th}
		t.threads[th] = s
		if th.Unread != "" {
			s.failure = errors.New(th.Unread)
			continue
		}
		m := machines[th.Arch]
		if m == nil {
			a, err := t.engine.plugins.Find(th.Arch)
			if err != nil {
				s.failure = err
				continue
			}
			m = newMachine(a)
			machines[th.Arch] = m
		}
		s.arch = m
		if th.Problem == "" {
			batches[m] = append(batches[m], s)
		}
	}
	t.adding.RLock()
	for _, mod := range t.modules {
		if mod.arch == nil { // a recording's have theirs
			mod.arch = machines[mod.Arch]
		}
	}
	t.adding.RUnlock()
	for m, batch := range batches {
		for part := range slices.Chunk(batch, maxBound) {
			t.bind(ctx, m, part...)
		}
	}
}

// maxBound is how many threads a plugin is asked about in one call, which has a
// deadline: a process may have a million waves.
const maxBound = 1 << 14

// bind asks about threads in one call.
func (t *Target) bind(ctx context.Context, m *machine, batch ...*thread) {
	req := &sdk.BindThreadsRequest{Threads: make([]sdk.ThreadState, len(batch))}
	for i, s := range batch {
		req.Threads[i] = sdk.ThreadState{
			Thread: s.Handle, Registers: s.boundRegisters(m), Processor: s.Processor, Lanes: s.Lanes, Spaces: s.Spaces,
		}
	}
	answer, err := m.arch.BindThreads(ctx, &view{target: t}, req)
	for i, s := range batch {
		if s.failure = err; err == nil {
			s.binding = &answer.Threads[i]
		}
	}
}

// boundRegisters are the registers that a thread is bound with.
func (s *thread) boundRegisters(m *machine) sdk.Registers {
	info, ok := m.desc.Register(m.desc.PC)
	if !s.noPC || !ok {
		return s.Registers
	}
	registers := s.Registers.Clone()
	registers.Set(m.desc.PC, make([]byte, (info.Bits+7)/8))
	return registers
}

// withoutPC is the thread as an evaluation sees it, which needs only what it
// reads. One whose PC the target does not say cannot be bound; it is bound again
// as if at 0, and its PC stays unknown.
func (t *Target) withoutPC(ctx context.Context, s *thread) *thread {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arch == nil {
		return s
	}
	_, hasPC := s.Registers.Get(s.arch.desc.PC)
	if bad := s.Problem != "" || s.binding != nil && s.binding.Problem != ""; hasPC || !bad {
		return s
	}
	if s.unplaced == nil {
		s.unplaced = &thread{Thread: s.Thread, arch: s.arch, noPC: true}
		t.bind(ctx, s.arch, s.unplaced)
	}
	if s.unplaced.binding == nil {
		return s
	}
	return s.unplaced
}

// rebind asks about one thread alone after the batch that it was in failed:
// the plugin may run again, and another thread's state may have been why. A
// plugin that hung would only cost its deadline once more.
func (t *Target) rebind(ctx context.Context, s *thread) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.arch != nil && s.binding == nil && s.failure != nil && !errors.Is(s.failure, context.DeadlineExceeded) {
		t.bind(ctx, s.arch, s)
	}
}

// readMemory reads global memory, or the instance of another space that belongs
// to a thread, which is nil where none is meant.
func readMemory(state target.Target, space locexpr.AddressSpace, th *target.Thread, address uint64, buf []byte) (int, error) {
	if s, ok := state.(target.ScopedMemory); ok && th != nil && space != locexpr.DefaultSpace {
		return s.ReadScoped(space, th, address, buf)
	}
	return state.ReadMemory(space, address, buf)
}

// view is the engine as a plugin sees it while a call about a target is under
// way.
type view struct{ target *Target }

func (v *view) ReadMemory(_ context.Context, m sdk.MemoryRange, buf []byte) (n int, err error) {
	guarded := object.Guard(func() error {
		n, err = v.read(m, buf)
		return nil
	})
	if guarded != nil {
		return 0, guarded
	}
	return n, err
}

func (v *view) read(m sdk.MemoryRange, buf []byte) (int, error) {
	var th *target.Thread
	if threads := v.target.state.Threads(); m.Thread < uint64(len(threads)) {
		th = threads[m.Thread]
	}
	return readMemory(v.target.state, m.Space, th, m.Address, buf)
}

func (v *view) ReadRegisters(_ context.Context, handle uint64, numbers []uint32) (sdk.Registers, error) {
	threads := v.target.state.Threads()
	if handle >= uint64(len(threads)) {
		return sdk.Registers{}, fmt.Errorf("thread %d of a target with %d threads", handle, len(threads))
	}
	all := threads[handle].Registers
	if len(numbers) == 0 {
		return all, nil
	}
	var some sdk.Registers
	for _, n := range numbers {
		if value, ok := all.Get(n); ok {
			some.Set(n, value)
		}
	}
	return some, nil
}

func (v *view) ReadSection(_ context.Context, handle uint64, name string) ([]byte, error) {
	o := v.target.objectOf(handle)
	if o == nil {
		return nil, fmt.Errorf("no code object %d", handle)
	}
	return readSection(o, name)
}
