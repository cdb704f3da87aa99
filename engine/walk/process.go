// SPDX-License-Identifier: Apache-2.0

package walk

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/plugin"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// Options are how stacks are walked.
type Options struct {
	// MaxFrames bounds the physical frames of a stack.
	MaxFrames int
	// NoInlines leaves out inlined calls: each frame has its containing
	// function only, at the line table's position.
	NoInlines bool
	// NoSymbols leaves names and positions out altogether.
	NoSymbols bool
	// Registers keeps the general registers of every frame.
	Registers bool
	// Lanes finds the state of a wave's lanes in every frame.
	Lanes bool
	// Locals reads the variables of every frame within limits; nil: none are read.
	Locals *trace.ValueLimits
	// TailCalls finds the functions that were left by tail calls, in threads of targets.
	TailCalls bool
}

// Shared is the data that the walks of all processes share: code objects, architectures and the
// memory of walkers.
type Shared struct {
	library  *code.Library
	options  Options
	isAlone  bool      // see Alone
	machines sync.Map  // *machine by *code.Machine
	walkers  sync.Pool // of *walker
}

// NewShared makes a Shared.
func NewShared(library *code.Library, options Options) *Shared {
	s := &Shared{library: library, options: options}
	s.walkers.New = func() any { return &walker{} }
	return s
}

// Alone returns a Shared with other options, for processes that share no code object with
// others: whatever a walk needs is read anew, from the target's memory if it is there.
func (s *Shared) Alone(options Options) *Shared {
	alone := NewShared(s.library, options)
	alone.isAlone = true
	return alone
}

// Options returns how stacks are walked.
func (s *Shared) Options() Options { return s.options }

// Library returns the code objects.
func (s *Shared) Library() *code.Library { return s.library }

// machine returns the architecture with a name.
func (s *Shared) machine(name string) (*machine, error) {
	architecture, err := s.library.Machine(name)
	if err != nil {
		return nil, err
	}
	if m, ok := s.machines.Load(architecture); ok {
		return m.(*machine), nil
	}
	m, _ := s.machines.LoadOrStore(architecture, newMachine(architecture))
	return m.(*machine), nil
}

// Process is the threads, memory and code that stacks are walked in. It may be used
// concurrently.
type Process struct {
	shared *Shared
	state  target.Target
	list   *target.ThreadList // the target's
	finder object.Finder
	bounds *bounds

	loading sync.Mutex // locked while modules are added
	loaded  atomic.Pointer[[]*code.Module]
	all     []*code.Module // also modules that are no longer loaded
	code    atomic.Pointer[code.Segments]
	listed  []*target.Module // what Modules returns
	// processors are the threads' processors, by architecture; nil until one is needed.
	processors map[string]string

	bound    sync.Once
	machines map[string]*machine // the architectures of its threads, by name
	missing  map[string]error    // why an architecture is missing, by name
	threads  threadStates

	unmapped  unmappedCode
	unplaced  func(address uint64) []trace.Symbol // names code of no module; nil: it has no names
	generated RuntimeCode                         // nil: the process has no runtimes
	values    *value.Cache                        // nil: variables are not read
	tls       tlsBlocks
	tails     tailChains
	launchers launchers
	plans     lanePlans
}

// NewProcess makes a process of a target, whose files the finder finds. Close closes its code
// objects; the target remains its owner's.
func (s *Shared) NewProcess(state target.Target, finder object.Finder) *Process {
	p := &Process{shared: s, state: state, list: target.ThreadsOf(state), finder: finder, bounds: newBounds(state)}
	if s.options.Locals != nil {
		p.values = value.NewCache()
	}
	p.SetModules(state.Modules())
	return p
}

// Close closes the code objects. No walk may be in progress.
func (p *Process) Close() {
	p.loading.Lock()
	defer p.loading.Unlock()
	for _, m := range p.all {
		m.Close()
	}
}

// SetModules sets the modules that are loaded from now on; modules that were loaded before are
// the same pointers. A walk in progress goes on with the old modules, and walked stacks keep
// theirs: modules that are not loaded any more are closed with the process.
func (p *Process) SetModules(modules []*target.Module) {
	p.loading.Lock()
	defer p.loading.Unlock()
	known := make(map[*target.Module]*code.Module, len(p.all))
	for _, m := range p.all {
		known[m.Module] = m
	}
	list := make([]*code.Module, len(modules))
	for i, m := range modules {
		if list[i] = known[m]; list[i] == nil {
			list[i] = p.load(m, code.Loading{})
		}
	}
	p.setLoaded(list)
	p.listed = modules
	p.unmapped.forget()
}

