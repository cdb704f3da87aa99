package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
)

// Goroutine is what Go's runtime knows of a goroutine.
type Goroutine struct {
	ID         uint64     `json:"id"`
	State      string     `json:"state"`
	WaitReason string     `json:"wait_reason,omitempty"`
	WaitSince  uint64     `json:"wait_since,omitempty"` // nanoseconds of the runtime's clock
	Thread     string     `json:"thread,omitempty"`     // that executes it
	System     bool       `json:"system,omitempty"`     // the runtime made it for itself
	Locked     bool       `json:"locked,omitempty"`     // no other thread may execute it
	Scanned    bool       `json:"scanned,omitempty"`    // the garbage collector is scanning its stack
	Parent     uint64     `json:"parent,omitempty"`     // the goroutine that created it
	CreatedBy  *CodePlace `json:"created_by,omitempty"` // the go statement
	StartedAt  *CodePlace `json:"started_at,omitempty"` // the function that it calls
}

// CodePlace is a place in the code.
type CodePlace struct {
	PC       string `json:"pc"`
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
}

// goroutine writes the goroutine that a thread is, or which one it executes.
func (j *stackJSON) goroutine(th *target.Thread) {
	if e := th.Executes; e != nil {
		j.textMember("executes", e.ID)
	}
	g := th.Goroutine
	if g == nil {
		return
	}
	j.member("goroutine")
	j.open("{")
	j.uintMember("id", g.ID)
	j.member("state")
	j.text(g.State)
	j.textMember("wait_reason", g.WaitReason)
	if g.WaitSince != 0 {
		j.uintMember("wait_since", g.WaitSince)
	}
	j.textMember("thread", g.Thread)
	j.trueMember("system", g.IsSystem)
	j.trueMember("locked", g.IsLocked)
	j.trueMember("scanned", g.IsScanned)
	if g.Parent != 0 {
		j.uintMember("parent", g.Parent)
	}
	j.codePlace("created_by", g.CreatedBy)
	j.codePlace("started_at", g.StartedAt)
	j.close("}")
}

func (j *stackJSON) uintMember(name string, n uint64) {
	j.member(name)
	_, _ = j.Write(strconv.AppendUint(j.AvailableBuffer(), n, 10))
}

func (j *stackJSON) codePlace(name string, at *target.CodePlace) {
	if at == nil {
		return
	}
	j.member(name)
	j.open("{")
	j.hexMember("pc", at.PC)
	j.textMember("function", at.Function)
	j.textMember("file", at.File)
	if at.Line != 0 {
		j.numberMember("line", at.Line)
	}
	j.close("}")
}

// goroutineOf is the goroutine that a thread is, or that it executes; nil where there
// is none.
func goroutineOf(th *target.Thread) *target.Goroutine {
	if th.Goroutine == nil && th.Executes != nil {
		th = th.Executes
	}
	return th.Goroutine
}

// isEqualGoroutine says whether the text says the same of the goroutines of two
// threads, but for what is each one's own.
func isEqualGoroutine(a, b *target.Thread) bool {
	x, y := goroutineOf(a), goroutineOf(b)
	if x == nil || y == nil || x == y {
		return x == y
	}
	return *x.GoroutineState == *y.GoroutineState && x.CreatedBy == y.CreatedBy && x.IsSystem == y.IsSystem
}

// describe is what a goroutine does, as Go's own tracebacks say it.
func describe(g *target.Goroutine) string {
	text := g.State
	if g.WaitReason != "" {
		text = g.WaitReason
	}
	if g.IsScanned {
		text += " (scan)"
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
func executor(th *target.Thread) string {
	if g := th.Goroutine; g != nil {
		return g.Thread
	}
	return th.ID
}

// goroutines names the goroutines of a group, and the threads that execute them; ""
// where there are none.
func (t *text) goroutines(g *group) string {
	var threads, list []string
	state := ""
	for i := range g.threads {
		th := g.threads[i].Thread
		switch x := th.Goroutine; {
		case x == nil:
			threads = append(threads, th.ID)
		default:
			state = " [" + describe(x) + "]"
			list = append(list, strings.TrimPrefix(th.ID, "goroutine "))
		}
	}
	if len(list) == 0 {
		return ""
	}
	line := "goroutine " + list[0] + state
	if len(list) > 1 {
		line = fmt.Sprintf("%d goroutines%s: %s", len(list), state, strings.Join(firstOf(list), " "))
	}
	switch {
	case len(threads) == 1:
		line += ", thread " + threads[0]
		i := slices.IndexFunc(g.threads, func(m member) bool { return m.Goroutine == nil })
		if name := g.threads[i].Name; name != "" {
			line += " " + strconv.Quote(name)
		}
	case len(threads) > 1:
		line += fmt.Sprintf(", %d threads: %s", len(threads), strings.Join(firstOf(threads), " "))
	}
	return line + t.about.crash(g.first.Thread)
}

// firstOf are the first names of a list, and how many more there are.
func firstOf(list []string) []string {
	if len(list) <= maxListed {
		return list
	}
	return append(slices.Clone(list[:maxListed]), fmt.Sprintf("and %d more", len(list)-maxListed))
}

// creator says which go statement created the goroutines of a group, and by which
// goroutine, where that is one.
func (t *text) creator(g *group) {
	first := goroutineOf(g.first.Thread)
	if first == nil || first.CreatedBy == nil {
		return
	}
	at := first.CreatedBy
	line := "created by " + at.Function
	if at.Function == "" {
		line = "created by " + address(at.PC)
	}
	isOne := first.Parent != 0
	for i := range g.threads {
		x := goroutineOf(g.threads[i].Thread)
		isOne = isOne && x != nil && x.Parent == first.Parent
	}
	if isOne {
		line += " in goroutine " + strconv.FormatUint(first.Parent, 10)
	}
	if at.Line > 0 {
		line += " at " + position(at.File, at.Line, 0)
	}
	t.printf("  %s\n", t.faint(line))
}
