// SPDX-License-Identifier: Apache-2.0

// Command machines has programs of AArch64 and RISC-V end under qemu, and compares the stacks
// of their cores, and of snapshots that gdb took of them, with gdb's: thread by thread, PC by
// PC. The programs know the truth: they keep a chain of the calls that they are in, or print
// their stack. Each difference is of a class that it decides; one of no class is a failure, and
// so are a frame that is wrong and a function that is missing.
//
//	go run ./machines [-all] [-run REGEXP] [-v] [-keep DIR] [-j N]
package main

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/unwindd/unwindd/.ci/peers/cost"
	"github.com/unwindd/unwindd/.ci/peers/foreign"
)

var (
	all     = flag.Bool("all", false, "every program in every way, instead of some")
	only    = flag.String("run", "", "only programs whose `name` matches this expression")
	verbose = flag.Bool("v", false, "list every difference")
	keep    = flag.String("keep", "", "a `folder` that keeps programs and cores")
	jobs    = flag.Int("j", 2, "so many programs at once")
)

func main() {
	flag.Parse()
	cost.Exit("machines", run())
}

func run() error {
	dir, remove, err := cost.Folder(*keep, "machines-")
	if err != nil {
		return err
	}
	defer remove()
	w := &work{dir: dir, plugins: filepath.Join(dir, "plugins"), tally: map[string]*tally{}, classes: map[string]int{}}
	if w.unwindd, err = cost.Unwindd("MACHINES_UNWINDD", dir); err != nil {
		return err
	}
	if err := w.buildPlugin(); err != nil {
		return err
	}
	if w.packages, err = foreign.Fetch(); err != nil {
		if os.Getenv("CI") == "true" {
			return err
		}
		fmt.Printf("left out, because their libraries are not here: Rust and musl: %v\n", err)
	}
	list := programs(w.packages != nil)
	if *only != "" {
		expression, err := regexp.Compile(*only)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(p *program) bool { return !expression.MatchString(p.name()) })
	}
	w.compareAll(list)
	return w.report()
}

// buildPlugin builds the example of a vendor's plugin, whose module is apart from the project's.
func (w *work) buildPlugin() error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	example := filepath.Join(root, "examples", "arch-riscv64")
	if err := os.WriteFile(filepath.Join(w.dir, "go.work"), []byte("go 1.26.0\nuse "+example+"\nreplace github.com/unwindd/unwindd => "+root+"\n"), 0o600); err != nil {
		return err
	}
	return cost.Run(example, "env", "GOWORK="+filepath.Join(w.dir, "go.work"), "go", "build", "-trimpath", "-o", filepath.Join(w.plugins, "unwindd-arch-riscv64"), "./unwindd-arch-riscv64")
}

// compareAll compares programs, some at once.
func (w *work) compareAll(list []*program) {
	next := make(chan *program)
	var wait sync.WaitGroup
	for range *jobs {
		wait.Go(func() {
			for p := range next {
				start := time.Now()
				if err := w.compare(p); err != nil {
					w.fail("%s: %v", p.name(), err)
				}
				if *verbose {
					fmt.Printf("%6.1fs %s\n", time.Since(start).Seconds(), p.name())
				}
			}
		})
	}
	for _, p := range list {
		next <- p
	}
	close(next)
	wait.Wait()
}

// tally counts the stacks of some programs by their result.
type tally struct {
	programs, threads, frames   int
	equal, fewer, more, another int // threads, beside gdb
	known, wrong, missing       int // threads, beside the truth
	guessed                     int // threads with a wrong frame that is marked as a guess
}

// work is the state that all programs share.
type work struct {
	dir, unwindd, plugins string
	packages              *foreign.Packages

	again    atomic.Int64 // programs that were run once more
	mutex    sync.Mutex
	builds   sync.Map // of built
	tally    map[string]*tally
	classes  map[string]int
	failures []string
}

func (w *work) fail(format string, args ...any) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

// report prints the table, the classes and what failed.
func (w *work) report() error {
	out := tabwriter.NewWriter(os.Stdout, 2, 0, 2, ' ', 0)
	fmt.Fprintln(out, "\tprograms\tthreads\tframes\tas gdb\tours fewer\tours more\tothers\tby the truth\twrong\twrong guesses\tmissing")
	var total tally
	row := func(name string, t *tally) {
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\n", name, t.programs, t.threads, t.frames, t.equal, t.fewer, t.more, t.another, t.known, t.wrong, t.guessed, t.missing)
	}
	for _, name := range slices.Sorted(maps.Keys(w.tally)) {
		t := w.tally[name]
		row(name, t)
		total.add(t)
	}
	row("", &total)
	out.Flush()
	names := slices.SortedFunc(maps.Keys(w.classes), func(a, b string) int { return cmp.Or(w.classes[b]-w.classes[a], cmp.Compare(a, b)) })
	for _, name := range names {
		fmt.Printf("%6d %s\n", w.classes[name], name)
	}
	if n := w.again.Load(); n > 0 {
		fmt.Printf("%6d runs were given up, because gdb saw no stacks, and made again\n", n)
	}
	slices.Sort(w.failures)
	for _, f := range w.failures {
		fmt.Println("failed:", f)
	}
	if len(w.failures) > 0 {
		return fmt.Errorf("%d failures", len(w.failures))
	}
	return nil
}

func (t *tally) add(o *tally) {
	t.programs, t.threads, t.frames = t.programs+o.programs, t.threads+o.threads, t.frames+o.frames
	t.equal, t.fewer, t.more, t.another = t.equal+o.equal, t.fewer+o.fewer, t.more+o.more, t.another+o.another
	t.known, t.wrong, t.guessed, t.missing = t.known+o.known, t.wrong+o.wrong, t.guessed+o.guessed, t.missing+o.missing
}
