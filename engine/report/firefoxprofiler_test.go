// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/unwindd/unwindd/internal/oracle"
)

// firefoxProfiler is Firefox Profiler's own reader of profiles with what it computes of
// them, as its command has it: a function that asks about a profile.
func firefoxProfiler(t *testing.T, r *Profile) (ask func(args ...string) string) {
	t.Helper()
	oracle.Tools(t, "node")
	dir := t.TempDir()
	file := filepath.Join(dir, "profile.json")
	if err := os.WriteFile(file, []byte(formOf(t, r.WriteFirefox)), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(npmPackage(t, "@firefox-devtools/profiler-cli@0.10.0"), "dist", "profiler-cli.js")
	const session = "test"
	env := []string{"PROFILER_CLI_SESSION_DIR=" + filepath.Join(dir, "s")}
	// The command starts this too, and gives it half a second, which is too little on a
	// machine that is busy.
	server := exec.Command("node", program, "--daemon", file, "--session", session)
	server.Env = append(server.Environ(), env...)
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
	})
	// Who asks before it has written down how it is reached, has it forgotten.
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		log, _ := os.ReadFile(filepath.Join(dir, "s", session+".log"))
		if strings.Contains(string(log), "Profile loaded successfully") {
			break
		}
		if len(ended) > 0 || time.Since(start) > 5*time.Minute || strings.Contains(string(log), "Failed to load") {
			t.Fatalf("%s is not loaded:\n%s", file, log)
		}
	}
	return func(args ...string) string {
		t.Helper()
		return oracle.With{Env: env}.Run(t, "node", append([]string{program}, append(args, "--session", session)...)...)
	}
}

// firefoxThreadOf is a thread as Firefox Profiler lists it.
type firefoxThreadOf struct {
	Handle      string `json:"threadHandle"`
	Name        string
	ProcessName string
	PID         string
	TID         int
	MarkerCount int
}

// firefoxThreads are the threads that it has, and the sums of each: self, total, name.
func firefoxThreads(t *testing.T, ask func(...string) string) (threads []firefoxThreadOf, functions [][]string) {
	t.Helper()
	var list struct{ Threads []firefoxThreadOf }
	if err := json.Unmarshal([]byte(ask("thread", "list", "--json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, thread := range list.Threads {
		var sums struct {
			WeightType string
			Functions  []struct {
				Name                      string
				SelfSamples, TotalSamples float64
			}
		}
		out := ask("thread", "functions", "--json", "--include-idle", "--limit", "0", "--thread", thread.Handle)
		if err := json.Unmarshal([]byte(out), &sums); err != nil {
			t.Fatal(err)
		}
		unit := 1.0
		if sums.WeightType == "tracing-ms" {
			unit = 1e6
		}
		var lines []string
		for _, f := range sums.Functions {
			lines = append(lines, fmt.Sprintf("%.0f %.0f %s", math.Round(f.SelfSamples*unit), math.Round(f.TotalSamples*unit), f.Name))
		}
		slices.Sort(lines)
		functions = append(functions, lines)
	}
	return list.Threads, functions
}

// TestFirefoxProfilerReadsTheProfile has Firefox Profiler sum up each thread of each
// event, and compares its sums with the sums over the samples.
func TestFirefoxProfilerReadsTheProfile(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the profile by other tools")
	}
	for name, r := range map[string]*Profile{"two processes": wordsProfile(t), "accelerator": gpuProfile(t)} {
		t.Run(name, func(t *testing.T) {
			threads, functions := firefoxThreads(t, firefoxProfiler(t, r))
			p := readBack(t, r)
			want := map[string][]string{}
			for _, s := range p.Samples {
				want[threadTitle(&s)] = nil
			}
			for title := range want {
				one := *p
				one.Samples = slices.DeleteFunc(slices.Clone(p.Samples), func(s readSample) bool { return threadTitle(&s) != title })
				_, flat, cum := one.stacks(one.Samples[0].Event)
				for name, n := range cum {
					want[title] = append(want[title], fmt.Sprintf("%d %d %s", flat[name], n, name))
				}
				slices.Sort(want[title])
			}
			got := map[string][]string{}
			for i, thread := range threads {
				if !strings.HasSuffix(thread.Name, ":active-lanes)") {
					got[thread.PID+" "+strconv.Itoa(thread.TID)+" "+thread.Name] = functions[i]
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-json +firefox):\n%s", diff)
			}
		})
	}
}

// threadTitle is the name of a sample's thread in Firefox Profiler.
func threadTitle(s *readSample) string {
	return fmt.Sprintf("%d %d %s (%s)", s.PID, s.TID, s.Comm, s.Event)
}

// TestFirefoxProfilerTellsAcceleratorsApart looks at the categories that it shows.
func TestFirefoxProfilerTellsAcceleratorsApart(t *testing.T) {
	if testing.Short() {
		t.Skip("reads the profile by other tools")
	}
	ask := firefoxProfiler(t, gpuProfile(t))
	samples, _ := lanesOfFile(t, gpuSamples)
	threads, _ := firefoxThreads(t, ask)
	for _, thread := range threads {
		category, other := "User", "GPU"
		if strings.Contains(thread.Name, "gpu-pc-sampling") {
			category, other = other, category
		}
		out := ask("thread", "samples", "--include-idle", "--thread", thread.Handle)
		_, out, _ = strings.Cut(out, "Categories")
		out, _, _ = strings.Cut(out, "Top Functions")
		if !strings.Contains(out, " "+category+" ") || strings.Contains(out, " "+other+" ") ||
			thread.Name == "host (gpu-pc-sampling)" && !strings.Contains(out, fmt.Sprintf(" %d ", samples)) {
			t.Errorf("%s: the categories are\n%s", thread.Name, out)
		}
	}
	if out := ask("profile", "meta"); !strings.Contains(out, "Symbolicated: yes") || !strings.Contains(out, "unwindd") {
		t.Errorf("the profile is\n%s", out)
	}
}