// Renew is called when a target of the same modules has other threads and other memory. Findings
// in these are forgotten. No walk may be in progress.
func (p *Process) Renew() {
	p.list = target.ThreadsOf(p.state)
	p.bounds = newBounds(p.state)
	p.bound, p.threads, p.launchers, p.tls = sync.Once{}, threadStates{}, launchers{}, tlsBlocks{}
	if p.values != nil {
		p.values = value.NewCache()
	}
	p.unmapped.forget()
}

// NameUnplaced sets the function that names code in no module, from now on.
func (p *Process) NameUnplaced(name func(address uint64) []trace.Symbol) { p.unplaced = name }

// load loads a module. The caller has locked loading.
func (p *Process) load(m *target.Module, o code.Loading) *code.Module {
	o.Target = &view{p}
	if o.Finder == nil {
		o.Finder = &p.finder
	}
	o.Processor, o.IsAlone = p.processorOf(m), p.shared.isAlone
	o.ReadMemory = func(address uint64, buf []byte) (int, error) {
		return p.state.ReadMemory(locexpr.DefaultSpace, address, buf)
	}
	loaded := p.shared.library.Load(m, o)
	p.all = append(p.all, loaded)
	return loaded
}

// AddModule adds a module whose place in the process is recorded elsewhere, as in recordings,
// whose processes each have it where they mapped it. Its ID becomes its index. jit is JIT code;
// nil: the code is an object's.
func (p *Process) AddModule(m *target.Module, jit *code.JIT) *code.Module {
	p.loading.Lock()
	defer p.loading.Unlock()
	m.ID = len(p.all)
	return p.load(m, code.Loading{JIT: jit})
}

// AddModuleOf is AddModule for a module whose files another finder finds than the process's
// own: for a process with a root directory of its own.
func (p *Process) AddModuleOf(m *target.Module, finder *object.Finder) *code.Module {
	p.loading.Lock()
	defer p.loading.Unlock()
	m.ID = len(p.all)
	return p.load(m, code.Loading{Finder: finder})
}

// Module returns the module to which AddModule or AddModuleOf gave an ID.
func (p *Process) Module(id uint64) *code.Module {
	p.loading.Lock()
	defer p.loading.Unlock()
	if id >= uint64(len(p.all)) {
		return nil
	}
	return p.all[id]
}

func (p *Process) setLoaded(list []*code.Module) {
	segments := code.SegmentsOf(list)
	p.code.Store(&segments)
	p.loaded.Store(&list)
	p.tails.forget()
	p.launchers.mu.Lock()
	p.launchers.recorded = nil // they may be elsewhere now
	p.launchers.mu.Unlock()
}

// processorOf returns the processor of a module's code, where the module does not name it: the
// one of all threads of its architecture; "" where they have several.
func (p *Process) processorOf(m *target.Module) string {
	if m.Processor != "" {
		return ""
	}
	if p.processors == nil { // a process may have a million threads, and a hundred modules
		p.processors = map[string]string{}
		for t := range p.list.Kinds() {
			if name, isMet := p.processors[t.Arch]; isMet && name != t.Processor {
				p.processors[t.Arch] = ""
			} else {
				p.processors[t.Arch] = t.Processor
			}
		}
	}
	return p.processors[m.Arch]
}

// Info returns information about the target as a whole.
func (p *Process) Info() trace.Target { return p.state.Info() }

// Modules returns the loaded code objects, as the target or SetModules lists them.
func (p *Process) Modules() []*target.Module {
	p.loading.Lock()
	defer p.loading.Unlock()
	return p.listed
}

// Loaded returns Modules with their code objects at work.
func (p *Process) Loaded() []*code.Module { return *p.loaded.Load() }

// Segment returns the segment of code at an address; nil where there is none.
func (p *Process) Segment(address uint64) *code.Segment { return p.code.Load().Find(address) }

// Threads returns the threads in the target's own order.
func (p *Process) Threads() []*trace.Thread { return p.list.Threads() }

// ThreadList returns the threads of Threads, of which there may be a million.
func (p *Process) ThreadList() *target.ThreadList { return p.list }

// State returns the target with the memory and registers.
func (p *Process) State() target.Target { return p.state }

