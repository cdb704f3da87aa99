// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/engine/trace"
)

// Goroutine is a goroutine, or another thread that a language runtime schedules, as the runtime
// describes it.
type Goroutine struct {
	ID         uint64     `json:"id"`
	State      string     `json:"state"`
	WaitReason string     `json:"wait_reason,omitempty"`
	WaitSince  uint64     `json:"wait_since,omitempty"`    // nanoseconds of the runtime's clock
	WaitLeast  uint64     `json:"wait_at_least,omitempty"` // nanoseconds that it waited at least
	Thread     string     `json:"thread,omitempty"`        // to which the runtime assigned it
	System     bool       `json:"system,omitempty"`        // it belongs to the runtime
	Locked     bool       `json:"locked,omitempty"`        // no other thread may execute it
	Scanned    bool       `json:"scanned,omitempty"`       // the garbage collector is scanning its stack
	Parent     uint64     `json:"parent,omitempty"`        // the goroutine that created it
	CreatedBy  *CodePlace `json:"created_by,omitempty"`    // the go statement
	StartedAt  *CodePlace `json:"started_at,omitempty"`    // the function that it calls
	// Runtime schedules it, Kind is its word for such a thread, and WaitsFor are the threads whose
	// end it waits for: of other threads than goroutines.
	Runtime  string   `json:"runtime,omitempty"`
	Kind     string   `json:"kind,omitempty"`
	WaitsFor []uint64 `json:"waits_for,omitempty"`
}

