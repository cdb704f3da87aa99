// SPDX-License-Identifier: Apache-2.0

// Command stacks runs unwindd stack on cores of 20, 200 and 2,000 threads beside gdb,
// and on snapshots of 10,000, 100,000 and a million waves, which no other tool reads.
// It prints what each takes: time, processor time and memory of its own.
//
// It builds a C++ program that crashes, so /proc/sys/kernel/core_pattern is to be
// `core`. PEERS_ROUNDS is how many rounds there are (3). With the arguments KIND N FILE
// it writes a snapshot of N waves alone.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "stacks:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 3 {
		n, err := strconv.Atoi(args[1])
		if err != nil {
			return err
		}
		return writeKind(args[2], args[0], n)
	}
	rounds, err := cost.Rounds(3)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "stacks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd, err := cost.Build(dir)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "input\twhat\ttool\ttime\tCPU\tmemory\twith mapped files\tCPU /gdb\tmemory /gdb\t")
	if err := threads(w, dir, unwindd, rounds); err != nil {
		return err
	}
	if err := waves(w, dir, unwindd, rounds); err != nil {
		return err
	}
	return w.Flush()
}

// writeKind writes waves of a kind.
func writeKind(path, name string, n int) error {
	for _, k := range kinds {
		if k.name == name {
			return writeWaves(path, k, n)
		}
	}
	return fmt.Errorf("no kind %q of waves", name)
}

// A job is a command whose cost is of interest.
type job struct {
	what, tool string
	argv       []string
}

// compare runs the jobs in turn and prints the smallest cost of each, beside that of
// the last one if it is gdb's.
func compare(w *tabwriter.Writer, input string, jobs []job, rounds int) error {
	best := make([]*cost.Cost, len(jobs))
	for range rounds {
		for i, j := range jobs {
			c, err := cost.Of(j.argv)
			if err != nil {
				return err
			}
			best[i] = c.Best(best[i])
		}
	}
	last := len(jobs) - 1
	for i, j := range jobs {
		c, ratios := best[i], "\t"
		if peer := best[last]; jobs[last].tool == "gdb" {
			ratios = fmt.Sprintf("%.3f\t%.2f", c.CPU.Seconds()/peer.CPU.Seconds(), float64(c.Own)/float64(peer.Own))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f s\t%.2f s\t%d MiB\t%d MiB\t%s\t\n", input, j.what, j.tool,
			c.Wall.Seconds(), c.CPU.Seconds(), c.Own/1024, c.All/1024, ratios)
	}
	return nil
}

// threads compares cores.
func threads(w *tabwriter.Writer, dir, unwindd string, rounds int) error {
	program := filepath.Join(dir, "threads")
	if err := cost.Run(".", "g++", "-std=c++17", "-O2", "-g", "-pthread", "-o", program, "stacks/testdata/threads.cpp"); err != nil {
		return err
	}
	for _, n := range []int{20, 200, 2000} {
		folder := filepath.Join(dir, strconv.Itoa(n))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		// It ends by a signal.
		_ = cost.Run(folder, "sh", "-c", fmt.Sprintf("ulimit -c unlimited; exec %s %d", program, n))
		cores, err := filepath.Glob(filepath.Join(folder, "core*"))
		if err != nil || len(cores) != 1 {
			return fmt.Errorf("%d threads left %d files core* in their folder, expected one: see /proc/sys/kernel/core_pattern", n, len(cores))
		}
		ours := []string{unwindd, "stack", cores[0], "-o", os.DevNull}
		jobs := []job{
			{"text", "unwindd", ours},
			{"JSON", "unwindd", append(ours[:len(ours):len(ours)], "--format", "json")},
			{"text", "gdb", []string{"gdb", "-batch", "-nx", "-ex", "thread apply all bt", program, cores[0]}},
		}
		if err := compare(w, fmt.Sprintf("%d threads", n), jobs, rounds); err != nil {
			return err
		}
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	return nil
}

// waves measures snapshots.
func waves(w *tabwriter.Writer, dir, unwindd string, rounds int) error {
	path := filepath.Join(dir, "waves.snapshot")
	for _, size := range []struct {
		kind  string
		n     int
		whats []string
	}{
		{"equal", 10_000, []string{"text", "json"}}, {"equal", 100_000, []string{"text", "json"}}, {"equal", 1_000_000, []string{"text"}},
		{"places", 100_000, []string{"text"}}, {"deep", 100_000, []string{"text"}}, {"recorded", 100_000, []string{"text"}}, {"vectors", 100_000, []string{"text"}},
	} {
		if err := writeKind(path, size.kind, size.n); err != nil {
			return err
		}
		var jobs []job
		for _, what := range size.whats {
			jobs = append(jobs, job{what, "unwindd", []string{unwindd, "stack", path, "--format", what, "-o", os.DevNull}})
		}
		if err := compare(w, fmt.Sprintf("%d waves, %s", size.n, size.kind), jobs, rounds); err != nil {
			return err
		}
	}
	return nil
}
