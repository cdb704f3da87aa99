// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/report"
)

// TestMarkdownOfSeveralTargets holds that each target has a section, and all of them the room of
// an issue, where those without room are counted.
func TestMarkdownOfSeveralTargets(t *testing.T) {
	for _, count := range []int{1, 2, 90} {
		args := []string{"stack", "--format", "markdown", "--full-names"}
		for range count {
			args = append(args, serverCore)
		}
		out, stderr, status := unwindd(t, args...)
		if status != exitDone || stderr != "" {
			t.Fatalf("status %d: %s", status, stderr)
		}
		sections := strings.Count(out, "## `server`: `null pointer: reads 1 byte at 0x0 in content_length`\n")
		if len(out) > report.MaxMarkdown || sections != count && !strings.Contains(out, "more targets left out") || count < 3 && sections != count {
			t.Errorf("%d targets: %d sections in %d bytes: %s", count, sections, len(out), out[max(0, len(out)-200):])
		}
	}
}
