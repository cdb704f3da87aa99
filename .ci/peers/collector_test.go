// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	profiles "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"github.com/unwindd/unwindd/.ci/peers/collector"
	"github.com/unwindd/unwindd/engine/report"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/internal/otlpcheck"
)

// A keeper is a collector of OpenTelemetry that keeps what it is given, and its URLs.
type keeper struct {
	*collector.Sink
	grpc, http string
}

// take is everything that came since the last time.
func (k *keeper) take(t *testing.T) []*profiles.ProfilesData {
	list, err := k.Take()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// collect runs a collector of OpenTelemetry, with its usual limits.
func collect(t *testing.T) *keeper {
	var addresses [2]string
	for i := range addresses {
		var err error
		if addresses[i], err = collector.FreeAddress(); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := collector.NewSink()
	if err != nil {
		t.Fatal(err)
	}
	const usual = 4 // MiB
	c, err := collector.Start(collector.Keeping(addresses[0], addresses[1], usual), kept)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.End(); err != nil {
			t.Error(err)
		}
	})
	return &keeper{kept, "grpc://" + addresses[0], "http://" + addresses[1]}
}

// A collector takes profiles over gRPC and over HTTP, and what it hands on is what the
// other forms of the profile have.
func TestCollectorHandsOnWhatOtherFormsHave(t *testing.T) {
	dir := t.TempDir()
	unwindd := filepath.Join(dir, "unwindd")
	run(t, "go", "build", "-o", unwindd, "./cmd/unwindd")
	kept := collect(t)
	for name, args := range map[string][]string{
		"profile":     {"examples/profile/perf.data"},
		"gpu-profile": {"examples/gpu-profile/cpu.data", "--gpu-samples", "examples/gpu-profile/gpu.jsonl"},
		"rocprofv3":   {"examples/gpu-profile/cpu.data", "--gpu", "examples/gpu-profile/gpu_results.json"},
		"waves alone": {"--gpu", "examples/gpu-profile/gpu_results.json"},
		"go build":    {recordGo(t, dir)},
	} {
		t.Run(name, func(t *testing.T) {
			args = append([]string{unwindd, "profile"}, args...)
			parsed, err := profile.ParseData(run(t, append(args, "--format", "pprof")...))
			if err != nil {
				t.Fatal(err)
			}
			full, names := otlpcheck.Samples{}, otlpcheck.Samples{}
			full.Pprof(otlpcheck.Full, parsed)
			if err := names.JSON(bytes.NewReader(run(t, append(args, "--format", "json")...))); err != nil {
				t.Fatal(err)
			}
			file := &profiles.ProfilesData{}
			if err := proto.Unmarshal(run(t, append(args, "--format", "otlp")...), file); err != nil {
				t.Fatal(err)
			}
			compare(t, "the file", []*profiles.ProfilesData{file}, full, names)
			run(t, append(args, "--otlp", kept.grpc)...)
			overGRPC := kept.take(t)
			compare(t, "gRPC", overGRPC, full, names)
			run(t, append(args, "--otlp", kept.http)...)
			overHTTP := kept.take(t)
			compare(t, "HTTP", overHTTP, full, names)
			t.Logf("%d samples, %d requests over gRPC, %d over HTTP", len(parsed.Sample), len(overGRPC), len(overHTTP))
		})
	}
}

