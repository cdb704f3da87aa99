// SPDX-License-Identifier: Apache-2.0

//go:build linux

package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestDumpsOfFlightRecordersAreJoined compares dumps that PyTorch wrote, in any order, also in parts.
func TestDumpsOfFlightRecordersAreJoined(t *testing.T) {
	var paths []string
	for rank := range 4 {
		paths = append(paths, fmt.Sprintf("internal/flightrecorder/testdata/gloo/rank_%d", rank))
	}
	want := []trace.Collective{{
		Group: "0 (default_pg)", Sequence: 4, Operation: "gloo:all_reduce", Ranks: "0-3", Entered: "0,2-3", Missing: "1",
		Different: []string{"ranks 0,2 called gloo:all_reduce", "rank 3 called gloo:all_gather"},
	}}
	e := newEngine()
	defer e.Close()
	whole := e.NewComparer(engine.CompareOptions{})
	if err := whole.AddPaths(context.Background(), paths, nil); err != nil {
		t.Fatal(err)
	}
	parts := e.NewComparer(engine.CompareOptions{})
	for _, list := range [][]string{paths[2:], paths[:2]} {
		b := part(t, e, func(c *engine.Comparer) error { return c.AddPaths(context.Background(), list, nil) })
		if err := parts.AddReport(bytes.NewReader(b), "part"); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]*engine.Comparer{"whole": whole, "parts": parts} {
		got := c.Comparison()
		if d := cmp.Diff(want, got.Collectives); d != "" || len(got.Problems) > 0 || len(got.Targets) > 0 {
			t.Errorf("%s (-want +got):\n%s%q, %d targets", name, d, got.Problems, len(got.Targets))
		}
	}
	rule, err := engine.ParseLabelRule(`rank=rank_(\d)x`)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(paths[1])
	if err != nil {
		t.Fatal(err)
	}
	c := e.NewComparer(engine.CompareOptions{Labels: []engine.LabelRule{rule}})
	renamed := write(t, filepath.Join(t.TempDir(), "rank_1x20260301.json"), string(text))
	if err := c.AddPaths(context.Background(), []string{paths[0], renamed, paths[2], paths[3]}, nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, c.Comparison().Collectives); d != "" {
		t.Errorf("with a rule (-want +got):\n%s", d)
	}
}

func TestAPickleOfAFlightRecorderIsNamed(t *testing.T) {
	path := write(t, filepath.Join(t.TempDir(), "nccl_trace_rank_0"), "\x80\x02}(X\x07\x00\x00\x00versionq\x00X\x04\x00\x00\x002.10q\x01u.")
	e := newEngine()
	defer e.Close()
	c := e.NewComparer(engine.CompareOptions{})
	if err := c.AddPaths(context.Background(), []string{path}, nil); err != nil {
		t.Fatal(err)
	}
	got := c.Comparison()
	if len(got.Classes) != 1 || !strings.Contains(got.Classes[0].Unread, "pickle of Python") {
		t.Errorf("%+v", got.Classes)
	}
}

// TestATraceLabelsItsProcess compares a living process with traces of PyTorch's profiler.
func TestATraceLabelsItsProcess(t *testing.T) {
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	dir := t.TempDir()
	traced := func(name string, rank, pid int) string {
		return write(t, filepath.Join(dir, name), fmt.Sprintf(`{"distributedInfo":{"rank":%d,"world_size":8},"traceEvents":[{"ph":"M","name":"process_labels","pid":%d,"args":{"labels":"CPU"}}]}`, rank, pid))
	}
	first, other := traced("first.json", 5, cmd.Process.Pid), traced("other.json", 6, cmd.Process.Pid)
	unused := traced("unused.json", 7, 1<<30)
	process := fmt.Sprint(cmd.Process.Pid)
	e := newEngine()
	defer e.Close()
	for _, c := range []struct {
		paths         []string
		rank, problem string
	}{
		{[]string{first, process, unused}, "5", ""},
		{[]string{process, first, other}, "", "have other labels of process " + process + ": neither is used"},
	} {
		x := e.NewComparer(engine.CompareOptions{})
		if err := x.AddPaths(context.Background(), c.paths, nil); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is the same again
			got := x.Comparison()
			if len(got.Targets) != 1 || got.Targets[0].Labels["rank"] != c.rank || (c.rank != "") != (got.Targets[0].Labels["world_size"] == "8") {
				t.Errorf("%+v", got.Targets)
			}
			if problems := strings.Join(got.Problems, "\n"); (c.problem == "") != (problems == "") || !strings.Contains(problems, c.problem) {
				t.Errorf("problems %q, expected %q", problems, c.problem)
			}
		}
	}
}
