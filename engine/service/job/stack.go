// SPDX-License-Identifier: Apache-2.0

// Package job has the requests that an engine answers in one go, from the command line or by a
// daemon. A job chooses the options of the engine that it needs, and writes its report.
package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/internal/source"
	"github.com/unwindd/unwindd/engine/report"
	pb "github.com/unwindd/unwindd/engine/service/servicepb"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
	"github.com/unwindd/unwindd/sdk"
)

// ErrUsage is wrapped by the errors of requests that have no meaning.
var ErrUsage = errors.New("wrong usage")

// usageError is an ErrUsage whose text is the reason alone.
type usageError struct{ error }

func (usageError) Is(target error) bool { return target == ErrUsage }

func wrong(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// StackFormats are the formats in which stacks are written.
var StackFormats = []string{"text", "json", "html", "markdown", "breakpad"}

// Stack asks for the stacks of a target. NewStack gives the defaults.
type Stack struct {
	*pb.StackOptions `json:"options"`

	// WithPath writes the path of the target with the signature, for commands with several
	// targets.
	WithPath bool
	// Most bounds the threads, crashed ones first, for callers that take a part of an answer;
	// 0: all.
	Most int `json:"-"`
}

// NewStack returns a Stack with the defaults: all threads, as text.
func NewStack() Stack { return Stack{StackOptions: &pb.StackOptions{Format: "text"}} }

// StackRanges are the ranges of the options of a Stack.
var StackRanges = Ranges{
	"max-frames": {Most: unbounded}, "top": {Least: 1, Most: unbounded}, "lane": {Most: sdk.MaxLanes - 1},
	"source": {Most: source.MaxLines}, "code": {Least: 1, Most: walk.MaxCode},
	"signature-version": {Least: 1, Most: trace.SignatureVersion, OrUnset: true},
}

// Check refuses options that have no meaning, in the words of flags, and completes the others:
// equal requests have equal options.
func (s *Stack) Check() error {
	if err := checkFormat(s.Format, StackFormats); err != nil {
		return err
	}
	if s.Format == "breakpad" {
		if err := refuse(s, []string{"registers", "lanes", "locals", "globals", "source", "code"}, "--format breakpad"); err != nil {
			return err
		}
	}
	if err := cmp.Or(StackRanges.check(s), LimitRanges.check(s)); err != nil {
		return err
	}
	if s.Crashed && s.Thread != "" {
		return wrong("--crashed and --thread %s: expected one of them", s.Thread)
	}
	if s.Signature {
		if err := cmp.Or(refuse(s, unsigned, "--signature"), checkFormat(s.Format, []string{"text", "json"})); err != nil {
			return err
		}
	}
	s.Depth, s.Elements = cmp.Or(s.Depth, uint32(trace.DefaultValueLimits.Depth)), cmp.Or(s.Elements, uint32(trace.DefaultValueLimits.Elements)) //nolint:gosec // small
	s.SignatureVersion = cmp.Or(s.SignatureVersion, trace.SignatureVersion)
	s.BoundFrames(engine.AllFrames)
	return nil
}

// frames returns how many physical frames of a stack are kept.
func (s *Stack) frames() int {
	switch {
	case s.MaxFrames == nil:
		return engine.DefaultMaxFrames
	case *s.MaxFrames == 0:
		return engine.AllFrames
	}
	return int(*s.MaxFrames)
}

// BoundFrames keeps at most n physical frames of a stack.
func (s *Stack) BoundFrames(n int) {
	frames := min(s.frames(), n)
	if s.MaxFrames = nil; frames != engine.DefaultMaxFrames {
		s.MaxFrames = new(uint32(frames)) //nolint:gosec // positive
	}
}

// limits returns the limits of values; 0 is the default.
func (s *Stack) limits() trace.ValueLimits {
	return trace.ValueLimits{Depth: int(s.Depth), Elements: int(s.Elements), Raw: s.Raw}
}

// Engine returns the options of an engine with changes that the stacks need.
func (s *Stack) Engine(o engine.Options) engine.Options {
	o.MaxFrames, o.NoInlines, o.Registers, o.SourceLines = s.frames(), s.NoInlines, s.Registers, int(s.GetSource())
	o.Goroutines = s.GetGoroutines()
	if s.readsOwnSource() {
		o.SourceLines, o.LocalSource = 1, true
	}
	o.Lanes = s.Lanes || s.Lane != nil || s.Format == "json" || s.Format == "html"
	o.Locals = nil
	if s.Locals {
		limits := s.limits()
		o.Locals = &limits
	}
	return o
}

// isForPeople reports whether the stacks are written for people, and not for programs.
func (s *Stack) isForPeople() bool {
	return s.Format == "text" || s.Format == "html" || s.Format == "markdown"
}

// readsOwnSource reports whether the source line is written at which the program failed.
func (s *Stack) readsOwnSource() bool { return s.Source == nil && s.isForPeople() }

// Stacks are the requested stacks of a target. Close closes the files that were opened for
// them, but not the target.
type Stacks struct {
	*Stack
	target *engine.Target // with goroutines, where they are requested
	stacks *report.Stacks
	signed *report.Signature // if not nil, there are no stacks
	walked *walked
	ends   []func() // in reverse

	leftOut int // threads beyond Most
}

// Of selects the stacks of a target.
func (s *Stack) Of(ctx context.Context, t *engine.Target) (*Stacks, error) {
	p := &Stacks{Stack: s}
	if err := p.fill(ctx, t); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// fill sets the stacks, or the signature.
func (p *Stacks) fill(ctx context.Context, t *engine.Target) error {
	if p.GetGoroutines() || p.showsGoroutines(t) {
		all := t.WithGoroutines(ctx)
		p.ends = append(p.ends, func() { _ = all.Close() })
		if p.GetGoroutines() || all.Process().ThreadList().Len() > t.Process().ThreadList().Len() {
			t = all
		}
	}
	if p.Signature {
		return p.sign(ctx, t)
	}
	chosen, err := p.chosen(ctx, t)
	if err != nil {
		return err
	}
	p.target, p.walked = t, &walked{target: t}
	stacks := p.walked.over(chosen)
	known, first := t.Happened(ctx)
	signed := newSigned(ctx, t, known, int(p.SignatureVersion))
	if p.signs() {
		stacks = signed.over(stacks)
	}
	if p.Lane != nil {
		next, stop := iter.Pull(ofLane(stacks, *p.Lane))
		p.ends = append(p.ends, stop)
		first, ok := next()
		if !ok {
			return noLane(t, *p.Lane)
		}
		stacks = pulled(first, next)
	}
	if p.Top > 0 {
		stacks = topOf(stacks, int(p.Top), p.isForPeople() && !p.NoFold)
	}
	p.stacks = report.NewStacks(t, stacks)
	if p.stacks.Globals, err = p.readGlobals(ctx, t); err != nil {
		return err
	}
	p.stacks.Fact, p.stacks.FirstCrash, p.stacks.Signature = known, first, signed.signature
	p.stacks.OwnSourceOnly = p.readsOwnSource()
	p.stacks.Deadlocks = t.Deadlocks(ctx)
	p.stacks.LaterDeadlocks = func() []trace.Deadlock { return t.RuntimeDeadlocks(ctx) }
	if p.Code > 0 {
		p.stacks.ShowCode(ctx, t.CodeReader(int(p.Code)))
	}
	return nil
}

// chosen returns the stacks of the threads to write.
func (p *Stacks) chosen(ctx context.Context, t *engine.Target) (iter.Seq[*trace.Stack], error) {
	if p.isAll() && (p.Most == 0 || t.Process().ThreadList().Len() <= p.Most) {
		return t.Stacks(ctx), nil
	}
	threads, err := p.selected(t)
	if err != nil {
		return nil, err
	}
	if p.Most > 0 && len(threads) > p.Most {
		threads = crashedFirst(threads)
		threads, p.leftOut = threads[:p.Most], len(threads)-p.Most
	}
	return t.StacksOf(ctx, threads), nil
}

// isAll reports whether the stacks of all threads are written, in the target's order.
func (s *Stack) isAll() bool {
	return s.Thread == "" && !s.Crashed && (!s.NoFold || !s.isForPeople())
}

// showsGoroutines reports whether the goroutines of a target are written, though nothing was
// said about them: it is a Go program that crashed.
func (s *Stack) showsGoroutines(t *engine.Target) bool {
	return s.Goroutines == nil && !s.Signature && s.isForPeople() && t.Info().Kind != trace.LiveProcess && t.Crashed() != nil && t.HasGo()
}

// Target returns the target whose stacks are written: the caller's, or one with its goroutines
// too.
func (p *Stacks) Target() *engine.Target { return p.target }

// WriteOptions are options of the text, whatever the stacks are.
type WriteOptions struct {
	Color   bool // colours of terminals
	Verbose bool // with the files that were looked for
	Most    int  // bytes of Markdown at most; 0: as many as an issue takes
}

// WriteReport writes the stacks while they are walked.
func (p *Stacks) WriteReport(ctx context.Context, w io.Writer, o WriteOptions) error {
	text := report.TextOptions{Color: o.Color, NoFold: p.NoFold, FullNames: p.FullNames, OneLane: p.Lane != nil, Verbose: o.Verbose}
	switch {
	case p.signed != nil && p.Format == "json":
		return report.WriteJSON(w, p.signed)
	case p.signed != nil:
		return p.signed.WriteText(w, !p.WithPath)
	case p.Format == "json":
		return p.stacks.WriteJSON(w)
	case p.Format == "breakpad":
		return p.stacks.WriteBreakpad(ctx, w, p.target)
	case p.Format == "html":
		return p.stacks.WritePage(w, text)
	case p.Format == "markdown":
		return p.stacks.WriteMarkdown(w, text, o.Most)
	}
	return p.stacks.WriteText(w, text)
}

// Err returns, after WriteReport, an error that wraps engine.ErrNotWalked where nothing could be
// walked for lack of an architecture.
func (p *Stacks) Err() error { return p.walked.err() }

// LeftOut returns how many threads Most left out.
func (p *Stacks) LeftOut() int { return p.leftOut }

// Counts returns the counts of the stacks that were written so far.
func (p *Stacks) Counts() Counts { return p.walked.counts }

// Close closes the files that were opened for the stacks.
func (p *Stacks) Close() {
	for _, end := range slices.Backward(p.ends) {
		end()
	}
}

// readGlobals reads the requested variables by name, thread-local ones of the first thread that
// crashed. A name that no module has is a mistake of the user.
func (s *Stack) readGlobals(ctx context.Context, t *engine.Target) (list []report.Global, err error) {
	if len(s.Globals) == 0 || t.Process().ThreadList().Len() == 0 {
		return nil, nil
	}
	threads := t.Threads()
	thread := threads[0]
	for _, th := range threads {
		if th.Crashed || th.ID == s.Thread {
			thread = th
			break
		}
	}
	for _, name := range s.Globals {
		found, err := t.Globals(ctx, thread, name, s.limits())
		if len(found) == 0 {
			return nil, errors.Join(fmt.Errorf("%s: no variable %s in the debug information of its modules", t.Info().Path, name), err)
		}
		for _, g := range found {
			list = append(list, report.Global{GlobalVariable: g, Thread: thread})
		}
	}
	return list, nil
}

// selected returns the threads to write. Crashed ones come first where each is written by
// itself, as text or HTML.
func (s *Stack) selected(t *engine.Target) ([]*trace.Thread, error) {
	all := t.Process().ThreadList()
	switch {
	case s.Crashed:
		var list []*trace.Thread
		for _, th := range all.Where(func(th *trace.Thread) bool { return th.Crashed }) {
			list = append(list, th)
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("%s: none of its %d threads crashed", t.Info().Path, all.Len())
		}
		return list, nil
	case s.isAll():
		return t.Threads(), nil
	case s.Thread == "":
		return crashedFirst(t.Threads()), nil
	}
	if i := all.Index(s.Thread); i >= 0 {
		return []*trace.Thread{all.At(i)}, nil
	}
	return nil, noThread(t, s.Thread)
}

// crashedFirst returns threads with the crashed ones before the others.
func crashedFirst(threads []*trace.Thread) []*trace.Thread {
	list := slices.Clone(threads)
	slices.SortStableFunc(list, func(a, b *trace.Thread) int { return cmp.Compare(isLast(a), isLast(b)) })
	return list
}

// isLast returns 0 for a thread that crashed, and 1 for others.
func isLast(th *trace.Thread) int {
	if th.Crashed {
		return 0
	}
	return 1
}
