// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
)

// group is threads whose stacks are equal.
type group struct {
	first   *trace.Stack
	ending  ending // of first
	threads []member
	values  []trace.Value // of the variables of first, while first has them without parts

	count   int    // of the threads, with those that threads leaves out
	ids     idList // of all of them
	differs uint   // the facts that not all of them have in common, a bit for each
}

// add adds a thread. isListed means that threads has it.
func (g *group) add(m member, isListed bool) {
	g.count++
	g.ids.add(m.ID)
	if len(g.threads) == 0 || isListed {
		g.threads = append(g.threads, m)
	}
	for i := range facts {
		if g.differs&(1<<i) == 0 && facts[i].text(&m) != facts[i].text(&g.threads[0]) {
			g.differs |= 1 << i
		}
	}
}

// isPlain reports whether nothing more is written of a thread than of the others of its group,
// beside its ID: of a million waves there is no list.
func isPlain(m *member) bool {
	return m.Wave != nil && m.Goroutine == nil && m.Stop == nil && m.wait == nil
}

// member is a thread of a group.
type member struct {
	*trace.Thread
	lanes uint32
	wait  *trace.Wait // nil: it waits for nothing that is known
}

// ending is the end of a stack, including its launchers.
type ending struct {
	trace.Stopped
	assumed  bool // see trace.Stack.EndAssumed
	launch   int  // whose end it is: 0: the thread's own, n: the n-th launcher's
	hasGuess bool
	guess    int // the index of the first frame that is a guess, where hasGuess
	// isLeftOut means that this frame is among the omitted ones; its index is not known.
	isLeftOut bool
}

// endingOf is the ending of a stack. Where it ends in an outermost frame, its end is that of
// the last launcher in which it continues.
func endingOf(s *trace.Stack) ending {
	e := ending{Stopped: s.Stopped, assumed: s.EndAssumed}
	index := e.findGuessIn(s.Frames, &s.Gap, 0)
	for i := range s.Launchers {
		l := &s.Launchers[i]
		index = e.findGuessIn(l.Frames, &l.Gap, index)
		if e.Reason == trace.StopOutermost && l.Stopped.Reason != "" {
			e.Stopped, e.assumed, e.launch = l.Stopped, false, i+1
		}
	}
	return e
}

// findGuessIn is findGuess for frames of which some may have been omitted.
func (e *ending) findGuessIn(frames []trace.Frame, gap *trace.Gap, index int) (next int) {
	next = e.findGuess(frames, index)
	if gap.HasGuess && !e.hasGuess {
		e.hasGuess, e.isLeftOut = true, true
	}
	return e.findGuess(gap.Outermost, next+gap.LeftOut+gap.LeftOutCalls)
}

// findGuess looks for a guess in frames, of which the first has an index, and returns the
// index of the next one.
func (e *ending) findGuess(frames []trace.Frame, index int) (next int) {
	for i := range frames {
		index += lines(&frames[i])
		if !e.hasGuess && frames[i].FoundBy.IsGuess() {
			e.hasGuess, e.guess = true, index-1
		}
		index += countLines(frames[i].TailCallers())
	}
	return index
}

// lines is the number of frames of a report for a frame: itself and the calls that were
// inlined into it.
func lines(f *trace.Frame) int { return max(len(f.Symbols), 1) }

// isWhole reports whether rules or the ABI make the last frame the outermost one, and no
// frame is a guess.
func (e *ending) isWhole() bool {
	return e.Reason == trace.StopOutermost && !e.assumed && !e.hasGuess
}

// detail is the detail of the end; for a stack that ends in an outermost frame, too, that it
// is complete only if its guesses are right.
func (e *ending) detail() string {
	if e.isLeftOut && e.Reason == trace.StopOutermost {
		return e.Detail + ", if a guess among the frames left out, and those after it are right"
	}
	if e.hasGuess && e.Reason == trace.StopOutermost {
		return e.Detail + fmt.Sprintf(", if frame %d, a guess, and those after it are right", e.guess)
	}
	return e.Detail
}

func newGroup(s *trace.Stack) *group {
	g := &group{first: s, ending: endingOf(s), ids: idList{isShort: true}}
	g.add(member{s.Thread, s.Lanes, s.Wait}, true)
	return g
}

// stackFolder merges equal stacks as they come. It keeps the first of each kind.
type stackFolder struct {
	groups []*group
	seen   map[uint64][]*group // by hash
	hash   maphash.Hash        // with a secret seed, so that no file has stacks of one hash

	hasParts bool // the groups' variables keep their parts
	listsAll bool // the groups list plain threads, too

	deadlocked map[string]bool // IDs of threads that wait for each other
}

func newStackFolder() *stackFolder {
	return &stackFolder{seen: map[uint64][]*group{}, deadlocked: map[string]bool{}}
}

