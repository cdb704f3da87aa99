// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"github.com/unwindd/unwindd/engine/code"
	"github.com/unwindd/unwindd/engine/fact"
	"github.com/unwindd/unwindd/engine/object"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/target/snapshot"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// This file makes snapshots. A walk of a stack shows the memory that it needs: a snapshot
// has all memory that the walk reads, and the bytes of its frames.

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

// SnapshotOptions selects the contents of a snapshot.
type SnapshotOptions struct {
	// Files adds the code objects themselves. Without it a snapshot names them by path
	// and build ID, and has only the ones that are in no file. A target names the files
	// of its modules, and may name any file: one whose build ID the target does not have
	// is left out.
	Files bool
	// AnyFile adds such files and memory from them too.
	AnyFile bool
}

// Snapshot is the data that was collected from a target.
type Snapshot struct {
	snapshot.Contents
	// Frames is the number of physical frames of the stacks.
	Frames int
	// Problems lists the parts of the target that are missing in the snapshot, each a
	// sentence.
	Problems []string
	// Unwalked is the error of Target.Walked: where it is not nil, the snapshot has no
	// stack that could be walked.
	Unwalked error

	describe func(arch string) (*sdk.Description, error)
}

// Write writes the snapshot. Equal snapshots give equal bytes. The error is w's, or names
// a part of the snapshot that the format cannot have.
func (s *Snapshot) Write(w io.Writer) error {
	return snapshot.Write(w, &s.Contents, snapshot.Options{Describe: s.describe})
}

// Snapshot walks the stacks of the target and collects what they need: a stack that is
// walked from the snapshot is the one that is walked from the target, where the files of
// its modules are found. It uses the modules of the target, which must not be walked by
// another goroutine meanwhile. The snapshot is valid as long as the target is open. The
// error is ctx's; Unwalked means that no stack could be walked.
func (t *Target) Snapshot(ctx context.Context, o SnapshotOptions) (*Snapshot, error) {
	options := t.engine.options.walks()
	options.NoSymbols, options.Registers = true, true // registers that callees saved are kept too
	c := &collector{
		recorder: recorder{
			Target: t.State(), instances: map[instance]*pages{}, withheld: map[*target.Module]bool{}, needed: map[uint64]map[uint32]bool{},
		},
		launchers: map[uint64]*target.Launch{},
		result: &Snapshot{describe: func(arch string) (*sdk.Description, error) {
			return description(t.engine.plugins.Find(arch))
		}},
	}
	if !o.AnyFile {
		c.files, _ = t.State().(target.FileMemory)
	}
	var state target.Target = &c.recorder
	if scoped, ok := t.State().(target.ScopedMemory); ok {
		state = &scopedRecorder{&c.recorder, scoped}
	}
	c.walked = t.engine.shared.Alone(options).NewProcess(state, t.engine.finderOf(t.State()))
	defer c.walked.Close()
	c.walked.SetModules(t.Process.Modules())
	if err := c.walk(ctx); err != nil {
		return nil, err
	}
	c.addPluginProblems(t.Problems())
	c.explain(ctx, t, state)
	c.addModules(t.Loaded(), o)
	c.addThreads()
	c.addMemory()
	return c.result, nil
}

// explain finds the line that describes the crash, and keeps it with the memory that it
// came from: a reader with more debug information makes a better one from that.
func (c *collector) explain(ctx context.Context, t *Target, state target.Target) {
	facts := t.Info().Facts
	if facts == nil {
		return
	}
	if p := facts.Process; p.ID != 0 || p.User != nil || p.Executable != "" || p.Command != "" {
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
	process := t.engine.shared.Alone(t.engine.options.walks()).NewProcess(state, t.engine.finderOf(t.State()))
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
		var first *fact.FirstCrash
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
	walked *walk.Process // the target, whose memory the recorder keeps as it is read
	result *Snapshot
	kept   int // bytes of keptStacks
	// launchers has the launchers that walks found, by handle of the launched thread.
	launchers map[uint64]*target.Launch
	failed    int // stacks that end where a plugin failed
}

func (c *collector) problem(format string, args ...any) {
	c.result.Problems = append(c.result.Problems, fmt.Sprintf(format, args...))
}

// walk walks all stacks. Frames are kept of crashed threads first.
func (c *collector) walk(ctx context.Context) error {
	threads := slices.Clone(c.Threads())
	slices.SortStableFunc(threads, func(a, b *target.Thread) int {
		return cmp.Compare(boolInt(b.Crashed), boolInt(a.Crashed))
	})
	var first *Stack
	isWalked := false
	paged, _ := c.Target.(target.Paged)
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
		if s.Stopped.Reason == StopPluginFailed {
			c.failed++
		}
		c.result.Frames += len(s.Frames)
		c.keepFrames(ctx, s)
		c.keepOwn(ctx, th)
		if by := s.LaunchedBy(); by != th.LaunchedBy {
			c.launchers[th.Handle] = by
		}
	}
	if !isWalked {
		c.result.Unwalked = c.walked.NotWalked(first)
	}
	return nil
}

