// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"iter"
	"path"
	"slices"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/internal/stackpage"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
)

// This file writes stacks as a page of HTML. Its lines are the lines of the text, taken in
// pieces (piecePaint), so that the page and the text agree.

// WritePage writes the stacks as a page of HTML: one file that needs no other. It ignores the
// options for terminals. Stacks are folded as by WriteText.
func (s *Stacks) WritePage(w io.Writer, o TextOptions) error {
	p := newPageText(s, o)
	if o.NoFold {
		return p.oneByOne(s, w)
	}
	f := p.folder
	f.hasParts = true
	for stack := range s.each {
		f.add(stack)
	}
	groups := p.sorted(f.ordered(s.deadlocks()))
	ready := s.code.prepare(groups)
	p.setHead(s.head(p.detail))
	out := stackpage.NewWriter(w, p.aboutTarget(s.Globals))
	p.isShort = len(groups) <= shownStacks
	for i, g := range groups {
		if i == ready {
			ready += s.code.prepare(groups[i:])
		}
		g.restoreLocals()
		if err := out.Stack(p.stack(g)); err != nil {
			return err
		}
	}
	return out.Close(p.end(s))
}

// shownStacks is the largest number of stacks of a target that are all open when a page is:
// of more, a user opens some.
const shownStacks = 8

// pageText writes the text form and takes its lines in pieces.
type pageText struct {
	text
	written strings.Builder
	isShort bool // all stacks are open
	isBegun bool // a stack was written
	values  int  // parts of variables that may still be written
	isTold  bool // the hints were written

	isOwnShown bool
	// ownCall is the program's own function in which it failed; nil: it is not known.
	ownCall *trace.Symbol

	folder *stackFolder
	calls  []stackpage.Call // of the last frame, to be written over
}

func newPageText(s *Stacks, o TextOptions) *pageText {
	p := &pageText{values: maxPageValues, folder: newStackFolder()}
	p.folder.listsAll = true
	p.text = s.newText(NewPrinter(&p.written), o, wideName)
	p.detail, p.paint = withDebugInfo, piecePaint()
	return p
}

// oneByOne writes each stack when it comes.
func (p *pageText) oneByOne(s *Stacks, w io.Writer) error {
	p.folder.mark(s.deadlocks())
	p.setHead(s.head(p.detail))
	out := stackpage.NewWriter(w, p.aboutTarget(s.Globals))
	for stack := range s.withCode() {
		if err := out.Stack(p.stack(newGroup(stack))); err != nil {
			return err
		}
	}
	return out.Close(p.end(s))
}

// take returns the lines that are written meanwhile.
func (p *pageText) take(write func()) []stackpage.Line {
	write()
	_ = p.Flush() // into memory
	all := p.written.String()
	p.written.Reset()
	if all == "" {
		return nil
	}
	var lines []stackpage.Line
	for line := range strings.SplitSeq(strings.TrimSuffix(all, "\n"), "\n") {
		lines = append(lines, pieces(line))
	}
	return lines
}

// takeLine returns the one line that is written meanwhile.
func (p *pageText) takeLine(write func()) stackpage.Line {
	for _, line := range p.take(write) {
		return line
	}
	return nil
}

// pieces splits a line into its pieces.
func pieces(line string) stackpage.Line {
	// An address is split off later.
	list := make(stackpage.Line, 0, 2*strings.Count(line, pieceBegins)+2)
	add := func(kind stackpage.Kind, text string) {
		if text != "" {
			list = append(list, stackpage.Piece{Kind: kind, Text: text})
		}
	}
	for line != "" {
		plain, rest, isMarked := strings.Cut(line, pieceBegins)
		add(stackpage.Plain, plain)
		if !isMarked {
			break
		}
		marked, after, _ := strings.Cut(rest, pieceEnds)
		add(stackpage.Kind(marked[:1]), marked[1:])
		line = after
	}
	return list
}

// stack is a group of equal stacks.
func (p *pageText) stack(g *group) *stackpage.Stack {
	first := g.first
	out := &stackpage.Stack{
		Title:     p.takeLine(func() { p.printf("%s\n", p.paint.header(p.threads(g))) }),
		IsCrashed: first.Thread.Crashed, IsOpen: first.Thread.Crashed || p.isShort || !p.isBegun, Outline: p.outline(first),
		About: p.take(func() {
			p.identity(g)
			p.creator(g)
			p.pending(g)
			p.stop(g.threads)
			p.waits(g)
			p.exceptions(first)
		}),
	}
	p.isBegun = true
	out.Threads = threadLists(g)
	out.Kind = g.title()
	out.Flags = p.flags(g)
	p.read(first)
	p.ownCall = nil
	if r := p.reading; r.HasOwn && first.Thread.Crashed && !p.isOwnShown {
		p.ownCall, p.isOwnShown = &first.Frames[r.Own].Symbols[r.Level], true
	}
	out.Parts = p.parts(g)
	return out
}