// SpaceName returns the name of an address space in the architecture of a thread, whose stack
// was walked.
func (p *Process) SpaceName(th *trace.Thread, space locexpr.AddressSpace) string {
	if m := p.machineOf(th); m != nil {
		return m.SpaceName(space)
	}
	return fmt.Sprintf("address space %d", space)
}

// ModuleInfo returns the current information about a module of the process.
func (p *Process) ModuleInfo(m *trace.Module) trace.ModuleInfo {
	if loaded := p.moduleOf(m); loaded != nil {
		return loaded.Info()
	}
	return trace.ModuleInfo{}
}

// DebugInfo returns where the debug information of a module of the process is, or why there
// is none; see code.Module.DebugInfo.
func (p *Process) DebugInfo(m *trace.Module) trace.DebugInfo {
	if loaded := p.moduleOf(m); loaded != nil {
		return loaded.DebugInfo()
	}
	return trace.DebugInfoNone
}

// moduleOf returns a module of the target with its code; nil where it is not in the process.
func (p *Process) moduleOf(m *trace.Module) *code.Module {
	p.loading.Lock()
	all := p.all
	p.loading.Unlock()
	if m.ID < len(all) && &all[m.ID].Module.Module == m {
		return all[m.ID]
	}
	for _, loaded := range all {
		if &loaded.Module.Module == m {
			return loaded
		}
	}
	return nil
}

// CodeObject returns the code object of a module of the process, as it is in its file; nil
// where there is none. It is open as long as the process.
func (p *Process) CodeObject(m *trace.Module) *object.Object {
	p.loading.Lock()
	defer p.loading.Unlock()
	for _, loaded := range p.all {
		if &loaded.Module.Module == m {
			return loaded.Code.File
		}
	}
	return nil
}

// Problems returns the problems with the target and with the plugins it uses, each a sentence.
func (p *Process) Problems() []string {
	problems := append(append([]string(nil), p.state.Info().Problems...), p.bounds.problems()...)
	seen := map[*plugin.Arch]bool{}
	for th := range p.list.Kinds() {
		if m := p.machineOf(th); m != nil && !seen[m.Plugin] {
			seen[m.Plugin] = true
			problems = append(problems, m.Plugin.Problems()...)
		}
	}
	return countEqual(problems)
}

// countEqual keeps the first of equal sentences, with their number.
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

// Stacks walks the threads of the target, in its order, each when the loop gets to it.
func (p *Process) Stacks(ctx context.Context) iter.Seq[*trace.Stack] { return p.StacksOf(ctx, p.list) }

// StacksOf walks threads of the target, in their order in the list, each when the loop gets to
// it. A stack belongs to the caller: only data that many stacks share is kept here (names of
// functions, stacks of launchers). It ends early when ctx does.
func (p *Process) StacksOf(ctx context.Context, threads *target.ThreadList) iter.Seq[*trace.Stack] {
	return func(yield func(*trace.Stack) bool) {
		k := p.newPass(threads)
		paged, _ := p.state.(target.Paged)
		n := 0
		pass := func(th *trace.Thread, stack *trace.Stack) bool {
			if ctx.Err() != nil || !yield(stack) {
				return false
			}
			k.end(th)
			if n++; paged != nil && n%releaseEvery == 0 {
				paged.ReleasePages()
			}
			return true
		}
		if p.shared.options.Locals != nil {
			p.walkParallel(ctx, threads, k, pass)
			return
		}
		for _, th := range threads.All() {
			k.begin(th)
			if !pass(th, p.Walk(ctx, th)) {
				return
			}
		}
	}
}

// releaseEvery is the number of stacks after which their pages are released. Each has 64 KiB or
// more, since the kernel also maps the pages around.
const releaseEvery = 256

// Walk walks the stack of one thread of the target. It always returns a stack: a problem is its
// Stopped, and the frames found before it are kept. The stack of a thread that another one
// launched continues in its Launchers.
func (p *Process) Walk(ctx context.Context, th *trace.Thread) *trace.Stack {
	stack := p.walkThread(ctx, th)
	p.joinLaunchers(ctx, stack)
	return stack
}

