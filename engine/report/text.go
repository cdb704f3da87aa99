package report

import (
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/target"
)

// TextOptions says how a report is written for people.
type TextOptions struct {
	Color bool
	// NoFold prints equal stacks one by one instead of once with the list of
	// their threads.
	NoFold bool
	// OneLane says that the stacks are those of single lanes: a frame says of
	// its lane only what is not usual.
	OneLane bool
	// Verbose adds the list of modules.
	Verbose bool
}

// WriteText writes a report for people: the crashed thread first, equal stacks
// folded into one.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	b := NewPrinter(w)
	t := &text{Printer: b, report: r, hasOneLane: o.OneLane, paint: newPaint(o.Color)}
	t.target()
	for _, g := range fold(r.Threads, o.NoFold) {
		t.group(g)
	}
	t.modules(o.Verbose)
	return b.Flush()
}

type text struct {
	*Printer
	report     *Report
	hasOneLane bool
	paint
}

func (t *text) target() {
	of := &t.report.Target
	line := of.Kind + " " + of.Path
	if of.Signal != 0 {
		line += ": " + t.report.signalName(of.Signal)
		if of.FaultAddress != "" {
			line += " at address " + of.FaultAddress
		}
	}
	t.printf("%s\n", t.head(line))
	for _, p := range of.Problems {
		t.printf("%s %s\n", t.warn("problem:"), p)
	}
}

func (r *Report) signalName(number int) string {
	if name := target.SignalName(r.machine, number); name != "" {
		return fmt.Sprintf("signal %d (%s)", number, name)
	}
	return fmt.Sprintf("signal %d", number)
}

// group is threads whose stacks are equal.
type group struct {
	threads    []*Thread
	hasCrashed bool
}

// fold puts the crashed threads first and threads with equal stacks together,
// in the order of the first of them.
func fold(threads []Thread, never bool) []*group {
	var groups []*group
	seen := map[string]*group{}
	for i := range threads {
		t := &threads[i]
		key := ""
		if !never {
			key = stackKey(t)
			if g := seen[key]; g != nil {
				g.threads = append(g.threads, t)
				continue
			}
		}
		g := &group{threads: []*Thread{t}, hasCrashed: t.Crashed}
		groups = append(groups, g)
		seen[key] = g
	}
	sort.SliceStable(groups, func(i, j int) bool { return groups[i].hasCrashed && !groups[j].hasCrashed })
	return groups
}

// stackKey is equal for stacks that print the same.
func stackKey(t *Thread) string {
	var b strings.Builder
	if t.Crashed {
		// A crash of a CPU thread is one of its own; many waves may have one.
		b.WriteString("crashed " + strconv.Itoa(t.Signal) + "\n")
		if t.Wave == nil {
			b.WriteString(t.ID)
		}
	}
	if s := t.Stop; s != nil {
		// Equal waves access each its own address.
		b.WriteString(s.name() + s.precision() + "\n")
	}
	for i := range t.Frames {
		f := &t.Frames[i]
		b.WriteString(f.PC)
		b.WriteString(f.FoundBy)
		b.WriteString(f.Function)
		if len(f.Registers) > 0 {
			// Registers make a stack its own.
			names := slices.Sorted(maps.Keys(f.Registers))
			for _, name := range names {
				b.WriteString(name + f.Registers[name])
			}
			b.WriteString(f.CFA)
		}
		for j := range f.Lanes {
			l := &f.Lanes[j]
			b.WriteString(" " + l.Lanes + l.State + l.PC)
		}
		b.WriteByte('\n')
	}
	for _, l := range t.Launches {
		b.WriteString(l.Thread + " " + l.Kind + " " + l.Evidence + " " + l.Problem)
		if l.Frame != nil {
			b.WriteString(strconv.Itoa(*l.Frame))
		}
		b.WriteByte('\n')
	}
	b.WriteString(t.Stopped.Reason)
	if !t.isWhole() {
		b.WriteString(t.Stopped.Detail)
	}
	return b.String()
}

// maxListed is how many threads of a folded stack are named.
const maxListed = 16