// A profile that one request cannot hold is taken in several.
func TestCollectorTakesLargeProfiles(t *testing.T) {
	r, err := report.NewProfile(largeProfile(130_000))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.WritePprof(&b); err != nil {
		t.Fatal(err)
	}
	parsed, err := profile.Parse(&b)
	if err != nil {
		t.Fatal(err)
	}
	want := otlpcheck.Samples{}
	want.Pprof(otlpcheck.Full, parsed)
	kept := collect(t)
	for _, url := range []string{kept.grpc, kept.http} {
		c, err := report.NewCollector(url)
		if err != nil {
			t.Fatal(err)
		}
		c.Message = func(text string) { t.Error(text) }
		if err := c.Connect(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Export(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		if c.String() == kept.grpc {
			c.MaxRequest = math.MaxInt32
			if _, err := c.Export(t.Context(), r); err == nil || !strings.Contains(err.Error(), "ResourceExhausted") {
				t.Errorf("as one request: %v, expected that it is too large", err)
			}
		}
		c.Close()
		got, messages := otlpcheck.Samples{}, kept.take(t)
		for _, m := range messages {
			if wrong := otlpcheck.Check(m); len(wrong) > 0 {
				t.Fatalf("%q", wrong[:min(len(wrong), 10)])
			}
			got.OTLP(otlpcheck.Full, m)
		}
		if list := got.Differences(want); len(list) > 0 || len(messages) < 2 {
			t.Errorf("%s: %d requests, %d samples: %s", url, len(messages), len(got), strings.Join(list, "\n"))
		}
	}
}

// largeProfile is a profile of as many samples, each of a stack of its own.
func largeProfile(samples int) *trace.Profile {
	p := &trace.Profile{
		Path: "made", Events: []trace.ProfileEvent{{Name: "cpu-clock", Unit: "nanoseconds"}},
		Threads: []trace.ProfileThread{{PID: 1, TID: 2, Comm: "made"}}, Stacks: make([]trace.ProfileStack, 1),
		Stops: []trace.Stopped{{Reason: trace.StopOutermost}},
	}
	for i := range 1000 {
		p.Frames = append(p.Frames, trace.ProfileFrame{PC: 0x1000 + uint64(i), Module: -1, Exact: true,
			Symbols: []trace.Symbol{{Function: fmt.Sprintf("function_%d", i), File: "/src/made.cc", Line: i}}})
	}
	for i := range samples {
		at := uint32(0)
		for j := range 10 {
			p.Stacks = append(p.Stacks, trace.ProfileStack{Caller: at, Frame: uint32((i>>j + j*37) % 1000)})
			at = uint32(len(p.Stacks) - 1)
		}
		p.Samples = append(p.Samples, trace.ProfileSample{Time: uint64(i), Weight: uint64(1 + i%7), Stack: at})
	}
	return p
}

// compare holds messages against the rules, and against the other forms.
func compare(t *testing.T, what string, messages []*profiles.ProfilesData, full, names otlpcheck.Samples) {
	t.Helper()
	gotFull, gotNames := otlpcheck.Samples{}, otlpcheck.Samples{}
	for _, m := range messages {
		if wrong := otlpcheck.Check(m); len(wrong) > 0 {
			t.Errorf("%s: %d problems: %q", what, len(wrong), wrong[:min(len(wrong), 10)])
			return
		}
		gotFull.OTLP(otlpcheck.Full, m)
		gotNames.OTLP(otlpcheck.Names, m)
	}
	if len(gotFull) == 0 {
		t.Errorf("%s: no samples", what)
	}
	if list := gotFull.Differences(full); len(list) > 0 {
		t.Errorf("%s differs from pprof's form:\n%s", what, strings.Join(list, "\n"))
	}
	// JSON has weights alone.
	values := map[string]bool{}
	for key := range names {
		value, _, _ := strings.Cut(key, " ")
		values[value] = true
	}
	weights := gotNames.Only(func(value string) bool { return values[value] })
	if list := weights.Differences(names); len(list) > 0 {
		t.Errorf("%s differs from the JSON, whose values are %v:\n%s", what, slices.Sorted(maps.Keys(values)), strings.Join(list, "\n"))
	}
}

// recordGo records many processes of Go, with the time of the day.
func recordGo(t *testing.T, dir string) string {
	path := filepath.Join(dir, "perf.data")
	cache := filepath.Join(dir, "cache")
	cmd := exec.Command("perf", "record", "-q", "-k", "CLOCK_MONOTONIC", "-e", "cpu-clock:u", "-F", "500", "--call-graph", "dwarf,4096",
		"-o", path, "--", "go", "build", "-a", "strconv")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOCACHE="+cache)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	return path
}

// run runs a command where the project is, and returns what it prints.
func run(t *testing.T, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = "../.."
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, failed.String())
	}
	return out
}
