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
	"errors"
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
	programs = flag.String("programs", "runtimes/ruby/testdata", "the `folder` of the programs")
	unpacked = flag.String("rubies", "", "the `folder` that versions are unpacked in; the default is the user's cache")
	keepCore = flag.Bool("keep", false, "keep the cores, and say where")
)

func main() {
	flag.Parse()
	cost.Exit("ruby", run(context.Background()))
}

// count is how many frames of the traces were found.
type count struct{ equal, differ, missing, extra, threads, problems, locals, wrong int }

func (c *count) add(o count) {
	c.equal += o.equal
	c.differ += o.differ
	c.missing += o.missing
	c.extra += o.extra
	c.threads += o.threads
	c.problems += o.problems
	c.locals += o.locals
	c.wrong += o.wrong
}

func run(ctx context.Context) error {
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(*programs, "*.rb"))
	if err == nil && len(files) == 0 {
		err = errors.New("there are none: it is run in .ci/peers")
	}
	if err != nil {
		return fmt.Errorf("programs in %s: %w", *programs, err)
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "version\tprogram\tthreads\tequal\tdiffer\tmissing\textra\tproblems\tlocals\twrong")
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
		for _, p := range files {
			name := strings.TrimSuffix(filepath.Base(p), ".rb")
			if name == "trace" || !match.MatchString(name) {
				continue
			}
			c, err := compare(ctx, v, folder, p)
			if err != nil {
				return fmt.Errorf("%s %s: %w", v.name(), name, err)
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", v.name(), name, c.threads, c.equal, c.differ, c.missing, c.extra, c.problems, c.locals, c.wrong)
			sum.add(c)
		}
		fmt.Fprintf(table, "%s\tall\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", v.name(), sum.threads, sum.equal, sum.differ, sum.missing, sum.extra, sum.problems, sum.locals, sum.wrong)
		total.add(sum)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, l := range left {
		fmt.Println("not compared:", l)
	}
	fmt.Printf("%d threads, %d frames equal, %d differ, %d missing, %d extra, %d problems; %d locals, %d wrong\n", total.threads, total.equal, total.differ, total.missing, total.extra, total.problems, total.locals, total.wrong)
	if n := total.differ + total.missing + total.extra + total.wrong; n > 0 {
		return fmt.Errorf("%d frames and locals are not as Ruby has them", n)
	}
	return nil
}