func (t *text) group(g *group) {
	first := g.threads[0]
	var line string
	switch {
	case len(g.threads) == 1:
		line = "thread " + first.ID
		if first.Name != "" {
			line += " " + strconv.Quote(first.Name)
		}
		line += t.report.crash(first)
	default:
		ids := make([]string, 0, maxListed+1)
		for i, th := range g.threads {
			if i == maxListed {
				ids = append(ids, fmt.Sprintf("and %d more", len(g.threads)-i))
				break
			}
			ids = append(ids, th.ID)
		}
		line = fmt.Sprintf("%d threads%s: %s", len(g.threads), t.report.crash(first), strings.Join(ids, " "))
	}
	t.printf("\n%s\n", t.head(line))
	t.identity(g.threads)
	t.stop(g.threads)
	width := len(strconv.Itoa(len(first.Frames)))
	next := 0
	for i := 0; ; i++ {
		end := len(first.Frames)
		for _, l := range first.Launches[i:] {
			if l.Frame != nil {
				end = *l.Frame
				break
			}
		}
		for ; next < end; next++ {
			t.frame(&first.Frames[next], width)
		}
		if s := first.Stopped; first.StoppedIn == i && !first.isWhole() {
			t.printf("  %s %s: %s\n", t.warn("stopped:"), s.Reason, s.Detail)
		}
		if i == len(first.Launches) {
			return
		}
		t.launch(first.Launches[i])
	}
}

// crash says that a thread crashed; of a wave, which may have another reason than
// its process, also how.
func (r *Report) crash(t *Thread) string {
	switch {
	case !t.Crashed:
		return ""
	case t.Wave != nil && t.Signal != 0:
		return ", crashed by " + r.signalName(t.Signal)
	}
	return ", crashed"
}

// stop says why threads stopped, which is one reason for all of them.
func (t *text) stop(threads []*Thread) {
	s := threads[0].Stop
	if s == nil {
		return
	}
	if th := threads[0]; th.Wave == nil && th.Crashed && s.precision() == "" && s.Address == t.report.Target.FaultAddress {
		if reason, ok := target.StopOfSignal(t.report.machine, th.Signal); ok && reason.Name == s.Reason {
			return // the target's signal says as much
		}
	}
	line := "stopped by " + s.name()
	first, last, n := "", "", 0
	seen := map[string]bool{}
	for _, th := range threads {
		a := th.Stop.Address
		if a == "" || seen[a] {
			continue
		}
		seen[a] = true
		if n++; n == 1 || parse(a) < parse(first) {
			first = a
		}
		if n == 1 || parse(a) > parse(last) {
			last = a
		}
	}
	switch {
	case n == 1:
		line += " at address " + first
	case n > 1:
		line += fmt.Sprintf(" at %d addresses from %s to %s", n, first, last)
	}
	t.printf("  %s\n", t.warn(line+s.precision()))
}

// name is what stopped a thread, as the text says it.
func (s *Stop) name() string {
	name := strings.ReplaceAll(s.Reason, "-", " ")
	if s.TrapID != nil {
		name += " " + strconv.FormatUint(uint64(*s.TrapID), 10)
	}
	return name
}

// precision says that the PC is not where a thread stopped.
func (s *Stop) precision() string {
	if s.PCExact != nil && !*s.PCExact {
		return ", PC not exact"
	}
	return ""
}

// launch says that the frames of a launcher follow, or why there are none.
func (t *text) launch(l *Launch) {
	switch {
	case l.Problem != "":
		t.printf("  %s\n", t.faint("launched by thread "+l.Thread+", whose stack is not known: "+l.Problem))
	case l.Frame == nil: // only the process is known
	case l.Evidence == "recorded":
		t.printf("  %s\n", t.faint("launched by thread "+l.Thread+", from"))
	default:
		t.printf("  %s\n", t.faint("launched by thread "+l.Thread+", which waits in"))
	}
}

// identity says which wave a thread is and what launched it: of several threads,
// what they have in common.
func (t *text) identity(threads []*Thread) {
	parts := identity(threads[0])
	for _, th := range threads[1:] {
		if len(parts) == 0 {
			return
		}
		other := identity(th)
		parts = slices.DeleteFunc(parts, func(p string) bool { return !slices.Contains(other, p) })
	}
	if len(parts) > 0 {
		t.printf("  %s\n", t.faint(strings.Join(parts, ", ")))
	}
}

func identity(th *Thread) (parts []string) {
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+" "+value)
		}
	}
	if w := th.Wave; w != nil {
		add("kernel", w.Kernel)
		add("agent", w.Agent)
		add("queue", w.Queue)
		add("dispatch", w.Dispatch)
		if g := w.Group; g != nil {
			add("group", fmt.Sprintf("(%d,%d,%d)", g[0], g[1], g[2]))
		}
		if n := w.InGroup; n != nil {
			add("wave", strconv.FormatUint(uint64(*n), 10))
			if th.LaneCount > 1 {
				add("lane 0 is work-item", strconv.FormatUint(uint64(*n)*uint64(th.LaneCount), 10))
			}
		}
	}
	if l := th.LaunchedBy; l != nil && l.Frame == nil && l.Problem == "" {
		kind := ""
		if l.Kind != "" {
			kind = l.Kind + ", "
		}
		add("launched by thread", fmt.Sprintf("%s (%s%s)", l.Thread, kind, l.Evidence))
	}
	return parts
}

