// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"slices"
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/engine/target"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/engine/walk"
)

// own are the signals by which a process ends itself.
var own = []string{"", "SIGABRT", "SIGTRAP", "SIGILL"}

// Raised returns the exception of a language because of which a process ended itself, where the
// thread that crashed has one that it did not handle; nil where the process ended for another
// reason. first is the crash that a handler caught before.
func Raised(p *walk.Process, first *trace.CaughtCrash, runtimes []trace.RuntimeThread) *trace.RuntimeException {
	info := p.Info()
	if !isOwnEnd(&info, first) {
		return nil
	}
	return pending(runtimes)
}

// isOwnEnd reports whether a process ended itself, and no handler of a crash did so for it.
func isOwnEnd(info *trace.Target, first *trace.CaughtCrash) bool {
	name := ""
	if info.Signal != 0 {
		name = target.SignalName(info.Machine, info.Signal)
	}
	return slices.Contains(own, name) && (first == nil || first.Signal == info.Signal)
}

// pending returns the exception that a thread has not handled; nil where there is none.
func pending(runtimes []trace.RuntimeThread) *trace.RuntimeException {
	for i := range runtimes {
		if x := runtimes[i].Exception; x != nil {
			return x
		}
	}
	return nil
}

// WithRuntimes adds to a line from Of what language runtimes know: the messages with which they
// ended the process, and the exception of the thread that crashed. raised is the result of Raised:
// that exception stands before the line.
func WithRuntimes(text string, raised *trace.RuntimeException, runtimes []trace.RuntimeThread, fatal []string) string {
	var parts []string
	add := func(part string) {
		part = strings.ToValidUTF8(oneLine(shortened(part)), "\ufffd")
		isKnown := slices.ContainsFunc(parts, func(known string) bool { return strings.Contains(known, part) })
		if part != "" && !isKnown {
			parts = append(parts, part)
		}
	}
	if IsStackOverflow(text) { // readers of the line look for that at its beginning
		add(text)
	}
	for _, f := range fatal {
		add(f)
	}
	if raised != nil {
		add(raised.String() + raisedIn(raised))
	}
	add(text)
	if x := pending(runtimes); x != nil && raised == nil {
		add("the thread had not handled " + x.String() + raisedIn(x))
	}
	return strings.Join(parts, "; ")
}

// maxPart bounds the text of a runtime in the line.
const maxPart = 1 << 10

// shortened returns a text without its end where it is very long.
func shortened(s string) string {
	if len(s) <= maxPart {
		return s
	}
	return strings.ToValidUTF8(s[:maxPart], "") + "..."
}

// raisedIn names the function in which an exception was raised.
func raisedIn(x *trace.RuntimeException) string {
	if len(x.Traceback) == 0 {
		return ""
	}
	s := &x.Traceback[0]
	text := ""
	if s.Function != "" {
		text = " in " + s.Function
	}
	if s.File != "" {
		text += " at " + s.File
		if s.Line > 0 {
			text += ":" + strconv.Itoa(s.Line)
		}
	}
	if text == "" {
		return ""
	}
	return ", raised" + text
}
