// SPDX-License-Identifier: Apache-2.0

package fact

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
)

func TestTheLineHasWhatRuntimesKnow(t *testing.T) {
	x := &trace.RuntimeException{Type: "ValueError", Text: "no\nheader", Traceback: []trace.Symbol{{Function: "parse", File: "m.py", Line: 3}, {Function: "main"}}}
	has := []trace.RuntimeThread{{}, {Exception: x}}
	for _, c := range []struct {
		name, text string
		raised     *trace.RuntimeException
		runtimes   []trace.RuntimeThread
		fatal      []string
		want       string
	}{
		{"nothing", "null pointer", nil, nil, nil, "null pointer"},
		{"a state alone", "null pointer", nil, []trace.RuntimeThread{{State: "running"}}, nil, "null pointer"},
		{"its cause", "abort() was called in f", x, has, nil, "ValueError: no; header, raised in parse at m.py:3; abort() was called in f"},
		{"another cause", "null pointer", nil, has, nil, "null pointer; the thread had not handled ValueError: no; header, raised in parse at m.py:3"},
		{"without a line of its own", "", x, has, nil, "ValueError: no; header, raised in parse at m.py:3"},
		{"without a place", "a", &trace.RuntimeException{Type: "Error"}, nil, nil, "Error; a"},
		{"the runtime's message", "abort() was called", nil, nil, []string{"Fatal Python error: a\n", "b"}, "Fatal Python error: a; b; abort() was called"},
		{"one message twice", "Fatal error: a", nil, nil, []string{"Fatal error: a"}, "Fatal error: a"},
		{"a stack overflow", "stack overflow: f calls itself", nil, has, []string{"Fatal"}, "stack overflow: f calls itself; Fatal; the thread had not handled ValueError: no; header, raised in parse at m.py:3"},
		{"no text", "a", nil, nil, []string{"\xff"}, "\ufffd; a"},
	} {
		if got := WithRuntimes(c.text, c.raised, c.runtimes, c.fatal); got != c.want {
			t.Errorf("%s: %q, expected %q", c.name, got, c.want)
		}
	}
	if got := WithRuntimes("a", nil, nil, []string{strings.Repeat("\u00e9", 1<<20)}); len(got) > maxPart+10 {
		t.Errorf("a message of a megabyte leaves %d bytes", len(got))
	}
}

func TestAnExceptionIsTheCauseWhereTheProcessEndedItself(t *testing.T) {
	const abort, segv = 6, 11
	caught := func(signal int) *trace.CaughtCrash {
		return &trace.CaughtCrash{FirstCrash: trace.FirstCrash{Signal: signal}}
	}
	for _, c := range []struct {
		signal int
		first  *trace.CaughtCrash
		want   bool
	}{{abort, nil, true}, {0, nil, true}, {5, nil, true}, {segv, nil, false}, {abort, caught(segv), false}, {abort, caught(abort), true}} {
		if got := isOwnEnd(&trace.Target{Machine: 62, Signal: c.signal}, c.first); got != c.want {
			t.Errorf("signal %d, first %+v: %v", c.signal, c.first, got)
		}
	}
}
