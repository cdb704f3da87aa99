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
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
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
	rounds := 3
	if text := os.Getenv("PEERS_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("PEERS_ROUNDS %q: expected a number from 1", text)
		}
		rounds = n
	}
	dir, err := os.MkdirTemp("", "stacks-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd := filepath.Join(dir, "unwindd")
	if err := command("../..", "go", "build", "-trimpath", "-o", unwindd, "./cmd/unwindd"); err != nil {
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
	best := make([]*cost, len(jobs))
	for range rounds {
		for i, j := range jobs {
			c, err := measure(j.argv)
			if err != nil {
				return err
			}
			if b := best[i]; b != nil {
				c = &cost{min(b.wall, c.wall), min(b.cpu, c.cpu), max(b.own, c.own), max(b.all, c.all)}
			}
			best[i] = c
		}
	}
	last := len(jobs) - 1
	for i, j := range jobs {
		c, ratios := best[i], "\t"
		if peer := best[last]; jobs[last].tool == "gdb" {
			ratios = fmt.Sprintf("%.3f\t%.2f", c.cpu.Seconds()/peer.cpu.Seconds(), float64(c.own)/float64(peer.own))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%.2f s\t%.2f s\t%d MiB\t%d MiB\t%s\t\n", input, j.what, j.tool,
			c.wall.Seconds(), c.cpu.Seconds(), c.own/1024, c.all/1024, ratios)
	}
	return nil
}

// threads compares cores.
func threads(w *tabwriter.Writer, dir, unwindd string, rounds int) error {
	program := filepath.Join(dir, "threads")
	if err := command(".", "g++", "-std=c++17", "-O2", "-g", "-pthread", "-o", program, "stacks/testdata/threads.cpp"); err != nil {
		return err
	}
	for _, n := range []int{20, 200, 2000} {
		folder := filepath.Join(dir, strconv.Itoa(n))
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
		// It ends by a signal.
		_ = command(folder, "sh", "-c", fmt.Sprintf("ulimit -c unlimited; exec %s %d", program, n))
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

// command runs a command, whose output is shown where it fails.
func command(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// A cost is what a run took.
type cost struct {
	wall, cpu time.Duration
	own, all  int64 // KiB: without and with the pages of mapped files
}

// measure runs a command without its output. Memory is the largest that the kernel
// says while it runs (RssAnon, and VmHWM in /proc/PID/status), its children's apart.
func measure(argv []string) (*cost, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &cost{}
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		status := fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)
		for {
			select {
			case <-done:
				return
			case <-time.After(2 * time.Millisecond):
			}
			text, _ := os.ReadFile(status) // it may have ended
			c.own, c.all = max(c.own, kib(text, "RssAnon:")), max(c.all, kib(text, "VmHWM:"))
		}
	}()
	err := cmd.Wait()
	c.wall = time.Since(began)
	close(done)
	<-watched
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	c.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return c, nil
}

// kib is a number of /proc/PID/status; 0 where it has none.
func kib(status []byte, name string) (n int64) {
	if _, rest, ok := strings.Cut(string(status), "\n"+name); ok {
		// What is no number is 0.
		_, _ = fmt.Sscan(rest, &n)
	}
	return n
}