// addPluginProblems adds the problems of plugins that are not known: memory that no walk
// read is not in the snapshot, and no walk can continue from it.
func (c *collector) addPluginProblems(known []string) {
	for _, p := range c.walked.Problems() {
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

// keepFrames reads the bytes of a stack's frames. From one frame's CFA to the next it is
// the frame's; a stack that continues elsewhere, after a signal on a stack of its own, is
// kept around its CFA.
func (c *collector) keepFrames(ctx context.Context, s *Stack) {
	view, ok := c.walked.View(ctx, s.Thread)
	if !ok {
		return
	}
	left := keptStack
	if s.Lanes > 1 {
		left = keptWave
	}
	left = min(left, keptStacks-c.kept)
	keep := func(space locexpr.AddressSpace, from, to, beyond uint64) {
		if from > to {
			from, to = to, from
		}
		from, to = from-min(from, beyond), to+min(^uint64(0)-to, beyond)
		if n := to - from; n > uint64(left) {
			to = from + uint64(left)
		}
		left -= int(to - from)
		c.kept += touch(ctx, view, space, from, to)
	}
	space := locexpr.DefaultSpace
	last, known := top(view, s)
	if known {
		keep(space, last, last, keptBeyond)
	}
	for i := range s.Frames {
		f := &s.Frames[i]
		if !f.HasCFA || left <= 0 {
			continue
		}
		if known && f.CFASpace == space && max(f.CFA, last)-min(f.CFA, last) <= uint64(left) {
			keep(space, last, f.CFA, keptBeyond)
		} else {
			keep(f.CFASpace, f.CFA, f.CFA, keptBeyond)
		}
		space, last, known = f.CFASpace, f.CFA, true
	}
	c.keepEnds(s, keep)
}

// top is the end of a thread's stack in the default address space, if that is known: the
// stack pointer of an architecture with several spaces is in the space of its CFAs.
func top(view *walk.ThreadView, s *Stack) (address uint64, known bool) {
	if len(s.Frames) > 0 && s.Frames[0].HasCFA && s.Frames[0].CFASpace != locexpr.DefaultSpace {
		return 0, false
	}
	sp, err := view.StackPointer()
	known = err == nil && (len(s.Frames) > 0 && s.Frames[0].HasCFA || len(view.Machine().Description.AddressSpaces) <= 1)
	return sp, known
}

// keepEnds keeps the bytes beyond the CFAs of a stack in a space of its own. A wave's
// stack grows up: its top frame is above the first CFA, and the kernel's frame, which has
// no CFA, is at the beginning of the memory. Where there are too many waves to keep all
// their frames, it does nothing.
func (c *collector) keepEnds(s *Stack, keep func(space locexpr.AddressSpace, from, to, beyond uint64)) {
	n := len(s.Frames)
	if n == 0 || c.kept > keptStacks/2 {
		return
	}
	var first, last *Frame
	for i := range s.Frames {
		if f := &s.Frames[i]; f.HasCFA && f.CFASpace != locexpr.DefaultSpace {
			if first == nil {
				first = f
			}
			last = f
		}
	}
	ofLane := uint64(keptOfLane) * uint64(max(s.Lanes, 1))
	if first != nil {
		keep(first.CFASpace, first.CFA, first.CFA+min(ofLane, ^uint64(0)-first.CFA), 0)
	}
	for _, m := range s.Thread.Memory {
		switch {
		case s.Frames[n-1].HasCFA:
		case last != nil && m.Space == last.CFASpace:
			keep(m.Space, m.Start, min(last.CFA, m.Start+m.Size), 0)
		case last == nil && c.isOfWaves(m.Space):
			keep(m.Space, m.Start, m.Start+min(m.Size, ofLane), 0)
		}
	}
}

// isOfWaves reports whether each wave has an instance of an address space.
func (c *collector) isOfWaves(space locexpr.AddressSpace) bool {
	if c.description == nil {
		return false
	}
	i := slices.IndexFunc(c.description.AddressSpaces, func(s sdk.AddressSpace) bool { return s.Number == space })
	return i >= 0 && c.description.AddressSpaces[i].Scope == sdk.WaveScope
}

// touch reads the memory of a thread that is there, and returns its size.
func touch(ctx context.Context, view *walk.ThreadView, space locexpr.AddressSpace, from, to uint64) (n int) {
	var buf [keptBeyond]byte
	for from < to {
		size := min(to-from, uint64(len(buf))-from%uint64(len(buf)))
		if view.Read(ctx, space, from, buf[:size]) == nil {
			n += int(size) //nolint:gosec // at most keptBeyond
		} else {
			n += touchWords(ctx, view, space, from, from+size)
		}
		from += size
	}
	return n
}

// touchWords is touch for bytes of which some are missing: the memory of minidumps begins
// at the stack pointer. Memory that cannot be read was missing for the walk too.
func touchWords(ctx context.Context, view *walk.ThreadView, space locexpr.AddressSpace, from, to uint64) (n int) {
	var buf [8]byte
	for from < to {
		size := min(to-from, uint64(len(buf))-from%uint64(len(buf)))
		if view.Read(ctx, space, from, buf[:size]) == nil {
			n += int(size) //nolint:gosec // at most 8
		}
		from += size
	}
	return n
}

// addModules adds the code objects, and the code that is in none. modules are the
// target's, which are open as long as the snapshot is valid.
func (c *collector) addModules(modules []*code.Module, o SnapshotOptions) {
	type place struct {
		target.Segment
		module int
	}
	var all []place
	for i, m := range modules {
		out := *m.Module
		out.Segments = nil
		inNoFile := m.Object != nil && m.Object.Path() == ""
		added := snapshot.Module{Module: &out, Keep: inNoFile || o.Files && (o.AnyFile || m.Confirmed())}
		if m.Object != nil && !added.Keep && (o.Files || c.withheld[m.Module]) {
			c.problem("module %s: %s", m.Path, withheld(m.Module, o.Files, c.withheld[m.Module]))
		}
		if added.Keep {
			added.Companions = c.companions(m)
		}
		c.result.Modules = append(c.result.Modules, added)
		for _, s := range m.Segments {
			// Where the code object is missing, a reader takes all of it for code.
			if s.Size > 0 && (s.Executable || m.Object != nil) {
				all = append(all, place{s, i})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return cmp.Compare(a.Start, b.Start) })
	var placed []target.Segment
	end := uint64(0)
	for _, p := range all {
		m := c.result.Modules[p.module]
		if p.Start < end || p.Start+p.Size < p.Start || p.Address+p.Size < p.Address {
			c.problem("module %s: its segment of %#x bytes at %#x overlaps another or reaches past the last address: it is left out", m.Path, p.Size, p.Start)
			continue
		}
		end = p.Start + p.Size
		m.Segments, placed = append(m.Segments, p.Segment), append(placed, p.Segment)
	}
	for _, m := range c.unmapped(placed) {
		c.result.Modules = append(c.result.Modules, snapshot.Module{Module: m})
	}
}

// withheld is the problem of an unconfirmed file that is left out of a snapshot: the
// file, memory that was read from it, or both.
func withheld(m *target.Module, file, memory bool) string {
	what := "the file"
	switch {
	case file && memory:
		what = "the file, and memory that was read from it,"
	case memory:
		what = "memory that was read from it"
	}
	why := "the target does not state its build ID"
	switch {
	case len(m.Object.BuildID()) == 0:
		why = "it has no build ID that the target could state"
	case len(m.BuildID) > 0:
		why = fmt.Sprintf("its build ID is %x, the target states %x", m.Object.BuildID(), m.BuildID)
	}
	return fmt.Sprintf("%s: %s is left out, as %s; --any-file puts it in", m.Object.Path(), what, why)
}

// companions returns the files that are kept with the code object of a module.
func (c *collector) companions(m *code.Module) (list []snapshot.Companion) {
	companions, problems := m.Code.Companions()
	for _, p := range problems {
		c.problem("module %s: %s", m.Path, p)
	}
	for i := range companions {
		list = append(list, snapshot.Companion{Suffix: companions[i].Suffix(), Data: companions[i].Data()})
	}
	return list
}

// unmapped makes modules of the JIT code that the walks met, which is in no module.
// placed are the segments of modules, by start.
func (c *collector) unmapped(placed []target.Segment) []*target.Module {
	if p := c.instances[instance{}]; p != nil {
		for number := range p.all {
			start, _, _ := p.all[number].run(0)
			address := number<<pageBits + uint64(start)
			if _, executable := c.Target.Mapped(address); executable {
				c.noteCode(address)
			}
		}
	}
	numbers := make([]uint64, 0, len(c.code))
	for number := range c.code {
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	var list []*target.Module
	for _, number := range numbers {
		start, end := number<<pageBits, (number+1)<<pageBits-1
		i := sort.Search(len(placed), func(i int) bool { return placed[i].Start > end })
		if i > 0 && placed[i-1].Start+placed[i-1].Size > start || end == ^uint64(0) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].Arch == c.code[number] {
			if s := &list[n-1].Segments[0]; s.Start+s.Size == start {
				s.Size += pageSize
				continue
			}
		}
		list = append(list, &target.Module{
			LoadedModule: target.LoadedModule{
				Arch: c.code[number],
				Segments: []target.Segment{{
					Address: start, Size: pageSize, Start: start, Executable: true,
				}},
			},
		})
	}
	return list
}

// addThreads adds the threads.
func (c *collector) addThreads() {
	list := make([]*target.Thread, 0, len(c.Threads()))
	left, reduced := uint64(keptRegisters), 0
	for _, th := range c.Threads() {
		by, isFound := c.launchers[th.Handle]
		if len(th.Saved) > 0 || isFound {
			own := *th
			if isFound {
				own.LaunchedBy = by
			}
			if c.addRegisters(&own, &left) {
				reduced++
			}
			th = &own
		}
		list = append(list, th)
	}
	c.result.Contents.Threads = list
	if reduced > 0 {
		c.problem("of %d threads that did not crash, the snapshot has only the registers that their stacks need: all would be more than %d MiB",
			reduced, keptRegisters>>20)
	}
	for _, th := range c.Threads() {
		if why := th.Problem + th.Unread; why != "" && len(th.Registers.Numbers) == 0 { // at most one is not ""
			c.problem("thread %s: the snapshot has no registers of it: %s", th.ID, why)
		}
	}
}

// addRegisters gives a thread the registers that are in memory. Once there are very many,
// a thread that did not crash keeps only the ones that its stack needs, and the result is
// true.
func (c *collector) addRegisters(th *target.Thread, left *uint64) (isReduced bool) {
	m := c.walked.Machine(th)
	if m == nil || len(th.Saved) == 0 {
		return false
	}
	size := uint64(0)
	for _, s := range th.Saved {
		if info, ok := m.Description.Register(s.First); ok {
			size += uint64(s.Count) * uint64(info.Bits/8)
		}
	}
	all := target.AllRegisters(c.Target, th, m.Description)
	th.Saved = nil
	if isReduced = size > *left && !th.Crashed; !isReduced {
		*left -= min(size, *left)
		th.Registers = all
		return false
	}
	needed := c.needed[th.Handle]
	th.Registers = th.Registers.Clone()
	for i, number := range all.Numbers {
		if all.Offsets[i+1]-all.Offsets[i] <= 8 || needed[number] {
			value, _ := all.Get(number)
			th.Registers.Set(number, value)
		}
	}
	return true
}

// keepOwn keeps the private memory of a crashed thread.
func (c *collector) keepOwn(ctx context.Context, th *target.Thread) {
	view, ok := c.walked.View(ctx, th)
	if !ok || !th.Crashed {
		return
	}
	for _, m := range th.Memory {
		touch(ctx, view, m.Space, m.Start, m.Start+min(m.Size, keptStack))
	}
}

// addMemory adds the memory that was read.
func (c *collector) addMemory() {
	if c.count == keptPages {
		c.problem("the stacks need more than %d MiB of memory: the rest is left out", keptPages>>(20-pageBits))
	}
	unique := map[string]int{}
	for _, th := range c.Threads() {
		unique[th.ID]++
	}
	keys := make([]instance, 0, len(c.instances))
	for k := range c.instances {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b instance) int {
		return cmp.Or(cmp.Compare(a.space, b.space), cmp.Compare(a.thread, b.thread))
	})
	for _, k := range keys {
		var owner *target.Thread
		if k.space != locexpr.DefaultSpace {
			owner = c.Threads()[k.thread]
			if owner.ID == "" || unique[owner.ID] > 1 {
				c.problem("thread %q: memory of its own is left out, as its ID is not its alone", owner.ID)
				continue
			}
		}
		for address, data := range c.instances[k].runs() {
			c.result.Memory = append(c.result.Memory, snapshot.Memory{Space: k.space, Thread: owner, Address: address, Data: data})
		}
	}
}

// recorder is a target that keeps the memory that is read of another one.
type recorder struct {
	target.Target

	mu          sync.Mutex
	instances   map[instance]*pages
	files       target.FileMemory          // nil: memory of all files is kept
	withheld    map[*target.Module]bool    // with memory that was read and not kept
	count       int                        // of pages
	code        map[uint64]string          // pages with code, and the architecture of the thread that met it
	arch        string                     // of the thread that is walked
	thread      *target.Thread             // that is walked
	description *sdk.Description           // of its architecture; nil: there is none
	needed      map[uint64]map[uint32]bool // by handle: registers of threads in memory that were read
	mappings    map[uint64]target.Mapping  // by start: the requested ones; nil while walking
}

// instance is an instance of an address space; the default one has one.
type instance struct {
	space  locexpr.AddressSpace
	thread uint64 // handle
}

// keep keeps memory that was read, except memory of unconfirmed files.
func (r *recorder) keep(k instance, address uint64, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if k.space != locexpr.DefaultSpace || r.files == nil {
		r.store(k, address, data)
		return
	}
	for len(data) > 0 {
		m, n := r.files.FromFile(address)
		n = min(n, uint64(len(data)))
		if m == nil || m.Confirmed() {
			r.store(k, address, data[:n])
		} else {
			r.withheld[m] = true
		}
		address, data = address+n, data[n:]
	}
}

// store adds to an instance's pages. The caller has locked mu.
func (r *recorder) store(k instance, address uint64, data []byte) {
	if len(data) == 0 {
		return
	}
	p := r.instances[k]
	if p == nil {
		p = &pages{all: map[uint64]*page{}}
		r.instances[k] = p
	}
	r.count += p.keep(address, data, keptPages-r.count)
}

func (r *recorder) ReadMemory(space locexpr.AddressSpace, address uint64, buf []byte) (int, error) {
	n, err := r.Target.ReadMemory(space, address, buf)
	if space == locexpr.DefaultSpace && !r.isRegister(address) {
		r.keep(instance{}, address, buf[:n])
	}
	return n, err
}

// isRegister reports whether an address is that of a register of the thread that is
// walked, and records that it was read.
func (r *recorder) isRegister(address uint64) bool {
	th := r.thread
	if th == nil || len(th.Saved) == 0 {
		return false
	}
	if r.description == nil {
		return false
	}
	for i := range th.Saved {
		s := &th.Saved[i]
		info, ok := r.description.Register(s.First)
		size := uint64(info.Bits / 8)
		if !ok || size == 0 || address-s.Address >= size*uint64(s.Count) {
			continue
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.needed[th.Handle] == nil {
			r.needed[th.Handle] = map[uint32]bool{}
		}
		r.needed[th.Handle][s.First+uint32((address-s.Address)/size)] = true //nolint:gosec // below Count
		return true
	}
	return false
}

func (r *recorder) Mapped(address uint64) (mapped, executable bool) {
	mapped, executable = r.Target.Mapped(address)
	if mapped && r.mappings != nil {
		r.Around(address)
	}
	if executable {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.noteCode(address)
	}
	return mapped, executable
}

// noteCode records that there is code at an address. The caller has locked mu where walks
// are under way.
func (r *recorder) noteCode(address uint64) {
	if r.code == nil {
		r.code = map[uint64]string{}
	}
	if _, ok := r.code[address>>pageBits]; !ok {
		r.code[address>>pageBits] = r.arch
	}
}

// Around keeps the mappings around an address.
func (r *recorder) Around(address uint64) (below, containing, above *target.Mapping) {
	mapper, ok := r.Target.(target.Mapper)
	if !ok {
		return nil, nil, nil
	}
	below, containing, above = mapper.Around(address)
	r.noteMappings(below, containing, above)
	return below, containing, above
}

// noteMappings records mappings while explain runs.
func (r *recorder) noteMappings(list ...*target.Mapping) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range list {
		if m != nil && r.mappings != nil {
			r.mappings[m.Start] = *m
		}
	}
}

// scopedRecorder is a recorder of a target with instances of address spaces.
type scopedRecorder struct {
	*recorder
	scoped target.ScopedMemory
}

func (r *scopedRecorder) ReadScoped(space locexpr.AddressSpace, thread *target.Thread, address uint64, buf []byte) (int, error) {
	n, err := r.scoped.ReadScoped(space, thread, address, buf)
	if k := (instance{}); space == locexpr.DefaultSpace {
		r.keep(k, address, buf[:n])
	} else if thread != nil {
		r.keep(instance{space, thread.Handle}, address, buf[:n])
	}
	return n, err
}

const (
	pageBits = 12
	pageSize = 1 << pageBits
)

// pages has bytes of an instance of an address space, by the number of their page.
type pages struct{ all map[uint64]*page }

// page is a page of which some bytes are known.
type page struct {
	bytes [pageSize]byte
	known [pageSize / 64]uint64
}

// keep adds bytes, in at most as many new pages as most, and returns the number of new
// ones. Bytes that are there already stay: a process may run on.
func (p *pages) keep(address uint64, data []byte, most int) (added int) {
	for len(data) > 0 {
		number, at := address>>pageBits, int(address&(pageSize-1))
		n := min(len(data), pageSize-at)
		g := p.all[number]
		if g == nil && added == most {
			break
		}
		if g == nil {
			g = &page{}
			p.all[number] = g
			added++
		}
		for i := range n {
			if g.known[(at+i)/64]>>((at+i)%64)&1 == 0 {
				g.bytes[at+i] = data[i]
				g.known[(at+i)/64] |= 1 << ((at + i) % 64)
			}
		}
		address, data = address+uint64(n), data[n:]
	}
	return added
}

// run finds the first known bytes from start on.
func (g *page) run(start int) (from, to int, ok bool) {
	next := func(bit int, flip uint64) int {
		for bit < pageSize {
			if rest := (g.known[bit/64] ^ flip) >> (bit % 64); rest != 0 {
				return bit + bits.TrailingZeros64(rest)
			}
			bit = (bit/64 + 1) * 64
		}
		return pageSize
	}
	if from = next(start, 0); from == pageSize {
		return 0, 0, false
	}
	return from, next(from, ^uint64(0)), true
}

// runs yields the longest pieces without a gap, by address.
func (p *pages) runs() func(yield func(address uint64, data []byte) bool) {
	return func(yield func(uint64, []byte) bool) {
		numbers := make([]uint64, 0, len(p.all))
		for n := range p.all {
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		var start uint64
		var data []byte
		for _, n := range numbers {
			g := p.all[n]
			for from, to, ok := g.run(0); ok; from, to, ok = g.run(to) {
				address := n<<pageBits + uint64(from)
				if len(data) > 0 && start+uint64(len(data)) != address {
					if !yield(start, data) {
						return
					}
					data = nil
				}
				if len(data) == 0 {
					start = address
				}
				data = append(data, g.bytes[from:to]...)
			}
		}
		if len(data) > 0 {
			yield(start, data)
		}
	}
}
