// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const mixed = "../../examples/mixed/mixed.snapshot"

func TestStackOfALane(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		out  string // part of the output, or of the error
	}{
		{[]string{"--lane", "63"}, 0, "2 threads: w2 w3"},
		{[]string{"--lane", "64"}, 1, "no thread has a frame of a lane 64"},
		{[]string{"--lane", "-1"}, 2, "--lane -1: expected 0 to"},
		{[]string{"--lane", "99999999"}, 2, "--lane 99999999: expected 0 to"},
		// The last wave of grade has work for 36 lanes.
		{[]string{"--lane", "36", "--thread", "w1"}, 1, "no thread has a frame of a lane 36"},
	} {
		cmd := command(append([]string{"stack", "--in-process", mixed}, c.args...)...)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.out) {
			t.Errorf("%v: exit %d, expected %d with %q\n%s", c.args, code, c.code, c.out, out)
		}
	}
}

// TestJSONHasLanesUnasked is about the lanes of physical frames, without --lanes.
func TestJSONHasLanesUnasked(t *testing.T) {
	out, err := command("stack", "--in-process", "--format", "json", mixed).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Threads []struct {
			ID     string
			Frames []struct {
				Inlined bool
				Lanes   []struct{ Lanes, State string }
			}
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	groups := map[string]int{}
	for _, th := range got.Threads {
		for _, f := range th.Frames {
			groups[th.ID] += len(f.Lanes)
			if f.Inlined && len(f.Lanes) > 0 {
				t.Errorf("thread %s: an inlined frame has lanes", th.ID)
			}
		}
	}
	for id, want := range map[string]int{"w0": 3, "w1": 3, "w2": 7, "w3": 7} {
		if groups[id] != want {
			t.Errorf("thread %s has %d groups of lanes, expected %d", id, groups[id], want)
		}
	}
}

// TestWavesOfCodeWithoutRulesHaveCallers is about the kernel inspect of the
// example: its call frame information has no rule in it, and return addresses are
// in lanes of a vector register.
func TestWavesOfCodeWithoutRulesHaveCallers(t *testing.T) {
	out, err := command("stack", "--in-process", "--format", "json", mixed).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Threads []struct {
			ID     string
			Frames []struct {
				Thread, Function string
				FoundBy          string `json:"found_by"`
				Line             int
			}
		}
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	waves := 0
	for _, th := range got.Threads {
		var frames []string
		for _, f := range th.Frames {
			if f.Thread == th.ID {
				frames = append(frames, fmt.Sprintf("%s:%d by %s", f.Function, f.Line, f.FoundBy))
			}
		}
		if !strings.HasPrefix(frames[0], "measure") {
			continue
		}
		waves++
		if want := []string{"measure:14 by context", "compare_sides:24 by rules", "inspect:32 by rules"}; !slices.Equal(frames, want) {
			t.Errorf("thread %s: %q, expected %q", th.ID, frames, want)
		}
	}
	if waves != 2 {
		t.Errorf("%d waves are in measure, expected 2", waves)
	}
	file := filepath.Join(t.TempDir(), "inspect.co")
	z, err := zip.OpenReader(mixed)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := fs.ReadFile(z, "modules/2.elf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	rows, err := command("dump", "rows", file).Output()
	if err != nil || strings.Count(string(rows), "  no rules\n") != 3 || strings.Contains(string(rows), "cfa") {
		t.Errorf("rows of inspect.co: %v, expected three functions without rules\n%s", err, rows)
	}
}

// TestVariableOfALane prints variables of lanes that are at several places in one frame.
func TestVariableOfALane(t *testing.T) {
	for _, c := range []struct {
		thread, frame, lane, name string
		code                      int
		out                       string
	}{
		{"w0", "0", "24", "wear", 0, "wear = 27\n"},
		{"w0", "0", "16", "wear", 0, "wear = 18\n"},
		{"w0", "0", "0", "wear", 0, "wear = <optimized out>\n"}, // the kernel's parameter: the lane is in no inlined call
		{"w0", "0", "0", "w", 0, "w = 0\n"},
		{"w2", "1", "50", "front", 0, "front = 21\n"},
		{"w2", "0", "50", "left", 1, "where lane 50 is in frame 0 is not known"},
		{"w2", "0", "0", "left", 1, "lane 0 did not call the function of frame 0"},
		{"w2", "0", "64", "left", 1, "lane 64 of a thread with 64"},
	} {
		cmd := command("eval", "--in-process", "--snapshot", mixed, "--thread", c.thread, "--frame", c.frame, "--lane", c.lane, "--var", c.name)
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(string(out), c.out) {
			t.Errorf("%+v: exit %d\n%s", c, code, out)
		}
	}
}
