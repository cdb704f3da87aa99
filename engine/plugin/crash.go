// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strconv"
	"strings"

	"github.com/unwindd/unwindd/internal/ondemand"
	"github.com/unwindd/unwindd/internal/panics"
)

// crash is the report that a Go program writes to standard error when it ends by a panic
// or a fatal error: its message and the innermost calls of its goroutine.
type crash struct {
	what       string // "panic: boom"; "" until there is one
	calls      []string
	function   string // whose position is expected next
	isInside   bool   // the goroutine's calls are being read
	isComplete bool
}

// crashStarts matches the beginning of the first line. A signal in C code has its name
// there.
var crashStarts = ondemand.Regexp(`^(panic: |fatal error: |SIG[A-Z]+: )`)

// goroutineStart matches the line before a goroutine's calls.
var goroutineStart = ondemand.Regexp(`^goroutine \d+ .*\[.*\]:$`)

// callPosition matches the line after a call.
var callPosition = ondemand.Regexp(`^\t(.+):(\d+)( \+0x[0-9a-f]+)?$`)

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
			line, _ := strconv.Atoi(position[2]) // a number too large is not a line of a file
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

// maxCrashCalls is the number of calls that are kept.
const maxCrashCalls = 2

// String is the crash in a line; "" where there was none.
func (c *crash) String() string { return printable(panics.Line(c.what, panics.Chain(c.calls))) }