// parts are the frames of a group's threads, made while they are written.
func (p *pageText) parts(g *group) iter.Seq[stackpage.Part] {
	first := g.first
	width, next := indexWidth(first), 0
	frames := func(list []trace.Frame, gap *trace.Gap) func(func(*stackpage.Frame)) {
		return func(write func(*stackpage.Frame)) { next = p.chain(list, gap, next, width, write) }
	}
	end := func(n int) []stackpage.Line { return p.take(func() { p.text.end(g, n) }) }
	return func(yield func(stackpage.Part) bool) {
		if !yield(stackpage.Part{Frames: frames(first.Frames, &first.Gap), End: end(0)}) {
			return
		}
		for i := range first.Launchers {
			l := &first.Launchers[i]
			launch := p.take(func() { p.launch(l) })
			p.thread, p.reading = l.Thread, &signature.Reading{Rows: signature.Behind(l.Frames)}
			if !yield(stackpage.Part{Launch: launch, Frames: frames(l.Frames, &l.Gap), End: end(i + 1)}) {
				return
			}
		}
	}
}

// flags are marks in the title of a stack.
func (p *pageText) flags(g *group) (list []string) {
	if p.folder.isDeadlocked(g) {
		list = append(list, "deadlock")
	}
	switch e := &g.ending; {
	case e.hasGuess:
		list = append(list, "has a guess")
	case !e.isWhole():
		list = append(list, "ends early")
	}
	return list
}

// threadKind is a kind of threads, by its place on a page.
type threadKind int

const (
	ownGoroutine threadKind = iota
	systemGoroutine
	cpuThread
)

// title is the title of the threads of a kind: of goroutines, or of others that a runtime schedules.
func (k threadKind) title(g *trace.Goroutine) string {
	switch {
	case k == cpuThread || g == nil:
		return stackpage.Usual
	case k == ownGoroutine:
		return escape.Text(g.Word() + "s")
	case g.Scheduler == nil:
		return "goroutines of Go's runtime"
	}
	return escape.Text(g.Word() + "s of the runtime " + g.Scheduler.Runtime)
}

// title is the title of the threads of a group.
func (g *group) title() string { return g.kind().title(g.scheduled()) }

// scheduled is the first thread of a group that a runtime schedules; nil: there is none.
func (g *group) scheduled() *trace.Goroutine {
	for i := range g.threads {
		if x := g.threads[i].Goroutine; x != nil {
			return x
		}
	}
	return nil
}

// kind is the kind of the threads of a group. A thread that executes a goroutine of the group is
// counted as that.
func (g *group) kind() threadKind {
	switch x := g.scheduled(); {
	case x == nil:
		return cpuThread
	case x.IsSystem:
		return systemGoroutine
	}
	return ownGoroutine
}

// place is the place of a group on a page: as in the text, and then by their kinds.
func (p *pageText) place(g *group) int { return p.folder.place(g)<<8 + int(g.kind()) }

// sorted sorts groups by their place, and by the titles of their threads.
func (p *pageText) sorted(groups []*group) []*group {
	slices.SortStableFunc(groups, func(a, b *group) int {
		return cmp.Or(cmp.Compare(p.place(a), p.place(b)), cmp.Compare(a.title(), b.title()))
	})
	return groups
}

// threadLists are the goroutines and the threads of a stack with their names, which the text does
// not have: each kind where it has several and one has a name.
func threadLists(g *group) (lists []stackpage.Threads) {
	for _, kind := range []threadKind{ownGoroutine, cpuThread} {
		list, isNamed := stackpage.Threads{Kind: kind.title(g.scheduled())}, false
		for _, m := range g.threads {
			if (m.Goroutine != nil) == (kind == ownGoroutine) {
				list.List = append(list.List, stackpage.Thread{ID: escape.Text(m.ID), Name: escape.Text(m.Name)})
				isNamed = isNamed || m.Name != ""
			}
		}
		if len(list.List) > 1 && isNamed {
			lists = append(lists, list)
		}
	}
	return lists
}

// outlined is the number of functions in a stack's outline.
const outlined = 4

// outline is the innermost functions of a stack that have names.
func (p *pageText) outline(s *trace.Stack) string {
	var names []string
	for i := range s.Frames {
		for k := range s.Frames[i].Symbols {
			symbol := &s.Frames[i].Symbols[k]
			if symbol.Function == "" {
				continue
			}
			if len(names) == outlined {
				return strings.Join(names, " ← ") + " ← …"
			}
			names = append(names, escape.Text(cutShort(p.names.of(symbol), 60)))
		}
	}
	return strings.Join(names, " ← ")
}

