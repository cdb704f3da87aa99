// SPDX-License-Identifier: Apache-2.0

package main

// knownClasses are differences whose cause is known, each by what shows it.
var knownClasses = []struct {
	name string
	is   func(c *comparison, want, have *thread, at int, isDump bool) bool
}{
	{"faulthandler prints the name of a code object, which was replaced; its qualified name was not", func(_ *comparison, want, have *thread, at int, isDump bool) bool {
		return isDump && at < min(len(want.frames), len(have.frames)) && want.frames[at].function == "renamed" && have.frames[at].qualified == "original" &&
			want.frames[at].line == have.frames[at].line
	}},
}
