// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/signature"
	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/sdk"
)

// TextOptions are the options of a report for people.
type TextOptions struct {
	Color bool
	// NoFold prints equal stacks one by one instead of once with the list of their threads,
	// and each frame of a recursion instead of its cycle.
	NoFold bool
	// FullNames writes the names of functions whole.
	FullNames bool
	// OneLane means that the stacks are of single lanes: a frame mentions only unusual facts
	// about its lane.
	OneLane bool
	// Verbose adds the list of modules.
	Verbose bool
}

type text struct {
	*Printer
	about      Head
	modulesOf  map[int]*Module // of about, by ID
	framed     map[int]bool    // modules that a frame is in, by ID
	detail     headDetail      // of about
	isVerbose  bool            // variables with their types
	hasOneLane bool
	noFold     bool // each frame of a recursion
	space      spaceNames
	source     sourceOf
	codes      *frameCodes
	names      names
	caught     *trace.CaughtCrash // see Stacks.FirstCrash
	reading    *signature.Reading // of the stack that is written
	ownOnly    bool               // of source lines only the program's own one is written
	ownShown   bool
	// own is the program's own function at which the crashed thread failed, and ownFrame its
	// frame; nil: it is not to be written with its line.
	own        *trace.Symbol
	ownFrame   *trace.Frame
	thread     *trace.Thread   // whose frames are written; nil: a launcher that is not in the target
	mentioned  map[string]bool // sentences about source files that were written
	sourceless []string        // why there are no lines of source files, for each once
	line       []byte          // of the last variable, to be written over
	paint
}

// setHead sets the facts about the target so far.
func (t *text) setHead(h Head) {
	t.about, t.modulesOf = h, make(map[int]*Module, len(h.Modules))
	for i := range h.Modules {
		t.modulesOf[h.Modules[i].ID] = &h.Modules[i]
	}
}

func (t *text) target() {
	target := &t.about.Target
	line := t.about.subject()
	if target.Signal != 0 {
		line += ": " + t.about.signalName(target.Signal)
		if target.FaultAddress != "" {
			line += " at address " + target.FaultAddress
		}
	} else if c := target.Crash; c != nil {
		line += c.text()
	}
	t.printf("%s\n", t.header(line))
	if target.Fact != "" {
		t.printf("%s\n", t.warn(target.Fact))
	}
	if c := target.Crash; c != nil && c.Assertion != "" {
		t.printf("%s %s\n", t.warn("assertion failed:"), c.Assertion)
	}
	t.annotations(target.Annotations)
	t.deadlocks(t.about.deadlocks)
	for _, p := range target.Problems {
		t.printf("%s %s\n", t.warn("problem:"), p)
	}
	t.devices(target)
}

// text is the text behind the target's path: why it was kept.
func (c *Crash) text() string {
	switch {
	case c.Requested:
		return ": somebody asked for it"
	case c.Name != "" && c.Address != "":
		return ": " + c.Name + " at " + c.Address
	case c.Name != "":
		return ": " + c.Name
	}
	return ""
}

func (h *Head) signalName(number int) string {
	if name := target.SignalName(h.machine, number); name != "" {
		return fmt.Sprintf("signal %d (%s)", number, name)
	}
	return fmt.Sprintf("signal %d", number)
}

func (t *text) group(g *group) {
	t.printf("\n%s\n", t.header(t.threads(g)))
	t.identity(g)
	t.creator(g)
	t.pending(g)
	t.stop(g.threads)
	t.waits(g)
	first := g.first
	t.exceptions(first)
	width := indexWidth(first)
	t.read(first)
	next := t.chain(first.Frames, &first.Gap, 0, width)
	t.end(g, 0)
	for i := range first.Launchers {
		l := &first.Launchers[i]
		t.launch(l)
		t.thread, t.reading = l.Thread, &signature.Reading{Rows: signature.Behind(l.Frames)}
		next = t.chain(l.Frames, &l.Gap, next, width)
		t.end(g, i+1)
	}
}

// read prepares to write the frames of a stack.
func (t *text) read(s *trace.Stack) {
	t.thread, t.reading = s.Thread, readStack(s, t.caught)
	t.own = nil
	if r := t.reading; r.HasOwn && s.Thread.Crashed && !t.ownShown {
		t.own = &s.Frames[r.Own].Symbols[r.Level]
		t.ownFrame = &s.Frames[r.Own]
	}
}

