// SPDX-License-Identifier: Apache-2.0

// Package collector collects the contents of snapshots. A walk of a stack shows the memory
// that it needs: a snapshot has all memory that the walk reads, and the bytes of its
// frames.
package collector

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/fact"
	"github.com/unwindd/unwindd/engine/internal/lock"
	"github.com/unwindd/unwindd/engine/internal/managed"
	"github.com/unwindd/unwindd/engine/internal/target/snapshot"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
)

const (
	// keptStack bounds the bytes of frames that are kept of a thread, beyond what
	// its walk reads.
	keptStack = 64 << 10
	// keptWave bounds the bytes of a wave, whose lanes have their bytes side by side, and
	// keptOfLane the bytes of each lane in its top frame.
	keptWave   = 256 << 10
	keptOfLane = 1 << 10
	// keptStacks bounds the bytes of all threads together.
	keptStacks = 64 << 20
	// keptRegisters bounds the registers in memory: crashed threads and some others keep
	// all of theirs.
	keptRegisters = 32 << 20
	// keptBeyond is the number of bytes that are kept around the ends of a stack: below
	// the stack pointer, where a leaf function may have data, and above the last frame.
	keptBeyond = 256
	// releaseEvery is the number of stacks after which the pages of a target's file are
	// released.
	releaseEvery = 1 << 10
	// keptPages bounds the pages that are kept. A hostile target can make a walk read far
	// more than stacks have.
	keptPages = 512 << 20 >> pageBits
)

// Request asks for the contents of a snapshot.
type Request struct {
	Process  *walk.Process
	Facts    *trace.Facts    // of the target with its packaging; nil: it has none
	Problems func() []string // lists the problems of the target, once it was walked
	Shared   *walk.Shared    // has the options of walks
	Finder   object.Finder   // of the target's files
	// Runtimes are the language runtimes that can be used, and Managed how they are asked: what
	// they read of the target is kept.
	Runtimes func() []managed.Runtime
	Managed  managed.Options
	// Goroutines keeps what the threads need that runtimes schedule and that have native stacks, too.
	Goroutines bool
	// Files and AnyFile select the files that are put in: see engine.SnapshotOptions.
	Files, AnyFile bool
}

// Result is the data that was collected. Its fields are documented with engine.Snapshot.
type Result struct {
	snapshot.Contents
	Frames   int
	Problems []string
	Unwalked error
}

// Collect walks the stacks of a target, and collects what they need. The error is ctx's.
func Collect(ctx context.Context, r *Request) (*Result, error) {
	options := r.Shared.Options()
	options.NoSymbols, options.Registers = true, true // registers that callees saved are kept too
	original := r.Process.State()
	c := &collector{
		recorder: recorder{
			Target: original, instances: map[instance]*pages{}, withheld: map[*target.Module]bool{}, needed: map[uint64]map[uint32]bool{},
		},
		request:   r,
		launchers: map[uint64]*trace.Launch{},
		result:    &Result{},
	}
	if !r.AnyFile {
		c.files, _ = original.(target.FileMemory)
	}
	var state target.Target = &c.recorder
	if scoped, ok := original.(target.ScopedMemory); ok {
		state = &scopedRecorder{&c.recorder, scoped}
	}
	c.shared = r.Shared.Alone(options)
	c.walked = c.shared.NewProcess(state, r.Finder)
	defer c.walked.Close()
	c.walked.SetModules(r.Process.Modules())
	r.Managed.ReadAhead = func(address uint64, buf []byte) (int, error) {
		return original.ReadMemory(locexpr.DefaultSpace, address, buf)
	}
	if r.Managed.Locals == nil { // who reads the snapshot may ask for variables
		r.Managed.Locals = &trace.DefaultValueLimits
	}
	c.managed = managed.New(c.walked, r.Runtimes, r.Managed)
	if err := c.walk(ctx); err != nil {
		return nil, err
	}
	c.keepManagedThreads(ctx)
	c.addPluginProblems(r.Problems())
	c.explain(ctx, state)
	c.addModules(r.Process.Loaded())
	c.addThreads()
	c.addMemory()
	return c.result, nil
}