// mark marks the threads of deadlocks.
func (f *stackFolder) mark(deadlocks []trace.Deadlock) {
	for i := range deadlocks {
		for k := range deadlocks[i].Links {
			f.deadlocked[deadlocks[i].Links[k].Thread.ID] = true
		}
	}
}

func (f *stackFolder) add(s *trace.Stack) {
	var values []trace.Value
	if f.hasParts {
		eachLocal(s.Frames, func(v *trace.FrameVariable) { values = append(values, v.Value) })
	}
	shortenLocals(s.Frames)
	shortenLocals(s.Outermost)
	e := endingOf(s)
	key := f.sum(s, &e)
	m := member{s.Thread, s.Lanes, s.Wait}
	for _, g := range f.seen[key] {
		if g.isEqual(s, &e) {
			g.add(m, f.listsAll || !isPlain(&m))
			return
		}
	}
	g := &group{first: s, ending: e, values: values, ids: idList{isShort: true}}
	g.add(m, true)
	f.groups = append(f.groups, g)
	f.seen[key] = append(f.seen[key], g)
}

// shortenLocals reduces variables to their printed parts: a stack is kept until all have
// come.
func shortenLocals(frames []trace.Frame) {
	eachLocal(frames, func(v *trace.FrameVariable) { v.Value = value.Short(&v.Value, v.Language) })
}

// restoreLocals restores the parts of a group's variables.
func (g *group) restoreLocals() {
	if g.values == nil {
		return
	}
	i := 0
	eachLocal(g.first.Frames, func(v *trace.FrameVariable) {
		v.Value = g.values[i]
		i++
	})
}

// eachLocal calls do with the variables of frames, always in one order.
func eachLocal(frames []trace.Frame, do func(*trace.FrameVariable)) {
	for i := range frames {
		for _, list := range frames[i].Locals() {
			for k := range list {
				do(&list[k])
			}
		}
		eachLocal(frames[i].TailCallers(), do)
	}
}

// ordered are the groups in the order of their first threads, behind the ones that crashed and
// the ones of deadlocks. Where a wave failed, a thread of the process that crashed did so for it.
func (f *stackFolder) ordered(deadlocks []trace.Deadlock) []*group {
	f.mark(deadlocks)
	slices.SortStableFunc(f.groups, func(a, b *group) int { return cmp.Compare(f.place(a), f.place(b)) })
	return f.groups
}

func (f *stackFolder) place(g *group) int {
	switch th := g.first.Thread; {
	case th.Crashed && th.Wave != nil:
		return 0
	case th.Crashed:
		return 1
	case f.isDeadlocked(g):
		return 2
	}
	return 3
}

// isDeadlocked reports whether a thread of a group is in a deadlock.
func (f *stackFolder) isDeadlocked(g *group) bool {
	return slices.ContainsFunc(g.threads, func(m member) bool { return f.deadlocked[m.ID] })
}

// sum is equal for equal stacks.
func (f *stackFolder) sum(s *trace.Stack, e *ending) uint64 {
	f.hash.Reset()
	f.hashFrames(s.Frames)
	f.hashFrames(s.Outermost)
	for i := range s.Launchers {
		f.hashFrames(s.Launchers[i].Frames)
	}
	f.hash.WriteString(string(e.Reason))
	if s.Thread.Crashed {
		f.hash.WriteByte(1)
		if s.Thread.Wave == nil {
			f.hash.WriteString(executor(s.Thread))
		}
	}
	return f.hash.Sum64()
}

func (f *stackFolder) hashFrames(frames []trace.Frame) {
	for i := range frames {
		f.hashNumbers(frames[i].PC)
		for _, r := range frames[i].Registers() {
			f.hashNumbers(r.Value)
		}
		f.hashLocals(frames[i].Locals())
		groups := frames[i].Lanes()
		for k := range groups {
			g := &groups[k]
			f.hash.WriteString(string(g.State))
			f.hashNumbers(g.PC)
			f.hashNumbers(g.Lanes...)
			f.hashLocals(g.Locals)
		}
		f.hashFrames(frames[i].TailCallers())
	}
}

func (f *stackFolder) hashNumbers(list ...uint64) {
	var b [8]byte
	for _, n := range list {
		binary.LittleEndian.PutUint64(b[:], n)
		f.hash.Write(b[:])
	}
}

func (f *stackFolder) hashLocals(functions [][]trace.FrameVariable) {
	for _, list := range functions {
		for i := range list {
			f.hashNumbers(list[i].Lanes...)
			f.hashValue(&list[i].Value)
		}
	}
}

func (f *stackFolder) hashValue(v *trace.Value) {
	f.hash.WriteString(v.Text)
	for i := range v.Children {
		f.hashValue(&v.Children[i])
	}
}