// indexWidth is the number of digits of the frames' indexes.
func indexWidth(s *trace.Stack) int {
	count := countAll(s.Frames, &s.Gap)
	for i := range s.Launchers {
		l := &s.Launchers[i]
		count += countAll(l.Frames, &l.Gap)
	}
	return len(strconv.Itoa(count))
}

// end writes why a stack ends, if it does so in its n-th launcher, or in the thread itself.
func (t *text) end(g *group, n int) {
	if e := &g.ending; e.launch == n && !e.isWhole() {
		t.printf("  %s %s: %s\n", t.warn("stopped:"), e.Reason, e.detail())
	}
}

// threads names the threads of a group.
func (t *text) threads(g *group) string {
	first := g.first.Thread
	if line := t.goroutines(g); line != "" {
		return line
	}
	if g.count == 1 {
		line := "thread " + first.ID
		if name := threadName(first, g.first.Runtimes); name != "" {
			line += " " + strconv.Quote(name)
		}
		if e := first.Executes; e != nil {
			line += ", executes " + e.ID
		}
		return line + runtimeState(g.first, false) + t.about.crash(first)
	}
	return fmt.Sprintf("%d threads%s%s: %s", g.count, runtimeState(g.first, true), t.about.crash(first), g.ids.short())
}

// crash writes that a thread crashed; for a wave, whose reason may differ from its process's,
// also how.
func (h *Head) crash(t *trace.Thread) string {
	switch {
	case !t.Crashed:
		return ""
	case t.Wave != nil && t.Signal != 0:
		return ", crashed by " + h.signalName(t.Signal)
	}
	return ", crashed"
}

// stop writes why threads stopped, which is one reason for all of them.
func (t *text) stop(threads []member) {
	th := threads[0]
	s := th.Stop
	if th.IsRunning {
		t.printf("  %s\n", t.faint("running: interrupted to be dumped"))
	}
	if th.State != "" {
		t.printf("  %s\n", t.faint(th.State))
	}
	if s == nil {
		return
	}
	if th.Wave == nil && th.Crashed && !isImprecise(s) && addressOf(s) == t.about.Target.FaultAddress {
		if reason, ok := target.StopOfSignal(t.about.machine, th.Signal); ok && reason.Name == s.Reason {
			return // the target's signal is equivalent
		}
	}
	line := "stopped by " + stopName(s)
	if len(s.Details) > 0 {
		line += " (" + strings.Join(s.Details, ", ") + ")"
	}
	seen := map[uint64]bool{}
	first, last := ^uint64(0), uint64(0)
	for _, th := range threads {
		if a := th.Stop.Address; th.Stop.HasAddress {
			seen[a] = true
			first, last = min(first, a), max(last, a)
		}
	}
	switch {
	case len(seen) == 1:
		line += " at address " + address(first)
	case len(seen) > 1:
		line += fmt.Sprintf(" at %d addresses from %#x to %#x", len(seen), first, last)
	}
	if isImprecise(s) {
		line += ", PC not exact"
	}
	t.printf("  %s\n", t.warn(line))
}

// addressOf is the address that a thread accessed when it stopped; "" where it is not known.
func addressOf(s *trace.Stop) string {
	if !s.HasAddress {
		return ""
	}
	return address(s.Address)
}

// stopName is the text's name for the reason of a thread's stop.
func stopName(s *trace.Stop) string {
	name := strings.ReplaceAll(s.Reason, "-", " ")
	if s.HasTrapID {
		name += " " + strconv.FormatUint(uint64(s.TrapID), 10)
	}
	return name
}

// launch writes that the frames of a launcher follow, or why there are none.
func (t *text) launch(l *trace.Launcher) {
	switch thread := "launched by thread " + l.Launch.Thread; {
	case l.Problem != "":
		t.printf("  %s\n", t.faint(thread+", whose stack is not known: "+l.Problem))
	case len(l.Frames) == 0: // only the process is known
	case l.Evidence == trace.LaunchRecorded:
		t.printf("  %s\n", t.faint(thread+", from"))
	default:
		t.printf("  %s\n", t.faint(thread+", which waits in"))
	}
}

// identity writes which wave a thread is and its launcher: for several threads, their common
// facts.
func (t *text) identity(g *group) {
	var parts []string
	for i, f := range facts {
		if value := f.text(&g.threads[0]); value != "" && g.differs&(1<<i) == 0 {
			parts = append(parts, f.name+" "+value)
		}
	}
	// Where the stack continues in the launcher's, the lines above it describe it.
	if l := g.first.Launchers; len(l) == 0 || len(l[0].Frames) == 0 && l[0].Problem == "" {
		if launch := g.first.LaunchedBy(); launch != nil {
			parts = append(parts, launchText(launch))
		}
	}
	if len(parts) > 0 {
		t.printf("  %s\n", t.faint(strings.Join(parts, ", ")))
	}
}

