// SPDX-License-Identifier: Apache-2.0

// Package panics describes a panic and its place in a line.
package panics

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// The bounds of a description: bytes of the value, and the number of calls.
const (
	maxValue = 200
	maxCalls = 2
)

// Place names the call in which a panic happened, and its caller: "isa.decode
// (decode.go:12), called by amdgpu.follow (flow.go:90)". It is for the
// deferred function that recovered it.
func Place() string { return Chain(calls()) }

// Chain returns a place from its calls, innermost first.
func Chain(calls []string) string {
	return strings.Join(calls[:min(len(calls), maxCalls)], ", called by ")
}

// Line returns a panic's value, bounded, and its place.
func Line(value, place string) string {
	if len(value) > maxValue {
		value = strings.ToValidUTF8(value[:maxValue], "") + "..."
	}
	if place == "" {
		return value
	}
	return value + ", at " + place
}

// Call returns a call for Chain: a function, with its import path or without,
// and its position.
func Call(function, file string, line int) string {
	return fmt.Sprintf("%s (%s:%d)", function[strings.LastIndexByte(function, '/')+1:], filepath.Base(file), line)
}

// IsRuntime reports whether a function is of Go's runtime, which a panic goes
// through before it reaches its cause.
func IsRuntime(function string) bool {
	return strings.HasPrefix(function, "runtime.") || function == "panic"
}

// calls returns the calls in progress when the panic happened. The stack has
// this function and its callers; the runtime, which ran the deferred function;
// then these calls.
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
