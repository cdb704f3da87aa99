// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/unwindd/unwindd/engine/internal/fact"
	"github.com/unwindd/unwindd/engine/internal/lock"
	"github.com/unwindd/unwindd/engine/internal/managed"
	"github.com/unwindd/unwindd/engine/internal/procmaps"
	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/internal/source"
	"github.com/unwindd/unwindd/engine/internal/target/perfdata"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
)

// Target is an opened target: its threads, and its modules with their rows and
// symbols. It may be used concurrently.
type Target struct {
	process *walk.Process
	managed *managed.Process // its language runtimes; nil: it is a sample
	engine  *Engine
	input   input // its packaging
	// registered has the problems of the lists of registered JIT code.
	registered []string
	perfMaps   []*perfdata.PerfMap // of JIT code

	loading sync.Mutex       // while LoadMaps loads and sets modules
	maps    procmaps.Modules // of LoadMaps
	sources func() *source.Files
	locks   func() *lock.Finder

	taking sync.Mutex
	ready  []*trace.Stack // of all threads, for who needs them first; nil: they are not walked yet
}

// Close closes the target and the files it mapped. The error is that of closing the file
// or process of the target.
func (t *Target) Close() error {
	t.engine.mu.Lock()
	delete(t.engine.targets, t)
	t.engine.mu.Unlock()
	t.process.Close()
	t.maps.Close()
	for _, m := range t.perfMaps {
		_ = m.Close() // it was only read
	}
	return t.process.State().Close()
}

// Modules returns the loaded code objects, by address.
func (t *Target) Modules() []*trace.Module {
	modules := t.process.Modules()
	list := make([]*trace.Module, len(modules))
	for i, m := range modules {
		list[i] = &m.Module
	}
	return list
}

// Process returns the threads, memory and code of the target. Its type is internal: it is for
// packages of unwindd, and promises nothing.
func (t *Target) Process() *walk.Process { return t.process }

// Threads returns the threads in the target's own order.
func (t *Target) Threads() []*trace.Thread { return t.process.Threads() }

// ModuleInfo returns the files of a module and their problems, as far as they are known by now.
func (t *Target) ModuleInfo(m *trace.Module) trace.ModuleInfo { return t.process.ModuleInfo(m) }

// DebugInfo returns whether the debug information of a module was found, or why not. It looks
// for it where no walk has.
func (t *Target) DebugInfo(m *trace.Module) trace.DebugInfo { return t.process.DebugInfo(m) }

// SpaceName returns the name of an address space in the architecture of a thread whose stack
// was walked.
func (t *Target) SpaceName(th *trace.Thread, space locexpr.AddressSpace) string {
	return t.process.SpaceName(th, space)
}

// Stacks walks the threads of the target, in its order, each when the loop gets to it.
func (t *Target) Stacks(ctx context.Context) iter.Seq[*trace.Stack] {
	return t.stacksOf(ctx, t.process.ThreadList())
}

// StacksOf walks threads of the target, in their order in the list, each when the loop gets to
// it. A stack belongs to the caller; it shares with others only the names of functions and the
// stacks of launchers. It ends early when ctx does.
func (t *Target) StacksOf(ctx context.Context, threads []*trace.Thread) iter.Seq[*trace.Stack] {
	return t.stacksOf(ctx, target.ListThreads(threads))
}

func (t *Target) stacksOf(ctx context.Context, threads *target.ThreadList) iter.Seq[*trace.Stack] {
	if ready := t.takeReady(threads); ready != nil {
		return slices.Values(ready)
	}
	native := func(yield func(*trace.Stack) bool) {
		for s := range t.process.StacksOf(ctx, threads) {
			t.setWait(ctx, s)
			if !yield(s) {
				return
			}
		}
	}
	if t.managed == nil {
		return native
	}
	return t.managed.Over(ctx, threads, native)
}

// takeReady returns the stacks of all threads, if these are threads and the stacks were walked when the target was
// opened, once.
func (t *Target) takeReady(threads *target.ThreadList) []*trace.Stack {
	t.taking.Lock()
	defer t.taking.Unlock()
	if t.ready == nil || !slices.Equal(threads.Threads(), t.Threads()) {
		return nil
	}
	ready := t.ready
	t.ready = nil
	return ready
}

// setWait sets what the thread of a stack waits for.
func (t *Target) setWait(ctx context.Context, s *trace.Stack) {
	_ = object.Guard(func() error { // where that cannot be read, it is not known
		s.Wait = t.locks().Of(ctx, s)
		return nil
	})
}

