// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/trace"
)

// RuntimeThread is a thread as a language runtime sees it, beside the frames of the language.
type RuntimeThread struct {
	Runtime   string            `json:"runtime"`
	Name      string            `json:"name,omitempty"`
	State     string            `json:"state,omitempty"` // in the runtime's words
	Locks     []RuntimeLock     `json:"locks,omitempty"`
	Exception *RuntimeException `json:"exception,omitempty"` // raised, and not handled yet
}

// RuntimeLock is a lock of a language that a thread holds or waits for.
type RuntimeLock struct {
	Address string `json:"address"`
	Name    string `json:"name,omitempty"`
	Waited  bool   `json:"waited,omitempty"` // the thread waits for it; else it holds it
	Holder  string `json:"holder,omitempty"` // the ID of the thread that holds a lock that is waited for
}

// RuntimeException is an exception of a language on its way to a handler.
type RuntimeException struct {
	Type string `json:"type"`
	Text string `json:"text,omitempty"`
	// Traceback are the functions that it was raised in and left, innermost first.
	Traceback []TracebackFrame `json:"traceback"`
}

// TracebackFrame is a function of a traceback, with the line in it.
type TracebackFrame struct {
	Function string `json:"function,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
}

// runtimes writes the thread of a stack as language runtimes see it, if they tell more than frames.
func (j *stackJSON) runtimes(list []trace.RuntimeThread) {
	if list = speaking(list); len(list) == 0 {
		return
	}
	j.list("runtimes", len(list), func(i int) {
		r := &list[i]
		j.stringMember("runtime", r.Runtime)
		j.textMember("name", r.Name)
		j.textMember("state", r.State)
		if len(r.Locks) > 0 {
			j.list("locks", len(r.Locks), func(k int) {
				l := &r.Locks[k]
				j.hexMember("address", l.Address)
				j.textMember("name", l.Name)
				j.trueMember("waited", l.IsWaited)
				if l.Holder != nil {
					j.stringMember("holder", l.Holder.ID)
				}
			})
		}
		j.exception(r.Exception)
	})
}

func (j *stackJSON) exception(x *trace.RuntimeException) {
	if x == nil {
		return
	}
	j.object("exception", func() {
		j.stringMember("type", x.Type)
		j.textMember("text", x.Text)
		j.list("traceback", len(x.Traceback), func(i int) {
			s := &x.Traceback[i]
			j.textMember("function", s.Function)
			j.textMember("file", s.File)
			if s.Line != 0 {
				j.numberMember("line", s.Line)
			}
			if s.Column != 0 {
				j.numberMember("column", s.Column)
			}
		})
	})
}

// speaking returns the runtimes that tell more of a thread than frames.
func speaking(list []trace.RuntimeThread) []trace.RuntimeThread {
	return slices.DeleteFunc(slices.Clone(list), func(r trace.RuntimeThread) bool { return r.IsSilent() })
}

// runtimeState is the state of a thread in runtimes in brackets, with a blank before them; "" where
// nothing is known. The names of a group's threads differ.
func runtimeState(s *trace.Stack, isGroup bool) string {
	list := speaking(s.Runtimes)
	var b strings.Builder
	for i := range list {
		r := &list[i]
		text := r.Text(s.Thread)
		if name := r.Name; name != "" && !isGroup && name != threadName(s.Thread, s.Runtimes) {
			text = strings.TrimSuffix(strconv.Quote(name)+"; "+text, "; ")
		}
		switch {
		case text == "":
		case len(list) > 1:
			b.WriteString(" [" + r.Runtime + ": " + text + "]")
		default:
			b.WriteString(" [" + text + "]")
		}
	}
	return b.String()
}

// shortName is how many bytes of a thread's name the kernel of Linux keeps.
const shortName = 15

// threadName is the name of a thread: a runtime's where the operating system has its beginning, or none.
func threadName(th *trace.Thread, list []trace.RuntimeThread) string {
	for i := range list {
		name := list[i].Name
		if name != "" && (th.Name == "" || len(th.Name) == shortName && strings.HasPrefix(name, th.Name)) {
			return name
		}
	}
	return th.Name
}

const (
	// maxMessage is how many lines of an exception's message the text has.
	maxMessage = 8
	// maxTraceback is how many functions of a traceback it has.
	maxTraceback = 8
)

// exceptions writes the exceptions that a thread has raised and not handled.
func (t *text) exceptions(s *trace.Stack) {
	for i := range s.Runtimes {
		x := s.Runtimes[i].Exception
		if x == nil {
			continue
		}
		lines := strings.SplitN(strings.TrimSpace(x.String()), "\n", maxMessage+1)
		t.printf("  %s %s\n", t.warn("raised"), lines[0])
		for _, line := range lines[1:min(len(lines), maxMessage)] {
			t.printf("    %s\n", strings.TrimSpace(line))
		}
		for k := range x.Traceback[:min(len(x.Traceback), maxTraceback)] {
			f := &x.Traceback[k]
			line := "in " + t.names.of(f)
			switch {
			case f.Line > 0:
				line += " at " + position(f.File, f.Line, f.Column)
			case f.File != "":
				line += " at " + f.File
			}
			t.printf("    %s\n", t.faint(line))
		}
		if more := len(x.Traceback) - maxTraceback; more > 0 {
			t.printf("    %s\n", t.faint(fmt.Sprintf("and in %s outside these", plural(more, "function", "functions"))))
		}
	}
}

// isEqualRuntimes compares the threads of two stacks as runtimes see them, except for their names
// and for the addresses of locks that they hold.
func isEqualRuntimes(a, b []trace.RuntimeThread) bool {
	return slices.EqualFunc(a, b, func(x, y trace.RuntimeThread) bool {
		return x.Runtime == y.Runtime && x.Module == y.Module && x.State == y.State &&
			slices.EqualFunc(x.Locks, y.Locks, func(m, n trace.RuntimeLock) bool {
				return m.Name == n.Name && m.IsWaited == n.IsWaited && (!m.IsWaited || m.Address == n.Address && m.Holder == n.Holder)
			}) && isEqualException(x.Exception, y.Exception)
	})
}

func isEqualException(a, b *trace.RuntimeException) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Type == b.Type && a.Text == b.Text && slices.EqualFunc(a.Traceback, b.Traceback, func(x, y trace.Symbol) bool {
		return x.Function == y.Function && x.File == y.File && x.Line == y.Line && x.Column == y.Column
	})
}
