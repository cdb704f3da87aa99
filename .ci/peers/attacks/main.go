// SPDX-License-Identifier: Apache-2.0

// Command attacks attacks `unwindd serve` and a fleet from outside, over loopback, while an honest
// caller goes on.
//
// The attacks are a process of their own that gives way to all others, as if it were another
// machine. Each is bounded in bytes and in time. Meanwhile the honest caller asks for stacks,
// names and a report that he had kept, each of which must be the one right answer. Memory, disk,
// descriptors and processes of the server are watched, and have to be what they were afterwards.
//
//	go run ./attacks [-quick] [-run REGEXP] [-each DURATION] [-soak DURATION] [-list] [-keep DIR]
//	go run ./attacks -bench [-n N] [UNWINDD...]
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

var (
	quick  = flag.Bool("quick", false, "several attacks at once, and no judgment of times: about a minute")
	only   = flag.String("run", "", "only attacks whose names match `REGEXP`")
	each   = flag.Duration("each", 8*time.Second, "an attack takes `DURATION`")
	soak   = flag.Duration("soak", 0, "all attacks at once for `DURATION`, and nothing else")
	list   = flag.Bool("list", false, "print the attacks")
	bench  = flag.Bool("bench", false, "measure small stacks of 8 callers by the executables that are named, in turns")
	count  = flag.Int("n", 2000, "with -bench: so many stacks in a turn")
	keep   = flag.String("keep", "", "a `folder` that keeps the executable and logs of servers")
	attack = flag.String("attack", "", "be the process that runs the attacks of these `NAMES`")
)

func main() {
	flag.Parse()
	cost.Exit("attacks", run())
}

func run() error {
	switch {
	case *attack != "":
		return beAttacker(*attack)
	case *list:
		for _, a := range attacks {
			fmt.Printf("%-24s %s\n", a.name, a.does)
		}
		return nil
	}
	dir, remove, err := cost.Folder(*keep, "attacks-")
	if err != nil {
		return err
	}
	defer remove()
	if *bench {
		return measure(dir, flag.Args())
	}
	unwindd, err := cost.Unwindd("ATTACKS_UNWINDD", dir, "fleet")
	if err != nil {
		return err
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	var chosen []*kind
	for _, a := range attacks {
		if wanted.MatchString(a.name) {
			chosen = append(chosen, a)
		}
	}
	r := &rig{unwindd: unwindd, dir: dir}
	var failed error
	switch {
	case *soak > 0:
		failed = r.together("all", chosen, *soak)
	case *quick:
		failed = r.groups(chosen, *each/2)
	default:
		for _, a := range chosen {
			failed = errors.Join(failed, r.together(a.name, []*kind{a}, *each))
		}
	}
	if wanted.MatchString("fleet") && *soak == 0 {
		failed = errors.Join(failed, r.fleet())
	}
	if failed == nil {
		fmt.Println("\nno attack succeeds")
	}
	return failed
}

// judgesTimes reports whether the times of the honest caller count: few samples beside much other
// work prove nothing.
func judgesTimes() bool { return !*quick && os.Getenv("CI") == "" }
