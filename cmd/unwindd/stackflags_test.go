// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// Targets that many tests have.
const (
	serverCore   = "../../examples/crash/server.core"
	mixed        = "../../examples/mixed/mixed.snapshot"
	mixedCapture = mixed
)

// TestFlagsOfStacks has each flag that says what is printed of a stack given once: what it
// means is tested in engine/service/job.
func TestFlagsOfStacks(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		says   string // printed, or the error
	}{
		{"--crashed " + serverCore, exitDone, ", crashed\n"},
		{"--top 2 " + serverCore, exitDone, "\n  ... 9 frames left out\n"},
		{"--locals " + serverCore, exitDone, "        host = {name = 0x48d025 "},
		{"--signature " + serverCore, exitDone, "unwindd-2:5cfbecc3e9546971 content_length | "},
		{"--signature --signature-version 1 " + serverCore, exitDone, "unwindd-1:838e1f3e3c2c6ca8 content_length | "},
		{"--signature " + serverCore + " " + mixed, exitDone, "\n" + mixed + ": unwindd-2:7b0cc5d98aee5d20 repair | grade\n"},
		{"--in-process --lane 63 " + mixed, exitDone, "2 threads: w2 w3"},
		{"--lane 64 " + mixed, exitInput, "no thread has a frame of a lane 64"},
		{"--lane -1 " + mixed, exitUsage, "--lane -1: expected 0 to"},
		{"--top 0 " + serverCore, exitUsage, "--top 0: expected 1 or more"},
		{"--crashed --thread 5266 " + serverCore, exitUsage, "--crashed and --thread 5266"},
		{"--crashed ../../examples/gen/gen.snapshot", exitInput, "none of its"},
		{"--signature --top 3 " + serverCore, exitUsage, "--top: --signature has no place for it"},
		{"--format breakpad --registers " + serverCore, exitUsage, "--registers: --format breakpad has no place for it"},
		{"--globals no_such " + serverCore, exitInput, "no variable no_such"},
	} {
		out, stderr, status := unwindd(t, append([]string{"stack"}, strings.Fields(c.args)...)...)
		if status != c.status || !strings.Contains(out+stderr, c.says) {
			t.Errorf("%s: status %d, expected %d and %q\n%s%s", c.args, status, c.status, c.says, out, stderr)
		}
	}
}
