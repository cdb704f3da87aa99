// SPDX-License-Identifier: Apache-2.0

// Command made compares jobs of made snapshots, in which it is known who differs. A program of which many threads
// stand at many places is copied once; each rank's snapshot has 30 of these threads, with their registers and
// stacks, so that all stacks are really walked. Ranks are made to differ: one is elsewhere, one is a step behind, one
// crashed, one has another build of a library, half of them are a step ahead, each alone and together. The classes of
// each job must be as a plain grouping has them, and the ranks that differ must come first. Then large jobs are measured.
//
//	go run ./compare/made [-jobs N] [-sizes N,N] [-seed N] [-keep DIR]
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/engine"
	"github.com/unwindd/unwindd/engine/trace"
	"github.com/unwindd/unwindd/plugins/x86_64"
	"github.com/unwindd/unwindd/sdk"
)

var (
	jobs  = flag.Int("jobs", 100, "so many random jobs")
	sizes = flag.String("sizes", "1250,2500,5000,10000", "measure jobs of so many ranks; empty: none")
	seed  = flag.Uint64("seed", 1, "of the random jobs")
	keep  = flag.String("keep", "", "a `folder` that keeps what is made")
	only  = flag.String("only", "", "instead: compare the snapshots in a `folder` by the engine in this process")
	cpu   = flag.String("cpuprofile", "", "with -only: a `file` for the profile of the processors' time")
)

var ctx = context.Background()

func main() {
	flag.Parse()
	if *only != "" {
		cost.Exit("made", compareOnly())
		return
	}
	cost.Exit("made", run())
}

// compareOnly compares the snapshots in a folder.
func compareOnly() error {
	if *cpu != "" {
		f, err := os.Create(*cpu)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	paths, err := filepath.Glob(filepath.Join(*only, "*.snapshot"))
	if err != nil {
		return err
	}
	e, err := engine.New(engine.Options{InProcess: []sdk.Architecture{x86_64.New()}})
	if err != nil {
		return err
	}
	defer e.Close()
	begun := time.Now()
	c, err := compared(e, paths)
	if err != nil {
		return err
	}
	fmt.Printf("%d targets, %d classes in %v\n", len(c.Targets), len(c.Classes), time.Since(begun).Round(time.Millisecond))
	return nil
}

func run() error {
	dir, remove, err := cost.Folder(*keep, "compare-")
	if err != nil {
		return err
	}
	defer remove()
	p, err := newProgram(dir)
	if err != nil {
		return err
	}
	m, err := newMaker(p)
	if err != nil {
		return err
	}
	defer m.close()
	if err := checkJobs(m, dir); err != nil {
		return err
	}
	return measure(m, dir)
}

// checkJobs holds random jobs against the plain grouping.
func checkJobs(m *maker, dir string) error {
	e, err := engine.New(engine.Options{InProcess: []sdk.Architecture{x86_64.New()}})
	if err != nil {
		return err
	}
	defer e.Close()
	r := rand.New(rand.NewPCG(*seed, 0))
	wrong, ranks, planted := 0, 0, 0
	begun := time.Now()
	for i := range *jobs {
		j := randomJob(r)
		folder := filepath.Join(dir, "job")
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		paths, err := m.writeJob(folder, j)
		if err != nil {
			return err
		}
		r.Shuffle(len(paths), func(a, b int) { paths[a], paths[b] = paths[b], paths[a] })
		c, err := compared(e, paths)
		if err != nil {
			return err
		}
		if problem := j.check(c); problem != "" {
			wrong++
			fmt.Printf("job %d of seed %d: %s\n", i, *seed, problem)
		}
		ranks, planted = ranks+len(j.ranks), planted+len(j.planted)
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
	}
	fmt.Printf("%d random jobs of %d ranks in all, %d ranks made to differ: %d jobs wrong, in %v\n", *jobs, ranks, planted, wrong, time.Since(begun).Round(time.Millisecond))
	if wrong > 0 {
		return fmt.Errorf("%d jobs are wrong", wrong)
	}
	return nil
}

// compared compares targets by the engine.
func compared(e *engine.Engine, paths []string) (*trace.Comparison, error) {
	rule, err := engine.ParseLabelRule(`rank=rank(\d+)`)
	if err != nil {
		return nil, err
	}
	c := e.NewComparer(engine.CompareOptions{Labels: []engine.LabelRule{rule}})
	if err := c.AddPaths(ctx, paths, nil); err != nil {
		return nil, err
	}
	return c.Comparison(), nil
}

// measure measures the command on large jobs in which each way to differ is planted.
func measure(m *maker, dir string) error {
	if *sizes == "" {
		return nil
	}
	unwindd, err := cost.Unwindd("MADE_UNWINDD", dir)
	if err != nil {
		return err
	}
	fmt.Printf("%8s %8s %8s %8s %8s %8s\n", "ranks", "MB", "wall s", "CPU s", "peak MB", "classes")
	for text := range strings.SplitSeq(*sizes, ",") {
		ranks, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		if err := measureOne(m, filepath.Join(dir, "large"+text), unwindd, ranks); err != nil {
			return err
		}
	}
	return nil
}

func measureOne(m *maker, folder, unwindd string, ranks int) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	j := newJob(rand.New(rand.NewPCG(*seed, uint64(ranks))), ranks, []int{0, 1, 2, 3, 4}, true)
	paths, err := m.writeJob(folder, j)
	if err != nil {
		return err
	}
	if *keep == "" {
		defer os.RemoveAll(folder)
	}
	size := int64(0)
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		size += info.Size()
	}
	out := filepath.Join(folder, "..", "compared.json")
	c, err := cost.Of([]string{unwindd, "compare", "--label", `rank=rank(\d+)`, "--format", "json", "-o", out, folder})
	if err != nil {
		return err
	}
	fmt.Printf("%8d %8.1f %8.2f %8.2f %8.1f %8d\n", ranks, float64(size)/1e6, c.Wall.Seconds(), c.CPU.Seconds(), float64(c.All)/1024, len(j.groups()))
	return nil
}
