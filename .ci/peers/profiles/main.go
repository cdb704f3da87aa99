// Command profiles runs unwindd profile beside perf script on the same
// recordings, in turn, and compares times and memory.
//
// Without arguments it builds a C++, a Rust and a Go program and records each, at
// least 10,000 samples with 16 KiB of stack; else the arguments are recordings.
// PEERS_ROUNDS is how many rounds there are.
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

// programs are recorded. Their arguments are seconds of a processor.
var programs = []struct {
	name   string
	build  []string // the output's path follows
	source string
	args   []string
}{
	{"deepcpp", []string{"g++", "-std=c++17", "-O2", "-g", "-pthread", "-o"}, "deepcpp.cpp", []string{"2.1", "2"}},
	{"rustwork", []string{"rustc", "-O", "-g", "-o"}, "rustwork.rs", []string{"2.1"}},
	{"gowork", []string{"go", "build", "-o"}, "./gowork", []string{"4.2"}},
}

const sources = "../../engine/testdata/profile"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "profiles:", err)
		os.Exit(1)
	}
}

func run() error {
	rounds := 5
	if text := os.Getenv("PEERS_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("PEERS_ROUNDS %q: expected a number from 1", text)
		}
		rounds = n
	}
	dir, err := os.MkdirTemp("", "profiles-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	unwindd := filepath.Join(dir, "unwindd")
	if err := command("../..", "go", "build", "-trimpath", "-o", unwindd, "./cmd/unwindd"); err != nil {
		return err
	}
	recordings := os.Args[1:]
	if len(recordings) == 0 {
		if recordings, err = record(dir); err != nil {
			return err
		}
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "recording\tMB\tsamples\twhat\ttool\ttime\tCPU\tmemory\twith mapped files\ttime /perf\tCPU /perf\tmemory /perf\t")
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
		if err := command(sources, p.build[0], append(append([]string(nil), p.build[1:]...), program, p.source)...); err != nil {
			return nil, err
		}
		path := program + ".data"
		args := append([]string{"record", "-q", "-F", "3000", "-e", "cpu-clock", "--call-graph", "dwarf,16384", "-o", path, "--", program}, p.args...)
		if err := command(".", "perf", args...); err != nil {
			return nil, err
		}
		recordings = append(recordings, path)
	}
	return recordings, nil
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

// A job is the same work by both tools.
type job struct {
	what         string
	ours, theirs []string
}

// compare runs both tools in turn and prints the smallest of each.
func compare(w *tabwriter.Writer, unwindd, path string, rounds int) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	samples, err := exec.Command("perf", "script", "--force", "-F", "tid", "-G", "-i", path).Output()
	if err != nil {
		return fmt.Errorf("perf script -F tid -i %s: %w", path, err)
	}
	perf := []string{"perf", "script", "--force", "--no-inline", "-i", path}
	ours := []string{unwindd, "profile", path, "-o", os.DevNull}
	for _, j := range []job{
		{"addresses", append(ours[:len(ours):len(ours)], "-j", "1", "--symbols=false", "--format", "json"),
			append(perf[:len(perf):len(perf)], "-F", "ip", "--max-stack", "1024")},
		{"names", append(ours[:len(ours):len(ours)], "--format", "pprof"), append(perf[:len(perf):len(perf)], "--max-stack", "1024")},
	} {
		var best [2]*cost
		for range rounds {
			for i, argv := range [][]string{j.ours, j.theirs} {
				c, err := measure(argv)
				if err != nil {
					return err
				}
				if b := best[i]; b != nil {
					c = &cost{min(b.wall, c.wall), min(b.cpu, c.cpu), max(b.own, c.own), max(b.all, c.all)}
				}
				best[i] = c
			}
		}
		for i, name := range []string{"unwindd", "perf"} {
			c, peer := best[i], best[1]
			fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%.3f s\t%.3f s\t%d MiB\t%d MiB\t%.2f\t%.2f\t%.2f\t\n", strings.TrimSuffix(filepath.Base(path), ".data"), info.Size()/1e6,
				strings.Count(string(samples), "\n"), j.what, name, c.wall.Seconds(), c.cpu.Seconds(), c.own/1024, c.all/1024,
				c.wall.Seconds()/peer.wall.Seconds(), c.cpu.Seconds()/peer.cpu.Seconds(), float64(c.own)/float64(peer.own))
		}
	}
	return nil
}

// A cost is what a run took.
type cost struct {
	wall, cpu time.Duration
	own, all  int64 // KiB: without and with the pages of mapped files
}

// measure runs a command without its output. Memory is the largest that the
// kernel says while it runs (RssAnon, and VmHWM in /proc/PID/status), its
// children's apart.
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