func (t *text) frame(f *Frame, width int) {
	t.printf("  #%-*d ", width, f.Index)
	if f.Inlined {
		t.printf("%s", t.faint(fmt.Sprintf("%-18s ", "inlined")))
	} else {
		t.printf("%-18s ", fmt.Sprintf("0x%016x", parse(f.PC)))
	}
	switch {
	case f.Function == "":
		t.printf("%s", t.function("??"))
	case f.Inlined || f.FunctionOffset == "":
		t.printf("%s", t.function(f.Function))
	case strings.HasPrefix(f.FunctionOffset, "-"):
		t.printf("%s%s", t.function(f.Function), f.FunctionOffset)
	default:
		t.printf("%s+%s", t.function(f.Function), f.FunctionOffset)
	}
	if f.Line > 0 {
		t.printf(" %s", t.place(position(f.File, f.Line, f.Column)))
	} else if f.Module != nil {
		if m := t.module(*f.Module); m != nil {
			t.printf(" %s", t.faint("in "+path.Base(m.label())))
			if f.Function == "" {
				t.printf("%s", t.faint("+"+f.ModuleOffset))
			}
		}
	}
	if f.SignalFrame {
		t.printf(" %s", t.head("<signal handler called>"))
	}
	if f.PCExact != nil && !*f.PCExact && !f.Inlined {
		t.printf(" %s", t.warn("(PC not exact)"))
	}
	switch {
	case f.Inlined:
	case engine.FoundBy(f.FoundBy).IsGuess():
		t.printf(" %s", t.warn("(a guess, by "+f.FoundBy+")"))
	case f.RestsOnGuess:
		t.printf(" %s", t.warn("(rests on a guess)"))
	}
	t.scopeFrom(f.ScopeFrom)
	t.printf("\n")
	t.lanes(f, width)
	t.registers(f)
}

// lanes says what the lanes of a frame do. Those that execute are where the frame
// is, so their place is not said again.
func (t *text) lanes(f *Frame, width int) {
	longest := 0
	for i := range f.Lanes {
		longest = max(longest, len(f.Lanes[i].Lanes))
	}
	for i := range f.Lanes {
		l := &f.Lanes[i]
		if t.hasOneLane && l.State == "active" {
			continue
		}
		t.printf("   %*s %s %-*s %s", width, "", t.faint("lanes"), longest, l.Lanes, laneStates[l.State])
		if l.State != "active" {
			t.lanePlace(l)
		}
		t.printf("\n")
	}
}

// laneStates are the states as the text says them.
var laneStates = map[string]string{
	"active": "active", "inactive": "inactive", "not-on-entry": "not active on entry", "unknown": "unknown",
}

// lanePlace says where lanes are, where that is described.
func (t *text) lanePlace(l *Lanes) {
	if l.PC == "" {
		return
	}
	t.printf(" at %s", l.PC)
	if len(l.Frames) == 0 {
		t.printf(" %s", t.function("??"))
	}
	for i := range l.Frames {
		f := &l.Frames[i]
		if i > 0 {
			t.printf(", in")
		}
		name := f.Function
		if name == "" {
			name = "??"
		}
		t.printf(" %s", t.function(name))
		if f.Line > 0 {
			t.printf(" %s", t.place(position(f.File, f.Line, f.Column)))
		}
		t.scopeFrom(f.ScopeFrom)
	}
}

// scopeFrom marks a frame of a chain that is a guess.
func (t *text) scopeFrom(from string) {
	if from == fromSourceModule {
		t.printf(" %s", t.warn("(a guess, by source module)"))
	}
}

// registers writes a frame's registers in columns, in the order of their
// numbers.
func (t *text) registers(f *Frame) {
	names, digits := 3, 0
	for _, r := range f.Listed {
		names, digits = max(names, len(r.Name)), max(digits, int(r.Bits+3)/4)
	}
	for i, r := range f.Listed {
		if i%4 == 0 {
			t.printf("      ")
		}
		value := fmt.Sprintf("0x%0*x", int(r.Bits+3)/4, r.Value)
		last := i%4 == 3 || i == len(f.Listed)-1
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

func (t *text) module(id int) *Module {
	for i := range t.report.Modules {
		if t.report.Modules[i].ID == id {
			return &t.report.Modules[i]
		}
	}
	return nil
}

// modules lists the modules: those about which there is something to say, or
// all.
func (t *text) modules(all bool) {
	headed := false
	for i := range t.report.Modules {
		m := &t.report.Modules[i]
		if m.Problem == "" && !all {
			continue
		}
		if !headed {
			t.printf("\n%s\n", t.head("modules"))
			headed = true
		}
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
}
