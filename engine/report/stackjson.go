// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/internal/funcname"
	"github.com/unwindd/unwindd/engine/internal/value"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/escape"
	"github.com/unwindd/unwindd/locexpr"
	"github.com/unwindd/unwindd/sdk"
)

// maxDeferred bounds the JSON of threads that is deferred until the target's is known.
const maxDeferred = 4 << 20

// WriteJSON writes a Report, as encoding/json writes it with an indent of one blank, while
// the stacks come. The facts about the target and its modules are complete when all were
// walked. Most targets' stacks are deferred until then, and stand at the end; where there is
// more, the facts about the target stand behind them.
func (s *Stacks) WriteJSON(w io.Writer) error {
	version := fmt.Sprintf(" \"version\": %d,\n", StackVersion)
	return writeDeferred(w, version, func(w io.Writer) error {
		j := &stackJSON{indented: indented{output: newOutput(w)}, space: s.space, hasLocals: s.hasLocals, source: s.source, codes: s.code, signature: s.Signature, caught: s.FirstCrash, start: s.start}
		j.depth = 1
		j.open("[")
		for stack := range s.withCode() {
			j.thread(stack)
			if err := j.check(); err != nil {
				break // Flush returns it
			}
		}
		j.close("]")
		return j.Flush()
	}, func() (head, tail string, err error) {
		if head, err = headJSON(s.head(withDebugInfo)); err != nil {
			return "", "", err
		}
		tail, err = globalsJSON(s.Globals, s.space)
		return head, tail, err
	})
}

