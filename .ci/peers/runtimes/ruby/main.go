// SPDX-License-Identifier: Apache-2.0

// Command ruby compares the frames that plugins/ruby reads with those that Ruby prints: each
// program of testdata writes the traces of its threads, and ends at the same line. The core's
// stacks are compared with them, frame by frame.
//
//	go run ./runtimes/ruby [-run REGEXP] [-versions 2.7,3.1] [-details N] [-record FOLDER]
//
// Ruby 2.7, 3.1, 3.3 and 3.4 are packages of Debian, which apt-get downloads and unpacks into the
// user's cache. RUBY_UBUNTU is the address of a mirror of Ubuntu, whose releases have 3.0 and 3.2.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"text/tabwriter"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

var (
	only     = flag.String("run", "", "only programs whose `name` matches this expression")
	chosen   = flag.String("versions", "", "only these `versions`, as 2.7,3.1")
	details  = flag.Int("details", 3, "how many `differences` are listed of a program")
	record   = flag.String("record", "", "a `folder` that gets what the plugin read of each program")
	keepCore = flag.Bool("keep", false, "keep the cores, and say where")
)

func main() {
	flag.Parse()
	cost.Exit("ruby", run(context.Background()))
}

// count is how many frames of the traces were found.
type count struct{ equal, differ, missing, extra, threads, problems int }

func (c *count) add(o count) {
	c.equal += o.equal
	c.differ += o.differ
	c.missing += o.missing
	c.extra += o.extra
	c.threads += o.threads
	c.problems += o.problems
}

func run(ctx context.Context) error {
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	programs, err := filepath.Glob("runtimes/ruby/testdata/*.rb")
	if err != nil || len(programs) == 0 {
		return fmt.Errorf("no programs in runtimes/ruby/testdata: run it in .ci/peers: %w", err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "version\tprogram\tthreads\tequal\tdiffer\tmissing\textra\tproblems")
	var total count
	var left []string
	for i := range rubies {
		v := &rubies[i]
		if *chosen != "" && !strings.Contains(","+*chosen+",", ","+v.version+",") {
			continue
		}
		folder, err := v.fetch()
		if err != nil {
			left = append(left, fmt.Sprintf("%s: %v", v.name(), err))
			continue
		}
		var sum count
		for _, p := range programs {
			name := strings.TrimSuffix(filepath.Base(p), ".rb")
			if name == "trace" || !match.MatchString(name) {
				continue
			}
			c, err := compare(ctx, v, folder, p)
			if err != nil {
				return fmt.Errorf("%s %s: %w", v.name(), name, err)
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\n", v.name(), name, c.threads, c.equal, c.differ, c.missing, c.extra, c.problems)
			sum.add(c)
		}
		fmt.Fprintf(table, "%s\tall\t%d\t%d\t%d\t%d\t%d\t%d\n", v.name(), sum.threads, sum.equal, sum.differ, sum.missing, sum.extra, sum.problems)
		total.add(sum)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, l := range left {
		fmt.Println("not compared:", l)
	}
	fmt.Printf("%d threads, %d frames equal, %d differ, %d missing, %d extra, %d problems\n", total.threads, total.equal, total.differ, total.missing, total.extra, total.problems)
	if total.differ+total.missing+total.extra > 0 {
		return fmt.Errorf("%d frames are not as Ruby has them", total.differ+total.missing+total.extra)
	}
	return nil
}