// cutShort is a text of at most a number of bytes, or a little more.
func cutShort(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xc0 == 0x80 { // within a character of UTF-8
		most--
	}
	return s[:most] + "…"
}

// chain writes the frames of a thread, as the text form has them, and returns the index of the next.
func (p *pageText) chain(frames []trace.Frame, gap *trace.Gap, index, width int, write func(*stackpage.Frame)) (next int) {
	var note *stackpage.Frame // not yet written: the frames behind it may follow
	flush := func() {
		if note != nil {
			write(note)
			note = nil
		}
	}
	c := chain{
		isWhole: p.noFold,
		names:   p.names,
		rows:    p.reading.Rows,
		frames: func(frames []trace.Frame, index int) int {
			flush()
			return p.frames(frames, index, width, write)
		},
		note: func(text string) {
			flush()
			note = &stackpage.Frame{Note: p.takeLine(func() { p.printf("  %s\n", p.paint.faint(text)) })}
		},
		behind: func(frames []trace.Frame, index int) {
			p.frames(frames, index, width, func(f *stackpage.Frame) {
				note.Folded = append(note.Folded, stackpage.Frame{Calls: slices.Clone(f.Calls)})
			})
		},
	}
	next = c.write(frames, gap, index)
	flush()
	return next
}

// frames writes frames and their tail callers, of which the first has an index, and returns the
// index of the next.
func (p *pageText) frames(frames []trace.Frame, index, width int, write func(*stackpage.Frame)) (next int) {
	for i := range frames {
		f := &frames[i]
		calls := p.calls[:0]
		for level := range max(len(f.Symbols)-1, 0) {
			s := &f.Symbols[level]
			c := p.call(f, s, p.takeLine(func() { p.inlinedLine(f, s, index, width) }))
			c.Line = withoutAddress(c.Line)
			c.IsInlined, c.IsGuess, c.FoundBy, c.Module = true, c.IsGuess || s.ScopeBySource, "", ""
			c.Source = p.marked(func() { p.sourceLines(f, s) })
			c.Locals = p.locals(f, level)
			calls = append(calls, c)
			index++
		}
		p.calls = append(calls, p.physical(f, index, width))
		write(&stackpage.Frame{Calls: p.calls})
		index = p.frames(f.TailCallers(), index+1, width, write)
	}
	return index
}

// call is a function at a frame, with its line of the text.
func (p *pageText) call(f *trace.Frame, s *trace.Symbol, line stackpage.Line) stackpage.Call {
	withFullName(line, s)
	c := stackpage.Call{Line: p.withAddress(line), IsOwn: s == p.ownCall, FoundBy: escape.Text(string(f.FoundBy)), IsGuess: f.FoundBy.IsGuess() || f.RestsOnGuess}
	switch {
	case f.FoundBy.IsGuess():
		c.FoundBy = "guess: " + c.FoundBy
	case f.RestsOnGuess:
		c.FoundBy += ", rests on a guess"
	}
	if f.PassedOver > 0 {
		c.FoundBy += fmt.Sprintf(", passed over %d", f.PassedOver)
	}
	if f.Module != nil {
		p.framed[f.Module.ID] = true
		if m := p.modulesOf[f.Module.ID]; m != nil {
			c.Module = escape.Text(m.short())
		}
	}
	return c
}

// withAddress makes the address that stands in the front of a physical frame's line a
// piece of its own.
func (p *pageText) withAddress(line stackpage.Line) stackpage.Line {
	if len(line) == 0 || line[0].Kind != stackpage.Plain {
		return line
	}
	text := line[0].Text
	at := strings.Index(text, "0x")
	if at < 0 {
		return line
	}
	line[0].Text = text[:at]
	return slices.Insert(line, 1, stackpage.Piece{Kind: stackpage.Address, Text: text[at:]})
}

// withFullName adds a function's full name to the piece of a line that has its short one.
func withFullName(line stackpage.Line, s *trace.Symbol) {
	i := slices.IndexFunc(line, func(p stackpage.Piece) bool { return p.Kind == stackpage.Function })
	if full := escape.Text(s.Function); i >= 0 && s.Function != "" && line[i].Text != full {
		line[i].Full = cutShort(full, maxFullName)
	}
}

// maxFullName bounds a function's full name on a page, in bytes: a name may have megabytes.
const maxFullName = 4096

// withoutAddress makes the word that stands in the front of a line in place of an address, for an
// inlined call or a managed frame, a piece of its own.
func withoutAddress(line stackpage.Line) stackpage.Line {
	if len(line) > 1 && line[1].Kind == stackpage.Faint {
		line[1].Kind = stackpage.Address
	}
	return line
}

