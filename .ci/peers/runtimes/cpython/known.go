// SPDX-License-Identifier: Apache-2.0

package main

// faulthandlerFrames is how many frames of a thread faulthandler prints.
const faulthandlerFrames = 100

// knownClasses are differences whose cause is known, each by what shows it.
var knownClasses = []struct {
	name string
	is   func(c *comparison, want, have *thread, index int, isDump bool) bool
}{
	{"faulthandler prints 100 frames at most, and here without a word that there are more", func(_ *comparison, want, have *thread, index int, isDump bool) bool {
		return isDump && index == faulthandlerFrames && len(want.frames) == faulthandlerFrames && len(have.frames) > index
	}},
	{"faulthandler prints 100 frames at most, among which it counts those that mark where C calls Python", func(c *comparison, want, have *thread, index int, isDump bool) bool {
		return isDump && c.program == "recursion_c" && index == len(want.frames) && index >= faulthandlerFrames/2 && index < faulthandlerFrames && len(have.frames) > faulthandlerFrames
	}},
	{"faulthandler prints a frame that the interpreter made for itself, __init__ without a file and a line", func(_ *comparison, want, have *thread, index int, isDump bool) bool {
		return isDump && index < min(len(want.frames), len(have.frames)) && want.frames[index].file == want.frames[index].function && want.frames[index].line == 0
	}},
	{"faulthandler prints the name of a code object, which was replaced; its qualified name was not", func(_ *comparison, want, have *thread, index int, isDump bool) bool {
		return isDump && index < min(len(want.frames), len(have.frames)) && want.frames[index].function == "renamed" && have.frames[index].qualified == "original" &&
			want.frames[index].line == have.frames[index].line
	}},
	{"a generator that throw() has resumed has no C function of its own in 3.10: the frames outside of it are missing, which is said", func(c *comparison, want, have *thread, index int, _ bool) bool {
		return c.program == "generator_throw" && c.i.version == "3.10" && index == len(have.frames) && c.look.problems[want.native] != ""
	}},
}
