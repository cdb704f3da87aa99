// SPDX-License-Identifier: Apache-2.0

// Package panics says in a line what a panic was and where.
package panics

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Bounds of what is said: of the value in bytes, and of the calls in number.
const (
	maxValue = 200
	maxCalls = 2
)

// Place says in which call a panic happened, and what made that call:
// "isa.decode (decode.go:12), called by amdgpu.follow (flow.go:90)". It is for
// the deferred function that recovered it.
func Place() string { return Chain(calls()) }

// Chain is a place from its calls, innermost first.
func Chain(calls []string) string {
	return strings.Join(calls[:min(len(calls), maxCalls)], ", called by ")
}

// Line is a panic's value, bounded, and its place.
func Line(value, place string) string {
	if len(value) > maxValue {
		value = strings.ToValidUTF8(value[:maxValue], "") + "..."
	}
	if place == "" {
		return value
	}
	return value + ", at " + place
}

// Call is a call as Chain has it: a function, with its import path or without,
// and its position.
func Call(function, file string, line int) string {
	return fmt.Sprintf("%s (%s:%d)", function[strings.LastIndexByte(function, '/')+1:], filepath.Base(file), line)
}

// IsRuntime says whether a function is of Go's runtime, which a panic goes
// through before it comes to who made it.
func IsRuntime(function string) bool {
	return strings.HasPrefix(function, "runtime.") || function == "panic"
}

// calls are those that were under way when the panic happened. The stack is
// this function and its callers; the runtime, which ran the deferred function;
// then they.
func calls() []string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	panicking := false
	var list []string
	for len(list) < maxCalls {
		f, more := frames.Next()
		switch {
		case f.Function == "runtime.gopanic":
			panicking = true
		case panicking && f.Function != "" && !IsRuntime(f.Function):
			list = append(list, Call(f.Function, f.File, f.Line))
		}
		if !more {
			break
		}
	}
	return list
}
