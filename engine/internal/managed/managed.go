// SPDX-License-Identifier: Apache-2.0

// Package managed adds to the stacks of a process what plugins of language runtimes know: rows
// and names of code that a runtime made, frames of its interpreter, and threads that it
// schedules. Which runtimes a process has is decided by data: no plugin is started where
// none is recognised. Whatever a plugin answers is checked against the process before it is
// used, and where a plugin fails the native stacks remain.
package managed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/unwindd/unwindd/engine/internal/code"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/sdk"
)

// Runtime is the plugin of a language runtime. Its answers are valid for their requests.
type Runtime interface {
	Description() *sdk.RuntimeDescription
	OpenRuntime(ctx context.Context, e sdk.RuntimeEngine, req *sdk.OpenRuntimeRequest) (*sdk.OpenRuntimeAnswer, error)
	CodeRules(ctx context.Context, e sdk.RuntimeEngine, req *sdk.CodeRulesRequest) (*sdk.CodeRulesAnswer, error)
	ManagedFrames(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedFramesRequest) (*sdk.ManagedFramesAnswer, error)
	ManagedThreads(ctx context.Context, e sdk.RuntimeEngine, req *sdk.ManagedThreadsRequest) (*sdk.ManagedThreadsAnswer, error)
}

// Options are options of a Process.
type Options struct {
	// Locals asks for the variables of frames within limits; nil: none are read.
	Locals *trace.ValueLimits
	// MaxFrames bounds the frames that a runtime adds to one stack.
	MaxFrames int
	// ReadAhead reads memory in which PCs are guessed; nil: the process's. A recorder of memory
	// gives the memory behind it, so that guesses are not recorded.
	ReadAhead func(address uint64, buf []byte) (int, error)
}

// Process has the language runtimes of a process. It may be used concurrently.
type Process struct {
	process  *walk.Process
	runtimes func() []Runtime
	options  Options
	engine   *engine

	own        opened // the runtimes that may have code or frames
	schedulers opened // the others, which have threads alone

	launchers launchers
	locks     locks
	symbols   symbols
	carriers  carriers

	mu       sync.Mutex
	problems []string
}

// New returns the runtimes of a process, which has rows and names of their code from now on.
// Nothing is looked for, and runtimes is not called, until a stack is walked.
func New(p *walk.Process, runtimes func() []Runtime, options Options) *Process {
	x := &Process{process: p, runtimes: runtimes, options: options}
	x.engine = &engine{p.Engine(), p}
	p.SetRuntimeCode(x)
	return x
}

// handles numbers the runtimes of all processes.
var handles atomic.Uint64

// instance is a runtime in a module of the process.
type instance struct {
	owner   *Process
	runtime Runtime
	about   *sdk.RuntimeDescription
	module  *code.Module
	machine *code.Machine
	request *sdk.OpenRuntimeRequest
	answer  *sdk.OpenRuntimeAnswer
	// index is the place of the runtime among the process's: of two that say something of a
	// frame the first counts.
	index int
	code  generatedCode
	// locks are the locks that threads hold and wait for, by their handles, as the runtime lists
	// them without stacks.
	locks map[uint64][]sdk.ManagedLock

	failures atomic.Int32 // of calls, one after the other
}

// maxFailures is how many calls of a runtime may fail, one after the other, before no further
// one is made: each may take as long as a call's deadline.
const maxFailures = 3

// hasFailed reports whether no further call is made.
func (i *instance) hasFailed() bool { return i.failures.Load() >= maxFailures }

// opened are runtimes of a process that are found and opened once.
type opened struct {
	opening sync.Mutex
	list    atomic.Pointer[[]*instance] // nil: they were not looked for yet
}

// get returns the runtimes that is selects.
func (o *opened) get(ctx context.Context, x *Process, is func(*sdk.RuntimeDescription) bool) []*instance {
	if list := o.list.Load(); list != nil {
		return *list
	}
	o.opening.Lock()
	defer o.opening.Unlock()
	if list := o.list.Load(); list != nil {
		return *list
	}
	var list []*instance
	for _, found := range x.recognised(is) {
		i, err := x.open(ctx, found)
		if ctx.Err() != nil {
			return nil // the next caller looks for them again
		}
		if err != nil {
			x.problem("runtime %s in %s: %v", found.runtime.Description().Name, found.module.Path, err)
			continue
		}
		i.index = len(list)
		list = append(list, i)
	}
	o.list.Store(&list)
	return list
}

// recognised returns the runtimes that modules of the process have, among the ones that is selects.
func (x *Process) recognised(is func(*sdk.RuntimeDescription) bool) []recognised {
	var candidates []Runtime
	for _, r := range x.runtimes() {
		if is(r.Description()) {
			candidates = append(candidates, r)
		}
	}
	return recognise(candidates, x.process.Loaded())
}

// all returns the runtimes of the process that may have code or frames.
func (x *Process) all(ctx context.Context) []*instance {
	return x.own.get(ctx, x, func(d *sdk.RuntimeDescription) bool { return !d.ThreadsOnly })
}

// withThreads returns the runtimes of the process that schedule threads of a kind; "": of any.
func (x *Process) withThreads(ctx context.Context, kind string) (list []*instance) {
	only := x.schedulers.get(ctx, x, func(d *sdk.RuntimeDescription) bool { return d.ThreadsOnly })
	for _, i := range slices.Concat(only, x.all(ctx)) {
		if i.schedules(kind) {
			list = append(list, i)
		}
	}
	return list
}

// maxProblems bounds the sentences that are kept.
const maxProblems = 64

// problem adds a sentence to the problems, once.
func (x *Process) problem(format string, args ...any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if text := fmt.Sprintf(format, args...); len(x.problems) < maxProblems && !slices.Contains(x.problems, text) {
		x.problems = append(x.problems, text)
	}
}

// problem adds a sentence about the runtime to the problems of the process.
func (i *instance) problem(format string, args ...any) {
	i.owner.problem("runtime %s in %s: %s", i.about.Name, i.module.Path, fmt.Sprintf(format, args...))
}

// Problems returns the problems with the runtimes and their plugins so far, each a sentence.
func (x *Process) Problems() []string {
	x.mu.Lock()
	list := slices.Clone(x.problems)
	x.mu.Unlock()
	seen := map[Runtime]bool{}
	for _, o := range []*opened{&x.own, &x.schedulers} {
		all := o.list.Load()
		if all == nil {
			continue
		}
		for _, i := range *all {
			if r, ok := i.runtime.(interface{ Problems() []string }); ok && !seen[i.runtime] {
				seen[i.runtime] = true
				list = append(list, r.Problems()...)
			}
		}
	}
	return list
}

// call makes a call about the runtime. Where the plugin does not know it any longer, it is
// opened again, and the call is repeated. The error was added to the problems, unless it is the
// context's.
func call[A any](ctx context.Context, i *instance, name string, f func() (*A, error)) (*A, error) {
	answer, err := f()
	if errors.Is(err, sdk.ErrObjectNotOpen) {
		if _, err = i.runtime.OpenRuntime(ctx, i.owner.engine, i.request); err == nil {
			answer, err = f()
		}
	}
	switch {
	case err == nil:
		i.failures.Store(0)
		return answer, nil
	case ctx.Err() != nil:
	case i.failures.Add(1) == maxFailures:
		i.problem("%s: %v; after %d calls that failed no further one is made", name, err, maxFailures)
	default:
		i.problem("%s: %v", name, err)
	}
	return nil, err
}