// Deadlocks returns the threads that wait for each other, each for a lock that the next one holds
// or for its end. Unreadable parts are left out.
func (t *Target) Deadlocks(ctx context.Context) (list []trace.Deadlock) {
	_ = object.Guard(func() error {
		list = t.locks().Deadlocks(ctx)
		return nil
	})
	return list
}

// RuntimeDeadlocks returns the deadlocks in which a thread waits for a lock of a language, as far
// as the stacks that were walked so far and the runtimes tell.
func (t *Target) RuntimeDeadlocks(ctx context.Context) []trace.Deadlock {
	if t.managed == nil {
		return nil
	}
	return t.managed.Deadlocks(ctx)
}

// Walk walks the stack of one thread of the target. It always returns a stack: a problem is its
// Stopped, and the frames found before it are kept. The stack of a thread that another one
// launched continues in its Launchers.
func (t *Target) Walk(ctx context.Context, th *trace.Thread) *trace.Stack {
	s := t.process.Walk(ctx, th)
	t.setWait(ctx, s)
	if t.managed != nil {
		t.managed.Extend(ctx, []*trace.Stack{s})
	}
	return s
}

// Walked returns nil where one of the target's stacks was walked. For a target whose threads
// have no architecture that reads them the error wraps ErrNotWalked; one without threads could
// not be read.
func (t *Target) Walked(stacks []*trace.Stack) error { return t.process.Walked(stacks) }

// NotWalked returns the error of Walked for a target whose first stack, like all others, was
// not walked; nil: it has none.
func (t *Target) NotWalked(first *trace.Stack) error { return t.process.NotWalked(first) }

// TopRegisters returns the general registers of a thread, walked or not: by number, or in the
// target's order for a thread that no architecture reads.
func (t *Target) TopRegisters(th *trace.Thread) []trace.RegisterValue {
	return t.process.TopRegisters(th)
}

// Globals reads the variables with a name, in all modules that have debug information.
// Thread-local storage is read for the thread.
func (t *Target) Globals(ctx context.Context, th *trace.Thread, name string, limits trace.ValueLimits) ([]trace.GlobalVariable, error) {
	return t.process.Globals(ctx, th, name, limits)
}

// Disassemble returns the instruction that begins at an address, such as a PC of a thread's
// stack, and up to before instructions before it and after after it: fewer where the function
// begins or ends, or where there is no more code. The error wraps sdk.ErrNotImplemented for an
// architecture that does not disassemble.
func (t *Target) Disassemble(ctx context.Context, th *trace.Thread, address uint64, before, after int) ([]trace.Instruction, error) {
	return t.process.Disassemble(ctx, th, address, before, after)
}

// HasLocals reports whether the variables of frames are read.
func (t *Target) HasLocals() bool { return t.engine.options.Locals != nil }

// HasSource reports whether lines of source are requested.
func (t *Target) HasSource() bool { return t.engine.options.SourceLines > 0 }

// Source returns the lines around the line of a function at a frame, one of its Symbols:
// about Options.SourceLines of them. The error is the reason that there are none.
func (t *Target) Source(f *trace.Frame, s *trace.Symbol) (trace.SourceLines, error) {
	p := source.PlaceOf(s)
	p.IsLocal = t.engine.options.LocalSource
	if f.Module != nil {
		p.BuildID, p.Object = f.Module.BuildID, f.Module.Path
		if o := t.process.CodeObject(f.Module); o != nil {
			p.Modified = o.ModTime()
			if len(p.BuildID) == 0 {
				p.BuildID = o.BuildID()
			}
		}
	}
	return t.sources().Lines(p, t.engine.options.SourceLines)
}

// Fact is a line that describes the crash of the process; see fact.Of. Unreadable parts
// are left out.
func (t *Target) Fact(ctx context.Context) string {
	text, _ := t.Happened(ctx)
	return text
}

// Happened is Fact, with the crash that a handler caught before the process ended.
func (t *Target) Happened(ctx context.Context) (text string, first *trace.CaughtCrash) {
	err := object.Guard(func() error {
		text, first = fact.Of(ctx, t.process)
		return nil
	})
	if err != nil {
		return "", nil
	}
	if t.managed == nil || !t.managed.HasFrames(ctx) && len(t.managed.Fatal(ctx)) == 0 {
		return text, first
	}
	return t.happenedIn(ctx, text, first), first
}

// happenedIn adds to a line about a crash what language runtimes know of it, and makes the place of
// the first crash that of the stack with their frames.
func (t *Target) happenedIn(ctx context.Context, text string, first *trace.CaughtCrash) string {
	var runtimes []trace.RuntimeThread
	if th := t.Crashed(); th != nil && t.managed.HasFrames(ctx) {
		s := t.Walk(ctx, th)
		runtimes = s.Runtimes
		text = fact.InLanguage(text, s, signature.Read(s, 0))
	}
	raised := fact.Raised(t.process, first, runtimes)
	if first != nil {
		t.placeFirst(ctx, first)
	}
	return fact.WithRuntimes(text, raised, runtimes, t.managed.Fatal(ctx))
}

