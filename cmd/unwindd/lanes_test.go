package main

import (
	"encoding/json"
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
		{[]string{"--lane", "63"}, 0, "2 threads: w1 w2"},
		{[]string{"--lane", "64"}, 1, "no thread has a frame of a lane 64"},
		{[]string{"--lane", "-1"}, 2, "--lane -1: expected 0 to"},
		{[]string{"--lane", "99999999"}, 2, "--lane 99999999: expected 0 to"},
		// The last wave has work for 36 lanes.
		{[]string{"--lane", "36", "--thread", "w3"}, 1, "no thread has a frame of a lane 36"},
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
	for id, want := range map[string]int{"w0": 3, "w1": 1, "w2": 1, "w3": 3} {
		if groups[id] != want {
			t.Errorf("thread %s has %d groups of lanes, expected %d", id, groups[id], want)
		}
	}
}