// walkThread walks the stack of a thread without its launchers.
func (p *Process) walkThread(ctx context.Context, th *trace.Thread) *trace.Stack {
	if len(th.ManagedFrames) > 0 {
		return &trace.Stack{
			Thread: th, Frames: slices.Clone(th.ManagedFrames),
			Stopped: trace.Stopped{Reason: trace.StopOutermost, Detail: "the runtime has no frame outside it"},
		}
	}
	if len(th.Recorded) > 0 {
		return p.recordedStack(th)
	}
	state := p.stateOf(ctx, th)
	if state == nil {
		return &trace.Stack{Thread: th, Stopped: trace.Stopped{Reason: trace.StopNoMemory, Detail: "the thread is not of this target"}}
	}
	p.rebind(ctx, state)
	p.countLanes(ctx, state)
	w := p.shared.walkers.Get().(*walker)
	stack := &trace.Stack{Thread: th, Frames: w.results[:0], Lanes: state.lanes()}
	w.startThread(p, state, stack)
	most := w.segment.limit
	limit := p.bounds.framesOf(most)
	if w.segment.limit = limit; w.canWalkDeep() {
		w.segment.limit = min(limit, segmentFrames)
	}
	w.guarded(ctx)
	w.describe(ctx)
	w.results = stack.Frames
	stack.Frames = slices.Clone(stack.Frames)
	if w.segment.next != nil && w.canWalkDeep() && (limit == most || w.segment.limit < limit) {
		w.walkDeep(ctx, limit)
	}
	p.bounds.walked(stack, limit, most)
	if s := th.Stop; s != nil && s.HasPCExact && !s.PCExact && len(stack.Frames) > 0 {
		stack.Frames[0].Imprecise = true
	}
	clear(w.results)
	w.release()
	p.shared.walkers.Put(w)
	return stack
}

// guarded walks, and treats a file that shrinks as missing memory.
func (w *walker) guarded(ctx context.Context) { w.guardedFrom(ctx, nil) }

// guardedFrom is guarded from a frame on; nil: the top one.
func (w *walker) guardedFrom(ctx context.Context, f *frame) {
	err := object.Guard(func() error {
		if f == nil {
			f = w.top()
		}
		w.walkFrom(ctx, f)
		return nil
	})
	if err != nil {
		w.stack.Stopped, w.segment.next = trace.Stopped{Reason: trace.StopNoMemory, Detail: err.Error()}, nil
	}
}

// describe finds the details of walked frames that Options ask for.
func (w *walker) describe(ctx context.Context) {
	w.describeCalls(ctx, w.process.shared.options.TailCalls)
	w.readLocals(ctx)
	if !w.segment.isCounting || !w.process.shared.options.Registers {
		return
	}
	for i := range w.stack.Frames {
		f := &w.stack.Frames[i]
		if f.Details == nil {
			f.Details = &trace.FrameDetails{}
		}
		f.Details.Registers = w.frames[i].registers(ctx)
	}
}

// Engine returns the process as plugins read it during calls about it.
func (p *Process) Engine() sdk.Engine { return &view{p} }

// view is the process as a plugin reads it during a call about it.
type view struct{ process *Process }

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
	var th *trace.Thread
	if threads := v.process.list; m.Thread < uint64(threads.Len()) {
		th = threads.At(int(m.Thread))
		if m.Lane >= 0 {
			if th = target.OfLane(th, uint32(m.Lane)); th == nil {
				return 0, fmt.Errorf("lane %d of thread %d: %w", m.Lane, m.Thread, target.ErrNoMemory)
			}
		}
	}
	return readMemory(v.process.state, m.Space, th, m.Address, buf)
}

func (v *view) ReadRegisters(_ context.Context, handle uint64, numbers []uint32) (sdk.Registers, error) {
	threads := v.process.list
	if handle >= uint64(threads.Len()) {
		return sdk.Registers{}, fmt.Errorf("thread %d of a target with %d threads", handle, threads.Len())
	}
	th := threads.At(int(handle))
	m := v.process.Machine(th)
	if len(numbers) == 0 {
		if m == nil {
			return th.Registers, nil
		}
		return target.AllRegisters(v.process.state, th, m.Description), nil
	}
	var some sdk.Registers
	for _, n := range numbers {
		value, ok := th.Registers.Get(n)
		if !ok && m != nil && target.HasSaved(th, n) {
			if info, isKnown := m.Description.Register(n); isKnown {
				value, ok = target.ReadSaved(v.process.state, th, info)
			}
		}
		if ok {
			some.Set(n, value)
		}
	}
	return some, nil
}

func (v *view) ReadSection(_ context.Context, handle uint64, name string) ([]byte, error) {
	return v.process.shared.library.Section(handle, name)
}

// names returns the functions at an address of a module's object, as the options want them.
func (p *Process) names(m *code.Module, address uint64) []trace.Symbol {
	return m.Names(address, p.shared.options.NoInlines)
}
