// SPDX-License-Identifier: Apache-2.0

// Command mutations runs unwindd on damaged files of every kind that it reads: bytes changed,
// cut, moved and repeated; lengths, counts and offsets at their limits; sections and records
// swapped between files. Whatever a file says, the command ends by itself, in bounded time and
// memory, with an exit status of its own.
//
//	go run ./mutations [-runs N] [-seed N] [-first N] [-processes N] [-kind NAME] [-into FILE] [-made DIR] [-dumps DIR] [-seconds N] [-megabytes N]
//
// It prints how the runs of each kind ended, the longest and the largest, and keeps the
// files of failed runs in the folder that it names. -into adds the counts to the file's
// counts of earlier runs, so that many runs are done in parts, each with another -seed.
// An interrupt ends them early. See make.sh for its requirements.
package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"

	"github.com/unwindd/unwindd/.ci/peers/cost"
)

var (
	runs        = flag.Int("runs", 20000, "how many files are damaged")
	first       = flag.Int("first", 0, "number of the first run: with -runs 1 one run again")
	seed        = flag.Uint64("seed", 1, "of the damage")
	processes   = flag.Int("processes", 2, "that run at a time")
	only        = flag.String("kind", "", "only kinds whose names have this in them")
	into        = flag.String("into", "", "add the table to the one in this file")
	dumps       = flag.String("dumps", "", "damage the minidumps below this folder, too")
	seconds     = flag.Uint64("seconds", 20, "of a processor, that a run may take")
	megabytes   = flag.Int64("megabytes", 1024, "of memory that a run may take")
	generatedIn = flag.String("made", "", "make the files that are damaged in this folder, or take them if it is there")
	command     = flag.String("unwindd", "", "the executable; the default is one that is built")
)

//go:embed make.sh
var makeScript string

func main() {
	flag.Parse()
	cost.Exit("mutations", run())
}

func run() error {
	dir, err := os.MkdirTemp("", "mutations-")
	if err != nil {
		return err
	}
	r, err := newRunner(dir)
	if err != nil {
		return err
	}
	numbers, results := make(chan int), make(chan result)
	var workers sync.WaitGroup
	for range *processes {
		workers.Go(func() {
			for n := range numbers {
				results <- r.once(n)
			}
		})
	}
	interrupted, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	go func() {
		for n := 0; n < *runs && interrupted.Err() == nil; n++ {
			numbers <- *first + n
		}
		close(numbers)
		workers.Wait()
		close(results)
	}()
	t, err := loadTable(*into)
	if err != nil {
		return err
	}
	failed := 0
	for one := range results {
		t.add(one)
		if one.problem != "" {
			failed++
			fmt.Printf("%s: %s\n", one.name, one.problem)
		}
	}
	if err := t.save(*into); err != nil {
		return err
	}
	t.print(os.Stdout)
	if failed == 0 {
		return os.RemoveAll(dir)
	}
	return fmt.Errorf("%d runs failed, their files are in %s", failed, dir)
}

// newRunner builds the command, and makes and reads the files that are damaged.
func newRunner(dir string) (*runner, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	r := &runner{unwindd: *command, dir: dir, places: places{root, filepath.Join(dir, "made"), filepath.Join(dir, "empty")}}
	if err := os.Mkdir(r.places.empty, 0o700); err != nil {
		return nil, err
	}
	if r.unwindd == "" {
		if r.unwindd, err = cost.Build(dir); err != nil {
			return nil, err
		}
	}
	if err := r.makeFiles(); err != nil {
		return nil, err
	}
	if *dumps != "" {
		kinds = append(kinds, kind{"more minidumps", 4, []string{*dumps + "/*.dmp", *dumps + "/*/*.dmp"}, stackCommands})
	}
	for _, k := range kinds {
		if !strings.Contains(k.name, *only) {
			continue
		}
		inputs, err := readInputs(r.places, k)
		if err != nil {
			return nil, err
		}
		for range k.often {
			r.kinds = append(r.kinds, loaded{k.name, inputs})
		}
	}
	if len(r.kinds) == 0 {
		return nil, fmt.Errorf("no kind has %q in its name", *only)
	}
	return r, nil
}

// makeFiles makes the files that are damaged, unless they exist.
func (r *runner) makeFiles() (err error) {
	if *generatedIn != "" {
		if r.places.generated, err = filepath.Abs(*generatedIn); err != nil {
			return err
		}
		if _, err := os.Stat(r.places.generated); err == nil {
			return nil
		}
	}
	if err := os.Mkdir(r.places.generated, 0o700); err != nil {
		return err
	}
	made := exec.Command("bash", "-c", makeScript, "make.sh", r.places.root, r.unwindd)
	made.Dir = r.places.generated
	if out, err := made.CombinedOutput(); err != nil {
		_ = os.RemoveAll(r.places.generated)
		return fmt.Errorf("making files: %w\n%s", err, out)
	}
	return nil
}