// writeDeferred writes an object with a list of threads, which are written while they are
// walked, and with members that are known after all walks: the members of head stand before
// the threads where these can be deferred, and the members of tail behind them. The members
// of first come first in either case.
func writeDeferred(w io.Writer, first string, threads func(w io.Writer) error, rest func() (head, tail string, err error)) error {
	deferred := &deferredWriter{w: w, first: first}
	if err := threads(deferred); err != nil {
		return err
	}
	head, tail, err := rest()
	if err != nil {
		return err
	}
	if deferred.isWritten {
		_, err = io.WriteString(w, ",\n"+head+tail+"\n}\n")
		return err
	}
	for _, part := range []string{"{\n" + first, head, ",\n" + threadsMember, deferred.b.String(), tail, "\n}\n"} {
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

const threadsMember = " \"threads\": "

// headJSON is the members of a Report before its threads.
func headJSON(h Head) (string, error) {
	b, err := escape.AppendJSON(nil, h, " ")
	return strings.TrimSuffix(strings.TrimPrefix(string(b), "{\n"), "\n}\n"), err
}

// deferredWriter keeps the list of threads until it is too large.
type deferredWriter struct {
	w         io.Writer
	first     string // members before all others
	b         bytes.Buffer
	isWritten bool
}

func (h *deferredWriter) Write(p []byte) (int, error) {
	if !h.isWritten && h.b.Len()+len(p) <= maxDeferred {
		return h.b.Write(p)
	}
	if !h.isWritten {
		h.isWritten = true
		if _, err := io.WriteString(h.w, "{\n"+h.first+threadsMember); err != nil {
			return 0, err
		}
		if _, err := h.w.Write(h.b.Bytes()); err != nil {
			return 0, err
		}
		h.b = bytes.Buffer{}
	}
	return h.w.Write(p)
}

// indented writes JSON as encoding/json does with an indent of one blank.
type indented struct {
	output
	depth   int
	isBegun bool // the object or list has a member
}

// blanks are a line break and the deepest indent that there is.
var blanks = "\n" + strings.Repeat(" ", 32+2*value.MaxNesting)

func (j *indented) open(bracket string) {
	j.put(bracket)
	j.depth++
	j.isBegun = false
}

func (j *indented) close(bracket string) {
	j.depth--
	if j.isBegun {
		j.put(blanks[:1+j.depth])
	}
	j.put(bracket)
	j.isBegun = true
}

// next begins an element of a list.
func (j *indented) next() {
	if j.isBegun {
		j.put(",")
	}
	j.isBegun = true
	j.put(blanks[:1+j.depth])
}

// member begins a member, whose name is the program's own.
func (j *indented) member(name string) {
	j.next()
	j.put(`"`, name, `": `)
}

func (j *indented) text(s string) {
	if isPlainJSON(s) {
		j.put(`"`, s, `"`)
		return
	}
	j.put(quoted(s))
}

func (j *indented) stringMember(name, value string) {
	j.member(name)
	j.text(value)
}

// textMember writes a member, unless it is "".
func (j *indented) textMember(name, value string) {
	if value != "" {
		j.stringMember(name, value)
	}
}

// list writes a list of objects.
func (j *indented) list(name string, count int, one func(i int)) {
	j.member(name)
	j.open("[")
	for i := range count {
		j.next()
		j.open("{")
		one(i)
		j.close("}")
	}
	j.close("]")
}

func (j *indented) textsMember(name string, list []string) {
	j.member(name)
	j.open("[")
	for _, s := range list {
		j.next()
		j.text(s)
	}
	j.close("]")
}

// object writes an object.
func (j *indented) object(name string, members func()) {
	j.member(name)
	j.open("{")
	members()
	j.close("}")
}

func (j *indented) hexMember(name string, value uint64) {
	j.member(name)
	j.put(`"0x`)
	_, _ = j.Write(strconv.AppendUint(j.AvailableBuffer(), value, 16))
	j.put(`"`)
}

func (j *indented) number(n int) {
	_, _ = j.Write(strconv.AppendInt(j.AvailableBuffer(), int64(n), 10))
}

func (j *indented) numberMember(name string, n int) {
	j.member(name)
	j.number(n)
}

func (j *indented) boolMember(name string, value bool) {
	j.member(name)
	if value {
		j.put("true")
	} else {
		j.put("false")
	}
}

// trueMember writes a member, unless it is false.
func (j *indented) trueMember(name string, value bool) {
	if value {
		j.boolMember(name, true)
	}
}

// stackJSON writes the threads of a Report.
type stackJSON struct {
	indented
	space     spaceNames
	hasLocals bool // variables were requested
	source    sourceOf
	codes     *frameCodes
	signature func(*trace.Thread) *trace.Signature // nil: none has one
	caught    *trace.CaughtCrash                   // see Stacks.FirstCrash
	start     functionStart
	index     int // of the frame that is written next

	leftOut []LeftOut // of the thread that is written
	cycles  []Cycle   // likewise
}

// thread writes a stack as a Thread.
func (j *stackJSON) thread(s *trace.Stack) {
	j.next()
	j.open("{")
	th := s.Thread
	j.stringMember("id", th.ID)
	j.textMember("name", th.Name)
	j.textMember("arch", th.Arch)
	j.textMember("processor", th.Processor)
	j.boolMember("crashed", th.Crashed)
	j.trueMember("running", th.IsRunning)
	j.textMember("state", th.State)
	j.stop(th.Stop)
	j.wave(th.Wave)
	j.launch(s)
	j.wait(s.Wait)
	j.goroutine(th)
	j.runtimes(s.Runtimes)
	j.signatureOf(th)
	if th.Crashed {
		if own := ownIndex(s, readStack(s, j.caught)); own >= 0 {
			j.numberMember("first_own_frame", own)
		}
	}
	j.member("frames")
	j.open("[")
	j.index, j.leftOut, j.cycles = 0, j.leftOut[:0], j.cycles[:0]
	j.chain(th, th.ID, s.Frames, &s.Gap)
	for i := range s.Launchers {
		l := &s.Launchers[i]
		j.chain(l.Thread, l.Launch.Thread, l.Frames, &l.Gap)
	}
	j.close("]")
	j.gaps()
	j.cyclesMember()
	j.object("stopped", func() {
		e := endingOf(s)
		j.stringMember("reason", string(e.Reason))
		j.textMember("detail", e.detail())
	})
	j.close("}")
}

// chain writes the frames of a thread, and records how many of them were omitted and which
// are repeated.
func (j *stackJSON) chain(thread *trace.Thread, id string, frames []trace.Frame, gap *trace.Gap) {
	j.framesOf(thread, id, frames)
	if gap.LeftOut == 0 {
		return
	}
	j.leftOut = append(j.leftOut, LeftOut{Index: j.index, Frames: gap.LeftOut})
	j.index += gap.LeftOut + gap.LeftOutCalls
	j.framesOf(thread, id, gap.Outermost)
}

func (j *stackJSON) framesOf(thread *trace.Thread, id string, frames []trace.Frame) {
	parts := cyclesOf(frames)
	first := j.index
	for i := range parts {
		p := &parts[i]
		n := linesOf(frames, parts[i:i+1])
		if p.cycle != nil {
			j.cycles = append(j.cycles, Cycle{First: first, Last: first + n - 1, Frames: p.linesOfEach(frames), Times: p.times()})
		}
		first += n
	}
	for i := range frames {
		j.frame(thread, id, &frames[i])
	}
}

// gaps writes where frames were omitted.
func (j *stackJSON) gaps() {
	if len(j.leftOut) == 0 {
		return
	}
	j.list("left_out", len(j.leftOut), func(i int) {
		j.numberMember("index", j.leftOut[i].Index)
		j.numberMember("frames", j.leftOut[i].Frames)
	})
}

// cyclesMember writes the ranges of frames that belong to recursions.
func (j *stackJSON) cyclesMember() {
	if len(j.cycles) == 0 {
		return
	}
	j.list("cycles", len(j.cycles), func(i int) {
		c := &j.cycles[i]
		j.numberMember("first", c.First)
		j.numberMember("last", c.Last)
		if c.Frames > 0 {
			j.numberMember("frames", c.Frames)
		}
		j.numberMember("times", c.Times)
	})
}

func (j *stackJSON) stop(s *trace.Stop) {
	if s == nil {
		return
	}
	j.member("stop")
	j.open("{")
	j.stringMember("reason", s.Reason)
	if s.HasAddress {
		j.hexMember("address", s.Address)
	}
	if s.HasTrapID {
		j.numberMember("trap_id", int(s.TrapID))
	}
	if s.HasPCExact {
		j.boolMember("pc_exact", s.PCExact)
	}
	if len(s.Details) > 0 {
		j.textsMember("details", s.Details)
	}
	j.close("}")
}

func (j *stackJSON) wave(w *sdk.Wave) {
	if w == nil {
		return
	}
	j.member("wave")
	j.open("{")
	j.textMember("agent", w.Agent)
	j.textMember("queue", w.Queue)
	j.textMember("dispatch", w.Dispatch)
	j.textMember("kernel", w.Kernel)
	if w.HasGroup {
		j.coordinates("group", w.Group)
	}
	if w.HasInGroup {
		j.numberMember("in_group", int(w.InGroup))
	}
	if w.HasCluster {
		j.coordinates("cluster", w.Cluster)
	}
	j.close("}")
}

// coordinates writes a place in three dimensions.
func (j *stackJSON) coordinates(name string, place [3]uint32) {
	j.member(name)
	j.open("[")
	for _, n := range place {
		j.next()
		j.number(int(n))
	}
	j.close("]")
}

// launch writes the launcher of the thread, and the frame where the stack continues in it.
func (j *stackJSON) launch(s *trace.Stack) {
	l := s.LaunchedBy()
	if l == nil {
		return
	}
	j.member("launched_by")
	j.open("{")
	j.textMember("thread", l.Thread)
	j.textMember("kind", l.Kind)
	j.stringMember("evidence", l.Evidence)
	if len(s.Launchers) > 0 && len(s.Launchers[0].Frames) > 0 {
		j.numberMember("frame", countAll(s.Frames, &s.Gap))
	}
	j.close("}")
}

// wait writes what the thread waits for.
func (j *stackJSON) wait(w *trace.Wait) {
	if w == nil {
		return
	}
	j.object("waits_for", func() {
		j.stringMember("kind", w.Kind)
		if w.HasAddress {
			j.hexMember("address", w.Address)
		}
		j.textMember("name", w.Name)
		if w.Owner != nil {
			j.stringMember("owner", w.Owner.ID)
		}
		if w.Readers > 0 {
			j.numberMember("readers", w.Readers)
		}
		j.trueMember("timed", w.IsTimed)
		j.textMember("why", w.Why)
	})
}

// frame writes the calls inlined into a frame, innermost first, the frame itself, and its
// tail callers. thread is the thread as the target has it, and id its name.
func (j *stackJSON) frame(thread *trace.Thread, id string, f *trace.Frame) {
	space := j.space.ofCFA(thread, f)
	for i := range max(len(f.Symbols)-1, 0) {
		j.place(thread, id, space, f, i)
	}
	j.place(thread, id, space, f, max(len(f.Symbols)-1, 0))
	callers := f.TailCallers()
	for i := range callers {
		j.frame(thread, id, &callers[i])
	}
}

// place writes a function at a physical frame, by its index among the functions there.
func (j *stackJSON) place(thread *trace.Thread, id, space string, f *trace.Frame, level int) {
	s, isInlined := &trace.Symbol{}, level+1 < len(f.Symbols)
	if level < len(f.Symbols) {
		s = &f.Symbols[level]
	}
	j.next()
	j.open("{")
	j.numberMember("index", j.index)
	j.index++
	j.stringMember("thread", id)
	j.hexMember("pc", f.PC)
	if f.Imprecise {
		j.boolMember("pc_exact", false)
	}
	if f.HasCFA {
		j.hexMember("cfa", f.CFA)
		j.textMember("cfa_space", space)
	}
	j.stringMember("found_by", string(f.FoundBy))
	j.managed(f)
	j.trueMember("rests_on_guess", f.RestsOnGuess)
	if f.PassedOver > 0 {
		j.numberMember("passed_over", int(f.PassedOver))
	}
	if f.Module != nil {
		j.numberMember("module", f.Module.ID)
		j.hexMember("module_offset", f.ModuleOffset)
	}
	j.function(s)
	if start, ok := j.startOf(f, s); ok && !isInlined {
		j.textMember("function_offset", offset(f.ModuleOffset, start))
	}
	j.position(s)
	if s.Equals != 0 {
		j.numberMember("equal_functions", equalFunctions(s))
	}
	j.sourceLines(f, s)
	j.boolMember("inlined", isInlined)
	j.boolMember("signal_frame", f.SignalFrame && !isInlined)
	if !isInlined {
		j.code(thread, f)
		j.registers(f.Registers())
	}
	spaceName := func(space locexpr.AddressSpace) string { return j.space(thread, space) }
	j.locals(f, level, spaceName)
	j.member("lanes")
	j.open("[")
	if groups := f.Lanes(); !isInlined {
		for i := range groups {
			j.lanes(&groups[i], spaceName)
		}
	}
	j.close("]")
	j.close("}")
}

// startOf returns where the function of a physical frame begins. Of one without a name call frame information
// may tell.
func (j *stackJSON) startOf(f *trace.Frame, s *trace.Symbol) (start uint64, ok bool) {
	if s.HasStart || s.Function != "" || f.Module == nil || j.start == nil {
		return s.Start, s.HasStart
	}
	return j.start(f)
}

// managed writes the runtime of a frame, and that managed frames stand for it.
func (j *stackJSON) managed(f *trace.Frame) {
	if m := f.Managed(); m != nil {
		j.object("managed", func() {
			j.stringMember("runtime", m.Runtime)
			j.textMember("kind", string(m.Kind))
			j.trueMember("native", m.IsNative)
		})
	}
	j.trueMember("behind_managed", f.BehindManaged)
}

// function writes the names of a function.
func (j *stackJSON) function(s *trace.Symbol) {
	j.textMember("function", s.Function)
	if short := funcname.Of(s); short != s.Function {
		j.stringMember("short_name", short)
	}
	j.textMember("linkage_name", s.LinkageName)
}

// position writes the source position of a function.
func (j *stackJSON) position(s *trace.Symbol) {
	j.textMember("file", s.File)
	if s.Line != 0 {
		j.numberMember("line", s.Line)
	}
	if s.Column != 0 {
		j.numberMember("column", s.Column)
	}
	if s.IsReported {
		j.stringMember("name_from", nameFromReport)
	}
	line, scope := nameSources(s)
	j.textMember("line_from", line)
	j.textMember("scope_from", scope)
}

// registers writes registers in the order of their names.
func (j *stackJSON) registers(list []trace.RegisterValue) {
	if len(list) == 0 {
		return
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b trace.RegisterValue) int { return strings.Compare(a.Name, b.Name) })
	j.member("registers")
	j.open("{")
	for i, r := range list {
		if i+1 < len(list) && list[i+1].Name == r.Name {
			continue // of two with one name the last one
		}
		j.next()
		j.text(r.Name)
		j.put(`: "0x`)
		_, _ = j.Write(strconv.AppendUint(j.AvailableBuffer(), r.Value, 16))
		j.put(`"`)
	}
	j.close("}")
}

// lanes writes a group of lanes as Lanes. The variables of lanes that execute are the
// frame's; other lanes have theirs here.
func (j *stackJSON) lanes(g *trace.LaneGroup, space func(locexpr.AddressSpace) string) {
	j.next()
	j.open("{")
	j.stringMember("lanes", g.Lanes.String())
	j.stringMember("state", string(g.State))
	if g.HasPC {
		j.hexMember("pc", g.PC)
	}
	j.list("frames", len(g.Symbols), func(i int) {
		s := &g.Symbols[i]
		j.function(s)
		j.position(s)
		j.boolMember("inlined", i < len(g.Symbols)-1)
		if i < len(g.Locals) {
			j.member("locals")
			j.open("[")
			j.variables(g.Locals[i], space)
			j.close("]")
		}
	})
	j.close("}")
}