// launchText describes the launcher of a thread, and the evidence for it.
func launchText(launch *trace.Launch) string {
	who := "by a thread that is not known"
	if launch.Thread != "" {
		who = "by thread " + launch.Thread
	}
	kind := ""
	if launch.Kind != "" {
		kind = launch.Kind + ", "
	}
	return fmt.Sprintf("launched %s (%s%s)", who, kind, launch.Evidence)
}

// facts are the text's facts about waves, each by its name; "" where it is not known.
var facts = []struct {
	name string
	text func(*member) string
}{
	{"kernel", ofWave(func(_ *member, w *sdk.Wave) string { return kernelName(w.Kernel) })},
	{"agent", ofWave(func(_ *member, w *sdk.Wave) string { return w.Agent })},
	{"queue", ofWave(func(_ *member, w *sdk.Wave) string { return w.Queue })},
	{"dispatch", ofWave(func(_ *member, w *sdk.Wave) string { return w.Dispatch })},
	{"group", ofWave(func(_ *member, w *sdk.Wave) string {
		if !w.HasGroup {
			return ""
		}
		return fmt.Sprintf("(%d,%d,%d)", w.Group[0], w.Group[1], w.Group[2])
	})},
	{"cluster", ofWave(func(_ *member, w *sdk.Wave) string {
		if !w.HasCluster {
			return ""
		}
		return fmt.Sprintf("(%d,%d,%d)", w.Cluster[0], w.Cluster[1], w.Cluster[2])
	})},
	{"wave", ofWave(func(_ *member, w *sdk.Wave) string {
		if !w.HasInGroup {
			return ""
		}
		return strconv.FormatUint(uint64(w.InGroup), 10)
	})},
	{"lane 0 is work-item", ofWave(func(m *member, w *sdk.Wave) string {
		if !w.HasInGroup || m.lanes <= 1 {
			return ""
		}
		return strconv.FormatUint(uint64(w.InGroup)*uint64(m.lanes), 10)
	})},
	{"lanes", ofWave(func(m *member, _ *sdk.Wave) string { return ownLanes(m.Thread) })},
}

// ownLanes are the lanes of a thread that has not all lanes of its wave, as the others are at other
// places; "" for a thread that has all.
func ownLanes(th *trace.Thread) string {
	if n := len(th.LaneStates); n == 0 || n >= int(th.Lanes) {
		return ""
	}
	lanes := make(trace.LaneSet, (th.Lanes+63)/64)
	for i := range th.LaneStates {
		if lane := th.LaneStates[i].Lane; lane < th.Lanes {
			lanes.Add(lane)
		}
	}
	return lanes.String()
}

// ofWave is a fact about threads that are waves.
func ofWave(f func(*member, *sdk.Wave) string) func(*member) string {
	return func(m *member) string {
		if m.Wave == nil {
			return ""
		}
		return f(m, m.Wave)
	}
}

// chain writes the frames of a thread, of which the first has an index, and returns the index
// of the next frame.
func (t *text) chain(frames []trace.Frame, gap *trace.Gap, index, width int) (next int) {
	c := chain{
		isWhole: t.noFold,
		names:   t.names,
		rows:    t.reading.Rows,
		frames:  func(frames []trace.Frame, index int) int { return t.frames(frames, index, width) },
		note:    func(text string) { t.printf("  %s\n", t.faint(text)) },
	}
	return c.write(frames, gap, index)
}

// frames writes frames, the calls inlined into them and their tail callers, of which the
// first has an index, and returns the index of the next.
func (t *text) frames(frames []trace.Frame, index, width int) (next int) {
	for i := range frames {
		f := &frames[i]
		for j := range max(len(f.Symbols)-1, 0) {
			s := &f.Symbols[j]
			t.inlinedLine(f, s, index, width)
			t.sourceLines(f, s)
			t.locals(f, j)
			index++
		}
		t.physical(f, index, width)
		index = t.frames(f.TailCallers(), index+1, width)
	}
	return index
}

// inlinedLine writes a call that was inlined into a frame.
func (t *text) inlinedLine(f *trace.Frame, s *trace.Symbol, index, width int) {
	t.printf("  #%-*d %s", width, index, t.faint(fmt.Sprintf("%-18s ", "inlined")))
	t.place(f, s, "")
	t.reported(s)
	t.scopeFrom(s)
	t.printf("\n")
}

