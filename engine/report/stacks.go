// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
)

// Stacks writes the stacks of a target while they are walked: of a written stack it keeps
// only facts for later parts.
type Stacks struct {
	each  iter.Seq[*trace.Stack]
	head  func(headDetail) Head
	space spaceNames
	start functionStart

	hasLocals bool
	source    sourceOf
	code      *frameCodes

	// Fact is one line about the event that ended the process; "" where it is not known.
	Fact string
	// FirstCrash is the crash that a signal handler caught before; nil: there was none.
	FirstCrash *trace.CaughtCrash
	// Deadlocks are the threads that wait for each other.
	Deadlocks []trace.Deadlock
	// LaterDeadlocks returns further ones, which walking the stacks shows; nil: there are none.
	LaterDeadlocks func() []trace.Deadlock
	// Signature returns the key by which the crash of a thread is grouped, in JSON; nil, and
	// its result, where there is none.
	Signature func(*trace.Thread) *trace.Signature
	// OwnSourceOnly means that of source lines only those at the program's own function are
	// written, of the crashed thread that comes first, and only if they are certain.
	OwnSourceOnly bool
	// Globals are variables that were requested by name: they stand beside the stacks.
	Globals []Global
}

// functionStart returns the ELF virtual address at which the function of a frame without a name begins; ok is
// false where that is not known.
type functionStart func(*trace.Frame) (address uint64, ok bool)

// Head is the facts about a target beside its stacks. Some of them are found by walking the
// stacks.
type Head struct {
	Target  Target   `json:"target"`
	Modules []Module `json:"modules"`

	machine uint16       // the ELF machine of the process, whose signals these are
	facts   *trace.Facts // nil: the target has none

	deadlocks []trace.Deadlock
}

// NewStacks makes the report of stacks of a target, which each yields once. None is read
// before one of the Write methods.
func NewStacks(t *engine.Target, each iter.Seq[*trace.Stack]) *Stacks {
	missing := &lacks{}
	s := &Stacks{each: missing.recorded(each), space: t.SpaceName, start: t.Process().FunctionStart, hasLocals: t.HasLocals()}
	s.head = func(d headDetail) Head {
		h := newHead(t, d)
		h.Target.Hints = missing.list(t, h.Target.executable())
		h.Target.Fact, h.Target.FirstCrash = s.Fact, newFirstCrash(s.FirstCrash)
		h.setDeadlocks(s.deadlocks())
		return h
	}
	if t.HasSource() {
		s.source = t.Source
	}
	return s
}

// deadlocks returns the deadlocks that are known so far.
func (s *Stacks) deadlocks() []trace.Deadlock {
	if s.LaterDeadlocks == nil {
		return s.Deadlocks
	}
	return slices.Concat(s.Deadlocks, s.LaterDeadlocks())
}

// headDetail selects the details of a Head.
type headDetail bool

// Finding the debug information of modules that no frame is in takes looking for the files:
// only some formats have it.
const (
	withDebugInfo    headDetail = true
	withoutDebugInfo headDetail = false
)

// newHead is the facts about a target so far.
func newHead(t *engine.Target, detail headDetail) Head {
	info := t.Info()
	h := Head{
		Target:  Target{Kind: string(info.Kind), Path: info.Path, Signal: info.Signal, Problems: t.Problems()},
		Modules: []Module{},
		machine: info.Machine, facts: info.Facts,
	}
	h.Target.addDevices(&info.Devices, t.Process().ThreadList())
	if info.HasFaultAddress {
		h.Target.FaultAddress = address(info.FaultAddress)
	}
	if info.Facts != nil {
		h.Target.Crash = newCrash(info.Facts.Crash)
		h.Target.Process = newProcess(info.Facts, t.Modules())
	}
	h.Target.Annotations = newAnnotations(&info)
	h.Target.Labels = t.Labels(nil)
	if h.Target.Problems == nil {
		h.Target.Problems = []string{}
	}
	for _, m := range t.Modules() {
		var debug trace.DebugInfo
		if detail == withDebugInfo {
			debug = t.DebugInfo(m)
		}
		h.Modules = append(h.Modules, newModule(m, t.ModuleInfo(m), debug))
	}
	return h
}

func newCrash(c *trace.Crash) *Crash {
	if c == nil {
		return nil
	}
	out := &Crash{Name: c.Name, Thread: c.Thread, Requested: c.IsRequest, Assertion: c.Assertion}
	if c.HasAddress {
		out.Address = address(c.Address)
	}
	out.Sender = newSender(c.Sender)
	return out
}

