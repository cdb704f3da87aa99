// SPDX-License-Identifier: Apache-2.0

// Command real starts real jobs of many processes, threads and goroutines, of which one or a few are
// elsewhere, or crash, has unwindd collect and compare them, and holds the answer against the planted one:
// who differs is to be the first class, and to part from the rest at the function that the program is in.
// Jobs that were collected have to go on to their end.
//
//	go run ./compare/real [-quick] [-run REGEXP] [-unwindd FILE] [-keep DIR] [-v]
//
// It needs Open MPI, Python, gcc and g++, `core` in /proc/sys/kernel/core_pattern, and the right to trace.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

func main() {
	r := &rig{}
	flag.BoolVar(&r.quick, "quick", false, "take few processes, and the jobs alone that end soon")
	flag.BoolVar(&r.verbose, "v", false, "print what the comparisons say")
	flag.Int64Var(&r.seed, "seed", time.Now().UnixNano()%1000, "choose who is elsewhere by `N`")
	flag.StringVar(&r.unwindd, "unwindd", os.Getenv("COMPARE_UNWINDD"), "compare by the executable `FILE` (default: one that is built)")
	only := flag.String("run", "", "run the jobs alone whose names match `REGEXP`")
	keep := flag.String("keep", "", "keep snapshots and what was printed in the folder `DIR`")
	flag.Parse()
	cost.Exit("real", r.run(*only, *keep))
}

// run runs the jobs and prints a line for each.
func (r *rig) run(only, keep string) error {
	choose, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	dir, remove, err := cost.Folder(keep, "compare-")
	if err != nil {
		return err
	}
	defer remove()
	r.dir = dir
	if r.unwindd == "" {
		if r.unwindd, err = cost.Build(dir); err != nil {
			return err
		}
	}
	fmt.Printf("who is elsewhere is chosen by -seed %d\n", r.seed)
	w := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(w, "job\tplanted\tfirst class\tclasses\tcompared in\tof processors\tmemory\tcollected in\tof processors\tspread\tstopped for at most\tlargest")
	var failed []error
	for i := range jobs {
		j := &jobs[i]
		if !choose.MatchString(j.name) || r.quick && j.isLong {
			continue
		}
		a, err := r.job(j)
		if err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", j.name, err))
		}
		if a != nil {
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%v\t%v\t%d MB\t%v\n", j.name, a.planted, a.found, a.classes,
				a.compared.Wall.Round(10*time.Millisecond), a.compared.CPU.Round(10*time.Millisecond), a.compared.Own>>10, a.collected)
		}
	}
	w.Flush()
	for _, line := range r.notes {
		fmt.Println(line)
	}
	return errors.Join(failed...)
}

// job runs one job in a folder of its own, unless what it needs is not here.
func (r *rig) job(j *job) (*answer, error) {
	if missing := absent(j.needs); len(missing) > 0 {
		if os.Getenv("CI") == "true" {
			return nil, fmt.Errorf("not installed: %s", strings.Join(missing, ", "))
		}
		r.note("%s is left out, because these are not installed: %s", j.name, strings.Join(missing, ", "))
		return nil, nil
	}
	work := &work{rig: r, name: j.name}
	var err error
	if work.dir, err = os.MkdirTemp(r.dir, strings.ReplaceAll(j.name, " ", "-")+"-"); err != nil {
		return nil, err
	}
	defer work.end()
	began := time.Now()
	a, err := j.run(work)
	if errors.Is(err, errAbsent) {
		r.note("%s is left out: %v", j.name, err)
		return nil, nil
	}
	if r.verbose {
		fmt.Printf("%s took %v\n", j.name, time.Since(began).Round(time.Millisecond))
	}
	return a, err
}
