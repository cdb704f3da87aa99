// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/internal/panics"
)

// A crash is what a Go program writes to standard error when it ends by a panic
// that nobody recovered, or by a fatal error: what it was and the innermost
// calls of the goroutine that it happened in.
type crash struct {
	what       string // "panic: boom"; "" until there is one
	calls      []string
	function   string // whose position is expected next
	isInside   bool   // the goroutine's calls are being read
	isComplete bool
}

// crashStarts are what the first line begins with. A signal in C code has its
// name there.
var crashStarts = onDemand(`^(panic: |fatal error: |SIG[A-Z]+: )`)

// goroutineStart is the line before a goroutine's calls.
var goroutineStart = onDemand(`^goroutine \d+ .*\[.*\]:$`)

// callPosition is the line after a call.
var callPosition = onDemand(`^\t(.+):(\d+)( \+0x[0-9a-f]+)?$`)

// onDemand compiles an expression when it is first used.
func onDemand(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// line takes a line of standard error.
func (c *crash) line(s string) {
	switch {
	case c.isComplete:
	case c.what == "":
		if crashStarts().MatchString(s) {
			c.what = s
		}
	case !c.isInside:
		c.isInside = goroutineStart().MatchString(s)
	case s == "" || strings.HasPrefix(s, "created by "):
		c.isComplete = true
	case strings.HasPrefix(s, "\t"):
		if position := callPosition().FindStringSubmatch(s); position != nil && c.function != "" && !panics.IsRuntime(c.function) {
			line, _ := strconv.Atoi(position[2]) // one too large is no line of a file
			c.calls = append(c.calls, panics.Call(c.function, position[1], line))
			c.isComplete = len(c.calls) == maxCrashCalls
		}
	default:
		c.function = s
		if open := strings.LastIndexByte(s, '('); open > 0 {
			c.function = s[:open]
		}
	}
}

// maxCrashCalls is how many calls are kept.
const maxCrashCalls = 2

// String is the crash in a line; "" when there was none.
func (c *crash) String() string { return printable(panics.Line(c.what, panics.Chain(c.calls))) }