// isEqual reports whether a stack prints like the group's stacks, except for facts about its
// own thread.
func (g *group) isEqual(s *trace.Stack, e *ending) bool {
	a, b := g.first, s
	return isEqualStop(a.Thread, b.Thread) && isEqualGoroutine(a.Thread, b.Thread) &&
		g.ending.Reason == e.Reason && g.ending.launch == e.launch && g.ending.isWhole() == e.isWhole() &&
		(e.isWhole() || g.ending.Detail == e.Detail) &&
		isEqualRuntimes(a.Runtimes, b.Runtimes) && isEqualFrames(a.Frames, b.Frames) && isEqualGap(&a.Gap, &b.Gap) &&
		slices.EqualFunc(a.Launchers, b.Launchers, isEqualLauncher)
}

// isEqualStop compares why threads stopped. A crash of a CPU thread is its own; many waves
// may share one. Equal waves access different addresses.
func isEqualStop(a, b *trace.Thread) bool {
	if a.Crashed != b.Crashed || a.IsRunning != b.IsRunning || a.State != b.State || a.Crashed && (a.Signal != b.Signal || (a.Wave == nil) != (b.Wave == nil) || a.Wave == nil && executor(a) != executor(b)) {
		return false
	}
	if a.Stop == nil || b.Stop == nil {
		return a.Stop == b.Stop
	}
	return a.Stop.Reason == b.Stop.Reason && a.Stop.HasTrapID == b.Stop.HasTrapID && a.Stop.TrapID == b.Stop.TrapID &&
		isImprecise(a.Stop) == isImprecise(b.Stop) && slices.Equal(a.Stop.Details, b.Stop.Details)
}

// isImprecise reports whether the PC is known not to be where a thread stopped.
func isImprecise(s *trace.Stop) bool { return s.HasPCExact && !s.PCExact }

func isEqualFrames(a, b []trace.Frame) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] { // waves share their launcher's frames
		return true
	}
	for i := range a {
		if !isEqualFrame(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func isEqualFrame(a, b *trace.Frame) bool {
	return a.PC == b.PC && a.FoundBy == b.FoundBy && isEqualChain(a.Symbols, b.Symbols) && isEqualManaged(a, b) &&
		(len(a.Registers()) == 0 || a.CFA == b.CFA) &&
		slices.EqualFunc(a.Registers(), b.Registers(), func(x, y trace.RegisterValue) bool {
			return x.Number == y.Number && x.Value == y.Value
		}) &&
		slices.EqualFunc(a.Locals(), b.Locals(), isEqualLocals) &&
		slices.EqualFunc(a.Lanes(), b.Lanes(), func(x, y trace.LaneGroup) bool {
			return x.State == y.State && x.HasPC == y.HasPC && x.PC == y.PC && slices.Equal(x.Lanes, y.Lanes) && slices.EqualFunc(x.Locals, y.Locals, isEqualLocals)
		}) &&
		isEqualFrames(a.TailCallers(), b.TailCallers())
}

// isEqualManaged compares how language runtimes execute frames. The PC of a managed frame does not
// tell where in its function it is: the line does.
func isEqualManaged(a, b *trace.Frame) bool {
	x, y := a.Managed(), b.Managed()
	if x == nil || y == nil {
		return x == y && a.BehindManaged == b.BehindManaged
	}
	p, q := ownSymbol(a), ownSymbol(b)
	return *x == *y && (x.IsNative || p.Line == q.Line && p.Column == q.Column) && a.BehindManaged == b.BehindManaged
}

// isEqualLocals compares variables of a function, ignoring the thread.
func isEqualLocals(a, b []trace.FrameVariable) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		x, y := &a[i], &b[i]
		if x.Kind != y.Kind || x.Line != y.Line || x.IsShadowed != y.IsShadowed || !slices.Equal(x.Lanes, y.Lanes) || !x.Equal(&y.Value) {
			return false
		}
	}
	return true
}

// isEqualChain compares inlined calls, which are shared by the frames at one PC.
func isEqualChain(a, b []trace.Symbol) bool {
	if len(a) != len(b) {
		return false
	}
	if len(a) == 0 || &a[0] == &b[0] {
		return true
	}
	for i := range a {
		if a[i].Function != b[i].Function {
			return false
		}
	}
	return true
}

func isEqualLauncher(a, b trace.Launcher) bool {
	return a.Launch.Thread == b.Launch.Thread && a.Kind == b.Kind && a.Evidence == b.Evidence && a.Problem == b.Problem &&
		isEqualFrames(a.Frames, b.Frames) && isEqualGap(&a.Gap, &b.Gap)
}

func isEqualGap(a, b *trace.Gap) bool {
	return a.LeftOut == b.LeftOut && a.LeftOutCalls == b.LeftOutCalls && isEqualFrames(a.Outermost, b.Outermost)
}