// physical is the function of a physical frame.
func (p *pageText) physical(f *trace.Frame, index, width int) stackpage.Call {
	s := ownSymbol(f)
	c := p.call(f, s, p.takeLine(func() { p.physicalLine(f, s, index, width) }))
	if !f.IsNative() {
		c.Line = withoutAddress(c.Line)
	}
	c.IsGuess = c.IsGuess || s.ScopeBySource
	c.Source = p.marked(func() { p.sourceLines(f, s) })
	c.Code = p.marked(func() { p.code(f, s) })
	c.Lanes = p.lanes(f, width)
	c.Registers = p.take(func() { p.registers(f.Registers()) })
	c.Locals = append(p.locals(f, max(len(f.Symbols)-1, 0)), p.waiting(f, width)...)
	return c
}

// marked returns the lines that are written meanwhile, with a mark where the text has one.
func (p *pageText) marked(write func()) []stackpage.Line {
	list := p.take(write)
	for i, line := range list {
		if len(line) == 0 || strings.TrimSpace(line[0].Text) != ">" {
			continue
		}
		var all strings.Builder
		for _, piece := range line {
			all.WriteString(piece.Text)
		}
		list[i] = stackpage.Line{{Kind: stackpage.Current, Text: all.String()}}
	}
	return list
}

// aboutTarget describes the target above the stacks.
func (p *pageText) aboutTarget(globals []Global) *stackpage.About {
	target := &p.about.Target
	name := cmp.Or(p.about.processName(), path.Base(target.Path))
	out := &stackpage.About{Lines: p.take(p.target), Hints: p.hintsOnce(), Facts: p.facts()}
	if why := p.about.why(); why != "" {
		name += ": " + why
	}
	out.Name = escape.Text(name)
	for i := range globals {
		g := &globals[i]
		v := stackpage.Variable{Lines: p.take(func() { p.global(globals, g) }), Type: p.typeOf(&g.Value)}
		v.Parts = p.valueParts(&g.Value, g.Language, 0)
		out.Globals = append(out.Globals, v)
	}
	return out
}

// hintsOnce are the hints, the first time that there are any: where each stack is written when it
// comes, the head has none.
func (p *pageText) hintsOnce() (list []stackpage.Hint) {
	if p.isTold {
		return nil
	}
	for i := range p.about.Target.Hints {
		h := &p.about.Target.Hints[i]
		list = append(list, stackpage.Hint{Text: escape.Text(h.Text), Needs: escape.Text(string(h.Needs)), Module: escape.Text(h.Module), BuildID: escape.Text(h.BuildID)})
	}
	p.isTold = len(list) > 0
	return list
}

// why describes in a few words why the target was kept; "" where that is not known.
func (h *Head) why() string {
	switch target := &h.Target; {
	case target.Signal != 0:
		return h.signalName(target.Signal)
	case target.Crash != nil:
		return target.Crash.Name
	}
	return ""
}

// end is the part below the stacks.
func (p *pageText) end(s *Stacks) *stackpage.End {
	out := &stackpage.End{Problems: p.take(func() { p.newProblems(s) })}
	out.Hints = p.hintsOnce()
	for _, why := range p.sourceless {
		out.Sourceless = append(out.Sourceless, escape.Text(why))
	}
	for i := range p.about.Modules {
		m := &p.about.Modules[i]
		row := stackpage.Module{
			Name: escape.Text(m.label()), Status: moduleStatus(m), BuildID: m.BuildID, DebugFile: escape.Text(m.DebugFile),
			IsBad: m.Problem != "" && !m.isServed && !p.isIdle(m),
		}
		if len(m.Segments) > 0 {
			row.Start = m.Segments[0].Start
		}
		if !m.isServed {
			row.Problem = escape.Text(m.Problem)
		}
		if row.IsBad {
			out.Modules.Bad++
		}
		out.Modules.List = append(out.Modules.List, row)
	}
	slices.SortStableFunc(out.Modules.List, func(a, b stackpage.Module) int { return isAfter(a) - isAfter(b) })
	out.Modules.IsOpen = out.Modules.Bad > 0
	return out
}

// isAfter is 0 for modules that come first: the ones with problems.
func isAfter(m stackpage.Module) int {
	if m.IsBad {
		return 0
	}
	return 1
}

// moduleStatus is the state of a module's debug information, in the words of the JSON, and
// its source where that is not the module's file.
func moduleStatus(m *Module) string {
	where := ""
	switch {
	case m.isServed:
		where = "in a symbol file"
	case m.isMissing:
		where = "no file"
	}
	return escape.Text(strings.Join(slices.DeleteFunc([]string{m.DebugInfo, where}, func(s string) bool { return s == "" }), ", "))
}
