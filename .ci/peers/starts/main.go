// SPDX-License-Identifier: Apache-2.0

// Command starts prints what the smallest commands cost, beside the same of the commit before:
// processor time, of plugins' processes too, of two executables that run in turn.
//
//	go run ./starts [-n N] [-base COMMIT]
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

var (
	count = flag.Int("n", 30, "run each command `N` times")
	base  = flag.String("base", "HEAD^", "compare with `COMMIT`")
)

func main() {
	flag.Parse()
	cost.Exit("starts", run())
}

// commands has the arguments of each run.
var commands = []struct {
	name string
	args []string
}{
	{"version", []string{"version"}},
	{"a small core", []string{"stack", "../../examples/crash/server.core"}},
	{"a small core, in process", []string{"stack", "--in-process", "../../examples/crash/server.core"}},
	{"a small core, --locals", []string{"stack", "--locals", "../../examples/crash/server.core"}},
}

func run() error {
	dir, remove, err := cost.Folder("", "unwindd-starts-")
	if err != nil {
		return err
	}
	defer remove()
	after, before := filepath.Join(dir, "after"), filepath.Join(dir, "before")
	for _, d := range []string{after, before} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	sources := filepath.Join(dir, "sources")
	if err := cost.Run("../..", "git", "worktree", "add", "--detach", sources, *base); err != nil {
		fmt.Printf("there is no commit before this one: nothing is compared\n%v\n", err)
		return nil
	}
	defer func() { _ = cost.Run("../..", "git", "worktree", "remove", "--force", sources) }()
	old, err := cost.BuildFrom(sources, before)
	if err != nil {
		return err
	}
	current, err := cost.Build(after)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "processor ms\tbefore\tleast\tnow\tleast\t\n")
	for _, c := range commands {
		times, err := measure([]string{old, current}, c.args)
		if err != nil {
			return err
		}
		fmt.Fprintf(t, "%s\t", c.name)
		for _, list := range times {
			fmt.Fprintf(t, "%.1f\t%.1f\t", list[len(list)/2], list[0])
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// measure runs executables in turn. Each has its times in ms, in order.
func measure(executables, args []string) (times [][]float64, err error) {
	times = make([][]float64, len(executables))
	for range *count {
		for i, exe := range executables {
			took, err := cost.Of(append([]string{exe}, args...))
			if err != nil {
				return nil, err
			}
			times[i] = append(times[i], float64(took.CPU)/float64(time.Millisecond))
		}
	}
	for _, list := range times {
		slices.Sort(list)
	}
	return times, nil
}
