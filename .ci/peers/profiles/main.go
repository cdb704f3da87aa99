// SPDX-License-Identifier: Apache-2.0

// Command profiles runs unwindd profile beside perf script and a program that walks by
// framehop on the same recordings, in turn, and compares times and memory; and itself in
// several ways: two goroutines beside one, names beside addresses alone.
//
// Without arguments it builds a C++, a Rust and a Go program and records each, about
// 1,000 and 10,000 samples with 16 KiB of stack, and the C++ program to 100,000; else
// the arguments are recordings. PEERS_ROUNDS is how many rounds there are.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

// programs are recorded. The first of their arguments is seconds, in which they use
// two processors, or one.
var programs = []struct {
	name       string
	build      []string // the output's path follows
	source     string
	processors float64
	args       []string // behind the seconds
	most       int      // samples
}{
	{"deepcpp", []string{"g++", "-std=c++17", "-O2", "-g", "-pthread", "-o"}, "deepcpp.cpp", 2, []string{"2"}, 100_000},
	{"rustwork", []string{"rustc", "-O", "-g", "-o"}, "rustwork.rs", 2, nil, 10_000},
	{"gowork", []string{"go", "build", "-o"}, "./gowork", 1, nil, 10_000},
}

// frequency is how many samples are taken in a second of a processor.
const frequency = 3000

const sources = "../../engine/testdata/profile"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "profiles:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds, err := cost.Rounds(5)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "profiles-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd, err := cost.Build(dir)
	if err != nil {
		return err
	}
	recordings := os.Args[1:]
	if len(recordings) == 0 {
		if recordings, err = record(dir); err != nil {
			return err
		}
	}
	if framehopProgram() == "" {
		fmt.Println("framehop is left out: neither UNWINDD_PEER_FRAMEHOP names a program nor is there a framehop-perf")
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "recording\tMB\tsamples\twhat\ttool\ttime\tCPU\tmedian\tmemory\twith mapped files\ttime /peer\tCPU /peer\tmemory /peer\t")
	for _, path := range recordings {
		if err := compare(w, unwindd, path, rounds); err != nil {
			return err
		}
	}
	return w.Flush()
}

// record builds the programs and records them.
func record(dir string) (recordings []string, err error) {
	for _, p := range programs {
		program := filepath.Join(dir, p.name)
		if err := cost.Run(sources, p.build[0], append(append([]string(nil), p.build[1:]...), program, p.source)...); err != nil {
			return nil, err
		}
		for samples := 1000; samples <= p.most; samples *= 10 {
			path := fmt.Sprintf("%s-%d.data", program, samples)
			seconds := strconv.FormatFloat(1.05*float64(samples)/frequency/p.processors, 'f', 3, 64)
			args := []string{"record", "-q", "-F", strconv.Itoa(frequency), "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-o", path, "--", program, seconds}
			if err := cost.Run(".", "perf", append(args, p.args...)...); err != nil {
				return nil, err
			}
			recordings = append(recordings, path)
		}
	}
	return recordings, nil
}

// A job is the same work by two tools, or in two ways by one.
type job struct {
	what string
	runs [2]command // the second is what the first is compared with
}

// A command is one of the two, and how it is called in the table.
type command struct {
	name string
	argv []string
}

// jobs are what is done with a recording.
func jobs(unwindd, path string) []job {
	ours := func(name string, args ...string) command {
		return command{name, append([]string{unwindd, "profile", path, "-o", os.DevNull}, args...)}
	}
	perf := func(args ...string) command {
		return command{"perf", append([]string{"perf", "script", "--force", "--no-inline", "-i", path, "--max-stack", "1024"}, args...)}
	}
	addresses := ours("unwindd -j 1", "-j", "1", "--symbols=false", "--format", "json")
	list := []job{
		{"addresses", [2]command{addresses, perf("-F", "ip")}},
		{"addresses", [2]command{ours("unwindd -j 2", "-j", "2", "--symbols=false", "--format", "json"), addresses}},
		{"names", [2]command{ours("unwindd, pprof", "--format", "pprof"), perf()}},
		{"names", [2]command{ours("unwindd, folded", "-j", "1", "--format", "folded"), addresses}},
		{"names", [2]command{ours("unwindd, speedscope", "-j", "1", "--format", "speedscope"), addresses}},
	}
	if framehop := framehopProgram(); framehop != "" {
		list = append(list, job{"addresses", [2]command{addresses, {"framehop", []string{framehop, "-a", path}}}})
	}
	return list
}

// framehopProgram is a program that walks a recording by framehop: that in
// UNWINDD_PEER_FRAMEHOP, else framehop-perf; "" where neither is there.
func framehopProgram() string {
	name := os.Getenv("UNWINDD_PEER_FRAMEHOP")
	if name == "" {
		name = "framehop-perf"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// compare runs both tools of each job in turn and prints the smallest of each.
func compare(w *tabwriter.Writer, unwindd, path string, rounds int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	samples, err := exec.Command("perf", "script", "--force", "-F", "tid", "-G", "-i", path).Output()
	if err != nil {
		return fmt.Errorf("perf script -F tid -i %s: %w", path, err)
	}
	for _, j := range jobs(unwindd, path) {
		var best [2]*cost.Cost
		var processor [2][]time.Duration
		for range rounds {
			for i := range j.runs {
				c, err := cost.Of(j.runs[i].argv)
				if err != nil {
					return err
				}
				processor[i] = append(processor[i], c.CPU)
				best[i] = c.Best(best[i])
			}
		}
		for i, r := range j.runs {
			c, peer := best[i], best[1]
			slices.Sort(processor[i])
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%.3f s\t%.3f s\t%.3f s\t%d MiB\t%d MiB\t%.2f\t%.2f\t%.2f\t\n", strings.TrimSuffix(filepath.Base(path), ".data"), info.Size()/1e6,
				strings.Count(string(samples), "\n"), j.what, r.name, c.Wall.Seconds(), c.CPU.Seconds(), processor[i][len(processor[i])/2].Seconds(), c.Own/1024, c.All/1024,
				c.Wall.Seconds()/peer.Wall.Seconds(), c.CPU.Seconds()/peer.CPU.Seconds(), float64(c.All)/float64(max(peer.All, 1)))
		}
	}
	return nil
}