func countLines(frames []trace.Frame) (n int) {
	for i := range frames {
		n += lines(&frames[i]) + countLines(frames[i].TailCallers())
	}
	return n
}

// countAll is countLines of frames and of the ones outside them.
func countAll(frames []trace.Frame, gap *trace.Gap) int {
	return countLines(frames) + gap.LeftOut + gap.LeftOutCalls + countLines(gap.Outermost)
}

// physical writes a frame that is no inlined call.
func (t *text) physical(f *trace.Frame, index, width int) {
	s := ownSymbol(f)
	t.physicalLine(f, s, index, width)
	t.sourceLines(f, s)
	t.code(f, s)
	t.lanes(f.Lanes(), width)
	t.registers(f.Registers())
	t.locals(f, max(len(f.Symbols)-1, 0))
	t.waiting(f.Lanes(), width)
}

// ownSymbol is the function of a frame itself, into which others were inlined.
func ownSymbol(f *trace.Frame) *trace.Symbol {
	if n := len(f.Symbols); n > 0 {
		return &f.Symbols[n-1]
	}
	return &trace.Symbol{}
}

// physicalLine writes the place of a frame, and how sure it is.
func (t *text) physicalLine(f *trace.Frame, s *trace.Symbol, index, width int) {
	if f.IsNative() {
		t.printf("  #%-*d %-18s ", width, index, fmt.Sprintf("0x%016x", f.PC))
	} else { // it has no PC of its own
		t.printf("  #%-*d %s", width, index, t.faint(fmt.Sprintf("%-18s ", cmp.Or(string(f.Managed().Kind), "managed"))))
	}
	t.place(f, s, functionOffset(f, s))
	if f.Module != nil {
		t.framed[f.Module.ID] = true
	}
	if f.SignalFrame {
		t.printf(" %s", t.header("<signal handler called>"))
	}
	if f.Imprecise {
		t.printf(" %s", t.warn("(PC not exact)"))
	}
	switch {
	case f.FoundBy == trace.ByCallSite:
		t.printf(" %s", t.faint("(left by a tail call)"))
	case f.FoundBy.IsGuess():
		t.printf(" %s", t.warn("(a guess, by "+string(f.FoundBy)+")"))
		if f.PassedOver > 0 {
			t.printf(" %s", t.warn(fmt.Sprintf("(passed over %d possible return addresses)", f.PassedOver)))
		}
	case f.RestsOnGuess:
		t.printf(" %s", t.warn("(rests on a guess)"))
	}
	t.reported(s)
	t.scopeFrom(s)
	t.equals(s)
	t.printf("\n")
}

// functionOffset is the offset of a frame in its function, with its sign; "" where it is not
// known.
func functionOffset(f *trace.Frame, s *trace.Symbol) string {
	switch {
	case s.Function == "" || !s.HasStart:
		return ""
	case f.ModuleOffset < s.Start:
		return offset(f.ModuleOffset, s.Start)
	}
	return "+" + offset(f.ModuleOffset, s.Start)
}

// place writes the function at a frame, the frame's offset in it, and its position, or its
// module without one.
func (t *text) place(f *trace.Frame, s *trace.Symbol, offset string) {
	t.printf("%s%s", t.function(t.names.of(s)), offset)
	switch {
	case s.Line > 0:
		t.printf(" %s", t.paint.place(position(s.File, s.Line, s.Column)))
	case f.Module != nil:
		m := t.modulesOf[f.Module.ID]
		if m == nil {
			return
		}
		t.printf(" %s", t.faint("in "+m.short()))
		if s.Function == "" {
			t.printf("%s", t.faint("+"+address(f.ModuleOffset)))
		}
	case f.Managed() != nil:
		t.printf(" %s", t.faint("in "+f.Managed().Runtime))
	}
}

// lanes writes the states of a frame's lanes. Lanes that execute are where the frame is, so
// their place is not repeated.
func (t *text) lanes(groups []trace.LaneGroup, width int) {
	longest := 0
	for i := range groups {
		longest = max(longest, len(groups[i].Lanes.String()))
	}
	for i := range groups {
		g := &groups[i]
		if t.hasOneLane && g.State == trace.LaneActive {
			continue
		}
		t.printf("   %*s %s %-*s %s", width, "", t.faint("lanes"), longest, g.Lanes.String(), laneStates[g.State])
		if g.State != trace.LaneActive {
			t.lanePlace(g)
		}
		t.printf("\n")
	}
}