func newFirstCrash(x *trace.CaughtCrash) *FirstCrash {
	if x == nil {
		return nil
	}
	out := &FirstCrash{Signal: x.Signal, Name: x.Name, PC: address(x.PC), Thread: x.Thread, Frame: countLines(x.Inside), Handler: x.Handler}
	if x.HasAddress {
		out.FaultAddress = address(x.Address)
	}
	out.Sender = newSender(x.Sender)
	return out
}

func newSender(s *trace.Sender) *Sender {
	switch {
	case s == nil:
		return nil
	case s.NoUser:
		return &Sender{PID: s.ID}
	}
	return &Sender{PID: s.ID, User: &s.User}
}

// newProcess is the facts about a process; nil where there are none.
func newProcess(f *trace.Facts, modules []*trace.Module) *Process {
	p := &f.Process
	out := Process{PID: max(p.ID, 0), Command: p.Command, Executable: executableOf(p, modules), User: p.User, Host: p.Host}
	if !p.Created.IsZero() {
		out.Started = p.Created.UTC().Format(time.RFC3339Nano)
	}
	if !p.Kept.IsZero() {
		out.Time = p.Kept.UTC().Format(time.RFC3339)
		out.Taken = p.Kept.UTC().Format(time.RFC3339Nano)
	}
	if f.System.Version != "" {
		out.Kernel = inWords(f.System.OS, f.System.Version)
	}
	if out == (Process{}) {
		return nil
	}
	return &out
}

// executableOf is the path of a process's executable. A core has 15 characters of a name that
// the program may have changed; the module that the process began in has more.
func executableOf(p *trace.Process, modules []*trace.Module) string {
	if strings.ContainsAny(p.Executable, `/\`) {
		return p.Executable
	}
	for _, m := range modules {
		if m.Path == "" || p.Main == 0 {
			continue
		}
		for i := range m.Segments {
			if s := &m.Segments[i]; p.Main-s.Start < s.Size {
				return m.Path
			}
		}
		if p.Main-m.Base < m.Size {
			return m.Path
		}
	}
	return p.Executable
}

// newText makes the text form of the stacks, with names of at most so many characters.
func (s *Stacks) newText(b *Printer, o TextOptions, most int) text {
	return text{
		Printer: b, framed: map[int]bool{}, hasOneLane: o.OneLane, noFold: o.NoFold, isVerbose: o.Verbose, detail: headDetail(o.Verbose),
		names: names{o.FullNames, most}, paint: newPaint(o.Color), space: s.space, source: s.source, codes: s.code, caught: s.FirstCrash, ownOnly: s.OwnSourceOnly,
	}
}

// WriteText writes the stacks for people. Equal stacks are folded into one, the crashed
// thread's first, when all have come: one stack of each kind, and its threads, are kept. With
// NoFold each is written when it comes, so the crashed thread's is to be the first; problems
// that only walking shows stand at the end.
func (s *Stacks) WriteText(w io.Writer, o TextOptions) error {
	b := NewPrinter(w)
	t := s.newText(b, o, textName)
	if o.NoFold {
		t.oneByOne(s)
	} else {
		f := newStackFolder()
		for stack := range s.each {
			f.add(stack)
		}
		t.folded(s, f.ordered(s.deadlocks()))
	}
	t.noSource(o.Verbose)
	t.modules(o.Verbose)
	t.hints(o.Verbose)
	return b.Flush()
}

// folded writes the groups of equal stacks.
func (t *text) folded(s *Stacks, groups []*group) {
	ready := s.code.prepare(groups)
	isWhole := ready == len(groups)
	t.setHead(s.head(t.detail))
	t.target()
	t.globals(s.Globals)
	for i, g := range groups {
		if i == ready {
			ready += s.code.prepare(groups[i:])
		}
		t.group(g)
	}
	if !isWhole {
		t.newProblems(s)
	}
}

// oneByOne writes each stack when it comes.
func (t *text) oneByOne(s *Stacks) {
	t.setHead(s.head(t.detail))
	t.target()
	t.globals(s.Globals)
	for stack := range s.withCode() {
		t.group(newGroup(stack))
		if t.check() != nil {
			return // Flush returns it
		}
	}
	t.newProblems(s)
}

// newProblems writes the problems since the head was written.
func (t *text) newProblems(s *Stacks) {
	known := map[string]bool{}
	for _, p := range t.about.Target.Problems {
		known[p] = true
	}
	t.setHead(s.head(t.detail))
	for _, p := range t.about.Target.Problems {
		if !known[p] {
			t.printf("\n%s %s\n", t.warn("problem:"), p)
		}
	}
}
