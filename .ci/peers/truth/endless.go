// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strconv"

	"github.com/unwindd/unwindd/cfi"
)

// This file finds calls that do not return, behind which code is another part of the function.

// function is its call frame information and its code.
type function struct {
	fde  *cfi.FDE
	code []line
}

// endless are functions of other libraries that do not return.
var endless = regexp.MustCompile(`^(abort|_?exit|_Exit|quick_exit|pthread_exit|thrd_exit|_?_?longjmp|siglongjmp|____?longjmp_chk|execvp?|v?errx?` +
	`|__stack_chk_fail|__chk_fail|__fortify_fail|__assert(_fail|_perror_fail)?|__libc_(fatal|start_call_main)|__cxa_(throw|rethrow|bad_cast|bad_typeid|throw_bad_array.*|pure_virtual|call_unexpected|call_terminate)` +
	`|_Unwind_Resume|_ZSt(9terminate|10unexpected)v|_ZSt[0-9]+__throw_.*|_ZN9__gnu_cxx[0-9]+__throw_.*|_ZN4llvm(25llvm_unreachable_internal|18report_fatal_error|22report_bad_alloc_error).*|g_assertion_message.*|g_abort)$`)

// endlessCalls finds the calls of a library that do not return: of functions of that
// list, and of its own functions that reach no return, and no jump out of them.
func endlessCalls(functions []function) (isEndless func(l *line) bool) {
	own := map[uint64]bool{}
	isEndless = func(l *line) bool {
		if l.mnemonic != "call" || len(l.operands) == 0 {
			return false
		}
		target, err := strconv.ParseUint(l.operands[0], 16, 64)
		return endless.MatchString(l.symbol) || err == nil && own[target]
	}
	for isMore := true; isMore; {
		isMore = false
		for _, f := range functions {
			if start := f.fde.Start; !own[start] && !isLeft(f.code, isEndless) {
				own[start], isMore = true, true
			}
		}
	}
	return isEndless
}

// isLeft reports whether a function may be left by a return, by a jump, or at its end.
func isLeft(code []line, isEndless func(l *line) bool) bool {
	seen := make([]bool, len(code))
	list := []int{0}
	for len(list) > 0 {
		i := list[len(list)-1]
		list = list[:len(list)-1]
		l := &code[i]
		if seen[i] || isEndless(l) {
			continue
		}
		seen[i] = true
		next, isOut := successors(code, i)
		if isOut {
			return true
		}
		list = append(list, next...)
	}
	return false
}