// laneStates are the text's names of the states.
var laneStates = map[trace.LaneState]string{
	trace.LaneActive: "active", trace.LaneInactive: "inactive", trace.LaneNotOnEntry: "not active on entry", trace.LaneUnknown: "unknown",
}

// lanePlace writes the place of lanes, where it is described.
func (t *text) lanePlace(g *trace.LaneGroup) {
	if !g.HasPC {
		return
	}
	t.printf(" at %s", address(g.PC))
	if len(g.Symbols) == 0 {
		t.printf(" %s", t.function("??"))
	}
	for i := range g.Symbols {
		s := &g.Symbols[i]
		if i > 0 {
			t.printf(", in")
		}
		t.printf(" %s", t.function(t.names.of(s)))
		if s.Line > 0 {
			t.printf(" %s", t.paint.place(position(s.File, s.Line, s.Column)))
		}
		t.scopeFrom(s)
	}
}

// scopeFrom marks a frame of a chain that is a guess.
func (t *text) scopeFrom(s *trace.Symbol) {
	if s.ScopeBySource {
		t.printf(" %s", t.warn("(a guess, by source module)"))
	}
}

// equals writes that other functions have the same code.
func (t *text) equals(s *trace.Symbol) {
	switch s.Equals {
	case 0:
	case trace.SeveralEqual:
		t.printf(" %s", t.faint("(one of several equal functions)"))
	default:
		t.printf(" %s", t.faint(fmt.Sprintf("(one of %d equal functions)", s.Equals)))
	}
}

// registers writes a frame's registers in columns, in the order of their
// numbers.
func (t *text) registers(list []trace.RegisterValue) {
	names, digits := 3, 0
	for _, r := range list {
		names, digits = max(names, len(r.Name)), max(digits, int(r.Bits+3)/4)
	}
	for i, r := range list {
		if i%4 == 0 {
			t.printf("      ")
		}
		value := fmt.Sprintf("0x%0*x", int(r.Bits+3)/4, r.Value)
		last := i%4 == 3 || i == len(list)-1
		if last {
			t.printf("  %-*s %s\n", names, r.Name, value)
		} else {
			t.printf("  %-*s %-*s", names, r.Name, digits+2, value)
		}
	}
}

func parse(hex string) uint64 {
	v, _ := strconv.ParseUint(strings.TrimPrefix(hex, "0x"), 16, 64)
	return v
}

func position(file string, line, column int) string {
	s := file + ":" + strconv.Itoa(line)
	if column > 0 {
		s += ":" + strconv.Itoa(column)
	}
	return s
}

// listedMissing is the number of modules without a file and without frames that are listed. A
// minidump of another machine may name hundreds.
const listedMissing = 5

// modules lists the modules: the ones with remarks, or all.
func (t *text) modules(all bool) {
	var list []*Module
	missing := 0
	for i := range t.about.Modules {
		if m := &t.about.Modules[i]; m.Problem != "" && !m.isServed || all {
			list = append(list, m)
			if t.isIdle(m) {
				missing++
			}
		}
	}
	if all || missing <= listedMissing {
		missing = 0
	}
	if len(list) > 0 {
		t.printf("\n%s\n", t.header("modules"))
	}
	for _, m := range list {
		if missing == 0 || !t.isIdle(m) {
			t.module(m, all)
		}
	}
	if missing > 0 {
		t.printf("  %d more, which no frame is in, have no file here (-v lists them)\n", missing)
	}
}

// isIdle reports whether a module has no file, and no frame is in it.
func (t *text) isIdle(m *Module) bool { return m.isMissing && !t.framed[m.ID] }

// module writes a module, and all known facts about it.
func (t *text) module(m *Module, all bool) {
	start := ""
	if len(m.Segments) > 0 {
		start = fmt.Sprintf("0x%016x ", parse(m.Segments[0].Start))
	}
	t.printf("  %s%s", start, m.label())
	if m.BuildID != "" {
		t.printf(" %s", t.faint("build ID "+m.BuildID))
	}
	if all && m.File != "" && m.File != m.Path {
		t.printf(" %s", t.faint("from "+m.File))
	}
	if all && m.DebugFile != "" {
		t.printf(" %s", t.faint("debug file "+m.DebugFile))
	}
	if all {
		t.printf(" %s", t.faint("debug info "+m.DebugInfo))
	}
	t.printf("\n")
	if m.Problem != "" {
		t.printf("    %s %s\n", t.warn("problem:"), m.Problem)
	}
	if all && m.DebugFile == "" {
		for _, s := range m.Searched {
			t.printf("    %s\n", t.faint("no debug file: "+s))
		}
	}
}
