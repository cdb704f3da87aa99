// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"slices"
)

// knownPlace is where a stack is known to be wrong, or to end early, and why.
type knownPlace struct {
	module, function string // as path.Match has it
	kinds            []decisionKind
	reason           string
}

// known are the places that are explained.
var known = []knownPlace{
	{"libc.so.6", "__longjmp", anyWrong, "the table is of the frame that it jumps to, not of its caller: glibc's hand-written directives say so on purpose"},
	{"libc.so.6", "[?] of longjmp", append(anyWrong, missing), "AArch64's __longjmp, which has no name: the table is of the frame that it jumps to, not of its caller"},
	{"libc.so.6", "longjmp", []decisionKind{missing}, "it has called __longjmp, whose table is of the frame that it jumps to"},
	{"libc.so.6", "swapcontext", []decisionKind{wrongRegister}, "missing register rule: hand-written assembly moves an argument to r12, which the table has as unchanged"},
	{"libc.so.6", "swapcontext", anyWrong, "wrong CFA offset in hand-written assembly: rsp is the other context's, and the table is of a function that was called there"},
	{"libc.so.6", "setcontext", []decisionKind{wrong, wrongCFA, wrongRegister, missing}, "wrong CFA offset in hand-written assembly: rsp is the other context's, and the table is of a function that was called there"},
	{"ld-linux-aarch64.so.1", "[?]", []decisionKind{wrongCFA}, "wrong CFA offset after push in PLT: the table of _dl_runtime_resolve does not count the two words that the linkage table pushed (the frames are right)"},
	{"ld-linux-aarch64.so.1", "[?]", []decisionKind{missing}, "_dl_runtime_resolve has popped the return address, which the table has below the stack pointer, where a sample has no bytes"},
	{"", "[?]", []decisionKind{wrongGuess}, "qemu has handlers return to code that is in no file, of which a sample has no bytes"},
	{"libc.so.6", "rawmemchr", []decisionKind{missing}, "AArch64: the table has the return address in x15, before it is there, and during a call, which need not preserve it"},
	{"*GOARCH=arm64*", "internal/chacha8rand.block", anyWrong, "hand-written assembly of Go: it writes over its own saved return address, which it needs no more, since it calls nothing"},
	{"libgcc_s.so.1", "_Unwind_*", anyWrong, "the frame is being left by __builtin_eh_return, which has written the handler's address over its return address, and the handler's registers over those it saved"},
}

var anyWrong = []decisionKind{wrong, wrongCFA, wrongRegister}

func findKnown(c *class) *knownPlace {
	for i := range known {
		k := &known[i]
		isModule, _ := filepath.Match(k.module, c.module)
		isFunction, _ := filepath.Match(k.function, c.function)
		if isModule && isFunction && slices.Contains(k.kinds, c.kind) {
			return k
		}
	}
	return nil
}