// explain finds the line that describes the crash, and keeps it with the memory that it
// came from: a reader with more debug information makes a better one from that.
func (c *collector) explain(ctx context.Context, state target.Target) {
	facts := c.request.Facts
	if facts == nil {
		return
	}
	p := facts.Process
	if p.ID != 0 || p.User != nil || p.Executable != "" || p.Command != "" || p.Host != "" || !p.Created.IsZero() || !p.Kept.IsZero() {
		c.result.Process = &p
	}
	if facts.Crash == nil {
		return
	}
	crash := *facts.Crash
	c.result.Crash = &crash
	c.mu.Lock()
	c.mappings = map[uint64]target.Mapping{}
	c.mu.Unlock()
	shared := c.request.Shared
	process := shared.Alone(shared.Options()).NewProcess(state, c.request.Finder)
	defer process.Close()
	if c.thread = fact.Thread(process); c.thread == nil {
		return
	}
	c.arch, c.description = c.thread.Arch, nil
	if m := process.Machine(c.thread); m != nil {
		c.description = m.Description
	}
	// Unreadable parts are left out of the line.
	_ = object.Guard(func() error {
		var first *trace.CaughtCrash
		if crash.Fact, first = fact.Of(ctx, process); first != nil {
			crash.First = &first.FirstCrash
		}
		return nil
	})
	for _, m := range c.mappings {
		c.result.Mappings = append(c.result.Mappings, m)
	}
	slices.SortFunc(c.result.Mappings, func(a, b target.Mapping) int { return cmp.Compare(a.Start, b.Start) })
}

// collector collects a snapshot.
type collector struct {
	recorder
	request *Request
	shared  *walk.Shared     // of walked
	walked  *walk.Process    // the target, whose memory the recorder keeps as it is read
	managed *managed.Process // the language runtimes of walked
	result  *Result
	kept    int // bytes of keptStacks
	// launchers has the launchers that walks found, by handle of the launched thread.
	launchers map[uint64]*trace.Launch
	failed    int            // stacks that end where a plugin failed
	pending   []*trace.Stack // whose managed frames were not asked for yet
}

func (c *collector) problem(format string, args ...any) {
	c.result.Problems = append(c.result.Problems, fmt.Sprintf(format, args...))
}

// walk walks all stacks. Frames are kept of crashed threads first.
func (c *collector) walk(ctx context.Context) error {
	threads := slices.Clone(c.Threads())
	slices.SortStableFunc(threads, func(a, b *trace.Thread) int {
		return cmp.Compare(boolInt(b.Crashed), boolInt(a.Crashed))
	})
	var first *trace.Stack
	isWalked := false
	paged, _ := c.Target.(target.Paged)
	locks := lock.NewFinder(c.walked)
	for i, th := range threads {
		if paged != nil && i%releaseEvery == releaseEvery-1 {
			paged.ReleasePages()
		}
		c.arch, c.thread, c.description = th.Arch, th, nil
		if m := c.walked.Machine(th); m != nil {
			c.description = m.Description
		}
		s := c.walked.Walk(ctx, th)
		if err := ctx.Err(); err != nil {
			return err
		}
		if first == nil {
			first = s
		}
		isWalked = isWalked || s.IsWalked()
		if s.Stopped.Reason == trace.StopPluginFailed {
			c.failed++
		}
		c.result.Frames += len(s.Frames)
		c.keepWalked(ctx, s)
		c.keepOwn(ctx, th)
		c.keepLanes(ctx, th)
		locks.Touch(th)
		if by := s.LaunchedBy(); by != th.LaunchedBy {
			c.launchers[th.Handle] = by
		}
		c.keepManaged(ctx, s, i == len(threads)-1)
	}
	if !isWalked {
		c.result.Unwalked = c.walked.NotWalked(first)
	}
	return nil
}

// managedStacks is how many stacks language runtimes are asked about together.
const managedStacks = 64

// keepManaged keeps the memory from which language runtimes find the frames of stacks, a few at
// a time.
func (c *collector) keepManaged(ctx context.Context, s *trace.Stack, isLast bool) {
	if !c.managed.HasFrames(ctx) {
		return
	}
	c.pending = append(c.pending, s)
	if len(c.pending) == managedStacks || isLast {
		c.thread = nil // the reads are not of one thread
		c.managed.Extend(ctx, c.pending)
		clear(c.pending)
		c.pending = c.pending[:0]
	}
}

// keepManagedThreads keeps the memory in which language runtimes have the threads that they
// schedule, with the frames of those that have no native stack.
func (c *collector) keepManagedThreads(ctx context.Context) {
	c.thread = nil // the reads are not of one thread
	if !c.request.Goroutines {
		c.managed.ReadThreads(ctx, c.walked.State())
		return
	}
	all := c.shared.NewProcess(c.managed.Threads(ctx, "", c.walked.State()), c.request.Finder)
	defer all.Close()
	all.SetModules(c.request.Process.Modules())
	for _, th := range all.Threads() {
		if th.Goroutine != nil {
			c.arch = th.Arch
			c.result.Frames += len(all.Walk(ctx, th).Frames)
		}
	}
}

// addPluginProblems adds the problems of plugins that are not known: memory that no walk
// read is not in the snapshot, and no walk can continue from it.
func (c *collector) addPluginProblems(known []string) {
	for _, p := range slices.Concat(c.walked.Problems(), c.managed.Problems()) {
		if !slices.Contains(known, p) {
			c.problem("%s", p)
		}
	}
	if c.failed > 0 {
		c.problem("%d of %d stacks end where a plugin failed: what is beyond is not in the snapshot", c.failed, len(c.Threads()))
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
