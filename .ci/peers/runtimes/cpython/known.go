// SPDX-License-Identifier: Apache-2.0

package main

// knownClasses are differences whose cause is known, each by what shows it.
var knownClasses = []struct {
	name string
	is   func(c *comparison, want, have *thread, index int, isDump bool) bool
}{
	{"faulthandler prints a frame that the interpreter made for itself, __init__ without a file and a line, and ends there", func(_ *comparison, want, have *thread, index int, isDump bool) bool {
		return isDump && index == len(want.frames)-1 && want.frames[index].file == want.frames[index].function && want.frames[index].line == 0 && index < len(have.frames)
	}},
	{"faulthandler prints the name of a code object, which was replaced; its qualified name was not", func(_ *comparison, want, have *thread, index int, isDump bool) bool {
		return isDump && index < min(len(want.frames), len(have.frames)) && want.frames[index].function == "renamed" && have.frames[index].qualified == "original" &&
			want.frames[index].line == have.frames[index].line
	}},
}