// placeFirst makes the place of a crash in a native stack that of the stack with the frames of
// language runtimes.
func (t *Target) placeFirst(ctx context.Context, first *trace.CaughtCrash) {
	threads := t.process.ThreadList()
	i := threads.Index(first.Thread)
	if i < 0 || !t.managed.HasFrames(ctx) {
		return
	}
	s := t.Walk(ctx, threads.At(i))
	if n := s.IndexBehind(first.Frame); n > 0 && n < len(s.Frames) {
		first.Frame, first.Inside = n, s.Frames[:n]
	}
}

// Crashed is the thread that Fact is about; nil where none crashed.
func (t *Target) Crashed() *trace.Thread { return fact.Thread(t.process) }

// Signature is the key that crashes are grouped by. s is a walked stack with its inlined
// calls and at least DefaultMaxFrames frames, if it has so many; text is the result of
// Fact.
func (t *Target) Signature(s *trace.Stack, text string) trace.Signature {
	return t.SignatureBy(context.Background(), trace.SignatureVersion, s, text)
}

// SignatureBy is Signature by the rules of a version, 1 to SignatureVersion.
func (t *Target) SignatureBy(ctx context.Context, version int, s *trace.Stack, text string) trace.Signature {
	kind := t.Info().Kind
	crash := signature.Crash{
		Stack: s, IsOverflow: fact.IsStackOverflow(text) && s.Thread == t.Crashed(), IsApple: kind == trace.AppleReport || kind == trace.MachOCore,
	}
	_ = object.Guard(func() error {
		first := fact.FindFirst(ctx, t.process, s)
		if first != nil {
			crash.First = s.IndexBehind(first.Frame)
		}
		if raised := fact.Raised(t.process, first, s.Runtimes); raised != nil {
			crash.Raised = raised.Type
		}
		return nil
	})
	return signature.Of(version, &crash)
}

// Analysis has the accesses of the instruction that failed; see fact.Analyze. Unreadable
// parts are left out.
func (t *Target) Analysis(ctx context.Context) (a trace.Analysis) {
	if err := object.Guard(func() error { a = fact.Analyze(ctx, t.process); return nil }); err != nil {
		return trace.Analysis{}
	}
	return a
}

// CodeReader makes a reader of the code of frames, count instructions of each, at most
// walk.MaxCode.
func (t *Target) CodeReader(count int) *walk.CodeReader {
	return t.process.NewCodeReader(count, t.engine.program)
}

// Problems lists the problems of the target, and of the plugins and the disassembler that
// it uses, each a sentence.
func (t *Target) Problems() []string {
	problems := slices.Concat(t.input.problems, t.process.Problems(), t.registered)
	if t.managed != nil {
		problems = append(problems, t.managed.Problems()...)
	}
	problems = append(problems, object.UnusedModules(t.engine.options.Modules, func(is func(name string) bool) bool {
		return slices.ContainsFunc(t.process.Modules(), func(m *target.Module) bool { return is(m.Path) })
	})...)
	if t.engine.program != nil {
		problems = append(problems, t.engine.program.Problems()...)
	}
	return problems
}

// Symbolize returns the functions at addresses of the target, innermost first, one list
// for each address: of a return address the caller passes one inside the call. A list is
// empty where nothing is known. The lists are shared and must not be changed.
func (t *Target) Symbolize(ctx context.Context, addresses []uint64) [][]trace.Symbol {
	return t.AppendSymbols(ctx, make([][]trace.Symbol, 0, len(addresses)), addresses)
}

// AppendSymbols is Symbolize into memory of the caller. For addresses that were requested
// before it allocates nothing.
func (t *Target) AppendSymbols(ctx context.Context, dst [][]trace.Symbol, addresses []uint64) [][]trace.Symbol {
	isPhysical := t.engine.options.NoInlines
	for _, a := range addresses {
		var frames []trace.Symbol
		if s := t.process.Segment(a); s != nil {
			frames = s.Module.AllNames(ctx, s.ObjectAddress(a), isPhysical)
		} else if t.managed != nil {
			frames = t.managed.Symbols(ctx, a)
		}
		dst = append(dst, frames)
	}
	return dst
}

// InputProblems lists the problems of unpacking the target.
func (t *Target) InputProblems() []string { return t.input.problems }

// SetInputProblems sets them for a target that was attached.
func (t *Target) SetInputProblems(problems []string) { t.input.problems = problems }
