// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The recordings of testdata/profile/make.sh: of major-faults:u and dummy:u, which have no samples, and
// of cpu-clock:u. In workNew parse takes twice as long as in workBase, and hash is called digest.
const (
	workBase = "testdata/profile/base/perf.data"
	workNew  = "testdata/profile/new/perf.data"
)

func TestTheEventWithSamplesIsWrittenByDefault(t *testing.T) {
	folded, summary := runProfile(t, workBase, "--format", "folded")
	if !strings.Contains(folded, "helper;_start;start;work;parse;spin ") {
		t.Errorf("folded stacks are\n%s", folded)
	}
	if !strings.Contains(summary, "\nwithout samples: major-faults:u, dummy:u\n") {
		t.Errorf("the summary is\n%s", summary)
	}
	text, _ := runProfile(t, workBase)
	if !strings.HasPrefix(text, workBase+": cpu-clock:u, 65 samples, 130.78 ms\n") || strings.Contains(text, "major-faults") {
		t.Errorf("text begins with\n%.200s", text)
	}
	named, _ := runProfile(t, workBase, "--format", "folded", "--event", "cpu-clock")
	if named != folded {
		t.Errorf("by its name without modifiers the event has\n%s", named)
	}
	none, summary := runProfile(t, workBase, "--format", "folded", "--event", "major-faults")
	if none != "" || !strings.Contains(summary, ": 0 samples\nwithout samples: major-faults:u\n") {
		t.Errorf("an event without samples has %q\n%s", none, summary)
	}
}

// TestFoldedStacksHaveFilesOnlyWhereFilesAre has events without samples, and outputs beside which no
// other file is made.
func TestFoldedStacksHaveFilesOnlyWhereFilesAre(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "work")
	runProfile(t, workBase, "--format", "folded", "-o", out)
	if _, err := os.Stat(out); err != nil {
		t.Error(err)
	}
	null := filepath.Join(dir, "null")
	if err := os.Symlink("/dev/null", null); err != nil {
		t.Fatal(err)
	}
	runProfile(t, wordsRecording, "--format", "folded", "-o", null)
	first, _ := runProfile(t, wordsRecording, "--format", "folded")
	stdout, _ := runProfile(t, wordsRecording, "--format", "folded", "-o", "-")
	if stdout != first || first == "" {
		t.Errorf("-o - writes %q", stdout)
	}
	if list, _ := filepath.Glob(filepath.Join(dir, "*")); len(list) != 2 {
		t.Errorf("there are the files %v", list)
	}
}
