// SPDX-License-Identifier: Apache-2.0

// Command fleet has jobs done by the processes of a fleet, and kills them.
//
// Two submitters ask for jobs of every kind, half of them twice. Meanwhile workers and the
// queue's server are killed, a worker is cut off for longer than it takes to be taken for
// dead, and the server's disk is full. In the end every job has one result, the text that the
// command writes, and nothing is left. Then it is the same with servers of NATS, with processes
// whose clocks jump, and with a cluster of three, which loses one.
//
// Beside that it measures how fast one, two and four workers are, and what the queue costs.
//
//	go run ./fleet [-jobs N] [-cuts N] [-others N] [-clocks N] [-cluster N] [-rates N] [-kill DURATION] [-seed N] [-keep DIR]
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/smalldisk"
)

var (
	jobs    = flag.Int("jobs", 10_000, "have `N` jobs done while processes die; 0: not at all")
	cuts    = flag.Int("cuts", 4, "cut a worker off `N` times meanwhile")
	others  = flag.Int("others", 1_000, "have `N` jobs done by each nats-server meanwhile: Debian's, and that of this module; 0: not at all")
	clocks  = flag.Int("clocks", 1_000, "have `N` jobs done by processes whose wall clocks jump; 0: not at all")
	cluster = flag.Int("cluster", 1_000, "have `N` jobs done by a cluster that loses a server; 0: not at all")
	rates   = flag.Int("rates", 2_000, "measure with `N` jobs how fast workers are; 0: not at all")
	every   = flag.Duration("kill", 3*time.Second, "kill a worker this often, and the server a quarter as often")
	seed    = flag.Uint64("seed", 0, "seed of what is random; 0: another one each time")
	keep    = flag.String("keep", "", "a `folder` that keeps the logs of processes")
)

func main() {
	if os.Getenv(clockedVariable) != "" {
		fmt.Fprintln(os.Stderr, "fleet:", becomeClocked(os.Args[1:]))
		os.Exit(1)
	}
	flag.Parse()
	if *seed == 0 {
		*seed = rand.Uint64()
	}
	cost.Exit("fleet", run())
}

// folderVariable is the variable by which this program is told that it has a mount namespace
// of its own, and where its material is.
const folderVariable = "FLEET_FOLDER"

func run() error {
	if dir := os.Getenv(folderVariable); dir != "" {
		return runApart(dir)
	}
	dir, remove, err := cost.Folder(*keep, "fleet-")
	if err != nil {
		return err
	}
	defer remove()
	unwindd, err := cost.Unwindd("FLEET_UNWINDD", dir, "fleet")
	if err != nil {
		return err
	}
	return smalldisk.Apart(os.Args[1:], folderVariable+"="+dir, "FLEET_UNWINDD="+unwindd)
}

// runApart does all of it, one after the other.
func runApart(dir string) error {
	fmt.Printf("seed %d\n", *seed)
	m, err := newMaterial(os.Getenv("FLEET_UNWINDD"), dir)
	if err != nil {
		return err
	}
	var failed []error
	if *jobs > 0 {
		failed = append(failed, m.torment(&embeddedServer{m: m}, *jobs, *cuts))
	}
	if *others > 0 {
		failed = append(failed, m.tormentOthers(*others))
	}
	if *clocks > 0 {
		failed = append(failed, m.tormentClocks(*clocks))
	}
	if *cluster > 0 {
		failed = append(failed, m.loseServers(*cluster))
	}
	if *rates > 0 {
		failed = append(failed, m.measure(*rates))
	}
	return errors.Join(failed...)
}
