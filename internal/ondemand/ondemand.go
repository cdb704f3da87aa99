// SPDX-License-Identifier: Apache-2.0

// Package ondemand makes values of packages when they are first used: a command is a process of
// its own, needs few of them, and would make all of them at each start.
package ondemand

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles an expression at its first call. Like
// regexp.MustCompile, that panics where the expression is wrong.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
