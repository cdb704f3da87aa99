// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/pprof/profile"
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

// TestTheSummarySaysWhatPartIsSelected has the flags that select, each in a form of output.
func TestTheSummarySaysWhatPartIsSelected(t *testing.T) {
	for _, c := range []struct {
		args    string
		summary string
		out     string
	}{
		{"--process helper", "33 of 65 samples: 50.8% of cpu-clock:u", "helper;_start;start;work;emit 22132792\nhelper;_start;start;work;hash;spin 22132792\nhelper;_start;start;work;parse;spin 22132792\n"},
		{"--thread ^h --focus hash|emit --hide ^_start$ --hide spin", "22 of 65 samples: 33.8% of cpu-clock:u", "helper;start;work;emit 22132792\nhelper;start;work;hash 22132792\n"},
		{"--cpu 1 --time ,50% --ignore emit --focus hash", "11 of 65 samples: 16.9% of cpu-clock:u",
			"helper;_start;start;work;hash;spin 10060360\nwork;_start;start;work;hash;spin 12072432\n"},
		{"--callers hash", "23 of 65 samples: 35.4% of cpu-clock:u", "hash;work;start;_start;helper 22132792\nhash;work;start;_start;work 24144864\n"},
		{"--bottom-up --ignore spin", "21 of 65 samples: 32.3% of cpu-clock:u", "emit;work;start;_start;helper 22132792\nemit;work;start;_start;work 20120720\n"},
	} {
		out, summary := runProfile(t, append([]string{workBase, "--format", "folded"}, strings.Fields(c.args)...)...)
		if out != c.out || !strings.Contains(summary, "\nselected: "+c.summary+"\n") {
			t.Errorf("%s:\n%s%s", c.args, out, summary)
		}
	}
	out, _ := runProfile(t, workBase, "--callers", "spin")
	if !strings.Contains(out, "\n total          callers\n100.0%          spin work.c in work\n") && !strings.Contains(out, "\n total          callers\n100.0%          spin work.c\n") {
		t.Errorf("the tree of callers is\n%s", out)
	}
	out, _ = runProfile(t, workBase, "--bottom-up")
	if !strings.Contains(out, " 67.7%          ├ spin work.c\n 35.4%          │ ├ hash work.c\n") || !strings.Contains(out, " 88.53 ms    67.7%   88.53 ms    67.7%  spin") {
		t.Errorf("the tree from the innermost functions is\n%s", out)
	}
}

func TestSelectionsOfNothingAreRefused(t *testing.T) {
	for args, want := range map[string]struct {
		status int
		says   string
	}{
		"--focus hsh":               {exitInput, workBase + ": --focus hsh: no function matches; near are: hash\n"},
		"--thread wrk":              {exitInput, workBase + ": --thread wrk: none has this ID or name, expected one of: work, helper\n"},
		"--cpu 0":                   {exitInput, workBase + ": --cpu 0: no sample is of it: their processors are from 1 to 1\n"},
		"--focus hash --focus emit": {exitInput, workBase + ": no sample is in all of: --focus hash, --focus emit\n"},
		"--hide (":                  {exitUsage, "--hide (: expected a regular expression (RE2): "},
		"--time 1":                  {exitUsage, "--time 1: expected FROM,TO"},
		"--bottom-up --format json": {exitUsage, "--bottom-up turns the stacks of text and folded stacks: expected another --format than json\n"},
		"--bottom-up --http :0":     {exitUsage, "--bottom-up turns the stacks of text and folded stacks"},
	} {
		cmd := command(append([]string{"profile", "--in-process", workBase}, strings.Fields(args)...)...)
		var stdout, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		_ = cmd.Run()
		if got := cmd.ProcessState.ExitCode(); got != want.status || !strings.Contains(stderr.String(), want.says) || stdout.Len() > 0 {
			t.Errorf("%s: status %d, expected %d and %q\n%s%s", args, got, want.status, want.says, stdout.String(), stderr.String())
		}
	}
}

// TestSelectionsAreThoseOfPprof holds --focus, --ignore and --hide against what pprof leaves of the whole
// profile. It looks at names of files, too, so the expressions match none.
func TestSelectionsAreThoseOfPprof(t *testing.T) {
	stacks := func(p *profile.Profile) map[string]int64 {
		sums := map[string]int64{}
		for _, s := range p.Sample {
			var names []string
			for _, l := range s.Location {
				for _, line := range l.Line {
					names = append(names, line.Function.Name)
				}
			}
			sums[strings.Join(names, ";")] += s.Value[0]
		}
		return sums
	}
	parse := func(args ...string) *profile.Profile {
		out, _ := runProfile(t, append(args, "--format", "pprof")...)
		p, err := profile.ParseData([]byte(out))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, c := range []struct{ recording, focus, ignore, hide string }{
		{workBase, "^spin$", "^parse$", ""},
		{workBase, "emit|hash", "", "^(start|_start)$"},
		{wordsRecording, "insert|swap", "", "insert"},
		{wordsRecording, "", "count_by_tree", "swap"},
	} {
		whole := parse(c.recording)
		args := []string{c.recording}
		expression := func(flag, text string) *regexp.Regexp {
			if text == "" {
				return nil
			}
			args = append(args, "--"+flag, text)
			return regexp.MustCompile(text)
		}
		whole.FilterSamplesByName(expression("focus", c.focus), expression("ignore", c.ignore), expression("hide", c.hide), nil)
		if diff := cmp.Diff(stacks(whole), stacks(parse(args...))); diff != "" || len(whole.Sample) == 0 {
			t.Errorf("%q (-pprof +ours):\n%s", args, diff)
		}
	}
}

// TestFilesOfFlagsAreLookedForBeforeAnythingIsWalked has flags that name what is not there.
func TestFilesOfFlagsAreLookedForBeforeAnythingIsWalked(t *testing.T) {
	for _, args := range [][]string{
		{"profile", workBase, "--exe", "nothing"}, {"profile", workBase, "--sysroot", "nothing"}, {"diff", workBase, workNew, "--debug-dir", "nothing"},
	} {
		out, err := command(append(args, "--in-process")...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "nothing") || strings.Contains(string(out), "samples") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
}

// TestKernelsAreCountedByTheSelectedDispatches has two of ten dispatches of a kernel.
func TestKernelsAreCountedByTheSelectedDispatches(t *testing.T) {
	out, _ := runProfile(t, gpuRecording, "--gpu", "../../examples/gpu-profile/gpu_results.json", "--event", "gpu-kernel-time", "--focus", "grade_again")
	if !strings.Contains(out, "\n228.00 µs   100.0%           2  grade in grade.co\n") {
		t.Errorf("the kernels are\n%s", out)
	}
}
