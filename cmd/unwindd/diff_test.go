// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
)

// runDiff runs `unwindd diff` on the recordings of testdata/profile, or on others.
func runDiff(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := command(append([]string{"diff", "--in-process"}, args...)...)
	var out, err bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &err
	_ = cmd.Run()
	return cmd.ProcessState.ExitCode(), out.String(), err.String()
}

// TestDiffFindsWhatChanged has a function that became twice as slow, and one that got another name.
func TestDiffFindsWhatChanged(t *testing.T) {
	const want = `base: testdata/profile/base/perf.data: cpu-clock:u, 65 samples, 130.78 ms
new:  testdata/profile/new/perf.data: cpu-clock:u, 82 samples, 164.99 ms

   base      new   change    self, in function
  32.3%    20.7%    -11.6 ~  emit work.c
  67.7%    79.3%    +11.6 ~  spin work.c

   base      new   change    total, in function
  35.4%     0.0%    -35.4    hash work.c (only in base)
   0.0%    26.8%    +26.8    digest work.c (only in new)
  32.3%    52.4%    +20.1    parse work.c
  32.3%    20.7%    -11.6 ~  emit work.c
  67.7%    79.3%    +11.6 ~  spin work.c
                             3 functions without a change

~ is a change that so few samples show by chance, in one case of twenty at least
`
	status, out, stderr := runDiff(t, workBase, workNew)
	if diff := cmp.Diff(want, out); diff != "" || status != exitDone || stderr != "" {
		t.Errorf("status %d, %s\n%s", status, stderr, diff)
	}
	_, out, _ = runDiff(t, workBase, workNew, "--per-second", "--callers", "hash|digest")
	if !strings.Contains(out, " 132.77 ms/s           0/s  -132.77 ms/s    hash work.c (only in base)\n") || !strings.Contains(out, "46.28 ms in 0.3485 s") {
		t.Errorf("per second:\n%s", out)
	}
	_, out, _ = runDiff(t, workBase, workBase)
	if strings.Count(out, "without a change") != 2 || strings.Contains(out, "work.c") {
		t.Errorf("of one recording with itself:\n%s", out)
	}
}

func TestDiffFormats(t *testing.T) {
	const folded = `work;_start;start;work;digest;spin 0 24144864
work;_start;start;work;emit 27037218 22132792
work;_start;start;work;hash;spin 32444661 0
work;_start;start;work;parse;spin 27037218 40241440
`
	_, out, stderr := runDiff(t, workBase, workNew, "--format", "folded", "--thread", "work")
	if diff := cmp.Diff(folded, out); diff != "" || !strings.HasPrefix(stderr, "base: testdata") {
		t.Errorf("folded stacks: %s\n%s", stderr, diff)
	}
	file := filepath.Join(t.TempDir(), "diff.pb.gz")
	if status, _, stderr := runDiff(t, workBase, workNew, "--format", "pprof", "-o", file); status != exitDone {
		t.Fatal(stderr)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]int64{}
	for _, s := range p.Sample {
		side := "new"
		if len(s.Label["pprof::base"]) > 0 {
			side = "base"
		}
		sums[side] += s.Value[0]
		for _, l := range s.Location {
			if name := l.Line[0].Function.Name; name == "parse" || name == "hash" {
				sums[name] += s.Value[0]
			}
		}
	}
	if len(p.SampleType) != 1 || sums["new"] < 164e6 || sums["new"]+sums["base"] > 10 || sums["new"]+sums["base"] < -10 || sums["parse"] < 33e6 || sums["hash"] > -58e6 {
		t.Errorf("pprof has %v", sums)
	}
	_, page, _ := runDiff(t, workBase, workNew, "--format", "html")
	for _, text := range []string{"<title>from testdata/profile/base/perf.data to testdata/profile/new/perf.data", "cpu-clock:u, 65 samples, 130.78 ms", "<!DOCTYPE html>"} {
		if !strings.Contains(page, text) {
			t.Errorf("the page has no %s: %.300s", text, page)
		}
	}
}

func TestDiffRefusesWhatItCannotCompare(t *testing.T) {
	for args, want := range map[string]struct {
		status int
		says   string
	}{
		workBase:              {exitUsage, "diff: expected BASE NEW, found " + workBase},
		workBase + " nothing": {exitInput, "nothing"},
		workBase + " " + workNew + " --format json":        {exitUsage, "--format json: expected text, html, pprof or folded\n"},
		workBase + " " + workNew + " --focus (":            {exitUsage, "--focus (: expected a regular expression"},
		workBase + " " + workNew + " --focus hash":         {exitInput, workNew + ": --focus hash: no function matches"},
		workBase + " " + workNew + " --event dummy":        {exitInput, workBase + " has no samples to compare\n"},
		workBase + " " + workNew + " --event cycles":       {exitInput, workBase + ": no event cycles"},
		"nowhere " + wordsRecording + " --event cpu-clock": {exitInput, "nowhere"},
	} {
		status, out, stderr := runDiff(t, strings.Fields(args)...)
		if status != want.status || !strings.Contains(stderr, want.says) || out != "" {
			t.Errorf("%s: status %d, expected %d and %q\n%s%s", args, status, want.status, want.says, out, stderr)
		}
	}
}

// TestDiffReadsWhatWasWritten compares recordings with what was written of them.
func TestDiffReadsWhatWasWritten(t *testing.T) {
	dir := t.TempDir()
	for _, format := range []string{"pprof", "folded"} {
		file := filepath.Join(dir, "base."+format)
		runProfile(t, workBase, "--format", format, "-o", file)
		status, out, stderr := runDiff(t, file, workNew)
		for _, line := range []string{"  32.3%    52.4%    +20.1 ~  parse work.c\n", "  67.7%    79.3%    +11.6 ~  spin work.c\n"} {
			if status != exitDone || !strings.Contains(out, line) {
				t.Errorf("%s: status %d, expected %s\n%s%s", format, status, line, out, stderr)
			}
		}
	}
}
