// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/oracle"
)

// offCPUOf is the nanoseconds of an event's samples in a function of a thread's stacks, with
// parts of them by the innermost frame.
func offCPUOf(p *trace.Profile, event, function string) (all uint64, leaves map[string]uint64) {
	leaves = map[string]uint64{}
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.Event < 0 || p.Events[s.Event].Name != event {
			continue
		}
		names := stackNames(p, s.Stack)
		if slices.Contains(names, function) {
			all += s.Weight
			leaves[names[0]] += s.Weight
		}
	}
	return all, leaves
}

// stackNames are the functions of a stack, innermost first.
func stackNames(p *trace.Profile, stack uint32) (names []string) {
	for _, at := range p.StackFrames(nil, stack) {
		f := &p.Frames[at]
		if len(f.Symbols) == 0 {
			names = append(names, "??")
		}
		for _, s := range f.Symbols {
			names = append(names, s.Function)
		}
	}
	return names
}

// recordWaits records a program, and returns its profile and what the program wrote.
func recordWaits(t *testing.T, perf, program string, events []string) (*trace.Profile, string) {
	t.Helper()
	data := filepath.Join(t.TempDir(), "perf.data")
	args := append([]string{"record", "-q", "-m", "1024", "-o", data, "--call-graph", "dwarf,2048"}, events...)
	out, err := exec.Command(perf, append(args, "--", program)...).CombinedOutput()
	if err != nil {
		oracle.Missing(t, "perf %q: %v\n%s", args, err, out)
	}
	p, err := newX86Engine(t, Options{}).Profile(context.Background(), data, trace.ProfileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p, string(out)
}

// TestOffCPUTimeIsWhatTheProgramWaited records a program that measures its own waits, in the ways
// in which perf records switches.
func TestOffCPUTimeIsWhatTheProgramWaited(t *testing.T) {
	perf := oracle.Tool(t, "perf")
	source, err := filepath.Abs("testdata/profile/waits.c")
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(oracle.Build{Sources: []string{source}, Commands: [][]string{{"gcc", "-O1", "-g", "-pthread", "-o", "waits", source}}}.Make(t), "waits")
	for _, test := range []struct {
		name, args, leaf string
		hasWakers        bool
	}{
		{"all CPUs", "-a -e sched:sched_switch,sched:sched_waking", "[sleeping]", true},
		{"one program, switches counted", "--switch-events -e context-switches -c 1", "[off-cpu]", false},
		{"one program, no switches to it", "-e sched:sched_switch", "", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p, out := recordWaits(t, perf, program, strings.Fields(test.args))
			for range 2 { // kernels leave switches out while others take all processors, and do not say so
				if !strings.Contains(strings.Join(p.Problems, "\n"), "misses when they ran again") {
					break
				}
				p, out = recordWaits(t, perf, program, strings.Fields(test.args))
			}
			if p.Lost > 0 {
				t.Skipf("%d samples were lost on this machine", p.Lost)
			}
			least := 0.95
			if strings.Contains(strings.Join(p.Problems, "\n"), "left out") {
				least = 0.6 // threads of other users ran before, whose switches are not recorded
			}
			for line := range strings.Lines(out) {
				var function string
				var want float64
				if n, _ := fmt.Sscanf(line, "%s %f", &function, &want); n != 2 {
					continue
				}
				if test.leaf == "" {
					if got, _ := offCPUOf(p, "off-cpu", function); float64(got) > want {
						t.Errorf("%s: off the CPU for %d ns, the program measured %.0f", function, got, want)
					}
					continue
				}
				got, leaves := offCPUOf(p, "off-cpu", function)
				if ratio := float64(got) / want; ratio < least || ratio > 1.001 || want < 4e7 {
					t.Errorf("%s: off the CPU for %d ns, the program measured %.0f: %v", function, got, want, p.Problems)
				}
				if part := float64(leaves[test.leaf]) / want; part < 0.3 {
					t.Errorf("%s: %v of it is in %s", function, part, test.leaf)
				}
				t.Logf("%s: %.2f%% of %.0f ns; %v", function, 100*float64(got)/want, want, leaves)
			}
			if !strings.Contains(out, "await ") {
				t.Fatalf("the program wrote %q", out)
			}
			if text := strings.Join(p.Problems, "\n"); strings.Contains(text, "does not say when they ran again") != (test.leaf == "") {
				t.Errorf("problems: %s", text)
			}
			if waker, _ := offCPUOf(p, "off-cpu-wakers", "feed"); (waker > 4e7) != test.hasWakers {
				t.Errorf("feed ended waits of %d ns", waker)
			}
		})
	}
}
