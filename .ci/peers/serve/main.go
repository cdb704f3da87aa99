// SPDX-License-Identifier: Apache-2.0

// Command serve measures and torments `unwindd serve` from outside, by processes of their own.
//
// Under load, 32 callers send small targets over loopback and over a Unix socket. Each answer
// is held against that of the command for the same target, memory, descriptors, goroutines
// and processes are watched, and the command is started anew for the same targets.
//
// The soak has 32 callers of every kind of request, while workers and plugins are killed and
// stopped, uploads are cut, readers are slow or stop, calls are canceled, and the disk is
// full. Whoever was not hurt gets the one right answer, or is told honestly why not. At the
// end nothing is left.
//
//	go run ./serve [-all] [-n N] [-callers N] [-soak DURATION] [-seed N] [-keep DIR]
package main

import (
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

var (
	all     = flag.Bool("all", false, "20,000 stacks over each socket and ten minutes of soak, instead of a sample")
	count   = flag.Int("n", 600, "send `N` targets over each socket")
	callers = flag.Int("callers", 32, "so many callers at once")
	soak    = flag.Duration("soak", 30*time.Second, "torment the server for `DURATION`; 0: not at all")
	seed    = flag.Uint64("seed", 0, "seed of what is random in the soak; 0: another one each time")
	keep    = flag.String("keep", "", "a `folder` that keeps targets, answers that were wrong, and the log of the server")
)

func main() {
	flag.Parse()
	if *all {
		*count, *soak = 20_000, 10*time.Minute
	}
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	cost.Exit("serve", run())
}

func run() error {
	if dir := os.Getenv(soakFolder); dir != "" {
		return runSoak(dir)
	}
	dir, remove, err := cost.Folder(*keep, "serve-")
	if err != nil {
		return err
	}
	defer remove()
	unwindd, err := cost.Unwindd("SERVE_UNWINDD", dir)
	if err != nil {
		return err
	}
	m := &measurement{unwindd: unwindd, dir: dir}
	if m.inputs, err = loadInputs(unwindd, dir); err != nil {
		return err
	}
	var failed []error
	if *count > 0 {
		failed = append(failed, m.measure())
	}
	if *soak > 0 {
		failed = append(failed, soakApart(unwindd, dir))
	}
	return errors.Join(failed...)
}