// CodePlace is a place in the code.
type CodePlace struct {
	PC       string `json:"pc"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// goroutine writes the goroutine that a thread is, or which one it executes.
func (j *stackJSON) goroutine(th *trace.Thread) {
	if e := th.Executes; e != nil {
		j.textMember("executes", e.ID)
	}
	g := th.Goroutine
	if g == nil {
		return
	}
	if g.Word() == "goroutine" {
		j.member("goroutine")
		j.open("{")
	} else {
		j.member("managed_thread")
		j.open("{")
		j.stringMember("runtime", g.Scheduler.Runtime)
		j.stringMember("kind", g.Scheduler.Kind)
	}
	j.uintMember("id", g.ID)
	j.stringMember("state", g.State)
	j.textMember("wait_reason", g.WaitReason)
	if g.WaitSince != 0 {
		j.uintMember("wait_since", g.WaitSince)
	}
	if g.WaitAtLeast != 0 {
		j.uintMember("wait_at_least", g.WaitAtLeast)
	}
	j.textMember("thread", g.Thread)
	j.trueMember("system", g.IsSystem)
	j.trueMember("locked", g.IsLocked)
	j.trueMember("scanned", g.IsScanned)
	if g.Parent != 0 {
		j.uintMember("parent", g.Parent)
	}
	if len(g.WaitsFor) > 0 {
		j.member("waits_for")
		j.open("[")
		for _, id := range g.WaitsFor {
			j.next()
			j.put(strconv.FormatUint(id, 10))
		}
		j.close("]")
	}
	j.codePlace("created_by", g.CreatedBy)
	j.codePlace("started_at", g.StartedAt)
	j.close("}")
}

func (j *indented) uintMember(name string, n uint64) {
	j.member(name)
	j.put(strconv.FormatUint(n, 10))
}

func (j *stackJSON) codePlace(name string, place *trace.CodePlace) {
	if place == nil {
		return
	}
	j.member(name)
	j.open("{")
	j.hexMember("pc", place.PC)
	j.textMember("function", place.Function)
	j.textMember("file", place.File)
	if place.Line != 0 {
		j.numberMember("line", place.Line)
	}
	j.close("}")
}

// goroutineOf is the goroutine that a thread is, or that it executes; nil where there is
// none.
func goroutineOf(th *trace.Thread) *trace.Goroutine {
	if th.Goroutine == nil && th.Executes != nil {
		th = th.Executes
	}
	return th.Goroutine
}

// isEqualGoroutine reports whether the goroutines of two threads have the same text, except
// for their own IDs.
func isEqualGoroutine(a, b *trace.Thread) bool {
	x, y := goroutineOf(a), goroutineOf(b)
	if x == nil || y == nil || x == y {
		return x == y
	}
	return x.Word() == y.Word() && *x.GoroutineState == *y.GoroutineState && x.CreatedBy == y.CreatedBy && x.IsSystem == y.IsSystem
}

// describe is the state of a goroutine, and its least wait in minutes, in the words of Go's
// own tracebacks.
func describe(g *trace.Goroutine, minutes uint64) string {
	text := g.State
	if g.WaitReason != "" {
		text = g.WaitReason
	}
	if g.IsScanned {
		text += " (scan)"
	}
	switch {
	case minutes == 1:
		text += ", at least 1 minute"
	case minutes > 1:
		text += fmt.Sprintf(", at least %d minutes", minutes)
	}
	if g.IsLocked {
		text += ", locked to thread"
	}
	if g.IsSystem {
		text += ", system"
	}
	return text
}

// executor is the ID of the operating system's thread that a thread is, or that
// executes it.
func executor(th *trace.Thread) string {
	if g := th.Goroutine; g != nil {
		return g.Thread
	}
	return th.ID
}

// goroutines names the goroutines of a group, and the threads that execute them; ""
// where there are none.
func (t *text) goroutines(g *group) string {
	var threads, list idList
	var first *trace.Goroutine
	var thread *trace.Thread
	minutes := ^uint64(0)
	for i := range g.threads {
		th := g.threads[i].Thread
		if th.Goroutine == nil {
			thread = th
			threads.add(th.ID)
			continue
		}
		first = th.Goroutine
		minutes = min(minutes, first.WaitAtLeast/uint64(time.Minute))
		list.add(strings.TrimPrefix(th.ID, first.Word()+" "))
	}
	if first == nil {
		return ""
	}
	state := " [" + describe(first, minutes) + "]"
	line := first.Word() + " " + list.String() + ownName(first, g) + state
	if list.count > 1 {
		line = fmt.Sprintf("%d %ss%s: %s", list.count, first.Word(), state, list.String())
	}
	switch {
	case threads.count == 1 && thread.Name != "":
		line += ", thread " + thread.ID + " " + strconv.Quote(thread.Name)
	case threads.count == 1:
		line += ", thread " + thread.ID
	case threads.count > 1:
		line += fmt.Sprintf(", %d threads: %s", threads.count, threads.String())
	}
	return line + runtimeState(g.first, g.count > 1) + t.about.crash(g.first.Thread)
}

// ownName is the name of the thread of a group that a runtime schedules, in quotes with a blank before
// them; "" for goroutines, which have none.
func ownName(first *trace.Goroutine, g *group) string {
	for i := range g.threads {
		if th := g.threads[i].Thread; th.Goroutine == first && th.Goroutine.Scheduler != nil && th.Name != "" {
			return " " + strconv.Quote(th.Name)
		}
	}
	return ""
}

// maxPendingIDs is how many threads whose end others wait for the text names.
const maxPendingIDs = 8

// pending writes the threads whose end the threads of a group wait for, where all wait for the same
// and the reason of their wait does not name it.
func (t *text) pending(g *group) {
	first := goroutineOf(g.first.Thread)
	if first == nil || len(first.WaitsFor) == 0 {
		return
	}
	for i := range g.threads {
		if x := goroutineOf(g.threads[i].Thread); x == nil || !slices.Equal(x.WaitsFor, first.WaitsFor) {
			return
		}
	}
	var ids []string
	for _, number := range first.WaitsFor[:min(len(first.WaitsFor), maxPendingIDs)] {
		ids = append(ids, strconv.FormatUint(number, 10))
	}
	if len(ids) == 1 && strings.HasSuffix(first.WaitReason, first.Word()+" "+ids[0]) {
		return
	}
	if more := len(first.WaitsFor) - maxPendingIDs; more > 0 {
		ids = append(ids, fmt.Sprintf("and %d more", more))
	}
	word := first.Word()
	if len(ids) > 1 {
		word += "s"
	}
	t.printf("  %s\n", t.faint("awaits "+word+" "+strings.Join(ids, " ")))
}

// idList is the IDs of threads in their order, those that follow each other in ranges.
type idList struct {
	ranges  []idRange
	count   int
	isShort bool // ranges has at most one more than short writes
}

// idRange is IDs that differ only in the number at the end, which goes up by one.
type idRange struct {
	prefix       string
	first, count uint64
	text         string // the first one
}

func (l *idList) add(id string) {
	l.count++
	if l.isShort && len(l.ranges) > maxRanges {
		return
	}
	prefix := strings.TrimRight(id, "0123456789")
	number, err := strconv.ParseUint(id[len(prefix):], 10, 64)
	isNumbered := err == nil && strconv.FormatUint(number, 10) == id[len(prefix):]
	if n := len(l.ranges); n > 0 && isNumbered {
		if r := &l.ranges[n-1]; r.count > 0 && r.prefix == prefix && number > r.first && r.first+r.count == number {
			r.count++
			return
		}
	}
	r := idRange{prefix: prefix, text: id}
	if isNumbered {
		r.first, r.count = number, 1
	}
	l.ranges = append(l.ranges, r)
}

// maxRanges bounds the ranges of a list of threads in the text: of ten thousand waves on many
// processors hardly any two have IDs that follow each other.
const maxRanges = 32

// short is String with at most maxRanges ranges, and the number of the other IDs.
func (l *idList) short() string {
	if len(l.ranges) <= maxRanges {
		return l.String()
	}
	first := idList{ranges: l.ranges[:maxRanges]}
	shown := 0
	for i := range first.ranges {
		shown += int(max(first.ranges[i].count, 1)) //nolint:gosec // at most count of l
	}
	return fmt.Sprintf("%s and %d more", first.String(), l.count-shown)
}

// String returns all IDs: "101-164 170", and two consecutive ones one by one.
func (l *idList) String() string {
	var b strings.Builder
	for i := range l.ranges {
		r := &l.ranges[i]
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(r.text)
		switch last := r.prefix + strconv.FormatUint(r.first+r.count-1, 10); {
		case r.count == 2:
			b.WriteString(" " + last)
		case r.count > 2:
			b.WriteString("-" + last)
		}
	}
	return b.String()
}

// creator writes the go statement that created the goroutines of a group, and its goroutine,
// where all have the same.
func (t *text) creator(g *group) {
	first := goroutineOf(g.first.Thread)
	if first == nil || first.CreatedBy == nil {
		return
	}
	place := first.CreatedBy
	line := "created by " + t.names.of(&trace.Symbol{Function: place.Function, File: place.File})
	if place.Function == "" {
		line = "created by " + address(place.PC)
	}
	isOne := first.Parent != 0
	for i := range g.threads {
		x := goroutineOf(g.threads[i].Thread)
		isOne = isOne && x != nil && x.Parent == first.Parent
	}
	if isOne {
		line += " in " + first.Word() + " " + strconv.FormatUint(first.Parent, 10)
	}
	if place.Line > 0 {
		line += " at " + position(place.File, place.Line, 0)
	}
	t.printf("  %s\n", t.faint(line))
}
