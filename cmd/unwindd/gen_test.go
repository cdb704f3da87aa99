// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// TestStackByAPluginOfItsOwn: the stack of a thread of Intel's is the same by the plugin as
// a process and in this one.
func TestStackByAPluginOfItsOwn(t *testing.T) {
	const gen = "../../examples/gen/gen.snapshot"
	want, _, status := unwindd(t, "stack", "--in-process", gen)
	got, said, status2 := unwindd(t, "stack", gen)
	if status != exitDone || status2 != exitDone || got != want || !strings.Contains(got, "launched by") {
		t.Errorf("status %d and %d: %s\n%s\nin this process\n%s", status, status2, said, got, want)
	}
}
